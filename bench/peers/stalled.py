"""An HTTP/2 client that opens a session's event stream, asks for a flood and never gives it room."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, ResponseReceived, StreamEnded

from bench.peers.talk import READ_SIZE, ConversationError
from bench.peers.websocket import dial

SMALL_BUFFER = 4096


@contextmanager
def stalled_events(url: str, token: str, cwd: str, prompt: str) -> Iterator[None]:
    with Http2(url, token) as client:
        client.post("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        connection = client.listen()
        client.post("session/new", {"cwd": cwd, "mcpServers": []})
        session = client.wait_for(connection, b'"sessionId":"', b'"').decode()
        client.headers["acp-session-id"] = session
        client.listen()
        client.post("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": prompt}]})
        yield  # its window of 64 KiB is all that it ever takes


class Http2:
    """Just enough of a client: requests one after the other, streams that stay open."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        self._path = parts.path
        self._socket: socket.socket = dial(url, SMALL_BUFFER)
        self._h2 = H2Connection(H2Configuration(client_side=True))
        self._h2.initiate_connection()
        self.headers = {"authorization": f"Bearer {token}"}
        self._fixed = {":authority": parts.netloc, ":scheme": "http", ":path": self._path}
        self._data: dict[int, bytes] = {}
        self._answers: dict[int, dict[str, str]] = {}
        self._ended: set[int] = set()
        self._sent = 0

    def __enter__(self) -> Http2:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def post(self, method: str, params: dict[str, Any]) -> None:
        self._sent += 1
        body = json.dumps({"jsonrpc": "2.0", "id": self._sent, "method": method, "params": params}).encode()
        stream = self._open("POST", {"content-type": "application/json"}, end=False)
        self._h2.send_data(stream, body, end_stream=True)
        self._flush()
        while stream not in self._ended:
            self._read()
        answer = self._answers[stream]
        if answer[":status"] not in ("200", "202"):
            raise ConversationError(f"{method} was answered with {answer[':status']}: {self._data[stream]!r}")
        if "acp-connection-id" in answer:
            self.headers["acp-connection-id"] = answer["acp-connection-id"]

    def listen(self) -> int:
        stream = self._open("GET", {"accept": "text/event-stream"}, end=True)
        self._flush()
        while stream not in self._answers:
            self._read()
        return stream

    def wait_for(self, stream: int, before: bytes, after: bytes) -> bytes:
        while before not in self._data.get(stream, b""):
            self._read()
        return self._data[stream].partition(before)[2].partition(after)[0]

    def _open(self, method: str, headers: dict[str, str], *, end: bool) -> int:
        stream = self._h2.get_next_available_stream_id()
        everything = {":method": method, **self._fixed, **self.headers, **headers}
        self._h2.send_headers(stream, list(everything.items()), end_stream=end)
        return stream

    def _read(self) -> None:
        chunk = self._socket.recv(READ_SIZE)
        if not chunk:
            raise ConversationError("the HTTP/2 connection was closed")
        for event in self._h2.receive_data(chunk):
            if isinstance(event, ResponseReceived):
                self._answers[event.stream_id] = {
                    name.decode(): value.decode() for name, value in event.headers
                }
            elif isinstance(event, DataReceived):
                self._data[event.stream_id] = self._data.get(event.stream_id, b"") + event.data
            elif isinstance(event, StreamEnded):
                self._ended.add(event.stream_id)
        self._flush()

    def _flush(self) -> None:
        self._socket.sendall(self._h2.data_to_send())
