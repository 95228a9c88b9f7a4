"""A running `dragoman serve` and clients for it that share no code with it."""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict
from urllib.parse import parse_qs, urlsplit

import httpx

from support.gateway_process import GatewayProcess
from support.rpc_peer import PATIENCE, Framing, RpcPeer


class UrlFraming(Framing):
    """stdout of `serve`: one line, the address."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._first: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def read(self, reader: asyncio.StreamReader) -> bytes | None:
        while line := await reader.readline():
            self.lines.append(line.decode().rstrip("\n"))
            if not self._first.done():
                self._first.set_result(self.lines[0])
        if not self._first.done():
            self._first.set_exception(ConnectionError("ended before it printed its address"))
        return None

    async def url(self) -> str:
        async with asyncio.timeout(PATIENCE):
            return await self._first


class WebSocketFraming(Framing):
    """Text frames, masked as clients must; `close_code` is what the server said at the end."""

    def __init__(self) -> None:
        self.close_code: int | None = None
        self.pings = 0
        self._pinged = asyncio.Event()

    def frame(self, body: bytes, opcode: int = 1, fin: bool = True) -> bytes:
        size = len(body)
        if size < 126:
            length = bytes([0x80 | size])
        elif size < 65536:
            length = bytes([0x80 | 126]) + struct.pack("!H", size)
        else:
            length = bytes([0x80 | 127]) + struct.pack("!Q", size)
        mask = os.urandom(4)
        repeated = (mask * (size // 4 + 1))[:size]
        masked = (int.from_bytes(body) ^ int.from_bytes(repeated)).to_bytes(size) if size else b""
        return bytes([(0x80 if fin else 0) | opcode]) + length + mask + masked

    async def read(self, reader: asyncio.StreamReader) -> bytes | None:
        while True:
            try:
                first, second = await reader.readexactly(2)
            except asyncio.IncompleteReadError:
                return None
            assert not second & 0x80, "servers do not mask"
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack("!H", await reader.readexactly(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", await reader.readexactly(8))
            body = await reader.readexactly(size)
            opcode = first & 0x0F
            if opcode == 1:
                return body
            if opcode == 8:
                (self.close_code,) = struct.unpack("!H", body[:2])
                return None
            if opcode == 9:
                self.pings += 1
                self._pinged.set()

    async def pinged(self, count: int) -> None:
        """Wait until the server has pinged that often."""
        async with asyncio.timeout(PATIENCE):
            while self.pings < count:
                self._pinged.clear()
                await self._pinged.wait()


class Socket(RpcPeer):
    """A WebSocket client."""

    framing: WebSocketFraming
    handshake: dict[str, str]

    async def closed(self) -> int | None:
        """The close code, once the server has closed."""
        await self.ended()
        return self.framing.close_code


@dataclass
class Refused(Exception):
    """The handshake was answered with another status."""

    status: int
    headers: dict[str, str]


@dataclass(frozen=True)
class Login:
    """What a browser got for a token."""

    cookie: str
    """As its Cookie header has it."""
    page: str
    """The page's secret, from the fragment of the redirect."""
    set_cookie: str

    @property
    def pair(self) -> dict[str, str]:
        """What a request of the page shows."""
        return {"Cookie": self.cookie, "X-Dragoman-Page": self.page}

    @property
    def upgrade(self) -> dict[str, str]:
        """The same for a WebSocket, where a page can set no header but this."""
        return {"Cookie": self.cookie, "Sec-WebSocket-Protocol": f"dragoman.v1, dragoman.page.{self.page}"}


class HttpVersion(TypedDict):
    """Options for a client that speaks one version alone."""

    http1: bool
    http2: bool


@dataclass
class ServeProcess:
    gateway: GatewayProcess
    url: str
    sockets: list[Socket] = field(default_factory=list)
    clients: list[httpx.AsyncClient] = field(default_factory=list)

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    @property
    def resident(self) -> int:
        """Bytes of memory that it has."""
        return int(Path(f"/proc/{self.gateway.process.pid}/statm").read_text().split()[1]) * 4096

    @property
    def token(self) -> str:
        return parse_qs(urlsplit(self.url).query)["token"][0]

    @property
    def base(self) -> str:
        return f"{urlsplit(self.url).scheme}://127.0.0.1:{self.port}"

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def http(
        self, *, token: bool = True, headers: dict[str, str] | None = None, **options: Any
    ) -> httpx.AsyncClient:
        shown = {**(self.bearer if token else {}), **(headers or {})}
        client = httpx.AsyncClient(base_url=self.base, headers=shown, timeout=PATIENCE, **options)
        self.clients.append(client)
        return client

    async def login(self, token: str | None = None, cookie: str = "", path: str = "/") -> Login:
        """Open the printed address in a browser, perhaps one that has a cookie already."""
        headers = {"Accept": "text/html", **({"Cookie": cookie} if cookie else {})}
        address = f"{path}?token={token or self.token}"
        answer = await self.http(token=False).get(address, headers=headers)
        assert answer.status_code == 303, answer.text
        set_cookie = answer.headers["set-cookie"]
        page = parse_qs(urlsplit(answer.headers["location"]).fragment)["page"][0]
        return Login(set_cookie.partition(";")[0], page, set_cookie)

    async def open(
        self, context: ssl.SSLContext | None = None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=context, limit=64 * 1024 * 1024)

    async def socket(
        self,
        path: str = "/acp",
        headers: dict[str, str] | None = None,
        context: ssl.SSLContext | None = None,
        *,
        after_request: bool = False,
    ) -> Socket:
        """A WebSocket client, perhaps on a connection that carried a request before; raises `Refused`."""
        reader, writer = await self.open(context)
        if after_request:
            writer.write(f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode())
            _, probed = await read_head(reader)
            await reader.readexactly(int(probed["content-length"]))
        key = base64.b64encode(os.urandom(16)).decode()
        sent = {
            "Host": f"127.0.0.1:{self.port}",
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Key": key,
            "Sec-WebSocket-Version": "13",
            **(self.bearer if headers is None else headers),
        }
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
        status, answered = await read_head(reader)
        if status != 101:
            writer.close()
            raise Refused(status, answered)
        socket = Socket(reader, writer, WebSocketFraming())
        socket.handshake = answered
        self.sockets.append(socket)
        return socket

    async def close(self) -> None:
        for socket in self.sockets:
            await socket.close()
        for client in self.clients:
            await client.aclose()


async def read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """Status and headers of a response."""
    async with asyncio.timeout(PATIENCE):
        head = await reader.readuntil(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").strip().split("\r\n")
    pairs = (line.partition(":") for line in rest)
    return int(first.split()[1]), {name.lower(): value.strip() for name, _, value in pairs}
