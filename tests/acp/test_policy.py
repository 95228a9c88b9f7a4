"""Rules on facts decide about permission requests in the shapes that the tested agents send."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from support.clients.sample_answers import CANCELLED, REJECT
from support.gateway_process import GatewayProcess
from support.rpc_peer import is_request
from support.store.journal_reader import records

Outcome = Callable[..., Awaitable[Any]]
RULES = [
    {"name": "git reading", "decision": "allow", "command": [["git", ["status", "diff"]]]},
    {"name": "notes", "decision": "allow", "access": "write", "paths": ["{workspace}/notes/**"]},
    {"name": "docs", "decision": "allow", "hosts": ["docs.example"]},
    {"name": "no rm", "decision": "deny", "command": [["rm"]], "reason": "Move it to the bin."},
    {"name": "inside", "decision": "deny", "access": "write", "outside_workspace": True},
]
ONCE = {"result": {"outcome": {"outcome": "selected", "optionId": "yes"}}}
TOLD = {"result": {**REJECT, "_meta": {"dragoman": {"reason": "Move it to the bin."}}}}
ASKED = {"result": CANCELLED}
"""What the agent hears when the client was asked, which answers so."""


@pytest.fixture
async def outcome(dragoman: Any, workspace: Path) -> Outcome:
    """The agent's answer to a permission request, after what it said about the call before."""
    gateway: GatewayProcess = await dragoman(policy={"rules": RULES})
    await gateway.initialize()
    gateway.on("session/request_permission", CANCELLED)
    session = await gateway.new_session(workspace)

    async def asked(tool: dict[str, Any], *before: dict[str, Any], options: Any = None) -> Any:
        told = json.loads(json.dumps([tool, *before]).replace("{w}", str(workspace)))
        tool, updates = {"toolCallId": "c1", **told[0]}, told[1:]
        question = {"toolCall": tool, **({} if options is None else {"options": options})}
        lines = [f"update {json.dumps({'toolCallId': 'c1', **update})}" for update in updates]
        turn = await gateway.prompt(session, "\n".join([*lines, f"permission {json.dumps(question)}"]))
        return turn.report("permission")

    return asked


def lines(line: str) -> dict[str, dict[str, Any]]:
    """A shell line as the agents ask about it."""
    return {
        "claude-agent-acp": {"name": "Bash", "kind": "execute", "title": line, "rawInput": {"command": line}},
        "codex-acp": {"kind": "read", "title": "Read it", "rawInput": {"command": line, "cwd": "{w}"}},
        "codex": {"kind": "execute", "rawInput": {"command": f"/bin/bash -lc '{line}'", "cwd": "{w}"}},
        "opencode": {"kind": "execute", "title": line, "rawInput": {"command": line}},
        "gemini": {
            "toolCallId": "run_shell_command__1",
            "kind": "execute",
            "title": line,
            "content": [
                {"type": "content", "content": {"type": "text", "text": "[current working directory /]"}}
            ],
        },
        "qwen": {
            "kind": "execute",
            "rawInput": {"command": line},
            "_meta": {"toolName": "run_shell_command"},
        },
    }


@pytest.mark.rule("G-100")
@pytest.mark.parametrize("agent", lines(""))
async def test_lines_of_each_agent_are_decided_by_their_commands(outcome: Outcome, agent: str) -> None:
    assert await outcome(lines("git status")[agent]) == ONCE
    assert await outcome(lines("git status; rm -rf x")[agent]) == TOLD
    assert await outcome(lines("git push")[agent]) == ASKED


@pytest.mark.parametrize(
    "tool",
    [
        {"name": "Write", "kind": "edit", "rawInput": {"file_path": "{path}", "content": "x"}},
        {"kind": "edit", "title": "Edit files", "locations": [{"path": "{path}"}]},
        {"kind": "edit", "rawInput": {"changes": [{"path": "{path}", "kind": {"type": "add"}}]}},
        {"kind": "edit", "rawInput": {"filepath": "{path}", "diff": "…"}},
        {"kind": "edit", "content": [{"type": "diff", "path": "{path}", "oldText": None, "newText": "x"}]},
    ],
    ids=["claude", "codex-acp", "codex", "opencode", "gemini"],
)
async def test_files_of_each_agent_are_decided_by_their_paths(
    outcome: Outcome, workspace: Path, tool: dict[str, Any]
) -> None:
    def at(path: str) -> dict[str, Any]:
        made: dict[str, Any] = json.loads(json.dumps(tool).replace("{path}", path))
        return made

    (workspace / "notes").mkdir()
    (workspace / "notes" / "out").symlink_to("/tmp")
    assert await outcome(at("{w}/notes/a")) == ONCE
    assert await outcome(at("{w}/a")) == ASKED
    assert await outcome(at("{w}/notes/out/a")) == {"result": REJECT}
    denied = await outcome(at("{w}/.git/hooks/pre-commit"))
    assert denied == {"result": {**REJECT, "_meta": {"dragoman": {"reason": "This place is protected."}}}}


