"""Modes, models and options as each of several clients knows them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.gateway_process import Start, agent
from support.rpc_peer import RpcPeer, is_update
from support.session_client import Watch, load, resume

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


async def come(peer: RpcPeer, session: str, workspace: Path) -> list[dict[str, Any]]:
    """The results of every way into a session that is there."""
    params = {"sessionId": session, "cwd": str(workspace), "mcpServers": []}
    return [
        (await load(peer, session, workspace)).result,
        await resume(peer, session, workspace),
        await peer.request("session/fork", params),
    ]


@pytest.mark.parametrize("caps", [{}, {"_meta": {"dragoman": {"models": "yes"}}}, MODELS])
async def test_models_are_made_only_for_a_client_that_asks_for_them(
    dragoman: Start, watch: Watch, workspace: Path, caps: dict[str, Any]
) -> None:
    extra = json.dumps({"configOptions": [MODEL]})
    gateway = await dragoman(agents={"scripted": agent("--new-extra", extra)})
    await gateway.initialize(clientCapabilities=caps)
    created = await gateway.request("session/new", {"cwd": str(workspace), "mcpServers": []})
    results = [created, *await come(gateway, created["sessionId"], workspace)]
    expected = {
        "currentModelId": "a",
        "availableModels": [{"modelId": "a", "name": "A"}, {"modelId": "b", "name": "B"}],
    }
    assert [result.get("models") for result in results] == [expected if caps == MODELS else None] * 4
    other = await watch(gateway, **(MODELS if caps != MODELS else {}))
    others = await come(other, created["sessionId"], workspace)
    assert [result.get("models") for result in others] == [expected if caps != MODELS else None] * 3


async def test_models_that_an_agent_tells_are_passed_on(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman(agents={"scripted": agent("--models")})
    await gateway.initialize()
    created = await gateway.request("session/new", {"cwd": str(workspace), "mcpServers": []})
    results = [created, *await come(gateway, created["sessionId"], workspace)]
    assert {result["models"]["currentModelId"] for result in results} == {"small"}


@pytest.mark.rule("G-052")
async def test_each_client_is_told_the_options_that_it_knows_in_every_answer(
    dragoman: Start, watch: Watch, workspace: Path
) -> None:
    extra = json.dumps({"configOptions": [FAST, SIZE]})
    changed = [FAST, {**SIZE, "currentValue": "b"}]
    answer = '"result":' + json.dumps({"configOptions": changed, "_meta": {"mine": 1}})
    flags = ("--new-extra", extra, "--answer", "session/set_config_option", answer)
    gateway = await dragoman(agents={"scripted": agent(*flags)})
    await gateway.initialize()
    created = await gateway.request("session/new", {"cwd": str(workspace), "mcpServers": []})
    session = created["sessionId"]
    knows = await watch(gateway, **BOOLEANS)
    for result in await come(knows, session, workspace):
        assert result["configOptions"] == [FAST, SIZE]
    for result in [created, *await come(gateway, session, workspace)]:
        assert result["configOptions"] == [SIZE]
    params = {"sessionId": session, "configId": "size", "value": "b"}
    told = await gateway.request("session/set_config_option", params)
    assert told == {"configOptions": changed[1:], "_meta": {"mine": 1}}
    update = await knows.next_message(is_update(session, "config_option_update"))
    assert update["params"]["update"]["configOptions"] == changed
    assert (await knows.request("session/set_config_option", params))["configOptions"] == changed
    update = await gateway.next_message(is_update(session, "config_option_update"))
    assert update["params"]["update"]["configOptions"] == changed[1:]


@pytest.mark.rule("G-052")
async def test_an_agents_update_shows_each_client_what_it_knows(
    dragoman: Start, watch: Watch, workspace: Path
) -> None:
    extra = json.dumps({"configOptions": [FAST, SIZE]})
    gateway = await dragoman(agents={"scripted": agent("--new-extra", extra)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    knows = await watch(gateway, **BOOLEANS)
    await load(knows, session, workspace)
    options = [{**FAST, "currentValue": False}, SIZE]
    update = {"sessionUpdate": "config_option_update", "configOptions": options}
    await gateway.prompt(session, f"say one\nupdate {json.dumps(update)}\nsay two")
    assert {**update, "configOptions": [SIZE]} in gateway.of(session)
    assert update not in gateway.of(session)
    shown = await knows.next_message(is_update(session, "config_option_update"))
    assert shown["params"]["update"] == update
    late = await watch(gateway)
    loaded = await load(late, session, workspace)
    assert loaded.replay[-1] == {**update, "configOptions": [SIZE]}
    again = await watch(gateway)
    await resume(again, session, workspace, after=0)
    shown = await again.next_message(is_update(session, "config_option_update"))
    assert shown["params"]["update"]["configOptions"] == [SIZE]


@pytest.mark.rule("G-052")
async def test_a_client_of_another_process_is_told_what_it_knows(dragoman: Start, workspace: Path) -> None:
    extra = json.dumps({"configOptions": [FAST, MODEL]})
    agents = {"scripted": agent("--new-extra", extra, "--late-commands")}
    owner, plain, rich = [await dragoman(agents=agents) for _ in range(3)]
    await owner.initialize()
    await plain.initialize()
    await rich.initialize(clientCapabilities={**BOOLEANS, **MODELS})
    session = await owner.new_session(workspace)
    await owner.next_message(is_update(session, "available_commands_update"))
    update = {
        "sessionUpdate": "config_option_update",
        "configOptions": [{**FAST, "currentValue": False}, MODEL],
    }
    await owner.prompt(session, f"say one\nupdate {json.dumps(update)}")
    for peer, options in ((plain, [MODEL]), (rich, update["configOptions"])):
        loaded = await load(peer, session, workspace)
        assert ("models" in loaded.result) == (peer is rich)
        assert loaded.result["configOptions"] == options
        kinds = [each["sessionUpdate"] for each in loaded.replay]
        assert kinds[:2] == ["user_message_chunk", "agent_message_chunk"]
        assert set(kinds[2:]) == {"available_commands_update", "config_option_update"}
        assert {**update, "configOptions": options} in loaded.replay
