"""Whole turns of real agents through `dragoman acp`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from real.agents import RealAgent
from real.client import STARTING, chosen, said, tool_status
from real.conftest import Begin
from real.model_script import WRITTEN
from real.model_server import ModelServer
from support.rpc_peer import Message


@pytest.mark.behaviour("hello")
async def test_an_agent_answers(begin: Begin, real: RealAgent, workspace: Path) -> None:
    gateway = await begin()
    assert gateway.introduction["agentInfo"]["version"] == real.version
    session = await gateway.open_session(workspace)
    turn = await gateway.prompt(session, "hello there")
    assert turn.stop_reason == "end_turn", turn.response
    assert "You said: hello there" in said(turn.updates)


@pytest.mark.behaviour("thinking")
async def test_an_agent_thinks_before_it_answers(begin: Begin, workspace: Path) -> None:
    gateway = await begin()
    session = await gateway.open_session(workspace)
    turn = await gateway.prompt(session, "think of something")
    assert turn.stop_reason == "end_turn", turn.response
    assert "think." in said(turn.updates, "agent_thought_chunk")
    assert "You said: think of something" in said(turn.updates)
    kinds = ("agent_thought_chunk", "agent_message_chunk")
    spoken = [kind for each in turn.updates for kind in kinds if said([each], kind)]
    assert spoken[0] == "agent_thought_chunk"


@pytest.mark.behaviour("tool allowed")
async def test_an_allowed_tool_runs(begin: Begin, workspace: Path) -> None:
    gateway = await begin()
    session = await gateway.open_session(workspace)
    running = gateway.start_prompt(session, "run: touch ran.txt")
    question = await gateway.question()
    assert question["params"]["sessionId"] == session
    assert not (workspace / "ran.txt").exists()
    gateway.choose(question, "allow_once")
    turn = await running
    assert turn.stop_reason == "end_turn", turn.response
    assert (workspace / "ran.txt").exists()
    assert tool_status(turn, question) == "completed"
    assert "The tool said:" in said(turn.updates)


@pytest.mark.behaviour("tool rejected")
async def test_a_rejected_tool_does_not_run(begin: Begin, real: RealAgent, workspace: Path) -> None:
    gateway = await begin()
    session = await gateway.open_session(workspace)
    running = gateway.start_prompt(session, "run: touch ran.txt")
    question = await gateway.question()
    gateway.choose(question, "reject_once")
    turn = await running
    assert not (workspace / "ran.txt").exists()
    assert tool_status(turn, question) == real.does("status of a rejected tool")
    assert turn.stop_reason == real.does("stop reason after a rejection")
    again = await gateway.prompt(session, "and now?")
    assert "You said: and now?" in said(again.updates)


@pytest.mark.behaviour("cancel in text")
async def test_a_cancel_ends_an_answer_in_the_middle(
    begin: Begin, workspace: Path, model: ModelServer
) -> None:
    gateway = await begin()
    session = await gateway.open_session(workspace)
    running = gateway.start_prompt(session, "slow")
    await gateway.tick(session)
    gateway.cancel(session)
    turn = await running
    assert turn.stop_reason == "cancelled", turn.response
    assert not model.enough.is_set()
    again = await gateway.prompt(session, "and now?")
    assert "You said: and now?" in said(again.updates)


@pytest.mark.behaviour("cancel with a question open")
async def test_a_cancel_withdraws_the_open_question(begin: Begin, real: RealAgent, workspace: Path) -> None:
    gateway = await begin()
    session = await gateway.open_session(workspace)
    running = gateway.start_prompt(session, "run: touch ran.txt")
    question = await gateway.question()
    gateway.cancel(session)
    turn = await running
    assert turn.stop_reason == "cancelled", turn.response
    assert not (workspace / "ran.txt").exists()
    withdrawn = await gateway.next_message("$/cancel_request")
    assert withdrawn["params"]["requestId"] == question["id"]
    assert tool_status(turn, question) == real.does("status of a tool whose question was cancelled")
    again = await gateway.prompt(session, "and now?")
    assert "You said: and now?" in said(again.updates)


@pytest.mark.parametrize("share", ["session", "all"])
async def test_two_sessions_answer_at_once(
    begin: Begin, real: RealAgent, workspace: Path, tmp_path: Path, model: ModelServer, share: str
) -> None:
    gateway = await begin(share=share)
    other = tmp_path / "other"
    other.mkdir()
    first, second = await asyncio.gather(gateway.open_session(workspace), gateway.open_session(other))
    shared = real.does("processes of two sessions that share an agent")
    assert len(gateway.agent_processes()) == (2 if share == "session" else shared)
    one, two = gateway.start_prompt(first, "slow"), gateway.start_prompt(second, "slow")
    await asyncio.gather(gateway.tick(first), gateway.tick(second))
    gateway.cancel(first)
    assert (await one).stop_reason == "cancelled"
    await gateway.tick(second)
    model.enough.set()
    turn = await two
    assert turn.stop_reason == "end_turn", turn.response
    assert not said(turn.updates, "user_message_chunk")


def other_value(option: Message) -> str:
    """Any other than the present one, except those that ask nobody any more."""
    values: list[str] = [each["value"] for each in flat(option["options"])]
    mild = [value for value in values if not any(word in value.lower() for word in FREE_HANDED)]
    return next(value for value in mild if value != option["currentValue"])


def flat(options: list[Message]) -> list[Message]:
    return [value for each in options for value in (each["options"] if "group" in each else [each])]


FREE_HANDED = ("bypass", "full", "yolo", "agent")


@pytest.mark.behaviour("mode and model change")
async def test_mode_and_model_change_in_any_words(begin: Begin, real: RealAgent, workspace: Path) -> None:
    gateway = await begin({"_meta": {"dragoman": {"models": True}}})
    created = await gateway.request("session/new", {"cwd": str(workspace), "mcpServers": []}, STARTING)
    session, options = created["sessionId"], created["configOptions"]
    chosen = {}
    for category in ("mode", "model") if real.does("a change of model is tested") else ("mode",):
        option = next(each for each in options if each.get("category") == category)
        chosen[category] = other_value(option)
        params = {"sessionId": session, "configId": option["id"], "value": chosen[category]}
        options = (await gateway.request("session/set_config_option", params))["configOptions"]
        now = next(each for each in options if each.get("category") == category)
        assert now["currentValue"] == chosen[category]
    assert chosen["mode"] in {each["id"] for each in created["modes"]["availableModes"]}
    models = [each["modelId"] for each in created["models"]["availableModels"]]
    if "model" in chosen:  # codex-acp names them `model[effort]` there
        assert any(chosen["model"] in (id, id.partition("[")[0]) for id in models)
    back = {"mode": created["modes"]["currentModeId"], "model": created["models"]["currentModelId"]}
    await gateway.request("session/set_mode", {"sessionId": session, "modeId": back["mode"]})
    if "model" in chosen:
        await gateway.request("session/set_model", {"sessionId": session, "modelId": back["model"]})
    turn = await gateway.prompt(session, "hello there")
    assert "You said: hello there" in said(turn.updates)
    assert "MODE_UPDATE" not in said(gateway.of(session))


@pytest.mark.behaviour("API error")
async def test_a_failing_model_ends_the_turn(begin: Begin, real: RealAgent, workspace: Path) -> None:
    gateway = await begin()
    session = await gateway.open_session(workspace)
    turn = await gateway.prompt(session, "fail: 400")
    assert (turn.stop_reason or "error") == real.does("a model that answers 400")
    told = turn.error.message + str(turn.error.data) if turn.error else said(turn.updates)
    assert "scripted failure 400" in told
    again = await gateway.prompt(session, "and now?")
    assert "You said: and now?" in said(again.updates)


async def test_files_are_written_through_a_client_that_offers_it(
    begin: Begin, real: RealAgent, workspace: Path
) -> None:
    gateway = await begin({"fs": {"readTextFile": True, "writeTextFile": True}})
    written: dict[str, str] = {}
    gateway.on("fs/read_text_file", {"content": ""})
    gateway.on("fs/write_text_file", lambda params: written.update({params["path"]: params["content"]}) or {})
    gateway.on("session/request_permission", lambda params: chosen(params, "allow_once"))
    session = await gateway.open_session(workspace)
    file = workspace / "note.txt"
    turn = await gateway.prompt(session, f"write: {file}")
    assert turn.stop_reason == "end_turn", turn.response
    through_client = bool(written)
    assert through_client is real.does("files are written through a client that offers it")
    assert (written[str(file)] if through_client else file.read_text()) == WRITTEN
