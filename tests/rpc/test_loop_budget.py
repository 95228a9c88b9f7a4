"""What one loop turn has room for."""

from __future__ import annotations

import asyncio
import time

import pytest

from dragoman.rpc.loop_budget import LoopBudget, loop_budget
from dragoman.wire import limits


async def test_the_loop_has_as_long_for_everything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOOP_BUDGET_SECONDS", 0.0)
    budget = LoopBudget(asyncio.get_running_loop())
    begun = time.perf_counter()
    done = asyncio.Event()
    for _ in range(5):
        budget.later(lambda: time.sleep(0.02))
    budget.later(done.set)
    async with asyncio.timeout(5):
        await done.wait()
    assert time.perf_counter() - begun >= 0.19, "0.1 s of work, and nearly as long a pause"


async def test_one_who_waits_goes_on_in_each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOOP_BUDGET_SECONDS", 0.0)
    loop = asyncio.get_running_loop()
    budget = LoopBudget(loop)
    turn = 0
    seen: list[tuple[str, int]] = []

    def count() -> None:
        nonlocal turn
        turn += 1
        if len(seen) < 4:
            loop.call_soon(count)

    assert not budget.spent()
    assert budget.spent()
    count()
    for name in ("a", "b", "c"):

        def see(name: str = name) -> None:
            seen.append((name, turn))

        budget.later(see)
    async with asyncio.timeout(5):
        await budget.wait_if_spent()
    seen.append(("d", turn))
    assert [name for name, _ in seen] == ["a", "b", "c", "d"]
    assert len({when for _, when in seen[:3]}) == 3, "each in a turn of its own"


async def test_a_turn_with_room_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOOP_BUDGET_SECONDS", 60.0)
    budget = LoopBudget(asyncio.get_running_loop())
    others: list[str] = []
    asyncio.get_running_loop().call_soon(others.append, "ran")
    for _ in range(100):
        await budget.wait_if_spent()
    assert others == []


async def test_all_peers_of_a_loop_share_one() -> None:
    assert loop_budget() is loop_budget()
