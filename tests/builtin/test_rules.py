"""Every tool call of the built-in agent reaches the rules before it runs, also those that it would not ask about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman.audit.read import Query, query
from dragoman.builtin.commands.table import OFFERED
from support.agents.builtin_process import calls, said
from support.clients.sample_answers import CANCELLED
from support.gateway_process import GatewayProcess, Start
from support.store.journal_reader import records

RULES = [
    {"name": "secrets", "decision": "deny", "paths": ["**/.env"], "reason": "Ask for the value instead."},
    {"name": "see letters", "decision": "ask", "access": "read", "paths": ["{workspace}/letters/**"]},
    {"name": "no search", "decision": "deny", "tool": ["grep"]},
]


@pytest.fixture
async def gateway(dragoman: Start, workspace: Path) -> GatewayProcess:
    (workspace / ".env").write_text("secret\n")
    (workspace / "plain").symlink_to(workspace / ".env")
    (workspace / "letters").mkdir()
    (workspace / "letters" / "a").write_text("dear\n")
    (workspace / "notes.txt").write_text("hello\n")
    agents, env = {"builtin": {"kind": "builtin"}}, dict.fromkeys(("OPENAI_API_KEY",), "")
    started = await dragoman("acp", agents=agents, env=env, policy={"rules": RULES})
    await started.initialize()
    return started


async def run(gateway: GatewayProcess, session: str, line: str) -> Any:
    return calls(await gateway.prompt(session, line))[0]


@pytest.mark.parametrize("name", [".env", "plain"])
async def test_a_denied_read_is_not_done_and_says_why(
    gateway: GatewayProcess, workspace: Path, home: Path, name: str
) -> None:
    session = await gateway.new_session(workspace)
    ended = await run(gateway, session, f"/read {name}")
    assert ended["status"] == "failed" and "Ask for the value instead." in str(ended)
    assert "secret\\n" not in str(ended["content"])
    (record,) = records(home, session, "decision")
    assert (record["by"], record["decision"]) == ("secrets", "deny")


async def test_a_rule_that_asks_about_reads_asks_a_person(gateway: GatewayProcess, workspace: Path) -> None:
    questions: list[Any] = []

    def answer(params: Any) -> Any:
        questions.append(params)
        offered = [option["optionId"] for option in params["options"] if option["kind"] == "allow_once"]
        once = {"outcome": {"outcome": "selected", "optionId": offered[0]}}
        return CANCELLED if len(questions) == 1 else once

    gateway.on("session/request_permission", answer)
    session = await gateway.new_session(workspace)
    assert (await run(gateway, session, "/read letters/a"))["status"] == "failed"
    assert (await run(gateway, session, "/read letters/a"))["status"] == "completed"
    assert len(questions) == 2 and "unasked" not in str(questions)


async def test_what_no_rule_is_about_asks_nothing_and_is_not_recorded(
    gateway: GatewayProcess, workspace: Path, home: Path
) -> None:
    session = await gateway.new_session(workspace)
    assert (await run(gateway, session, "/read notes.txt"))["status"] == "completed"
    assert not [
        message for message in gateway.received if message.get("method") == "session/request_permission"
    ]
    assert records(home, session, "decision") == []


COMMANDS = (
    "/help",
    "/read notes.txt",
    "/search hello",
    "/run echo hi",
    "/edit notes.txt hello goodbye",
    "/write made.txt new",
    "/diff",
    "/apply",
    "/plan one; two",
    "/plan done 1",
    "/model",
    "/mode",
    "/mcp",
    "/compact",
)


async def test_no_command_passes_the_rules_by_in_a_new_or_a_continued_session(
    dragoman: Start, workspace: Path, home: Path
) -> None:
    assert {line.split()[0][1:] for line in COMMANDS} == {command.name for command in OFFERED}
    agents, env = {"builtin": {"kind": "builtin"}}, dict.fromkeys(("OPENAI_API_KEY",), "")
    once = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
    session = ""
    for continued in (False, True):
        (workspace / "notes.txt").write_text("hello\n")
        gateway = await dragoman("acp", agents=agents, env=env)
        gateway.on("session/request_permission", once)
        await gateway.initialize()
        if continued:
            params = {"sessionId": session, "cwd": str(workspace), "mcpServers": []}
            await gateway.request("session/resume", params)
            assert "+new" in said(await gateway.prompt(session, "/diff")), "changes of the earlier process"
        session = session or await gateway.new_session(workspace)
        for line in COMMANDS:
            turn = await gateway.prompt(session, line)
            assert "ran before the rules" not in str(turn.updates), line
            assert "unmediated" not in str(turn.updates), line
            failed = [call for call in calls(turn) if call["status"] != "completed"]
            assert bool(failed) == (line == "/apply"), failed
        await gateway.stop()
    found = [record for record in query(home / "audit", Query()) if record["kind"] == "unmediated"]
    assert not found


async def test_what_a_session_changed_is_read_only_if_the_rules_allow_it(
    dragoman: Start, workspace: Path, home: Path
) -> None:
    rules = [
        {"name": "may write", "decision": "allow", "access": "write", "paths": ["{workspace}/**"]},
        {"name": "no letters", "decision": "deny", "access": "read", "paths": ["{workspace}/letters/**"]},
    ]
    agents, env = {"builtin": {"kind": "builtin"}}, dict.fromkeys(("OPENAI_API_KEY",), "")
    gateway = await dragoman("acp", agents=agents, env=env, policy={"rules": rules})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    assert (await run(gateway, session, "/write letters/a dear"))["status"] == "completed"
    ended = await run(gateway, session, "/diff")
    assert ended["status"] == "failed" and "dear" not in str(ended["content"])


async def test_an_edit_is_decided_before_its_file_is_read(
    gateway: GatewayProcess, workspace: Path, home: Path
) -> None:
    session = await gateway.new_session(workspace)
    gateway.on("session/request_permission", CANCELLED)
    for line in (
        "/edit .env nothing else",
        "/edit .env secret else",
        "/write .env else",
        "/write plain else",
    ):
        ended = await run(gateway, session, line)
        assert ended["status"] == "failed" and "Ask for the value instead." in str(ended), line
        assert "not in the file" not in str(ended) and "exists already" not in str(ended), line
    decided = [(record["by"], record["decision"]) for record in records(home, session, "decision")]
    assert decided == [("secrets", "deny")] * 4


async def test_an_edit_that_a_rule_allows_asks_nothing_and_shows_its_diff(
    dragoman: Start, workspace: Path, home: Path
) -> None:
    (workspace / "notes.txt").write_text("hello\n")
    rules = [{"name": "may write", "decision": "allow", "access": "write", "paths": ["{workspace}/**"]}]
    agents, env = {"builtin": {"kind": "builtin"}}, dict.fromkeys(("OPENAI_API_KEY",), "")
    gateway = await dragoman("acp", agents=agents, env=env, policy={"rules": rules})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    ended = await run(gateway, session, "/edit notes.txt hello goodbye")
    assert ended["status"] == "completed" and "goodbye" in str(ended["content"])
    ended = await run(gateway, session, "/edit missing.txt hello goodbye")
    assert ended["status"] == "failed" and "There is no file" in str(ended["content"])
    found = [record for record in query(home / "audit", Query(session=session)) if "call" in record]
    assert [record["kind"] for record in found] == ["tool_begun", "decision", "tool_ended"] * 2
    assert not [record for record in found if record.get("unmediated")]


async def test_a_person_is_asked_once_about_an_edit_with_its_diff(
    gateway: GatewayProcess, workspace: Path, home: Path
) -> None:
    questions: list[Any] = []

    def answer(params: Any) -> Any:
        questions.append(params)
        return CANCELLED

    gateway.on("session/request_permission", answer)
    session = await gateway.new_session(workspace)
    assert (await run(gateway, session, "/edit notes.txt hello goodbye"))["status"] == "failed"
    (question,) = questions
    (diff,) = question["toolCall"]["content"]
    assert (diff["oldText"], diff["newText"]) == ("hello\n", "goodbye\n")
    found = query(home / "audit", Query(session=session))
    assert [record["decision"] for record in found if record["kind"] == "decision"] == ["ask"]


async def test_a_call_that_fails_before_it_asks_is_recorded_as_not_run(
    gateway: GatewayProcess, workspace: Path, home: Path
) -> None:
    session = await gateway.new_session(workspace)
    assert (await run(gateway, session, "/read ../../etc/passwd"))["status"] == "failed"
    assert (await run(gateway, session, "/read gone.txt"))["status"] == "failed"
    ended = list(query(home / "audit", Query(session=session, kind="tool_ended")))
    assert [record.get("reason") for record in ended] == ["not_run", None]
    assert not list(query(home / "audit", Query(session=session, unmediated=True)))
