"""Floods against a server, each from its own process: `python flood_program.py KIND PORT TOKEN CONNECTIONS SECONDS`.

Every connection sends as fast as it is read, reads what comes and forgets it, and is opened again when it is closed.
"""

from __future__ import annotations

import selectors
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

CHUNK = 64 * 1024
"""At least so many bytes are ready to be sent, so that one loop turn of the server can bring as many as it takes."""

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
WINDOW_UPDATE = 8


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """An HTTP/2 frame."""
    return len(payload).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + payload


def literal(name: bytes, value: bytes) -> bytes:
    """A header that is not put into the table (RFC 7541 §6.2.2)."""
    return b"\x00" + bytes((len(name),)) + name + bytes((len(value),)) + value


def ws_frame(opcode: int, payload: bytes = b"", *, fin: bool = True) -> bytes:
    """A masked WebSocket frame of less than 126 bytes; the mask is zero."""
    return bytes(((0x80 if fin else 0) | opcode, 0x80 | len(payload))) + bytes(4) + payload


@dataclass(frozen=True)
class Flood:
    begin: bytes
    """Sent once."""
    unit: Callable[[int], bytes]
    """What is sent on and on; it is told how many there were before."""
    answer: bytes = b""
    """Nothing more is sent until this has come."""
    inside_h2: bool = False
    """The units are data of an HTTP/2 stream."""


