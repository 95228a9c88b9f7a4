"""Cancelling a turn wherever it is."""

from __future__ import annotations

import asyncio
from pathlib import Path

from support.agents.builtin_process import Builtin, calls, said
from support.agents.fake_llm import FakeLlm, call, hang, text
from support.waiting import until, until_gone


async def test_in_the_middle_of_the_text(thinker: Builtin, llm: FakeLlm, workspace: Path) -> None:
    llm.tell([text("I begin", pieces=1), hang()], text("Again."))
    session = await thinker.new_session(workspace)
    turn = thinker.start_prompt(session, "talk")
    await thinker.text(session, "I begin", timeout=60)  # the first prompt waits for imports
    thinker.cancel(session)
    assert (await turn).stop_reason == "cancelled"
    assert said(await thinker.prompt(session, "once more")) == "Again."
    assert "I begin" in str(llm.requests[-1]), "what was said before stays in the context"


async def test_in_a_command_with_its_whole_tree(openai: Builtin, llm: FakeLlm, workspace: Path) -> None:
    llm.tell(call("run", {"command": "sleep 3600 & echo $! > pid; echo $$ > shell; wait"}), text("Next."))
    session = await openai.new_session(workspace)
    turn = openai.start_prompt(session, "wait")
    pids = [await read_pid(workspace / name) for name in ("pid", "shell")]
    openai.cancel(session)
    ended = await turn
    assert ended.stop_reason == "cancelled"
    assert calls(ended)[0]["status"] == "failed"
    await until_gone(pids)
    assert said(await openai.prompt(session, "go on")) == "Next."
    assert "cancelled" in llm.tool_results()[0]


async def test_while_a_question_is_open(openai: Builtin, llm: FakeLlm, workspace: Path) -> None:
    llm.tell(call("run", {"command": "touch made"}), text("Next."))
    session = await openai.new_session(workspace)
    asked = asyncio.Event()

    async def never(params: object) -> object:
        asked.set()
        await asyncio.sleep(3600)
        return {}

    openai.on("session/request_permission", never)
    turn = openai.start_prompt(session, "make")
    await asyncio.wait_for(asked.wait(), 60)
    openai.cancel(session)
    assert (await turn).stop_reason == "cancelled"
    assert not (workspace / "made").exists()


async def test_a_cancelled_question_cancels_the_turn(openai: Builtin, llm: FakeLlm, workspace: Path) -> None:
    llm.tell(call("run", {"command": "touch made"}))
    session = await openai.new_session(workspace)
    openai.answer = None
    assert (await openai.prompt(session, "make")).stop_reason == "cancelled"
    assert not (workspace / "made").exists()


async def test_a_second_prompt_is_refused_while_one_runs(
    openai: Builtin, llm: FakeLlm, workspace: Path
) -> None:
    llm.tell([text("busy", pieces=1), hang()])
    session = await openai.new_session(workspace)
    turn = openai.start_prompt(session, "talk")
    await openai.text(session, "busy", timeout=60)
    second = await openai.prompt(session, "me too")
    assert second.error is not None
    assert second.error.code == -32600
    openai.cancel(session)
    assert (await turn).stop_reason == "cancelled"


async def test_right_behind_the_prompt(openai: Builtin, llm: FakeLlm, workspace: Path) -> None:
    llm.tell([text("too late", pieces=1), hang()])
    session = await openai.new_session(workspace)
    with openai.in_one_write():
        turn = openai.start_prompt(session, "talk")
        openai.cancel(session)
    assert (await turn).stop_reason == "cancelled"
    assert not llm.requests


async def read_pid(file: Path) -> int:
    await until(lambda: file.exists() and file.read_text().strip(), 60)
    return int(file.read_text())
