"""One end of a JSON-RPC connection: correlation in both directions.

Rules that this module alone implements:

- Ids of outgoing requests count up from 1 per peer; ids chosen by the peer are echoed byte by byte (G-010, G-011).
- The two directions have independent id spaces (G-012).
- A response to no pending request is dropped and logged, never forwarded and never answered (G-013).
- An id that is reused while in flight is refused (G-014); a notification is never answered (G-015).
- Every request is answered exactly once, also when its handler raises: a bug of the gateway becomes `-32603` here.
- Each message becomes one line: it may be sent as a line, as an event of a stream, or journaled (`wire.framing`).
- `$/cancel_request` is mapped through the tables; unmapped ones are dropped (G-067).

Nothing here awaits: a message is handled as soon as it is read, in the order of reading (G-005).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

import msgspec
from msgspec import Raw

from dragoman.rpc.byte_budget import ByteBudget
from dragoman.rpc.link import FlushLink, Link
from dragoman.rpc.request import Batch, OnReply, Reply, Request
from dragoman.wire import limits, message
from dragoman.wire.errors import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    Malformed,
    RpcError,
    internal,
    invalid_request,
    method_not_found,
)
from dragoman.wire.framing import CR, LF, Frame, FramingError, single_line
from dragoman.wire.message import ABSENT, Envelope, IdKey

log = logging.getLogger(__name__)

CANCEL_REQUEST = "$/cancel_request"

MAX_QUOTED = 500
"""Bytes of a malformed error object that are quoted in the forwarded error."""


class Receiver(Protocol):
    """Handles a peer's requests, notifications and errors; a subclass ignores what it does not define."""

    def peer_request(self, request: Request) -> None:
        raise method_not_found(request.method)

    def peer_notification(self, method: str, params: bytes) -> None:
        """A message without an answer."""
        return

    def peer_malformed(self, frame: bytes, error: Malformed) -> bool:
        """Handle a message that cannot be parsed; return True to send the peer an error response."""
        return False

    def peer_writable(self, writable: bool) -> None:
        """False: the peer reads too slowly, stop sending; True: continue."""
        return

    def peer_closed(self, reason: str | None) -> RpcError | None:
        """The connection ended; the returned error is the reply to all pending outgoing requests."""
        return None


