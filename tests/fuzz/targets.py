"""The parsers that read what others wrote, each as a function of bytes.

A target may raise nothing: what a parser refuses in its own words is caught here, everything else is a find. Where a
parser promises more than not to break (pieces give what the whole gives, a frame holds no line end), that is asserted.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import logging
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import h11
import msgspec

from dragoman import masking, terminal
from dragoman.agents.claude.stream import Stream
from dragoman.agents.codex.items import Items
from dragoman.agents.remote.sse import EventDecoder, TooLong
from dragoman.bridge.events import translate
from dragoman.config import environment, load, schema
from dragoman.config.check import check
from dragoman.config.errors import ConfigError
from dragoman.config.model import PolicyConfig, PolicyRule
from dragoman.gateway.access.capabilities import AgentCapabilities
from dragoman.gateway.delivery import events
from dragoman.gateway.lifecycle import mcp_servers
from dragoman.gateway.path_mapping.paths import PathMap
from dragoman.gateway.ports.store import BadCursor, SchemaTooNew
from dragoman.gateway.rewriting import dialects, reserved, rewrite
from dragoman.gateway.rewriting.content import read_prompt
from dragoman.gateway.rewriting.updates import UpdateRewriter, read_head
from dragoman.gateway.session.policy import verdict as policy
from dragoman.rpc.websocket import WebSocket, frame_masked_text
from dragoman.server.auth.admission import Admission, Visit
from dragoman.server.auth.credentials import Credentials
from dragoman.server.hypercorn.h2_frames import FrameGate, Refused
from dragoman.server.hypercorn.strict_h11 import head_size, strict_connection
from dragoman.server.listen.trusted_proxies import TrustedProxies
from dragoman.store import directory, segments
from dragoman.wire import message
from dragoman.wire.errors import Malformed, RpcError
from dragoman.wire.framing import ClientDecoder, FramingError, LineDecoder
from fuzz import values

Target = Callable[[bytes], None]

LIMIT = 4096
"""Bytes of the longest message here: small, so that inputs reach it."""


def _pieces(data: bytes) -> tuple[bytes, bytes]:
    """The input without its first byte, cut where that says."""
    cut = data[0] * (len(data) - 1) // 255 if data else 0
    return data[1 : 1 + cut], data[1 + cut :]


def lines(data: bytes) -> None:
    """stdio, TCP and unix sockets: lines or Content-Length, whichever comes first."""
    first, second = _pieces(data)
    for make in (ClientDecoder, LineDecoder):
        whole, split = make(LIMIT), make(LIMIT)
        at_once = whole.feed(first + second + b"\n")
        in_pieces = split.feed(first) + split.feed(second) + split.feed(b"\n")
        assert at_once == in_pieces
        assert all(b"\n" not in frame for frame in at_once if isinstance(frame, bytes))
        for frame in at_once:
            if isinstance(frame, FramingError):
                message.find_id_in_prefix(frame.prefix)


_JSON = msgspec.json.Decoder(msgspec.Raw)


def envelopes(data: bytes) -> None:
    """One JSON-RPC message, or a batch."""
    with contextlib.suppress(Malformed):
        message.decode(data)
        if b"\\u" not in data:  # half an emoji is read too
            _JSON.decode(data)  # whatever passes is JSON
    with contextlib.suppress(Malformed):
        if message.is_batch(data):
            for entry in message.decode_batch(data):
                message.find_id(entry)
    with contextlib.suppress(Malformed):
        message.members(data)
    found = message.find_id(data)
    _JSON.decode(found)
    _JSON.decode(message.find_id_in_prefix(data))
    message.is_response_prefix(data)


def updates(data: bytes) -> None:
    """An agent's line on its way to the clients: spliced, or rewritten."""
    line = data
    if data[:1] == b"\x00":  # a well-formed one, whatever it says
        update = {"sessionUpdate": values.Reader(data[1:]).word(), **values.Reader(data[2:]).object()}
        params = {"sessionId": "s1", "update": update}
        line = msgspec.json.encode({"jsonrpc": "2.0", "method": "session/update", "params": params})
    head = read_head(line)
    if head is None:
        return
    cleaned = reserved.cleaned(line)
    read = read_head(cleaned)
    assert read is not None
    rewriter = UpdateRewriter("s1", "dgm_1", lambda update: False)
    assert rewriter.splice(cleaned, read.size) == rewriter.splice(cleaned)
    for made in (rewriter.splice(cleaned), *rewriter.rewrite(cleaned, read.size)):
        assert b'"dgm_1"' in made
        read_head(made)


