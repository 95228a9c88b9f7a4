"""Counts the files of `src/dragoman` that one message visits, in a running gateway.

Run as a program it starts `dragoman` under a profiler: `walk.py OUT PYTHON -m dragoman serve …`. A step is a call from
one file into another, or a call of the event loop into another file than the last; log lines are not followed. A
revisit is a step into a file that the walk has visited before. The route of a walk has only the steps that lead to a
place where the message is handed on (`HANDS_ON`), without the helpers that are asked on the way and return.

The walk of a message begins with the call of the event loop in which its bytes arrive (`BEGINS`), and ends with the
write of the first bytes that it causes at its destination (`ENDS`). Each walk is one line of JSON in OUT.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from dataclasses import dataclass, field
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

UPDATE, QUESTION, ANSWER = "walked update", "walked question", "walked answer"
BEGINS = {
    UPDATE: ("_on_stdout", "data", UPDATE.encode()),
    QUESTION: ("_on_stdout", "data", b"session/request_permission"),
    ANSWER: ("_receive", "frame", b"permission_response"),
}
"""The function that gets the bytes, its argument, and a part of them."""
ENDS = {UPDATE: UPDATE.encode(), QUESTION: b"permission_request", ANSWER: b'"result":{"outcome":'}
HANDS_ON = frozenset(
    {
        "JournalFeed.publish",
        "JournalFeed.record",
        "Writer.write",
        "Outbox.send",
        "Outbox.send_all",
        "Outbox.flush",
        "Gateway.spawn",
    }
)
NOT_FOLLOWED = frozenset({"log.py"})


@dataclass(frozen=True)
class Walk:
    """The steps of one message."""

    name: str
    steps: list[str]
    route: list[str] = field(default_factory=list)

    @property
    def files(self) -> list[str]:
        """Every visited file, in the order of the first visits."""
        return list(dict.fromkeys(self.steps))

    @property
    def revisits(self) -> list[str]:
        return [step for index, step in enumerate(self.steps) if step in self.steps[:index]]

    def __str__(self) -> str:
        return f"{len(self.files)} files, {len(self.revisits)} revisits: {' → '.join(self.steps)}"


def read(path: Path) -> dict[str, Walk]:
    """The shortest walk of each kind: during the others a timer of something else fired."""
    walks = [Walk(**json.loads(line)) for line in path.read_text().splitlines()]
    return {walk.name: walk for walk in sorted(walks, key=lambda walk: -len(walk.steps))}


class Tracer:
    def __init__(self, source: str, out: str) -> None:
        self._source = source + os.sep
        self._out = out
        self._names: dict[str, str | None] = {}
        self._walks: dict[str, Walk] = {}
        self._root: list[str] = []
        """Steps of the present call of the event loop."""
        self._ending: tuple[FrameType, str] | None = None

    def profile(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            file = self._file(frame)
            if file is not None:
                self._called(frame, file)
        elif event == "return" and self._ending is not None and self._ending[0] is frame:
            self._end(self._ending[1])

    def _called(self, frame: FrameType, file: str) -> None:
        stack = self._stack(frame)
        if not stack:  # the event loop begins
            return
        if len(stack) == 1:
            self._root = [file]
        elif stack[-2] != file:
            self._root.append(file)
        name = frame.f_code.co_name
        for walk in self._walks.values():
            if len(stack) == 1 or stack[-2] != file:
                _step(walk.steps, file)
            if frame.f_code.co_qualname in HANDS_ON:
                for each in stack:
                    _step(walk.route, each)
        for kind, (function, argument, mark) in BEGINS.items():
            begins = name == function and kind not in self._walks
            if begins and mark in bytes(frame.f_locals.get(argument) or b""):
                self._walks[kind] = Walk(kind, list(self._root))
        if name == "flush" and file == "rpc/outbox.py" and self._walks:
            parts = b"".join(frame.f_locals["self"]._parts)
            self._ending = next(((frame, kind) for kind in self._walks if ENDS[kind] in parts), None)

    def _end(self, kind: str) -> None:
        self._ending = None
        walk = self._walks.pop(kind)
        with open(self._out, "a") as out:
            print(json.dumps({"name": kind, "steps": walk.steps, "route": walk.route}), file=out)

    def _stack(self, frame: FrameType) -> list[str]:
        """The files from the event loop down to this frame."""
        stack: list[str] = []
        above: FrameType | None = frame
        while above is not None and above.f_code.co_name != "run_loop":
            file = self._file(above)
            if file is not None:
                stack.append(file)
            above = above.f_back
        return stack[::-1]

    def _file(self, frame: FrameType) -> str | None:
        path = frame.f_code.co_filename
        if path not in self._names:
            inside = path.startswith(self._source)
            name = path[len(self._source) :]
            self._names[path] = name if inside and name not in NOT_FOLLOWED else None
        return self._names[path]


def _step(steps: list[str], file: str) -> None:
    if steps[-1:] != [file]:
        steps.append(file)


def main() -> None:
    import dragoman
    from dragoman.store import limits

    limits.SLOW_SECONDS = 60.0  # a busy machine is no slow disk, for which threads write
    out, sys.argv = sys.argv[1], sys.argv[4:]
    assert dragoman.__file__ is not None
    sys.setprofile(Tracer(os.path.dirname(dragoman.__file__), out).profile)
    runpy.run_module("dragoman", run_name="__main__")


if __name__ == "__main__":
    main()
