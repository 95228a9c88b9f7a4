"""The policy by REST: rules, decisions, trying a line, explaining a call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.audit.chain import Chain
from dragoman.server.auth.named_tokens import TokenFile
from server.conftest import Serve
from support.serve_process import ServeProcess

RULES = [
    {"name": "listing", "decision": "allow", "command": [["ls"]]},
    {"name": "no rm", "decision": "deny", "command": [["rm"]], "reason": "Move it to the bin."},
    {"name": "deploys", "decision": "ask", "command": [["kubectl"]], "approvals": 2},
]


@pytest.fixture
async def serving(serve: Serve) -> ServeProcess:
    return await serve(policy={"rules": RULES, "remember": "agent"})


def question(line: str, call: str) -> str:
    tool = {"toolCallId": call, "title": line, "kind": "execute", "rawInput": {"command": line}}
    return f"permission {json.dumps({'toolCall': tool})}"


async def test_the_rules_in_force_are_listed_with_their_origin(
    serving: ServeProcess, workspace: Path
) -> None:
    (workspace / ".dragoman").mkdir()
    narrow = '[[policy.rules]]\nname = "quiet"\ndecision = "deny"\nhosts = ["*"]\n'
    (workspace / ".dragoman" / "config.toml").write_text(narrow)
    shown = (await serving.http().get("/api/policy", params={"cwd": str(workspace)})).json()
    assert shown["workspace"] == str(workspace.resolve()) and shown["trouble"] is None
    assert [(rule["name"], rule["from"]) for rule in shown["rules"]] == [
        ("quiet", "narrow"), ("listing", "user"), ("no rm", "user"), ("deploys", "user"),
    ]  # fmt: skip
    assert shown["rules"][3]["approvals"] == 2 and shown["protected"]
    for wrong in ("here", "/a\0b"):
        assert (await serving.http().get("/api/policy", params={"cwd": wrong})).status_code == 400
        given = {"cwd": wrong, "command": "ls"}
        assert (await serving.http().post("/api/policy/test", json=given)).status_code == 400


async def test_a_broken_file_is_shown_as_trouble(serving: ServeProcess, workspace: Path) -> None:
    (workspace / ".dragoman").mkdir()
    (workspace / ".dragoman" / "config.toml").write_text("[[policy.rules")
    shown = (await serving.http().get("/api/policy", params={"cwd": str(workspace)})).json()
    assert "config.toml" in shown["trouble"]


async def test_a_line_is_decided_without_running_it(serving: ServeProcess, workspace: Path) -> None:
    async def decided(**given: Any) -> dict[str, Any]:
        answer = await serving.http().post("/api/policy/test", json={"cwd": str(workspace), **given})
        found: dict[str, Any] = answer.json()
        return found

    allowed = await decided(command="ls src")
    assert (allowed["decision"], allowed["rule"]) == ("allow", "listing")
    assert allowed["act"]["commands"][0]["words"] == ["ls", "src"]
    denied = await decided(command="rm -rf x")
    assert (denied["decision"], denied["reason"]) == ("deny", "Move it to the bin.")
    assert (await decided(command="kubectl get pods"))["approvals"] == 2
    assert "error" in await decided()


async def test_decisions_are_listed_and_explained(serving: ServeProcess, workspace: Path) -> None:
    socket = await serving.socket()
    await socket.initialize()
    session = await socket.new_session(workspace)
    no = {"outcome": {"outcome": "selected", "optionId": "no"}}
    socket.on("session/request_permission", no)
    for number, line in enumerate(("ls", "rm x", "date")):
        await socket.prompt(session, question(line, f"c{number}"))
    other = await socket.new_session(workspace)
    await socket.prompt(other, question("ls", "c9"))
    http = serving.http()
    page = (await http.get("/api/policy/decisions")).json()
    shown = [(one["title"], one["decision"], one.get("rule"), one.get("by")) for one in page["decisions"]]
    assert shown == [
        ("ls", "allow", "listing", None),
        ("date", "deny", None, "admin"),
        ("rm x", "deny", "no rm", None),
        ("ls", "allow", "listing", None),
    ]
    alone = (await http.get("/api/policy/decisions", params={"session": other})).json()["decisions"]
    assert [(one["session"], one["call"]) for one in alone] == [(other, "c9")]
    told = (await http.get(f"/api/sessions/{session}/calls/c2/explain")).json()
    assert [one["kind"] for one in told["records"]] == ["question", "decision"]
    assert told["records"][1]["identity"] == "admin" and told["now"]["decision"] == "ask"
    told = (await http.get(f"/api/sessions/{session}/calls/c1/explain")).json()
    assert told["records"][0]["by"] == "no rm" and told["records"][0]["act"]["commands"]
    assert (await http.get(f"/api/sessions/{session}/calls/none/explain")).status_code == 404
    assert (await http.get("/api/policy/decisions", params={"session": "dgm_x"})).status_code == 404


async def test_an_observer_may_look_and_not_try(serving: ServeProcess, home: Path) -> None:
    _, secret = TokenFile(home / "tokens.json").create("eye", "observe")
    http = serving.http()
    http.headers.update({"Authorization": f"Bearer {secret}"})
    assert (await http.get("/api/policy")).status_code == 200
    assert (await http.get("/api/policy/decisions")).status_code == 200
    assert (await http.post("/api/policy/test", json={"command": "ls"})).status_code == 403


async def test_decisions_are_paged_back_to_the_first(serve: Serve, home: Path) -> None:
    chain = Chain(home / "audit")
    for number in range(250):
        facts = {"session": "dgm_gone", "call": f"c{number}", "by": "a rule"}
        chain.append("decision", {**facts, "decision": "ask" if number % 5 == 0 else "allow"})
        chain.append("tool_begun", facts)
    chain.close()
    http, cursor, calls = (await serve()).http(), "", list[str]()
    while True:
        page = (await http.get("/api/policy/decisions", params={"cursor": cursor})).json()
        calls += [one["call"] for one in page["decisions"]]
        cursor = page.get("nextCursor", "")
        if not cursor:
            break
    assert calls == [f"c{number}" for number in reversed(range(250)) if number % 5]
    assert (await http.get("/api/policy/decisions", params={"cursor": "x"})).status_code == 400


async def test_without_an_audit_decisions_are_refused_with_what_to_do(serve: Serve) -> None:
    serving = await serve(audit={"enabled": False})
    refused = await serving.http().get("/api/policy/decisions")
    assert (refused.status_code, refused.json()["code"]) == (409, "no_audit")
    assert "dragoman policy explain" in refused.json()["error"]
