"""A tool call that a hook tells is decided by the same rules as any other, once, before it runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.audit.read import Query, query
from support.clients.sample_answers import CANCELLED
from support.gateway_process import GatewayProcess, Start, Table
from support.store.journal_reader import records

SCRIPTED = Path(__file__).parents[2] / "support" / "agents" / "hooked_agent.py"
RULES = [
    {"name": "no secrets", "decision": "deny", "paths": ["**/secret.txt"], "reason": "Ask for it."},
    {"name": "see c", "decision": "ask", "paths": ["**/c.txt"]},
    {"name": "git", "decision": "allow", "command": [["git", "status"]]},
]


def read(path: object, id: str = "call-1") -> dict[str, Any]:
    return {"id": id, "tool": "read_file", "kind": "read", "input": {"file_path": str(path)}}


def run(line: str) -> dict[str, Any]:
    return {"id": "call-1", "tool": "run_shell_command", "kind": "execute", "input": {"command": line}}


def known_agent(folder: Path) -> Table:
    """The scripted agent in a folder by whose name it is taken for Qwen Code."""
    file = folder / "qwen" / "agent.py"
    file.parent.mkdir()
    file.write_text(SCRIPTED.read_text())
    return {"kind": "acp", "command": [sys.executable, str(file)]}


class Hooked:
    """A session of the agent, and the questions that the client was asked."""

    def __init__(self, gateway: GatewayProcess, session: str, home: Path) -> None:
        self.gateway, self.session, self.home = gateway, session, home
        self.questions: list[Any] = []
        self.answer = "allow_once"
        gateway.on("session/request_permission", self._asked)

    def _asked(self, params: Any) -> Any:
        self.questions.append(params)
        ids = [option["optionId"] for option in params["options"] if option["kind"] == self.answer]
        return {"outcome": {"outcome": "selected", "optionId": ids[0]}} if ids else CANCELLED

    async def calls(self, *calls: dict[str, Any], ask: str | None = None) -> list[Any]:
        turn = await self.gateway.prompt(self.session, json.dumps({"calls": calls, "ask": ask}))
        assert "unmediated" not in str(turn.updates)
        found: list[Any] = json.loads("".join(turn.texts))
        return found

    def decisions(self) -> list[tuple[str, str]]:
        """Those in the audit."""
        found = query(self.home / "audit", Query(session=self.session))
        return [(each["by"], each["decision"]) for each in found if each["kind"] == "decision"]


@pytest.fixture
async def hooked(dragoman: Start, workspace: Path, tmp_path: Path, home: Path) -> Hooked:
    agents = {"qwen": known_agent(tmp_path)}
    gateway = await dragoman("acp", "qwen", agents=agents, policy={"rules": RULES})
    await gateway.initialize()
    return Hooked(gateway, await gateway.new_session(workspace), home)


async def test_a_call_that_no_rule_is_about_goes_on(hooked: Hooked, workspace: Path) -> None:
    assert await hooked.calls(read(workspace / "a.txt")) == [{"code": 0, "out": "", "err": ""}]
    assert not hooked.questions
    assert hooked.decisions() == [("default", "allow")]


@pytest.mark.parametrize("path", ["a.txt", "b/a.txt"])
async def test_the_hook_is_answered_after_its_decision_is_recorded(
    hooked: Hooked, workspace: Path, path: str
) -> None:
    told = {**read(workspace / path), "audit": str(hooked.home / "audit"), "untold": path == "a.txt"}
    (came,) = await hooked.calls(told)
    assert (came["code"], came["recorded"]) == (0, 1)


async def test_a_call_that_only_the_hook_tells_of_is_in_the_audit_with_its_decision(
    hooked: Hooked, workspace: Path
) -> None:
    await hooked.calls({**read(workspace / "a.txt"), "untold": True})
    found = [each for each in query(hooked.home / "audit", Query(session=hooked.session)) if "call" in each]
    assert [each["kind"] for each in found] == ["decision", "tool_begun", "tool_ended"]
    assert hooked.decisions() == [("default", "allow")]


async def test_a_denied_call_does_not_run_and_the_agent_is_told_why(hooked: Hooked, workspace: Path) -> None:
    (came,) = await hooked.calls(read(workspace / "secret.txt"))
    assert came == {"code": 2, "out": "", "err": "Not allowed: Ask for it.\n"}
    decided = [
        (record["by"], record["decision"]) for record in records(hooked.home, hooked.session, "decision")
    ]
    assert decided == [("no secrets", "deny")] == hooked.decisions()


@pytest.mark.parametrize(("answer", "code"), [("allow_once", 0), ("reject_once", 2)])
async def test_a_rule_that_asks_makes_the_hook_wait_for_a_person(
    hooked: Hooked, workspace: Path, answer: str, code: int
) -> None:
    hooked.answer = answer
    (came,) = await hooked.calls(read(workspace / "c.txt"))
    assert came["code"] == code and len(hooked.questions) == 1
    assert hooked.decisions() == [("see c", "ask")]


async def test_a_call_that_the_agent_asks_about_first_is_decided_once(
    hooked: Hooked, workspace: Path
) -> None:
    (came,) = await hooked.calls(run("make test"), ask="before")
    assert came["answer"] == "yes" and came["code"] == 0
    assert len(hooked.questions) == 1
    assert hooked.decisions() == [("default", "ask")]


async def test_a_call_that_the_agent_asks_about_afterwards_is_decided_once(
    hooked: Hooked, workspace: Path
) -> None:
    (came,) = await hooked.calls(read(workspace / "c.txt"), ask="after")
    assert came["answer"] == "yes" and len(hooked.questions) == 1
    assert hooked.decisions() == [("see c", "ask")]


async def test_an_allowing_rule_answers_hook_and_question_with_one_decision(hooked: Hooked) -> None:
    (came,) = await hooked.calls(run("git status"), ask="after")
    assert came["answer"] == "yes" and not hooked.questions
    assert hooked.decisions() == [("git", "allow")]


async def test_a_question_of_the_agent_stays_where_no_rule_is_about_a_call(hooked: Hooked) -> None:
    hooked.answer = "reject_once"
    (came,) = await hooked.calls(run("make test"), ask="after")
    assert (came["code"], came["answer"]) == (0, "no") and len(hooked.questions) == 1
    assert hooked.decisions() == [("default", "allow"), ("default", "ask")]


async def test_another_input_under_the_same_id_is_asked_about_again(hooked: Hooked, workspace: Path) -> None:
    await hooked.calls(read(workspace / "c.txt"))
    await hooked.calls(run("make test"), ask="before")
    assert len(hooked.questions) == 2


async def test_an_agent_whose_hooks_are_off_is_told_of_and_stopped_where_all_must_be_seen(
    dragoman: Start, workspace: Path, tmp_path: Path
) -> None:
    gateway = await dragoman(
        "acp", "qwen", agents={"qwen": known_agent(tmp_path)}, policy={"require": "full"}
    )
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    script = {"calls": [read(workspace / "a.txt"), read(workspace / "b.txt", "call-2")], "hooks": "off"}
    turn = await gateway.prompt(session, json.dumps(script))
    assert str(turn.updates).count("'unmediated': True") == 2
    assert str(turn.updates).count("its hooks may be switched off") == 1
    assert turn.stop_reason == "cancelled"
