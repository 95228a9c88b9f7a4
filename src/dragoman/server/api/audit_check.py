"""A check of the audit, in a process of its own that ends with the request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from dragoman.server.asgi import HttpError

log = logging.getLogger(__name__)

LONGEST_LINE = 64 << 20
"""Bytes: a report names every chain."""
MOST_TOLD = 2000
"""Characters of what a check that failed said, in the log."""
FAILED = "The check ended early; the log of the gateway says why."

Gone = Callable[[], Awaitable[None]]


class AuditCheck:
    def __init__(self, folder: Path, anchors: list[Path]) -> None:
        self._folder = folder
        self._anchors = anchors
        self._one_at_a_time = asyncio.Lock()  # it reads everything

    async def report(self, gone: Gone) -> dict[str, Any]:
        last = b"{}"
        async for line in self.lines(gone):
            last = line
        found = msgspec.json.decode(last, type=dict[str, Any]).get("report")
        if found is None:
            raise HttpError(503, FAILED, code="check_failed")
        return dict(found)

    async def lines(self, gone: Gone) -> AsyncIterator[bytes]:
        """Progress, at last the report, or an error; ends early when the client is `gone`."""
        from dragoman.audit.browse.check import command

        async with self._one_at_a_time:
            process = await asyncio.create_subprocess_exec(
                *command(self._folder, self._anchors),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=LONGEST_LINE,
            )
            left = asyncio.ensure_future(gone())
            left.add_done_callback(lambda _: _end(process))
            assert process.stdout is not None and process.stderr is not None
            try:
                async for line in process.stdout:
                    yield line
                if await process.wait() != 0 and not left.done():
                    told = (await process.stderr.read()).decode(errors="replace")[-MOST_TOLD:]
                    log.error("the check of the audit failed", extra={"error": told})
                    yield msgspec.json.encode({"error": FAILED}) + b"\n"
            finally:
                left.cancel()
                _end(process)
                await process.wait()


def _end(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        if process.returncode is None:
            process.kill()
