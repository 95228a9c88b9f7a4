"""`session/load` and `session/resume` of a session without a journal here (G-053, G-054).

The history is replayed by the agent itself or by the owner of the session. Clients that are attached already have it,
so a replay is sent only to the client that asked. Its begin and end differ:

    the agent    begins with the request, ends with the answer; no turn may run meanwhile
    the owner    marks both (`_dragoman/replay`, `_dragoman/replayed`) and keeps live events out of it

A replay that the owner has begun runs to its end even if no client waits for it any more; only then may the next one
begin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.gateway.delivery import replay
from dragoman.gateway.delivery.feed import DirectFeed
from dragoman.gateway.delivery.journal_attachment import JournalAttachment, reads_journal
from dragoman.gateway.json_types import JsonObject, decode_object, encode, with_own_meta
from dragoman.gateway.lifecycle.create import setup_params
from dragoman.gateway.lifecycle.mcp_servers import configured_servers
from dragoman.gateway.ownership.owner_connection import OwnerConnection, OwnerGone
from dragoman.gateway.rewriting.rewrite import reply_for_client
from dragoman.gateway.session.session import Session, result_line
from dragoman.rpc.request import Reply, Request
from dragoman.wire.errors import CANCELLED, METHOD_NOT_FOUND, RpcError, method_not_found, session_not_found

if TYPE_CHECKING:
    from dragoman.gateway.agent import AgentConnection
    from dragoman.gateway.client import ClientConnection
    from dragoman.gateway.delivery.attachment import Attachment

LOAD = "session/load"
RESUME = "session/resume"


async def pass_through(
    client: ClientConnection, request: Request, session: Session, params: JsonObject, method: str
) -> None:
    """Let the owner or the agent replay and answer; this process adds nothing."""
    if session.owned_elsewhere:
        await _from_owner(client, request, session, params, method)
    elif client.may_control:
        await _from_agent(client, request, session, params, method)
    else:
        _watch(client, request, session)


# -- from the owner


async def _from_owner(
    client: ClientConnection, request: Request, session: Session, params: JsonObject, method: str
) -> None:
    owner, feed = _owner(session), _feed(session)
    after = replay.after_seq(params)
    was_attached = session.id in client.attachments
    attachment = session.reattach(client) if reads_journal(client) else session.attach(client)
    if isinstance(attachment, JournalAttachment):
        attachment.follow(after or 0)
        raw = _watching_params(session, {})  # the attachment reads the history from the journal itself
    else:
        if not was_attached:
            feed.expect_replay(attachment, owner.position)
        if client.may_control:
            raw = setup_params(request, params, owner, (), session.agent_session_id)
        else:
            raw = _watching_params(session, params)
    hidden = not attachment.reads_journal and (method == LOAD or after is not None)
    feed.coming[attachment] += 1
    if not was_attached:
        feed.unconfirmed.add(attachment)
    relayed = client.gateway.spawn(
        _relay(session, owner, attachment, request, method, raw, hidden=hidden, after=after)
    )
    try:
        # If the request is cancelled, the replay still runs to its end.
        reply, cut_off = await asyncio.shield(relayed)
    except BaseException as error:
        feed.came(attachment)
        if not _too_late(request, error):
            await _give_up_at_owner(client, session, feed, attachment)
        raise
    feed.came(attachment)
    if reply.ok:
        feed.unconfirmed.discard(attachment)
    else:
        await _give_up_at_owner(client, session, feed, attachment)
        if not (owner.alive or cut_off or request.answered):
            if attachment.reads_journal:  # the client already has what the attachment read
                request.params = encode(with_own_meta(params, afterSeq=attachment.position))
            gone = owner.gone_error()
            raise OwnerGone(gone.code, gone.message, gone.data)
        request.answer(reply_for_client(reply, session.agent_session_id, session.id))


async def _give_up_at_owner(
    client: ClientConnection, session: Session, feed: DirectFeed, attachment: Attachment
) -> None:
    """Undo a failed load, unless another one of the same client is under way: then that one decides."""
    others = attachment in feed.coming
    was_attached = others or attachment not in feed.unconfirmed
    await _give_up(client, session, feed, None if others else attachment, was_attached=was_attached)


async def _relay(
    session: Session,
    owner: OwnerConnection,
    attachment: Attachment,
    request: Request,
    method: str,
    raw: bytes,
    *,
    hidden: bool,
    after: int | None,
) -> tuple[Reply, bool]:
    """Ask the owner and wait for the end of its replay; True if the owner ended when a part of it was sent.

    `hidden`: live events before the replay are not sent, as it has them. `after`: where a resume goes on; the client
    goes back there only with a good answer, since until then a takeover sends on from the last event that it has.
    """
    feed = _feed(session)

    def heard(reply: Reply) -> None:
        if reply.ok:
            owner.answered()
            if method == RESUME and after is not None and not attachment.reads_journal:
                attachment.position = after
        _answer(session, attachment, request, reply)

    async with feed.replaying:
        if request.answered:
            return Reply.failed(RpcError(CANCELLED, "Request cancelled")), False
        feed.waiting = attachment
        if hidden:
            feed.expect_replay(attachment, owner.position)
        try:
            patience = session.gateway.config.limits.session_timeout
            owner.load_sent()
            reply = await owner.call(method, raw, request, heard, patience)
            await feed.wait_replayed()
            cut_off = owner.cut_off  # before the next load, which clears it
        finally:
            feed.replay_ended()
    return reply, cut_off


# -- from the agent itself


async def _from_agent(
    client: ClientConnection, request: Request, session: Session, params: JsonObject, method: str
) -> None:
    """Load or resume at the agent, one client at a time: the first starts the agent, the others use the same."""
    feed = _feed(session)
    async with feed.replaying:
        began_with = (
            None if session.agent is not None else await client.gateway.pool.take_for(session, client)
        )
        agent = began_with or session.binding.require()
        was_attached = session.id in client.attachments
        attachment: Attachment | None = None
        try:
            configured = await configured_servers(client.gateway, agent.name, session.cwd)
            raw = setup_params(request, params, agent, configured, session.agent_session_id)
            session.bind(agent, session.agent_session_id)
            attachment = session.attach(client)
            if method == LOAD or not was_attached:
                feed.expect_replay(attachment)
            await _wait_quiet(session, attachment)
            reply = await _replay(agent, session, attachment, method, raw, request)
        except BaseException as error:
            if not _too_late(request, error):
                await _give_up(
                    client, session, feed, attachment, was_attached=was_attached, began_with=began_with
                )
            raise
        if not reply.ok:
            await _give_up(
                client, session, feed, attachment, was_attached=was_attached, began_with=began_with
            )
            request.answer(reply_for_client(reply, session.agent_session_id, session.id))


async def _replay(
    agent: AgentConnection,
    session: Session,
    attachment: Attachment,
    method: str,
    raw: bytes,
    request: Request,
) -> Reply:
    feed = _feed(session)

    def over() -> None:
        session.updates.publish()
        feed.replay_ended()

    def heard(reply: Reply) -> None:
        over()
        _answer(session, attachment, request, reply)

    feed.waiting = attachment
    feed.replay_begins()
    try:
        return await _ask(agent, session, method, raw, request, heard)
    finally:
        over()


async def _wait_quiet(session: Session, attachment: Attachment) -> None:
    """Wait until no turn runs: an agent does not mark its replay, so a turn's events would be taken for it."""
    while session.turn is not None and any(each is not attachment for each in session.attachments):
        await session.turn.done.wait()


