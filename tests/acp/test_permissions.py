"""Questions of the agent and the client's answers, in all the shapes that clients send."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.clients.sample_answers import ALLOW, CANCELLED, REJECT
from support.gateway_process import GatewayProcess
from support.rpc_peer import RpcFailure


async def outcome(client: GatewayProcess, workspace: Path, answer: Any) -> Any:
    """What the agent hears when the client answers `answer`."""
    client.on("session/request_permission", answer)
    turn = await client.prompt(await client.new_session(workspace), "permission")
    return turn.report("permission")


@pytest.mark.rule("G-062")
@pytest.mark.parametrize("answer", [ALLOW, REJECT, CANCELLED], ids=["allow", "reject", "cancelled"])
async def test_the_agent_gets_the_clients_answer(
    client: GatewayProcess, workspace: Path, answer: dict[str, Any]
) -> None:
    assert await outcome(client, workspace, answer) == {"result": answer}


@pytest.mark.rule("G-062", "G-043", "G-070", "G-002")
async def test_the_client_sees_the_question_as_it_was_asked(client: GatewayProcess, workspace: Path) -> None:
    question = {
        "toolCall": {
            "toolCallId": "s1",
            "title": "Edit",
            "kind": "edit",
            "rawInput": {"sessionId": "s1", "n": 2**60},
            "content": [{"type": "diff", "path": "/x", "oldText": None, "newText": "y"}],
            "future": None,
        },
        "options": [
            {"optionId": "s1", "name": "Yes", "kind": "allow_once", "_meta": {"k": [None]}},
            {"optionId": "a2", "name": "Yes!", "kind": "allow_always"},
            {"optionId": "a3", "name": "Yes!!", "kind": "allow_always"},
            {"optionId": "cancel", "name": "No", "kind": "reject_once"},
        ],
        "_meta": {"sessionId": "s1", "dragon": 1.0},
    }
    client.on("session/request_permission", {"outcome": {"outcome": "selected", "optionId": "a3"}})
    session = await client.new_session(workspace)
    turn = await client.prompt(session, "permission " + json.dumps(question))
    asked = await client.next_message("session/request_permission")
    assert asked["params"] == {"sessionId": session, **question}
    assert turn.report("permission")["result"]["outcome"]["optionId"] == "a3"


@pytest.mark.rule("G-002", "G-062")
async def test_meta_of_an_answer_reaches_the_agent(client: GatewayProcess, workspace: Path) -> None:
    answer = {
        "outcome": {"outcome": "selected", "optionId": "yes", "_meta": {"by": "me"}},
        "_meta": {"n": 2**60},
    }
    assert await outcome(client, workspace, answer) == {"result": answer}


@pytest.mark.rule("G-096")
async def test_a_question_answered_as_a_cancelled_request_is_a_cancelled_outcome(
    client: GatewayProcess, workspace: Path
) -> None:
    def refuse(params: Any) -> None:
        raise RpcFailure(-32800, "Request cancelled")

    assert await outcome(client, workspace, refuse) == {"result": CANCELLED}


@pytest.mark.rule("G-102")
@pytest.mark.parametrize("answer", [{"outcome": {"outcome": "timeout"}}, {"outcome": "timeout"}])
async def test_a_timeout_is_a_cancelled_outcome(
    client: GatewayProcess, workspace: Path, answer: dict[str, Any]
) -> None:
    assert await outcome(client, workspace, answer) == {"result": CANCELLED}


@pytest.mark.parametrize(
    "answer",
    [{"outcome": "selected", "optionId": "yes"}, {"outcome": "yes"}],
    ids=["flat", "named"],
)
async def test_older_shapes_of_an_approval_are_understood(
    client: GatewayProcess, workspace: Path, answer: dict[str, Any]
) -> None:
    assert await outcome(client, workspace, answer) == {"result": ALLOW}


@pytest.mark.rule("G-101")
@pytest.mark.parametrize(
    "answer",
    [
        {"outcome": {"outcome": "approved"}},
        {"outcome": "allow_everything"},
        {"outcome": {"outcome": "granted", "optionId": "yes"}},
        {"outcome": {"outcome": "selected", "optionId": "invented"}},
        {"outcome": {"outcome": "selected", "optionId": ["yes"]}},
        {"outcome": {"outcome": "selected"}},
        {},
        None,
        True,
    ],
    ids=str,
)
async def test_an_answer_that_makes_no_sense_is_never_an_approval(
    client: GatewayProcess, workspace: Path, answer: Any
) -> None:
    heard = await outcome(client, workspace, lambda params: answer)
    allowed = {"yes", "always"}
    chosen = (heard.get("result") or {}).get("outcome", {})
    assert chosen.get("outcome") == "cancelled" or chosen.get("optionId") not in allowed
    assert "error" in heard or chosen["outcome"] in ("cancelled", "selected")


@pytest.mark.rule("G-101")
async def test_an_error_of_the_client_is_no_approval(client: GatewayProcess, workspace: Path) -> None:
    error = {"code": -32050, "message": "cannot ask anybody", "data": {"n": 2**60}}

    def refuse(params: Any) -> None:
        raise RpcFailure.of(error)

    assert await outcome(client, workspace, refuse) in ({"error": error}, {"result": CANCELLED})


@pytest.mark.rule("G-062")
async def test_several_questions_of_one_session_can_be_answered_in_any_order(
    client: GatewayProcess, workspace: Path
) -> None:
    session = await client.new_session(workspace)
    turn = client.start_prompt(session, "permission-nowait\npermission")
    first = await client.next_message("session/request_permission")
    second = await client.next_message("session/request_permission")
    client.reply(second, REJECT)
    assert (await turn).report("permission") == {"result": REJECT}
    client.reply(first, ALLOW)
    assert (await client.prompt(session, "say on")).texts == ["on"]


@pytest.mark.rule("G-100")
async def test_a_workspace_narrows_the_policy_of_its_own_sessions(
    client: GatewayProcess, tmp_path: Path
) -> None:
    """Wherever the gateway was started: the rule lies in the folder of the session."""
    strict, free = tmp_path / "strict", tmp_path / "free"
    free.mkdir()
    (strict / ".dragoman").mkdir(parents=True)
    rule = '[[policy.rules]]\ndecision = "deny"\nkind = ["execute"]\n'
    (strict / ".dragoman" / "config.toml").write_text(rule)
    assert await outcome(client, free, ALLOW) == {"result": ALLOW}
    assert await outcome(client, strict, ALLOW) == {"result": REJECT}
