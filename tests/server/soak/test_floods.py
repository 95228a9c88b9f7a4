"""How long `/healthz` is waited for beside each flood: 99 of 100 within 50 ms."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from support.clients.flood import flooded, percentile, probe_for
from support.clients.flood_program import KINDS
from support.serve_process import ServeProcess

pytestmark = pytest.mark.soak

ALLOWED = 0.05
SECONDS = 4.0
SETTLED = 0.5
"""Seconds until those who were closed are back: connecting is no flood of frames."""


@pytest.mark.parametrize("connections", [1, 20])
async def test_the_probe_is_answered_in_time_beside_every_flood(
    serve: Callable[..., Awaitable[ServeProcess]], workspace: Path, connections: int
) -> None:
    serving = await serve()
    quiet = percentile(await asyncio.to_thread(probe_for, serving.port, SECONDS), 0.99)
    too_slow = {}
    for kind in KINDS:
        async with flooded(serving, kind, connections):
            await asyncio.sleep(SETTLED)
            taken = await asyncio.to_thread(probe_for, serving.port, SECONDS)
        found = percentile(taken, 0.99)
        print(
            f"{kind}, {connections}: {len(taken)} probes, p99 {found * 1000:.1f} ms, alone {quiet * 1000:.1f} ms"
        )
        if found > ALLOWED:
            too_slow[kind] = found
    assert too_slow == {}
    assert "Traceback" not in serving.gateway.stderr