async def _ask(
    agent: AgentConnection,
    session: Session,
    method: str,
    raw: bytes,
    request: Request,
    heard: Callable[[Reply], None],
) -> Reply:
    """Ask the agent; `resume` is `load` without its replay for agents that lack it, or only claim it (qwen 0.15)."""
    patience = session.gateway.config.limits.session_timeout
    if method == RESUME and agent.capabilities.session("resume"):
        reply = await agent.call(RESUME, raw, request, heard, patience)
        if reply.ok or decode_object(reply.error).get("code") != METHOD_NOT_FOUND:
            return reply
    if not agent.capabilities.load:
        raise method_not_found(method)
    if method == RESUME:
        session.updates.discard()
    return await agent.call(LOAD, raw, request, heard, patience)


def _watch(client: ClientConnection, request: Request, session: Session) -> None:
    """Attach an observer to a session without a journal here: it gets new events only, no history."""
    session.binding.require()
    session.attach(client)
    request.reply(result_line(None, session.result_for(client), {"state": session.state}))


# -- both


def _owner(session: Session) -> OwnerConnection:
    owner = session.binding.require()
    assert isinstance(owner, OwnerConnection)
    return owner


def _feed(session: Session) -> DirectFeed:
    assert isinstance(session.feed, DirectFeed)
    return session.feed


def _watching_params(session: Session, params: JsonObject) -> bytes:
    """The params that the owner gets for an observer: the session, and the last event that the client has."""
    return encode(
        {"sessionId": session.agent_session_id, "cwd": session.cwd, "_meta": params.get("_meta", {})}
    )


def _answer(session: Session, attachment: Attachment, request: Request, reply: Reply) -> None:
    """Answer a load or resume after its history, if session and attachment are still there then."""
    if not reply.ok:
        return
    client = attachment.client
    result = session.result_for(client, session.options.take_result(reply))

    def answer() -> None:
        if client.attachments.get(session.id) is attachment and not session.closed:
            request.reply(result_line(None, result, {}))
        else:
            request.fail(cut_off_error(session))

    session.after_events(answer, client)


def _too_late(request: Request, error: BaseException) -> bool:
    """Whether a load is cancelled that was answered already; else a cancelled one fails at once.

    A good answer to it may wait for the end of the replay: the client must not get it any more.
    """
    if not isinstance(error, asyncio.CancelledError):
        return False
    answered = request.answered
    request.fail(RpcError(CANCELLED, "Request cancelled"))
    return answered


def cut_off_error(session: Session) -> RpcError:
    """The error for a load whose replay was not sent to its end."""
    if session.closed:
        return session_not_found(session.id, "It was closed before the whole conversation was sent")
    return RpcError(CANCELLED, "The session was loaded again on this connection before this load had ended")


async def _give_up(
    client: ClientConnection,
    session: Session,
    feed: DirectFeed,
    attachment: Attachment | None,
    *,
    was_attached: bool,
    began_with: AgentConnection | None = None,
) -> None:
    """Undo one client's failed load; the session is closed only if no other client uses it."""
    if attachment is not None:
        feed.forget_replay(attachment)
        if not was_attached:
            session.detach(attachment.client)
    if began_with is not None:
        if session.agent is began_with:
            session.unbind()
        client.gateway.pool.reap(began_with)
    unwanted = not session.attachments and session.attaching <= 1
    if unwanted and (session.owned_elsewhere or began_with is not None):
        await client.gateway.close_session(session)