def parameters(data: bytes) -> None:
    """Params of requests and notifications, whose session id is exchanged."""
    rewrite.session_of(data)
    rewrite.meta_of(data)
    reserved.cleaned(data)
    with contextlib.suppress(Malformed):
        made = rewrite.with_session(data, "dgm_1")
        assert rewrite.session_of(made) == "dgm_1"
        rewrite.without_session(data)
        rewrite.one_session(data)


def dialects_of_agents(data: bytes) -> None:
    """Everything that is read into and corrected: tool calls, plans, options, permissions, results."""
    reader = values.Reader(data)
    made = reader.object()
    for read in (
        dialects.read_update,
        dialects.read_permission,
        dialects.read_session_result,
        dialects.read_config_options,
        dialects.read_stop_reason,
        dialects.is_session_lost,
    ):
        read(msgspec.json.decode(msgspec.json.encode(made)))
    rules = [PolicyRule(decision="allow", kind=[reader.word()]), PolicyRule(decision="deny")]
    policy.decide(PolicyConfig(rules=rules, narrow=[PolicyRule(decision="ask")]), made)
    policy.choose_option("allow", reader.value())
    with contextlib.suppress(RpcError):
        mcp_servers.check_mcp_servers(made.get("mcpServers", [made, reader.value()]))


def claude_lines(data: bytes) -> None:
    """What Claude Code says in its own words, line after line."""
    stream, reader = Stream(), values.Reader(data)
    for _ in range(4):
        for update in stream.read({"type": reader.word(), **reader.object()}):
            assert isinstance(update["sessionUpdate"], str)
            msgspec.json.encode(update)
    stream.end_turn()


def codex_items(data: bytes) -> None:
    """The same of Codex: notifications of its server."""
    items, reader = Items(), values.Reader(data)
    for _ in range(4):
        for update in items.read(reader.word(), reader.object()):
            assert isinstance(update["sessionUpdate"], str)
            msgspec.json.encode(update)
    items.end_turn()


def prompts(data: bytes) -> None:
    """The blocks of a client's prompt."""
    blocks = data if data[:1] == b"[" else msgspec.json.encode([values.Reader(data).object()])
    if not blocks.isascii():
        blocks = blocks.decode(errors="replace").encode()  # every line was checked before
    with contextlib.suppress(RpcError, Malformed):
        read_prompt({"prompt": msgspec.Raw(blocks)}, 200).for_agent(AgentCapabilities({}), "agent")


def bridge_events(data: bytes) -> None:
    """The journal's events as the page gets them."""
    kind, rest = data[:1], data[1:]
    reader = values.Reader(rest)
    if kind and kind[0] & 1:
        told = {"dragoman": reader.word(), **reader.object()}
        event = events.RECORD + msgspec.json.encode(told)
    else:
        update = {"sessionUpdate": reader.word(), **reader.object()}
        line = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}
        event = (events.PROMPT if kind and kind[0] & 2 else b"u") + msgspec.json.encode(line)
    shown = msgspec.json.decode(translate.translate("s", 1, "2026-01-01T00:00:00.000Z", event))
    assert isinstance(shown["type"], str) and shown["type"]


