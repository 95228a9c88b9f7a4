"""The process that ends what agents leave running, while the gateway lives and after its death.

Started by `lifeline.py` as `python -I -S watcher.py [REQUESTS RECORD]`. Stdin is the read end of a pipe whose only
write end is the gateway's. However the gateway ends, the kernel closes the pipe; then all registered trees are ended.

    + MARKER             an agent is about to be started with this marker in its environment
    + MARKER PID START   it was started as PID at START
    - MARKER             its tree has ended

On Linux the watcher also starts the agents (`starter.py`; REQUESTS is the descriptor of that socket) and adopts their
orphans, so that orphans without any mark are found; and it ends the processes of gateways that were killed together
with their watchers (`records.py`; RECORD is the gateway's own record).

A gateway's first agent waits until this process has started, so its files import no module that is slow to load: not
`typing`, `_signal` instead of `signal` (for its enums), and nothing else of the package but each other.
"""

from __future__ import annotations

import _socket
import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterator

    from dragoman.agents.custody import records, starter, table, tree
else:
    import _signal as signal

    # Isolated mode leaves this folder off the path; these modules need it.
    sys.path.append(__file__.removesuffix("watcher.py"))
    import records  # noqa: I001
    import starter
    import table
    import tree

# Signals to the gateway, or to an editor's whole process group, must not end the watcher.
IGNORED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGPIPE")

STARTING_UP = 0.1
"""Seconds: a child that was being started when the gateway died has its marker only after its exec."""

_STDIN = 0
_READ_BYTES = 1 << 16
_PR_SET_CHILD_SUBREAPER = 36


class Chore:
    """A task that ends processes step by step."""

    def __init__(self, pauses: Iterator[float], done: Callable[[], None] = lambda: None) -> None:
        self._pauses = pauses
        self._done = done
        self.due = 0.0

    def go_on(self) -> bool:
        """Do the next step; returns whether another follows, at `due`."""
        pause = next(self._pauses, None)
        if pause is None:
            self._done()
            return False
        self.due = time.monotonic() + pause
        return True


class Watcher:
    """Serves the gateway until it is gone."""

    def __init__(self, starting: starter.Starter | None = None, requests: int = -1) -> None:
        self.trees: dict[str, tree.Tree] = {}
        self.chores: list[Chore] = []
        self._starter = starting
        self._requests = requests
        self._heard = b""
        self._clearing = False

    def follow(self, wakeup: int) -> None:
        """Handle input until stdin ends."""
        poll = select.poll()
        for descriptor in (_STDIN, wakeup, *([self._requests] if self._starter is not None else [])):
            poll.register(descriptor, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll(self._patience())}
            if wakeup in ready:
                os.read(wakeup, _READ_BYTES)
                self._has_children()
            if self._requests in ready:
                self._start()
            if _STDIN in ready and not self._read_commands():
                return
            self._work()

    def end_all(self) -> None:
        """End all remaining processes, registered or not."""
        trees = list(self.trees.values())
        if not trees and not self._has_children():
            return
        if not all(one.rooted for one in trees):
            time.sleep(STARTING_UP)
        for pause in tree.escalate([*trees, tree.Strays()], table):
            self._has_children()
            time.sleep(pause)

    def sweep(self, dead: records.DeadGateway) -> None:
        """Begin to end the processes that a dead gateway left."""
        theirs = tree.Tree(dead.token)
        self.chores.append(
            Chore(tree.escalate([theirs], table), lambda: dead.settle(ended=not theirs.remaining))
        )

    def _read_commands(self) -> bool:
        data = os.read(_STDIN, _READ_BYTES)
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in lines:
            self._register(line.decode())
        return bool(data)

    def _register(self, line: str) -> None:
        sign, marker, *root = line.split()
        if sign == "-":
            self.trees.pop(marker, None)
            self._clear()
            return
        registered = self.trees.setdefault(marker, tree.Tree(marker))
        if root:
            registered.root(int(root[0]), " ".join(root[1:]))

    def _start(self) -> None:
        assert self._starter is not None
        started = self._starter.serve()
        if started is not None:
            registered = self.trees.setdefault(started.marker, tree.Tree(started.marker))
            registered.root(started.pid, table.start_of(started.pid))

    def _has_children(self) -> bool:
        """Reap ended children; returns whether any started or adopted process still runs."""
        return self._starter is not None and self._starter.reap()

    def _clear(self) -> None:
        """After the end of the last agent, end the strays too."""
        if self.trees or self._clearing or not self._has_children():
            return
        self._clearing = True
        strays = tree.Strays(lambda: self.trees.values())
        self.chores.append(Chore(tree.escalate([strays], table), self._cleared))

    def _cleared(self) -> None:
        self._clearing = False

    def _patience(self) -> float | None:
        """Milliseconds until the next chore."""
        if not self.chores:
            return None
        return max(0.0, min(chore.due for chore in self.chores) - time.monotonic()) * 1000

    def _work(self) -> None:
        now = time.monotonic()
        self.chores = [chore for chore in self.chores if chore.due > now or chore.go_on()]


def main(arguments: list[str]) -> None:
    ours = [getattr(signal, name) for name in IGNORED if hasattr(signal, name)]
    # Signals ignored before stay ignored in the agents, except SIGPIPE, which Python itself ignores.
    defaults = [name for name in ours if signal.getsignal(name) != signal.SIG_IGN or name == signal.SIGPIPE]
    for name in ours:
        signal.signal(name, signal.SIG_IGN)
    if len(arguments) < 2:
        watcher = Watcher()
        watcher.follow(_wakeup())
        watcher.end_all()
        return
    requests, record = (int(argument) for argument in arguments[:2])
    for descriptor in (requests, record):
        if descriptor >= 0:
            os.set_inheritable(descriptor, False)
    _adopt_orphans()
    channel = _socket.socket(fileno=requests)
    watcher = Watcher(starter.Starter(channel, [*defaults, signal.SIGXFSZ]), requests)
    if record >= 0:
        for dead in records.dead_gateways(record):
            watcher.sweep(dead)
    watcher.follow(_wakeup())
    watcher.end_all()
    if record >= 0:
        records.remove(record)


def _adopt_orphans() -> None:
    """Make orphaned descendants children of this process instead of init."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass  # marks still work


def _wakeup() -> int:
    """A descriptor that becomes readable when a child has ended."""
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    return readable


if __name__ == "__main__":
    main(sys.argv[1:])
