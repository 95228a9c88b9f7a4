"""Framing: whatever the splits, the same messages come out, and what is broken stays where it stood."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.wire import limits
from dragoman.wire.framing import (
    BOM,
    ClientDecoder,
    Decoder,
    Frame,
    FramingError,
    HeaderDecoder,
    LineDecoder,
    frame_headers,
    single_line,
    split_lines,
)
from support.json_values import encoded

MAKE_LINES: list[Callable[[], Decoder]] = [LineDecoder, ClientDecoder]
MAKE_HEADERS: list[Callable[[], Decoder]] = [HeaderDecoder, ClientDecoder]

LINE_ENDS = st.sampled_from([b"\n", b"\r\n"])
BLANKS = st.lists(st.sampled_from([b"\n", b"\r\n", b" \n", b"\t\r\n"]), max_size=2).map(b"".join)


def chunks(stream: bytes, cuts: Iterable[int]) -> list[bytes]:
    edges = [0, *sorted({cut % (len(stream) + 1) for cut in cuts}), len(stream)]
    return [stream[start:end] for start, end in pairwise(edges)]


def feed(decoder: Decoder, pieces: Iterable[bytes]) -> list[Frame]:
    return [frame for piece in pieces for frame in decoder.feed(piece)]


def every_way(make: Callable[[], Decoder], stream: bytes, cuts: Iterable[int] = ()) -> list[Frame]:
    """Feed whole, byte by byte and cut; all three must tell the same."""
    whole = feed(make(), [stream])
    assert feed(make(), (stream[at : at + 1] for at in range(len(stream)))) == whole
    assert feed(make(), chunks(stream, cuts)) == whole
    return whole


def values(frames: list[Frame]) -> list[Any]:
    assert not [frame for frame in frames if isinstance(frame, FramingError)]
    return [json.loads(frame) for frame in frames if isinstance(frame, bytes)]


CUTS = st.lists(st.integers(min_value=0, max_value=10_000), max_size=8)


class TestLines:
    @pytest.mark.parametrize("make", MAKE_LINES)
    @given(st.lists(st.tuples(BLANKS, encoded(), LINE_ENDS), max_size=5), st.booleans(), CUTS)
    @pytest.mark.rule("G-140", "G-144")
    def test_any_messages_in_any_pieces_come_out_as_they_went_in(
        self, make: Callable[[], Decoder], lines: list[tuple[bytes, bytes, bytes]], bom: bool, cuts: list[int]
    ) -> None:
        stream = b"".join(blank + message + end for blank, message, end in lines)
        frames = every_way(make, (BOM if bom else b"") + stream, cuts)
        assert [frame.rstrip() for frame in frames if isinstance(frame, bytes)] == [
            message.rstrip() for _, message, _ in lines
        ]
        assert values(frames) == [json.loads(message) for _, message, _ in lines]

    @given(st.lists(encoded(), min_size=1, max_size=4), encoded(), CUTS)
    def test_an_unfinished_message_waits_for_its_line_feed(
        self, messages: list[bytes], unfinished: bytes, cuts: list[int]
    ) -> None:
        decoder = LineDecoder()
        stream = b"".join(message + b"\n" for message in messages) + unfinished
        assert len(feed(decoder, chunks(stream, cuts))) == len(messages)
        assert decoder.pending == len(unfinished)
        assert decoder.feed(b"\n") == [unfinished]
        assert decoder.pending == 0

    @pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\x1e"])
    @pytest.mark.parametrize("make", MAKE_LINES)
    @pytest.mark.rule("G-144")
    def test_only_a_line_feed_ends_a_line(self, make: Callable[[], Decoder], separator: str) -> None:
        message = f'{{"text":"a{separator}b"}}'.encode()
        assert every_way(make, message + b"\n" + message + b"\n", [8, 9]) == [message, message]

    @pytest.mark.parametrize("beginning", [BOM[:1], BOM[:2]])
    @pytest.mark.parametrize("make", MAKE_LINES)
    def test_bytes_that_only_begin_like_a_bom_are_kept(
        self, make: Callable[[], Decoder], beginning: bytes
    ) -> None:
        assert every_way(make, beginning + b"{}\n") == [beginning + b"{}"]

    def test_a_bom_is_stripped_at_the_start_of_the_stream_only(self) -> None:
        assert every_way(LineDecoder, BOM + b"1\n" + BOM + b"2\n") == [b"1", BOM + b"2"]

    @given(
        st.lists(st.tuples(st.booleans(), st.integers(min_value=0, max_value=200)), min_size=1, max_size=6),
        CUTS,
    )
    @pytest.mark.rule("G-143")
    def test_an_oversize_line_is_an_error_in_its_place_and_the_others_are_intact(
        self, plan: list[tuple[bool, int]], cuts: list[int]
    ) -> None:
        lines = [
            b'{"id":%d,"pad":"%b"}' % (number, b"x" * (size + 100 if oversize else size % 60))
            for number, (oversize, size) in enumerate(plan)
        ]
        frames = every_way(lambda: LineDecoder(100), b"".join(line + b"\n" for line in lines), cuts)
        assert len(frames) == len(lines)
        for line, frame, (oversize, _) in zip(lines, frames, plan, strict=True):
            if not oversize:
                assert frame == line
                continue
            assert isinstance(frame, FramingError)
            assert frame.oversize and not frame.fatal
            assert line.startswith(frame.prefix) and len(frame.prefix) == 100

    @pytest.mark.parametrize("extra", [0, 1])
    def test_the_limit_itself_is_allowed_and_one_byte_more_is_not(self, extra: int) -> None:
        line = b"x" * (50 + extra)
        for frames in (every_way(lambda: LineDecoder(50), b"{}\n" + line + b"\n{}\n" * 30, [1, 60]),):
            assert isinstance(frames[1], FramingError) == bool(extra)
            assert len(frames) == 32

    @pytest.mark.rule("G-143")
    def test_memory_stays_bounded_while_an_oversize_line_is_skipped(self) -> None:
        decoder = LineDecoder(10_000)
        for _ in range(1000):
            assert decoder.feed(b"x" * 1000) == []
            assert decoder.pending <= 10_000
        assert decoder.pending == 0
        (frame, after) = decoder.feed(b'y"}\n{"id":2}\n')
        assert isinstance(frame, FramingError)
        assert len(frame.prefix) == limits.OVERSIZE_PREFIX_BYTES
        assert after == b'{"id":2}'


@st.composite
def headers(draw: st.DrawFn, length: int) -> bytes:
    name = draw(st.sampled_from([b"Content-Length", b"content-length", b"CONTENT-LENGTH"]))
    end = draw(st.sampled_from([b"\r\n", b"\n"]))
    after = draw(
        st.lists(
            st.sampled_from([b"Content-Type: application/vscode-jsonrpc; charset=utf-8", b"X-Other: 1"]),
            max_size=2,
        )
    )
    before = draw(st.sampled_from([[], [b"Content-Type: application/json"]]))
    spaces = draw(st.sampled_from([b"", b" ", b"  "]))
    lines = [*before, name + b":" + spaces + b"%d" % length, *after]
    return b"".join(line + end for line in lines) + end


@st.composite
def header_frames(draw: st.DrawFn) -> tuple[bytes, bytes]:
    message = draw(encoded())
    return message, draw(headers(len(message))) + message


class TestHeaders:
    @pytest.mark.parametrize("make", MAKE_HEADERS)
    @given(st.lists(header_frames(), max_size=4), st.booleans(), CUTS)
    @pytest.mark.rule("G-142")
    def test_any_messages_in_any_pieces_come_out_as_they_went_in(
        self, make: Callable[[], Decoder], sent: list[tuple[bytes, bytes]], blank: bool, cuts: list[int]
    ) -> None:
        stream = (b"\r\n" if blank and make is ClientDecoder else b"") + b"".join(frame for _, frame in sent)
        assert every_way(make, stream, cuts) == [message for message, _ in sent]

    @given(encoded(), CUTS)
    def test_what_we_frame_we_can_read(self, message: bytes, cuts: list[int]) -> None:
        stream = frame_headers(message) * 2
        assert every_way(HeaderDecoder, stream, cuts) == [message, message]

    def test_lengths_count_bytes(self) -> None:
        message = '{"text":"漢字 😀 ü"}'.encode()
        assert frame_headers(message).startswith(b"Content-Length: 25\r\n\r\n")
        assert every_way(HeaderDecoder, frame_headers(message) + frame_headers(b"{}")) == [message, b"{}"]

    def test_a_body_with_line_feeds_becomes_one_line_of_the_same_value(self) -> None:
        body = json.dumps({"a": [1, {"b": "x\ny"}]}, indent=2).replace("\n", "\r\n").encode()
        (frame,) = every_way(HeaderDecoder, frame_headers(body))
        assert isinstance(frame, bytes)
        assert b"\n" not in frame and b"\r" not in frame
        assert json.loads(frame) == json.loads(body)

    def test_line_ends_between_messages_are_tolerated(self) -> None:
        stream = frame_headers(b"{}") + b"\r\n" + frame_headers(b"[]") + b"\n" + frame_headers(b"1")
        assert every_way(HeaderDecoder, stream) == [b"{}", b"[]", b"1"]

    @pytest.mark.parametrize(
        "block",
        [
            b"Content-Type: x",
            b"Content-Length:",
            b"Content-Length: -1",
            b"Content-Length: +1",
            b"Content-Length: 1e3",
            b"Content-Length: 0x10",
            b"Content-Length: 12, 12",
            b"Content-Length: 1_000",
            "Content-Length: ٣".encode(),
            b"Content-Length: " + b"9" * 16,
            b"Content-Length: " + b"9" * 5000,
            b"Content-Lengthy: 2",
        ],
    )
    @pytest.mark.rule("G-142")
    def test_a_missing_or_impossible_length_ends_the_stream(self, block: bytes) -> None:
        frames = every_way(HeaderDecoder, block + b"\r\n\r\n{}" + frame_headers(b"{}"))
        assert [type(frame) for frame in frames] == [FramingError]
        assert isinstance(frames[0], FramingError)
        assert frames[0].fatal and not frames[0].oversize

    @pytest.mark.parametrize("end", [b"", b"\r\n\r\n{}"])
    @pytest.mark.rule("G-142")
    def test_a_header_block_without_end_ends_the_stream(self, end: bytes) -> None:
        (frame,) = every_way(
            HeaderDecoder, b"Content-Length: 2\r\nX: " + b"x" * limits.MAX_HEADER_BYTES + end
        )
        assert isinstance(frame, FramingError)
        assert frame.fatal

    @given(st.integers(min_value=101, max_value=9000), CUTS)
    @pytest.mark.rule("G-143")
    def test_an_oversize_body_is_skipped_by_its_declared_length(self, size: int, cuts: list[int]) -> None:
        big = b'{"id":7,"pad":"' + b"x" * size + b'\n\r\n"}'
        stream = frame_headers(b"{}") + frame_headers(big) + frame_headers(b"[]")
        frames = every_way(lambda: HeaderDecoder(100), stream, cuts)
        assert [frames[0], frames[2]] == [b"{}", b"[]"]
        assert frames[1] == FramingError("message is larger than 100 bytes", big[:100], oversize=True)

    def test_a_chunk_full_of_messages_takes_time_in_proportion(self) -> None:
        count = 50_000
        assert len(HeaderDecoder().feed(frame_headers(b"{}") * count)) == count


class TestDetection:
    @pytest.mark.parametrize("strict", [False, True])
    @pytest.mark.parametrize("start", [b"", b"\n", b" \r\n\t", BOM, BOM + b"\n"])
    @pytest.mark.parametrize(
        ("stream", "headers"),
        [
            (b'{"id":1}\n', False),
            (b"[1]\n", False),
            (frame_headers(b'{"id":1}'), True),
            (b'content-LENGTH: 8\r\n\r\n{"id":1}', True),
            (b'Content-Type: x\r\nContent-Length: 8\r\n\r\n{"id":1}', True),
        ],
    )
    @pytest.mark.rule("G-141")
    def test_the_first_bytes_tell_the_framing(
        self, start: bytes, stream: bytes, headers: bool, strict: bool
    ) -> None:
        frames = every_way(lambda: ClientDecoder(strict_start=strict), start + stream, [1, 2, 3])
        assert len(frames) == 1 and isinstance(frames[0], bytes)
        decoder = ClientDecoder(strict_start=strict)
        feed(decoder, [start, stream])
        assert decoder.headers is headers

    @pytest.mark.rule("G-141")
    def test_the_framing_stays_for_the_rest_of_the_connection(self) -> None:
        assert every_way(ClientDecoder, b"{}\nContent-Length: 2\r\n\r\n[]\n") == [
            b"{}",
            b"Content-Length: 2\r",
            b"[]",
        ]

    def test_nothing_is_decided_before_content_is_spelled_out(self) -> None:
        decoder = ClientDecoder()
        assert feed(decoder, [b"C", b"onte", b"nt"]) == []
        assert not decoder.headers
        assert feed(decoder, [b"-Length: 2\r\n\r\n{}"]) == [b"{}"]
        assert decoder.headers

    @pytest.mark.parametrize(
        "line", [b"hello\n", b"Contents\n", b"con\n", b"5\n", b'"x"\n', b"GET / HTTP/1.1\r\n"]
    )
    @pytest.mark.rule("G-017")
    def test_on_stdio_a_first_line_that_is_no_message_is_a_line_like_any_other(self, line: bytes) -> None:
        assert every_way(ClientDecoder, line + b"{}\n") == [line[:-1], b"{}"]

    @pytest.mark.parametrize(
        "start",
        [
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            b"POST /",
            b"\x16\x03\x01",
            b"hello",
            b"con\n",
            b"5\n",
            b"\xef\xbb{",
        ],
    )
    @pytest.mark.rule("G-017")
    def test_on_tcp_a_stranger_is_turned_away_at_once_and_for_good(self, start: bytes) -> None:
        (frame,) = every_way(lambda: ClientDecoder(strict_start=True), start + b'\n{"id":1}\n', [1])
        assert isinstance(frame, FramingError)
        assert frame.fatal and frame.silent

    def test_endless_white_space_ends_the_connection(self) -> None:
        decoder = ClientDecoder()
        frames = feed(decoder, [b" \n" * 1000] * 10)
        assert [isinstance(frame, FramingError) and frame.fatal for frame in frames] == [True]
        assert decoder.feed(b"{}\n") == []

    def test_the_limit_holds_for_what_is_detected(self) -> None:
        for stream in (b"x" * 11 + b"\n", b"[" + b"x" * 11 + b"\n", frame_headers(b"x" * 11)):
            (frame,) = every_way(lambda: ClientDecoder(10), stream)
            assert isinstance(frame, FramingError) and frame.oversize


@given(encoded(), st.sampled_from([b"\n", b"\r", b"\r\n"]))
def test_a_message_becomes_one_line_and_means_the_same(message: bytes, end: bytes) -> None:
    spread = json.dumps(json.loads(message), indent=1).encode().replace(b"\n", end) + end
    line = single_line(spread)
    assert b"\n" not in line and b"\r" not in line
    assert json.loads(line) == json.loads(message)
    assert single_line(line) is line


@given(st.lists(st.integers(0, 5000), max_size=8), st.booleans())
def test_lines_are_split_alike_whether_they_are_short_or_long(sizes: list[int], ended: bool) -> None:
    data = b"\n".join(b"x" * size for size in sizes) + b"\n" * ended
    assert split_lines(data) == data.split(b"\n")
