"""One question of an agent, what is journaled of it, and how its answer is read (G-096, G-101, D-82)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from dragoman.gateway.delivery import replay
from dragoman.gateway.delivery.replay import NOTHING
from dragoman.gateway.ids import new_question_id
from dragoman.gateway.json_types import JsonObject, as_object, decode_object, encode, own_meta, read_object
from dragoman.gateway.ports.store import Store
from dragoman.gateway.ports.witness import Observed
from dragoman.gateway.session.policy.hook_question import HookQuestion
from dragoman.gateway.session.policy.verdict import choose_option
from dragoman.gateway.session.questions.approval import Approval
from dragoman.gateway.session.states import Life, QuestionEvent, QuestionState
from dragoman.rpc.request import Reply, Request
from dragoman.wire import message, timestamps
from dragoman.wire.errors import Malformed
from dragoman.wire.message import lenient_members

if TYPE_CHECKING:
    from dragoman.gateway.access.client import Client
    from dragoman.gateway.session.policy.offer import Offer

PERMISSION = "session/request_permission"
ELICITATION = "elicitation/create"
CANCEL_ANSWER = {  # the agent's answer when no client will answer any more; `timeout` is no outcome (G-102)
    PERMISSION: b'{"outcome":{"outcome":"cancelled"}}',
    ELICITATION: b'{"action":"cancel"}',
}

FACTS = "policy"
"""Member of `_meta.dragoman` with the facts of a question."""

# The kind of a question's record in the journal, and the params stored in it.
RECORDED = {
    PERMISSION: ("question", ("toolCall", "options")),
    ELICITATION: ("elicitation", ("mode", "message", "requestedSchema", "url")),
}
ENDED_BY = frozenset(
    {
        "user",
        "agent",
        "agent_exited",
        "audit",
        "cancel",
        "client",
        "close",
        "disconnect",
        "restart",
        "timeout",
        "turn_end",
    }
)
"""Values of `by` in the record of an answer, besides names of rules."""
APPROVED = "approval"
"""The kind of the record of an approval that leaves its question open."""
ANSWERED = {PERMISSION: ("decision", "outcome"), ELICITATION: ("elicitation_decision", "action")}
EVENTS = {"user": QuestionEvent.ANSWERED, "timeout": QuestionEvent.EXPIRED}
"""How a question ends, by `by`; anything else withdraws it."""


class Question:
    """One question; `params` are those that clients get."""

    def __init__(
        self,
        life: Life[QuestionState, QuestionEvent],
        request: Request,
        params: bytes,
        options: frozenset[str],
        id: str | None,
    ) -> None:
        self.params = params
        self.id = id or new_question_id()
        """The question's id in the journal; only a question that the owner passed on has one already."""
        self.request = request
        self.method = request.method
        self.options = options
        self.asked: dict[Client, int | None] = {}
        """The clients that can answer, each with the call of its request; None: it has the journal's record."""
        self.approval: Approval | None = None
        """Who has to approve it; None: the first answer decides."""
        self.since = timestamps.now()
        self.offer: Offer | None = None
        """Our answers, which clients are offered in place of the agent's options."""
        self.facts: JsonObject = {}
        """Why it is asked, the act, and what would be remembered: for the journal, and clients that show it."""
        self.timer: asyncio.TimerHandle | None = None
        self.observed: Observed | None = None
        self._life = life

    @property
    def open(self) -> bool:
        return self._life.state is QuestionState.OPEN

    def end(self, by: str) -> None:
        """Answered, withdrawn or expired, which happens once."""
        self._life.send(EVENTS.get(by, QuestionEvent.WITHDRAWN))
        if self.timer is not None:
            self.timer.cancel()
        if self.observed is not None:
            self.observed.end(by)

    def approved(self) -> None:
        """Someone approved, and more approvals are needed."""
        self._life.send(QuestionEvent.APPROVED)

    def withdraw(self) -> None:
        """Cancel the question at every client; late answers are dropped."""
        for client in list(self.asked):
            self.withdraw_from(client)

    def withdraw_from(self, client: Client) -> None:
        call = self.asked.pop(client)
        if call is not None:
            client.peer.cancel(call)
            client.peer.forget(call)

    def read_answer(self, result: bytes) -> bytes:
        if self.method == PERMISSION:
            return read_outcome(result, self.options)
        return result if "action" in read_object(result) else CANCEL_ANSWER[ELICITATION]

    def for_agent(self, reply: Reply) -> Reply:
        """The answer in the agent's own terms."""
        if self.offer is None or not reply.ok:
            return reply
        return Reply(result=self.offer.for_agent(reply.result))

    @property
    def by_hook(self) -> bool:
        """Whether a hook told of the call; otherwise the agent asks."""
        return isinstance(self.request, HookQuestion)

    @property
    def call(self) -> object:
        """The id of the tool call that it is about."""
        return as_object(decode_object(self.params).get("toolCall")).get("toolCallId")

    @property
    def approvals(self) -> JsonObject:
        """Who approved, for the record of the answer."""
        return {} if self.approval is None else {"approvals": [one.facts() for one in self.approval.said]}

    def denial(self) -> bytes:
        """The answer that denies it, with an option that the agent offered, if there is one (G-102)."""
        if self.method == PERMISSION:
            option = choose_option("deny", decode_object(self.params).get("options"))
            if option is not None:
                return encode({"outcome": {"outcome": "selected", "optionId": option}})
        return CANCEL_ANSWER[self.method]

    def params_for(self, client: Client) -> bytes:
        """The params for one client: with who has to approve; for a process that follows the session, with the id.

        Such processes, and clients that say so, are told the facts.
        """
        facts: JsonObject = {}
        if client.capabilities.question_ids:  # its clients answer by id
            facts["requestId"] = self.id
        if self.facts and (client.capabilities.question_ids or client.capabilities.remembering):
            facts[FACTS] = self.facts
        if self.approval is not None:
            facts["approval"] = self.approval.facts()
        if not facts:
            return self.params
        params = message.members(self.params)
        meta = lenient_members(params.get("_meta", NOTHING))
        own = Raw(encode({**lenient_members(meta.get("dragoman", NOTHING)), **facts}))
        return encode({**params, "_meta": Raw(encode({**meta, "dragoman": own}))})

    def shown(self) -> JsonObject:
        """What is waited for, for people."""
        asked = decode_object(self.params)
        facts = {
            "id": self.id,
            "toolCall": asked.get("toolCall"),
            "options": asked.get("options"),
            **self.facts,
        }
        if self.approval is None:
            return {**facts, "since": self.since}
        return {**facts, "since": self.since, "approval": self.approval.facts()}


