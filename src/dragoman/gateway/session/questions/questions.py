"""An agent's open questions to the user: permissions and elicitations (G-062, G-065, G-091, G-096 to G-103).

A question goes to every client that may answer; the first answer wins, and the question is withdrawn from the others.
Where a rule wants approvals (`approval.py`), it goes to those who count, and is open until enough of them approved or
one rejected. The agent gets exactly one answer to each question.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from dragoman.gateway.json_types import JsonObject, as_object, decode_object, encode
from dragoman.gateway.rewriting import dialects, quirks
from dragoman.gateway.session import auditing
from dragoman.gateway.session.policy.gate import OwnQuestion, is_of_client
from dragoman.gateway.session.policy.remembering import memory_facts, question_facts
from dragoman.gateway.session.policy.verdict import once_only
from dragoman.gateway.session.questions import approving, deciding
from dragoman.gateway.session.questions.answerer import Answerer
from dragoman.gateway.session.questions.approval import Approval, is_allowing
from dragoman.gateway.session.questions.decisions import RecentDecisions, answer_facts
from dragoman.gateway.session.questions.question import (
    ANSWERED,
    CANCEL_ANSWER,
    ELICITATION,
    PERMISSION,
    RECORDED,
    Question,
    option_ids,
    take_own,
    take_unasked,
)
from dragoman.gateway.session.states import question_life
from dragoman.rpc.request import Reply, Request
from dragoman.wire import limits
from dragoman.wire.errors import RpcError, invalid_params, method_not_found

if TYPE_CHECKING:
    from dragoman.gateway.access.client import Client
    from dragoman.gateway.delivery.attachment import Attachment
    from dragoman.gateway.session.policy.offer import Offer
    from dragoman.gateway.session.session import Session

log = logging.getLogger(__name__)


class Questions:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._open: list[Question] = []
        self._expected: WeakValueDictionary[str, asyncio.Event] = WeakValueDictionary()
        """By the id of a question that has not come yet: set when it comes, kept by those that wait for it."""
        self._recent = RecentDecisions()

    def __len__(self) -> int:
        return len(self._open)

    def first(self) -> JsonObject | None:
        """The permission question that has waited longest, with the id by which it can be answered."""
        for question in self._open:
            if question.method == PERMISSION:
                return question.shown()
        return None

    def permission(self, request: Request) -> None:
        params = decode_object(request.params)
        unasked = take_unasked(params)
        changed = dialects.read_permission(params) or bool(unasked)
        tool = as_object(params.get("toolCall"))
        auditing.see_tool(self._session, tool)
        self._session.tools.mediate(tool.get("toolCallId"))
        changed = quirks.absolute_paths(tool, self._session.cwd) or changed
        changed = self._session.services.tool_content_for_client(tool) or changed
        policy, session = self._session.policy, self._session
        if unasked and policy.passes(request, tool, params.get("options"), unasked):
            return
        in_turn = self._session.turn is not None or self._asked_by_owner or is_of_client(request)
        if self._session.cancelling or not in_turn:
            auditing.cancel(session, request, CANCEL_ANSWER[PERMISSION], "turn")
            return
        if isinstance(tool.get("toolCallId"), str) and not self._session.tools.told(tool["toolCallId"]):
            announced = quirks.announcement(tool)
            auditing.see_tool(self._session, announced)
            self._session.publish(announced)
        verdict = None if self._asked_by_owner else deciding.verdict_for(policy, request, tool)
        if verdict is not None and deciding.answer_by_rule(
            policy, session.tools.allowed, request, tool, params.get("options"), verdict
        ):
            return
        changed = deciding.name_by_kind(params, verdict) or changed
        approval = deciding.approval_for(params, verdict)
        offer = policy.remembering.offer(verdict, tool, params.get("options"), session.options.modes())
        if offer is not None:
            params["options"] = offer.options
        elif approval is not None:
            params["options"] = once_only(params.get("options"))
        raw = encode(params) if changed or offer is not None or approval is not None else request.params
        auditing.asked(session, verdict, policy.rules, tool.get("toolCallId"))
        facts = question_facts(verdict, offer)
        agent = session.agent
        if agent is not None and agent.ours and agent.capabilities.takes_reasons:
            facts["takesReason"] = True
        self._ask(request, raw, option_ids(params.get("options")), approval, offer, facts)

    def elicitation(self, request: Request) -> None:
        mode = decode_object(request.params).get("mode")
        answering = self._answering()
        waits = not answering and self._waits  # for the next client, whose capabilities are checked then
        if not waits and not any(a.client.capabilities.elicitation(str(mode)) for a in answering):
            if not any("elicitation" in a.client.capabilities.raw for a in answering):
                raise method_not_found(ELICITATION)
            raise invalid_params(f"The client does not offer elicitation mode {mode!r}", "elicitation_mode")
        if self._session.cancelling:
            auditing.cancel(self._session, request, CANCEL_ANSWER[ELICITATION], "turn")
            return
        self._ask(request, request.params, frozenset())

    def cancel_all(self, why: str) -> None:
        """Answer everything with `cancelled`: after a cancel no other outcome is legal (G-091)."""
        self._session.services.checkpoints.give_up_turn()
        for question in list(self._open):
            self._give_up(question, why)

    def drop_all(self) -> None:
        """Close all questions without an answer to the agent, which is gone."""
        for question in list(self._open):
            question.withdraw()
            self._close(question, "agent_exited")
            self._record_answer(question, CANCEL_ANSWER[question.method], {"by": "agent_exited"})

    def answer(self, question_id: str, result: bytes, by: Client | Answerer) -> bool:
        """Answer a question by its id; False if it is not open, an error if this answer does not count."""
        question = self._find(question_id)
        if question is None:
            return False
        answerer = by if isinstance(by, Answerer) else Answerer.of(by)
        answer = question.read_answer(result)
        self._session.policy.remembering.check(question.offer, answer, answerer.identity)
        self._take(question, answer, answerer)
        return True

    def heard_approval(self, question_id: str, facts: JsonObject) -> None:
        """The owner says who has approved a question by now."""
        question = self._find(question_id)
        if question is not None and question.approval is not None:
            question.approval.update(facts)
            approving.withdraw_from_others(question)
            self._session.changed()

    def _find(self, question_id: str) -> Question | None:
        return next((question for question in self._open if question.id == question_id), None)

    def decision(self, question_id: str) -> JsonObject | None:
        """How a recent question was answered and by whom, as in the journal; None if not remembered."""
        return self._recent.get(question_id)

    async def arrives(self, question_id: str, patience: float) -> bool:
        """Wait for a question that is already in the owner's journal and reaches this process a moment later."""
        if not self._session.follows:
            return False
        if self._find(question_id) is not None:
            return True  # it came before this was run
        there = self._expected.setdefault(question_id, asyncio.Event())
        try:
            await asyncio.wait_for(there.wait(), patience)
        except TimeoutError:
            return False
        return True

    def client_gone(self, client: Client) -> None:
        """A client detached: its questions wait for the next client (G-103); without a journal they are cancelled."""
        for question in list(self._open):
            if client not in question.asked:
                continue
            question.withdraw_from(client)  # a client that only loads the session again is asked again
            if not question.asked and not self._can_wait(question):
                self._give_up(question, "disconnect")

    def ask_again(self, client: Client) -> None:
        """Send the open questions to a client that has just attached."""
        attachment = client.attachments.get(self._session.id)
        for question in self._open:
            if attachment is not None and approving.may_answer(question, client):
                self._offer(question, attachment)

    def _answering(self) -> list[Attachment]:
        """The attachments of clients that may answer; observers may not."""
        return [each for each in self._session.attachments if each.client.may_answer]

    @property
    def _waits(self) -> bool:
        return self._session.journal is not None

    def _can_wait(self, question: Question) -> bool:
        """Whether a question may stay open that no client was asked; one for approvals can be cancelled by any."""
        return self._waits or (question.approval is not None and bool(self._session.attachments))

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

    def _ask(
        self,
        request: Request,
        raw: bytes,
        options: frozenset[str],
        approval: Approval | None = None,
        offer: Offer | None = None,
        about: JsonObject | None = None,
    ) -> None:
        if len(self._open) >= limits.OPEN_QUESTIONS:
            auditing.cancel(self._session, request, CANCEL_ANSWER[request.method], "limit")
            return
        params, given = self._session.for_client(raw), None
        if self._asked_by_owner:
            given, about, params = take_own(params)
        if any(question.id == given for question in self._open):
            given = None  # with one id for two questions, one consent would answer both
        life = question_life(self._session.id, self._session.illegal)
        question = Question(life, request, params, options, given)
        question.approval, question.offer, question.facts = approval, offer, about or {}
        self._open.append(question)
        if (there := self._expected.get(question.id)) is not None:
            there.set()
        asked = decode_object(question.params)
        kind, shown = RECORDED[question.method]
        told, witness = "permission" if kind == "question" else "elicitation", self._session.gateway.witness
        question.observed = witness.question(self._session.id, told)
        facts = {**{name: asked.get(name) for name in shown}, **question.facts}
        self._session.record(kind, id=question.id, **facts, approval=approval.facts() if approval else None)
        if approval is not None and not self._asked_by_owner:
            self._session.tell(f"This waits for {approval.whom()}; cancelling the turn ends the wait.")
        self._session.changed()
        timeout = self._session.gateway.config.sessions.question_timeout
        if timeout:
            loop = asyncio.get_running_loop()
            question.timer = loop.call_later(timeout, self._time_over, question, timeout)
        question.request.on_cancel = lambda: self._cancelled(question)
        self._session.after_events(lambda: self._send(question))

    def _cancelled(self, question: Question) -> None:
        if question.open:  # else its answer waits for its record
            self._settle(question, Reply(result=CANCEL_ANSWER[question.method]), "agent")

    def _send(self, question: Question) -> None:
        if not question.open:
            return
        asked = [each for each in self._session.attachments if approving.may_answer(question, each.client)]
        for attachment in asked:
            self._offer(question, attachment)
        if not asked and not self._can_wait(question):
            self._give_up(question, "disconnect")

    def _offer(self, question: Question, attachment: Attachment) -> None:
        """Send a question in the order of events, also to a client that is behind."""

        def send() -> None:
            if (
                question.open
                and attachment.client not in question.asked
                and approving.may_answer(question, attachment.client)
            ):
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
        question.asked[client] = client.peer.request(
            question.method,
            question.params_for(client),
            lambda reply: self._answered(question, client, reply),
        )

    def _remember(self, question: Question, client: Client) -> None:
        shown = decode_object(question.params).get("elicitationId")
        if isinstance(shown, str) and self._session.agent is not None:
            self._session.agent.elicitations[shown] = client

    def _answered(self, question: Question, client: Client, reply: Reply) -> None:
        if not question.open or question.asked.pop(client, None) is None:
            return
        if client.peer.closed:
            if not question.asked and not self._can_wait(question):
                self._give_up(question, "disconnect")
            return
        if not reply.ok:
            if not question.asked and question.approval is None:  # others may still approve
                # Any error, such as -32800, is `cancelled` for a v1 agent (G-096).
                if self._asked_by_owner:
                    question.request.answer(reply)  # the owner decides what that means
                self._give_up(question, "client")
            return
        try:
            self._take(question, question.read_answer(reply.result), Answerer.of(client))
        except RpcError as error:
            log.info("an answer does not count: %s", error.message, extra={"session": self._session.id})

    # -- answers

    def _take(self, question: Question, result: bytes, answerer: Answerer) -> None:
        """Take an answer: it ends the question, or is one of the approvals; raises if it does not count."""
        approval = question.approval
        if approval is None:
            self._settle(question, Reply(result=result), "user", answerer)
            return
        approving.check(approval, answerer)
        if self._asked_by_owner:
            owner = self._session.binding.require().peer
            approving.pass_on(self._session.id, owner, question, result, answerer)
            return
        ends = approving.count(question, approval, result, answerer)
        if ends is not None:
            self._settle(question, Reply(result=ends), "user", answerer)
        else:
            approving.wait_for_more(self._session, question, approval)
            self._session.changed()

    def _settle(self, question: Question, reply: Reply, by: str, answerer: Answerer | None = None) -> None:
        """End a question; the agent gets the answer once it is recorded."""
        self._close(question, by)
        policy, notice = self._session.policy, self._session.notice
        who = answerer.identity if answerer is not None else None
        memory = policy.remembering.wished(question.offer, reply.result, str(question.call), who, notice)
        facts = answer_facts(question, reply.result, by, policy.names, answerer, memory_facts(memory))

        def tell() -> None:
            question.request.answer(question.for_agent(reply))
            self._record_answer(question, reply.result, policy.remembering.store(memory, facts, notice))
            question.withdraw()
            self._session.changed()

        def refuse(reason: str) -> None:
            self._session.notice(reason)
            question.request.answer(question.for_agent(Reply(result=question.denial())))
            self._record_answer(question, question.denial(), {"by": "audit"})
            question.withdraw()
            self._session.changed()

        told = {**facts, **auditing.about_answer(question.params, facts)}
        go_on = partial(self._session.services.checkpoints.after, tell)
        if auditing.answered(self._session, question.call, told):
            go_on()
        else:
            auditing.wait_to_answer(self._session, question.call, told, go_on, refuse)
        logged = {"session": self._session.id, "method": question.method, "by": by}
        log.info("question answered", extra=logged)

    def _close(self, question: Question, by: str) -> None:
        question.end(by)
        self._open.remove(question)

    def _record_answer(self, question: Question, result: bytes, facts: JsonObject) -> None:
        """Journal an answer, and remember it for those who answer too late."""
        kind, member = ANSWERED[question.method]
        answer = decode_object(result).get(member)
        self._allows(question, as_object(answer))
        facts = {"client": None, member: answer, **facts}
        self._session.record(kind, id=question.id, **facts)
        self._recent.add(question.id, facts)

    def _allows(self, question: Question, outcome: JsonObject) -> None:
        """Store what a person allowed, so that a rule does not ask about the same again when it is done."""
        if self._asked_by_owner or isinstance(question.request, OwnQuestion):
            return
        act = question.facts.get("act")  # as it was asked about: what the agent told since then is another
        if isinstance(act, dict) and is_allowing(outcome, decode_object(question.params).get("options")):
            approved = question.approval.requirements if question.approval is not None else ()
            self._session.tools.allowed.add(act, question.call, by_hook=question.by_hook, approved=approved)

    def _time_over(self, question: Question, timeout: float) -> None:
        """Deny a question after its timeout, with an option that the agent offered, if there is one (G-102)."""
        if not question.open:
            return
        self._session.notice(f"There was no answer within {timeout:g} s (sessions.question_timeout): denied.")
        self._settle(question, Reply(result=question.denial()), "timeout")