class Peer:
    """Implements `LinkHandler`."""

    link: Link
    request_type: type[Request] = Request
    """The class of incoming requests."""

    def __init__(
        self,
        name: str,
        receiver: Receiver,
        *,
        strict: bool = True,
        accept_batches: bool = True,
        intercept: Callable[[bytes], bool] | None = None,
        budget: ByteBudget | None = None,
    ) -> None:
        """`strict` requires `"jsonrpc": "2.0"`; `intercept` gets each line first and returns True if it handled it.

        `budget` bounds the incoming requests in flight of all peers that share it.
        """
        self.name = name
        self._receiver = receiver
        self._strict = strict
        self._accept_batches = accept_batches
        self._intercept = intercept
        self._calls: dict[int, OnReply] = {}
        self._next_call = 0
        self._incoming: dict[IdKey, Request] = {}
        self._incoming_bytes = 0
        self._budget = budget if budget is not None else ByteBudget(limits.GATEWAY_REQUEST_BYTES)
        self.reads = 0
        """Number of reads, by which a caller that waits for a reply sees that the peer is not silent."""
        self.closed = False
        self.flush: Callable[[], None] | None = None
        """Writes the queued messages before this turn of the loop ends; None if the link cannot."""
        self.on_answer: Callable[[str, bool], None] | None = None
        """Called for each answered request of the peer with its method, and whether the answer is an error."""

    # -- outgoing

    def request(self, method: str, params: bytes, on_reply: OnReply) -> int:
        """Send a request; `on_reply` is called exactly once, also when the connection ends first."""
        self._next_call += 1
        call = self._next_call
        if self.closed:
            on_reply(Reply.failed(internal(f"{self.name} is gone", "connection_closed")))
            return call
        self._calls[call] = on_reply
        self.link.send(message.request(call, method, params))
        return call

    def notify(self, method: str, params: bytes) -> None:
        if not self.closed:
            self.link.send(message.notification(method, params))

    def cancel(self, call: int) -> None:
        """Ask the peer to cancel an outgoing request; its reply is still expected."""
        if call in self._calls:
            self.notify(CANCEL_REQUEST, b'{"requestId":%d}' % call)

    def forget(self, call: int) -> None:
        """Stop waiting for a reply; it is dropped when it arrives."""
        self._calls.pop(call, None)

    def incoming(self, key: IdKey) -> Request | None:
        return self._incoming.get(key)

    def settled(self, request: Request) -> None:
        if self._incoming.get(request.key) is request:
            del self._incoming[request.key]
            self._incoming_bytes -= request.size
            self._budget.give(request.size)

    # -- LinkHandler

    def link_opened(self, link: Link) -> None:
        self.link = link
        self.flush = link.flush if isinstance(link, FlushLink) else None

    def link_messages(self, frames: list[Frame]) -> None:
        self.reads += 1
        intercept = self._intercept
        for frame in frames:
            if isinstance(frame, FramingError):
                self._unframed(frame)
                continue
            if CR in frame or LF in frame:
                frame = single_line(frame)
            try:
                handled = intercept is not None and intercept(frame)
            except Exception:  # one bad message must not lose the others of this read
                log.exception("message failed", extra={"peer": self.name})
                handled = True
            if not handled:
                self.receive(frame)

    @property
    def waits_for_us(self) -> bool:
        """Whether a request of the peer is not answered yet."""
        return bool(self._incoming)

    def link_writable(self, writable: bool) -> None:
        self._receiver.peer_writable(writable)

    def link_closed(self, reason: str | None) -> None:
        if self.closed:
            return
        self.closed = True
        error = self._receiver.peer_closed(reason) or internal(f"{self.name} is gone", "connection_closed")
        calls, self._calls = self._calls, {}
        for on_reply in calls.values():
            self._deliver(on_reply, Reply.failed(error))
        self._incoming.clear()
        self._budget.give(self._incoming_bytes)
        self._incoming_bytes = 0

    # -- incoming

    def receive(self, line: bytes, batch: Batch | None = None) -> None:
        if batch is None and line[:1] != b"{" and message.is_batch(line):
            self._receive_batch(line)
            return
        try:
            envelope = message.decode(line)
            if self._strict and envelope.jsonrpc != "2.0":
                raise Malformed(
                    INVALID_REQUEST, 'Invalid request: "jsonrpc" must be "2.0"', _raw_id(envelope)
                )
            self._dispatch(envelope, batch)
        except Malformed as error:
            self._malformed(line, error, batch)

    def _dispatch(self, envelope: Envelope, batch: Batch | None) -> None:
        if envelope.method:
            params = _params(envelope)
            if envelope.id is ABSENT:
                self._notification(envelope.method, params)
            else:
                self._request(envelope, params, batch)
        elif envelope.id is not ABSENT and (
            envelope.result is not ABSENT
            or envelope.error is not ABSENT
            or self._call(envelope.id) is not None
        ):
            self._response(envelope)  # with neither, its result was `undefined` and counts as null (D-91)
        else:
            raise Malformed(INVALID_REQUEST, "Invalid request: no method, result or error", _raw_id(envelope))

    def _request(self, envelope: Envelope, params: bytes, batch: Batch | None) -> None:
        key = message.id_key(envelope.id)
        if key is None:
            raise Malformed(INVALID_REQUEST, "Invalid request: id must be a string, a number or null")
        request = self.request_type(self, bytes(envelope.id), key, envelope.method, params, batch)
        if batch is not None:
            batch.expect()
        if key in self._incoming:
            request.fail(invalid_request("A request with this id is still in flight", "duplicate_id"))
            return
        if (self._incoming and not self._has_room(request)) or not self._budget.take(request.size):
            request.fail(internal("Too many requests in flight; wait for answers", "too_many_requests"))
            return
        self._incoming[key] = request
        self._incoming_bytes += request.size
        try:
            self._receiver.peer_request(request)
        except RpcError as error:
            request.fail(error)
        except Malformed as error:
            request.fail(error.as_error())
        except Exception:  # the peer gets an answer even after a bug of the gateway
            log.exception("request failed", extra={"request": request.label, "method": request.method})
            request.fail(RpcError(INTERNAL_ERROR, "Internal error in the gateway; its log has the details"))

    def _has_room(self, request: Request) -> bool:
        """Whether the request fits beside those in flight; a single one may be as large as a message."""
        size = self._incoming_bytes + request.size
        return len(self._incoming) < limits.MAX_REQUESTS_IN_FLIGHT and size <= limits.REQUEST_BYTES_IN_FLIGHT

    def _notification(self, method: str, params: bytes) -> None:
        try:
            if method == CANCEL_REQUEST:
                self._cancel_requested(params)
            else:
                self._receiver.peer_notification(method, params)
        except (RpcError, Malformed) as error:
            log.info("notification ignored: %s", error, extra={"method": method, "peer": self.name})
        except Exception:  # one bad notification must not end the connection
            log.exception("notification failed", extra={"method": method, "peer": self.name})

    def _response(self, envelope: Envelope) -> None:
        call = self._call(envelope.id)
        if call is None:
            log.debug(
                "late or unknown response dropped",
                extra={"peer": self.name, "id": bytes(envelope.id).decode()},
            )
            return
        if envelope.error is ABSENT or envelope.error == _NULL:
            reply = Reply(result=b"null" if envelope.result is ABSENT else bytes(envelope.result))
        else:
            reply = Reply(error=self._error_object(bytes(envelope.error)))
        self._deliver(self._calls.pop(call), reply)

    def _error_object(self, raw: bytes) -> bytes:
        """Return a valid error object: some peers answer with a bare string, or with numbers out of range."""
        try:
            readable = isinstance(msgspec.json.decode(raw), dict)
        except (msgspec.DecodeError, RecursionError):
            readable = False
        if readable:
            return raw
        told = raw[:MAX_QUOTED].decode(errors="replace")
        return internal(f"{self.name} answered with an error that is no error object: {told}").encode()

    def _call(self, id: bytes | Raw) -> int | None:
        """The pending outgoing request that a response with this id answers."""
        key = message.id_key(id)
        call = key[1] if key is not None else None
        return call if type(call) is int and call in self._calls else None

    def _deliver(self, on_reply: OnReply, reply: Reply) -> None:
        try:
            on_reply(reply)
        except Exception:  # one bad reply must not end the connection or lose other replies
            log.exception("response failed", extra={"peer": self.name})

    def _cancel_requested(self, params: bytes) -> None:
        raw = message.members(params).get("requestId", ABSENT)
        key = message.id_key(raw) if raw is not ABSENT else None
        request = self._incoming.get(key) if key is not None else None
        if request is not None and request.on_cancel is not None:
            request.on_cancel()

    def _receive_batch(self, line: bytes) -> None:
        try:
            entries = message.decode_batch(line)
        except Malformed as error:
            self._malformed(line, error, None)
            return
        if not self._accept_batches or not entries or len(entries) > limits.MAX_BATCH_ENTRIES:
            reason = "empty batch" if not entries else "batches are not accepted"
            if self._accept_batches and entries:
                reason = f"a batch has at most {limits.MAX_BATCH_ENTRIES} entries"
            self._malformed(line, Malformed(INVALID_REQUEST, f"Invalid request: {reason}"), None)
            return
        batch = Batch(self.link.send)
        for entry in entries:
            self.receive(entry, batch)
        batch.close()

    def _unframed(self, frame: FramingError) -> None:
        id = message.find_id_in_prefix(frame.prefix) if frame.oversize else b"null"
        if message.is_response_prefix(frame.prefix):  # the caller gets the error, not the peer (G-013)
            call = self._call(id)
            if call is not None:
                self._deliver(
                    self._calls.pop(call), Reply.failed(internal(frame.message, "message_too_large"))
                )
            return
        code = INVALID_REQUEST if frame.oversize else PARSE_ERROR
        if not frame.silent:
            self._malformed(frame.prefix, Malformed(code, frame.message, id), None)
        if frame.fatal:
            self.link.close()

    def _malformed(self, line: bytes, error: Malformed, batch: Batch | None) -> None:
        if not self._receiver.peer_malformed(line, error):
            return
        answer = message.failure(error.id, error.as_error().encode())
        if batch is not None:
            batch.expect()
            batch.add(answer)
        else:
            self.link.send(answer)


_NULL = Raw(b"null")


def _raw_id(envelope: Envelope) -> bytes:
    return b"null" if envelope.id is ABSENT or message.id_key(envelope.id) is None else bytes(envelope.id)


def _params(envelope: Envelope) -> bytes:
    return message.EMPTY if envelope.params is ABSENT else bytes(envelope.params)
