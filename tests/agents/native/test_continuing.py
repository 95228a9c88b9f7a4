"""Going on by itself at the turn limit, while there is work left."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agents.native.doubles import claude
from dragoman.agents.native.agent import open_tasks
from support.gateway_process import Start

TASKS = [sys.executable, "-S", "-c", "print('[1]')"]


@pytest.mark.parametrize(
    ("code", "open_ones"),
    [
        ("print('[{\"id\": 1}]')", True),
        ("print('two tasks')", True),
        ("print('[]')", False),
        ("pass", False),
        ("print('[1]'); raise SystemExit(1)", False),
    ],
)
async def test_open_tasks_are_what_the_command_prints(tmp_path: Path, code: str, open_ones: bool) -> None:
    assert await open_tasks([sys.executable, "-S", "-c", code], str(tmp_path), {}) is open_ones


async def test_a_command_that_is_not_there_reports_nothing(tmp_path: Path) -> None:
    assert not await open_tasks(["/nonexistent/dot"], str(tmp_path), {})


async def test_it_goes_on_as_often_as_it_may_and_no_more(
    dragoman: Start, tmp_path: Path, workspace: Path
) -> None:
    settings = {**claude(tmp_path, "--x-tireless"), "continue_command": TASKS, "continue_limit": 2}
    gateway = await dragoman("acp", "claude", agents={"claude": settings})
    await gateway.initialize()
    turn = await gateway.prompt(await gateway.new_session(workspace), "dig")
    assert turn.stop_reason == "max_turn_requests"
    assert turn.texts.count("cont") == 2  # the double repeats what it is told, in two halves
    nudges = [u for u in turn.updates if u["sessionUpdate"] == "user_message_chunk"]
    assert [each["content"]["text"] for each in nudges] == ["continue", "continue"]


async def test_it_stops_at_the_limit_unless_configured(
    dragoman: Start, tmp_path: Path, workspace: Path
) -> None:
    gateway = await dragoman("acp", "claude", agents={"claude": claude(tmp_path, "--x-tireless")})
    await gateway.initialize()
    turn = await gateway.prompt(await gateway.new_session(workspace), "dig")
    assert (turn.stop_reason, "".join(turn.texts)) == ("max_turn_requests", "dig")
