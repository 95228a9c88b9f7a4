"""Several messages in one array."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.gateway_process import GatewayProcess, Start


def call(id: Any, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": "_echo", "params": params}


async def batch_answer(client: GatewayProcess) -> list[dict[str, Any]]:
    return list((await client.next_message(lambda message: "batch" in message))["batch"])


@pytest.mark.rule("G-018")
async def test_an_empty_batch_is_one_invalid_request(client: GatewayProcess) -> None:
    client.send([])
    assert (await client.response(None))["error"]["code"] == -32600
    assert await client.request("_echo", {"on": 1}) == {"on": 1}


@pytest.mark.rule("G-018", "G-011")
async def test_a_batch_is_answered_in_one_array(client: GatewayProcess) -> None:
    client.send([call(1, a=1), call("1", a=2), {"jsonrpc": "2.0", "method": "_note"}])
    answers = await batch_answer(client)
    assert sorted((repr(m["id"]), m["result"]["a"]) for m in answers) == [("'1'", 2), ("1", 1)]


@pytest.mark.rule("G-018", "G-015")
async def test_a_batch_of_notifications_is_not_answered(client: GatewayProcess) -> None:
    known = len(client.received)
    client.send([{"jsonrpc": "2.0", "method": "_note"}, {"jsonrpc": "2.0", "method": "_note"}])
    assert await client.request("_echo", {"on": 1}) == {"on": 1}
    assert len(client.received) == known + 1


@pytest.mark.rule("G-018")
async def test_each_invalid_entry_of_a_batch_is_refused_by_itself(client: GatewayProcess) -> None:
    client.send([1, "x", call("ok", a=1), []])
    answers = await batch_answer(client)
    refused = [m for m in answers if "error" in m]
    assert [(m["id"], m["error"]["code"]) for m in refused] == [(None, -32600)] * 3
    assert [m["id"] for m in answers if "result" in m] == ["ok"]


@pytest.mark.rule("G-018")
async def test_a_batch_that_waits_for_a_turn_blocks_nothing(client: GatewayProcess, workspace: Path) -> None:
    session = await client.new_session(workspace)
    prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "sleep-until-cancel"}]}
    client.send([call("quick"), {"jsonrpc": "2.0", "id": "p", "method": "session/prompt", "params": prompt}])
    await client.text(session, "sleeping")
    client.cancel(session)
    assert {m["id"] for m in await batch_answer(client)} == {"quick", "p"}


@pytest.mark.rule("G-018")
async def test_batches_can_be_rejected_by_a_setting(dragoman: Start) -> None:
    gateway = await dragoman(protocol={"batches": "reject"})
    await gateway.initialize()
    gateway.send([call(1)])
    assert (await gateway.response(None))["error"]["code"] == -32600
    assert await gateway.request("_echo", {"on": 1}) == {"on": 1}


@pytest.mark.rule("G-018")
async def test_an_agent_never_sees_a_batch(client: GatewayProcess) -> None:
    """The scripted agent dies of one, as real agents do."""
    client.send([call(number) for number in range(10)])
    assert len(await batch_answer(client)) == 10
    assert await client.request("_echo", {"on": 1}) == {"on": 1}
