"""A page at `/bridge`: it sends commands and keeps every event that it was shown."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from support.rpc_peer import Message
from support.serve_process import ServeProcess, Socket

Event = Message


class Page:
    def __init__(self, socket: Socket) -> None:
        self.socket = socket
        self._ids = itertools.count(1)

    @classmethod
    async def open(cls, serving: ServeProcess, **options: Any) -> Page:
        return cls(await serving.socket("/bridge", **options))

    def send(self, type: str, **fields: Any) -> None:
        self.socket.send({"type": type, **fields})

    async def next(self, type: str, **fields: Any) -> Event:
        """The first event of this type, with these fields, that was not handed out before."""
        wanted = {"type": type, **fields}
        return await self.socket.next_message(lambda m: all(m.get(key) == wanted[key] for key in wanted))

    async def ask(self, type: str, **fields: Any) -> Event:
        """Send a command and wait for its `ack` or `error`."""
        id = fields.pop("clientMessageId", f"m{next(self._ids)}-{id_of(self)}")
        self.send(type, clientMessageId=id, **fields)
        return await self.socket.next_message(
            lambda m: m.get("clientMessageId") == id and m["type"] in ("ack", "error")
        )

    async def new_session(self, workspace: Path, **fields: Any) -> str:
        self.send("new_session", cwd=str(workspace), **fields)
        return str((await self.next("session_created"))["sessionId"])

    async def load(self, session: str, **fields: Any) -> Event:
        self.send("load_session", sessionId=session, **fields)
        loaded = await self.next("session_loaded", sessionId=session)
        await self.next("caught_up", sessionId=session)
        return loaded

    async def turn(self, session: str, script: str) -> list[Event]:
        """Send a message and wait for the end of its turn; returns the turn's events."""
        before = self.seqs(session)[-1:] or [0]
        self.send("send_message", sessionId=session, content=script)
        done = await self.socket.next_message(
            lambda m: m["type"] == "turn_complete" and m["sessionId"] == session and m["seq"] > before[0]
        )
        return [event for event in self.numbered(session) if before[0] < event["seq"] <= done["seq"]]

    @property
    def received(self) -> list[Event]:
        return self.socket.received

    def numbered(self, session: str) -> list[Event]:
        return [event for event in self.received if event.get("sessionId") == session and "seq" in event]

    def seqs(self, session: str) -> list[int]:
        return [event["seq"] for event in self.numbered(session)]

    def types(self, session: str) -> list[str]:
        return [event["type"] for event in self.numbered(session)]

    def text(self, session: str) -> str:
        return "".join(e["content"] for e in self.numbered(session) if e["type"] == "message_chunk")

    async def close(self) -> None:
        await self.socket.close()


def id_of(page: Page) -> str:
    return f"{id(page):x}"
