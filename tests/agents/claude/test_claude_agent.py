"""`kind = "claude"` through `dragoman acp`, with a scripted `claude` behind it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from support.gateway_process import GatewayProcess, Start
from support.rpc_peer import RpcFailure, Turn, is_update

SCRIPTED = Path(__file__).parents[2] / "support" / "agents" / "scripted_claude.py"
ALLOW = {"outcome": {"outcome": "selected", "optionId": "allow"}}
REJECT = {"outcome": {"outcome": "selected", "optionId": "reject"}}


def claude(tmp_path: Path, *flags: str) -> dict[str, Any]:
    command = [sys.executable, "-S", "-E", str(SCRIPTED), *flags]
    return {"kind": "claude", "command": command, "env": {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude")}}


@pytest.fixture
async def client(dragoman: Start, tmp_path: Path) -> GatewayProcess:
    gateway = await dragoman("acp", "claude", agents={"claude": claude(tmp_path)})
    await gateway.initialize()
    return gateway


def tools(turn: Turn, *members: str) -> list[tuple[Any, ...]]:
    """The chosen members of every tool update."""
    updates = [each for each in turn.updates if each["sessionUpdate"].startswith("tool_call")]
    return [tuple(each.get(name) for name in members) for each in updates]


async def test_it_says_what_it_can_do_and_which_version_it_is(dragoman: Start, tmp_path: Path) -> None:
    gateway = await dragoman("acp", "claude", agents={"claude": claude(tmp_path)})
    result = await gateway.initialize()
    assert result["agentInfo"] == {"name": "claude", "title": "Claude Code", "version": "2.1.325"}
    assert result["agentCapabilities"]["loadSession"] is True
    assert result["agentCapabilities"]["promptCapabilities"]["image"] is True
    assert result["agentCapabilities"]["mcpCapabilities"] == {"http": True, "sse": True}
    assert result["authMethods"][0]["id"] == "claude-login"


async def test_a_new_session_offers_modes_options_and_commands(
    client: GatewayProcess, workspace: Path
) -> None:
    result = await client.request("session/new", {"cwd": str(workspace), "mcpServers": []})
    assert result["modes"]["currentModeId"] == "default"
    assert [mode["id"] for mode in result["modes"]["availableModes"]] == [
        *("default", "acceptEdits", "plan", "auto", "dontAsk")
    ]
    assert "models" not in result
    model = next(option for option in result["configOptions"] if option["id"] == "model")
    assert [each["value"] for each in model["options"]] == ["default", "haiku"]
    assert [option["id"] for option in result["configOptions"]] == ["mode", "model", "effort", "auto_resume"]
    told = await client.next_message(is_update(result["sessionId"], "available_commands_update"))
    commands = told["params"]["update"]["availableCommands"]
    assert commands[0] == {
        "name": "compact",
        "description": "Clear the conversation",
        "input": {"hint": "<instructions>"},
    }


@pytest.mark.rule("G-160")
async def test_text_and_thinking_come_once_and_before_the_answer(
    client: GatewayProcess, workspace: Path
) -> None:
    turn = await client.prompt(await client.new_session(workspace), "think hmm, well\nHello there")
    assert turn.stop_reason == "end_turn"
    assert "".join(turn.texts) == "Hello there"
    thoughts = [u["content"]["text"] for u in turn.updates if u["sessionUpdate"] == "agent_thought_chunk"]
    assert "".join(thoughts) == "hmm, well"
    usage = next(u for u in turn.updates if u["sessionUpdate"] == "usage_update")
    assert usage["size"] == 200000
    assert usage["cost"] == {"amount": 0.25, "currency": "USD"}
    assert turn.response["result"]["usage"]["inputTokens"] == 100


async def test_an_allowed_tool_runs_and_shows_its_output(client: GatewayProcess, workspace: Path) -> None:
    client.on("session/request_permission", ALLOW)
    turn = await client.prompt(await client.new_session(workspace), "bash make")
    assert tools(turn, "sessionUpdate", "status") == [
        ("tool_call", "pending"),
        ("tool_call_update", None),
        ("tool_call_update", "in_progress"),
        ("tool_call_update", "completed"),
    ]
    last = turn.updates[[u.get("status") for u in turn.updates].index("completed")]
    assert last["rawOutput"]["stdout"] == "ran make\n"
    asked = await client.next_message("session/request_permission")
    assert asked["params"]["toolCall"]["title"] == "make"
    assert [each["kind"] for each in asked["params"]["options"]] == [
        "allow_once",
        "allow_always",
        "reject_once",
    ]


async def test_a_rejected_tool_is_failed_and_the_turn_goes_on(
    client: GatewayProcess, workspace: Path
) -> None:
    client.on("session/request_permission", REJECT)
    turn = await client.prompt(await client.new_session(workspace), "bash make\nafter all")
    assert tools(turn, "status")[-1] == ("failed",)
    assert "".join(turn.texts) == "after all"
    assert turn.stop_reason == "end_turn"


async def test_an_edit_has_a_diff_and_a_line_and_todos_are_a_plan(
    client: GatewayProcess, workspace: Path
) -> None:
    turn = await client.prompt(await client.new_session(workspace), "edit /w/a.py\ntodo dig")
    last = [u for u in turn.updates if u.get("status") == "completed"][-1]
    assert last["locations"] == [{"path": "/w/a.py", "line": 7}]
    assert last["content"][0]["newText"] == "same\nnew"
    plan = next(u for u in turn.updates if u["sessionUpdate"] == "plan")
    assert plan["entries"][0]["content"] == "dig"


async def test_a_question_of_claude_is_answered_by_a_choice(client: GatewayProcess, workspace: Path) -> None:
    client.on("session/request_permission", {"outcome": {"outcome": "selected", "optionId": "answer_1"}})
    turn = await client.prompt(await client.new_session(workspace), "question Which?")
    last = [u for u in turn.updates if u.get("status") == "completed"][-1]
    assert json.loads(last["content"][0]["content"]["text"])["answers"] == {"Which?": "blue"}


async def test_a_plan_that_is_accepted_changes_the_mode(client: GatewayProcess, workspace: Path) -> None:
    client.on("session/request_permission", {"outcome": {"outcome": "selected", "optionId": "acceptEdits"}})
    turn = await client.prompt(await client.new_session(workspace), "plan dig a hole")
    modes = [u["currentModeId"] for u in turn.updates if u["sessionUpdate"] == "current_mode_update"]
    assert modes == ["acceptEdits"]


async def test_cancel_in_the_middle_of_text_settles(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    running = client.start_prompt(session, "hang")
    await client.next_message(is_update(session, "agent_message_chunk"))
    client.cancel(session)
    assert (await running).stop_reason == "cancelled"
    assert "".join((await client.prompt(session, "still here")).texts) == "still here"


async def test_cancel_with_a_question_open_settles_and_closes_the_tool(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    running = client.start_prompt(session, "bash make")
    await client.next_message("session/request_permission")
    client.cancel(session)
    turn = await running
    assert turn.stop_reason == "cancelled"
    assert tools(turn, "status")[-1] == ("failed",)


@pytest.mark.rule("G-160")
@pytest.mark.parametrize(
    ("script", "stop"),
    [("stop error_max_turns", "max_turn_requests"), ("stop max_tokens", "max_tokens"), ("refuse", "refusal")],
)
async def test_stop_reasons_are_acps(client: GatewayProcess, workspace: Path, script: str, stop: str) -> None:
    assert (await client.prompt(await client.new_session(workspace), script)).stop_reason == stop


@pytest.mark.rule("G-160")
@pytest.mark.parametrize(
    ("script", "code", "words"),
    [
        ("fail 529", -32603, "API Error: 529"),
        ("fail 401", -32000, "claude /login"),
        ("logged-out", -32000, "claude /login"),
    ],
)
async def test_failures_are_errors_with_a_next_step(
    client: GatewayProcess, workspace: Path, script: str, code: int, words: str
) -> None:
    turn = await client.prompt(await client.new_session(workspace), script)
    assert turn.error is not None
    assert turn.error.code == code
    assert words in turn.error.message
    assert turn.texts == []


async def test_retries_are_told_as_such(client: GatewayProcess, workspace: Path) -> None:
    turn = await client.prompt(await client.new_session(workspace), "fail 529")
    states = [u["_meta"]["dragoman"] for u in turn.updates if u["sessionUpdate"] == "session_info_update"]
    assert {"state": "retrying", "attempt": 1, "maxRetries": 10, "status": 529} in states


async def test_modes_models_and_effort_change_by_any_name(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    await client.request("session/set_mode", {"sessionId": session, "modeId": "plan"})
    effort = {"sessionId": session, "configId": "effort", "value": "high"}
    result = await client.request("session/set_config_option", effort)
    assert {o["id"]: o["currentValue"] for o in result["configOptions"]} == {
        "mode": "plan",
        "model": "default",
        "effort": "high",
        "auto_resume": "false",
    }
    await client.request("session/set_model", {"sessionId": session, "modelId": "haiku"})
    told = await client.next_message(is_update(session, "current_model_update"))
    assert told["params"]["update"]["currentModelId"] == "haiku"
    turn = await client.prompt(session, "report")
    report = json.loads("".join(turn.texts).removeprefix("report "))
    assert (report["mode"], report["model"]) == ("plan", "claude-haiku-4-5")
    assert report["settings"] == {"effortLevel": "high"}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session/set_mode", {"modeId": "novel"}),
        ("session/set_mode", {"modeId": "bypassPermissions"}),
        ("session/set_config_option", {"configId": "model", "value": "novel"}),
        ("session/set_config_option", {"configId": "novel", "value": "x"}),
    ],
)
async def test_what_is_not_offered_is_refused(
    client: GatewayProcess, workspace: Path, method: str, params: dict[str, str]
) -> None:
    session = await client.new_session(workspace)
    with pytest.raises(RpcFailure) as failure:
        await client.request(method, {"sessionId": session, **params})
    assert failure.value.code == -32602


async def test_servers_and_folders_reach_it(client: GatewayProcess, workspace: Path, tmp_path: Path) -> None:
    server = {"name": "s", "command": "/bin/true", "args": [], "env": [{"name": "K", "value": "secret"}]}
    extra = tmp_path / "extra"
    extra.mkdir()
    session = await client.new_session(workspace, mcpServers=[server], additionalDirectories=[str(extra)])
    turn = await client.prompt(session, "report")
    report = json.loads("".join(turn.texts).removeprefix("report "))
    assert report["servers"] == {
        "s": {"type": "stdio", "command": "/bin/true", "args": [], "env": {"K": "secret"}}
    }
    assert report["folders"] == [str(extra)]
    assert report["cwd"] == str(workspace)
    assert not any("secret" in line for line in client.processes().values())


async def test_a_line_that_is_not_json_is_skipped(client: GatewayProcess, workspace: Path) -> None:
    turn = await client.prompt(await client.new_session(workspace), "garbage\nfine")
    assert "".join(turn.texts) == "fine"


async def test_a_process_that_dies_fails_its_turn_and_is_resumed(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    turn = await client.prompt(session, "die 7")
    assert turn.error is not None
    assert turn.error.data["reason"] == "agent_exited"
    assert "Something broke inside" in turn.error.message
    assert "".join((await client.prompt(session, "back again")).texts) == "back again"


@pytest.mark.parametrize("spoken", [True, False])
async def test_a_process_that_dies_beside_others_is_started_again_with_its_next_prompt(
    dragoman: Start, tmp_path: Path, workspace: Path, spoken: bool
) -> None:
    gateway = await dragoman("acp", "claude", agents={"claude": {**claude(tmp_path), "share": "all"}})
    await gateway.initialize()
    first, second = await gateway.new_session(workspace), await gateway.new_session(workspace)
    await gateway.request("session/set_mode", {"sessionId": first, "modeId": "plan"})
    if spoken:
        await gateway.prompt(first, "hello")
    died = await gateway.prompt(first, "die 7")
    assert died.error is not None
    assert "Something broke inside" in died.error.message
    again = json.loads("".join((await gateway.prompt(first, "report")).texts).removeprefix("report "))
    assert again["mode"] == "plan"
    assert (await gateway.prompt(second, "still here")).stop_reason == "end_turn"


@pytest.mark.parametrize(
    ("flags", "mode"),
    [
        (["--dangerously-skip-permissions"], "bypassPermissions"),
        (["--permission-mode", "plan"], "plan"),
        (["--permission-mode=acceptEdits"], "acceptEdits"),
        (["--allow-dangerously-skip-permissions"], "default"),
    ],
)
async def test_the_mode_of_its_command_line_is_told_from_the_beginning(
    dragoman: Start, tmp_path: Path, workspace: Path, flags: list[str], mode: str
) -> None:
    gateway = await dragoman("acp", "claude", agents={"claude": claude(tmp_path, *flags)})
    await gateway.initialize()
    result = await gateway.request("session/new", {"cwd": str(workspace), "mcpServers": []})
    assert result["modes"]["currentModeId"] == mode
    assert mode in [each["id"] for each in result["modes"]["availableModes"]]


async def test_a_session_of_its_own_transcripts_is_listed_and_loaded(
    dragoman: Start, workspace: Path, tmp_path: Path
) -> None:
    """With another gateway, which has never heard of it."""
    folder = tmp_path / "claude" / "projects" / "".join(c if c.isalnum() else "-" for c in str(workspace))
    folder.mkdir(parents=True)
    id = "11111111-1111-4111-8111-111111111111"
    use = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    done = {"type": "tool_result", "tool_use_id": "t1", "content": "a.txt"}
    records = [
        {"type": "user", "message": {"role": "user", "content": "What is here?"}},
        {"type": "assistant", "message": {"role": "assistant", "id": "m", "content": [use]}},
        {
            "type": "user",
            "message": {"role": "user", "content": [done]},
            "toolUseResult": {"stdout": "a.txt"},
        },
        {
            "type": "assistant",
            "message": {"role": "assistant", "content": [{"type": "text", "text": "One file."}]},
        },
    ]
    lines = [json.dumps({**record, "cwd": str(workspace), "sessionId": id}) for record in records]
    (folder / f"{id}.jsonl").write_text("\n".join(lines) + '\n{"half')
    client = await dragoman("acp", "claude", agents={"claude": claude(tmp_path)})
    await client.initialize()
    (found,) = (await client.request("session/list", {"cwd": str(workspace)}))["sessions"]
    assert found["title"] == "What is here?"
    params = {"sessionId": found["sessionId"], "cwd": str(workspace), "mcpServers": []}
    await client.request("session/load", params)
    shown = client.of(found["sessionId"])
    assert [u["sessionUpdate"] for u in shown].count("available_commands_update") == 1, "before the answer"
    kinds = [u["sessionUpdate"] for u in shown if u["sessionUpdate"] in KINDS]
    assert kinds == ["user_message_chunk", "tool_call", "tool_call_update", "agent_message_chunk"]
    assert "".join((await client.prompt(found["sessionId"], "go on")).texts) == "go on"


KINDS = {"user_message_chunk", "tool_call", "tool_call_update", "agent_message_chunk"}


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
    assert recalled(await client.prompt(session, "recall")) == ["fig", "recall"]
    result = await client.request("_dragoman/rewind", {"sessionId": session, "undo": True})
    assert (result["undone"], result["agent"]) == (2, "resume")
    assert recalled(await client.prompt(session, "recall")) == ["fig", "plum", "pear", "recall"]
    own = {"dragoman": {"at": 3}}
    made = await client.request("session/fork", {"sessionId": session, "cwd": str(workspace), "_meta": own})
    assert recalled(await client.prompt(made["sessionId"], "recall")) == ["fig", "plum", "recall"]
    result = await client.request("_dragoman/rewind", {"sessionId": session, "to": 1})
    assert result["agent"] == "seed", "nothing is left to fork"
    assert recalled(await client.prompt(session, "recall")) == ["recall"]


def recalled(turn: Turn) -> list[str]:
    """What the agent's own session has of the user."""
    found = json.loads("".join(turn.texts).removeprefix("recall "))
    return [said if isinstance(said, str) else said[0]["text"] for said in found]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--x-version", "1.0.3"), "is too old: it is 1.0.3, at least 2.0.0 is needed"),
        (("--x-version", "novel"), "npm install -g @anthropic-ai/claude-code"),
        (("--no-such-flag",), "unrecognized arguments: --no-such-flag"),
    ],
)
async def test_a_program_that_cannot_be_used_says_what_to_do(
    dragoman: Start, tmp_path: Path, workspace: Path, flags: tuple[str, ...], words: str
) -> None:
    gateway = await dragoman("acp", "claude", agents={"claude": claude(tmp_path, *flags)})
    with pytest.raises(RpcFailure) as failure:
        await gateway.initialize()
    assert words in failure.value.message


