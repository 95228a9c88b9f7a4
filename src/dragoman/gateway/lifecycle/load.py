"""`session/load` and `session/resume`: how a client returns to a session (G-053, G-054, G-081).

It depends on where the session is:

    live in this process, journaled    another attachment, replayed from the journal
    stored, without an owner           taken over: replayed from the journal, its agent restarted
    live in another process            passed through to its owner's socket
    no journal                         passed through to the agent's own load or resume

For an observer no agent is started, and its params (folders, MCP servers) are ignored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from dragoman.gateway.access.capabilities import AgentCapabilities
from dragoman.gateway.delivery import replay
from dragoman.gateway.delivery.attachment import Attachment
from dragoman.gateway.delivery.conversation.undone import FLAG, NOTHING, read_undone
from dragoman.gateway.delivery.feed import REPLAY, REPLAYED, DirectFeed
from dragoman.gateway.delivery.journal_feed import JournalFeed
from dragoman.gateway.json_types import JsonObject, as_object, decode_object, encode, own_meta
from dragoman.gateway.lifecycle import restart_agent
from dragoman.gateway.lifecycle.adoption import PARTIAL, adopt
from dragoman.gateway.lifecycle.create import take_directories
from dragoman.gateway.lifecycle.mcp_servers import check_mcp_servers
from dragoman.gateway.lifecycle.passthrough import LOAD, RESUME, cut_off_error, pass_through
from dragoman.gateway.lifecycle.workspace import check_cwd, check_directories, workspace_root
from dragoman.gateway.ownership import takeover
from dragoman.gateway.ownership.entries import SessionEntry
from dragoman.gateway.ownership.owner_connection import DELAYS, OwnerGone
from dragoman.gateway.ports.store import StoreError
from dragoman.gateway.rewriting.updates import update_line
from dragoman.gateway.session import auditing
from dragoman.gateway.session.binding import ClosedMeanwhile
from dragoman.gateway.session.entry import repository_in
from dragoman.gateway.session.session import Session, result_line
from dragoman.gateway.session.setup import Setup
from dragoman.rpc.request import Request
from dragoman.wire.errors import (
    RpcError,
    internal,
    invalid_params,
)

if TYPE_CHECKING:
    from dragoman.gateway.client import ClientConnection

log = logging.getLogger(__name__)

PATIENCE = 15.0
"""Seconds that a load or resume waits for the agent's restart before it is answered without."""
BEYOND = "You have event {after} of another journal: this one ends at {until}. Load the session to see what it has."
REWOUND = (
    "The journal of this conversation was brought back to an earlier state, from a back-up or by a loss of power: what "
    "you have after event {common} is not in it. What came since follows."
)
PRUNED = "The beginning of this conversation was removed (sessions.retain_bytes)."


async def load(client: ClientConnection, request: Request) -> None:
    """Send the whole conversation, then the current commands, mode and options, then the answer."""
    await _wherever_it_is(_load, client, request)


async def resume(client: ClientConnection, request: Request) -> None:
    """Answer, then send the events after `_meta.dragoman.afterSeq`, if the client gives it."""
    await _wherever_it_is(_resume, client, request)


async def _wherever_it_is(
    come_back: Callable[[ClientConnection, Request], Awaitable[None]],
    client: ClientConnection,
    request: Request,
) -> None:
    """Try again while an owner that ended meanwhile still has the lease, which may take a moment."""
    lost = False
    for delay in (*DELAYS, None):
        try:
            await come_back(client, request)
            return
        except (OwnerGone, ClosedMeanwhile):
            lost = True
            if delay is None:
                raise
        except RpcError as error:
            held = as_object(error.data).get("reason") == "session_held"
            if not (lost and held) or delay is None:
                raise
        log.info("owner ended, trying again", extra={"method": request.method})
        await asyncio.sleep(delay)


async def _load(client: ClientConnection, request: Request) -> None:
    session, params = await _find(client, request)
    journal = session.journal
    if journal is None:
        with _coming(session):
            await pass_through(client, request, session, params, LOAD)
        return
    with _coming(session):
        until = await adopt(session, client, journal)
        if until is None:
            await _without_journal(client, request, session, params, LOAD)
            return
        terminals = (
            await replay.terminal_outputs(journal.store, session.id) if session.entry.has_terminals else {}
        )
        terminals.update(session.services.outputs)
        undone = await read_undone(journal.store, session.id) if session.entry.extra.get(FLAG) else NOTHING
        if client.capabilities.replays:
            until = await _announce(session, client, journal, until)
        _check_open(client, session)
        attached_before = session.id in client.attachments
        attachment = session.reattach(client)
    attachment.start_at(0, history_until=until, terminals=terminals, undone=undone)
    if client.capabilities.replays:
        attachment.after(until, partial(_announce_end, session, client, until))
    try:
        facts = await _restart(session, client)
    except ClosedMeanwhile as error:  # no retry: it would replay a second time
        raise cut_off_error(session) from error
    except (
        asyncio.CancelledError
    ):  # by the client, which then expects updates only if it has prompted meanwhile
        if not attached_before and session.turn is None and client.attachments.get(session.id) is attachment:
            session.detach(client)
        raise

    def answer() -> None:
        if client.attachments.get(session.id) is not attachment:  # cut off before its end
            request.fail(cut_off_error(session))
            return
        _tell_state(session, attachment)
        request.reply(result_line(None, session.result_for(client), facts))
        restart_agent.tell_loss(session)
        _tell_trouble(session, attachment)
        if session.entry.pruned:
            attachment.send(session.notice_line(client, PRUNED))
        if session.entry.partial:
            attachment.send(session.notice_line(client, PARTIAL))
        session.questions.ask_again(client)

    attachment.after(until, answer)


