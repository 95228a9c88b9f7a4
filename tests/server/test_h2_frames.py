"""What an HTTP/2 peer may send, before anything reads it."""

from __future__ import annotations

import random

import pytest
from h2.errors import ErrorCodes

from dragoman.server import limits
from dragoman.server.hypercorn.h2_frames import MAX_FRAME_BYTES, FrameGate, Refused
from support.clients.flood_program import GET, HTTP_2, PREFACE, frame

SETTINGS = frame(4, 0, 0)


def passed(gate: FrameGate, data: bytes, count: int = 16) -> bytes:
    gate.receive(data)
    whole = b""
    while (taken := gate.take(count)) is not None:
        whole += taken
    return whole


def test_whole_frames_pass_as_they_came_however_they_are_cut() -> None:
    data = PREFACE + SETTINGS + frame(1, 5, 1, GET) + frame(0, 0, 1, b"x" * MAX_FRAME_BYTES) + frame(0, 1, 1)
    assert passed(FrameGate(), data) == data
    assert passed(FrameGate(), data, count=1) == data
    gate = FrameGate()
    assert b"".join(passed(gate, bytes((byte,))) for byte in data) == data
    chance = random.Random(1)
    gate, whole, rest = FrameGate(), b"", data
    while rest:
        size = chance.randrange(1, 3000)
        whole, rest = whole + passed(gate, rest[:size]), rest[size:]
    assert whole == data


def test_no_more_frames_are_taken_than_asked_for() -> None:
    gate = FrameGate()
    gate.receive(PREFACE + SETTINGS * 5)
    assert gate.take(2) == PREFACE
    assert [gate.take(2) for _ in range(4)] == [SETTINGS * 2, SETTINGS * 2, SETTINGS, None]


@pytest.mark.parametrize(
    ("kind", "limit"),
    [
        ("settings", limits.MAX_H2_CONTROL_FRAMES),
        ("window settings", limits.MAX_H2_CONTROL_FRAMES),
        ("pings", limits.MAX_H2_CONTROL_FRAMES),
        ("ping answers", limits.MAX_H2_CONTROL_FRAMES),
        ("unknown frames", limits.MAX_H2_CONTROL_FRAMES),
        ("empty data", limits.MAX_H2_CONTROL_FRAMES + 1),
        ("continuations", limits.MAX_H2_CONTROL_FRAMES + 1),
        ("priorities", limits.MAX_H2_PRIORITIES),
        ("window updates", limits.MAX_H2_WINDOW_UPDATES),
        ("rapid resets", limits.MAX_H2_RESETS),
    ],
)
def test_one_frame_too_many_of_a_kind_ends_the_connection(kind: str, limit: int) -> None:
    """`empty data` and `continuations` begin with a request's headers, which do not count."""
    gate = FrameGate()
    passed(gate, PREFACE + b"".join(HTTP_2[kind](number) for number in range(limit)))
    with pytest.raises(Refused) as refused:
        passed(gate, HTTP_2[kind](limit))
    assert refused.value.code is ErrorCodes.ENHANCE_YOUR_CALM


def test_priorities_are_dropped() -> None:
    gate = FrameGate()
    assert passed(gate, PREFACE + SETTINGS + HTTP_2["priorities"](1) + SETTINGS) == PREFACE + SETTINGS * 2


def test_who_reads_much_may_make_room_often() -> None:
    gate = FrameGate()
    passed(gate, PREFACE)
    for number in range(10_000):
        gate.sent_data()
        passed(gate, HTTP_2["window updates"](number) * 2)


def test_streams_that_we_had_to_reset_count_too() -> None:
    gate = FrameGate()
    for _ in range(limits.MAX_H2_RESETS):
        gate.refused_stream()
    with pytest.raises(Refused):
        gate.refused_stream()


def test_a_frame_that_is_too_long_is_refused_by_its_head() -> None:
    gate = FrameGate()
    with pytest.raises(Refused) as refused:
        passed(gate, PREFACE + (MAX_FRAME_BYTES + 1).to_bytes(3) + b"\x00\x00\x00\x00\x00\x01")
    assert refused.value.code is ErrorCodes.FRAME_SIZE_ERROR


def test_requests_and_data_are_not_counted() -> None:
    gate = FrameGate()
    data = PREFACE + b"".join(frame(1, 4, 2 * n + 1, GET) + frame(0, 0, 2 * n + 1, b"x") for n in range(5000))
    assert passed(gate, data) == data
