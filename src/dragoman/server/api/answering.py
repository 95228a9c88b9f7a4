"""Answers a permission question by REST; reports the other answer if that was first."""

from __future__ import annotations

import asyncio

from dragoman.gateway.client import ClientConnection
from dragoman.gateway.delivery import events
from dragoman.gateway.json_types import JsonObject, as_object, encode
from dragoman.gateway.ports.store import Store
from dragoman.gateway.session.session import Session
from dragoman.server.api.shapes import Answer
from dragoman.server.asgi import HttpError
from dragoman.wire.errors import Malformed

CONFIRM_TIMEOUT = 5.0
"""Seconds that the owner of a session has to record which answer it took."""
LOOK_INTERVAL = 0.05
LOOKED_AT = 500
"""Events at the end of a journal that are searched for the decision."""
LOOKED_AT_BYTES = 1024 * 1024


def check_open(session: Session | None, question: str, option: str) -> Session:
    """Return the session if its open question has this id and offers this option; raises `HttpError` otherwise."""
    asked = session.questions.first() if session is not None else None
    if session is None or asked is None or asked["id"] != question:
        decided = session.questions.decision(question) if session is not None else None
        if decided is not None and _chosen(decided) != option:
            raise _too_late(decided)
        raise HttpError(404, "This question is not open (any more).", code="unknown_question")
    options = asked["options"] if isinstance(asked["options"], list) else []
    offered = [str(as_object(offer).get("optionId")) for offer in options]
    if option not in offered:
        raise HttpError(400, f"optionId is one of {', '.join(offered)}.")
    return session


async def answer(session: Session, question: str, given: Answer, client: ClientConnection) -> None:
    """Submit the answer; raises `HttpError` if another answer was taken, `RpcError` if this one may not be."""
    option = given.option_id
    store = session.gateway.store
    before = await store.last_seq(session.id) if session.follows and store is not None else 0
    outcome: JsonObject = {"outcome": {"outcome": "selected", "optionId": option}}
    if given.remember is not None:
        outcome["_meta"] = {"dragoman": {"remember": given.remember}}
    if not session.questions.answer(question, encode(outcome), client):
        raise _too_late(session.questions.decision(question))
    if session.follows and store is not None:  # another process decides whose answer was first
        decided = await _wait_recorded(store, session.id, question, client.terms.identity.name)
        if decided is None:
            raise HttpError(504, await _unconfirmed(store, session.id, before))
        if decided.get("dragoman") == "decision" and _chosen(decided) != option:
            raise _too_late(decided)


def _chosen(decision: JsonObject) -> object:
    return as_object(decision.get("outcome")).get("optionId")


def _too_late(decision: JsonObject | None) -> HttpError:
    """The error that names the answer that was taken, and who gave it."""
    told = decision or {}
    outcome = as_object(told.get("outcome"))
    what = _chosen(told) or outcome.get("outcome") or "cancelled"
    who = told.get("client") or told.get("by") or "the end of the turn"
    return HttpError(
        409, f"Another answer came first: {what}, by {who}. Yours does not count.", code="already_answered"
    )


async def _wait_recorded(store: Store, session_id: str, question: str, name: str) -> JsonObject | None:
    """Wait for the decision about a question, or an approval by `name`, in the journal; None after `CONFIRM_TIMEOUT`."""
    try:
        async with asyncio.timeout(CONFIRM_TIMEOUT):
            while True:
                last = await store.last_seq(session_id)
                for row in reversed(await store.read_before(session_id, last + 1, LOOKED_AT)):
                    for event in row.events():
                        if (found := _decision(event, name)).get("id") == question:
                            return found
                await asyncio.sleep(LOOK_INTERVAL)  # another process's journal raises no event here
    except TimeoutError:
        return None


async def _unconfirmed(store: Store, session_id: str, before: int) -> str:
    """The error message when no decision was found after event `before`."""
    lost = [row for row in await store.read(session_id, before, LOOKED_AT_BYTES) if row.damaged]
    if lost:
        words = events.lost_notice(lost[0].first_seq, lost[-1].last_seq)
        return f"Whether the answer counted is not known: {words} Look at the session."
    return "The process that has this session did not confirm the answer; look at the session."


def _decision(event: bytes, name: str) -> JsonObject:
    if event[:1] != events.RECORD or not (b'"decision"' in event[:40] or b'"approval"' in event[:40]):
        return {}
    try:
        found = events.read_record(event)
    except Malformed:
        return {}
    others = found.get("dragoman") == "approval" and found.get("by") != name
    return {} if others else found
