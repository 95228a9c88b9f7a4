"""An agent's open questions to the user: permissions and elicitations (G-062, G-065, G-091, G-096 to G-103).

A question goes to every client that may answer; the first answer wins, and the question is withdrawn from the others.
The agent gets exactly one answer to each question.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from dragoman.gateway.json_types import JsonObject, as_object, decode_object, encode, own_meta
from dragoman.gateway.rewriting import dialects, quirks
from dragoman.gateway.session.policy.service_gate import OwnQuestion
from dragoman.gateway.session.policy.verdict import DEFAULT, choose_option
from dragoman.gateway.session.questions.question import (
    ANSWERED,
    CANCEL_ANSWER,
    ELICITATION,
    ENDED_BY,
    PERMISSION,
    RECORDED,
    Question,
    take_id,
    take_unasked,
)
from dragoman.gateway.session.states import question_life
from dragoman.rpc.request import Reply, Request
from dragoman.wire import limits
from dragoman.wire.errors import invalid_params, method_not_found

if TYPE_CHECKING:
    from dragoman.gateway.access.client import Client
    from dragoman.gateway.delivery.attachment import Attachment
    from dragoman.gateway.session.session import Session

log = logging.getLogger(__name__)

MAX_RULE_NAME = 100
"""Characters stored of the name of a client's own rule."""


