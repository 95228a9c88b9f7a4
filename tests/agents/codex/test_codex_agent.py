"""`kind = "codex"` through `dragoman acp`, with a scripted `codex app-server` behind it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.agents.codex.options import CodexOptions
from support.gateway_process import GatewayProcess, Start
from support.rpc_peer import RpcFailure, Turn, is_update

SCRIPTED = Path(__file__).parents[2] / "support" / "agents" / "scripted_codex.py"


def codex(tmp_path: Path, *flags: str) -> dict[str, Any]:
    command = [sys.executable, "-S", "-E", str(SCRIPTED), *flags]
    env = {"CODEX_HOME": str(tmp_path / "codex"), "TEST_CWD": str(tmp_path / "workspace")}
    return {"kind": "codex", "command": command, "env": env}


def choose(option: str) -> dict[str, Any]:
    return {"outcome": {"outcome": "selected", "optionId": option}}


@pytest.fixture
async def client(dragoman: Start, tmp_path: Path) -> GatewayProcess:
    gateway = await dragoman("acp", "codex", agents={"codex": codex(tmp_path)})
    await gateway.initialize()
    return gateway


def statuses(turn: Turn) -> list[Any]:
    return [each.get("status") for each in turn.updates if each["sessionUpdate"].startswith("tool_call")]


def report(turn: Turn) -> Any:
    return json.loads("".join(turn.texts).removeprefix("report "))


async def test_it_says_what_it_can_do_and_what_it_offers(
    dragoman: Start, tmp_path: Path, workspace: Path
) -> None:
    gateway = await dragoman("acp", "codex", agents={"codex": codex(tmp_path)})
    result = await gateway.initialize(clientCapabilities={"_meta": {"dragoman": {"models": True}}})
    assert result["agentInfo"] == {"name": "codex", "title": "Codex", "version": "0.166.0"}
    session = await gateway.request("session/new", {"cwd": str(workspace), "mcpServers": []})
    assert session["modes"]["currentModeId"] == "workspace-write"
    assert [each["modelId"] for each in session["models"]["availableModels"]] == ["gpt-5.5", "small"]
    assert {o["id"]: o["currentValue"] for o in session["configOptions"]} == {
        "mode": "workspace-write",
        "collaboration_mode": "default",
        "model": "gpt-5.5",
        "effort": "low",
        "service_tier": "default",
        "auto_resume": "false",
    }


@pytest.mark.rule("G-161")
async def test_text_and_thinking_come_once_and_before_the_answer(
    client: GatewayProcess, workspace: Path
) -> None:
    turn = await client.prompt(await client.new_session(workspace), "think hmm\nplan dig\nHello there")
    assert "".join(turn.texts) == "Hello there"
    kinds = {each["sessionUpdate"] for each in turn.updates}
    assert {"agent_thought_chunk", "plan", "usage_update"} <= kinds
    assert turn.response["result"]["usage"]["totalTokens"] == 120
    assert turn.stop_reason == "end_turn"


@pytest.mark.rule("G-161")
@pytest.mark.parametrize(
    ("script", "option", "decision"),
    [
        ("bash make", "accept", "accept"),
        ("bash make", "accept_session", "acceptForSession"),
        ("bash make", "accept_rule", {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["make"]}}),
        ("legacy make", "accept", "approved"),
    ],
)
async def test_an_allowed_command_runs(
    client: GatewayProcess, workspace: Path, script: str, option: str, decision: object
) -> None:
    client.on("session/request_permission", choose(option))
    turn = await client.prompt(await client.new_session(workspace), script)
    assert statuses(turn)[-1] == "completed"
    last = [each for each in turn.updates if each.get("status") == "completed"][-1]
    assert json.loads(last["rawOutput"]["output"]) == decision
    asked = await client.next_message("session/request_permission")
    assert asked["params"]["toolCall"]["title"].endswith("make")


@pytest.mark.rule("G-161")
@pytest.mark.parametrize(("script", "decision"), [("bash make", "decline"), ("legacy make", "denied")])
async def test_a_declined_command_is_failed_and_the_turn_goes_on(
    client: GatewayProcess, workspace: Path, script: str, decision: str
) -> None:
    client.on("session/request_permission", choose("decline"))
    turn = await client.prompt(await client.new_session(workspace), f"{script}\nafter all")
    last = [each for each in turn.updates if each.get("status") == "failed"][-1]
    assert json.loads(last["rawOutput"]["output"]) == decision
    assert "".join(turn.texts) == "after all"
    assert turn.stop_reason == "end_turn"


async def test_a_patch_asks_with_its_diff(client: GatewayProcess, workspace: Path) -> None:
    client.on("session/request_permission", choose("accept"))
    turn = await client.prompt(await client.new_session(workspace), "patch /w/a.py")
    asked = (await client.next_message("session/request_permission"))["params"]["toolCall"]
    assert asked["content"] == [
        {"type": "diff", "path": "/w/a.py", "oldText": "same\nold", "newText": "same\nnew"}
    ]
    assert asked["locations"] == [{"path": "/w/a.py", "line": 7}]
    assert statuses(turn)[-1] == "completed"


async def test_cancel_in_a_running_tool_settles_and_closes_it(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    running = client.start_prompt(session, "hang")
    await client.next_message(is_update(session, "tool_call"))
    client.cancel(session)
    turn = await running
    assert turn.stop_reason == "cancelled"
    assert statuses(turn)[-1] == "failed"
    assert "".join((await client.prompt(session, "still here")).texts) == "still here"


async def test_a_cancel_right_behind_the_prompt_counts(
    dragoman: Start, tmp_path: Path, workspace: Path
) -> None:
    gateway = await dragoman(
        "acp", "codex", agents={"codex": codex(tmp_path)}, limits={"cancel_timeout": 600}
    )
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    with gateway.in_one_write():
        turn = gateway.start_prompt(session, "hang")
        gateway.cancel(session)
    assert (await turn).stop_reason == "cancelled"


async def test_cancel_with_a_question_open_settles(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    running = client.start_prompt(session, "bash make")
    await client.next_message("session/request_permission")
    client.cancel(session)
    assert (await running).stop_reason == "cancelled"


@pytest.mark.parametrize(
    ("info", "code", "words"),
    [
        ("unauthorized", -32000, "codex login"),
        ("contextWindowExceeded", -32603, "start a new session"),
        ("other", -32603, "it is other"),
    ],
)
async def test_failures_are_errors_with_a_next_step(
    client: GatewayProcess, workspace: Path, info: str, code: int, words: str
) -> None:
    turn = await client.prompt(await client.new_session(workspace), f"fail {info}")
    assert turn.error is not None
    assert turn.error.code == code
    assert words in turn.error.message


async def test_modes_models_and_effort_go_with_the_next_turn(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    assert report(await client.prompt(session, "report")) == {"config": {}}
    await client.request("session/set_mode", {"sessionId": session, "modeId": "read-only"})
    effort = {"sessionId": session, "configId": "effort", "value": "high"}
    result = await client.request("session/set_config_option", effort)
    assert {o["id"]: o["currentValue"] for o in result["configOptions"]}["effort"] == "high"
    told = report(await client.prompt(session, "report"))
    assert told["approvalPolicy"] == "on-request"
    assert told["sandboxPolicy"] == {"type": "readOnly", "networkAccess": False}
    assert told["effort"] == "high"
    await client.request("session/set_model", {"sessionId": session, "modelId": "small"})
    assert report(await client.prompt(session, "report"))["model"] == "gpt-small"


async def test_a_reviewing_model_and_a_speed_can_be_chosen(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    await client.request("session/set_mode", {"sessionId": session, "modeId": "auto-review"})
    speed = {"sessionId": session, "configId": "service_tier", "value": "fast"}
    await client.request("session/set_config_option", speed)
    told = report(await client.prompt(session, "report"))
    assert (told["approvalsReviewer"], told["serviceTier"]) == ("auto_review", "fast")
    await client.request("session/set_mode", {"sessionId": session, "modeId": "workspace-write"})
    await client.request("session/set_config_option", {**speed, "value": "default"})
    told = report(await client.prompt(session, "report"))
    assert (told["approvalsReviewer"], told["serviceTier"]) == ("user", None)
    await client.request("session/set_model", {"sessionId": session, "modelId": "small"})
    with pytest.raises(RpcFailure):
        await client.request("session/set_config_option", speed)


def test_what_an_older_codex_does_not_tell_is_not_offered() -> None:
    options = CodexOptions([], {"model": "m", "sandbox": {"type": "workspaceWrite"}})
    assert options.offered("mode") == ["read-only", "workspace-write", "full-access"]
    reviewed = CodexOptions(
        [], {"model": "m", "sandbox": {"type": "workspaceWrite"}, "approvalsReviewer": "auto_review"}
    )
    assert reviewed.mode == "auto-review"


async def test_more_folders_can_be_written_to(
    client: GatewayProcess, workspace: Path, tmp_path: Path
) -> None:
    more = tmp_path / "more"
    more.mkdir()
    session = await client.new_session(workspace, additionalDirectories=[str(more)])
    config = report(await client.prompt(session, "report"))["config"]
    assert config == {"sandbox_workspace_write": {"writable_roots": [str(more)]}}
    await client.request("session/set_mode", {"sessionId": session, "modeId": "workspace-write"})
    policy = report(await client.prompt(session, "report"))["sandboxPolicy"]
    assert policy["writableRoots"] == [str(workspace), str(more)]


async def test_what_is_not_offered_is_refused(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    with pytest.raises(RpcFailure) as failure:
        await client.request("session/set_mode", {"sessionId": session, "modeId": "novel"})
    assert failure.value.code == -32602


async def test_mcp_servers_are_its_configuration(client: GatewayProcess, workspace: Path) -> None:
    server = {"name": "s", "command": "/bin/true", "args": ["-x"], "env": [{"name": "K", "value": "V"}]}
    session = await client.new_session(workspace, mcpServers=[server])
    config = report(await client.prompt(session, "report"))["config"]
    assert config == {"mcp_servers": {"s": {"command": "/bin/true", "args": ["-x"], "env": {"K": "V"}}}}


async def test_a_process_that_dies_fails_its_turn_and_the_session_is_resumed(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    await client.prompt(session, "first")
    turn = await client.prompt(session, "garbage\ndie 7")
    assert turn.error is not None
    assert turn.error.data["reason"] == "agent_exited"
    assert "".join((await client.prompt(session, "back again")).texts) == "back again"


async def test_a_thread_of_its_own_is_listed_and_loaded(
    dragoman: Start, workspace: Path, tmp_path: Path
) -> None:
    """With another gateway, which has never heard of it."""
    items = [
        {"type": "userMessage", "id": "u", "content": [{"type": "text", "text": "What is here?"}]},
        {
            "type": "commandExecution",
            "id": "c",
            "command": "ls",
            "status": "completed",
            "aggregatedOutput": "a",
        },
        {"type": "agentMessage", "id": "m", "text": "One file."},
    ]
    thread = {
        "id": "thr_old",
        "cwd": str(workspace),
        "preview": "What is here?",
        "turns": [{"id": "t", "items": items}],
    }
    (tmp_path / "codex").mkdir()
    (tmp_path / "codex" / "thr_old.json").write_text(json.dumps(thread))
    client = await dragoman("acp", "codex", agents={"codex": codex(tmp_path)})
    await client.initialize()
    (found,) = (await client.request("session/list", {"cwd": str(workspace)}))["sessions"]
    assert found["title"] == "What is here?"
    params = {"sessionId": found["sessionId"], "cwd": str(workspace), "mcpServers": []}
    await client.request("session/load", params)
    kinds = [each["sessionUpdate"] for each in client.of(found["sessionId"])]
    history = ["user_message_chunk", "tool_call", "agent_message_chunk"]
    assert kinds == [*history, "available_commands_update"]


async def test_a_fork_has_an_id_of_its_own(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    await client.prompt(session, "remember")
    forked = await client.request(
        "session/fork", {"sessionId": session, "cwd": str(workspace), "mcpServers": []}
    )
    assert forked["sessionId"] != session
    assert "".join((await client.prompt(forked["sessionId"], "branch")).texts) == "branch"


async def test_a_rewound_conversation_goes_on_in_a_fork_at_the_message(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    for word in ("fig", "plum", "pear"):
        await client.prompt(session, word)
    result = await client.request("_dragoman/rewind", {"sessionId": session, "to": 2})
    assert (result["undone"], result["agent"]) == (2, "rewind")
    assert recalled(await client.prompt(session, "recall")) == ["fig"]
    result = await client.request("_dragoman/rewind", {"sessionId": session, "undo": True})
    assert (result["undone"], result["agent"]) == (2, "resume")
    assert recalled(await client.prompt(session, "recall")) == ["fig", "plum", "pear"]
    own = {"dragoman": {"at": 3}}
    made = await client.request("session/fork", {"sessionId": session, "cwd": str(workspace), "_meta": own})
    assert recalled(await client.prompt(made["sessionId"], "recall")) == ["fig", "plum"]
    result = await client.request("_dragoman/rewind", {"sessionId": session, "to": 1})
    assert result["agent"] == "seed", "nothing is left to fork"
    await client.prompt(session, "quince")
    assert recalled(await client.prompt(session, "recall")) == ["quince"]


def recalled(turn: Turn) -> list[str]:
    """What the agent's own session has of the user."""
    found: list[str] = json.loads("".join(turn.texts).removeprefix("recall "))
    return found


