"""A raw JSON-RPC peer over any byte stream: what a client sees, in the order it saw it.

It parses with the standard library and shares no code with Dragoman, so that neither can hide the other's
mistakes.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]
Predicate = Callable[[Message], bool]
Handler = Callable[[Message], Any]

PATIENCE = 20.0
"""Seconds that any single wait may take: far more than needed, because test machines are loaded."""


class RpcFailure(Exception):
    """An error response; handlers raise it to answer with one."""

    def __init__(self, code: int, message: str = "", data: Any = None) -> None:
        super().__init__(f"{code} {message} {data!r}")
        self.code, self.message, self.data = code, message, data

    @classmethod
    def of(cls, error: Message) -> RpcFailure:
        return cls(error["code"], error.get("message", ""), error.get("data"))


def is_request(method: str) -> Predicate:
    return lambda message: message.get("method") == method and "id" in message


def is_update(session: str | None = None, kind: str | None = None) -> Predicate:
    def matches(message: Message) -> bool:
        if message.get("method") != "session/update":
            return False
        params = message["params"]
        wanted = session is None or params["sessionId"] == session
        return wanted and (kind is None or params["update"].get("sessionUpdate") == kind)

    return matches


def text_of(update: Message) -> str:
    """The text of a message chunk, else nothing."""
    content = update.get("content")
    if update.get("sessionUpdate") != "agent_message_chunk" or not isinstance(content, dict):
        return ""
    return str(content.get("text", ""))


@dataclass
class Turn:
    """One finished prompt: its answer and the updates of its session that came before it."""

    response: Message
    updates: list[Message]
    after: list[Message] = field(default_factory=list)

    @property
    def stop_reason(self) -> str | None:
        result = self.response.get("result")
        return result.get("stopReason") if isinstance(result, dict) else None

    @property
    def error(self) -> RpcFailure | None:
        return RpcFailure.of(self.response["error"]) if "error" in self.response else None

    @property
    def texts(self) -> list[str]:
        return [text for text in map(text_of, self.updates) if text]

    def reports(self, name: str) -> list[Any]:
        """What the scripted agent reported under `name`."""
        found = [text.removeprefix(f"{name} ") for text in self.texts if text.startswith(f"{name} ")]
        return [json.loads(text) for text in found]

    def report(self, name: str) -> Any:
        found = self.reports(name)
        assert len(found) == 1, f"{len(found)} reports named {name!r} in {self.texts}, {self.response}"
        return found[0]


class Framing:
    """Newline-delimited JSON, the usual framing."""

    def frame(self, body: bytes) -> bytes:
        return body + b"\n"

    async def read(self, reader: asyncio.StreamReader) -> bytes | None:
        line = await reader.readline()
        return line.rstrip(b"\n") if line else None


class HeaderFraming(Framing):
    """Content-Length headers, as LSP peers speak."""

    def frame(self, body: bytes) -> bytes:
        return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)

    async def read(self, reader: asyncio.StreamReader) -> bytes | None:
        length = None
        while (line := await reader.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            assert name.lower() == b"content-length", f"not a header: {line!r}"
            length = int(value)
        return None if length is None else await reader.readexactly(length)


class _Cork:
    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, data: bytes) -> None:
        self.data += data


class RpcPeer:
    """Sends what it is told, keeps everything that it received, answers what it has a handler for."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, framing: Framing | None = None
    ) -> None:
        self.framing = framing or Framing()
        self.received: list[Message] = []
        self.raw: list[bytes] = []
        self._reader, self._writer = reader, writer
        self._taken: set[int] = set()
        self._handlers: dict[str, Handler] = {}
        self._next_id = 0
        self._changed = asyncio.Event()
        self._ended = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._pump = asyncio.create_task(self._read())

    # Receiving

    async def _read(self) -> None:
        try:
            while (body := await self.framing.read(self._reader)) is not None:
                self._take(body)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the end of the stream either way; waiting callers are told below
        finally:
            self._ended = True
            self._changed.set()

    def _take(self, body: bytes) -> None:
        decoded = json.loads(body)
        self.raw.append(body)
        # A batch is kept as one entry so that tests see that it came as one.
        message: Message = decoded if isinstance(decoded, dict) else {"batch": decoded}
        self.received.append(message)
        self._changed.set()
        handler = self._handlers.get(message.get("method", ""))
        if handler and "id" in message:
            task = asyncio.create_task(self._answer(handler, message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, handler: Handler, message: Message) -> None:
        try:
            result = handler(message["params"])
            if inspect.isawaitable(result):
                result = await result
        except RpcFailure as failure:
            self.reply_error(message, failure.code, failure.message, failure.data)
        else:
            self.reply(message, result)

    def on(self, method: str, handler: Handler | object) -> None:
        """Answer every request `method` with `handler(params)`, or with `handler` itself if not callable."""
        self._handlers[method] = handler if callable(handler) else lambda params: handler

    def pause(self) -> None:
        """Stop reading, as a client does that hangs: the pipe itself fills up."""
        self._incoming.pause_reading()

    def resume(self) -> None:
        self._incoming.resume_reading()

    @property
    def _incoming(self) -> asyncio.ReadTransport:
        transport = self._reader._transport  # type: ignore[attr-defined]  # streams have no pause of their own
        assert isinstance(transport, asyncio.ReadTransport)
        return transport

    async def next_message(self, wanted: Predicate | str, timeout: float = PATIENCE) -> Message:
        """The first message that matches and was not handed out before."""
        matches = wanted if callable(wanted) else lambda message: message.get("method") == wanted
        return self.received[await self._next_index(matches, timeout)]

    async def _next_index(self, matches: Predicate, timeout: float, start: int = 0) -> int:
        async with asyncio.timeout(timeout):
            while True:
                for index in range(start, len(self.received)):
                    if index not in self._taken and matches(self.received[index]):
                        self._taken.add(index)
                        return index
                start = len(self.received)
                if self._ended:
                    raise ConnectionError(f"closed by the other side, after {self.received[-3:]}")
                self._changed.clear()
                await self._changed.wait()

    async def text(self, session: str, text: str, timeout: float = PATIENCE) -> Message:
        """Wait until the session's agent said exactly `text`."""
        matches = is_update(session)
        return await self.next_message(
            lambda m: matches(m) and text_of(m["params"]["update"]) == text, timeout
        )

    async def ended(self, timeout: float = PATIENCE) -> None:
        """Wait until the other side closed the stream."""
        async with asyncio.timeout(timeout):
            await asyncio.shield(self._pump)

    def of(self, session: str) -> list[Message]:
        """All updates of one session so far."""
        matches = is_update(session)
        return [message["params"]["update"] for message in self.received if matches(message)]

    # Sending

    def send_bytes(self, data: bytes) -> None:
        """Bytes as they are, without framing."""
        self._writer.write(data)

    def send(self, message: Any) -> None:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        self._writer.write(self.framing.frame(body))

    @contextmanager
    def in_one_write(self) -> Iterator[None]:
        """What is sent meanwhile goes out together, so that the other side reads it at once."""
        writer, corked = self._writer, _Cork()
        self._writer = corked  # type: ignore[assignment]
        try:
            yield
        finally:
            self._writer = writer
            writer.write(bytes(corked.data))

    async def drain(self) -> None:
        await self._writer.drain()

    def notify(self, method: str, params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def reply(self, request: Message, result: Any) -> None:
        self.send({"jsonrpc": "2.0", "id": request["id"], "result": result})

    def reply_error(self, request: Message, code: int, message: str = "", data: Any = None) -> None:
        error = {"code": code, "message": message} | ({} if data is None else {"data": data})
        self.send({"jsonrpc": "2.0", "id": request["id"], "error": error})

    def start_request(self, method: str, params: Any, id: Any = ...) -> Any:
        """Send a request and return its id; `response(id)` waits for the answer."""
        if id is ...:
            self._next_id += 1
            id = self._next_id
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return id

    async def response(self, id: Any, timeout: float = PATIENCE) -> Message:
        """The next answer to `id`, whose JSON type counts."""
        return await self.next_message(self._answers(id), timeout)

    async def answered_at(self, id: Any, start: int, timeout: float = PATIENCE) -> int:
        """Where the answer to `id` is in `received`, which is looked through from `start` on."""
        return await self._next_index(self._answers(id), timeout, start)

    @staticmethod
    def _answers(id: Any) -> Predicate:
        def matches(message: Message) -> bool:
            found = message.get("id", ...)
            return "method" not in message and type(found) is type(id) and found == id

        return matches

    async def request_raw(
        self, method: str, params: Any, timeout: float = PATIENCE, id: Any = ...
    ) -> Message:
        return await self.response(self.start_request(method, params, id), timeout)

    async def request(self, method: str, params: Any, timeout: float = PATIENCE) -> Any:
        response = await self.request_raw(method, params, timeout)
        if "error" in response:
            raise RpcFailure.of(response["error"])
        return response["result"]

    # ACP

    async def initialize(self, **params: Any) -> Any:
        return await self.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}, **params})

    async def new_session(self, cwd: Any, **params: Any) -> str:
        result = await self.request("session/new", {"cwd": str(cwd), "mcpServers": [], **params})
        return str(result["sessionId"])

    def start_prompt(self, session: str, script: str | list[Message], **params: Any) -> asyncio.Task[Turn]:
        """Send a prompt; await the returned turn for its end."""
        start = len(self.received)
        blocks = [{"type": "text", "text": script}] if isinstance(script, str) else script
        id = self.start_request("session/prompt", {"sessionId": session, "prompt": blocks, **params})
        return asyncio.ensure_future(self._turn(id, session, start))

    async def _turn(self, id: Any, session: str, start: int) -> Turn:
        end = await self._next_index(self._answers(id), PATIENCE * 3)
        matches = is_update(session)
        updates = [m["params"]["update"] for m in self.received[start:end] if matches(m)]
        return Turn(self.received[end], updates)

    async def prompt(self, session: str, script: str | list[Message], **params: Any) -> Turn:
        return await self.start_prompt(session, script, **params)

    def cancel(self, session: str) -> None:
        self.notify("session/cancel", {"sessionId": session})

    # Ending

    def eof(self) -> None:
        """Close the sending side: what a stdio client does when it leaves."""
        if self._writer.can_write_eof():
            self._writer.write_eof()
        else:
            self._writer.close()

    async def close(self) -> None:
        for task in (*self._tasks, self._pump):
            task.cancel()
        await asyncio.gather(*self._tasks, self._pump, return_exceptions=True)
        self._writer.close()