async def test_a_program_that_leaves_at_once_says_why(
    dragoman: Start, tmp_path: Path, workspace: Path
) -> None:
    gateway = await dragoman("acp", "claude", agents={"claude": claude(tmp_path, "--x-mute")})
    await gateway.initialize()
    with pytest.raises(RpcFailure) as failure:
        await gateway.new_session(workspace)
    assert "exited with code 3" in failure.value.message


async def test_a_program_that_is_not_there_is_named_with_its_installation(
    dragoman: Start, workspace: Path
) -> None:
    gateway = await dragoman("acp", "claude", agents={"claude": {"kind": "claude", "command": ["claude"]}},
                             env={"PATH": "/nonexistent"})  # fmt: skip
    with pytest.raises(RpcFailure) as failure:
        await gateway.initialize()
    assert "npm install -g @anthropic-ai/claude-code" in failure.value.message


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


async def test_what_a_hook_printed_is_in_the_log(client: GatewayProcess, workspace: Path) -> None:
    await client.prompt(await client.new_session(workspace), "hook not so fast")
    assert "exit_code=2" in (await client.logged(r"hook of claude: not so fast.*"))[0]


@pytest.mark.parametrize("draws", [True, False])
async def test_a_command_has_a_terminal_where_clients_draw_it_and_text_elsewhere(
    dragoman: Start, tmp_path: Path, workspace: Path, draws: bool
) -> None:
    gateway = await dragoman("acp", "claude", agents={"claude": claude(tmp_path)})
    await gateway.initialize(clientCapabilities={"_meta": {"terminal_output": draws}})
    gateway.on("session/request_permission", ALLOW)
    session = await gateway.new_session(workspace)
    turn = await gateway.prompt(session, "bash make")
    last = [u for u in turn.updates if u.get("status") == "completed"][-1]
    (content,) = last["content"]
    if draws:
        assert content == {"type": "terminal", "terminalId": last["toolCallId"]}
        assert last["_meta"]["terminal_output"]["data"] == "ran make"
    else:
        assert content["content"]["text"] == "```console\nran make\n```"