class Questions:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._open: list[Question] = []
        self._expected: dict[str, asyncio.Event] = {}
        self._decisions: dict[str, JsonObject] = {}
        """How the latest questions were answered, by their ids."""
        self._decision_bytes: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._open)

    def first(self) -> JsonObject | None:
        """The permission question that has waited longest, with the id by which it can be answered."""
        for question in self._open:
            if question.method == PERMISSION:
                asked = decode_object(question.params)
                return {
                    "id": question.id,
                    "toolCall": asked.get("toolCall"),
                    "options": asked.get("options"),
                }
        return None

    def permission(self, request: Request) -> None:
        params = decode_object(request.params)
        unasked = take_unasked(params)
        changed = dialects.read_permission(params) or unasked
        tool = as_object(params.get("toolCall"))
        self._session.tools.see(tool)
        changed = quirks.absolute_paths(tool, self._session.cwd) or changed
        changed = self._session.services.tool_content_for_client(tool) or changed
        if unasked and self._passes(request, tool, params.get("options")):
            return
        if self._session.cancelling or (self._session.turn is None and not self._asked_by_owner):
            request.reply(CANCEL_ANSWER[PERMISSION])
            return
        if isinstance(tool.get("toolCallId"), str) and not self._session.tools.told(tool["toolCallId"]):
            announced = quirks.announcement(tool)
            self._session.tools.see(announced)
            self._session.publish(announced)
        if self._decided(request, tool, params.get("options")):
            return
        raw = encode(params) if changed else request.params
        offered = params.get("options")
        options = frozenset(
            str(as_object(option).get("optionId"))
            for option in (offered if isinstance(offered, list) else [])
        )
        self._ask(request, raw, options)

    def elicitation(self, request: Request) -> None:
        mode = decode_object(request.params).get("mode")
        answering = self._answering()
        waits = not answering and self._waits  # for the next client, whose capabilities are checked then
        if not waits and not any(a.client.capabilities.elicitation(str(mode)) for a in answering):
            if not any("elicitation" in a.client.capabilities.raw for a in answering):
                raise method_not_found(ELICITATION)
            raise invalid_params(f"The client does not offer elicitation mode {mode!r}", "elicitation_mode")
        if self._session.cancelling:
            request.reply(CANCEL_ANSWER[ELICITATION])
            return
        self._ask(request, request.params, frozenset())

    def cancel_all(self, why: str) -> None:
        """Answer everything with `cancelled`: after a cancel no other outcome is legal (G-091)."""
        for question in list(self._open):
            self._give_up(question, why)

    def drop_all(self) -> None:
        """Close all questions without an answer to the agent, which is gone."""
        for question in list(self._open):
            question.withdraw()
            self._close(question, "agent_exited")
            self._record_answer(question, CANCEL_ANSWER[question.method], "agent_exited", None)

    def answer(self, question_id: str, result: bytes, client: Client) -> bool:
        """Answer a question by its id; False if it is not open."""
        question = next((each for each in self._open if each.id == question_id), None)
        if question is None:
            return False
        self._settle(question, Reply(result=question.read_answer(result)), "user", client)
        return True

    def decision(self, question_id: str) -> JsonObject | None:
        """How a recent question was answered and by whom, as in the journal; None if not remembered."""
        return self._decisions.get(question_id)

    async def arrives(self, question_id: str, patience: float) -> bool:
        """Wait for a question that is already in the owner's journal and reaches this process a moment later."""
        if not self._session.follows:
            return False
        if any(question.id == question_id for question in self._open):
            return True  # it came before this was run
        there = self._expected.setdefault(question_id, asyncio.Event())
        try:
            await asyncio.wait_for(there.wait(), patience)
        except TimeoutError:
            return False
        finally:
            self._expected.pop(question_id, None)
        return True

    def client_gone(self, client: Client) -> None:
        """A client detached: its questions wait for the next client (G-103); without a journal they are cancelled."""
        for question in list(self._open):
            if client not in question.asked:
                continue
            question.withdraw_from(client)  # a client that only loads the session again is asked again
            if not question.asked and not self._waits:
                self._give_up(question, "disconnect")

    def ask_again(self, client: Client) -> None:
        """Send the open questions to a client that has just attached."""
        attachment = client.attachments.get(self._session.id)
        for question in self._open:
            if attachment is not None and client.may_answer:
                self._offer(question, attachment)

    def _answering(self) -> list[Attachment]:
        """The attachments of clients that may answer; observers may not."""
        return [each for each in self._session.attachments if each.client.may_answer]

    @property
    def _waits(self) -> bool:
        return self._session.journal is not None

    @property
    def _asked_by_owner(self) -> bool:
        """Whether another process owns the session; its turns begin and end without notice here."""
        return self._session.follows

    def _give_up(self, question: Question, why: str) -> None:
        """Cancel a question that no client here will answer; in a followed session only withdraw it here."""
        if not self._asked_by_owner:
            self._settle(question, Reply(result=CANCEL_ANSWER[question.method]), why)
            return
        question.request.abandon()
        question.withdraw()
        self._close(question, why)

    def _passes(self, request: Request, tool: JsonObject, options: object) -> bool:
        """Allow a call that its agent would not have asked about, if no rule is about it."""
        if self._session.cancelling or not self._session.policy.has_no_rule(tool):
            return False
        outcome = {"outcome": "selected", "optionId": choose_option("allow", options)}
        request.reply(encode({"outcome": outcome, "_meta": {"dragoman": {"by": DEFAULT}}}))
        return True

    def _decided(self, request: Request, tool: JsonObject, options: object) -> bool:
        """Answer by policy with an offered option; False if the question is left to the user (G-100)."""
        if self._asked_by_owner:  # its rules left the question to a user, and it knows more about the call
            return False
        policy = self._session.policy
        verdict = request.verdict if isinstance(request, OwnQuestion) else policy.verdict(tool)
        if verdict.decision == "ask":
            return False
        option = choose_option(verdict.decision, options)
        if option is None and verdict.decision == "allow":
            return False
        outcome = {"outcome": "cancelled"} if option is None else {"outcome": "selected", "optionId": option}
        policy.record(verdict, tool, outcome)
        if verdict.decision == "allow":
            self._session.tools.allowed.add(verdict.act)
        told: JsonObject = {"outcome": outcome}
        if verdict.reason is not None:
            told["_meta"] = {"dragoman": {"reason": verdict.reason}}
        request.reply(encode(told))
        return True

    def _ask(self, request: Request, raw: bytes, options: frozenset[str]) -> None:
        params, given = self._session.for_client(raw), None
        if self._asked_by_owner:
            given, params = take_id(params)
        if any(question.id == given for question in self._open):
            given = None  # with one id for two questions, one consent would answer both
        life = question_life(self._session.id, self._session.illegal)
        question = Question(life, request, params, options, given)
        self._open.append(question)
        if question.id in self._expected:
            self._expected[question.id].set()
        asked = decode_object(question.params)
        kind, shown = RECORDED[question.method]
        told = "permission" if question.method == PERMISSION else "elicitation"
        question.observed = self._session.gateway.witness.question(self._session.id, told)
        self._session.record(kind, id=question.id, **{name: asked.get(name) for name in shown})
        self._session.changed()
        timeout = self._session.gateway.config.sessions.question_timeout
        if timeout:
            loop = asyncio.get_running_loop()
            question.timer = loop.call_later(timeout, self._time_over, question, timeout)
        question.request.on_cancel = lambda: self._settle(
            question, Reply(result=CANCEL_ANSWER[question.method]), "agent"
        )
        self._session.after_events(lambda: self._send(question))

    def _send(self, question: Question) -> None:
        if not question.open:
            return
        for attachment in self._answering():
            self._offer(question, attachment)
        if not self._answering() and not self._waits:
            self._give_up(question, "disconnect")

    def _offer(self, question: Question, attachment: Attachment) -> None:
        """Send a question in the order of events, also to a client that is behind."""

        def send() -> None:
            if question.open and attachment.client not in question.asked:
                self._send_to(question, attachment)

        attachment.after(self._session.feed.delivered, send)

    def _send_to(self, question: Question, attachment: Attachment) -> None:
        client = attachment.client
        if question.method == ELICITATION:
            mode = str(decode_object(question.params).get("mode"))
            if not client.capabilities.elicitation(mode):
                return
            self._remember(question, client)
        if attachment.reads_journal:
            question.asked[client] = None
            return
        params = question.named_params if client.capabilities.question_ids else question.params
        question.asked[client] = client.peer.request(
            question.method, params, lambda reply: self._answered(question, client, reply)
        )

    def _remember(self, question: Question, client: Client) -> None:
        shown = decode_object(question.params).get("elicitationId")
        if isinstance(shown, str) and self._session.agent is not None:
            self._session.agent.elicitations[shown] = client

    def _answered(self, question: Question, client: Client, reply: Reply) -> None:
        if not question.open or question.asked.pop(client, None) is None:
            return
        if client.peer.closed:
            if not question.asked and not self._waits:
                self._give_up(question, "disconnect")
            return
        if not reply.ok:
            if not question.asked:
                # Any error, such as -32800, is `cancelled` for a v1 agent (G-096).
                if self._asked_by_owner:
                    question.request.answer(reply)  # the owner decides what that means
                self._give_up(question, "client")
            return
        self._settle(question, Reply(result=question.read_answer(reply.result)), "user", client)

    def _settle(self, question: Question, reply: Reply, by: str, client: Client | None = None) -> None:
        self._close(question, by)
        question.request.answer(reply)
        self._record_answer(question, reply.result, by, client)
        question.withdraw()
        self._session.changed()
        log.info(
            "question answered", extra={"session": self._session.id, "method": question.method, "by": by}
        )

    def _close(self, question: Question, by: str) -> None:
        question.end(by)
        self._open.remove(question)

    def _record_answer(self, question: Question, result: bytes, by: str, client: Client | None) -> None:
        """Journal who decided what; form input may be a secret and is not stored."""
        kind, member = ANSWERED[question.method]
        info = as_object(client.info) if client is not None else {}
        read = decode_object(result)
        answer = read.get(member)
        self._allows(question, as_object(answer))
        rule = own_meta(read).get("rule")
        if by == "user" and isinstance(rule, str) and not self._is_ours(rule):
            by = rule[:MAX_RULE_NAME]  # the client answered by a rule of its own
        facts = {"by": by, "client": info.get("title") or info.get("name"), member: answer}
        self._session.record(kind, id=question.id, **facts)
        self._remember_decision(question.id, facts)

    def _allows(self, question: Question, outcome: JsonObject) -> None:
        """Store what a person allowed, so that a rule does not ask about the same again when it is done."""
        chosen = outcome.get("optionId") if outcome.get("outcome") == "selected" else None
        if chosen is None or self._asked_by_owner or isinstance(question.request, OwnQuestion):
            return
        asked = decode_object(question.params)
        kinds = [
            as_object(each).get("kind")
            for each in asked["options"]
            if as_object(each).get("optionId") == chosen
        ]
        if kinds in (["allow_once"], ["allow_always"]):
            act = self._session.policy.verdict(as_object(asked.get("toolCall"))).act
            self._session.tools.allowed.add(act)

    def _remember_decision(self, question_id: str, facts: JsonObject) -> None:
        """Remember a decision; of a very large one only `by`."""
        size = len(encode(facts))
        if size > limits.REMEMBERED_DECISION_BYTES:
            facts = {"by": facts["by"]}
            size = len(encode(facts))
        self._decisions[question_id] = facts
        self._decision_bytes[question_id] = size
        while (
            len(self._decisions) > limits.REMEMBERED_DECISIONS
            or sum(self._decision_bytes.values()) > limits.REMEMBERED_DECISION_BYTES
        ):
            oldest = next(iter(self._decisions))
            del self._decisions[oldest], self._decision_bytes[oldest]

    def _is_ours(self, rule: str) -> bool:
        """Whether the name is reserved: a client must not be able to record a decision as the gateway's own."""
        return rule in ENDED_BY or rule in self._session.policy.names()

    def _time_over(self, question: Question, timeout: float) -> None:
        """Deny a question after its timeout, with an option that the agent offered, if there is one (G-102)."""
        if not question.open:
            return
        answer = CANCEL_ANSWER[question.method]
        if question.method == PERMISSION:
            option = choose_option("deny", decode_object(question.params).get("options"))
            if option is not None:
                answer = encode({"outcome": {"outcome": "selected", "optionId": option}})
        self._session.notice(f"There was no answer within {timeout:g} s (sessions.question_timeout): denied.")
        self._settle(question, Reply(result=answer), "timeout")
