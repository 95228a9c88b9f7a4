"""One Dragoman behind another: a whole conversation through both, over WebSocket and over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.rpc_peer import is_request, is_update

from .conftest import Behind, Front

pytestmark = pytest.mark.rule("G-130")


async def test_a_whole_conversation(behind: Behind, front: Front, workspace: Path, scheme: str) -> None:
    far = await behind()
    client = await front(f"{scheme}://127.0.0.1:{far.port}/acp")
    client.on("fs/read_text_file", lambda params: {"content": f"content of {params['path']}"})
    await client.initialize(clientCapabilities={"fs": {"readTextFile": True, "writeTextFile": False}})
    session = await client.new_session(workspace)
    turn = client.start_prompt(session, f"say one\npermission\nfsread {workspace}/a\nsay two")
    question = await client.next_message(is_request("session/request_permission"))
    assert question["params"]["sessionId"] == session
    option = question["params"]["options"][0]["optionId"]
    client.reply(question, {"outcome": {"outcome": "selected", "optionId": option}})
    done = await turn
    assert (done.stop_reason, done.texts[0], done.texts[-1]) == ("end_turn", "one", "two")
    assert done.report("permission") == {"result": {"outcome": {"outcome": "selected", "optionId": option}}}
    assert done.report("fsread") == {"result": {"content": f"content of {workspace}/a"}}

    sleeping = client.start_prompt(session, "say waiting\nsleep-until-cancel")
    await client.text(session, "waiting")
    client.cancel(session)
    assert (await sleeping).stop_reason == "cancelled"

    [there] = (await far.http().get("/api/sessions")).json()["sessions"]
    assert there["id"].startswith("dgm_") and there["id"] != session
    before = len(client.received)
    await client.request("session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []})
    replayed = [m["params"]["update"] for m in client.received[before:] if is_update(session)(m)]
    said = [update["content"]["text"] for update in replayed if "chunk" in update["sessionUpdate"]]
    assert said[1] == "one" and "waiting" in said
    assert not any(there["id"] in str(message) for message in client.received), "ids stay on their hop"
    assert not any('"seq"' in str(message) for message in client.received)


async def test_ten_thousand_updates_arrive_in_order(
    behind: Behind, front: Front, workspace: Path, scheme: str
) -> None:
    far = await behind()
    client = await front(f"{scheme}://127.0.0.1:{far.port}/acp/scripted")
    await client.initialize()
    session = await client.new_session(workspace)
    turn = await client.prompt(session, "flood 10000 120")
    assert [int(text.split()[0]) for text in turn.texts] == list(range(10000))


async def test_a_session_of_the_one_behind_can_be_loaded_in_front(
    behind: Behind, front: Front, workspace: Path, scheme: str
) -> None:
    far = await behind()
    there = await far.socket()
    await there.initialize()
    await there.prompt(await there.new_session(workspace), "say from behind")
    client = await front(f"{scheme}://127.0.0.1:{far.port}/acp")
    await client.initialize()
    [listed] = (await client.request("session/list", {}))["sessions"]
    await client.request("session/load", {"sessionId": listed["sessionId"], "cwd": str(workspace)})
    await client.text(listed["sessionId"], "from behind")
    assert (await client.prompt(listed["sessionId"], "say more")).texts == ["more"]