def _check_open(client: ClientConnection, session: Session) -> None:
    """Raise if the session was closed meanwhile, or is about to be."""
    if session.closed or client.gateway.closings.has(session.id):
        raise ClosedMeanwhile.of(session.id)


def _tell_trouble(session: Session, attachment: Attachment) -> None:
    """Send a notice to a client that attaches while the session's events are not stored."""
    journal = session.journal
    trouble = session.gateway.trouble or (journal.trouble if journal is not None else None)
    if trouble is not None:
        attachment.tell(f"This conversation is not being saved: {trouble}", "error")


async def _announce(session: Session, client: ClientConnection, journal: JournalFeed, until: int) -> int:
    """Notify another process of Dragoman that the replay begins; returns the number of its last event.

    The other clients of that process have everything up to here and get nothing of the replay: no gap, no duplicate.
    """
    known = client.attachments.get(session.id)
    while known is not None and not known.live and client.attachments.get(session.id) is known:
        there = asyncio.Event()
        known.after(journal.delivered, there.set)
        await there.wait()
    client.peer.notify(REPLAY, encode({"sessionId": session.id}))
    return until if known is None else journal.delivered


def _announce_end(session: Session, client: ClientConnection, until: int) -> None:
    client.peer.notify(REPLAYED, encode({"sessionId": session.id, "seq": until}))


async def _resume(client: ClientConnection, request: Request) -> None:
    session, params = await _find(client, request)
    journal = session.journal
    if journal is None:
        with _coming(session):
            await pass_through(client, request, session, params, RESUME)
        return
    after = replay.after_seq(params)
    with _coming(session):
        if await adopt(session, client, journal) is None:
            await _without_journal(client, request, session, params, RESUME)
            return
        wake = own_meta(params).get("wake")
        facts = await _restart(session, client, wake=wake is not False)
        if after is not None:
            facts.update(await _pruned(client, session, after))
        common = await _common(session, params, after)
        # From here to `reattach` only `_announce` awaits, and it reads the end of the journal again.
        until = journal.delivered
        if client.capabilities.replays:
            until = await _announce(session, client, journal, until)
        _check_open(client, session)
        attachment = session.reattach(client)
    request.reply(
        result_line(None, session.result_for(client), {**facts, "seq": until, "epoch": journal.epoch})
    )
    _tell_state(session, attachment)
    _tell_trouble(session, attachment)
    if after is not None and common < after:
        attachment.tell(REWOUND.format(common=common), "error")
        attachment.start_at(common)
    elif after is not None and after < until:
        attachment.start_at(after)
    elif after is not None and after > until:
        attachment.tell(BEYOND.format(after=after, until=until), "error")
    restart_agent.tell_loss(session)
    session.questions.ask_again(client)
    if client.capabilities.replays:
        if after is not None:
            attachment.after(until, lambda: attachment.send(_caught_up(session)))
        attachment.after(until, partial(_announce_end, session, client, until))
    elif after is not None and client.capabilities.seq:
        session.after_events(lambda: attachment.send(_caught_up(session)), client)


async def _common(session: Session, params: JsonObject, after: int | None) -> int:
    """The last event that a client has in common with the journal, by the epoch that the client was sent before."""
    epoch = own_meta(params).get("epoch")
    journal = session.journal
    if after is None or not isinstance(epoch, int) or journal is None or epoch == journal.epoch:
        return after or 0
    try:
        return await journal.store.common_seq(session.id, epoch, after)
    except StoreError as error:
        raise internal(str(error), error.code, sessionId=session.id) from error


async def _pruned(client: ClientConnection, session: Session, after: int) -> JsonObject:
    """`firstSeq`, the first stored event, for a client that asks for earlier ones; else empty."""
    known = await client.gateway.directory.get(session.id)
    return {"firstSeq": known.first_seq} if known is not None and known.first_seq > after + 1 else {}


@contextmanager
def _coming(session: Session) -> Iterator[None]:
    """Count a client that is about to attach, so that the session is not unloaded meanwhile."""
    session.begin_attach()
    try:
        yield
    finally:
        session.end_attach()
        gateway = session.gateway
        if not session.attachments and gateway.has(session):  # no client attached
            gateway.idle(session)
            gateway.detached(session)