def handshake(port: int, token: str) -> bytes:
    return (
        f"GET /acp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    ).encode()


def connect(port: int, token: str) -> bytes:
    headers = [
        (b":method", b"CONNECT"),
        (b":protocol", b"websocket"),
        (b":scheme", b"http"),
        (b":path", b"/acp"),
        (b":authority", f"127.0.0.1:{port}".encode()),
        (b"authorization", f"Bearer {token}".encode()),
        (b"sec-websocket-version", b"13"),
    ]
    return PREFACE + frame(4, 0, 0) + frame(1, 4, 1, b"".join(literal(*header) for header in headers))


GET = b"\x82\x86\x84\x41\x09127.0.0.1"  # GET http / with its authority
POST = b"\x83\x86\x84\x41\x09127.0.0.1"
SOCKETS: dict[str, Callable[[int], bytes]] = {
    "pings": lambda n: ws_frame(9),
    "pongs": lambda n: ws_frame(10),
    "empty continuations": lambda n: ws_frame(0 if n else 1, fin=False),
    "tiny continuations": lambda n: ws_frame(0 if n else 1, b"x", fin=False),
    "one-byte texts": lambda n: ws_frame(1, b"x"),
    "empty texts": lambda n: ws_frame(1),
    "binaries": lambda n: ws_frame(2),
    "short requests": lambda n: ws_frame(1, b'{"jsonrpc":"2.0","id":%d,"method":"x"}' % n),
}
HTTP_2: dict[str, Callable[[int], bytes]] = {
    "settings": lambda n: frame(4, 0, 0),
    "window settings": lambda n: frame(4, 0, 0, b"\x00\x04" + (65535 + n % 2).to_bytes(4)),
    "pings": lambda n: frame(6, 0, 0, bytes(8)),
    "ping answers": lambda n: frame(6, 1, 0, bytes(8)),
    "priorities": lambda n: frame(2, 0, 2 * n + 1, bytes(5)),
    "window updates": lambda n: frame(8, 0, 0, b"\x00\x00\x00\x01"),
    "rapid resets": lambda n: frame(1, 5, 2 * n + 1, GET) + frame(3, 0, 2 * n + 1, bytes(4)),
    "empty data": lambda n: frame(0, 0, 1) if n else frame(1, 4, 1, POST),
    "tiny data": lambda n: frame(0, 0, 1, b"x") if n else frame(1, 4, 1, POST),
    "continuations": lambda n: frame(9, 0, 1) if n else frame(1, 0, 1, b"\x82"),
    "unknown frames": lambda n: frame(0xF0, 0, 0),
    "requests": lambda n: frame(1, 5, 2 * n + 1, GET),
    "bad requests": lambda n: frame(1, 5, 2 * n + 1, b"\x82\x86"),
    "padded headers": lambda n: frame(1, 5, 2 * n + 1, GET + literal(b"a", b"b") * 100),
}
HTTP_1: dict[str, Callable[[int], bytes]] = {
    "pipelined requests": lambda n: b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "strangers": lambda n: b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


def flood_of(kind: str, port: int, token: str) -> Flood:
    family, _, name = kind.partition(": ")
    if family == "websocket":
        return Flood(handshake(port, token), SOCKETS[name], b"HTTP/1.1 101")
    if family == "websocket after a request":
        before = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        return Flood(before + handshake(port, token), SOCKETS[name], b"HTTP/1.1 101")
    if family == "websocket in HTTP/2":
        return Flood(connect(port, token), SOCKETS[name], b"acp-connection-id", inside_h2=True)
    if family == "HTTP/2":
        return Flood(PREFACE + frame(4, 0, 0), HTTP_2[name])
    if name == "chunks":
        head = (
            f"POST /acp/inline HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        return Flood(head.encode(), lambda n: b"1\r\nx\r\n")
    if name == "connections":
        return Flood(b"", lambda n: b"X")
    return Flood(b"", HTTP_1[name])


KINDS = [
    *(
        f"{way}: {name}"
        for way in ("websocket", "websocket after a request", "websocket in HTTP/2")
        for name in SOCKETS
    ),
    *(f"HTTP/2: {name}" for name in HTTP_2),
    *(f"HTTP/1: {name}" for name in (*HTTP_1, "chunks")),
]


class Connection:
    def __init__(self, flood: Flood, port: int) -> None:
        self._flood, self._port = flood, port
        self.opened = 0
        self.open()

    def open(self) -> None:
        self.opened += 1
        self.socket = socket.create_connection(("127.0.0.1", self._port))
        self.socket.setblocking(False)
        self._pending = bytearray(self._flood.begin)
        self._units = bytearray()
        self._count = 0
        self._began = not self._flood.answer
        self._heard = b""
        self._windows = {0: 65535, 1: 65535}

    def send(self) -> None:
        if self._began and len(self._pending) < CHUNK:
            self._fill()
        if self._pending:
            sent = self.socket.send(memoryview(self._pending))
            del self._pending[:sent]

    def _fill(self) -> None:
        while len(self._units) < CHUNK:
            self._units += self._flood.unit(self._count)
            self._count += 1
        size = min(CHUNK, 16384, *self._windows.values()) if self._flood.inside_h2 else CHUNK
        taken = bytes(self._units[:size])
        del self._units[:size]
        if not self._flood.inside_h2:
            self._pending += taken
        elif taken:
            self._pending += frame(0, 0, 1, taken)
            for stream in self._windows:
                self._windows[stream] -= len(taken)

    def read(self) -> bool:
        """False when it was closed."""
        data = self.socket.recv(1024 * 1024)
        if not self._began or self._flood.inside_h2:
            self._heard += data
            if not self._began:
                # Inside HTTP/2 names are compressed; the answer's headers are the first frame of their kind.
                self._began = self._flood.answer in self._heard or (
                    self._flood.inside_h2 and any(kind == 1 for kind, _, _ in self._frames(peek=True))
                )
            if self._flood.inside_h2:
                for kind, stream, payload in self._frames():
                    if kind == WINDOW_UPDATE and stream in self._windows:
                        self._windows[stream] += int.from_bytes(payload)
        return bool(data)

    def _frames(self, *, peek: bool = False) -> list[tuple[int, int, bytes]]:
        found, place = [], 0
        while len(self._heard) >= place + 9:
            size = int.from_bytes(self._heard[place : place + 3])
            if len(self._heard) < place + 9 + size:
                break
            kind, stream = self._heard[place + 3], int.from_bytes(self._heard[place + 5 : place + 9])
            found.append((kind, stream, self._heard[place + 9 : place + 9 + size]))
            place += 9 + size
        if not peek:
            self._heard = self._heard[place:]
        return found


def run(flood: Flood, port: int, many: int, seconds: float) -> int:
    """How many connections were opened."""
    selector = selectors.DefaultSelector()
    connections = [Connection(flood, port) for _ in range(many)]
    for connection in connections:
        selector.register(connection.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, connection)
    print("flooding", flush=True)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        busy = False
        for key, events in selector.select(0.1):
            connection = key.data
            try:
                alive = connection.read() if events & selectors.EVENT_READ else True
                if alive and events & selectors.EVENT_WRITE:
                    connection.send()
                    busy = True
            except BlockingIOError:
                continue
            except OSError:
                alive = False
            if not alive:
                selector.unregister(connection.socket)
                connection.socket.close()
                connection.open()
                selector.register(connection.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, connection)
        if busy:
            time.sleep(0.001)
    return sum(connection.opened for connection in connections)


if __name__ == "__main__":
    _, which, at, secret, number, lasting = sys.argv
    print(run(flood_of(which, int(at), secret), int(at), int(number), float(lasting)), flush=True)
