"""Restarts the agent of a session whose agent is gone: crashed, parked, or of an earlier process.

The ways, best first. A loss is always reported: after `seed` clients get a notice that the agent does not remember the
conversation and only has the recap.

    live      the agent still runs
    resume    the agent's own `session/resume`
    load      the agent's own `session/load`; its replay is discarded, clients have it already
    rewind    a fork of the agent's own session at an earlier message, after the conversation was rewound
    seed      a new agent session, which gets the recap with its next prompt

After a rewind the agent's own session has more than the conversation. The directory says so (`cut`), until it is forked
at the message, or another one is begun; it is neither resumed nor loaded meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from dragoman.gateway.delivery import transcript
from dragoman.gateway.delivery.conversation.undone import read_undone
from dragoman.gateway.json_types import JsonObject, decode_object, encode, with_own_meta
from dragoman.gateway.lifecycle import worktrees
from dragoman.gateway.ownership import takeover
from dragoman.gateway.ports.store import SessionAway, SessionChanges, StoreError
from dragoman.gateway.rewriting import dialects, quirks
from dragoman.rpc.request import Reply
from dragoman.wire.errors import INTERNAL_ERROR, RpcError, internal, session_not_found

if TYPE_CHECKING:
    from dragoman.gateway.access.client import Client
    from dragoman.gateway.agent import AgentConnection
    from dragoman.gateway.registry import Registry
    from dragoman.gateway.session.session import Session

log = logging.getLogger(__name__)

REPLAY_QUIET = 0.25
"""Seconds without an update after which the replay of an agent that answers in the middle of it has ended."""
BACKOFF = (0.0, 0.5, 2.0)
"""Seconds before each try; after the last one the failure is reported."""

LOST = "The agent was started anew and does not remember this conversation. It gets a transcript with your next message."


async def restart(gateway: Registry, session: Session, client: Client) -> JsonObject:
    """Restart the session's agent; returns the agent's session result, in which `_meta.dragoman.revived` says how.

    Calls during a restart wait for the same agent: a prompt and a load must not start two.
    """
    session.binding.check_open()
    _check_here(session)
    restarting = session.recovery.restarting
    if restarting is None:
        restarting = session.gateway.spawn(_try(gateway, session, client))
        session.recovery.restart(restarting)
    try:
        return await asyncio.shield(restarting)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if restarting.cancelled() and not (task is not None and task.cancelling()):
            session.binding.check_open()
        raise


def _check_here(session: Session) -> None:
    """Raise if another machine may own the session and work in its folder."""
    trouble = session.journal.trouble if session.journal is not None else None
    if isinstance(trouble, SessionAway):
        raise internal(str(trouble), trouble.code, sessionId=session.id)


async def ready(gateway: Registry, session: Session, client: Client) -> None:
    """Wait until the session has an agent that takes requests."""
    if session.recovery.settling is not None:
        await asyncio.wait((session.recovery.settling,))
    # While it is restarted the session is bound already, so that the agent's updates find it.
    if session.agent is None or session.recovery.restarting is not None:
        await restart(gateway, session, client)
        tell_loss(session)


def tell_loss(session: Session) -> None:
    """Send the notices of a restart, as that the agent does not remember; called when clients are attached."""
    for text in session.recovery.take_notices():
        session.notice(text)
    if session.recovery.take_loss():
        session.notice(LOST)


async def _try(gateway: Registry, session: Session, client: Client) -> JsonObject:
    """Restart the agent; a parked session first needs a place within the limits of live sessions."""
    with gateway.places.wake(client, session):
        await worktrees.made_again(gateway, session)
        return await _try_again(gateway, session, client)


async def _try_again(gateway: Registry, session: Session, client: Client) -> JsonObject:
    """Try a few times, with growing delays."""
    error: RpcError | None = None
    for delay in BACKOFF[min(session.recovery.crashes, len(BACKOFF) - 1) :]:
        await asyncio.sleep(delay)
        try:
            return await _once(gateway, session, client)
        except RpcError as failed:
            if failed.code != INTERNAL_ERROR:
                raise
            error = failed
            session.recovery.crashed()
    tail = f" Its last error: {error.message}" if error is not None else ""
    failure = internal(
        f"The agent {session.agent_name} could not be brought back: it failed {session.recovery.crashes} times in "
        f"a row.{tail}",
        "agent_unavailable",
        agent=session.agent_name,
    )
    session.recovery.gave_up()
    raise failure


async def _once(gateway: Registry, session: Session, client: Client) -> JsonObject:
    await takeover.take_over(gateway, session, client)
    if session.follows:  # another process became the owner first, and has or restarts the agent
        return {**session.options.result, "_meta": {"dragoman": {"revived": "live"}}}
    agent = await gateway.pool.take_for(session, client, returning=bool(session.agent_session_id))
    try:
        rung, result = await _climb(gateway, session, agent)
        session.binding.check_open()
    except BaseException:
        gateway.pool.reap(agent)
        raise
    if agent.box is not None:
        await _keep_box(gateway, session)
    await session.choices.apply(agent, session.policy.may_switch_again)
    await session.policy.leave_mode(agent)
    session.record("revived", rung=rung)
    session.tell_offer()
    session.changed()
    log.info("session revived", extra={"session": session.id, "rung": rung})
    session.recovery.restarted()
    meta = result.setdefault("_meta", {})
    meta["dragoman"] = {"revived": rung, "contextLost": session.recovery.context_lost}
    return result


async def _keep_box(gateway: Registry, session: Session) -> None:
    """Wait until the sandbox is saved in the directory, so that every later process uses it too."""
    try:
        await gateway.directory.get(session.id)
    except StoreError as error:
        raise internal(str(error), error.code, sessionId=session.id) from error


async def _climb(gateway: Registry, session: Session, agent: AgentConnection) -> tuple[str, JsonObject]:
    cut, ahead = session.entry.cut, False
    if cut:
        ahead = await _is_ahead(session, cut)
        result = await _fork_at(gateway, session, agent, cut) if ahead else None
        if result is not None:
            session.entry.save_extra(cut=None)
            return "rewind", result
    for rung, method, able in (
        ("resume", "session/resume", agent.capabilities.session("resume")),
        ("load", "session/load", agent.capabilities.load),
    ):
        if not able or not session.agent_session_id or ahead:
            continue
        reply = await _bring_back(session, agent, method)
        if reply.ok and (rung == "resume" or await _remembers(session)):
            session.recovery.context_loaded()
            return rung, session.options.take_result(reply)
        if reply.ok:
            session.unbind()
        else:
            _check_failure(agent, reply)
    if session.journal is None:
        # Without a journal there is no copy of the conversation: the session is over (G-110).
        raise session_not_found(session.id, "Its agent is gone and cannot load it again")
    result = await _new_with_recap(gateway, session, agent)
    session.entry.save_extra(cut=None)
    return "seed", result


async def _is_ahead(session: Session, cut: JsonObject) -> bool:
    """Whether the agent's session has what a rewind undid; not if a crash came before the record of the rewind."""
    event, journal = cut.get("event"), session.journal
    if cut.get("session") != session.agent_session_id:
        return False
    if event is None or journal is None:
        return True
    return event in await read_undone(journal.store, session.id)


