"""`session/fork`: a new session with the history of another, up to a message if `_meta.dragoman.at` names one.

The agent forks its own session if it can. Otherwise, and for another agent (`_meta.dragoman.agent`), the new session
begins with a copy of the journal, without what is undone, and its agent gets a recap with its first prompt.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from dragoman.gateway.delivery.conversation.messages import Message, read_messages
from dragoman.gateway.ids import new_session_id
from dragoman.gateway.json_types import JsonObject, decode_object, own_meta
from dragoman.gateway.lifecycle import restart_agent, worktrees
from dragoman.gateway.lifecycle.create import create_at_agent, setup_params, take_directories
from dragoman.gateway.lifecycle.mcp_servers import check_mcp_servers, configured_servers
from dragoman.gateway.lifecycle.rewinding import session_named
from dragoman.gateway.lifecycle.workspace import (
    check_cwd,
    check_cwd_exists,
    check_directories,
    workspace_root,
)
from dragoman.gateway.lifecycle.worktrees import Place
from dragoman.gateway.ports.acts import NotRecorded, acting
from dragoman.gateway.ports.checkpoints import CheckpointError
from dragoman.gateway.ports.worktrees import RecordedTree
from dragoman.gateway.session import auditing
from dragoman.gateway.session.checkpoints.changes import turn_of
from dragoman.gateway.session.session import Session, result_line
from dragoman.gateway.session.setup import Setup
from dragoman.rpc.request import Request
from dragoman.wire.errors import RpcError, internal, invalid_params, method_not_found

if TYPE_CHECKING:
    from dragoman.gateway.client import ClientConnection

log = logging.getLogger(__name__)

LONGEST_NAME = 200
FILES_OF_NOW = (
    "The files before message {number} are not recorded: this session begins with the files of now."
)


class ForkWish(Struct, frozen=True, kw_only=True):
    """What `_meta.dragoman` of the request says."""

    at: int | str | None = None
    """The number or the client's id of the message that the fork begins before."""
    agent: str | None = None
    name: str | None = None
    """The title of the fork."""
    wake: bool = True
    """Start another agent at once; otherwise with the first prompt."""


@dataclass(frozen=True)
class _Cut:
    """Where the fork leaves the original."""

    message: Message
    drop: int
    """Messages of the original that the fork does not have."""
    recorded: RecordedTree | None
    """The files at that moment; None if they are not recorded."""


async def fork(client: ClientConnection, request: Request) -> None:
    session_id = new_session_id()
    with client.gateway.places.take(client, session_id):
        await _fork(client, request, session_id)


async def _fork(client: ClientConnection, request: Request, session_id: str) -> None:
    original = session_named(client, request)
    params = decode_object(request.params)
    wish = _read(params)
    name = _agent(client, original, wish)
    cwd = check_cwd(params.get("cwd", original.cwd))
    check_mcp_servers(params.get("mcpServers"))
    directories = check_directories(params.get("additionalDirectories"))
    if cwd != original.cwd:
        check_cwd_exists(cwd)
    if original.agent is not None and name == original.agent_name:
        take_directories(directories, original.agent.capabilities, name)
    cut = await _cut(original, wish.at) if wish.at is not None else None
    recorded = cut.recorded if cut is not None else None
    async with (
        _told(client, original, session_id, name, cut),
        worktrees.forked(client, session_id, original, name, cwd, params, recorded) as place,
    ):
        setup = Setup(client.terms.identity.name, params.get("mcpServers"), directories, place.repository)
        session = Session(client.gateway, session_id, name, place.cwd, workspace_root(place.cwd), setup)
        named = {"named": True} if wish.name else {}
        session.entry.know(wish.name or original.entry.title, {**place.extra(), **named})
        await _begin(client, request, original, session, {**params, "cwd": place.cwd}, place, cut, wish)
    if cut is not None and recorded is None and place.repository is not None:
        session.notice(FILES_OF_NOW.format(number=cut.message.number), "info")


