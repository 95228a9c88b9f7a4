"""Finds the processes that belong to an agent, and ends them.

A process is a member of a tree when any of these holds:

    the marker      its environment or its limits carry the tree's random marker (Linux, see `marks`)
    the group       it is in the process group or the session that the agent was started in
    the descent     its parent is a member
    the memory      it was a member before and is still the same process

A process for which none of these holds (no marked environment or limits, its own session, its parent gone) belongs to
no tree. It still descends from the watcher, which adopts the orphans of all agents, and is one of its `Strays`.

The start time tells members from other processes that reuse their pid. The process list comes from `table`, which is
a parameter. Stdlib only, without imports from the package: the watcher loads this file by path.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from typing import Protocol

    from dragoman.agents.custody.table import Process, Snapshot

    class ProcessTable(Protocol):
        """The interface of `table`; tests pass made-up process tables."""

        @property
        def snapshot(self) -> Callable[[], Snapshot]: ...

        @property
        def send(self) -> Callable[[Process, int], None]: ...

    class Members(Protocol):
        """Processes that end together."""

        def members(self, snapshot: Snapshot) -> Collection[Process]:
            """The processes in the snapshot that are members."""
else:
    import _signal as signal

if TYPE_CHECKING or __package__:
    from dragoman.agents.custody import marks
else:
    import marks

MARKER_VARIABLE = "DRAGOMAN_CUSTODY"
"""The markers of all gateways above a process, the innermost last: an agent may itself be a gateway."""


class Step:
    """One step of the escalation: send a signal to all members, then wait for their end."""

    def __init__(self, signal: int, patience: float) -> None:
        self.signal = signal
        self.patience = patience


SIGNALS: Sequence[Step] = (
    # Real agents exit within 0.2 s of a SIGTERM; two seconds let a slow one write its history (G-113).
    Step(signal.SIGTERM, 2.0),
    # Cannot be ignored; the wait is for the kernel, and for children that were being forked at the last snapshot.
    Step(getattr(signal, "SIGKILL", signal.SIGTERM), 2.0),
)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.1
"""Most trees end at once; the others must not cost a process scan every few milliseconds."""


class Tree:
    """The processes of one agent, found by the marker alone until `root` is called.

    With a gateway's token as the marker: all processes that its agents left, since their markers begin with it.
    """

    def __init__(self, marker: str) -> None:
        self._marks = (marker.encode(), marks.number_of(marker))
        self._root: int | None = None
        self._root_start = ""
        self._members: dict[int, Process] = {}

    @property
    def rooted(self) -> bool:
        return self._root is not None

    def root(self, pid: int, start: str) -> None:
        """Set the agent's own process, which leads its group and session."""
        self._root = pid
        self._root_start = start

    def members(self, snapshot: Snapshot) -> Collection[Process]:
        """The processes in the snapshot that belong to the tree."""
        everyone = snapshot.processes
        ours = {pid: old for pid, old in self._members.items() if _same(everyone.get(pid), old.start)}
        group = self._own_group(everyone.get(self._root or 0))
        for process in everyone.values():
            in_group = group is not None and group in (process.pid, process.pgid, process.sid)
            if in_group or (self._may_carry(process) and snapshot.carries(process.pid, *self._marks)):
                ours[process.pid] = process
        _add_descendants(ours, everyone.values())
        ours.pop(os.getpid(), None)  # never ourselves
        self._members = ours
        return ours.values()

    @property
    def remaining(self) -> Collection[Process]:
        """The members that the last call of `members` found."""
        return self._members.values()

    def _may_carry(self, process: Process) -> bool:
        """Whether a process can have the mark: it is inherited, so processes older than the root need no check."""
        known = self._root_start.isdigit() and process.start.isdigit()  # ticks since boot, on Linux
        return not known or int(process.start) >= int(self._root_start)

    def _own_group(self, leader: Process | None) -> int | None:
        # The kernel does not reuse a pid while a group of that number exists. So if another process has the
        # root's pid, our group is empty and the group of that number is not ours.
        replaced = leader is not None and not _same(leader, self._root_start)
        return None if replaced else self._root


class Strays:
    """Descendants of this process that belong to none of the `trees`."""

    def __init__(self, trees: Callable[[], Iterable[Tree]] = tuple) -> None:
        self._trees = trees

    def members(self, snapshot: Snapshot) -> Collection[Process]:
        below: dict[int, Process] = {}
        _add_descendants(below, snapshot.processes.values(), [os.getpid()])
        for tree in self._trees():
            for process in tree.members(snapshot):
                below.pop(process.pid, None)
        return below.values()


def escalate(
    trees: Sequence[Members], table: ProcessTable, steps: Sequence[Step] = SIGNALS
) -> Iterator[float]:
    """End all members of the trees, step by step, until none is left.

    Yields the seconds to pause before continuing, so that the watcher can sleep and the gateway's loop can await.
    """
    for step in steps:
        signalled: set[Process] = set()
        deadline = time.monotonic() + step.patience
        pause = _FIRST_PAUSE
        while True:
            snapshot = table.snapshot()
            members = {process for tree in trees for process in tree.members(snapshot)}
            if not members:
                return
            for process in members - signalled:
                table.send(process, step.signal)
            signalled |= members
            if time.monotonic() >= deadline:
                break
            yield pause
            pause = min(pause * 2, _LONGEST_PAUSE)


def _same(process: Process | None, start: str) -> bool:
    return process is not None and (not start or process.start == start)


def _add_descendants(
    ours: dict[int, Process], everyone: Collection[Process], roots: Sequence[int] = ()
) -> None:
    """Add all processes that descend from a member or from one of the `roots`."""
    children: dict[int, list[Process]] = {}
    for process in everyone:
        children.setdefault(process.ppid, []).append(process)
    waiting = [*ours, *roots]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child.pid not in ours:
                ours[child.pid] = child
                waiting.append(child.pid)