async def unanswered(store: Store, session_id: str) -> AsyncIterator[JsonObject]:
    """For each question in a journal without an answer, the record of a cancelled one."""
    asked = {kind: (*ANSWERED[method], CANCEL_ANSWER[method]) for method, (kind, _) in RECORDED.items()}
    missing: dict[object, JsonObject] = {}
    async for record in replay.records(store, session_id):
        kind = str(record.get("dragoman"))
        if kind in asked:
            answered, member, answer = asked[kind]
            missing[record.get("id")] = {
                "kind": answered,
                "id": record.get("id"),
                member: decode_object(answer)[member],
            }
        elif kind != APPROVED:
            missing.pop(record.get("id"), None)
    for each in missing.values():
        yield each


def take_unasked(params: JsonObject) -> object:
    """The mark of a call that an agent of ours would not have asked about, removed from the params; None without one.

    `True`: a person is asked if a rule says so. `"rules"`: only rules are asked, and the agent asks people itself.
    `"first"`: so too, and where no rule is about the call, the agent asks.
    """
    own = own_meta(params)
    if "unasked" not in own:
        return None
    meta = {**params["_meta"], "dragoman": {key: value for key, value in own.items() if key != "unasked"}}
    params["_meta"] = {key: value for key, value in meta.items() if value}
    if not params["_meta"]:
        del params["_meta"]
    return own["unasked"]


def option_ids(options: object) -> frozenset[str]:
    """The ids of the offered options."""
    offered = options if isinstance(options, list) else []
    return frozenset(str(as_object(option).get("optionId")) for option in offered)


def take_own(params: bytes) -> tuple[str | None, JsonObject, bytes]:
    """The id and the facts that the owner gave the question; the params without them and without its approval."""
    members = message.members(params)
    meta = lenient_members(members.pop("_meta", NOTHING))
    own = lenient_members(meta.pop("dragoman", NOTHING))
    own.pop("approval", None)
    key = message.id_key(own.pop("requestId", NOTHING))
    facts = as_object(msgspec.json.decode(own.pop(FACTS, NOTHING) or b"null"))
    given = key[1] if key is not None else None
    if not isinstance(given, str):
        return None, {}, params
    rest = {**meta, "dragoman": own} if own else meta
    return given, facts, encode({**members, "_meta": rest} if rest else members)


def read_outcome(raw: bytes, options: frozenset[str]) -> bytes:
    """A v1 permission result; an unknown outcome or option never counts as approval (G-101, D-82)."""
    try:
        result = decode_object(raw)
    except Malformed:
        return CANCEL_ANSWER[PERMISSION]
    outcome = result.get("outcome")
    if isinstance(outcome, dict):
        if outcome.get("outcome") == "cancelled":
            return raw
        chosen = outcome.get("optionId")
        if outcome.get("outcome") == "selected" and isinstance(chosen, str) and chosen in options:
            return raw
        return CANCEL_ANSWER[PERMISSION]
    option = result.get("optionId") if outcome == "selected" else outcome
    if isinstance(option, str) and option in options:
        return encode({"outcome": {"outcome": "selected", "optionId": option}})
    return CANCEL_ANSWER[PERMISSION]