async def _begin(client: ClientConnection, request: Request, original: Session, session: Session, params: JsonObject,
                 place: Place, cut: _Cut | None, wish: ForkWish) -> None:  # fmt: skip
    agent = original.agent
    # The agent's box, if it has one, shows the original's worktree alone.
    same = agent is not None and original.agent_name == session.agent_name
    seen = agent is not None and (agent.box is None or place.repository is None)
    whole = cut is None and not original.entry.cut and original.recovery.recap is None
    if agent is not None and same and seen and whole and agent.capabilities.session("fork"):
        configured = await configured_servers(client.gateway, agent.name, place.repository or place.cwd)
        raw = setup_params(request, params, agent, configured, original.agent_session_id)
        await create_at_agent(client, request, agent, session, "session/fork", raw, original)
    elif original.journal is None and ((whole and same) or not original.owned_elsewhere):
        raise method_not_found("session/fork")
    else:
        if cut is None and original.turn is not None:
            cut = await _cut(original, None)  # the turn that runs is not part of it
        await _copy(client, request, original, session, params, place, cut, wish)
    for text in place.notices:
        session.notice(text, "info")


async def _copy(client: ClientConnection, request: Request, original: Session, session: Session, params: JsonObject,
                place: Place, cut: _Cut | None, wish: ForkWish) -> None:  # fmt: skip
    """Begin with a copy of the journal; an agent that forks at a message does so, another gets a recap."""
    gateway = client.gateway
    await gateway.directory.create(session, original, cut.message.event if cut is not None else None)
    gateway.add(session)
    facts: JsonObject = {"forkedFrom": original.id, **place.told()}
    if cut is not None:
        facts["message"] = cut.message.number
    same = original.agent_name == session.agent_name
    if same and cut is not None and not original.entry.cut and not original.owned_elsewhere:
        session.binding.know(original.agent_session_id)
        session.entry.save_extra(
            cut={"session": original.agent_session_id, "drop": cut.drop, "text": cut.message.text}
        )
    result: JsonObject = {}
    try:
        if wish.wake or same:
            result = await restart_agent.restart(gateway, session, client)
    except (RpcError, asyncio.CancelledError) as error:
        if wish.wake or not isinstance(error, RpcError):
            await gateway.close_session(session)
            await gateway.directory.delete(session.id)
            raise
        session.binding.know("")  # it gets a recap when it can be started
        session.entry.save_extra(cut=None)
        session.notice(f"The agent is not available: {error.message}")
    session.attach(client)
    shown = session.result_for(client, result)
    auditing.session_began(session, client.terms.identity.name, original.id, params.get("mcpServers"))
    request.reply(result_line(session.id, shown, facts))
    restart_agent.tell_loss(session)


def _read(params: JsonObject) -> ForkWish:
    try:
        wish = msgspec.convert(own_meta(params), ForkWish)
    except msgspec.ValidationError as error:
        raise invalid_params(f"session/fork: _meta.dragoman: {error}", "params") from error
    if wish.name is None:
        return wish
    name = " ".join(wish.name.split())[:LONGEST_NAME]
    if not name:
        raise invalid_params("session/fork: the name has at least one letter", "name")
    return msgspec.structs.replace(wish, name=name)


def _agent(client: ClientConnection, original: Session, wish: ForkWish) -> str:
    name = wish.agent or original.agent_name
    client.gateway.agent_config(name)
    if name != original.agent_name and client.bound_agent not in (None, name):
        raise invalid_params(
            f"This connection is to the agent {client.bound_agent}: fork into {name} with `dragoman fork`",
            "agent",
        )
    return name


async def _cut(original: Session, at: int | str | None) -> _Cut:
    """Where to cut: before the message `at`, or before the last one."""
    store = original.gateway.store
    if store is None:
        raise invalid_params("This session has no journal (sessions.journal), so it is forked whole", "at")
    await original.wait_settled()
    found = await read_messages(store, original.id)
    message = found.last() if at is None else found.find(at)
    drop = len([one for one in found.shown if one.event >= message.event])
    recorded = None
    if original.entry.repository is not None:
        try:
            turn = await turn_of(original, found, message)
            recorded = await original.gateway.checkpoints.recorded(original.id, turn)
        except (CheckpointError, RpcError) as error:
            log.info("fork begins with the files of now: %s", error, extra={"session": original.id})
    return _Cut(message, drop, recorded)


@asynccontextmanager
async def _told(
    client: ClientConnection, original: Session, session_id: str, agent: str, cut: _Cut | None
) -> AsyncIterator[None]:
    """Record the fork in the audit before it is made."""
    facts: JsonObject = {
        "session": original.id,
        "agent": original.agent_name,
        "by": client.terms.identity.name,
        "fork": session_id,
        "forkAgent": agent,
    }
    if cut is not None:
        facts["message"] = cut.message.number
    try:
        async with acting(client.gateway.audit, "session_forked", facts):
            yield
    except NotRecorded as error:
        raise internal(f"The audit cannot be written, so nothing was forked: {error}", "audit") from error
