"""A descriptor handed to the loop is closed once, whichever loop it is."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from dragoman.rpc.pipe import LoopPipe

uvloop = pytest.importorskip("uvloop")

Run = Callable[[Coroutine[Any, Any, None]], None]
LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])


class Probe(LoopPipe):
    """Opens something the moment before it is closed, as another thread might."""

    opened: tuple[int, ...] = ()

    def close(self) -> None:
        self.opened = os.pipe()
        super().close()


class Lost(asyncio.Protocol):
    def __init__(self) -> None:
        self.lost = asyncio.Event()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()


async def closed(probe: Probe) -> None:
    async with asyncio.timeout(5):
        while not probe.opened:
            await asyncio.sleep(0)


def assert_open(descriptors: tuple[int, ...]) -> None:
    for descriptor in descriptors:
        os.fstat(descriptor)
        os.close(descriptor)


@LOOPS
def test_the_end_of_a_read_pipe_closes_nothing_else(run: Run) -> None:
    async def work() -> None:
        readable, writable = os.pipe()
        probe = Probe(os.fdopen(readable, "rb", 0))
        await asyncio.get_running_loop().connect_read_pipe(Lost, probe)
        os.close(writable)
        await closed(probe)
        assert_open(probe.opened)

    run(work())


@LOOPS
def test_the_end_of_a_write_pipe_closes_nothing_else(run: Run) -> None:
    async def work() -> None:
        readable, writable = os.pipe()
        probe = Probe(os.fdopen(writable, "wb", 0))
        transport, _ = await asyncio.get_running_loop().connect_write_pipe(Lost, probe)
        transport.close()
        await closed(probe)
        assert_open(probe.opened)
        os.close(readable)

    run(work())


@LOOPS
def test_the_other_side_sees_the_end(run: Run) -> None:
    async def work() -> None:
        readable, writable = os.pipe()
        probe = Probe(os.fdopen(writable, "wb", 0))
        transport, _ = await asyncio.get_running_loop().connect_write_pipe(Lost, probe)
        transport.write(b"last words")
        transport.close()
        await closed(probe)
        assert os.read(readable, 100) == b"last words"
        assert os.read(readable, 100) == b""
        assert_open(probe.opened)
        os.close(readable)

    run(work())


@LOOPS
def test_a_closed_pipe_has_no_number(run: Run) -> None:
    async def work() -> None:
        readable, writable = os.pipe()
        pipe = LoopPipe(os.fdopen(readable, "rb", 0))
        await asyncio.get_running_loop().connect_read_pipe(Lost, pipe)
        os.close(writable)
        async with asyncio.timeout(5):
            while True:
                try:
                    pipe.fileno()
                except ValueError:
                    return
                await asyncio.sleep(0)

    run(work())
