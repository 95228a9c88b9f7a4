"""What was allowed in a turn, for the files and commands that follow from it without another question."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from dragoman.gateway.json_types import JsonObject
from dragoman.wire import limits


@dataclass(frozen=True, slots=True)
class Allowed:
    act: JsonObject
    call: object = None
    """The id of its tool call."""
    by_hook: bool = False
    """A hook told of it; otherwise the agent asked."""


class AllowedCalls:
    """Tool calls that were allowed in this turn, each for one call of a service."""

    def __init__(self) -> None:
        self._calls: deque[Allowed] = deque(maxlen=limits.ALLOWED_CALLS)

    def add(self, act: JsonObject, call: object = None, *, by_hook: bool = False) -> None:
        self._calls.append(Allowed(act, call, by_hook))

    def clear(self) -> None:
        self._calls.clear()

    def take(self, act: JsonObject) -> bool:
        """Whether one of them is this act; it is used up."""
        for allowed in self._calls:
            if _is_within(act, allowed.act):
                self._calls.remove(allowed)
                return True
        return False

    def covers(self, act: JsonObject, call: object, *, by_hook: bool) -> bool:
        """Whether this very call was allowed when its hook told of it (`by_hook`), or when the agent asked.

        An agent with hooks tells of a call twice; it is decided about once.
        """
        return any(
            isinstance(call, str)
            and (allowed.call, allowed.by_hook) == (call, by_hook)
            and (_is_within(act, allowed.act) or _same(act, allowed.act))
            for allowed in self._calls
        )


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


def _same(act: JsonObject, allowed: JsonObject) -> bool:
    """Whether two acts have the same facts, however the tool is called in each."""
    return all(act.get(name) == allowed.get(name) for name in ("commands", "paths", "hosts", "mcp", "opaque"))
