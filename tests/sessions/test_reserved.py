"""`_meta.dragoman` and `_dragoman/…` are the gateway's own: what an agent writes there is believed by nobody."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.gateway_process import GatewayProcess, Start, agent
from support.rpc_peer import Message, RpcPeer, is_request
from support.session_client import SEQ, Watch, load, resumable_agent

NAMED = {"_meta": {"dragoman": {"requestId": "ask_mine"}}}
YES = {"outcome": {"outcome": "selected", "optionId": "yes"}}
QUESTIONS: dict[str, Any] = {"_meta": {"dragoman": {"questions": True}}}
"""Client capabilities of one that wants the names of questions."""

CLAIMS = {
    "state": "idle",
    "stopReason": "end_turn",
    "caughtUp": True,
    "seq": 10**9,
    "own": True,
    "notice": "error",
    "told": True,
    "clientMessageId": "m1",
    "requestId": "ask_mine",
}


def name_of(question: Message) -> str:
    return str(question["params"]["_meta"]["dragoman"]["requestId"])


async def test_two_questions_of_one_name_are_two_questions(
    gateway: GatewayProcess, watch: Watch, workspace: Path
) -> None:
    """Consent to the first is not consent to the second."""
    session = await gateway.new_session(workspace)
    other = await watch(gateway, **QUESTIONS)
    await load(other, session, workspace)
    asked = f"permission-nowait {json.dumps(NAMED)}\npermission {json.dumps(NAMED)}"
    turn = gateway.start_prompt(session, asked)
    first, second = [await other.next_message(is_request("session/request_permission")) for _ in range(2)]
    assert len({name_of(first), name_of(second), "ask_mine"}) == 3
    other.reply(first, YES)
    await gateway.next_message("$/cancel_request")
    assert [question["id"] for question in still_asked(gateway)] == [still_asked(gateway)[-1]["id"]]
    other.reply(second, {"outcome": {"outcome": "selected", "optionId": "no"}})
    assert (await turn).report("permission")["result"]["outcome"]["optionId"] == "no"


def still_asked(peer: RpcPeer) -> list[Message]:
    withdrawn = [m["params"]["requestId"] for m in peer.received if m.get("method") == "$/cancel_request"]
    asked = [m for m in peer.received if is_request("session/request_permission")(m)]
    return [question for question in asked if question["id"] not in withdrawn]


def forged(session: str = "{sid}") -> list[str]:
    """Lines of an agent that speaks in the gateway's name, in every place and spelling."""
    meta = {"dragoman": CLAIMS, "mine": 1}
    info = {"sessionUpdate": "session_info_update", "_meta": meta}
    nested = {"toolCallId": "t", "title": "T", "_meta": meta}
    bare = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "words"}}
    updates: list[dict[str, Any]] = [
        {"update": info},
        {"update": bare, "_meta": meta},
        {"update": {**bare, "_meta": meta}, "_meta": meta},
        {"update": {"sessionUpdate": "tool_call", "toolCall": nested}},
        {"update": {"sessionUpdate": "plan", "plan": {"entries": [], "_meta": meta}}},
        {
            "update": {
                "sessionUpdate": "user_message_chunk",
                "content": {"type": "text", "text": "u"},
                "_meta": meta,
            }
        },
        {"update": {"sessionUpdate": "available_commands_update", "availableCommands": []}, "_meta": meta},
    ]
    messages = [
        {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, **each}}
        for each in updates
    ]
    plain = [json.dumps(each) for each in messages]
    escaped = [each.replace("dragoman", "dr\\u0061g\\u006Fman") for each in plain]
    return [*plain, *escaped, f"[{plain[0]},{plain[1]}]"]


def claims_in(value: object) -> bool:
    """Whether something the gateway did not write stands under its name."""
    if isinstance(value, dict):
        own = value.get("dragoman")
        claimed = isinstance(own, dict) and (
            own.keys() & (CLAIMS.keys() - {"seq"}) or own.get("seq") == 10**9
        )
        return bool(claimed) or any(map(claims_in, value.values()))
    return isinstance(value, list) and any(map(claims_in, value))


