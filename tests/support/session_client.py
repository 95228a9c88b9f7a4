"""Clients that come to a session which exists already, and what they see of it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.gateway_process import LINE_LIMIT, GatewayProcess, Table, agent
from support.rpc_peer import PATIENCE, Framing, Message, RpcFailure, RpcPeer, is_update, text_of

Watch = Callable[..., Awaitable[RpcPeer]]
"""The `watch` fixture: one more client of a gateway, over the socket for other processes."""

SEQ: Table = {"_meta": {"dragoman": {"seq": True}}}
"""Client capabilities of one that wants its updates numbered."""
STATE_KINDS = frozenset({"session_info_update", "available_commands_update", "usage_update"})

RESUME = '{"sessionCapabilities": {"resume": {}}}'
LOAD = '{"loadSession": true}'
NEITHER = "{}"


def resumable_agent(*flags: str, caps: str = RESUME, **settings: Any) -> Table:
    """A scripted agent whose session ids are its own, and which replays something when it loads one of them."""
    return agent("--session-ids", "s{pid}-", "--caps", caps, "--load-replay", "1", *flags, **settings)


@dataclass
class Loaded:
    """A session that was loaded: the answer, and the updates that came before it."""

    result: Message
    replay: list[Message]

    @property
    def facts(self) -> Message:
        """`_meta.dragoman` of the answer."""
        facts: Message = self.result["_meta"]["dragoman"]
        return facts

    @property
    def texts(self) -> list[str]:
        return [text for text in map(text_of, self.replay) if text]


class TornFraming(Framing):
    """Takes half a line at the end of a stream for what it is: nothing."""

    async def read(self, reader: asyncio.StreamReader) -> bytes | None:
        line = await reader.readline()
        return line[:-1] if line.endswith(b"\n") else None


async def attach(gateway: GatewayProcess, framing: Framing | None = None, **capabilities: Any) -> RpcPeer:
    """A client over the socket on which a gateway listens for other processes, initialized."""
    path = await owner_socket(gateway)
    peer = RpcPeer(*await _open(path), framing)
    await peer.initialize(clientCapabilities=capabilities)
    return peer


async def _open(path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await asyncio.open_unix_connection(path, limit=LINE_LIMIT)
            except ConnectionRefusedError:
                await asyncio.sleep(0.01)  # it is there a moment before it is listened on


async def owner_socket(gateway: GatewayProcess) -> str:
    """Where a gateway listens for the other processes of its user."""
    async with asyncio.timeout(PATIENCE):
        while True:
            sockets = gateway.home / "run" / "owners"
            for found in sockets.glob(f"{gateway.process.pid}-*.sock"):
                return str(found)
            await asyncio.sleep(0.01)  # another process's file raises no event here


async def load(peer: RpcPeer, session: str, cwd: Path, **params: Any) -> Loaded:
    """`session/load`, with the replay."""
    start = len(peer.received)
    id = peer.start_request("session/load", {**setup(session, cwd), **params})
    end = await peer.answered_at(id, start, PATIENCE * 2)
    response = peer.received[end]
    if "error" in response:
        raise RpcFailure.of(response["error"])
    matches = is_update(session)
    replay = [message["params"]["update"] for message in peer.received[start:end] if matches(message)]
    return Loaded(response["result"], replay)


async def resume(peer: RpcPeer, session: str, cwd: Path, after: int | None = None) -> Message:
    """`session/resume`, from event `after` on if given; returns the result."""
    more = {} if after is None else {"_meta": {"dragoman": {"afterSeq": after}}}
    result: Message = await peer.request("session/resume", {**setup(session, cwd), **more})
    return result


def setup(session: str, cwd: Path) -> Message:
    return {"sessionId": session, "cwd": str(cwd), "mcpServers": []}


async def listed(peer: RpcPeer, **params: Any) -> list[Message]:
    """The first page of `session/list`."""
    found: list[Message] = (await peer.request("session/list", params))["sessions"]
    return found


async def entry(peer: RpcPeer, session: str, **params: Any) -> Message:
    """One session's entry in the list."""
    return next(each for each in await listed(peer, **params) if each["sessionId"] == session)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# What a client sees of a conversation


def conversation(updates: list[Message]) -> list[Message]:
    """Updates without what is state or a word of the gateway's own."""
    return [update for update in updates if not is_state(update)]


def is_state(update: Message) -> bool:
    return update["sessionUpdate"] in STATE_KINDS or is_notice(update)


def is_notice(update: Message) -> bool:
    return "notice" in ((update.get("_meta") or {}).get("dragoman") or {})


async def notice(peer: RpcPeer, session: str, part: str) -> str:
    """Wait for a word of the gateway's own that has `part` in it."""

    def matches(message: Message) -> bool:
        if not is_update(session)(message):
            return False
        update = message["params"]["update"]
        return is_notice(update) and part in update["content"]["text"]

    message = await peer.next_message(matches)
    return str(message["params"]["update"]["content"]["text"])


def notices(peer: RpcPeer, session: str) -> list[str]:
    return [update["content"]["text"] for update in peer.of(session) if is_notice(update)]


def by_agent(updates: list[Message]) -> list[Message]:
    """What the author of all prompts sees: everything but the prompts."""
    return [update for update in conversation(updates) if update["sessionUpdate"] != "user_message_chunk"]


def prompts(updates: list[Message]) -> list[str]:
    return [
        update["content"]["text"] for update in updates if update["sessionUpdate"] == "user_message_chunk"
    ]


async def turn_end(peer: RpcPeer, session: str) -> Message:
    """What a client that did not prompt is told of the end of a turn."""

    def matches(message: Message) -> bool:
        if not is_update(session, "session_info_update")(message):
            return False
        facts = (message["params"]["update"].get("_meta") or {}).get("dragoman") or {}
        return "stopReason" in facts or "error" in facts

    message = await peer.next_message(matches)
    facts: Message = message["params"]["update"]["_meta"]["dragoman"]
    return facts
