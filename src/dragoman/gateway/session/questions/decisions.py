"""How the latest questions of a session were answered, for clients that answer too late."""

from __future__ import annotations

from dragoman.gateway.json_types import JsonObject, encode
from dragoman.wire import limits


class RecentDecisions:
    """Bounded in number and in bytes; the oldest are forgotten first."""

    def __init__(self) -> None:
        self._decisions: dict[str, JsonObject] = {}
        self._bytes: dict[str, int] = {}

    def get(self, question_id: str) -> JsonObject | None:
        return self._decisions.get(question_id)

    def add(self, question_id: str, facts: JsonObject) -> None:
        """Remember a decision; of a very large one only `by`."""
        size = len(encode(facts))
        if size > limits.REMEMBERED_DECISION_BYTES:
            facts = {"by": facts["by"]}
            size = len(encode(facts))
        self._decisions[question_id] = facts
        self._bytes[question_id] = size
        while (
            len(self._decisions) > limits.REMEMBERED_DECISIONS
            or sum(self._bytes.values()) > limits.REMEMBERED_DECISION_BYTES
        ):
            oldest = next(iter(self._decisions))
            del self._decisions[oldest], self._bytes[oldest]