def websocket_frames(data: bytes) -> None:
    """A peer's frames, masked and not, in pieces."""
    with _Loop() as loop:
        handler = _Handler()
        link = WebSocket(handler, LIMIT, client=bool(data[:1] and data[0] & 1))
        transport = _Transport()
        link.open(transport, b"", b"")  # type: ignore[arg-type]
        first, second = _pieces(data[1:])
        if data[:1] and data[0] & 2:  # a good frame before
            first = frame_masked_text(b'{"a":1}') + first
        for piece in (first, second):
            if not transport.closed:
                link.data_received(piece)
        loop.turn()
        link.connection_lost(None)
        assert all(isinstance(frame, FramingError) or b"\n" not in frame or frame for frame in handler.frames)


def http_heads(data: bytes) -> None:
    """The first bytes of an HTTP/1 connection, and h11 as strict as we have it."""
    with contextlib.suppress(h11.LocalProtocolError):
        head_size(data)
    connection = strict_connection(LIMIT)
    with contextlib.suppress(h11.RemoteProtocolError):
        for piece in [piece for piece in _pieces(data) if piece] + [b""]:  # nothing is the end
            connection.receive_data(piece)
            while True:
                event = connection.next_event()
                if event in (h11.NEED_DATA, h11.PAUSED) or isinstance(event, h11.ConnectionClosed):
                    break


def http2_frames(data: bytes) -> None:
    """What passes the gate is what came, frame by frame, less the priorities."""
    gate = FrameGate()
    with contextlib.suppress(Refused):
        for piece in _pieces(data):
            gate.receive(piece)
            while (taken := gate.take(4)) is not None:
                assert len(taken) <= len(data)


def event_streams(data: bytes) -> None:
    """Server-sent events of a remote agent."""
    decoder = EventDecoder(LIMIT)
    with contextlib.suppress(TooLong):
        for piece in (*_pieces(data), b"\n\n"):
            for event in decoder.feed(piece):
                assert b"\n" not in event.data and b"\r" not in event.data


schema.struct_of = functools.cache(
    schema.struct_of
)  # which asks typing for every annotation, a millisecond each time


def configuration(data: bytes) -> None:
    """A configuration file, and a variable that stands for a part of it."""
    file = Path("config.toml")
    with contextlib.suppress(ConfigError):
        layer = load.Layer(str(file), load.parse(file, data))
        merged, _ = load.merge([layer])
        check(load._convert(merged, [layer]), lambda *path: "config.toml")
    kind = list(_VARIABLES.values())[(data[0] if data else 0) % len(_VARIABLES)][1]
    environment.parse(data[1:].decode("utf-8", "replace"), kind)


_VARIABLES = environment._variables()
_PATHS = PathMap([("/home/me/work", "/workspace"), ("C:\\work", "/c"), ("/home/me", "/me")])


def paths(data: bytes) -> None:
    """Paths, file URIs and prose with paths in it, into a box and back."""
    text = data.decode("utf-8", "replace")
    for way in (_PATHS.to_box, _PATHS.to_host):
        way._path(text)
        way.uri(text)
        way.uri(f"file://{text}")
        way.text(text)
        way.covers(text)


def terminal_text(data: bytes) -> None:
    """What a terminal is shown of what agents say."""
    text = data.decode("utf-8", "replace")
    for shown in (terminal.clean(text), terminal.escape(text), terminal.escape_json(text)):
        assert "\x1b" not in shown and "\x9b" not in shown
    terminal.backspaced(text)
    masking.mask(text)
    masking.mask_setting(text)
    masking.mask_words(text.split(" "))


_PROXIES = TrustedProxies(["10.0.0.0/8", "::1"])
_ADMISSION = Admission(Credentials("t" * 32), names=frozenset({"box.example"}))


def request_heads(data: bytes) -> None:
    """What a request says about itself: who asks, for which host, with which token, through which proxies."""
    fields = data.decode("latin-1").split("\n")
    names = (
        "host",
        "x-forwarded-for",
        "forwarded",
        "x-forwarded-proto",
        "x-forwarded-host",
        "origin",
        "authorization",
    )
    more = ("cookie", "sec-websocket-protocol", "accept", "x-dragoman-page")
    headers = dict(zip((*names, *more), fields[2:], strict=False))
    path, query, *_ = (*fields, "", "")
    visit = Visit("GET", path, query, headers, False, "10.0.0.1")
    unwrapped = _PROXIES.unwrap(visit)
    assert unwrapped.proxied and unwrapped.address
    _ADMISSION.check(unwrapped)
    assert _PROXIES.unwrap(replace(visit, address="192.0.2.1")).address == "192.0.2.1"


