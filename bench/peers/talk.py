"""What every counting client does, whatever carries its messages."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

READ_SIZE = 1 << 18
REQUEST_TIMEOUT = 30.0
FLOOD_TIMEOUT = 60.0


class ConversationError(Exception):
    """The contender died, answered with an error, or stayed silent too long."""


@dataclass
class Received:
    """What one timed exchange brought: the seconds it took and the messages, a line each, in any chunks."""

    seconds: float
    chunks: list[bytes] = field(repr=False)


class Talk(ABC):
    """The client's end of one conversation.

    Request ids are strings found nowhere else in the stream, so that a response is noticed by a search in the
    raw bytes.
    """

    MARK: bytes
    """Found once in the raw bytes of every message."""

    def __init__(self) -> None:
        self._sent = 0

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Send whole lines, one message each."""

    @abstractmethod
    def read(self, timeout: float) -> bytes:
        """Read what there is, within `timeout` seconds."""

    @abstractmethod
    def complete(self, chunks: list[bytes]) -> bool:
        """Whether the last message in these raw chunks is whole."""

    def lines(self, chunks: list[bytes]) -> list[bytes]:
        """The messages in raw chunks, one per line."""
        return chunks

    def request(self, method: str, params: dict[str, Any], timeout: float = REQUEST_TIMEOUT) -> Any:
        """Send a request and return its result; other messages that arrive meanwhile are dropped."""
        token = self.send(method, params)
        received = self.collect({token}, 1, timeout)
        for line in b"".join(received.chunks).splitlines():
            if token in line:
                message = json.loads(line)
                if "result" not in message:
                    raise ConversationError(f"{method} was answered with {message.get('error')}")
                return message["result"]
        raise ConversationError(f"{method} was not answered")

    def initialize(self) -> Any:
        return self.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})

    def new_session(self, cwd: Path, agent: str | None = None) -> str:
        """With the agent that the process is bound to, or the one that is named."""
        params: dict[str, Any] = {"cwd": str(cwd), "mcpServers": []}
        if agent is not None:
            params["_meta"] = {"dragoman": {"agent": agent}}
        return str(self.request("session/new", params)["sessionId"])

    def prompt(self, session: str, text: str) -> Any:
        return self.request("session/prompt", prompt_params(session, text))

    def send(self, method: str, params: dict[str, Any]) -> bytes:
        """Write a request and return the bytes that only its response will hold."""
        token, line = self.encode(method, params)
        self.write(line)
        return token

    def encode(self, method: str, params: dict[str, Any]) -> tuple[bytes, bytes]:
        self._sent += 1
        request_id = f"req-{self._sent:08d}-end"
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        return request_id.encode(), json.dumps(message, separators=(",", ":")).encode() + b"\n"

    def collect(self, tokens: set[bytes], messages: int, timeout: float) -> Received:
        """Read until at least `messages` and all `tokens` have come, and the last message is complete.

        While fewer than that have come, each chunk costs one count of `MARK` and nothing else; the clock stops
        with the last chunk, before the search for the tokens.
        """
        started = time.perf_counter()
        deadline = started + timeout
        chunks: list[bytes] = []
        seen, searched, missing = 0, 0, set(tokens)
        overlap, seam = len(self.MARK) - 1, b""  # a mark may be cut in half between two chunks
        while True:
            chunk = self.read(deadline - time.perf_counter())
            chunks.append(chunk)
            seen += chunk.count(self.MARK)
            if overlap:
                seen += (seam + chunk[:overlap]).count(self.MARK)
                seam = (seam + chunk[-overlap:])[-overlap:]
            if seen < messages:
                continue
            seconds = time.perf_counter() - started
            recent = b"".join(chunks[max(0, searched - 1) :])
            missing = {token for token in missing if token not in recent}
            searched = len(chunks)
            if not missing and self.complete(chunks):
                return Received(seconds, self.lines(chunks))

    def prepare(self, session: str, count: int, size: int) -> None:
        self.prompt(session, f"prepare {count} {size}")

    def flood(self, sessions: list[str], count: int, size: int, stall: float = 0.0) -> Received:
        """Let every session flood `count` updates at once; the clock runs from the prompts to the last byte.

        With `stall`, the client stops reading for so many seconds after the prompts.
        """
        encoded = [self.encode("session/prompt", prompt_params(s, f"flood {count} {size}")) for s in sessions]
        self.write(b"".join(line for _, line in encoded))
        time.sleep(stall)
        tokens = {token for token, _ in encoded}
        return self.collect(tokens, len(sessions) * (count + 1), FLOOD_TIMEOUT)

    def echo(self, session: str) -> float:
        """Prompt `echo` and return the seconds until its response was read."""
        token, line = self.encode("session/prompt", prompt_params(session, "echo"))
        started = time.perf_counter()
        self.write(line)
        self.collect({token}, 2, REQUEST_TIMEOUT)
        return time.perf_counter() - started


def prompt_params(session: str, text: str) -> dict[str, Any]:
    return {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
