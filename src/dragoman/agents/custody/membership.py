"""Whether a process was started by an agent, however indirectly (Linux).

Two facts tell it, and one is enough: a watcher is among the process's ancestors, as watchers start agents and adopt
their orphans; or the process has a ward's mark (`marks.py`), which survives the watcher. Watchers and marks that this
process has too do not count: it runs itself below an agent, of another gateway.

What cannot be looked at, because it has ended or is in another process namespace, counts as started by an agent.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from dragoman.agents.custody import marks
from dragoman.agents.custody.lifeline import WATCHER

PROC = Path("/proc")
DEEPEST = 200
"""Ancestors that are looked at; a longer line of them counts as an agent's."""
_TAIL = "/".join(WATCHER.parts[-4:]).encode()


def is_of_agent(pid: int) -> bool:
    """Whether the process is inside an agent's custody; on other systems than Linux that is not known, so False."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        theirs, ours = list(_ancestors(pid)), set(_ancestors(os.getpid()))
        if os.getpid() in theirs[1:] or len(theirs) >= DEEPEST:
            return True
        return _is_marked(pid) or any(_is_watcher(each) for each in theirs if each not in ours)
    except (OSError, ValueError, IndexError):
        return True


def _ancestors(pid: int) -> Iterator[int]:
    """The process and those above it, the nearest first."""
    for _ in range(DEEPEST):
        if pid <= 0:
            return
        yield pid
        stat = (PROC / str(pid) / "stat").read_bytes()
        pid = int(stat.rpartition(b")")[2].split()[1])  # the name before it may hold anything


def _is_watcher(pid: int) -> bool:
    return any(word.endswith(_TAIL) for word in (PROC / str(pid) / "cmdline").read_bytes().split(b"\0"))


def _is_marked(pid: int) -> bool:
    theirs, ours = (marks.parse((PROC / str(each) / "limits").read_bytes()) for each in (pid, os.getpid()))
    return marks.is_mark(theirs) and theirs != ours
