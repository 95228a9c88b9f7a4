"""A counting client on a WebSocket: frames are taken apart when the clock has stopped."""

from __future__ import annotations

import base64
import os
import socket
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

from bench.peers.talk import READ_SIZE, ConversationError, Talk

TEXT, CLOSE, PING, PONG = 0x1, 0x8, 0x9, 0xA
CONNECT_TIMEOUT = 10.0
RECEIVE_BUFFER = 1 << 20


class WebSocketTalk(Talk):
    """One connection of `initialize` and everything after it; `stop_reading` and time fill the peer's buffers."""

    MARK = b'"jsonrpc"'

    def __init__(self, url: str, token: str = "", receive_buffer: int = RECEIVE_BUFFER) -> None:
        super().__init__()
        self.socket = dial(url, receive_buffer)
        self._rest = upgrade(self.socket, url, token)

    def __enter__(self) -> WebSocketTalk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.socket.close()

    def write(self, data: bytes) -> None:
        try:
            self.socket.sendall(b"".join(frame(TEXT, line) for line in data.splitlines()))
        except OSError as error:
            raise ConversationError(f"the WebSocket broke: {error}") from error

    def read(self, timeout: float) -> bytes:
        if self._rest:
            rest, self._rest = self._rest, b""
            return rest
        self.socket.settimeout(max(0.001, timeout))
        try:
            chunk = self.socket.recv(READ_SIZE)
        except TimeoutError:
            raise ConversationError("the WebSocket stayed silent too long") from None
        except OSError as error:
            raise ConversationError(f"the WebSocket broke: {error}") from error
        if not chunk:
            raise ConversationError("the WebSocket was closed")
        return chunk

    def complete(self, chunks: list[bytes]) -> bool:
        data = b"".join(chunks)
        return frames(data)[1] == len(data)

    def lines(self, chunks: list[bytes]) -> list[bytes]:
        found, _ = frames(b"".join(chunks))
        for opcode, payload in found:
            if opcode == PING:
                self.socket.sendall(frame(PONG, payload))
        return [b"\n".join(payload for opcode, payload in found if opcode == TEXT) + b"\n"]


def dial(url: str, receive_buffer: int = RECEIVE_BUFFER) -> socket.socket:
    parts = urlsplit(url)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.settimeout(CONNECT_TIMEOUT)
    connection.connect((parts.hostname, parts.port))
    return connection


def upgrade(connection: socket.socket, url: str, token: str) -> bytes:
    """Shake hands; returns what came behind the answer."""
    parts = urlsplit(url)
    key = base64.b64encode(os.urandom(16)).decode()
    head = [
        f"GET {parts.path or '/'} HTTP/1.1",
        f"Host: {parts.netloc}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {key}",
        "Sec-WebSocket-Version: 13",
        *([f"Authorization: Bearer {token}"] if token else []),
    ]
    connection.sendall("\r\n".join([*head, "", ""]).encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        chunk = connection.recv(READ_SIZE)
        if not chunk:
            raise ConversationError(f"{url} closed the connection in the handshake: {answer[:200]!r}")
        answer += chunk
    head_bytes, _, rest = answer.partition(b"\r\n\r\n")
    if not head_bytes.startswith(b"HTTP/1.1 101"):
        raise ConversationError(f"{url} did not become a WebSocket: {head_bytes[:200]!r}")
    return rest


def frame(opcode: int, payload: bytes) -> bytes:
    """A client's frame; a mask of zeros is a mask (RFC 6455 §5.3) and costs nothing."""
    size = len(payload)
    if size < 126:
        head = bytes((0x80 | opcode, 0x80 | size))
    elif size < 65536:
        head = bytes((0x80 | opcode, 0xFE)) + size.to_bytes(2)
    else:
        head = bytes((0x80 | opcode, 0xFF)) + size.to_bytes(8)
    return head + b"\0\0\0\0" + payload


def frames(data: bytes) -> tuple[list[tuple[int, bytes]], int]:
    """The whole frames of a server at the beginning of `data`, and where they end."""
    found: list[tuple[int, bytes]] = []
    position, end = 0, len(data)
    while position + 2 <= end:
        opcode, size, start = data[position] & 0x0F, data[position + 1], position + 2
        if size == 126:
            size, start = int.from_bytes(data[start : start + 2]), start + 2
        elif size == 127:
            size, start = int.from_bytes(data[start : start + 8]), start + 8
        if start + size > end:
            break
        found.append((opcode, data[start : start + size]))
        position = start + size
    return found, position


def resident_kb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1])
    raise ConversationError("the memory of the process cannot be read here")
