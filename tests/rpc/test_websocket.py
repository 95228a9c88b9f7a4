"""Messages from the fragments of a WebSocket."""

from __future__ import annotations

import tracemalloc

from wsproto.frame_protocol import Opcode

from dragoman.rpc.websocket import _Message
from dragoman.wire.framing import FramingError
from dragoman.wire.limits import OVERSIZE_PREFIX_BYTES


def test_fragments_become_one_message() -> None:
    message = _Message(100)
    assert message.add(Opcode.TEXT, "a", False) is None
    assert message.add(Opcode.TEXT, "", False) is None
    assert message.add(Opcode.TEXT, "b\n", True) == b"ab "
    assert message.add(Opcode.TEXT, "c", True) == b"c"


def test_empty_fragments_without_end_cost_nothing() -> None:
    message = _Message(100)
    tracemalloc.start()
    try:
        for _ in range(100_000):
            message.add(Opcode.TEXT, "", False)
        assert tracemalloc.get_traced_memory()[0] < 10_000
    finally:
        tracemalloc.stop()


def test_of_a_message_that_is_too_long_only_the_beginning_is_kept() -> None:
    message = _Message(10)
    assert message.add(Opcode.TEXT, "0123456789", False) is None
    for _ in range(1000):
        message.add(Opcode.TEXT, "x" * 1000, False)
    refused = message.add(Opcode.TEXT, "", True)
    assert isinstance(refused, FramingError)
    assert refused.prefix == (b"0123456789" + b"x" * OVERSIZE_PREFIX_BYTES)[:OVERSIZE_PREFIX_BYTES]
    assert message.add(Opcode.TEXT, "next", True) == b"next"
