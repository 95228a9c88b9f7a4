"""The commands of a page and the table of their handlers by type."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Raw

from dragoman.bridge import limits
from dragoman.bridge.commands import fields, opening, paths
from dragoman.bridge.errors import BridgeError
from dragoman.bridge.events.summary import summary
from dragoman.bridge.events.translate import lost, translate
from dragoman.bridge.message import Message
from dragoman.gateway.delivery import transcript
from dragoman.gateway.json_types import JsonObject, encode
from dragoman.gateway.ownership.entries import RUNNING_STATES
from dragoman.gateway.ports.store import BadCursor, Row
from dragoman.gateway.session.session import Session
from dragoman.wire.timestamps import timestamp

if TYPE_CHECKING:
    from dragoman.bridge.bridge import Bridge
    from dragoman.bridge.client import BridgeClient

PATIENCE = 1.0
"""Seconds to wait for a question that a page read in the journal and the owner has not asked here yet."""

Outcome = asyncio.Future[str | BridgeError | None]
"""The result of a command: a session id, an error, or None."""
Handler = Callable[["BridgeClient", JsonObject], Awaitable[str | Outcome | None]]


class Repeated(Exception):
    """The session's journal shows that the command was done before, possibly by an earlier process."""

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id)
        self.session_id = session_id


@dataclass(frozen=True, slots=True)
class Command:
    handler: Handler
    observers: bool = False
    """Allowed for the role `observe`; the command changes nothing, so a repeated one is run again."""


# -- sessions


async def list_sessions(client: BridgeClient, command: JsonObject) -> str | None:
    client.listing = True
    gateway = client.bridge.gateway
    try:
        page = await gateway.directory.list(
            cwd=fields.text(command, "cwd"),
            agent=fields.text(command, "agent"),
            cursor=fields.text(command, "cursor"),
            query=fields.text(command, "search"),
        )
    except BadCursor as error:
        raise BridgeError("bad_cursor", "This page of the list is gone.", "Ask for the list anew.") from error
    event: JsonObject = {
        "type": "session_list",
        "sessions": [summary(gateway.sessions.get(each.id), each) for each in page.sessions],
    }
    if page.next_cursor is not None:
        event["nextCursor"] = page.next_cursor
    client.tell({**event, **fields.echoed_id(command)})
    return None


async def leave_session(client: BridgeClient, command: JsonObject) -> str | None:
    session_id = fields.session_id(command)
    client.unwatch(session_id)  # first: a page that watches a session without attachment is attached again
    session = client.gateway_client.client.session(session_id)
    if session is not None:
        session.detach(client.gateway_client.client)
    return session_id


async def rename_session(client: BridgeClient, command: JsonObject) -> str | None:
    title = " ".join(str(command.get("title") or "").split())[: limits.TITLE_LENGTH]
    if not title:
        raise BridgeError("bad_request", "A title has at least one letter.")
    async with client.bridge.live_session(fields.session_id(command)) as session:
        if session.owned_elsewhere:
            raise BridgeError("session_held", "Another program has this session open.")
        session.rename(title)
        await session.wait_settled()
    return session.id


async def close_session(client: BridgeClient, command: JsonObject) -> str | None:
    async with client.bridge.live_session(fields.session_id(command)) as session:
        background_client = client.bridge.background_clients.gateway_client()
        await background_client.result("session/close", {"sessionId": session.id})
    return session.id


async def delete_session(client: BridgeClient, command: JsonObject) -> str | None:
    session_id = fields.session_id(command)
    await client.gateway_client.result("session/delete", {"sessionId": session_id})
    return session_id


async def history(client: BridgeClient, command: JsonObject) -> str | None:
    """Send earlier events."""
    kept = await client.bridge.find(fields.session_id(command))
    store = client.bridge.gateway.store
    if store is None:
        raise BridgeError("not_kept", opening.NOT_KEPT)
    before = fields.number(command, "beforeSeq", kept.last_seq + 1)
    limit = fields.number(command, "limit", limits.PAGE_EVENTS)
    rows = await store.read_before(kept.id, before, max(1, min(limit, limits.HISTORY_EVENTS)))
    events = [Raw(event) for row in rows for event in _events(kept.id, row)]
    more = bool(rows) and rows[0].first_seq > kept.first_seq
    page = {
        "type": "history",
        "sessionId": kept.id,
        "events": events,
        "more": more,
        **fields.echoed_id(command),
    }
    client.send_raw(encode(page))
    return kept.id


def _events(session_id: str, row: Row) -> list[bytes]:
    if row.damaged:
        return [lost(session_id, row.first_seq, row.last_seq)]
    time = timestamp(row.ts)
    return [translate(session_id, seq, time, event) for seq, event in enumerate(row.events(), row.first_seq)]


# -- a conversation


async def send_message(client: BridgeClient, command: JsonObject) -> Outcome:
    bridge, session_id = client.bridge, fields.session_id(command)
    message = Message.read(command, command.get("clientMessageId"))
    async with bridge.live_session(session_id) as session:
        hub = await bridge.hub(session_id)
        if hub.knows(message.id):
            raise Repeated(session_id)
        if not client.watches(session_id):
            await opening.attach(client, session_id)
        accepted: Outcome = asyncio.get_running_loop().create_future()
        if session.owned_elsewhere and await _is_in_turn(bridge, session_id):
            raise BridgeError("busy", "A turn is running in this session, which another program has open.")
        identity = client.terms.identity
        hub.submit(session, message, identity, lambda error: accepted.set_result(error or session_id))
        return accepted


