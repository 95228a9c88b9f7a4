"""What a running gateway records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dragoman.audit.read import Query, query
from dragoman.audit.verify import verify
from support.gateway_process import GatewayProcess, Start


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
    await gateway.request("session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []})
    await gateway.stop()
    kinds = [each["kind"] for each in recorded(home, session=session)]
    assert kinds == ["session_begun", "tool_begun", "tool_ended", "session_loaded"]


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
