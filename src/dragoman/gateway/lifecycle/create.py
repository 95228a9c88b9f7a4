"""How sessions begin and end: new, close, delete (G-050 to G-057). `load` has load and resume, `forking` fork."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Raw

from dragoman.gateway.access.capabilities import AgentCapabilities
from dragoman.gateway.ids import new_session_id
from dragoman.gateway.json_types import JsonObject, decode_object, encode, own_meta
from dragoman.gateway.lifecycle import restart_agent, worktrees
from dragoman.gateway.lifecycle.mcp_servers import check_mcp_servers, configured_servers, mcp_servers
from dragoman.gateway.lifecycle.workspace import (
    check_cwd,
    check_cwd_exists,
    check_directories,
    workspace_root,
)
from dragoman.gateway.lifecycle.worktrees import Place
from dragoman.gateway.ports.store import SessionHeld, StoreError
from dragoman.gateway.registry import CLOSE_TIMEOUT, Registry
from dragoman.gateway.rewriting.rewrite import reply_for_client, session_of
from dragoman.gateway.session import auditing
from dragoman.gateway.session.session import Session, result_line
from dragoman.gateway.session.setup import Setup
from dragoman.rpc.request import Request
from dragoman.wire import message
from dragoman.wire.errors import RpcError, internal, invalid_params, method_not_found

if TYPE_CHECKING:
    from dragoman.gateway.agent import AgentConnection
    from dragoman.gateway.client import ClientConnection
    from dragoman.gateway.registry import Registry

log = logging.getLogger(__name__)


async def new(client: ClientConnection, request: Request) -> None:
    session_id = new_session_id()
    with client.gateway.places.take(client, session_id):
        await _new(client, request, session_id)


async def _new(client: ClientConnection, request: Request, session_id: str) -> None:
    params = decode_object(request.params)
    cwd = check_cwd(params.get("cwd"))
    directories = check_directories(params.get("additionalDirectories"))
    check_mcp_servers(params.get("mcpServers"))
    name = client.agent_for(cwd, params)
    client.gateway.agent_config(name)
    check_cwd_exists(cwd)
    configured = await configured_servers(client.gateway, name, cwd)
    async with worktrees.placed(client, session_id, name, cwd, params, _sandbox(params)) as place:
        await _begin(
            client, request, session_id, name, {**params, "cwd": place.cwd}, place, configured, directories
        )


async def _begin(client: ClientConnection, request: Request, session_id: str, name: str, params: JsonObject,
                 place: Place, configured: Sequence[JsonObject], directories: list[str]) -> None:  # fmt: skip
    workspace = workspace_root(place.cwd)
    agent = await client.gateway.pool.take(client, name, place.cwd, workspace, place.sandbox)
    setup = Setup(client.terms.identity.name, params.get("mcpServers"), directories, place.repository)
    session = Session(client.gateway, session_id, name, place.cwd, workspace, setup)
    session.entry.know(None, place.extra())
    try:
        raw = setup_params(request, params, agent, configured)
    except RpcError:
        client.gateway.pool.reap(agent)
        raise
    await create_at_agent(client, request, agent, session, "session/new", raw)
    for text in place.notices:
        session.notice(text, "info")


def _sandbox(params: JsonObject) -> str | None:
    """The sandbox that a client asks for in `_meta.dragoman.sandbox`."""
    name = own_meta(params).get("sandbox")
    if name is not None and not isinstance(name, str):
        raise invalid_params("_meta.dragoman.sandbox must be the name of a sandbox", "sandbox")
    return name or None


async def create_at_agent(client: ClientConnection, request: Request, agent: AgentConnection, session: Session,
                          method: str, params: bytes, original: Session | None = None) -> None:  # fmt: skip
    """Create a session at the agent; the client gets the answer before any event of the session (G-082)."""
    agent.expect_session()
    created = kept = False
    try:
        patience = client.gateway.config.limits.session_timeout
        reply = await agent.call(method, params, request, patience=patience)
        if not reply.ok:
            request.answer(reply_for_client(reply, "", ""))
            return
        session.binding.know(restart_agent.new_agent_session(agent, reply))
        if agent.box is not None:
            session.stay_in_box(agent.box)
        kept = True
        await client.gateway.keep(session, original)
        if not agent.alive:
            raise agent.gone_error()
        # From here to the end nothing awaits: no update can come between.
        session.bind(agent, session.agent_session_id)
        if original is None:
            session.updates.meter.starts_at_zero()
        created = True
        client.gateway.add(session)
        session.attach(client)
        result = session.result_for(client, session.options.take_result(reply))
        session.tell_offer()
        facts: JsonObject = {} if original is None else {"forkedFrom": original.id}
        if "worktree" in session.entry.extra:
            facts["worktree"] = session.entry.extra["worktree"]
        former = original.id if original is not None else None
        servers = decode_object(request.params).get("mcpServers")
        auditing.session_began(session, client.terms.identity.name, former, servers)
        request.reply(result_line(session.id, result, facts))
    finally:
        agent.session_created(session if created else None)
        if not created:
            client.gateway.pool.reap(agent)
        if kept and not created:  # no client knows the session: it must not be listed
            client.gateway.spawn(_forget(client.gateway, session))
    agent.release_early(session, replayed=original is not None and session.journal is not None)
    client.gateway.idle(session)


async def _forget(gateway: Registry, session: Session) -> None:
    try:
        await gateway.directory.delete(session.id)
    except StoreError as error:
        log.warning(
            "a session that came to nothing is still stored: %s", error, extra={"session": session.id}
        )


async def close(client: ClientConnection, request: Request) -> None:
    """Close a session: the running prompt is answered first; the agent is asked too if it supports close (G-057)."""
    here = (
        client.gateway.sessions.get(session_of(request.params) or "") if client.terms.local_process else None
    )
    session = here or client.require_session(request)
    if session.owned_elsewhere and session.agent is not None:
        # For all clients, not only for those of this process.
        await session.agent.ask(
            "session/close", encode({"sessionId": session.agent_session_id}), CLOSE_TIMEOUT
        )
    await client.gateway.end_session(session)
    request.reply(message.EMPTY)


async def delete(client: ClientConnection, request: Request) -> None:
    """Delete a session; an unknown one counts as deleted (ACP v1, session list)."""
    session_id = str(decode_object(request.params).get("sessionId"))
    gateway = client.gateway
    known = await gateway.directory.get(session_id)
    if known is None:
        request.reply(message.EMPTY)
        return
    client.check_agent(known.agent, session_id)
    session = gateway.sessions.get(session_id)
    if known.live and session is None:
        raise internal("The session is live in another process. Close it there first", "session_held")
    by = client.terms.identity.name
    gateway.audit.record("session_deleted", {"session": session_id, "agent": known.agent, "by": by})
    if known.agent_session_id:
        await _delete_at_agent(client, known.agent, known.agent_session_id, session)
    try:
        await _end_and_delete(gateway, session_id)
    except SessionHeld as error:
        raise internal(f"{error} Close it there first", "session_held", sessionId=session_id) from error
    except StoreError as error:
        raise internal(str(error), error.code) from error
    await _forget_answers(gateway, session_id)
    gateway.deleted(session_id)
    discard = own_meta(decode_object(request.params)).get("discard") is True
    stays = await worktrees.release(gateway, session_id, by, discard=discard)
    told: JsonObject = {} if stays is None else {"_meta": {"dragoman": {"worktree": stays}}}
    request.reply(encode(told))


async def _forget_answers(gateway: Registry, session_id: str) -> None:
    """Answers that were remembered for this session alone go with it."""
    from dragoman.policy.memory.file import Busy
    from dragoman.policy.memory.pattern import NotRemembered

    kept = gateway.remembered
    try:
        try:
            kept.forget_session(session_id, wait=False)
        except Busy:
            await asyncio.to_thread(kept.wait_for_lock)
            kept.forget_session(session_id, wait=False)
    except NotRemembered as error:
        log.warning("answers of a deleted session stay remembered: %s", error, extra={"session": session_id})


async def _end_and_delete(gateway: Registry, session_id: str) -> None:
    """End the session if it is live here, or was about to be, and delete it; loads in the meantime fail."""
    gateway.closings.deleting.add(session_id)
    try:
        async with gateway.taking(session_id):
            session = gateway.sessions.get(session_id)
        if session is not None:
            await gateway.end_session(session)
        await gateway.closings.wait_over(session_id)
        await gateway.directory.delete(session_id)
    finally:
        gateway.closings.deleting.discard(session_id)


async def _delete_at_agent(client: ClientConnection, name: str, agent_session_id: str,
                           session: Session | None) -> None:  # fmt: skip
    """Delete the session at its agent too, or it would be in the agent's next list."""
    running = [agent for agent in client.gateway.pool.agents_of(client) if agent.name == name and agent.alive]
    agent = session.agent if session is not None and session.agent is not None else next(iter(running), None)
    if agent is None and client.bound_agent == name:
        agent = await client.gateway.pool.borrow(client, name)
    if agent is not None and agent.capabilities.session("delete"):
        reply = await agent.ask("session/delete", encode({"sessionId": agent_session_id}), CLOSE_TIMEOUT)
        if not reply.ok and not client.gateway.journaling:
            raise reply.as_error()
    elif not client.gateway.journaling:
        raise method_not_found("session/delete")


