"""How sessions begin, come back and end: new, load, resume, fork, list, close, delete (G-050 to G-057)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from msgspec import Raw

from dragoman.gateway.directory import Entry
from dragoman.gateway.ids import new_session_id
from dragoman.gateway.json_types import JsonObject, as_object, decode_object, encode
from dragoman.gateway.mcp_servers import mcp_servers
from dragoman.gateway.rewrite import reply_for_client
from dragoman.gateway.session import Session
from dragoman.gateway.workspace import check_cwd, check_cwd_exists, check_directories, workspace_root
from dragoman.rpc.peer import Reply, Request
from dragoman.wire import message
from dragoman.wire.errors import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    Malformed,
    invalid_params,
    method_not_found,
    session_not_found,
)

if TYPE_CHECKING:
    from dragoman.gateway.agent import AgentConnection
    from dragoman.gateway.client import ClientConnection

Setup = Callable[["ClientConnection", Request], Awaitable[None]]

CLOSE_TIMEOUT = 5.0
"""Seconds an agent has to answer `session/close` before it is ended without (seed 004)."""
LIST_TIMEOUT = 5.0
"""Seconds an agent has to answer `session/list`; a slow one costs the list its part, not its answer (G-055)."""


async def new(client: ClientConnection, request: Request) -> None:
    params = decode_object(request.params)
    cwd = check_cwd(params.get("cwd"))
    directories = check_directories(params.get("additionalDirectories"))
    client.gateway.check_room()
    name = client.agent_for(cwd, params)
    client.gateway.agent_config(name)
    check_cwd_exists(cwd)
    workspace = workspace_root(cwd)
    agent = await client.gateway.pool.take(client, name, cwd, workspace)
    session = Session(client.gateway, new_session_id(), name, cwd, workspace)
    session.additional_directories = directories
    await _create(client, request, agent, session, "session/new", _setup_params(request, params, agent))


async def fork(client: ClientConnection, request: Request) -> None:
    """Unstable: offered by agents that have it, in the process that holds the original."""
    original = client.require_session(request)
    agent = original.require_agent()
    if not agent.capabilities.session("fork"):
        raise method_not_found("session/fork")
    client.gateway.check_room()
    params = decode_object(request.params)
    cwd = check_cwd(params.get("cwd", original.cwd))
    session = Session(client.gateway, new_session_id(), original.agent_name, cwd, workspace_root(cwd))
    raw = _setup_params(request, params, agent, original.agent_session_id)
    await _create(client, request, agent, session, "session/fork", raw)


async def _create(client: ClientConnection, request: Request, agent: AgentConnection, session: Session,
                  method: str, params: bytes) -> None:  # fmt: skip
    """Ask the agent for a session; the client hears of it before anything else about it (G-082)."""
    agent.expect_session()
    created: Session | None = None
    try:
        reply = await agent.call(method, params, request)
        if reply.ok:
            agent_session_id = decode_object(reply.result).get("sessionId")
            if not isinstance(agent_session_id, str):
                raise Malformed(
                    INTERNAL_ERROR, f"The agent {agent.name} answered {method} without a sessionId"
                )
            session.bind(agent, agent_session_id)
            created = session
    finally:
        agent.session_created(created)
        if created is None:
            client.gateway.pool.reap(agent)
    if created is None:
        request.answer(reply_for_client(reply, "", ""))
        return
    client.gateway.add(session)
    client.gateway.directory.add(Entry(session.id, session.agent_name, session.agent_session_id, session.cwd))
    session.attach(client)
    request.reply(session.session_result(reply, boolean=client.capabilities.boolean_options))
    agent.release_early(session)


async def load(client: ClientConnection, request: Request) -> None:
    """All of the agent's replay before the answer (G-081)."""
    await _bring_back(client, request, "session/load")


async def resume(client: ClientConnection, request: Request) -> None:
    await _bring_back(client, request, "session/resume")


async def _bring_back(client: ClientConnection, request: Request, method: str) -> None:
    params = decode_object(request.params)
    session_id = str(params.get("sessionId"))
    cwd = check_cwd(params.get("cwd"))
    check_directories(params.get("additionalDirectories"))
    entry = client.gateway.directory.get(session_id)
    if entry is None or (client.bound_agent is not None and entry.agent != client.bound_agent):
        raise session_not_found(session_id)
    session = client.gateway.sessions.get(session_id)
    if session is None or session.agent is None:
        client.gateway.check_room()
        workspace = workspace_root(cwd)
        session = Session(client.gateway, session_id, entry.agent, cwd, workspace)
        agent = await client.gateway.pool.take(client, entry.agent, cwd, workspace)
    else:
        agent = session.require_agent()
    _require(agent, method)
    session.bind(agent, entry.agent_session_id)
    agent.sessions[entry.agent_session_id] = session
    client.gateway.add(session)
    session.attach(client)
    try:
        reply = await agent.call(
            method, _setup_params(request, params, agent, entry.agent_session_id), request
        )
    except asyncio.CancelledError:
        await client.gateway.close_session(session)
        raise
    if not reply.ok:
        await client.gateway.close_session(session)
        request.answer(reply_for_client(reply, entry.agent_session_id, session_id))
        return
    result = session.session_result(reply, boolean=client.capabilities.boolean_options)
    session.after_events(lambda: request.reply(_without_session_id(result)))


