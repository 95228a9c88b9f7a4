"""One page connected at `/bridge`: runs its commands and sends its events."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from dragoman.bridge import limits
from dragoman.bridge.background_client import BackgroundClient
from dragoman.bridge.commands.table import COMMANDS, Outcome, Repeated
from dragoman.bridge.errors import BridgeError, as_bridge_error, unknown_session
from dragoman.bridge.events.translate import lost, translate
from dragoman.bridge.session_hub import SessionHub
from dragoman.gateway.access.client import Terms
from dragoman.gateway.access.rate_limit import RateLimit
from dragoman.gateway.delivery.attachment import missing
from dragoman.gateway.json_types import JsonObject, encode
from dragoman.gateway.ports.store import StoreError
from dragoman.gateway.session.session import Session
from dragoman.rpc.link import CodedLink, JournalSink, Link
from dragoman.rpc.request import Reply
from dragoman.wire.errors import RpcError
from dragoman.wire.framing import Frame, FramingError
from dragoman.wire.timestamps import second, timestamp

if TYPE_CHECKING:
    from dragoman.bridge.bridge import Bridge, Key

log = logging.getLogger(__name__)


class BridgeClient:
    """Implements `LinkHandler` for the page's socket."""

    def __init__(self, bridge: Bridge, terms: Terms, rate_limit: RateLimit) -> None:
        self.bridge = bridge
        self._rate_limit = rate_limit
        self.terms = terms
        self.gateway_client: PageClient
        self.listing = False
        """The page has requested the list of sessions and is sent its changes."""
        self.socket: Link
        self._watches: dict[str, Watch] = {}
        self._lanes: dict[str, deque[tuple[JsonObject, int]]] = {}
        """Waiting commands by session, each with its size."""
        self._pending = 0
        self._pending_bytes = 0

    # -- LinkHandler

    def link_opened(self, link: Link) -> None:
        self.socket = link
        self.gateway_client = PageClient(self)
        self.bridge.clients.add(self)
        self.tell(self.bridge.hello(self.terms.identity))

    def link_messages(self, frames: list[Frame]) -> None:
        for frame in frames:
            try:
                self._rate_limit.request(len(frame) if isinstance(frame, bytes) else 0)
                self._receive(frame)
            except (BridgeError, RpcError) as error:
                self.fail(as_bridge_error(error), {})
        self._pace()

    def link_writable(self, writable: bool) -> None:
        if writable:
            self._pace()
        self.gateway_client.client.peer.link_writable(writable)

    def link_closed(self, reason: str | None) -> None:
        self.bridge.clients.discard(self)
        self._lanes.clear()
        for session_id in list(self._watches):
            self.unwatch(session_id)
        self.gateway_client.leave(reason)

    # -- commands

    def _receive(self, frame: Frame) -> None:
        if isinstance(frame, FramingError):
            raise BridgeError("too_large", frame.message, "Send less at once.")
        try:
            command = msgspec.json.decode(frame)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BridgeError("bad_json", f"This is not JSON: {error}.") from error
        if not isinstance(command, dict) or not isinstance(command.get("type"), str):
            raise BridgeError("bad_request", "A command is an object with a `type`.")
        lane, size = command.get("sessionId"), len(frame)
        if isinstance(lane, str) and len(lane) > limits.ID_LENGTH:
            del command["sessionId"]
            self.fail(unknown_session(), command)
        elif not self._has_room(size):
            self.fail(BridgeError("too_many_commands", "Too many commands wait to be done already."), command)
        else:
            self._pending += 1
            self._pending_bytes += size
            self._begin(command, lane if isinstance(lane, str) else None, size)

    def _has_room(self, size: int) -> bool:
        if not self._pending:
            return True
        full = self._pending_bytes + size > limits.COMMAND_BYTES_WAITING
        return self._pending < limits.COMMANDS_WAITING and not full

    def _begin(self, command: JsonObject, lane: str | None, size: int) -> None:
        if lane is None:
            self.bridge.gateway.spawn(self._run(command, size))
        elif lane in self._lanes:
            self._lanes[lane].append((command, size))
        else:
            self._lanes[lane] = deque([(command, size)])
            self.bridge.gateway.spawn(self._run_lane(lane))

    def _pace(self) -> None:
        """Pause reading from a page with too many unfinished commands or unread responses, or resume it."""
        waits = self._pending > limits.COMMANDS_IN_FLIGHT or self._pending_bytes > limits.COMMAND_BYTES
        if waits or self.socket.backlog > limits.UNREAD_BYTES:
            self.socket.pause()
        else:
            self.socket.resume()

    async def _run_lane(self, lane: str) -> None:
        """Run the commands of one session in order."""
        while waiting := self._lanes.get(lane):
            await self._run(*waiting.popleft())
        self._lanes.pop(lane, None)

    async def _run(self, command: JsonObject, size: int) -> None:
        try:
            await self._do(command)
        except (BridgeError, RpcError, StoreError) as error:
            self.fail(as_bridge_error(error), command)
        except Exception as error:  # the page gets an answer even after a bug of the bridge
            log.exception("command failed", extra={"command": str(command.get("type"))})
            self.fail(as_bridge_error(error), command)
        finally:
            self._pending -= 1
            self._pending_bytes -= size
            self._pace()

    async def _do(self, command: JsonObject) -> None:
        """Do a command once, however often it is sent; a long one finishes while the next commands run."""
        known = COMMANDS.get(command["type"])
        if known is None:
            names = "Known are " + ", ".join(COMMANDS) + "."
            raise BridgeError("unknown_type", f"There is no command {command['type']!r}.", names)
        if not known.observers:
            self.gateway_client.client.check(command["type"])
        message_id, seen, key = _message_id(command), self.bridge.recent_commands, None
        if message_id is not None and not known.observers:
            about = (command["type"], str(command.get("sessionId"))[: limits.ID_LENGTH], message_id)
            key = (self.terms.identity.name, "\n".join(about))
            former = seen.get(key)
            if former is not None:
                self.bridge.gateway.spawn(self._finish(command, None, asyncio.shield(former), duplicate=True))
                return
            seen.begin(key)
        try:
            result = await known.handler(self, command)
        except Repeated as repeated:
            self._done(command, key, repeated.session_id, duplicate=True)
            return
        except Exception as error:  # a repeated command must not wait for this one
            if key is not None:
                seen.end(key, as_bridge_error(error))
            raise
        if isinstance(result, asyncio.Future):
            self.bridge.gateway.spawn(self._finish(command, key, result))
        else:
            self._done(command, key, result)

    async def _finish(
        self, command: JsonObject, key: Key | None, result: Outcome, *, duplicate: bool = False
    ) -> None:
        self._done(command, key, await result, duplicate=duplicate)

    def _done(
        self,
        command: JsonObject,
        key: Key | None,
        found: str | BridgeError | None,
        *,
        duplicate: bool = False,
    ) -> None:
        """Answer with `ack` or `error`."""
        if key is not None:
            self.bridge.recent_commands.end(key, found)
        if isinstance(found, BridgeError):
            self.fail(found, command)
        elif "clientMessageId" in command:
            ack: JsonObject = {"type": "ack", "clientMessageId": command["clientMessageId"]}
            if found is not None:
                ack["sessionId"] = found
            self.tell({**ack, "duplicate": True} if duplicate else ack)

    # -- events

    def tell(self, event: JsonObject) -> None:
        self.socket.send(encode(event))

    def fail(self, error: BridgeError, command: JsonObject) -> None:
        about: JsonObject = {
            name: command[name] for name in ("sessionId", "clientMessageId") if name in command
        }
        self.tell({"type": "error", **error.as_fields(), **about})

    def miss(self, session_id: str, first_seq: int, last_seq: int) -> None:
        """Report that requested events are no longer stored."""
        self.fail(BridgeError("pruned", missing(first_seq, last_seq)), {"sessionId": session_id})

    def watches(self, session_id: str) -> bool:
        return session_id in self._watches

    def hears_of(self, session_id: str) -> bool:
        return self.listing or session_id in self._watches

    def watch(self, hub: SessionHub, opening: Callable[[], None], after: int = 0) -> Watch:
        """Send this session's events from now on; `opening` runs before the first of them."""
        hub.watchers += 1  # before `unwatch`, which removes a hub without watchers
        self.unwatch(hub.session_id)
        watch = self._watches[hub.session_id] = Watch(self, hub, opening, after)
        return watch

    def lacks(self, session_id: str) -> bool:
        """Whether the page views a session without being attached: the session was closed meanwhile."""
        watch = self._watches.get(session_id)
        attached = self.gateway_client.client.session(session_id) is not None
        return watch is not None and watch.opened and not watch.rejoining and not attached

    def rejoin(self, session: Session) -> None:
        """Attach again to a session that is live again, after the last event that the page has."""
        watch = self._watches[session.id]
        watch.rejoining = True

        def joined(reply: Reply) -> None:
            watch.rejoining = False

        about = {"dragoman": {"afterSeq": watch.last}}
        self.gateway_client.ask(
            "session/resume", {"sessionId": session.id, "cwd": session.cwd, "_meta": about}, joined
        )

    def opened(self, session_id: str) -> None:
        self._watches[session_id].open()

    def unwatch(self, session_id: str) -> None:
        watch = self._watches.pop(session_id, None)
        if watch is not None:
            watch.hub.watchers -= 1
            self.bridge.tidy(session_id)

    def send_raw(self, event: bytes) -> None:
        self.socket.send(event)

    def sink(self, session_id: str) -> JournalSink:
        """Receives a session's journal for this page."""
        if self not in self.bridge.clients:  # the page disconnected while its session was created
            return self.bridge.background_clients.gateway_client()
        if session_id not in self._watches:  # a session that is being created
            self.watch(self.bridge.new_hub(session_id), lambda: None)
        return self._watches[session_id]