async def _fork_at(
    gateway: Registry, session: Session, agent: AgentConnection, cut: JsonObject
) -> JsonObject | None:
    """Fork the agent's session at the message that the conversation was rewound to; None if the agent cannot."""
    if not (session.agent_session_id and agent.ours and agent.capabilities.fork_at):
        return None
    params = await session.setup.params_for(session.gateway, agent, session.cwd, session.agent_session_id)
    asked = encode(
        with_own_meta(decode_object(params), at={name: cut.get(name) for name in ("drop", "text")})
    )
    reply = await _begin_session(session, agent, "session/fork", asked)
    if not reply.ok:
        _check_failure(agent, reply)
        why = decode_object(reply.error).get("message")
        log.info("agent cannot go back by itself: %s", why, extra={"session": session.id})
        return None
    session.recovery.context_loaded()
    await _rename(gateway, session)
    return session.options.take_result(reply)


async def _bring_back(session: Session, agent: AgentConnection, method: str) -> Reply:
    """Resume or load the session at the agent; its replay is discarded, since the journal has it."""
    former = session.agent_session_id
    params = await session.setup.params_for(session.gateway, agent, session.cwd, former)
    _bind(session, agent, former)
    session.updates.discard()
    replays_on = method == "session/load" and quirks.replays_on(session.agent_config.command)
    try:
        limit = session.gateway.config.limits.start_timeout
        heard = None if replays_on else lambda reply: session.updates.publish()
        reply = await agent.ask(method, params, limit, heard=heard)
        if replays_on:
            await session.updates.discard_rest(REPLAY_QUIET, limit)
    except BaseException:  # a session bound to an agent that does not know it would never get a working one
        session.unbind()
        raise
    if not reply.ok:
        session.unbind()
    return reply


