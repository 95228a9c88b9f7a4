"""Tracks the open tool calls of a session, so that they can be closed when the agent dies (G-110)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

from dragoman.gateway.bounded_dict import BoundedDict
from dragoman.gateway.json_types import JsonObject
from dragoman.gateway.rewriting.dialects import is_one_of
from dragoman.gateway.session.policy.allowed_calls import AllowedCalls
from dragoman.gateway.session.seen_calls import SeenCalls
from dragoman.wire import limits

Change = Literal["begun", "ended"]
FINAL = frozenset({"completed", "failed"})


class OpenTools:
    def __init__(self) -> None:
        self._open: BoundedDict[str] = BoundedDict(limits.OPEN_TOOL_CALLS)
        """Kind of each open call by id; empty if unknown."""
        self._since: BoundedDict[float] = BoundedDict(limits.OPEN_TOOL_CALLS)
        self._told: BoundedDict[None] = BoundedDict(limits.OPEN_TOOL_CALLS)
        self._mediated: BoundedDict[None] = BoundedDict(limits.OPEN_TOOL_CALLS)
        """Calls that reached the rules before they ran."""
        self._decided: BoundedDict[None] = BoundedDict(limits.OPEN_TOOL_CALLS)
        """Calls with a recorded decision."""
        self.names: BoundedDict[JsonObject] = BoundedDict(limits.OPEN_TOOL_CALLS)
        """What the audit calls the calls of this turn: the end of one need not say what it was."""
        self._expected: BoundedDict[Callable[[], None]] = BoundedDict(limits.OPEN_TOOL_CALLS)
        """By call that a hook told of: records that the agent told nothing of it."""
        self._slipped = False
        self.seen = SeenCalls()
        self.allowed = AllowedCalls()

    def told(self, tool_id: object) -> bool:
        """Whether an update about this call was sent to clients in the current turn."""
        return isinstance(tool_id, str) and tool_id in self._told

    def mediate(self, tool_id: object) -> None:
        """The agent asked about this call, or told of it, before it ran."""
        if isinstance(tool_id, str):
            self._mediated[tool_id] = None

    def end_mediation(self, tool_id: object) -> None:
        """The end of a call was recorded: another one with its id has to reach the rules itself."""
        if isinstance(tool_id, str):
            self._mediated.pop(tool_id, None)
            self._decided.pop(tool_id, None)

    def decide_again(self, tool_id: object) -> bool:
        """Whether a decision about the call was recorded before: `claude` tells its hook of it, then asks."""
        if not isinstance(tool_id, str):
            return False
        again = tool_id in self._decided
        self._decided[tool_id] = None
        return again

    def has_ended(self, tool_id: object) -> bool:
        """Whether the call ended in this turn, and none of its id was begun since."""
        return isinstance(tool_id, str) and tool_id in self._told and tool_id not in self._open

    def expect(self, tool_id: object, untold: Callable[[], None]) -> None:
        """A hook told of a call; `untold` is called at the end of the turn if the agent has not told of it by then."""
        if isinstance(tool_id, str) and not self.told(tool_id):
            self._expected[tool_id] = untold

    def slipped_by(self, tool: JsonObject) -> bool:
        """Whether this update completes a call that never reached the rules."""
        return tool.get("status") == "completed" and not self.is_mediated(tool.get("toolCallId"))

    def is_mediated(self, tool_id: object) -> bool:
        """Whether a call reached the rules; True for one without a usable id, about which nothing is known."""
        return not isinstance(tool_id, str) or tool_id in self._mediated

    def first_slip(self) -> bool:
        """Whether this is the first call of the turn that never reached the rules and is told of."""
        first, self._slipped = not self._slipped, True
        return first

    def see(self, tool: JsonObject) -> tuple[Change, ...]:
        """Track a `tool_call`, a `tool_call_update` or the tool call of a permission question; tells what is new."""
        tool_id = tool.get("toolCallId")
        if not isinstance(tool_id, str):
            return ()
        ended_before = self.has_ended(tool_id)
        if "sessionUpdate" in tool:
            self._told[tool_id] = None
            self._expected.pop(tool_id, None)
        if is_one_of(tool.get("status"), FINAL):
            known = self._open.pop(tool_id, None) is not None
            self._since.pop(tool_id, None)
            self.seen.forget(tool_id)
            return () if ended_before else ("ended",) if known else ("begun", "ended")
        if "sessionUpdate" in tool:
            self.seen.see(tool_id, tool)
        new: tuple[Change, ...] = ()
        if tool_id not in self._open and (
            tool.get("sessionUpdate") == "tool_call" or tool.get("status") is not None
        ):
            self._open[tool_id] = ""
            self._since[tool_id] = time.monotonic()
            new = ("begun",)
        if tool_id in self._open and isinstance(tool.get("kind"), str):
            self._open[tool_id] = tool["kind"]
        return new

    def filled(self, tool: JsonObject) -> JsonObject:
        """Add what is known: a permission question may leave out what its tool call had (optional in ACP v1)."""
        known = self._open.get(str(tool.get("toolCallId")))
        told = self.seen.filled(tool)
        return {**told, "kind": known} if known and told.get("kind") is None else told

    def command_since(self) -> float | None:
        """When the oldest open command was announced; None if none is open."""
        return min(
            (self._since[each] for each, kind in self._open.items() if kind == "execute"), default=None
        )

    def __len__(self) -> int:
        return len(self._open)

    def fail_all(self, tell: Callable[[JsonObject], None] = lambda closing: None) -> list[JsonObject]:
        """Forget all open calls; returns the updates that close them as failed, after `tell` was called with each."""
        closing: list[JsonObject] = [
            {"sessionUpdate": "tool_call_update", "toolCallId": tool_id, "status": "failed"}
            for tool_id in self._open
        ]
        for update in closing:
            tell(update)
        for untold in list(self._expected.values()):
            untold()
        self._expected.clear()
        self._open.clear()
        self._since.clear()
        self._told.clear()
        self._mediated.clear()
        self._decided.clear()
        self.names.clear()
        self._slipped = False
        self.seen.clear()
        self.allowed.clear()
        return closing