def cursors(data: bytes) -> None:
    """The position in a list that a client sends back."""
    with contextlib.suppress(BadCursor):
        directory.unseal(data.decode("utf-8", "replace"), "store", (None, None, None))


class _Transport:
    """Takes everything."""

    def __init__(self) -> None:
        self.closed = False

    def write(self, data: bytes) -> None: ...

    def set_protocol(self, protocol: object) -> None: ...

    def set_write_buffer_limits(self, *limits: object, **more: object) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True

    abort = close


class _Handler:
    def __init__(self) -> None:
        self.frames: list[bytes | FramingError] = []

    def link_opened(self, link: object) -> None: ...

    def link_messages(self, frames: list[bytes | FramingError]) -> None:
        self.frames += frames

    def link_writable(self, writable: bool) -> None: ...

    def link_closed(self, reason: str | None) -> None: ...


class _Loop:
    """A loop that counts as running while a target calls what asks for one."""

    _made: asyncio.AbstractEventLoop | None = None

    def __enter__(self) -> _Loop:
        if _Loop._made is None:
            _Loop._made = asyncio.SelectorEventLoop()
        asyncio._set_running_loop(_Loop._made)
        return self

    def __exit__(self, *error: object) -> None:
        asyncio._set_running_loop(None)
        assert _Loop._made is not None
        for handle in list(_Loop._made._scheduled):  # type: ignore[attr-defined]
            handle.cancel()
        _Loop._made._scheduled.clear()  # type: ignore[attr-defined]
        _Loop._made._ready.clear()  # type: ignore[attr-defined]

    def turn(self) -> None:
        """What was put off until the next turn happens now."""
        assert _Loop._made is not None
        for handle in list(_Loop._made._ready):  # type: ignore[attr-defined]
            _Loop._made._ready.remove(handle)  # type: ignore[attr-defined]
            handle._run()


class _Alarm(logging.Handler):
    """A parser that catches its own mistakes logs them: here they count."""

    def emit(self, record: logging.LogRecord) -> None:
        raise AssertionError(record.getMessage()) from (record.exc_info or (None, None))[1]


@contextlib.contextmanager
def listening_for_errors() -> Iterator[None]:
    logger, alarm = logging.getLogger("dragoman"), _Alarm(level=logging.ERROR)
    before, logger.propagate = logger.propagate, False
    logger.addHandler(alarm)
    try:
        yield
    finally:
        logger.removeHandler(alarm)
        logger.propagate = before


_journal: list[Path] = []


def journal_files(data: bytes) -> None:
    """A segment of a journal that another program has written to: what is read has numbers without a gap, or is lost."""
    if not _journal:
        folder = tempfile.mkdtemp(prefix="dragoman-fuzz-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        _journal.append(Path(folder))
    (_journal[0] / segments.name(1, 1)).write_bytes(data)
    with contextlib.suppress(SchemaTooNew):
        last = 0
        for row in segments.Reader().read(_journal[0], 0, 2**20):
            assert row.first_seq == last + 1 and row.count > 0
            assert len(row.events()) == (0 if row.damaged else row.count)
            last = row.last_seq
        assert segments.Reader().end(_journal[0]).last_seq == last


TARGETS: dict[str, Target] = {
    target.__name__: target
    for target in (
        lines,
        envelopes,
        updates,
        parameters,
        dialects_of_agents,
        claude_lines,
        codex_items,
        prompts,
        bridge_events,
        websocket_frames,
        http_heads,
        http2_frames,
        event_streams,
        configuration,
        paths,
        terminal_text,
        request_heads,
        cursors,
        journal_files,
    )
}