class PageClient(BackgroundClient):
    """The gateway client of one page; also implements `CodedLink`."""

    def __init__(self, page: BridgeClient) -> None:
        self._page = page
        super().__init__(page.bridge.gateway, page.terms)

    def journal_sink(self, session_id: str) -> JournalSink:
        return self._page.sink(session_id)

    @property
    def backlog(self) -> int:  # type: ignore[override]
        """Bytes queued to the page."""
        return self._page.socket.backlog

    def close(self) -> None:
        self._page.socket.close()
        super().close()  # commands that wait for an answer end

    def close_with(self, code: int, reason: str = "") -> None:
        if isinstance(self._page.socket, CodedLink):
            self._page.socket.close_with(code, reason)
        else:
            self.close()


class Watch:
    """Implements `JournalSink`; sends a session's journal to one page."""

    def __init__(
        self, client: BridgeClient, hub: SessionHub, opening: Callable[[], None], after: int
    ) -> None:
        self.hub = hub
        self.last = after
        """The number of the last event sent to the page."""
        self.rejoining = False
        """A `session/resume` is not answered yet."""
        self._client = client
        self._send = client.send_raw
        self._opening: Callable[[], None] | None = opening

    @property
    def opened(self) -> bool:
        return self._opening is None

    def open(self) -> None:
        opening, self._opening = self._opening, None
        if opening is not None:
            opening()

    def missing(self, first_seq: int, last_seq: int, damaged: bool) -> None:
        if self._opening is not None:
            self.open()
        if damaged:
            self._send(lost(self.hub.session_id, first_seq, last_seq))
            self.last = last_seq
        else:
            self._client.miss(self.hub.session_id, first_seq, last_seq)

    def events(self, first_seq: int, ts: int, events: list[bytes]) -> None:
        if self._opening is not None:
            self.open()
        known = self.last + 1 - first_seq
        if known > 0 and self._client.bridge.gateway.journaling:  # read twice when the owner changed
            first_seq, events = first_seq + known, events[known:]
            if not events:
                return
        send, hub, stamp = self._send, self.hub, f"{second(ts // 1000)}.{ts % 1000:03d}Z"
        shared = hub.watchers > 1
        for seq, event in enumerate(events, first_seq):
            send(
                hub.encode_event(seq, stamp, event)
                if shared
                else translate(hub.session_id, seq, stamp, event)
            )
        self.last = first_seq + len(events) - 1

    def unkept(self, ts: int, events: list[bytes]) -> None:
        if self._opening is not None:
            self.open()
        for event in events:
            self._send(translate(self.hub.session_id, None, timestamp(ts), event))


def _message_id(command: JsonObject) -> str | None:
    given = command.get("clientMessageId")
    if given is None:
        command.pop("clientMessageId", None)
        return None
    if not isinstance(given, str) or not 0 < len(given) <= limits.ID_LENGTH:
        del command["clientMessageId"]
        raise BridgeError(
            "bad_request", f"`clientMessageId` must be a text of at most {limits.ID_LENGTH} letters."
        )
    return given
