"""A question that several people have to approve, between two answers: who is asked, and who hears of an approval."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from msgspec import Raw

from dragoman.gateway.json_types import as_object, decode_object, encode
from dragoman.gateway.session.policy.verdict import choose_option
from dragoman.gateway.session.questions.answerer import ANSWER, HEARD, Answerer
from dragoman.gateway.session.questions.approval import Approval, is_allowing
from dragoman.gateway.session.questions.question import APPROVED, Question
from dragoman.rpc.request import Reply
from dragoman.wire.errors import forbidden

if TYPE_CHECKING:
    from dragoman.gateway.access.client import Client
    from dragoman.gateway.session.stream import Stream
    from dragoman.rpc.peer import Peer

log = logging.getLogger(__name__)


def may_answer(question: Question, client: Client) -> bool:
    """Whether a client is asked: it may answer, and its answer counts, or it is a process with clients of its own."""
    if not client.may_answer or question.approval is None or client.terms.local_process:
        return client.may_answer
    return question.approval.refusal(client.terms.identity) is None


def withdraw_from_others(question: Question) -> None:
    """Withdraw a question from clients whose answer does not count any more."""
    for client in [each for each in question.asked if not may_answer(question, each)]:
        question.withdraw_from(client)


def check(approval: Approval, answerer: Answerer) -> None:
    """Raise if an answer does not count."""
    why = approval.refusal(answerer.identity)
    if why is not None:
        raise forbidden(f"This answer does not count: {why}", reason="not_an_approver")


def count(question: Question, approval: Approval, result: bytes, answerer: Answerer) -> bytes | None:
    """Count an answer; returns the one for the agent if the question ends with it: a rejection, the last approval."""
    options = decode_object(question.params).get("options")
    if not is_allowing(as_object(decode_object(result).get("outcome")), options):
        return result
    if not approval.approve(answerer.identity, answerer.title):
        return None
    once = choose_option("allow", options)
    return result if once is None else encode({"outcome": {"outcome": "selected", "optionId": once}})


def wait_for_more(session: Stream, question: Question, approval: Approval) -> None:
    """Journal the latest approval; the question stays open at those who may still approve."""
    question.approved()
    last = approval.said[-1]
    session.record(APPROVED, id=question.id, decision="allow", **last.facts())
    log.info("question approved", extra={"session": session.id, "by": last.identity.name})
    withdraw_from_others(question)
    told = encode({"sessionId": session.id, "requestId": question.id, "approval": approval.facts()})
    for client in question.asked:
        if client.terms.local_process:
            client.peer.notify(HEARD, told)
    session.tell(f"Approved by {last.identity.name}; it still waits for {approval.whom()}.")


def pass_on(session_id: str, owner: Peer, question: Question, result: bytes, answerer: Answerer) -> None:
    """Send an answer to the session's owner, which decides; the question stays open here until it is withdrawn."""

    def done(reply: Reply) -> None:
        if not reply.ok:
            about = {"session": session_id, "by": answerer.identity.name}
            log.info("the owner refused an answer: %s", reply.as_error().message, extra=about)

    params = {"sessionId": session_id, "requestId": question.id, "result": Raw(result)}
    owner.request(ANSWER, encode({**params, "answerer": answerer.facts()}), done)
    for client in [each for each in question.asked if each.terms.identity.name == answerer.identity.name]:
        question.withdraw_from(client)