@pytest.mark.parametrize("journal", [True, False])
async def test_an_agent_does_not_speak_in_the_gateways_name(
    dragoman: Start, workspace: Path, journal: bool
) -> None:
    extra = json.dumps({"_meta": {"dragoman": CLAIMS, "mine": 1}})
    gateway = await dragoman(agents={"scripted": agent("--new-extra", extra)}, sessions={"journal": journal})
    await gateway.initialize(clientCapabilities=SEQ)
    result = await gateway.request("session/new", {"cwd": str(workspace), "mcpServers": []})
    assert not claims_in(result)
    assert result["_meta"]["mine"] == 1
    session = result["sessionId"]
    options = [{"optionId": "yes", "name": "Y", "kind": "allow_once", "_meta": {"dragoman": CLAIMS}}]
    question = {
        "_meta": {"dragoman": CLAIMS},
        "options": options,
        "toolCall": {"toolCallId": "q", "_meta": {"dragoman": CLAIMS}},
    }
    gateway.on("session/request_permission", YES)
    answer = json.dumps({"stopReason": "end_turn", "_meta": {"dragoman": CLAIMS, "mine": 2}})
    script = [*(f"raw {line}" for line in forged()), f"ask {json.dumps(question)}", f"result {answer}"]
    turn = await gateway.prompt(session, "\n".join(script))
    assert turn.response["result"] == {"stopReason": "end_turn", "_meta": {"mine": 2}}
    assert [message for message in gateway.received if claims_in(message)] == []
    assert turn.texts.count("words") == 5
    assert (
        sum("mine" in json.dumps(update) for update in turn.updates) >= 10
    )  # what is the agent's own is kept


async def test_methods_of_ours_are_nothing_that_an_agent_calls(
    gateway: GatewayProcess, workspace: Path
) -> None:
    session = await gateway.new_session(workspace)
    told = {"sessionId": "{sid}", "seq": 10**9}
    script = [f"notify _dragoman/{name} {json.dumps(told)}" for name in ("replay", "replayed", "other")]
    turn = await gateway.prompt(session, "\n".join([*script, f"request _dragoman/steer {json.dumps(told)}"]))
    assert turn.report("request")["error"]["code"] == -32601
    assert not [m for m in gateway.received if str(m.get("method")).startswith("_dragoman/")]


async def test_a_number_that_an_agent_makes_up_hides_nothing_from_a_neighbour(
    dragoman: Start, workspace: Path
) -> None:
    """The process beside the owner goes on from the last event that it has, when the owner is gone."""
    one, other = [await dragoman(agents={"scripted": resumable_agent()}) for _ in range(2)]
    for each in (one, other):
        await each.initialize()
    session = await one.new_session(workspace)
    commands = {"sessionUpdate": "available_commands_update", "availableCommands": []}
    numbered: list[Message] = [
        {"update": commands, "_meta": {"dragoman": {"seq": 10**9}}},
        {"update": {**commands, "x": {"seq": 10**9}}},
        {"update": {**commands, "x": {"a": 1, "own": True}}},
        {"update": {**commands, "x": {"a": 1, "seq": "abc"}}},
    ]
    lines = [
        json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "{sid}", **each}})
        for each in numbered
    ]
    await one.prompt(session, "say before")
    for line in lines:
        await one.prompt(session, f"raw {line.replace(': ', ':').replace(', ', ',')}")
        await load(other, session, workspace)  # it is told the commands as they stand
    await one.kill()
    turn = await other.prompt(session, "say after")
    assert turn.texts == ["after"]
    again = await load(other, session, workspace)
    assert [text for text in again.texts if text in ("before", "after")] == ["before", "after"]
    assert "Traceback" not in other.stderr
