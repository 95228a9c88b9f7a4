"""One WebSocket (RFC 6455), client or server, directly on a transport: the frames of one loop turn leave in one write.

Compression is not offered: the peer is mostly on the same machine, and a decompression bomb is ruled out.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import os
from collections.abc import Callable
from typing import cast

from wsproto.frame_protocol import CloseReason, FrameProtocol, Opcode, ParseFailed

from dragoman.rpc.link import LinkHandler
from dragoman.rpc.loop_budget import loop_budget
from dragoman.rpc.outbox import Outbox
from dragoman.rpc.rate_limit import RateLimit
from dragoman.wire import limits
from dragoman.wire.framing import Frame, FramingError, is_utf8, single_line
from dragoman.wire.limits import OVERSIZE_PREFIX_BYTES

log = logging.getLogger(__name__)

NORMAL = 1000
PROTOCOL_ERROR = 1002

PING_INTERVAL = 20.0
"""Seconds between pings (G-128); a peer that is silent for twice as long is disconnected: half-open connections."""

CLOSE_TIMEOUT = 2.0
"""Seconds that a peer has to answer a close frame."""

_PING = b"\x89\x00"  # unmasked, as servers send it; ready-made for a thousand clients

_TEXT = 0x81
"""First byte of a whole text frame."""
_MASKED = 0x80
"""Added to the second byte of a frame with a mask."""
_TWO_BYTES = 126
"""The second byte of a frame whose length is in the two bytes after it (RFC 6455 §5.2)."""
_SHORT_BYTES = 65_535
"""Longest read that `whole_text` gets; longer ones go to the general reader, which takes a part at a time."""

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def accept_key(key: str) -> str:
    """The value of `Sec-WebSocket-Accept` (RFC 6455 §4.2.2)."""
    return base64.b64encode(hashlib.sha1(key.encode() + _GUID).digest()).decode()


def join_frames(messages: list[bytes]) -> bytes:
    """Each message as one whole text frame without a mask, as servers send it, for one write."""
    parts: list[bytes] = []
    for message in messages:
        size = len(message)
        if size < 126:
            parts += (b"\x81%c" % size, message)
        elif size < 65536:
            parts += (b"\x81\x7e", size.to_bytes(2), message)
        else:
            parts += (b"\x81\x7f", size.to_bytes(8), message)
    return b"".join(parts)


def join_masked_frames(messages: list[bytes]) -> bytes:
    return b"".join(map(frame_masked_text, messages))


def frame_masked_text(payload: bytes) -> bytes:
    """One whole text frame with a mask, as clients must send it (RFC 6455 §5.3)."""
    size, mask = len(payload), os.urandom(4)
    if size < 126:
        length = b"%c" % (0x80 | size)
    elif size < 65536:
        length = b"\xfe%b" % size.to_bytes(2)
    else:
        length = b"\xff%b" % size.to_bytes(8)
    repeated = (mask * (size // 4 + 1))[:size]
    masked = (int.from_bytes(payload) ^ int.from_bytes(repeated)).to_bytes(size)
    return b"\x81%b%b%b" % (length, mask, masked)


def whole_text(data: bytes) -> bytes | None:
    """The text of `data` if it is exactly one whole, masked text frame, as nearly every message of a client is.

    None for everything else, also for protocol errors: the general reader reports them.
    """
    if len(data) < 6 or data[0] != _TEXT:
        return None
    size, start = data[1] - _MASKED, 2
    if size == _TWO_BYTES:
        size, start = int.from_bytes(data[2:4]), 4
        if size < _TWO_BYTES:
            return None
    if not 0 <= size == len(data) - start - 4 or (start == 2 and size > _TWO_BYTES):
        return None
    mask = data[start : start + 4]
    repeated = (mask * (size // 4 + 1))[:size]
    text = (int.from_bytes(data[start + 4 :]) ^ int.from_bytes(repeated)).to_bytes(size)
    return single_line(text) if text.isascii() or is_utf8(text) else None


class _Frames(FrameProtocol):
    @property
    def between_messages(self) -> bool:
        """Whether all received bytes are read and the next byte begins a message."""
        decoder = self._frame_decoder
        return not decoder.buffer and decoder.header is None and self._message_decoder.opcode is None


class WebSocket(asyncio.Protocol):
    """Implements `Link`."""

    def __init__(
        self,
        handler: LinkHandler,
        max_bytes: int,
        *,
        client: bool,
        ping_interval: float = PING_INTERVAL,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._handler = handler
        self._deliver: Callable[[list[Frame]], None] = handler.link_messages
        self._on_end = on_end
        self._ping_interval = ping_interval
        self._loop = asyncio.get_running_loop()
        self._frames = _Frames(client=client, extensions=[])
        self._short_bytes = min(max_bytes, _SHORT_BYTES)
        self._between = not client
        """The next byte from a client begins a message, so `whole_text` may read it."""
        self._message = _Message(max_bytes)
        self._outbox = Outbox(self._loop, handler.link_writable)
        self._outbox.use_framing(join_masked_frames if client else join_frames)
        self.send = self._outbox.send  # no wrapper method: every update passes here
        self.send_all = self._outbox.send_all
        self.flush = self._outbox.flush
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._heard = self._loop.time()
        self._budget = loop_budget()
        self._idle_frames = RateLimit(limits.IDLE_FRAMES, limits.IDLE_FRAMES_WITHIN)
        self._paused = False
        """The handler paused reading."""
        self._behind = False
        """Received frames are not read yet, so the socket is not read."""
        self._scheduled = False
        self._waits = False
        self._closing = False
        self._broken = False  # after a protocol error: further bytes cannot be parsed
        self._ended = False
        self._reason: str | None = None
        self.received = 0
        """Bytes received, with framing."""

    def open(self, transport: asyncio.Transport, answer: bytes, early: bytes) -> None:
        """Take over the connection; `answer` is the handshake response, `early` the bytes that followed the request."""
        self._transport = transport
        if answer:
            transport.write(answer)
        transport.set_protocol(self)
        self._handler.link_opened(self)
        self._outbox.attach(transport)
        self._timer = self._loop.call_later(self._ping_interval, self._ping)
        if early:
            self.data_received(early)

    # -- Link

    def pause(self) -> None:
        self._paused = True
        self._read_or_wait()

    def resume(self) -> None:
        if self._paused:
            self._paused = False
            if self._behind:
                self._go_on_later()
            self._read_or_wait()

    def _read_or_wait(self) -> None:
        """Read from the socket, or stop reading so that TCP flow control slows the peer down."""
        waits = self._paused or self._behind
        if self._transport is None or waits == self._waits or self._transport.is_closing():
            return
        self._waits = waits
        if waits:
            self._transport.pause_reading()
        else:
            self._heard = self._loop.time()  # the peer was not silent: this side did not read
            self._transport.resume_reading()

    def close(self) -> None:
        self.close_with(NORMAL)

    @property
    def backlog(self) -> int:
        return self._outbox.backlog

    @property
    def sent(self) -> int:
        return self._outbox.written

    # -- closing

    def close_with(self, code: int, reason: str = "") -> None:
        """Send the queued messages and a close frame; a peer that does not answer the close frame is disconnected."""
        if self._closing or self._transport is None:
            return
        self._write_control(self._frames.close(code, reason))
        self._close_outbox()
        self.resume()  # otherwise the peer's close frame would never be read
        self._set_timer(CLOSE_TIMEOUT, self._transport.abort)

    def _close_outbox(self) -> None:
        """Nothing may follow a close frame (RFC 6455 §5.5.1)."""
        self._closing = True
        self._outbox.stop()

    def _set_timer(self, seconds: float, action: Callable[[], object]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, action)

    def _write_control(self, frame: bytes | bytearray) -> None:
        self._outbox.flush()
        if self._transport is not None and not self._closing and not self._transport.is_closing():
            self._transport.write(frame)

    def _ping(self) -> None:
        silence = self._loop.time() - self._heard
        if silence > 2 * self._ping_interval and not self._waits and self._transport is not None:
            self._reason = f"silent for {silence:.0f} s"
            log.info("websocket peer is silent for %d s, closing", silence)
            self._transport.abort()
            return
        self._write_control(self._frames.ping(b"") if self._frames.client else _PING)
        self._set_timer(self._ping_interval, self._ping)

    # -- asyncio.Protocol

    def data_received(self, data: bytes) -> None:
        self._heard = self._loop.time()
        self.received += len(data)
        if self._broken:
            return
        if self._between and len(data) <= self._short_bytes:
            text = whole_text(data)
            if text is not None:
                self._hand_over([text])
                return
        self._frames.receive_bytes(data)
        if not self._behind:
            self._read_frames()

    def _read_frames(self) -> None:
        """Read frames until the loop turn's budget, the handler or the rate limit stops it; the others wait."""
        self._scheduled = False
        while not self._ended:
            delay = self._read_some()
            self._behind = delay is not None
            if delay is None or self._paused:
                break
            if delay or self._budget.spent():
                self._go_on_later(delay)
                break
        self._between = not self._behind and not self._frames.client and self._frames.between_messages
        self._read_or_wait()

    def _go_on_later(self, delay: float = 0.0) -> None:
        if self._scheduled:
            return
        self._scheduled = True
        if self._frames.client and not delay:
            # An agent that this process connected to does not wait behind floods of clients.
            self._loop.call_soon(self._read_frames)
        elif delay:
            self._loop.call_later(delay, self._budget.later, self._read_frames)
        else:
            self._budget.later(self._read_frames)

    def _read_some(self) -> float | None:
        """Pass the messages of the next frames on; return the seconds until more may be read, None if none are left."""
        left = limits.FRAMES_AT_ONCE
        delay: float | None = None
        messages: list[Frame] = []
        try:
            for opcode, payload, frame_finished, finished in self._frames.received_frames():
                if opcode is Opcode.TEXT or opcode is Opcode.BINARY:
                    done = self._message.add(opcode, payload, finished)
                    if done is not None:
                        messages.append(done)
                else:
                    done = None
                    self._control(opcode, payload)
                if done is None and frame_finished and not self._count_idle_frame(opcode, payload):
                    delay = self._idle_frames.wait
                    break
                left -= 1
                if not left:
                    delay = 0.0
                    break
        except ParseFailed as error:
            log.info("websocket peer broke the protocol: %s", error)
            self._broken = True
            self._hand_over(messages)
            self.close_with(int(error.code or PROTOCOL_ERROR), str(error)[:100])
            return None
        self._hand_over(messages)
        return delay

    def _count_idle_frame(self, opcode: Opcode, payload: object) -> bool:
        """Count a frame that ended no message if it has next to no content; False above the rate of such frames."""
        if opcode is Opcode.TEXT:
            says = len(cast("str", payload)) >= limits.TINY_FRAGMENT_BYTES
        else:
            says = opcode is Opcode.CLOSE
        return says or self._idle_frames.take()

    def _control(self, opcode: Opcode, payload: object) -> None:
        if opcode is Opcode.PING:
            self._write_control(self._frames.pong(cast("bytes", payload)))
        elif opcode is Opcode.CLOSE:
            code, words = cast("tuple[int, str | None]", payload)
            self._reason = f"closed with code {int(code)}{f': {words}' if words else ''}"
            if not self._closing:
                self._write_control(self._frames.close(_echo(code)))
                self._close_outbox()
            if self._transport is not None:
                self._transport.close()

    def _hand_over(self, frames: list[Frame]) -> None:
        if frames and not self._closing:
            self._deliver(frames)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._close_outbox()
        if self._timer is not None:
            self._timer.cancel()
        if not self._ended:
            self._ended = True
            self._handler.link_closed(str(error) if error is not None else self._reason)
            self._on_end()

    def pause_writing(self) -> None:
        self._outbox.pause_writing()

    def resume_writing(self) -> None:
        self._outbox.resume_writing()


class _Message:
    """Joins the fragments of one message; an oversize message is skipped and its end gives a `FramingError` (G-143)."""

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._whole = bytearray()  # not a list of parts: a peer may send empty fragments without end
        self._size = 0

    def add(self, opcode: Opcode, payload: object, finished: bool) -> Frame | None:
        if opcode is Opcode.BINARY:
            return None  # ignored (G-128)
        part = cast("str", payload).encode()
        self._size += len(part)
        if self._size <= self._max:
            self._whole += part
        elif len(self._whole) < OVERSIZE_PREFIX_BYTES:
            self._whole += part[:OVERSIZE_PREFIX_BYTES]
        if not finished:
            return None
        whole, size = bytes(self._whole), self._size
        self._whole.clear()
        self._size = 0
        if size > self._max:
            error = f"Message of {size} bytes exceeds the limit of {self._max}"
            return FramingError(error, whole[:OVERSIZE_PREFIX_BYTES], oversize=True)
        return single_line(whole)


def _echo(code: int) -> int:
    """The code to answer a close frame with; 1005 stands for no code and must not be sent (RFC 6455 §7.4.1)."""
    return NORMAL if code in (CloseReason.NO_STATUS_RCVD, 0) else code
