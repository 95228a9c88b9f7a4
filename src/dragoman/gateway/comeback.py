"""How a client comes back to a session: `session/load` and `session/resume` (G-053, G-054, G-081).

Where the session is decides the way:

    live in this process, journaled    another attachment, replayed from the journal
    stored, nobody owns it             taken over: replayed from the journal, its agent revived
    live in another process            passed through to its owner's socket
    no journal                         passed through to the agent's own load or resume

An observer comes to see it as it is: no agent is started for it, and nothing of what it asks for is taken over.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from dragoman.gateway import quotas, replay, revival, takeover
from dragoman.gateway.attachment import Attachment
from dragoman.gateway.directory import Kept
from dragoman.gateway.feed import REPLAY, DirectFeed, JournalFeed
from dragoman.gateway.json_types import JsonObject, as_object, decode_object, encode
from dragoman.gateway.lifecycle import setup_params
from dragoman.gateway.mcp_servers import mcp_servers
from dragoman.gateway.rewrite import reply_for_client
from dragoman.gateway.session import REMEMBERED, Session, result_line
from dragoman.gateway.tapped import TappedAttachment
from dragoman.gateway.updates import update_line
from dragoman.gateway.workspace import check_cwd, check_directories, workspace_root
from dragoman.rpc.peer import Reply, Request
from dragoman.wire.errors import (
    METHOD_NOT_FOUND,
    RpcError,
    invalid_params,
    method_not_found,
)

if TYPE_CHECKING:
    from dragoman.gateway.agent import AgentConnection
    from dragoman.gateway.client import ClientConnection

log = logging.getLogger(__name__)

PATIENCE = 15.0
"""Seconds that people who want to read wait for an agent to come back."""
PRUNED = "The beginning of this conversation was removed (sessions.retain_bytes)."
LOAD = "session/load"
RESUME = "session/resume"


async def load(client: ClientConnection, request: Request) -> None:
    """The whole conversation first, then the answer."""
    session, params, result = await _find(client, request)
    journal = session.journal
    if journal is None:
        await _pass_through(client, request, session, params, LOAD)
        return
    until = await _adopt(session, client, journal)
    terminals = await replay.terminal_outputs(journal.store, session.id) if session.has_terminals else {}
    terminals.update(session.services.outputs)
    if client.capabilities.replays:
        until = await _announce(session, client, journal, until)
    attachment = _fresh_attachment(session, client)
    attachment.start_at(0, history_until=until, terminals=terminals)
    facts = await _revive(session, client, result)

    def answer() -> None:
        request.reply(result_line(None, dict(session.last_result), facts))
        _tell_state(session, attachment)
        revival.tell_loss(session)
        if client.gateway.trouble is not None:
            title = f"This conversation is not being saved: {client.gateway.trouble}"
            attachment.send(session.notice_line(client, title, "error"))
        if session.pruned:
            attachment.send(session.notice_line(client, PRUNED))
        session.questions.ask_again(client)

    attachment.after(until, answer)


async def _announce(session: Session, client: ClientConnection, journal: JournalFeed, until: int) -> int:
    """Tell another process of ours where the replay begins; returns where it ends.

    Its other clients are shown everything up to here and nothing of the replay, so there is no gap and no double.
    """
    known = client.attachments.get(session.id)
    while known is not None and not known.live and client.attachments.get(session.id) is known:
        there = asyncio.Event()
        known.after(journal.delivered, there.set)
        await there.wait()
    client.peer.notify(REPLAY, encode({"sessionId": session.id}))
    return until if known is None else journal.delivered


async def resume(client: ClientConnection, request: Request) -> None:
    """The answer first, then what was missed since `_meta.dragoman.afterSeq`, if the client says so."""
    session, params, result = await _find(client, request)
    journal = session.journal
    if journal is None:
        await _pass_through(client, request, session, params, RESUME)
        return
    wanted = as_object(as_object(params.get("_meta")).get("dragoman"))
    after = _number(wanted, "afterSeq")
    await _adopt(session, client, journal)
    facts = await _revive(session, client, result)
    attachment = _fresh_attachment(session, client)
    request.reply(result_line(None, dict(session.last_result), {**facts, "seq": journal.delivered}))
    _tell_state(session, attachment)
    if after is not None and after < journal.delivered:
        attachment.start_at(after)
    revival.tell_loss(session)
    session.questions.ask_again(client)
    if after is not None and client.capabilities.seq:
        _tell_caught_up(session, attachment)


def _number(wanted: JsonObject, name: str) -> int | None:
    value = wanted.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise invalid_params(
            f"_meta.dragoman.{name} must be the number of the last event that you have", name
        )
    return value


async def _find(client: ClientConnection, request: Request) -> tuple[Session, JsonObject, JsonObject]:
    """The session, live or taken over."""
    params = decode_object(request.params)
    session_id = params.get("sessionId")
    if not isinstance(session_id, str):
        raise invalid_params("sessionId is required", "sessionId")
    check_cwd(params.get("cwd"))
    directories = check_directories(params.get("additionalDirectories"))
    session = client.gateway.sessions.get(session_id)
    if session is None:
        known = await client.gateway.directory.get(session_id)
        if known is None:
            raise takeover.unknown(client.gateway, session_id)
        client.check_agent(known.agent, session_id)
        session = await _take(client, known, params)
    else:
        client.check_agent(session.agent_name, session_id)
        await takeover.take_over(session, client)
    if not client.may_control:
        return session, params, {}
    session.owner = session.owner or client.terms.identity.name
    session.setup = {**session.setup, **{key: params[key] for key in ("mcpServers",) if key in params}}
    session.additional_directories = directories or session.additional_directories
    return session, params, {}


async def _take(client: ClientConnection, known: Kept, params: JsonObject) -> Session:
    """Make a stored session live in this process."""
    gateway = client.gateway
    gateway.check_room()
    if client.may_control:
        quotas.check_sessions(client)
    cwd = str((params.get("cwd") if client.may_control else None) or known.cwd)
    session = Session(gateway, known.id, known.agent, cwd, workspace_root(cwd))
    session.agent_session_id = known.agent_session_id or ""
    session.title = known.title
    session.has_terminals = known.has_terminals
    session.pruned = known.pruned
    session.extra = known.extra
    session.parked = not client.wakes
    session.owner = client.terms.identity.name if client.may_control else ""
    if not gateway.journaling:
        gateway.add(session)
        return session
    return await takeover.take(session, client, known)


async def _adopt(session: Session, client: ClientConnection, journal: JournalFeed) -> int:
    """A session that only its agent knows: journal the agent's own replay. Returns where history ends."""
    if journal.seq or session.agent is not None or not session.agent_session_id or not client.may_control:
        return journal.delivered
    agent = await session.gateway.pool.take(
        client, session.agent_name, session.cwd, session.workspace, session.sandbox
    )
    if not agent.capabilities.load:
        session.gateway.pool.reap(agent)
        return 0
    end = 0

    def heard(reply: Reply) -> None:
        nonlocal end
        end = journal.seq

    try:
        servers = mcp_servers(session.setup.get("mcpServers"), agent.capabilities, agent.name)
    except RpcError:
        session.gateway.pool.reap(agent)
        raise
    session.bind(agent, session.agent_session_id)
    params = {"sessionId": session.agent_session_id, "cwd": session.cwd, "mcpServers": servers}
    try:
        reply = await agent.call(LOAD, encode(params), heard=heard)
    except asyncio.CancelledError:
        await session.gateway.close_session(session)
        raise
    if not reply.ok:
        await session.gateway.close_session(session)
        raise revival.as_error(reply_for_client(reply, session.agent_session_id, session.id))
    session.session_result(reply, boolean=client.capabilities.boolean_options)
    await session.settled()
    return end


