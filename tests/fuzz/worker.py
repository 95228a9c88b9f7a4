"""One parser or one endpoint in a process of its own, which reports how far it is: `watch` reads what `Reporter` writes.

Inputs count as soon as they are reported, so that little is lost when a run is killed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path

import msgspec

TESTS = Path(__file__).parents[1]
MEMORY = Path("/dev/shm")
"""For a worker's files, which a disk would take longer to write than anything else takes here."""


class Result(msgspec.Struct, frozen=True):
    inputs: int
    grown: int = 0
    """Megabytes of memory more than after the warm-up."""
    find: str = ""
    """What went wrong; empty: nothing."""


class Reporter:
    """Takes stdout for the reports; whatever else is printed goes to stderr."""

    def __init__(self) -> None:
        self._pipe = os.dup(1)
        os.dup2(2, 1)

    def __call__(self, result: Result) -> None:
        os.write(self._pipe, msgspec.json.encode(result) + b"\n")


async def watch(module: str, name: str, inputs: int, seed: int) -> AsyncGenerator[Result, None]:
    """What `python -m MODULE --worker NAME INPUTS SEED` reports; a worker that fails is a find."""
    command = (sys.executable, "-m", module, "--worker", name, str(inputs), str(seed))
    memory = MEMORY if MEMORY.is_dir() else None
    with (
        tempfile.TemporaryDirectory(prefix="dgm-", dir=memory) as folder,
        tempfile.TemporaryFile() as printed,
    ):
        process = await asyncio.create_subprocess_exec(
            *command,
            stdout=asyncio.subprocess.PIPE,
            stderr=printed,
            cwd=TESTS,
            env={**os.environ, "TMPDIR": folder},
            start_new_session=True,  # Ctrl-C is for us, and no find of the worker's
        )
        try:
            assert process.stdout is not None
            async for line in process.stdout:
                yield msgspec.json.decode(line, type=Result)
            if await process.wait() != 0:
                printed.seek(0)
                yield Result(0, find=printed.read()[-6000:].decode(errors="replace"))
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.send_signal(signal.SIGINT)  # which ends its gateway, too
                await process.wait()


async def run(module: str, name: str, inputs: int, seed: int) -> Result:
    """All of it, in one result."""
    total = Result(0)
    async for result in watch(module, name, inputs, seed):
        total = Result(total.inputs + result.inputs, max(total.grown, result.grown), result.find)
    return total


def resident(pid: int | str = "self") -> int:
    """Megabytes of memory that a process has."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 2**20