async def test_a_configuration_that_it_refuses_is_told(dragoman: Start, tmp_path: Path) -> None:
    gateway = await dragoman("acp", "codex", agents={"codex": codex(tmp_path, "--x-bad-config")})
    with pytest.raises(RpcFailure) as failure:
        await gateway.initialize()
    assert "approval_policy untrusted is no longer supported" in failure.value.message


async def test_collaboration_goes_with_the_next_turn(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    plan = {"sessionId": session, "configId": "collaboration_mode", "value": "plan"}
    await client.request("session/set_config_option", plan)
    told = report(await client.prompt(session, "report"))["collaborationMode"]
    assert told["mode"] == "plan"
    assert told["settings"] == {"model": "gpt-5.5", "reasoning_effort": "low", "developer_instructions": None}


async def test_its_commands_and_skills_are_offered_and_carried_out(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    told = await client.next_message(is_update(session, "available_commands_update"))
    names = [each["name"] for each in told["params"]["update"]["availableCommands"]]
    assert names == ["compact", "review", "review-branch", "review-commit", "init", "$dig"]
    assert "".join((await client.prompt(session, "/compact")).texts) == "compacting"
    turn = await client.prompt(session, "/review-branch dev")
    assert "".join(turn.texts) == 'reviewing {"type": "baseBranch", "branch": "dev"}'
    assert "AGENTS.md" in "".join((await client.prompt(session, "/init")).texts)


async def test_a_prompt_that_steers_becomes_part_of_the_turn_that_runs(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    running = client.start_prompt(session, "wait-for-words")
    await client.next_message(is_update(session, "agent_message_chunk"))
    prompt = [{"type": "text", "text": "and quickly"}]
    params = {"sessionId": session, "prompt": prompt, "_meta": {"dragoman": {"steer": True}}}
    steered = await client.request("session/prompt", params)
    assert (steered["stopReason"], steered["_meta"]["dragoman"]["steer"]) == ("end_turn", "sent")
    assert "".join((await running).texts).endswith("heard and quickly")


async def test_words_reach_the_turn_that_runs(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    running = client.start_prompt(session, "wait-for-words")
    await client.next_message(is_update(session, "agent_message_chunk"))
    prompt = [{"type": "text", "text": "and quickly"}]
    assert await client.request("_dragoman/steer", {"sessionId": session, "prompt": prompt}) == {}
    assert "".join((await running).texts).endswith("heard and quickly")
    with pytest.raises(RpcFailure, match="send a prompt"):
        await client.request("_dragoman/steer", {"sessionId": session, "prompt": prompt})


@pytest.mark.rule("G-161")
@pytest.mark.parametrize(
    ("script", "option", "words"),
    [
        ("grant", "accept_session", '"scope": "session"'),
        ("grant", "decline", '"permissions": {}'),
        ("old-patch /w/a", "accept", '{"decision": "approved"}'),
        ("old-patch /w/a", "decline", '{"decision": "denied"}'),
    ],
)
async def test_every_kind_of_approval_is_answered(
    client: GatewayProcess, workspace: Path, script: str, option: str, words: str
) -> None:
    client.on("session/request_permission", choose(option))
    assert words in "".join((await client.prompt(await client.new_session(workspace), script)).texts)


async def test_only_decisions_that_codex_takes_are_offered(client: GatewayProcess, workspace: Path) -> None:
    client.on("session/request_permission", choose("network_1"))
    turn = await client.prompt(await client.new_session(workspace), "network example.org")
    asked = (await client.next_message("session/request_permission"))["params"]
    assert [each["optionId"] for each in asked["options"]] == ["accept", "network_1", "network_2", "decline"]
    last = [each for each in turn.updates if each.get("status") == "completed"][-1]
    rule = {"host": "example.org", "action": "allow"}
    decision = {"applyNetworkPolicyAmendment": {"network_policy_amendment": rule}}
    assert json.loads(last["rawOutput"]["output"]) == decision


async def test_its_questions_are_elicitations(dragoman: Start, tmp_path: Path, workspace: Path) -> None:
    gateway = await dragoman("acp", "codex", agents={"codex": codex(tmp_path)})
    await gateway.initialize(clientCapabilities={"elicitation": {"form": {}}})
    gateway.on("elicitation/create", {"action": "accept", "content": {"q": "blue"}})
    session = await gateway.new_session(workspace)
    turn = await gateway.prompt(session, "question Which?")
    assert "".join(turn.texts) == 'answered {"answers": {"q": {"answers": ["blue"]}}}'
    asked = (await gateway.next_message("elicitation/create"))["params"]
    assert asked["requestedSchema"]["properties"]["q"]["enum"] == ["red", "blue"]
    turn = await gateway.prompt(session, "form Your name?")
    assert '"action": "accept"' in "".join(turn.texts)


async def test_a_client_without_elicitations_is_given_choices(
    client: GatewayProcess, workspace: Path
) -> None:
    client.on("session/request_permission", choose("answer_1"))
    session = await client.new_session(workspace)
    turn = await client.prompt(session, "question Which?")
    assert "".join(turn.texts) == 'answered {"answers": {"q": {"answers": ["blue"]}}}'
    assert '"action": "decline"' in "".join((await client.prompt(session, "form Your name?")).texts)


@pytest.mark.parametrize("draws", [True, False])
async def test_a_command_has_a_terminal_where_clients_draw_it_and_text_elsewhere(
    dragoman: Start, tmp_path: Path, workspace: Path, draws: bool
) -> None:
    gateway = await dragoman("acp", "codex", agents={"codex": codex(tmp_path)})
    await gateway.initialize(clientCapabilities={"_meta": {"terminal_output": draws}})
    gateway.on("session/request_permission", choose("accept"))
    turn = await gateway.prompt(await gateway.new_session(workspace), "bash make")
    last = [each for each in turn.updates if each.get("status") == "completed"][-1]
    (content,) = last["content"]
    if draws:
        assert content == {"type": "terminal", "terminalId": last["toolCallId"]}
        assert last["_meta"]["terminal_exit"]["exit_code"] == 0
    else:
        assert content["content"]["text"] == '```console\n"accept"\n```'


async def test_a_closed_session_is_let_go(client: GatewayProcess, workspace: Path, tmp_path: Path) -> None:
    session = await client.new_session(workspace)
    await client.prompt(session, "hello")
    await client.request("session/close", {"sessionId": session})
    assert (tmp_path / "codex" / "unsubscribed").read_text().startswith("thr_")


def test_an_effort_that_codex_does_not_tell_is_the_usual_one() -> None:
    levels = [{"reasoningEffort": level} for level in ("low", "high")]
    model = {"id": "m", "model": "m", "supportedReasoningEfforts": levels}
    started = {"model": "m", "reasoningEffort": None}
    assert CodexOptions([{**model, "defaultReasoningEffort": "high"}], started).current["effort"] == "high"
    assert CodexOptions([model], started).current["effort"] == "low"


async def test_a_deleted_session_is_gone_from_its_own_list(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    await client.prompt(session, "remember")
    await client.request("session/delete", {"sessionId": session})
    assert (await client.request("session/list", {"cwd": str(workspace)}))["sessions"] == []
