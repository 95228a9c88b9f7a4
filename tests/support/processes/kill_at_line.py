"""Kills this process (SIGKILL) before a line that it executes in some files of dragoman.

Which one is told by `TESTS_KILL_AT`, as a process that is forked for a test finds it (`fork_server_program.py`):

    line N FILE,FOLDER,…     the N-th line
    state N FILE,FOLDER,…    the first line after the world outside has changed for the N-th time since the first line

Between two lines without a system call that writes, killing makes no difference: the states are all there is to see.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

KILL_AT = "TESTS_KILL_AT"
CHANGING = frozenset(
    {"os.mkdir", "os.rmdir", "os.remove", "os.rename", "os.link", "os.symlink", "os.truncate", "os.kill"}
)
"""Events of Python that change something and write nothing; ends of files that are truncated are written next."""


def kill_at(told: str) -> None:
    what, number, files = told.split(" ")
    marks = tuple(f"dragoman/{file}" for file in files.split(","))
    watched: dict[str, bool] = {}
    reached = _reached(itertools.count(1) if what == "line" else _states(), int(number))

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if name not in watched:
            watched[name] = any(mark in name for mark in marks)
        if not watched[name] or frame.f_code.co_name == "<module>":
            return None
        if event == "line" and reached():
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    threading.settrace(trace)
    sys.settrace(trace)


def _reached(numbers: Iterator[int], last: int) -> Callable[[], bool]:
    guard = threading.Lock()

    def reached() -> bool:
        with guard:
            return next(numbers) >= last

    return reached


def _states() -> Iterator[int]:
    """How many states there were, each time it is asked: writes of all threads, and other changes of files."""
    changes, number, former = itertools.count(), 0, None
    changed = 0

    def see(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal changed
        if event in CHANGING or (event == "open" and _creates(arguments)):
            changed = next(changes) + 1

    sys.addaudithook(see)
    written = os.open("/proc/self/io", os.O_RDONLY | os.O_CLOEXEC)
    while True:
        counts = os.pread(written, 500, 0)
        at = counts.index(b"syscw: ")
        present = (counts[at : counts.index(b"\n", at)], changed)
        if present != former:
            number, former = number + 1, present
        yield number


def _creates(arguments: tuple[Any, ...]) -> bool:
    *_, flags = arguments
    return isinstance(flags, int) and bool(flags & (os.O_CREAT | os.O_TRUNC))