async def test_what_a_question_leaves_out_is_taken_from_its_call(outcome: Outcome, workspace: Path) -> None:
    """OpenCode tells the folder of a line, codex-acp the changed files only there."""
    call = {"sessionUpdate": "tool_call", "status": "pending", "kind": "execute", "title": "bash"}
    line = {"kind": "execute", "rawInput": {"command": "touch x"}}
    assert await outcome(line, {**call, "rawInput": {"command": "touch x", "cwd": "/etc"}}) == {
        "result": REJECT
    }
    edit = {"sessionUpdate": "tool_call", "status": "pending", "kind": "edit", "title": "Editing files"}
    diff = {"type": "diff", "path": "{w}/notes/a", "oldText": None, "newText": "x"}
    assert await outcome({"kind": "edit"}, {**edit, "content": [diff]}) == ONCE


async def test_a_fetch_is_decided_by_its_host(outcome: Outcome) -> None:
    fetch = {"kind": "fetch", "rawInput": {"url": "https://docs.example/x"}}
    assert await outcome(fetch) == ONCE
    assert await outcome({"kind": "fetch", "rawInput": {"url": "https://docs.example.evil.org"}}) == ASKED


async def test_with_only_an_option_for_always_the_user_is_asked(outcome: Outcome) -> None:
    always = [{"optionId": "yes", "name": "Always", "kind": "allow_always"}]
    assert await outcome(lines("git status")["claude-agent-acp"], options=always) == ASKED
    denied = await outcome(lines("rm x")["claude-agent-acp"], options=always)
    assert denied == {"result": {**CANCELLED, "_meta": {"dragoman": {"reason": "Move it to the bin."}}}}


@pytest.mark.rule("G-104")
async def test_the_record_has_the_rule_why_and_the_facts(dragoman: Any, workspace: Path, home: Path) -> None:
    gateway: GatewayProcess = await dragoman(policy={"rules": RULES})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    tool = {"toolCallId": "c1", "kind": "edit", "rawInput": {"file_path": "notes/a", "content": "s3cret"}}
    await gateway.prompt(session, f"permission {json.dumps({'toolCall': tool})}")
    (record,) = records(home, session, "decision")
    assert (record["by"], record["decision"], record["why"]) == ("notes", "allow", "allowed by notes")
    assert record["act"]["paths"] == [
        {"path": str(workspace / "notes" / "a"), "access": "write", "outside": False}
    ]
    assert "s3cret" not in json.dumps(record["act"])


async def test_without_rules_our_own_places_are_denied_and_the_rest_is_asked(
    client: GatewayProcess, workspace: Path, home: Path
) -> None:
    session = await client.new_session(workspace)
    for line in (f"echo x > {home}/config.toml", "echo x > .dragoman/config.toml", f"rm -rf {home}"):
        tool = {"toolCallId": "c1", "kind": "execute", "rawInput": {"command": line}}
        turn = await client.prompt(session, f"permission {json.dumps({'toolCall': tool})}")
        assert turn.report("permission")["result"]["outcome"] == REJECT["outcome"], line
    running = client.start_prompt(session, "permission")
    client.reply(await client.next_message(is_request("session/request_permission")), REJECT)
    assert (await running).report("permission") == {"result": REJECT}


@pytest.mark.rule("G-100")
async def test_no_rule_chooses_among_several_answers(outcome: Outcome) -> None:
    """Claude Code's AskUserQuestion comes as a permission request with an `allow_once` option for each answer."""
    answers = [
        {"optionId": "answer_0", "name": "Postgres", "kind": "allow_once"},
        {"optionId": "answer_1", "name": "MySQL", "kind": "allow_once"},
        {"optionId": "decline", "name": "Do not answer", "kind": "reject_once"},
    ]
    line = {"kind": "execute", "rawInput": {"command": "git status"}}
    assert await outcome(line, options=answers) == ASKED
    assert await outcome(line, options=[answers[0], answers[2]]) != ASKED


@pytest.mark.rule("G-100")
@pytest.mark.parametrize("remember", ["agent", "gateway"])
async def test_no_rule_answers_a_question_that_has_one_answer_only(
    dragoman: Any, workspace: Path, remember: str
) -> None:
    """A question to a person is no permission, however few answers it has; its own answers are offered."""
    rule = {"decision": "allow", "kind": ["other", "think"]}
    gateway: GatewayProcess = await dragoman(policy={"rules": [rule], "remember": remember})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    answer = {"optionId": "answer_0", "name": "Postgres", "kind": "allow_once"}
    decline = {"optionId": "decline", "name": "Do not answer", "kind": "reject_once"}
    asked = [{"question": "Which one?", "options": [{"label": "Postgres"}]}]
    for tool, options in (
        ({"name": "AskUserQuestion", "kind": "other", "rawInput": {"questions": asked}}, [answer, decline]),
        ({"kind": "other", "_meta": {"toolName": "ask_user_question"}}, [answer, decline]),
        ({"kind": "think", "rawInput": asked[0]}, [answer, decline]),
        ({"kind": "other", "title": "Which one?"}, [answer]),
    ):
        question = {"toolCall": {"toolCallId": "c1", **tool}, "options": options}
        running = gateway.start_prompt(session, f"permission {json.dumps(question)}")
        request = await gateway.next_message(is_request("session/request_permission"))
        assert request["params"]["options"] == options, tool
        gateway.reply(request, REJECT)
        await running
    plain = {"toolCall": {"toolCallId": "c2", "kind": "other"}, "options": [answer, decline]}
    turn = await gateway.prompt(session, f"permission {json.dumps(plain)}")
    assert turn.report("permission")["result"]["outcome"]["optionId"] == "answer_0"
