"""Modes and config options of a session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.agents.agent_log import AgentLog
from support.gateway_process import Start, agent

MODELS: dict[str, Any] = {"_meta": {"dragoman": {"models": True}}}
BOOLEANS: dict[str, Any] = {"session": {"configOptions": {"boolean": {}}}}
FAST = {"id": "fast", "name": "Fast", "type": "boolean", "currentValue": True}
SIZE = {
    "id": "size",
    "name": "Size",
    "type": "select",
    "currentValue": "a",
    "options": [{"value": "a", "name": "A"}, {"value": "b", "name": "B"}],
}
MODEL = {**SIZE, "id": "m", "category": "model"}


@pytest.mark.rule("G-060", "G-070")
async def test_a_mode_can_be_set_in_the_middle_of_a_turn(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": agent("--modes", *heard.flags)})
    await gateway.initialize()
    answer = await gateway.request("session/new", {"cwd": str(workspace), "mcpServers": []})
    session = answer["sessionId"]
    assert answer["modes"]["currentModeId"] == "ask"
    turn = gateway.start_prompt(session, "sleep-until-cancel")
    await gateway.text(session, "sleeping")
    assert await gateway.request("session/set_mode", {"sessionId": session, "modeId": "code"}) == {}
    assert heard.params("session/set_mode") == [{"sessionId": "s1", "modeId": "code"}]
    assert {"sessionUpdate": "current_mode_update", "currentModeId": "code"} in gateway.of(session)
    gateway.cancel(session)
    await turn


@pytest.mark.rule("G-060", "G-070")
async def test_setting_a_config_option_answers_the_full_list(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman(agents={"scripted": agent("--config-options")})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    params = {"sessionId": session, "configId": "model", "value": "large"}
    (option,) = (await gateway.request("session/set_config_option", params))["configOptions"]
    assert (option["id"], option["currentValue"]) == ("model", "large")


@pytest.mark.rule("G-052")
@pytest.mark.parametrize("advertised", [True, False])
async def test_boolean_options_are_shown_only_to_clients_that_know_them(
    dragoman: Start, workspace: Path, advertised: bool
) -> None:
    options = [FAST, SIZE]
    extra = json.dumps({"configOptions": options})
    gateway = await dragoman(agents={"scripted": agent("--new-extra", extra)})
    caps = BOOLEANS if advertised else {}
    await gateway.initialize(clientCapabilities=caps)
    answer = await gateway.request("session/new", {"cwd": str(workspace), "mcpServers": []})
    assert answer["configOptions"] == (options if advertised else options[1:])


@pytest.mark.parametrize("advertised", [True, False])
async def test_boolean_options_are_hidden_in_the_answer_to_a_mode_too(
    dragoman: Start, workspace: Path, advertised: bool
) -> None:
    answer = (
        "--answer",
        "session/set_mode",
        f'"result":{json.dumps({"configOptions": [FAST, SIZE], "x": 1})}',
    )
    gateway = await dragoman(agents={"scripted": agent("--modes", *answer)})
    await gateway.initialize(clientCapabilities=BOOLEANS if advertised else {})
    session = await gateway.new_session(workspace)
    told = await gateway.request("session/set_mode", {"sessionId": session, "modeId": "code"})
    assert told == {"configOptions": [FAST, SIZE] if advertised else [SIZE], "x": 1}


async def test_a_client_with_config_options_sets_the_mode_of_an_older_agent(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": agent("--modes", *heard.flags)})
    await gateway.initialize()
    answer = await gateway.request("session/new", {"cwd": str(workspace), "mcpServers": []})
    (option,) = answer["configOptions"]
    assert (option["category"], option["currentValue"]) == ("mode", "ask")
    params = {"sessionId": answer["sessionId"], "configId": option["id"], "value": "code"}
    (changed,) = (await gateway.request("session/set_config_option", params))["configOptions"]
    assert changed["currentValue"] == "code"
    assert heard.params("session/set_mode") == [{"sessionId": "s1", "modeId": "code"}]
    assert {"sessionUpdate": "current_mode_update", "currentModeId": "code"} in gateway.of(
        answer["sessionId"]
    )


async def test_a_client_with_models_sets_the_option_of_a_newer_agent(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": agent("--config-options", *heard.flags)})
    await gateway.initialize(clientCapabilities=MODELS)
    answer = await gateway.request("session/new", {"cwd": str(workspace), "mcpServers": []})
    session = answer["sessionId"]
    assert "large" in {each["modelId"] for each in answer["models"]["availableModels"]}
    assert await gateway.request("session/set_model", {"sessionId": session, "modelId": "large"}) == {}
    assert heard.params("session/set_config_option")[0]["value"] == "large"
    assert {"sessionUpdate": "current_model_update", "currentModelId": "large"} in gateway.of(session)


async def test_a_model_is_set_in_the_older_words_without_being_asked_for(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": agent("--config-options", *heard.flags)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    assert await gateway.request("session/set_model", {"sessionId": session, "modelId": "large"}) == {}
    assert heard.params("session/set_config_option")[0]["value"] == "large"


@pytest.mark.rule("G-060")
async def test_options_that_an_older_agent_tells_in_part_are_completed(
    dragoman: Start, workspace: Path
) -> None:
    """D-70: an id, a name and the value."""
    extra = json.dumps({"configOptions": [MODEL, {**SIZE, "id": "tone"}]})
    part = [{"id": "m", "name": "Model", "currentValue": "b"}]
    answer = '"result":' + json.dumps({"configOptions": part})
    flags = ("--new-extra", extra, "--answer", "session/set_config_option", answer)
    gateway = await dragoman(agents={"scripted": agent(*flags)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    update = {"sessionUpdate": "config_options", "configOptions": part}
    await gateway.prompt(session, f"update {json.dumps(update)}")
    whole = [{**MODEL, "name": "Model", "currentValue": "b"}, {**SIZE, "id": "tone"}]
    assert {"sessionUpdate": "config_option_update", "configOptions": whole} in gateway.of(session)
    params = {"sessionId": session, "configId": "m", "value": "b"}
    assert (await gateway.request("session/set_config_option", params))["configOptions"] == whole