async def _remembers(session: Session) -> bool:
    """Whether the agent's replay matches the journal: some agents load any id, as an empty session (qwen 0.15)."""
    journal = session.journal
    if journal is None or not journal.delivered:
        return True
    try:
        last = await transcript.last_prompt(journal.store, session.id)
    except StoreError as error:
        log.warning("cannot tell whether the agent remembers: %s", error, extra={"session": session.id})
        return True
    if last is None:
        return True
    replayed = [transcript.read_update(line) or {} for line in session.updates.discarded]
    if not replayed:
        log.warning("agent loaded an empty session", extra={"session": session.id})
        return False
    prompts = [text for who, text in map(transcript.said, replayed) if who == "User"]
    if prompts and not any(_same_words(last, prompt) for prompt in prompts):
        session.notice("The agent remembers an earlier state of this conversation than the one shown here.")
    return True


def _same_words(one: str, other: str) -> bool:
    """Whether two texts are the same prompt: agents cut, wrap and decorate what they replay."""
    mine, theirs = " ".join(one.split())[:200], " ".join(other.split())
    return bool(mine) and mine in theirs


async def _begin_session(session: Session, agent: AgentConnection, method: str, params: bytes) -> Reply:
    """Create a session at the agent and bind it, if the agent takes it."""
    agent.expect_session()
    created = False
    try:
        reply = await agent.ask(method, params, session.gateway.config.limits.start_timeout)
        if reply.ok:
            _bind(session, agent, new_agent_session(agent, reply))
            created = True
    finally:
        agent.session_created(session if created else None)
    if created:
        agent.release_early(session)
    return reply


async def _new_with_recap(gateway: Registry, session: Session, agent: AgentConnection) -> JsonObject:
    params = await session.setup.params_for(session.gateway, agent, session.cwd, None)
    reply = await _begin_session(session, agent, "session/new", params)
    if not reply.ok:
        raise reply.as_error()
    journal = session.journal
    assert journal is not None
    try:
        session.recovery.context_forgotten(await transcript.for_agent(journal.store, session.id))
    except StoreError as error:
        log.warning("the agent gets no transcript: %s", error, extra={"session": session.id})
        session.recovery.context_forgotten(None)
    await _rename(gateway, session)
    return session.options.take_result(reply)


async def _rename(gateway: Registry, session: Session) -> None:
    """Save the agent's new session id; another session with the same id has it from before a restart (G-040)."""
    try:
        await gateway.directory.free_agent_id(session.agent_name, session.agent_session_id)
    except StoreError as error:
        log.warning("the agent's new session may be listed twice: %s", error, extra={"session": session.id})
    session.entry.save(SessionChanges(agent_session_id=session.agent_session_id))


def _bind(session: Session, agent: AgentConnection, agent_session_id: str) -> None:
    """Bind an agent after a wait, in which the session may have been closed.

    Closing cancels the task, but `asyncio.wait_for` of Python 3.11 loses a cancel that comes with the result.
    """
    session.binding.check_open()
    session.bind(agent, agent_session_id)


def _check_failure(agent: AgentConnection, reply: Reply) -> None:
    """Raise if the next way cannot work either: the agent is dead, or asks for a login."""
    error = decode_object(reply.error)
    if not agent.alive:
        raise agent.gone_error()
    if error.get("code") == -32000 and not dialects.is_session_lost(error):
        raise reply.as_error()


def new_agent_session(agent: AgentConnection, reply: Reply) -> str:
    """The id in the answer to `session/new` or `session/fork`."""
    agent_session_id = decode_object(reply.result).get("sessionId")
    if not isinstance(agent_session_id, str):
        raise internal(f"The agent {agent.name} answered without a sessionId", "agent_error")
    return agent_session_id
