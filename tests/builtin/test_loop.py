"""Turns with a model, scripted and over real HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.agents.builtin_process import Builtin, calls, said, shown, updates
from support.agents.fake_llm import FakeLlm, Step, call, cut, finish, status, text, thinking


async def test_text_and_thinking_stream_as_they_come(thinker: Builtin, llm: FakeLlm, workspace: Path) -> None:
    llm.tell([thinking("let me see"), text("Hello, you.", pieces=4)])
    session = await thinker.new_session(workspace)
    turn = await thinker.prompt(session, "hi")
    assert turn.stop_reason == "end_turn"
    assert said(turn) == "Hello, you."
    assert len(turn.texts) == 4
    thoughts = updates(turn, "agent_thought_chunk")
    assert "".join(each["content"]["text"] for each in thoughts) == "let me see"
    [usage] = updates(turn, "usage_update")
    assert usage["used"] == 110
    assert usage["size"] > 0
    assert turn.response["result"]["usage"]["totalTokens"] == 110


async def test_a_turn_of_several_tools_is_completed(thinker: Builtin, llm: FakeLlm, workspace: Path) -> None:
    (workspace / "app.py").write_text("print('helo')\n")
    llm.tell(
        [text("I look."), call("read", {"path": "app.py"})],
        call("edit", {"path": "app.py", "edits": [{"old": "helo", "new": "hello"}]}),
        call("run", {"command": "python3 app.py"}),
        text("Fixed."),
    )
    session = await thinker.new_session(workspace)
    turn = await thinker.prompt(session, "fix the typo")
    assert turn.stop_reason == "end_turn"
    assert [(each["kind"], each["status"]) for each in calls(turn)] == [
        ("read", "completed"),
        ("edit", "completed"),
        ("execute", "completed"),
    ]
    assert (workspace / "app.py").read_text() == "print('hello')\n"
    assert len(thinker.questions) == 2, "the edit and the command"
    assert "hello" in llm.seen()[-1], "the last thing that the model heard is what the command printed"
    assert said(turn).endswith("Fixed.")


@pytest.mark.parametrize(("reason", "expected"), [("length", "max_tokens"), ("content_filter", "refusal")])
async def test_stop_reasons_are_real(
    thinker: Builtin, llm: FakeLlm, workspace: Path, reason: str, expected: str
) -> None:
    llm.tell([text("I was going to"), finish(reason)], text("Yes?"))
    session = await thinker.new_session(workspace)
    assert (await thinker.prompt(session, "the first prompt")).stop_reason == expected
    await thinker.prompt(session, "the second prompt")
    seen = str(llm.requests[-1])
    assert ("the first prompt" in seen) == (expected != "refusal"), "a refused prompt leaves the context"


async def test_arguments_that_do_not_validate_go_back_to_the_model(
    openai: Builtin, llm: FakeLlm, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("A")
    llm.tell(
        call("read", {"file": "a.txt"}),
        call("read", "{not json"),
        call("no_such_tool", {}),
        call("read", {"path": "a.txt"}),
        text("Done."),
    )
    session = await openai.new_session(workspace)
    turn = await openai.prompt(session, "read it")
    assert turn.stop_reason == "end_turn"
    results = llm.tool_results()
    assert "are not valid" in results[0]
    assert "not a JSON object" in results[1]
    assert "There is no tool 'no_such_tool'" in results[2]
    assert results[3] == "A"


async def test_a_model_that_never_gets_it_right_is_given_up_on(
    openai: Builtin, llm: FakeLlm, workspace: Path
) -> None:
    llm.tell(*[call("read", {"wrong": number}) for number in range(20)])
    session = await openai.new_session(workspace)
    turn = await openai.prompt(session, "read it")
    assert "were not valid" in said(turn)
    assert len(llm.requests) == 5


async def test_busy_models_are_asked_again_where_everybody_sees_it(
    thinker: Builtin, llm: FakeLlm, workspace: Path
) -> None:
    llm.tell(
        status(429, "slow down", Retry_After="0"),
        status(503, "later", retry_after_ms="10"),
        text("Here I am."),
    )
    session = await thinker.new_session(workspace)
    turn = await thinker.prompt(session, "hi")
    assert said(turn) == "Here I am."
    thoughts = "".join(each["content"]["text"] for each in updates(turn, "agent_thought_chunk"))
    assert "Asking again" in thoughts
    assert "attempt 3 of 5" in thoughts


async def test_a_stream_that_is_cut_is_asked_for_again(
    thinker: Builtin, llm: FakeLlm, workspace: Path
) -> None:
    llm.tell([text("Half an"), cut()], text("A whole answer."))
    session = await thinker.new_session(workspace)
    turn = await thinker.prompt(session, "hi")
    assert turn.stop_reason == "end_turn"
    assert said(turn).endswith("A whole answer.")
    assert "Half an" not in str(llm.requests[-1]), "what was cut is no part of the conversation"


@pytest.mark.parametrize(
    ("step", "reason", "words"),
    [
        (status(401, "bad key"), "model_auth", "the key is wrong"),
        (status(404, "no such model"), "model_unknown", "there is no such model"),
    ],
)
async def test_what_cannot_be_retried_is_told_and_the_session_goes_on(
    thinker: Builtin, llm: FakeLlm, workspace: Path, step: Step, reason: str, words: str
) -> None:
    llm.tell(step, text("Better."))
    session = await thinker.new_session(workspace)
    turn = await thinker.prompt(session, "hi")
    assert turn.error is not None
    assert words in turn.error.message
    assert turn.error.data["reason"] == reason
    assert said(await thinker.prompt(session, "again")) == "Better."
    assert shown(calls(await thinker.prompt(session, "/run echo still here"))[0])


async def test_rejected_calls_are_told_to_the_model(openai: Builtin, llm: FakeLlm, workspace: Path) -> None:
    llm.tell(call("run", {"command": "touch made"}), text("All right."))
    session = await openai.new_session(workspace)
    openai.answer = "reject_once"
    turn = await openai.prompt(session, "make it")
    assert turn.stop_reason == "end_turn"
    assert "rejected" in llm.tool_results()[0]
    assert not (workspace / "made").exists()
