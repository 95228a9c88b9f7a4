"""What was allowed in a turn, for the files and commands that follow from it without another question."""

from __future__ import annotations

from collections import deque

from dragoman.gateway.json_types import JsonObject
from dragoman.wire import limits


class AllowedCalls:
    """Tool calls that were allowed in this turn, each for one call of a service."""

    def __init__(self) -> None:
        self._acts: deque[JsonObject] = deque(maxlen=limits.ALLOWED_CALLS)

    def add(self, act: JsonObject) -> None:
        self._acts.append(act)

    def clear(self) -> None:
        self._acts.clear()

    def take(self, act: JsonObject) -> bool:
        """Whether one of them is this act; it is used up."""
        for allowed in self._acts:
            if _is_within(act, allowed):
                self._acts.remove(allowed)
                return True
        return False


def _is_within(act: JsonObject, allowed: JsonObject) -> bool:
    """Whether the allowed act did all that this one does: the same commands, and writes to the same paths."""
    lines = [command["words"] for command in allowed["commands"]]
    if any(command["words"] not in lines for command in act["commands"]) or act["opaque"] is not None:
        return False
    paths = [path["path"] for path in allowed["paths"] if path["access"] == "write"]
    reads = [path["path"] for path in allowed["paths"]]
    return all(
        path["path"] in (paths if path["access"] == "write" else reads) for path in act["paths"]
    ) and bool(act["commands"] or act["paths"])