async def _revive(session: Session, client: ClientConnection, result: JsonObject) -> JsonObject:
    """Facts for `_meta.dragoman`; an agent that does not come back does not keep people from reading."""
    if session.agent is not None:
        return {"revived": "live", "state": session.state}
    if not client.wakes:
        return {"revived": None, "state": session.state}
    try:
        revived = await asyncio.wait_for(revival.revive(session, client), PATIENCE)
    except TimeoutError:
        return {"revived": None, "state": "reviving"}  # it goes on; the next prompt waits for it
    except RpcError as error:
        log.warning("agent did not come back: %s", error.message, extra={"session": session.id})
        session.notice(f"The agent is not available: {error.message}")
        return {"revived": None, "error": error.message, "state": session.state}
    return {**as_object(as_object(revived.get("_meta")).get("dragoman")), "state": session.state}


async def _pass_through(client: ClientConnection, request: Request, session: Session, params: JsonObject,
                        method: str) -> None:  # fmt: skip
    """The agent, or the process that owns the session, replays and answers; we add nothing."""
    gateway = client.gateway
    agent = session.agent
    if not client.may_control and not session.remote:
        _watch(client, request, session)
        return
    if agent is None:
        agent = await gateway.pool.take(
            client, session.agent_name, session.cwd, session.workspace, session.sandbox
        )
    try:
        raw = (
            _watching_params(session, params)
            if not client.may_control
            else setup_params(request, params, agent, session.agent_session_id)
        )
    except RpcError:
        gateway.pool.reap(agent)
        raise
    feed = session.feed
    assert isinstance(feed, DirectFeed)
    was_live = session.agent is not None
    was_attached = session.id in client.attachments
    session.bind(agent, session.agent_session_id)
    attachment = session.attach(client)
    if isinstance(attachment, TappedAttachment) and session.remote:
        wanted = as_object(as_object(params.get("_meta")).get("dragoman"))
        attachment.follow(_number(wanted, "afterSeq") or 0)
        raw = _watching_params(session, {})  # it reads the past by itself

    def heard(reply: Reply) -> None:
        session.mute(False)
        feed.replay_ended()
        if reply.ok:
            result = session.session_result(reply, boolean=client.capabilities.boolean_options)
            session.after_events(lambda: request.reply(result_line(None, result, {})), client)

    try:
        async with feed.replaying:
            if not session.remote:
                await _quiet(session, attachment)
            feed.waiting = attachment  # the others know what is replayed then
            if not session.remote:
                feed.replay_begins()
            reply = await _call_pass_through(agent, session, method, raw, request, heard)
    except BaseException:
        await _give_up(session, client, agent, was_live=was_live, was_attached=was_attached)
        raise
    if not reply.ok:
        await _give_up(session, client, agent, was_live=was_live, was_attached=was_attached)
        request.answer(reply_for_client(reply, session.agent_session_id, session.id))


