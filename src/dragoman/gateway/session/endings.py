"""The end of a turn, and of a session's use of its agent: nothing is left open (G-093, G-110)."""

from __future__ import annotations

import asyncio
import functools
import logging
from functools import partial
from typing import TYPE_CHECKING

from dragoman.gateway.delivery import events
from dragoman.gateway.json_types import JsonObject, as_object
from dragoman.gateway.rewriting.dialects import STOP_REASONS
from dragoman.gateway.rewriting.updates import update_line
from dragoman.gateway.session import auditing
from dragoman.rpc.request import Reply
from dragoman.wire.errors import RpcError, internal

if TYPE_CHECKING:
    from dragoman.gateway.agent import AgentConnection
    from dragoman.gateway.session.session import Session
    from dragoman.gateway.session.turn import Turn

log = logging.getLogger(__name__)

RUN_ON_GRACE = 0.5
"""Seconds that an agent has to end the command of a cancelled turn."""


def turn_ended(session: Session, turn: Turn, reply: Reply, outcome: JsonObject) -> None:
    """Close what the turn left open and send its answer; `outcome` is the decoded result or error in `reply`."""
    session.prompts.turn_ended(turn)
    session.silence.turn_ends()
    refused = session.follows and as_object(outcome.get("data")).get("reason") == "prompt_in_flight"
    if len(session.questions) and not refused:
        session.questions.cancel_all("turn_end")
    command = session.tools.command_since() if turn.cancelled else None
    if not refused:  # else another turn runs at the owner, and what is open is of that one
        for closing in session.tools.fail_all(
            partial(auditing.tool_ended, session)
        ):  # quirk tool_call_left_open
            session.publish(closing)
    if command is not None and session.agent is not None and not session.shares_agent:
        session.recovery.settle(session.gateway.spawn(_end_command(session, session.agent, command)))
    ok, stop_reason = reply.ok, outcome.get("stopReason")
    if session.feed.reaches(turn.client) and not session.follows:
        if ok and isinstance(stop_reason, str) and stop_reason in STOP_REASONS:
            record, update = _usual_end(session.id, session.state, stop_reason)
        else:
            facts = {"stopReason": stop_reason} if ok else {"error": outcome}
            record, update = _end(session.id, session.state, facts)
        session.feed.record(record)
        session.feed.publish(events.STATE, update, turn.client)
    session.recovery.turn_ended(ok=ok, stopped=ok and stop_reason == "cancelled")
    session.after_replay(partial(turn.request.answer, turn.as_told(reply)), turn.client)
    session.prompts.drop(failed=session.recovery.failed, stopped=session.recovery.stopped)


def _end(session_id: str, state: str, facts: JsonObject) -> tuple[bytes, bytes]:
    """The end of a turn, as the record for the journal and as the update for other clients."""
    update = {"sessionUpdate": "session_info_update", "_meta": {"dragoman": {"state": state, **facts}}}
    return events.record("turn_ended", **facts), update_line(session_id, update)


@functools.lru_cache(maxsize=256)
def _usual_end(session_id: str, state: str, stop_reason: str) -> tuple[bytes, bytes]:
    """`_end` for a plain stop reason, cached: nearly all turns of a session end alike."""
    return _end(session_id, state, {"stopReason": stop_reason})


def turn_over(session: Session) -> None:
    """Update directory, parking and watchers, after the answer was sent."""
    session.services.checkpoints.catch_up()
    if session.closed:
        return
    if not session.follows:
        session.entry.touch(session.state)
    session.gateway.idle(session)
    session.changed()
    session.prompts.turn_over()


def give_up_agent(session: Session) -> None:
    """End an agent that ignores cancel, or, if other sessions share it, only detach this session (G-093)."""
    agent = session.agent
    if agent is None or session.follows:  # the owner deals with the agent
        return
    if session.shares_agent:
        # Updates that the agent still sends for that turn are for an unknown session, and are dropped.
        error = internal(f"The agent {session.agent_name} ignored a cancel", "agent_exited")
        _let_go(session, error, crashed=False)
        session.binding.know("")
        return
    error = internal(f"The agent {session.agent_name} ignored a cancel and was ended", "agent_exited")
    _let_go(session, error, crashed=False)
    session.gateway.spawn(agent.stop())


async def _end_command(session: Session, agent: AgentConnection, since: float) -> None:
    """End an agent whose command outlives its cancelled turn; the next prompt restarts the agent (quirk)."""
    await asyncio.sleep(RUN_ON_GRACE)
    if agent.handle is None or session.agent is not agent or not await agent.handle.has_process_since(since):
        return
    log.info("a command runs on after cancel, ending its agent", extra={"session": session.id})
    error = internal(
        f"The agent {session.agent_name} let a cancelled command run on and was ended", "agent_exited"
    )
    _let_go(session, error, crashed=False)
    await agent.stop()


def agent_gone(session: Session, error: RpcError, *, expected: bool) -> None:
    """Close everything that was open at an agent that ended, and fail the turn (G-110)."""
    _let_go(session, error, crashed=not expected)
    if session.turn is not None:
        session.turn.fail(error)


def _let_go(session: Session, error: RpcError, *, crashed: bool) -> None:
    session.binding.lose(error)
    if crashed:
        session.recovery.crashed()
    session.record("agent_exited", message=error.message, expected=not crashed)
    for closing in session.tools.fail_all(partial(auditing.tool_ended, session)):
        session.publish(closing)
    session.questions.drop_all()
    session.forwarding.withdraw()
    session.feed.agent_gone()
    session.services.release_terminals()
    session.gateway.spawn(session.services.close())
    session.changed()
