"""How questions were answered: the facts of an answer, and the latest ones for clients that answer too late."""

from __future__ import annotations

from collections.abc import Callable, Collection

from dragoman.gateway.json_types import JsonObject, decode_object, encode, own_meta
from dragoman.gateway.session.questions.answerer import Answerer
from dragoman.gateway.session.questions.question import ANSWERED, ENDED_BY, Question
from dragoman.wire import limits

MAX_RULE_NAME = 100
"""Characters stored of the name of a client's own rule."""


def answer_facts(
    question: Question,
    result: bytes,
    by: str,
    rules: Callable[[], Collection[str]],
    answerer: Answerer | None = None,
    remembered: JsonObject | None = None,
) -> JsonObject:
    """Who decided what; form input may be a secret and is not among it.

    A client may name a rule of its own, by which it answered, but none of ours.
    """
    member = ANSWERED[question.method][1]
    read = decode_object(result)
    rule = own_meta(read).get("rule")
    if by == "user" and isinstance(rule, str):
        ours = rule in ENDED_BY or rule.startswith("remembered ") or rule in rules()
        by = by if ours else rule[:MAX_RULE_NAME]
    facts: JsonObject = {"by": by, "client": None, member: read.get(member)}
    if answerer is not None:
        facts |= {"client": answerer.title, "identity": answerer.identity.name}
    return facts | {**question.approvals, **(remembered or {})}


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
