"""Sessions that outlive the process."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from support.agents.builtin_process import Builtin, calls, said, shown, updates
from support.agents.fake_llm import FakeLlm, call, hang, status, text
from support.rpc_peer import RpcFailure

KEYS = {"OPENAI_API_KEY": "test"}


async def start(home: Path, llm: FakeLlm, *more: str) -> Builtin:
    return await Builtin.start(
        home, "--model", "openai:fake", "--base-url", llm.url, *more, env=KEYS, warm=True
    )


async def told(home: Path, llm: FakeLlm, workspace: Path) -> str:
    """A session with a turn in it, whose process has ended."""
    agent = await start(home, llm)
    (workspace / "a.txt").write_text("the content of a")
    llm.tell([text("I read. "), call("read", {"path": "a.txt"})], text("It says a."))
    session = await agent.new_session(workspace)
    await agent.prompt(session, "what is in a.txt?")
    await agent.request("session/set_mode", {"sessionId": session, "modeId": "plan"})
    assert await agent.stop() == 0
    return session


async def test_loading_replays_the_conversation_and_goes_on_with_full_context(
    home: Path, llm: FakeLlm, workspace: Path
) -> None:
    session = await told(home, llm, workspace)
    agent = await start(home, llm)
    answer = await agent.request(
        "session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []}
    )
    assert answer["modes"]["currentModeId"] == "plan"
    replayed = agent.of(session)
    kinds = [update["sessionUpdate"] for update in replayed]
    assert kinds[0] == "user_message_chunk"
    assert kinds[-1] == "available_commands_update", "before the answer, behind the history"
    assert {"tool_call", "tool_call_update", "agent_message_chunk"} <= set(kinds)
    said_before = [u["content"]["text"] for u in replayed if u["sessionUpdate"] == "agent_message_chunk"]
    assert said_before == ["I read. ", "It says a."], "pieces of one message are one now"
    llm.tell(text("As I said: a."))
    await agent.prompt(session, "and now?")
    seen = str(llm.requests[-1])
    assert "what is in a.txt?" in seen
    assert "the content of a" in seen
    await agent.stop()


async def test_resuming_replays_nothing_and_knows_everything(
    home: Path, llm: FakeLlm, workspace: Path
) -> None:
    session = await told(home, llm, workspace)
    agent = await start(home, llm)
    await agent.request("session/resume", {"sessionId": session, "cwd": str(workspace)})
    kinds = {update["sessionUpdate"] for update in agent.of(session)}
    assert kinds == {"available_commands_update"}
    llm.tell(text("Yes."))
    await agent.prompt(session, "remember?")
    assert "the content of a" in str(llm.requests[-1])
    await agent.stop()


async def test_sessions_are_listed_and_deleted(home: Path, llm: FakeLlm, workspace: Path) -> None:
    session = await told(home, llm, workspace)
    agent = await Builtin.start(home)
    [info] = (await agent.request("session/list", {}))["sessions"]
    assert (info["sessionId"], info["cwd"], info["title"]) == (session, str(workspace), "what is in a.txt?")
    assert (await agent.request("session/list", {"cwd": "/elsewhere"}))["sessions"] == []
    await agent.request("session/delete", {"sessionId": session})
    assert (await agent.request("session/list", {}))["sessions"] == []
    with pytest.raises(RpcFailure) as failure:
        await agent.request("session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []})
    assert failure.value.code == -32002
    await agent.stop()


async def test_a_closed_session_answers_no_more(agent: Builtin, workspace: Path) -> None:
    session = await agent.new_session(workspace)
    await agent.request("session/close", {"sessionId": session})
    turn = await agent.prompt(session, "/help")
    assert turn.error is not None
    assert turn.error.code == -32002


async def test_a_damaged_history_costs_its_damaged_lines_only(
    home: Path, llm: FakeLlm, workspace: Path
) -> None:
    session = await told(home, llm, workspace)
    file = home / "builtin" / "sessions" / f"{session}.jsonl"
    assert file.stat().st_mode & 0o777 == 0o600
    with file.open("ab") as stream:
        stream.write(b'{"update": {"sessionUpda')
    agent = await Builtin.start(home)
    await agent.request("session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []})
    assert said_texts(agent, session)
    await agent.stop()


async def test_a_long_conversation_is_compacted_where_everybody_sees_it(
    home: Path, llm: FakeLlm, workspace: Path
) -> None:
    agent = await start(home, llm, "--context-window", "1000")
    session = await agent.new_session(workspace)
    llm.tokens = (900, 50)
    llm.tell(text("First answer."), text("SUMMARY OF IT ALL"), text("Second answer."))
    await agent.prompt(session, "the first question " * 20)
    turn = await agent.prompt(session, "the second question")
    [compaction] = [each for each in calls(turn) if each["kind"] == "think"]
    assert compaction["status"] == "completed"
    assert said(turn) == "Second answer."
    seen = str(llm.requests[-1])
    assert "SUMMARY OF IT ALL" in seen
    assert "the second question" in seen
    assert "the first question" not in seen
    assert updates(turn, "usage_update")[-1]["size"] == 1000
    await agent.stop()
    again = await start(home, llm)
    await again.request("session/resume", {"sessionId": session, "cwd": str(workspace)})
    llm.tell(text("Third."))
    await again.prompt(session, "third")
    assert "SUMMARY OF IT ALL" in str(llm.requests[-1])
    assert "the first question" not in str(llm.requests[-1])
    await again.stop()


async def test_a_conversation_that_the_model_cannot_hold_is_compacted_and_goes_on(
    home: Path, llm: FakeLlm, workspace: Path
) -> None:
    openai = await start(home, llm)
    llm.tell(
        text("First answer."),
        status(400, "This model's maximum context length is 1000 tokens.", "context_length_exceeded"),
        text("SUMMARY OF IT ALL"),
        text("Second answer."),
    )
    session = await openai.new_session(workspace)
    await openai.prompt(session, "the first question")
    turn = await openai.prompt(session, "the second question")
    assert (turn.stop_reason, said(turn)) == ("end_turn", "Second answer.")
    [compaction] = [each for each in calls(turn) if each["kind"] == "think"]
    assert compaction["status"] == "completed"
    assert "SUMMARY OF IT ALL" in "".join(llm.seen())
    await openai.stop()


async def crowded(home: Path, llm: FakeLlm, workspace: Path) -> tuple[Builtin, str]:
    """A session whose next prompt must be preceded by a compaction."""
    agent = await start(home, llm, "--context-window", "1000")
    session = await agent.new_session(workspace)
    llm.tokens = (900, 50)
    llm.tell(text("First answer."))
    await agent.prompt(session, "the first question")
    return agent, session


async def test_a_busy_model_is_asked_again_for_the_summary(home: Path, llm: FakeLlm, workspace: Path) -> None:
    agent, session = await crowded(home, llm, workspace)
    llm.tell(status(429, "slow down", Retry_After="0"), text("SUMMARY OF IT ALL"), text("Second answer."))
    turn = await agent.prompt(session, "the second question")
    assert said(turn) == "Second answer."
    assert "SUMMARY OF IT ALL" in str(llm.requests[-1])
    await agent.stop()


async def test_without_a_summary_the_conversation_stays_as_it_is(
    home: Path, llm: FakeLlm, workspace: Path
) -> None:
    agent, session = await crowded(home, llm, workspace)
    llm.tell(status(401, "bad key"), text("Second answer."))
    turn = await agent.prompt(session, "the second question")
    assert said(turn) == "Second answer."
    [compaction] = [each for each in calls(turn) if each["kind"] == "think"]
    assert compaction["status"] == "failed"
    assert "stays as it is" in shown(compaction)
    assert "the first question" in str(llm.requests[-1])
    await agent.stop()


async def test_what_no_summary_can_be_made_of_is_dropped(home: Path, llm: FakeLlm, workspace: Path) -> None:
    agent, session = await crowded(home, llm, workspace)
    too_long = "This model's maximum context length is 1000 tokens."
    llm.tell(status(400, too_long, "context_length_exceeded"), text("Second answer."))
    turn = await agent.prompt(session, "the second question")
    assert said(turn) == "Second answer."
    assert "the first question" not in str(llm.requests[-1])
    await agent.stop()


async def test_a_process_that_is_killed_in_a_turn_has_kept_what_was_said(
    home: Path, llm: FakeLlm, workspace: Path
) -> None:
    agent = await start(home, llm)
    (workspace / "a.txt").write_text("the content of a")
    llm.tell(call("read", {"path": "a.txt"}), [text("It says", pieces=1), hang()])
    session = await agent.new_session(workspace)
    turn = agent.start_prompt(session, "what is in a.txt?")
    await agent.text(session, "It says", timeout=60)
    os.kill(agent.process.pid, signal.SIGKILL)
    await agent.process.wait()
    await agent.close()
    turn.cancel()
    again = await start(home, llm)
    await again.request("session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []})
    assert again.of(session)[0]["content"]["text"] == "what is in a.txt?"
    llm.tell(text("Yes."))
    await again.prompt(session, "go on")
    assert "what is in a.txt?" in str(llm.requests[-1])
    assert "the content of a" in str(llm.requests[-1])
    await again.stop()


def said_texts(agent: Builtin, session: str) -> list[str]:
    return [u["content"]["text"] for u in agent.of(session) if u["sessionUpdate"] == "agent_message_chunk"]
