"""A counting client on Streamable HTTP: it POSTs, and reads one event stream per session."""

from __future__ import annotations

import http.client
import json
import re
import select
import socket
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

from bench.peers.talk import READ_SIZE, ConversationError, Talk
from bench.peers.websocket import CONNECT_TIMEOUT, dial

DATA = re.compile(rb"^data: ?([^\r\n]*)", re.MULTILINE)


class EventTalk(Talk):
    """HTTP/1.1, because the streams' bytes can then be counted as they come."""

    MARK = b'"jsonrpc"'

    def __init__(self, url: str, token: str = "") -> None:
        super().__init__()
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        parts = urlsplit(url)
        self._path = parts.path
        self._posts = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=CONNECT_TIMEOUT)
        self._streams: dict[int, socket.socket] = {}
        self._poll = select.poll()
        self._early: list[bytes] = []

    def __enter__(self) -> EventTalk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._posts.close()
        for stream in self._streams.values():
            stream.close()

    def new_session(self, cwd: Path, agent: str | None = None) -> str:
        session = super().new_session(cwd, agent)
        self._listen({"Acp-Session-Id": session})
        return session

    def write(self, data: bytes) -> None:
        for line in data.splitlines():
            self._post(line)

    def read(self, timeout: float) -> bytes:
        if self._early:
            return self._early.pop()
        ready = self._poll.poll(max(0.0, timeout) * 1000)
        if not ready:
            raise ConversationError("the event stream stayed silent too long")
        chunk = self._streams[ready[0][0]].recv(READ_SIZE)
        if not chunk:
            raise ConversationError("the event stream was closed")
        return chunk

    def complete(self, chunks: list[bytes]) -> bool:
        return chunks[-1].endswith((b"\n\n", b"\n\n\r\n"))

    def lines(self, chunks: list[bytes]) -> list[bytes]:
        return [b"\n".join(DATA.findall(b"".join(chunks))) + b"\n"]

    def _post(self, line: bytes) -> None:
        message = json.loads(line)
        session = message.get("params", {}).get("sessionId")
        named = {"Acp-Session-Id": session} if session is not None else {}
        headers = {**self._headers, "Content-Type": "application/json", **named}
        self._posts.request("POST", self._path, line, headers)
        answer = self._posts.getresponse()
        body = answer.read()
        if answer.status not in (200, 202):
            raise ConversationError(f"POST was answered with {answer.status}: {body[:200]!r}")
        if message["method"] == "initialize":
            self._early.append(b"data: " + body + b"\n\n")
            self._headers["Acp-Connection-Id"] = answer.headers["Acp-Connection-Id"]
            self._listen({})

    def _listen(self, headers: dict[str, str]) -> None:
        stream = dial(self._url)
        all_headers = {"Host": urlsplit(self._url).netloc, **self._headers, **headers}
        head = [f"GET {self._path} HTTP/1.1", "Accept: text/event-stream"]
        head += [f"{name}: {value}" for name, value in all_headers.items()]
        stream.sendall("\r\n".join([*head, "", ""]).encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += stream.recv(READ_SIZE)
        if not answer.startswith(b"HTTP/1.1 200"):
            raise ConversationError(f"GET was answered with {answer[:200]!r}")
        self._streams[stream.fileno()] = stream
        self._poll.register(stream.fileno(), select.POLLIN)
