"""A scripted model on the loopback interface: real agents run whole turns against it, without a network."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from real.model_apis import APIS, Api
from real.model_script import Asked, Failure, Json, reply_to

COUNTED = {"input_tokens": 100, "totalTokens": 100}
"""Anthropic's and Gemini's answer to how many tokens a request would be."""


@dataclass
class ModelServer:
    """Listens between `start` and `stop`; `heard` holds the turns it was asked for."""

    heard: list[str] = field(default_factory=list)
    """The bodies of requests that offered tools, as text."""
    answers: Counter[str] = field(default_factory=Counter)
    """Whole answers of each model, each of which told the tokens of `model_apis`: 100 of input, 20 of output."""
    enough: asyncio.Event = field(default_factory=asyncio.Event)
    """Ends every `slow` answer."""
    _connections: set[asyncio.StreamWriter] = field(default_factory=set)

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=32 * 1024 * 1024)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        self.enough.set()
        self._server.close()
        for connection in self._connections:
            connection.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # an agent that was cancelled or killed hangs up in the middle
        finally:
            self._connections.discard(writer)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ", 2)
        pairs = (line.split(":", 1) for line in head[1:] if ":" in line)
        headers = {name.strip().lower(): value.strip() for name, value in pairs}
        body = await _body(reader, headers)
        path = urlsplit(target).path
        api = next((api for api in APIS if api.path.search(path)), None)
        if method == "POST" and api is not None:
            await self._answer(api, json.loads(body), path, writer)
        elif path.endswith(("/count_tokens", ":countTokens")):
            await _send(writer, 200, COUNTED)
        else:
            await _send(writer, 404, {"error": {"message": f"nothing at {method} {path}"}})
        return True

    async def _answer(self, api: Api, body: Json, path: str, writer: asyncio.StreamWriter) -> None:
        asked: Asked = api.read(body, path)
        if asked.tools:
            self.heard.append(json.dumps(body, ensure_ascii=False))
        reply = reply_to(asked, self.enough)
        if isinstance(reply, Failure):
            await _send(writer, reply.status, api.failure(reply.status))
        elif not asked.streams and api.whole is not None:
            self.answers[asked.model] += 1
            await _send(writer, 200, await api.whole(reply, asked.model))
        else:
            kind = b"content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            writer.write(b"HTTP/1.1 200 OK\r\n" + kind)
            async for name, data in api.stream(reply, asked.model):
                text = data if isinstance(data, str) else json.dumps(data)
                event = ((f"event: {name}\n" if name else "") + f"data: {text}\n\n").encode()
                writer.write(b"%x\r\n%s\r\n" % (len(event), event))
                await writer.drain()
            writer.write(b"0\r\n\r\n")
            self.answers[asked.model] += 1


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding") != "chunked":
        return await reader.readexactly(int(headers.get("content-length", "0")))
    body = b""
    while size := int((await reader.readline()).split(b";")[0], 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readline()
    return body


async def _send(writer: asyncio.StreamWriter, status: int, body: Json) -> None:
    data = json.dumps(body).encode()
    head = (
        f"HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    )
    writer.write(head.encode() + data)
    await writer.drain()