async def _is_in_turn(bridge: Bridge, session_id: str) -> bool:
    """Whether a turn runs at the owner. The directory may be a second behind; the journal has the end of a turn."""
    if (await bridge.find(session_id)).state not in RUNNING_STATES:
        return False
    store = bridge.gateway.store
    return store is None or await transcript.is_in_turn(store, session_id, pages=1) is not False


async def edit_queued(client: BridgeClient, command: JsonObject) -> str | None:
    return await _change_queue(client, command, Message.read(command, None))


async def drop_queued(client: BridgeClient, command: JsonObject) -> str | None:
    return await _change_queue(client, command, None)


async def send_queued(client: BridgeClient, command: JsonObject) -> str | None:
    async with client.bridge.live_session(fields.session_id(command)) as session:
        hub = await client.bridge.hub(session.id)
        hub.release(session, command.get("queuedId"), client.terms.identity)
        await session.wait_settled()
    return session.id


async def _change_queue(client: BridgeClient, command: JsonObject, message: Message | None) -> str | None:
    async with client.bridge.live_session(fields.session_id(command)) as session:
        hub = await client.bridge.hub(session.id)
        hub.edit(session, command.get("queuedId"), message, client.terms.identity)
        await session.wait_settled()
    return session.id


async def cancel_turn(client: BridgeClient, command: JsonObject) -> str | None:
    session_id = fields.session_id(command)
    session = client.bridge.gateway.sessions.get(session_id)
    if session is not None:
        session.cancel()
    elif (await client.bridge.find(session_id)).live:
        async with client.bridge.live_session(session_id) as session:
            session.cancel()
    return session_id


async def permission_response(client: BridgeClient, command: JsonObject) -> str | None:
    answer: JsonObject = {"outcome": command.get("outcome")}
    if command.get("remember") is not None:
        answer["_meta"] = {"dragoman": {"remember": command["remember"]}}
    return await _answer(client, command, answer)


async def elicitation_response(client: BridgeClient, command: JsonObject) -> str | None:
    answer: JsonObject = {name: command[name] for name in ("action", "content") if name in command}
    if answer.get("action") not in ("accept", "decline", "cancel"):
        raise BridgeError("bad_request", "`action` must be accept, decline or cancel.")
    return await _answer(client, command, answer)


async def _answer(client: BridgeClient, command: JsonObject, answer: JsonObject) -> str:
    asked, gateway_client = command.get("requestId"), client.gateway_client.client
    if isinstance(asked, str) and len(asked) <= limits.ID_LENGTH:
        for session in client.bridge.gateway.sessions.values():
            if session.questions.answer(asked, encode(answer), gateway_client):
                return session.id
        watched = [
            each for id in gateway_client.attachments if (each := gateway_client.session(id)) is not None
        ]
        arrived = await asyncio.gather(*(each.questions.arrives(asked, PATIENCE) for each in watched))
        for session, there in zip(watched, arrived, strict=True):
            if there and session.questions.answer(asked, encode(answer), gateway_client):
                return session.id
    raise BridgeError("already_answered", "This question is not open any more.")


async def change_mode(client: BridgeClient, command: JsonObject) -> str | None:
    session = await _watched(client, command)
    await client.gateway_client.result(
        "session/set_mode", {"sessionId": session.id, "modeId": command.get("modeId")}
    )
    return session.id


async def set_config_option(client: BridgeClient, command: JsonObject) -> str | None:
    session = await _watched(client, command)
    params = {"sessionId": session.id, "configId": command.get("configId"), "value": command.get("value")}
    if isinstance(command.get("value"), bool):
        params["type"] = "boolean"
    await client.gateway_client.result("session/set_config_option", params)
    return session.id


async def _watched(client: BridgeClient, command: JsonObject) -> Session:
    session_id = fields.session_id(command)
    session = client.gateway_client.client.session(session_id)
    if session is None:
        await client.bridge.find(session_id)
        raise BridgeError("not_loaded", "This session is not open here.", "Send load_session first.")
    return session


# -- the rest


async def complete_path(client: BridgeClient, command: JsonObject) -> str | None:
    prefix = command.get("prefix")
    if not isinstance(prefix, str):
        raise BridgeError("bad_request", "`prefix` must be a text.")
    folder = str(Path.home())
    if command.get("sessionId") is not None:
        folder = (await client.bridge.find(command["sessionId"])).cwd
    directories = command.get("directories") is True
    entries = await asyncio.to_thread(paths.complete, prefix, folder, directories=directories)
    client.tell({"type": "paths", "prefix": prefix, "entries": entries, **fields.echoed_id(command)})
    return None


async def ping(client: BridgeClient, command: JsonObject) -> str | None:
    """Answer with `ack`."""
    if "clientMessageId" not in command:
        client.tell({"type": "ack", "clientMessageId": ""})
    return None


COMMANDS: dict[str, Command] = {
    "new_session": Command(opening.new_session),
    "load_session": Command(opening.load_session, observers=True),
    "resume": Command(opening.load_session, observers=True),
    "history": Command(history, observers=True),
    "leave_session": Command(leave_session, observers=True),
    "send_message": Command(send_message),
    "edit_queued": Command(edit_queued),
    "drop_queued": Command(drop_queued),
    "send_queued": Command(send_queued),
    "cancel_turn": Command(cancel_turn),
    "permission_response": Command(permission_response),
    "elicitation_response": Command(elicitation_response),
    "change_mode": Command(change_mode),
    "set_config_option": Command(set_config_option),
    "rename_session": Command(rename_session),
    "close_session": Command(close_session),
    "delete_session": Command(delete_session),
    "list_sessions": Command(list_sessions, observers=True),
    "complete_path": Command(complete_path),
    "ping": Command(ping, observers=True),
}
