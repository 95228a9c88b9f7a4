"""What a running gateway records."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dragoman.audit.read import Query, query
from dragoman.audit.verify import verify
from support.agents.agent_log import AgentLog
from support.gateway_process import GatewayProcess, Start, agent, clean_environment


def recorded(home: Path, **asked: Any) -> list[dict[str, Any]]:
    return list(query(home / "audit", Query(**asked)))


async def opened(dragoman: Start, workspace: Path, **settings: Any) -> tuple[GatewayProcess, str]:
    gateway = await dragoman(**settings)
    await gateway.initialize()
    return gateway, await gateway.new_session(workspace)


async def test_a_turn_is_recorded_from_start_to_stop(dragoman: Start, workspace: Path, home: Path) -> None:
    gateway, session = await opened(dragoman, workspace)
    await gateway.prompt(session, "tool call-7")
    await gateway.stop()
    found = recorded(home)
    kinds = [each["kind"] for each in found]
    assert kinds == [
        "chain",
        "gateway_started",
        "session_begun",
        "tool_begun",
        "tool_ended",
        "gateway_stopped",
    ]
    begun, ended = (each for each in found if each["kind"].startswith("tool_"))
    assert (begun["session"], begun["call"], begun["agent"]) == (session, "call-7", "scripted")
    assert (ended["call"], ended["status"]) == ("call-7", "completed")
    report = verify(home / "audit")
    assert report.consistent and report.chains[0].signed == report.chains[0].last


async def test_a_call_that_its_turn_leaves_open_ends_with_the_turn(
    dragoman: Start, workspace: Path, home: Path
) -> None:
    gateway, session = await opened(dragoman, workspace)
    await gateway.prompt(session, "toolopen left\ntool two failed")
    await gateway.stop()
    calls = [(each["kind"], each["call"], each.get("status")) for each in recorded(home, session=session)[1:]]
    assert calls == [
        ("tool_begun", "left", None),
        ("tool_begun", "two", None),
        ("tool_ended", "two", "failed"),
        ("tool_ended", "left", "failed"),
    ]


async def test_what_is_replayed_is_not_recorded_again(dragoman: Start, workspace: Path, home: Path) -> None:
    gateway, session = await opened(dragoman, workspace)
    await gateway.prompt(session, "tool once")
    await gateway.stop()
    gateway = await dragoman()
    await gateway.initialize()
    variables = [{"name": "TOKEN", "value": "hushhush"}]
    server = {"name": "files", "command": "/bin/true", "args": ["--key=hushhush"], "env": variables}
    load = {"sessionId": session, "cwd": str(workspace), "mcpServers": [server]}
    await gateway.request("session/load", load)
    await gateway.stop()
    found = recorded(home, session=session)
    kinds = [each["kind"] for each in found]
    assert kinds == ["session_begun", "tool_begun", "tool_ended", "session_loaded"]
    assert "mcpServers" not in found[0]
    assert found[-1]["mcpServers"] == [{"name": "files", "at": "/bin/true"}]
    assert "hushhush" not in json.dumps(found)


async def test_records_outlive_their_session(dragoman: Start, workspace: Path, home: Path) -> None:
    gateway, session = await opened(dragoman, workspace)
    await gateway.prompt(session, "tool once")
    await gateway.request("session/delete", {"sessionId": session})
    await gateway.stop()
    assert [each["kind"] for each in recorded(home, session=session)][-1] == "session_deleted"


async def test_no_audit_without_it(dragoman: Start, workspace: Path, home: Path) -> None:
    gateway, session = await opened(dragoman, workspace, audit={"enabled": False})
    await gateway.prompt(session, "tool once")
    await gateway.stop()
    assert not (home / "audit").exists()


def answering(kind: str) -> Callable[[Any], Any]:
    def answer(params: Any) -> Any:
        chosen = [option["optionId"] for option in params["options"] if option["kind"] == kind]
        return {"outcome": {"outcome": "selected", "optionId": chosen[0]}}

    return answer


async def test_an_answer_is_recorded_with_who_gave_it(dragoman: Start, workspace: Path, home: Path) -> None:
    gateway, session = await opened(dragoman, workspace)
    gateway.on("session/request_permission", answering("allow_once"))
    await gateway.prompt(session, "permission")
    await gateway.stop()
    found = [each for each in recorded(home, session=session) if each["kind"] in ("decision", "answer")]
    asked, answered = found
    assert (asked["decision"], asked["by"], asked["call"]) == ("ask", "default", "call-1")
    assert asked["act"]["kind"] == "execute" and len(asked["policy"]) == 16
    assert (answered["by"], answered["identity"], answered["call"]) == ("user", "local", "call-1")
    assert answered["outcome"]["outcome"] == "selected"


async def test_a_decision_by_a_rule_is_recorded_with_the_rule(
    dragoman: Start, workspace: Path, home: Path
) -> None:
    rule = {"name": "none", "decision": "deny", "kind": ["execute"], "reason": "Not here."}
    gateway, session = await opened(dragoman, workspace, policy={"rules": [rule]})
    await gateway.prompt(session, "permission")
    await gateway.stop()
    (decided,) = recorded(home, session=session, kind="decision")
    assert (decided["decision"], decided["by"]) == ("deny", "none")
    assert decided["rule"]["reason"] == "Not here."


async def test_ids_and_states_of_an_agent_are_short_strings(
    dragoman: Start, workspace: Path, home: Path
) -> None:
    gateway = await dragoman(policy={"rules": [{"name": "no", "decision": "deny", "kind": ["execute"]}]})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    tool = {"toolCallId": {"deep": ["x" * 5000]}, "kind": "execute", "rawInput": {"command": "ls"}}
    await gateway.prompt(session, f"tool {'x' * 5000}\npermission {json.dumps({'toolCall': tool})}")
    await gateway.stop()
    assert {each["call"] for each in recorded(home, kind="tool_begun")} == {"x" * 1024}
    (decided,) = recorded(home, kind="decision", session=session)
    assert decided["call"] is None


async def test_a_call_that_reached_no_rules_says_so(dragoman: Start, workspace: Path, home: Path) -> None:
    gateway, session = await opened(dragoman, workspace)
    gateway.on("session/request_permission", answering("allow_once"))
    done = {"sessionUpdate": "tool_call_update", "toolCallId": "call-1", "status": "completed"}
    await gateway.prompt(session, f"tool free\ntool broken failed\npermission\nupdate {json.dumps(done)}")
    await gateway.stop()
    ended = {each["call"]: each.get("unmediated") for each in recorded(home, kind="tool_ended")}
    assert ended == {"free": True, "broken": True, "call-1": None}
    slipped = [(each["call"], each["title"], each["toolKind"]) for each in recorded(home, unmediated=True)]
    assert slipped == [("free", "Tool free", "execute"), ("broken", "Tool broken", "execute")]


async def test_a_question_of_the_gateway_itself_begins_and_ends(
    dragoman: Start, workspace: Path, home: Path
) -> None:
    rule = {"name": "see", "decision": "ask", "access": "write"}
    gateway = await dragoman(policy={"rules": [rule]})
    await gateway.initialize(clientCapabilities={"fs": {"readTextFile": True, "writeTextFile": True}})
    gateway.on("session/request_permission", answering("allow_once"))
    gateway.on("fs/write_text_file", {})
    session = await gateway.new_session(workspace)
    write = json.dumps({"sessionId": "{sid}", "path": f"{workspace}/a", "content": "x"})
    await gateway.prompt(session, f"request fs/write_text_file {write}")
    await gateway.stop()
    found = [(each["kind"], each.get("call")) for each in recorded(home, session=session)[1:]]
    call = found[0][1]
    assert found == [("tool_begun", call), ("decision", call), ("answer", call), ("tool_ended", call)]


async def test_what_follows_from_an_answer_is_recorded_with_it(
    dragoman: Start, workspace: Path, home: Path
) -> None:
    rule = {"name": "see", "decision": "ask", "access": "write"}
    gateway = await dragoman(policy={"rules": [rule]})
    await gateway.initialize(clientCapabilities={"fs": {"readTextFile": True, "writeTextFile": True}})
    gateway.on("session/request_permission", answering("allow_once"))
    gateway.on("fs/write_text_file", {})
    session = await gateway.new_session(workspace)
    path = f"{workspace}/a"
    tool = {"toolCallId": "w", "kind": "edit", "title": "Write a", "locations": [{"path": path}]}
    asked = json.dumps({"toolCall": {**tool, "rawInput": {"file_path": path, "content": "x"}}})
    write = json.dumps({"sessionId": "{sid}", "path": path, "content": "x"})
    await gateway.prompt(session, f"ask {asked}\nrequest fs/write_text_file {write}")
    await gateway.stop()
    first, second = recorded(home, session=session, kind="decision")
    assert (first["decision"], second["decision"], second["by"]) == ("ask", "allow", "see")
    assert second["why"] == "a person allowed the same in this turn"


async def test_a_question_of_no_turn_is_answered_and_recorded(
    dragoman: Start, workspace: Path, home: Path, heard: AgentLog
) -> None:
    gateway, session = await opened(dragoman, workspace, agents={"scripted": agent(*heard.flags)})
    await gateway.prompt(session, "permission-nowait\nend-turn")
    await gateway.stop()
    (answer,) = recorded(home, session=session, kind="answer")
    assert (answer["call"], answer["outcome"]) == ("call-1", {"outcome": "cancelled"})


async def test_a_call_that_a_killed_gateway_left_open_is_ended_by_the_next(
    dragoman: Start, workspace: Path, home: Path
) -> None:
    gateway, session = await opened(dragoman, workspace)
    gateway.start_prompt(session, "toolopen left\nsleep-until-cancel")
    await gateway.next_message(lambda m: "left" in str(m.get("params", {}).get("update")))
    await gateway.kill()
    gateway.end_agents()
    gateway = await dragoman()
    await gateway.initialize()
    await gateway.request("session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []})
    await gateway.stop()
    (ended,) = recorded(home, session=session, kind="tool_ended")
    assert (ended["call"], ended["status"], ended["reason"]) == ("left", "failed", "restart")
    assert verify(home / "audit").consistent


async def test_a_session_that_is_removed_for_its_age_leaves_a_record(
    dragoman: Start, workspace: Path, home: Path
) -> None:
    gateway, session = await opened(dragoman, workspace)
    await gateway.prompt(session, "say before")
    await gateway.stop()
    gateway = await dragoman(sessions={"expire_after": 30, "retain_days": 1e-9})
    await gateway.initialize()
    await gateway.logged("session removed by sessions.retain_days")
    await gateway.stop()
    (deleted,) = recorded(home, session=session, kind="session_deleted")
    assert (deleted["agent"], deleted["by"]) == ("scripted", "sessions.retain_days")


async def test_an_export_on_the_command_line(dragoman: Start, workspace: Path, home: Path) -> None:
    gateway, session = await opened(dragoman, workspace)
    await gateway.prompt(session, "say before")
    await gateway.stop()
    command = [sys.executable, "-m", "dragoman", "sessions", "export", session[:14]]
    environment = {**clean_environment(), "DRAGOMAN_HOME": str(home)}
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60)
    (exported,) = recorded(home, session=session, kind="session_exported")
    assert (exported["agent"], exported["to"], exported["by"]) == ("scripted", "-", "local")


async def test_a_call_with_the_id_of_an_earlier_one_does_not_pass_for_it(
    dragoman: Start, workspace: Path, home: Path
) -> None:
    allow = {"name": "run", "decision": "allow", "kind": ["execute"]}
    gateway, session = await opened(dragoman, workspace, policy={"rules": [allow]})
    begun = {"sessionUpdate": "tool_call", "toolCallId": "c1", "title": "Run", "kind": "execute"}
    ended = {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed"}
    call = [f"update {json.dumps(begun)}", f"update {json.dumps(ended)}", f"update {json.dumps(ended)}"]
    asked = f"permission {json.dumps({'toolCall': {'toolCallId': 'c1', 'kind': 'execute'}})}"
    await gateway.prompt(session, "\n".join([asked, *call, *call]))
    await gateway.stop()
    ends = [each.get("unmediated") for each in recorded(home, kind="tool_ended")]
    assert ends == [None, True]