async def list_sessions(client: ClientConnection, request: Request) -> None:
    params = decode_object(request.params)
    cwd = params.get("cwd")
    if cwd is not None:
        check_cwd(cwd)
    if params.get("cursor") is not None:
        raise invalid_params("Unknown cursor: this list has only one page", "cursor")
    gateway = client.gateway
    name = client.bound_agent
    note: JsonObject = {}
    agents = gateway.pool.agents_of(client)
    if name is not None and not agents:
        agents = [await gateway.pool.borrow(client, name)]
    for agent in {each.name: each for each in agents if each.capabilities.session("list")}.values():
        failure = await _ask_list(client, agent, cwd)
        if failure is not None:
            note[agent.name] = failure
    sessions = [
        _session_info(client, entry)
        for entry in gateway.directory.entries()
        if (name is None or entry.agent == name) and (cwd is None or entry.cwd == cwd)
    ]
    sessions.sort(key=lambda info: str(info.get("updatedAt") or ""), reverse=True)
    result: JsonObject = {"sessions": sessions}
    if note:
        result["_meta"] = {"dragoman": {"failed": note}}
    request.reply(encode(result))


async def close(client: ClientConnection, request: Request) -> None:
    """The prompt's answer first, then ours; the agent is told if it wants to know (G-057)."""
    session = client.require_session(request)
    await end_session(session)
    request.reply(message.EMPTY)


async def end_session(session: Session) -> None:
    """Cancel the turn, tell the agent, let go of everything."""
    turn = session.turn
    if turn is not None:
        session.cancel()
    agent = session.agent
    if agent is not None and agent.alive and agent.capabilities.session("close"):
        params = encode({"sessionId": session.agent_session_id})
        try:
            await asyncio.wait_for(agent.call("session/close", params), CLOSE_TIMEOUT)
        except TimeoutError:
            pass  # it is ended with its process in any case
    if turn is not None and not turn.settled:
        turn.settle(Reply(result=b'{"stopReason":"cancelled"}'))
    session.questions.cancel_all("close")
    await session.gateway.close_session(session)


async def delete(client: ClientConnection, request: Request) -> None:
    """An unknown session is deleted already (ACP v1, session list)."""
    session_id = str(decode_object(request.params).get("sessionId"))
    entry = client.gateway.directory.get(session_id)
    if entry is None:
        request.reply(message.EMPTY)
        return
    agent = await client.gateway.pool.borrow(client, entry.agent)
    session = client.gateway.sessions.get(session_id)
    if session is not None:
        agent = session.agent or agent
    if not agent.capabilities.session("delete"):
        raise method_not_found("session/delete")
    reply = await agent.call("session/delete", encode({"sessionId": entry.agent_session_id}))
    if reply.ok:
        client.gateway.directory.remove(session_id)
        if session is not None:
            await end_session(session)
    request.answer(reply_for_client(reply, entry.agent_session_id, session_id))


async def _ask_list(client: ClientConnection, agent: AgentConnection, cwd: object) -> str | None:
    """Merge one agent's own list; a failure is told beside the result, not instead of it."""
    params = encode({} if cwd is None else {"cwd": cwd})
    try:
        reply = await asyncio.wait_for(agent.call("session/list", params), LIST_TIMEOUT)
    except TimeoutError:
        return f"no answer within {LIST_TIMEOUT:g} s"
    if not reply.ok:
        error = decode_object(reply.error)
        return None if error.get("code") == METHOD_NOT_FOUND else str(error.get("message"))
    sessions = decode_object(reply.result).get("sessions")
    for info in sessions if isinstance(sessions, list) else []:
        if isinstance(info, dict):
            client.gateway.directory.listed(agent.name, info)
    return None


def _session_info(client: ClientConnection, entry: Entry) -> JsonObject:
    info = {key: value for key, value in entry.info.items() if value is not None}  # nulls are omitted (D-37)
    live = client.gateway.sessions.get(entry.id)
    state = {
        "agent": entry.agent,
        "live": live is not None,
        "pending": live is not None and live.turn is not None,
    }
    meta = {**as_object(info.get("_meta")), "dragoman": state}
    return {**info, "sessionId": entry.id, "cwd": entry.cwd, "_meta": meta}


def _setup_params(request: Request, params: JsonObject, agent: AgentConnection,
                  agent_session_id: str | None = None) -> bytes:  # fmt: skip
    """What the client sent, with the agent's session id and servers in the shape that the agent takes."""
    raw = message.members(request.params)
    raw["mcpServers"] = Raw(encode(mcp_servers(params.get("mcpServers"), agent.capabilities, agent.name)))
    if agent_session_id is not None:
        raw["sessionId"] = Raw(encode(agent_session_id))
    return encode(raw)


def _require(agent: AgentConnection, method: str) -> None:
    able = agent.capabilities.load if method == "session/load" else agent.capabilities.session("resume")
    if not able:
        raise method_not_found(method)


def _without_session_id(result: bytes) -> bytes:
    """Some agents add one (claude 0.49, opencode 1.18); v1 has none here (D-36)."""
    members = message.members(result)
    return encode(members) if members.pop("sessionId", None) is not None else result