def setup_params(request: Request, params: JsonObject, agent: AgentConnection, configured: Sequence[JsonObject],
                 agent_session_id: str | None = None) -> bytes:  # fmt: skip
    """The client's params, with the agent's session id and MCP servers in the form that the agent accepts."""
    directories = check_directories(params.get("additionalDirectories"))
    if agent.box is not None:
        agent.box.check(str(params.get("cwd")), directories)
    take_directories(directories, agent.capabilities, agent.name)
    raw = message.members(request.params)
    if "cwd" in params:
        raw["cwd"] = Raw(encode(params["cwd"]))
    if not agent.is_owner:
        _drop_own_meta(raw)
    servers = mcp_servers(params.get("mcpServers"), agent.capabilities, agent.name, configured)
    raw["mcpServers"] = Raw(encode(servers))
    if agent_session_id is not None:
        raw["sessionId"] = Raw(encode(agent_session_id))
    return encode(raw)


def take_directories(directories: list[str], agent: AgentCapabilities, agent_name: str) -> None:
    """Raise for an agent that would ignore the directories (G-035)."""
    if directories and not agent.session("additionalDirectories"):
        raise invalid_params(
            f"The agent {agent_name} does not take additionalDirectories "
            "(it lacks sessionCapabilities.additionalDirectories)",
            "additionalDirectories",
            capability="sessionCapabilities.additionalDirectories",
        )


def _drop_own_meta(raw: dict[str, Raw]) -> None:
    """Remove `_meta.dragoman`, which is for this gateway: an agent that is a Dragoman too would act on it."""
    meta = message.members(raw["_meta"]) if "_meta" in raw else {}
    if meta.pop("dragoman", None) is not None:
        del raw["_meta"]
        if meta:
            raw["_meta"] = Raw(encode(meta))
