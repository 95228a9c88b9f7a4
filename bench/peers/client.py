"""A client that does nothing but count while the clock runs; what it received is checked afterwards."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

READ_SIZE = 1 << 18
REQUEST_TIMEOUT = 30.0
FLOOD_TIMEOUT = 60.0
END_TIMEOUTS = (3.0, 2.0, 2.0)


class ConversationError(Exception):
    """The contender died, answered with an error, or stayed silent too long."""


@dataclass
class Received:
    """What one timed exchange brought: the seconds it took and the raw chunks."""

    seconds: float
    chunks: list[bytes] = field(repr=False)


class Conversation:
    """One contender's process and the client end of its pipes.

    Request ids are strings found nowhere else in the stream, so that a response is noticed by a search in the
    raw bytes. The process leads its own group; only that group is signalled when it does not end by itself.
    """

    def __init__(self, command: list[str], env: dict[str, str], cwd: Path) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the conversation
        self._name = Path(command[0]).name
        self._sent = 0
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            bufsize=0,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN | select.POLLHUP)

    def __enter__(self) -> Conversation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        """Close stdin and wait; a process that stays is signalled, then killed, all bounded."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        for timeout, number in zip(END_TIMEOUTS, (signal.SIGTERM, signal.SIGKILL, None), strict=True):
            try:
                self._process.wait(timeout)
                break
            except subprocess.TimeoutExpired:
                if number is not None:
                    os.killpg(self._process.pid, number)
        self._process.stdout.close()
        self._stderr.close()

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

    def write(self, data: bytes) -> None:
        try:
            os.write(self._in, data)
        except BrokenPipeError:
            raise self._failure("closed its stdin") from None

    def collect(self, tokens: set[bytes], lines: int, timeout: float) -> Received:
        """Read until at least `lines` lines and all `tokens` have come, and the last line is complete.

        While fewer lines than that have come, each chunk costs one count of newlines and nothing else; the
        clock stops with the last chunk, before the search for the tokens.
        """
        started = time.perf_counter()
        deadline = started + timeout
        chunks: list[bytes] = []
        seen, searched, missing = 0, 0, set(tokens)
        while True:
            chunks.append(self.read(deadline - time.perf_counter()))
            seen += chunks[-1].count(b"\n")
            if seen < lines:
                continue
            seconds = time.perf_counter() - started
            recent = b"".join(chunks[max(0, searched - 1) :])
            missing = {token for token in missing if token not in recent}
            searched = len(chunks)
            if not missing and chunks[-1].endswith(b"\n"):
                return Received(seconds, chunks)

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

    def read(self, timeout: float) -> bytes:
        """Read what the pipe holds, within `timeout` seconds."""
        if not self._poll.poll(max(0.0, timeout) * 1000):
            raise self._failure("stayed silent too long")
        chunk = os.read(self._out, READ_SIZE)
        if not chunk:
            raise self._failure("closed its stdout")
        return chunk

    def _failure(self, what: str) -> ConversationError:
        code = self._process.poll()
        # At a position of its own: the child shares this file's offset and would write over its last words.
        end = os.fstat(self._stderr.fileno()).st_size
        tail = os.pread(self._stderr.fileno(), 2000, max(0, end - 2000)).decode(errors="replace").strip()
        state = "" if code is None else f" (exit code {code})"
        return ConversationError(f"{self._name} {what}{state}\n{tail}".strip())


def prompt_params(session: str, text: str) -> dict[str, Any]:
    return {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
