"""What is known of projects: the watch of each, and the tree that each session recorded last."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from dragoman.checkpoints.watching.project_watch import CannotWatch, ProjectWatch
from dragoman.gateway.ports.checkpoints import Checkpoint, Mark

log = logging.getLogger(__name__)

PROJECTS = 16
"""Projects that are watched at once, those used last: the kernel has 128 queues for all programs of a user."""
SESSIONS = 1024
"""Sessions whose last tree is known, those used last; any other session's project is compared."""
COMPARE_AFTER = 30.0
"""Seconds after which the end of a turn compares files although no change was noticed: a few kinds are not."""
RETRY_AFTER = 600.0
"""Seconds until a project that could not be watched is tried again."""


@dataclass(frozen=True, slots=True)
class Known:
    """The project as a session recorded it, and how to find whether it is still the same."""

    session_id: str
    """Whose checkpoints hold the tree."""
    checkpoint: Checkpoint
    watch: ProjectWatch
    generation: int
    compared: float
    """When files were compared, by `time.monotonic`."""

    def holds(self) -> bool:
        """Whether the project is certainly still so; quick, for the event loop too."""
        return self.watch.quiet_since(self.generation)

    def covers(self, mark: Mark) -> bool:
        """Whether a checkpoint may be made of it without a look at the files."""
        return self.is_recent_for(mark) and self.holds()

    def is_recent_for(self, mark: Mark) -> bool:
        """Whether it is recent enough for a checkpoint, and that is not one that always compares."""
        if mark.kind == "begin":
            return True
        return mark.kind == "end" and time.monotonic() - self.compared <= COMPARE_AFTER


class Knowledge:
    """Its calls are for any thread; of those only `covering` and `last` are for the event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watches: OrderedDict[str, ProjectWatch] = OrderedDict()
        self._failed: dict[str, float] = {}
        self._known: OrderedDict[str, tuple[str, Known]] = OrderedDict()
        self._closed = False

    def covering(self, session_id: str, root: str, mark: Mark) -> Known | None:
        """What the session recorded last, if the project is certainly the same still."""
        known = self.last(session_id, root)
        return known if known is not None and known.covers(mark) else None

    def last(self, session_id: str, root: str) -> Known | None:
        """What the session recorded last; the project may have changed since."""
        found = self._known.get(session_id)
        return found[1] if found is not None and found[0] == root else None

    def of_others(self, root: str) -> Known | None:
        """What any session recorded of a project, if that is certainly the same still."""
        with self._lock:
            found = [known for at, known in self._known.values() if at == root]
        return next((known for known in reversed(found) if known.holds()), None)

    def begin(self, root: str) -> tuple[ProjectWatch, int] | None:
        """Call it before files are compared; returns what `learn` takes, or None if the project is not watched."""
        with self._lock:
            watch = self._watches.get(root)
            if watch is not None:
                self._watches.move_to_end(root)
        generation = watch.begin() if watch is not None else None
        return None if watch is None or generation is None else (watch, generation)

    def learn(
        self,
        session_id: str,
        root: str,
        checkpoint: Checkpoint,
        begun: tuple[ProjectWatch, int] | None,
        compared: float | None = None,
    ) -> None:
        """The session's project was recorded; `compared`: when its files were compared, if not now."""
        with self._lock:
            if begun is None:
                self._known.pop(session_id, None)
                return
            moment = time.monotonic() if compared is None else compared
            self._known[session_id] = root, Known(session_id, checkpoint, *begun, moment)
            self._known.move_to_end(session_id)
            if len(self._known) > SESSIONS:
                self._known.popitem(last=False)

    def watch(self, root: str, make: Callable[[], ProjectWatch]) -> None:
        """Watch a project from now on, unless it is watched."""
        with self._lock:
            present = self._watches.get(root)
            failed = self._failed.get(root)
            if present is not None and not present.closed:
                return
            if self._closed or (failed is not None and time.monotonic() - failed < RETRY_AFTER):
                return
        try:
            made = make()
        except CannotWatch as error:
            log.info("changes in a project are not noticed, so prompts wait for checkpoints: %s", error)
            with self._lock:
                self._failed[root] = time.monotonic()
            return
        with self._lock:
            left = [self._watches.pop(root, None)]
            self._watches[root] = made
            if len(self._watches) > PROJECTS or self._closed:
                left.append(self._watches.popitem(last=False)[1])
        for watch in left:
            if watch is not None:
                watch.close()

    def forget(self, session_id: str) -> None:
        with self._lock:
            self._known.pop(session_id, None)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            watches = list(self._watches.values())
            self._watches.clear()
            self._known.clear()
        for watch in watches:
            watch.close()