async def test_a_terminal_is_text_for_a_client_that_comes_later(
    dragoman: Start, home: Path, tmp_path: Path, workspace: Path
) -> None:
    first = await dragoman("acp", "claude", agents={"claude": claude(tmp_path)})
    await first.initialize(clientCapabilities={"_meta": {"terminal_output": True}})
    first.on("session/request_permission", ALLOW)
    session = await first.new_session(workspace)
    await first.prompt(session, "bash make")
    await first.stop()
    second = await dragoman("acp", "claude", agents={"claude": claude(tmp_path)})
    await second.initialize()
    params = {"sessionId": session, "cwd": str(workspace), "mcpServers": []}
    await second.request("session/load", params)
    last = [u for u in second.of(session) if u.get("status") == "completed"][-1]
    assert last["content"][0]["content"]["text"] == "```console\nran make\n```"


async def test_what_goes_wrong_inside_is_an_answer_too(
    client: GatewayProcess, workspace: Path, tmp_path: Path
) -> None:
    session = await client.new_session(workspace)
    await client.prompt(session, "hello")
    [kept] = (tmp_path / "claude").glob("projects/*/*.jsonl")
    kept.unlink()
    kept.mkdir()  # not to be unlinked
    await client.request("session/delete", {"sessionId": session})
    assert "IsADirectoryError" in (await client.logged(r"session/delete failed.*"))[0]


async def test_a_deleted_session_is_gone_from_its_own_list(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    await client.prompt(session, "remember")
    await client.request("session/delete", {"sessionId": session})
    assert (await client.request("session/list", {"cwd": str(workspace)}))["sessions"] == []
