"""Many WebSocket clients in one process, most of them silent; what they receive is judged when all is over."""

from __future__ import annotations

import re
import resource
import select
import socket
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path

from bench.delivery import Faults, check_flood
from bench.peers.talk import READ_SIZE, ConversationError, prompt_params
from bench.peers.websocket import PING, PONG, WebSocketTalk, frame, frames

STAMPED = re.compile(rb"@(\d+)@")
PATIENCE = 60.0
PERCENTILES = 100
EDGE = 500_000_000
"""Nanoseconds at both ends of a stream that are not judged."""


@dataclass
class Streamed:
    """One client's part of it: when each chunk came, and what was in it."""

    session: str
    token: bytes = b""
    chunks: list[tuple[int, bytes]] = field(default_factory=list)
    done: bool = False


class Crowd:
    """`count` connected and initialized clients of one server."""

    def __init__(self, url: str, token: str, count: int) -> None:
        allow_files(count)
        # A small buffer each, or the kernel would need a gigabyte for them.
        self.talks = [WebSocketTalk(url, token, receive_buffer=65536) for _ in range(count)]
        for talk in self.talks:
            talk.initialize()

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, *_: object) -> None:
        for talk in self.talks:
            talk.socket.close()

    def sessions(self, count: int, cwd: Path) -> list[str]:
        return [talk.new_session(cwd) for talk in self.talks[:count]]

    def stream(self, sessions: list[str], count: int, rate: int) -> tuple[float, Faults]:
        """Let the first clients stream at once; returns the p99 of the delivery in milliseconds, and what went wrong."""
        parts = {
            talk.socket.fileno(): Streamed(session)
            for talk, session in zip(self.talks, sessions, strict=False)
        }
        poll = select.epoll()
        for talk in self.talks:
            poll.register(talk.socket.fileno(), select.EPOLLIN)
        try:
            self._start(parts, count, rate)
            self._receive(poll, parts, time.monotonic() + PATIENCE + count / rate)
        finally:
            poll.close()
        return _judge(list(parts.values()), count)

    def _start(self, parts: dict[int, Streamed], count: int, rate: int) -> None:
        for talk in self.talks[: len(parts)]:
            part = parts[talk.socket.fileno()]
            part.token = talk.send("session/prompt", prompt_params(part.session, f"stream {count} {rate}"))

    def _receive(self, poll: select.epoll, parts: dict[int, Streamed], deadline: float) -> None:
        sockets: dict[int, socket.socket] = {talk.socket.fileno(): talk.socket for talk in self.talks}
        missing = len(parts)
        while missing:
            if time.monotonic() > deadline:
                raise ConversationError(f"{missing} of {len(parts)} streams did not end")
            for number, _ in poll.poll(1.0):
                chunk = sockets[number].recv(READ_SIZE)
                now = time.monotonic_ns()
                if not chunk:
                    raise ConversationError("a WebSocket was closed")
                part = parts.get(number)
                if part is None:
                    _answer_pings(sockets[number], chunk)
                    continue
                part.chunks.append((now, chunk))
                if not part.done and part.token in chunk:
                    part.done = True
                    missing -= 1


def allow_files(count: int) -> None:
    """A socket is a file, and the usual limit is 1024 of them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * count + 256
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))


def _answer_pings(connection: socket.socket, chunk: bytes) -> None:
    for opcode, payload in frames(chunk)[0]:
        if opcode == PING:
            connection.sendall(frame(PONG, payload))


def _judge(parts: list[Streamed], count: int) -> tuple[float, Faults]:
    faults = Faults()
    delays: list[tuple[int, float]] = []
    for part in parts:
        for now, chunk in part.chunks:
            delays += [(int(stamp), (now - int(stamp)) / 1e6) for stamp in STAMPED.findall(chunk)]
        found, _ = frames(b"".join(chunk for _, chunk in part.chunks))
        faults += check_flood([b"\n".join(payload for _, payload in found) + b"\n"], [part.session], count)
    first, last = min(delays)[0], max(delays)[0]
    # While they stream: a hundred prompts within a millisecond, and their ends, are another matter.
    streaming = [delay for sent, delay in delays if first + EDGE < sent < last - EDGE]
    return statistics.quantiles(streaming, n=PERCENTILES)[-1], faults
