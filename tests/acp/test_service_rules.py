"""Rules decide about files and commands that an agent asks of its client or of the gateway, whatever it asked before."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.clients.sample_answers import CANCELLED, EVERYTHING
from support.gateway_process import GatewayProcess, Start
from support.store.journal_reader import records

RULES = [
    {"name": "secrets", "decision": "deny", "paths": ["**/.env"], "reason": "Ask for the value instead."},
    {"name": "no push", "decision": "deny", "command": [["git", "push"]]},
    {"name": "see docs", "decision": "ask", "access": "write", "paths": ["{workspace}/docs/**"]},
    {"name": "see make", "decision": "ask", "command": [["make"]]},
    {"name": "notes", "decision": "allow", "access": "write", "paths": ["{workspace}/notes/**"]},
]
FILES = {"fs/read_text_file": {"content": "text"}, "fs/write_text_file": {}}


class Asked:
    """An editor that serves everything, and answers questions by a kind."""

    def __init__(self, gateway: GatewayProcess, session: str) -> None:
        self.gateway = gateway
        self.session = session
        self.answer = "reject_once"
        self.questions: list[Any] = []
        self.served: list[str] = []
        gateway.on("session/request_permission", self._question)
        for method, result in {**FILES, "terminal/create": {"terminalId": "t1"}}.items():
            gateway.on(method, self._serving(method, result))

    def _question(self, params: Any) -> Any:
        self.questions.append(params)
        chosen = [option["optionId"] for option in params["options"] if option["kind"] == self.answer]
        return {"outcome": {"outcome": "selected", "optionId": chosen[0]}} if chosen else CANCELLED

    def _serving(self, method: str, result: Any) -> Callable[[Any], Any]:
        def serve(params: Any) -> Any:
            self.served.append(method)
            return result

        return serve

    async def call(self, method: str, params: dict[str, Any], *before: str) -> Any:
        asked = json.dumps({"sessionId": "{sid}", **params})
        turn = await self.gateway.prompt(self.session, "\n".join([*before, f"request {method} {asked}"]))
        return turn.report("request")


@pytest.fixture
async def asked(dragoman: Start, workspace: Path) -> Asked:
    gateway = await dragoman(policy={"rules": RULES})
    await gateway.initialize(clientCapabilities=EVERYTHING)
    return Asked(gateway, await gateway.new_session(workspace))


def write(path: str) -> tuple[str, dict[str, Any]]:
    return "fs/write_text_file", {"path": path, "content": "x"}


@pytest.mark.parametrize("method", FILES)
async def test_a_denied_file_reaches_no_client_and_the_agent_hears_why(
    asked: Asked, workspace: Path, home: Path, method: str
) -> None:
    answer = await asked.call(method, {"path": f"{workspace}/.env", "content": "x"})
    error = answer["error"]
    assert (error["code"], error["data"]["reason"], error["data"]["rule"]) == (-32003, "policy", "secrets")
    assert "secrets" in error["message"] and "Ask for the value instead." in error["message"]
    assert asked.served == [] and asked.questions == []
    (record,) = records(home, asked.session, "decision")
    assert (record["by"], record["decision"]) == ("secrets", "deny")
    assert record["act"]["paths"][0]["path"] == f"{workspace}/.env"


async def test_a_link_to_a_denied_file_is_that_file(asked: Asked, workspace: Path) -> None:
    (workspace / ".env").write_text("secret")
    (workspace / "plain.txt").symlink_to(workspace / ".env")
    answer = await asked.call("fs/read_text_file", {"path": f"{workspace}/plain.txt"})
    assert answer["error"]["data"]["rule"] == "secrets"


COMMANDS = [
    {"command": "git", "args": ["push"]},
    {"command": "git push"},
    {"command": "/bin/sh", "args": ["-c", "git push --force"]},
    {"command": "echo", "args": ["x;", "git", "push"]},
    {"command": "env", "args": ["A=1", "git", "push"]},
]


@pytest.mark.parametrize("command", COMMANDS, ids=str)
async def test_a_denied_command_is_not_run_however_it_is_spelled(
    asked: Asked, command: dict[str, Any]
) -> None:
    answer = await asked.call("terminal/create", command)
    assert answer["error"]["data"]["rule"] == "no push"
    assert asked.served == []


UNCLEAR = [
    {"command": "sh", "args": ["-c", "$(cat x)"]},
    {"command": "ls", "env": [{"name": "PATH", "value": "/x"}]},
    {"command": "ls", "env": [{"name": "A=B;", "value": "/x"}]},
]


@pytest.mark.parametrize("command", UNCLEAR, ids=str)
async def test_a_command_that_is_not_understood_may_be_a_denied_one_and_is_asked_about(
    asked: Asked, command: dict[str, Any]
) -> None:
    answer = await asked.call("terminal/create", command)
    assert len(asked.questions) == 1
    assert answer["error"]["data"]["rule"] in ("secrets", "no push")
    assert asked.served == []


async def test_what_no_rule_is_about_is_served_without_a_question(asked: Asked, workspace: Path) -> None:
    assert (await asked.call("fs/read_text_file", {"path": f"{workspace}/a"}))["result"]
    assert (await asked.call(*write(f"{workspace}/a")))["result"] == {}
    assert (await asked.call("terminal/create", {"command": "ls", "args": ["-l"]}))["result"]
    assert asked.questions == [] and len(asked.served) == 3


@pytest.mark.parametrize("place", [".git/config", ".git/hooks/pre-commit", ".dragoman/config.toml"])
async def test_protected_places_are_denied_without_any_rule(
    dragoman: Start, workspace: Path, place: str
) -> None:
    gateway = await dragoman()
    await gateway.initialize(clientCapabilities=EVERYTHING)
    asked = Asked(gateway, await gateway.new_session(workspace))
    answer = await asked.call(*write(f"{workspace}/{place}"))
    assert answer["error"]["data"]["rule"] == "built in"
    run = {"command": "tee", "args": [f"{workspace}/{place}"]}
    assert (await asked.call("terminal/create", run))["error"]["data"]["rule"] == "built in"
    assert (await asked.call("fs/read_text_file", {"path": f"{workspace}/{place}"}))["result"]
    assert asked.served == ["fs/read_text_file"]


async def test_a_rule_that_asks_makes_a_question_and_its_answer_decides(
    asked: Asked, workspace: Path, home: Path
) -> None:
    refused = await asked.call(*write(f"{workspace}/docs/a.md"))
    assert refused["error"]["data"] == {
        "reason": "policy",
        "rule": "see docs",
        "why": refused["error"]["data"]["why"],
    }
    assert asked.served == []
    tool = asked.questions[0]["toolCall"]
    assert tool["kind"] == "edit" and tool["locations"] == [{"path": f"{workspace}/docs/a.md"}]
    asked.answer = "allow_once"
    assert (await asked.call(*write(f"{workspace}/docs/a.md")))["result"] == {}
    assert (await asked.call("terminal/create", {"command": "make", "args": ["all"]}))["result"]
    assert len(asked.questions) == 3
    assert len(records(home, asked.session, "question")) == len(records(home, asked.session, "decision")) == 3


async def test_what_was_allowed_under_its_tool_call_is_not_asked_twice(asked: Asked, workspace: Path) -> None:
    asked.answer = "allow_once"
    path = f"{workspace}/docs/a.md"
    edit = {"toolCallId": "c1", "kind": "edit", "rawInput": {"filepath": path}}
    allowed = f"permission {json.dumps({'toolCall': edit})}"
    assert (await asked.call(*write(path), allowed))["result"] == {}
    assert len(asked.questions) == 1
    assert (await asked.call(*write(f"{workspace}/docs/other.md"), allowed))["result"] == {}
    assert len(asked.questions) == 3, "another file is another act"
    await asked.call(*write(path), allowed, f"fswrite {path} x")
    assert len(asked.questions) == 5, "one answer is for one call"
    await asked.call(*write(path))
    assert len(asked.questions) == 6, "nor does it hold in the next turn"


async def test_a_rule_that_allows_is_recorded_for_a_write(asked: Asked, workspace: Path, home: Path) -> None:
    assert (await asked.call(*write(f"{workspace}/notes/a")))["result"] == {}
    (record,) = records(home, asked.session, "decision")
    assert (record["by"], record["decision"]) == ("notes", "allow")


def asks_for(line: str, **more: Any) -> str:
    tool = {"toolCallId": "c1", "kind": "execute", "rawInput": {"command": line, **more}}
    return f"permission {json.dumps({'toolCall': tool})}"


async def test_what_was_allowed_in_one_folder_is_asked_about_in_another(
    asked: Asked, workspace: Path
) -> None:
    asked.answer = "allow_once"
    for name in ("staging", "prod"):
        (workspace / name).mkdir()
    staging, prod = str(workspace / "staging"), str(workspace / "prod")
    make = {"command": "make", "args": ["all"]}
    await asked.call("terminal/create", {**make, "cwd": staging}, asks_for("make all", cwd=staging))
    assert len(asked.questions) == 1
    await asked.call("terminal/create", {**make, "cwd": prod}, asks_for("make all", cwd=staging))
    assert len(asked.questions) == 3
    await asked.call("terminal/create", make, asks_for("cd staging && make all"))
    assert len(asked.questions) == 5
    await asked.call("terminal/create", make, asks_for("env -C staging make all"))
    assert len(asked.questions) == 7


async def test_a_person_allows_what_was_asked_and_not_what_the_agent_tells_later(
    dragoman: Start, workspace: Path
) -> None:
    gateway = await dragoman(policy={"rules": RULES})
    await gateway.initialize(clientCapabilities=EVERYTHING)
    gateway.on("terminal/create", {"terminalId": "t1"})
    session = await gateway.new_session(workspace)
    told = {"sessionUpdate": "tool_call", "toolCallId": "c1", "title": "Build", "kind": "execute"}
    other = {"toolCallId": "c2", "kind": "execute", "rawInput": {"command": "date"}}
    turn = gateway.start_prompt(
        session,
        "\n".join(
            [
                f"update {json.dumps({**told, 'rawInput': {'command': 'make a'}})}",
                f"permission-nowait {json.dumps({'toolCall': {'toolCallId': 'c1', 'kind': 'execute'}})}",
                f"update {json.dumps({**told, 'sessionUpdate': 'tool_call_update', 'rawInput': {'command': 'make b'}})}",
                f"permission {json.dumps({'toolCall': other})}",
                'request terminal/create {"sessionId": "{sid}", "command": "make", "args": ["b"]}',
            ]
        ),
    )
    method = "session/request_permission"
    first, second = await gateway.next_message(method), await gateway.next_message(method)
    for question in (first, second):
        chosen = [o["optionId"] for o in question["params"]["options"] if o["kind"] == "allow_once"]
        gateway.reply(question, {"outcome": {"outcome": "selected", "optionId": chosen[0]}})
    third = await gateway.next_message(method)
    assert third["params"]["toolCall"]["rawInput"] == {"command": "make b"}
    gateway.reply(third, CANCELLED)
    assert (await turn).report("request")["error"]["data"]["rule"] == "see make"