async def _quiet(session: Session, attachment: Attachment) -> None:
    """An agent does not say where its replay begins: what others are told in their turn must not pass for it."""
    while session.turn is not None and any(each is not attachment for each in session.attachments):
        await session.turn.done.wait()


async def _give_up(session: Session, client: ClientConnection, agent: AgentConnection, *, was_live: bool,
                   was_attached: bool) -> None:  # fmt: skip
    """One client's failed load is not the others' business: the session ends only if it began with it."""
    session.mute(False)
    if isinstance(session.feed, DirectFeed):
        session.feed.replay_ended()
    if not was_attached:
        session.detach(client)
    if not session.attachments and (session.remote or not was_live):
        await session.gateway.close_session(session)
    elif not was_live:
        revival.unbind(session, agent)
        session.gateway.pool.reap(agent)


def _watching_params(session: Session, params: JsonObject) -> bytes:
    """What an observer may say to the process that owns the session: which one, and since when."""
    return encode(
        {"sessionId": session.agent_session_id, "cwd": session.cwd, "_meta": params.get("_meta", {})}
    )


def _watch(client: ClientConnection, request: Request, session: Session) -> None:
    """An observer of a session that keeps no journal here: what it says from now on, nothing of the past."""
    session.require_agent()
    session.attach(client)
    request.reply(result_line(None, dict(session.last_result), {"state": session.state}))


async def _call_pass_through(agent: AgentConnection, session: Session, method: str, raw: bytes, request: Request,
                             heard: object) -> Reply:  # fmt: skip
    """`resume` is made of `load` for agents that lack it, or advertise it in vain (qwen 0.15): replay swallowed."""
    listen = heard if callable(heard) else None
    if method == RESUME and agent.capabilities.session("resume"):
        reply = await agent.call(RESUME, raw, request, listen)
        if reply.ok or decode_object(reply.error).get("code") != METHOD_NOT_FOUND:
            return reply
    if not agent.capabilities.load:
        raise method_not_found(method)
    session.mute(method == RESUME)
    return await agent.call(LOAD, raw, request, listen)


def _tell_caught_up(session: Session, attachment: Attachment) -> None:
    """Behind all that was missed: from here on it is the present, and this is how the session stood then.

    Whoever lost a connection in the middle of a turn knows by it whether its prompt had arrived.
    """
    facts: JsonObject = {"state": session.state, "caughtUp": True}
    update = {"sessionUpdate": "session_info_update", "_meta": {"dragoman": facts}}
    line = update_line(session.id, update)
    session.after_events(lambda: attachment.send(line), attachment.client)


def _fresh_attachment(session: Session, client: ClientConnection) -> Attachment:
    """A client that loads again starts again: it shows what it is sent, from nothing."""
    session.detach(client)
    return session.attach(client)


def _tell_state(session: Session, attachment: Attachment) -> None:
    """Commands, mode and options as they stand now; they are no history (G-163)."""
    for kind, line in session.current.items():
        if kind in REMEMBERED:
            attachment.send(line)
