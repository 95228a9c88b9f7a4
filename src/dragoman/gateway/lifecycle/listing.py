"""`session/list`: the stored sessions, and those that only the agents know (G-042, G-055)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from dragoman.gateway.json_types import JsonObject, decode_object, encode
from dragoman.gateway.lifecycle.workspace import check_cwd
from dragoman.gateway.ownership.entries import SessionEntry
from dragoman.gateway.ports.store import BadCursor, StoreError
from dragoman.rpc.request import Request
from dragoman.wire.errors import METHOD_NOT_FOUND, internal, invalid_params

if TYPE_CHECKING:
    from dragoman.gateway.agent import AgentConnection
    from dragoman.gateway.client import ClientConnection

LIST_TIMEOUT = 5.0
"""Seconds an agent has to answer; the list is answered without the sessions of a slow one."""
AGENT_PAGES = 10
"""Pages of an agent's own list that are merged: an agent whose list never ends must not block the answer."""


async def list_sessions(client: ClientConnection, request: Request) -> None:
    params = decode_object(request.params)
    cwd, cursor = params.get("cwd"), params.get("cursor")
    if cwd is not None:
        check_cwd(cwd)
    if cursor is not None and not isinstance(cursor, str):
        raise invalid_params("cursor must be the nextCursor of an earlier page", "cursor")
    failures: JsonObject = {}
    if cursor is None:
        failures = await _merge_agents(client, cwd)
    directory = client.gateway.directory
    try:
        page = await directory.list(
            cwd=cwd, agent=client.bound_agent, cursor=cursor, limit=client.terms.list_limit
        )
    except BadCursor as error:
        raise invalid_params(str(error), "cursor") from error
    except StoreError as error:
        raise internal(str(error), error.code) from error
    result: JsonObject = {"sessions": [_session_info(client, each) for each in page.sessions]}
    if page.next_cursor is not None:
        result["nextCursor"] = page.next_cursor
    if failures:
        result["_meta"] = {"dragoman": {"failed": failures}}
    request.reply(encode(result))


async def _merge_agents(client: ClientConnection, cwd: object) -> JsonObject:
    """Ask the running agents; only a connection bound to one agent starts it for that (G-055)."""
    gateway = client.gateway
    agents = [agent for agent in gateway.pool.agents_of(client) if agent.capabilities.result]
    if client.bound_agent is not None and client.may_control and not agents:
        agents = [await gateway.pool.borrow(client, client.bound_agent)]
    able = {each.name: each for each in agents if each.alive and each.capabilities.session("list")}
    answers = await asyncio.gather(*(_ask(client, agent, cwd) for agent in able.values()))
    return {name: failure for name, failure in zip(able, answers, strict=True) if failure is not None}


async def _ask(client: ClientConnection, agent: AgentConnection, cwd: object) -> str | None:
    """Merge one agent's own list; returns a failure as text, which is reported beside the result."""
    params: JsonObject = {} if cwd is None else {"cwd": cwd}
    for _ in range(AGENT_PAGES):
        try:
            reply = await asyncio.wait_for(agent.call("session/list", encode(params)), LIST_TIMEOUT)
        except TimeoutError:
            return f"no answer within {LIST_TIMEOUT:g} s"
        if not reply.ok:
            error = decode_object(reply.error)
            return None if error.get("code") == METHOD_NOT_FOUND else str(error.get("message"))
        result = decode_object(reply.result)
        sessions = result.get("sessions")
        for info in sessions if isinstance(sessions, list) else []:
            if isinstance(info, dict) and isinstance(info.get("sessionId"), str):
                try:
                    await client.gateway.directory.add_listed(agent.name, info)
                except StoreError as error:
                    return str(error)
        if not isinstance(result.get("nextCursor"), str):
            return None
        params["cursor"] = result["nextCursor"]
    return None


def _session_info(client: ClientConnection, kept: SessionEntry) -> JsonObject:
    live = client.gateway.sessions.get(kept.id)
    state: JsonObject = {
        "agent": kept.agent,
        "live": live is not None or kept.live,
        "state": live.state if live is not None else kept.state,
        "pending": live.turn is not None if live is not None else kept.live and kept.state == "working",
    }
    info: JsonObject = {**kept.info, "sessionId": kept.id, "cwd": kept.cwd}
    for name, value in (
        ("title", live.entry.title if live is not None else kept.title),
        ("updatedAt", kept.updated_at),
    ):
        if value is not None:
            info[name] = value
    if kept.additional_directories:
        info["additionalDirectories"] = list(kept.additional_directories)
    meta = info.get("_meta")
    info["_meta"] = {**(meta if isinstance(meta, dict) else {}), "dragoman": state}
    return info