async def _find(client: ClientConnection, request: Request) -> tuple[Session, JsonObject]:
    """The session, live or taken over, and the checked params; updates the session's folders and MCP servers."""
    params = decode_object(request.params)
    session_id = params.get("sessionId")
    if not isinstance(session_id, str):
        raise invalid_params("sessionId is required", "sessionId")
    check_cwd(params.get("cwd"))
    directories = check_directories(params.get("additionalDirectories"))
    check_mcp_servers(params.get("mcpServers"))
    session = await _reach(client, session_id, params)
    while client.gateway.sessions.get(session_id) is not session:  # unloaded since
        session = await _reach(client, session_id, params)
    brought = auditing.named_servers(params.get("mcpServers")) if client.may_control else {}
    facts = {"session": session_id, "agent": session.agent_name, "by": client.terms.identity.name, **brought}
    client.gateway.audit.record("session_loaded", facts)
    if not client.may_control:
        return session, params
    if directories:
        await _check_directories(client, session, directories)
    session.setup.loaded(client.terms.identity.name, params, directories)
    return session, params


async def _check_directories(client: ClientConnection, session: Session, directories: list[str]) -> None:
    """Raise if the agent does not support the directories; skipped if that cannot be found out."""
    agent = session.agent
    if agent is not None:
        take_directories(directories, agent.capabilities, session.agent_name)
        return
    try:
        result = await client.gateway.pool.abilities(client, session.agent_name)
    except RpcError as error:
        log.warning("cannot tell what the agent takes: %s", error.message, extra={"session": session.id})
    else:
        take_directories(directories, AgentCapabilities(result), session.agent_name)


async def _reach(client: ClientConnection, session_id: str, params: JsonObject) -> Session:
    await client.gateway.closings.wait_over(session_id)
    session = client.gateway.sessions.get(session_id)
    if session is not None:
        client.check_agent(session.agent_name, session_id)
        return await takeover.take_over(client.gateway, session, client)
    known = await client.gateway.directory.get(session_id)
    if known is None:
        raise takeover.unknown(client.gateway, session_id)
    client.check_agent(known.agent, session_id)
    return await _take(client, known, params)


async def _take(client: ClientConnection, known: SessionEntry, params: JsonObject) -> Session:
    """Make a stored session live in this process, within the limits of live sessions."""
    with client.gateway.places.take(client, known.id):
        return await _make_live(client, known, params)


async def _make_live(client: ClientConnection, known: SessionEntry, params: JsonObject) -> Session:
    gateway = client.gateway
    project = repository_in(known.extra)
    asked = (
        params.get("cwd") if client.may_control and project is None else None
    )  # a worktree is its session's
    cwd = str(asked or known.cwd)
    setup = Setup(client.terms.identity.name if client.may_control else "", project=project)
    session = Session(gateway, known.id, known.agent, cwd, workspace_root(cwd), setup)
    session.binding.know(known.agent_session_id or "")
    session.entry.know(known.title, known.extra, pruned=known.first_seq > 1)
    if not client.restarts_agents:
        session.binding.park()
    if not gateway.journaling:
        gateway.add(session)
        return session
    return await takeover.take(gateway, session, client)


async def _without_journal(
    client: ClientConnection, request: Request, session: Session, params: JsonObject, method: str
) -> None:
    """Let the agent replay directly, as without a journal, because its replay could not be stored.

    The journal stays empty, so that a later load stores the whole history when there is room.
    """
    journal = session.journal
    if journal is not None:  # else another client that waited has done this already
        agent = session.agent
        session.deliver_through(DirectFeed(session.id))
        if agent is not None:
            session.unbind()
            client.gateway.pool.reap(agent)
        journal.stop()
    await pass_through(client, request, session, params, method)
    if journal is not None and session.attachments:
        session.notice(f"This conversation is not being saved: {journal.trouble}", "error")


async def _restart(session: Session, client: ClientConnection, *, wake: bool = True) -> JsonObject:
    """Restart the agent if needed; returns facts for `_meta.dragoman`. A failed restart does not fail the load."""
    if session.agent is not None:
        return {"revived": "live", "state": session.state}
    if not (client.restarts_agents and wake):
        return {"revived": None, "state": session.state}
    try:
        async with asyncio.timeout(PATIENCE):
            revived = await restart_agent.restart(client.gateway, session, client)
    except TimeoutError:
        return {"revived": None, "state": "reviving"}  # the restart goes on; the next prompt waits for it
    except ClosedMeanwhile:
        raise
    except RpcError as error:
        log.warning("agent did not come back: %s", error.message, extra={"session": session.id})
        session.notice(f"The agent is not available: {error.message}")
        return {"revived": None, "error": error.message, "state": session.state}
    return {**own_meta(revived), "state": session.state}


def _caught_up(session: Session) -> bytes:
    """The update after the last missed event, with the session's state: what follows is live.

    A client that lost its connection in the middle of a turn learns from it whether its prompt arrived.
    """
    facts: JsonObject = {"state": session.state, "caughtUp": True}
    return update_line(session.id, {"sessionUpdate": "session_info_update", "_meta": {"dragoman": facts}})


def _tell_state(session: Session, attachment: Attachment) -> None:
    for line in session.updates.state_updates():
        attachment.send(attachment.own_view(line))
