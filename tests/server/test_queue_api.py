"""The prompts that wait in a session, by REST."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.rpc_peer import PATIENCE
from support.serve_process import ServeProcess

from .conftest import Serve


@pytest.fixture
async def serving(serve: Serve) -> ServeProcess:
    return await serve(sessions={"queue": 5})


async def test_waiting_prompts_are_listed_edited_and_withdrawn(
    serving: ServeProcess, workspace: Path, tmp_path: Path
) -> None:
    client, socket = serving.http(), await serving.socket()
    await socket.initialize()
    session = await socket.new_session(workspace)
    place, go = f"/api/sessions/{session}", tmp_path / "go"
    running = socket.start_prompt(session, f"say here\nwait-file {go}")
    await socket.text(session, "here")
    one, two = (socket.start_prompt(session, f"say {word}") for word in ("one", "two"))
    await socket.request("_dragoman/queue", {"sessionId": session})
    waiting = (await client.get(f"{place}/queue")).json()["queue"]
    assert [each["prompt"][0]["text"] for each in waiting] == ["say one", "say two"]
    assert {(each["promptedBy"], each["own"]) for each in waiting} == {("admin", False)}
    edited = await client.patch(f"{place}/queue/{waiting[0]['id']}", json={"prompt": "say changed"})
    assert edited.status_code == 204
    assert (await client.delete(f"{place}/queue/{waiting[1]['id']}")).status_code == 204
    assert (await two).stop_reason == "cancelled"
    gone = await client.delete(f"{place}/queue/{waiting[1]['id']}")
    assert (gone.status_code, gone.json()["code"]) == (404, "not_queued")
    go.touch()
    await running
    assert (await one).texts[-1] == "changed"
    assert (await client.get(f"{place}/queue")).json() == {"queue": []}
    await client.post(f"{place}/close")
    assert (await client.get(f"{place}/queue")).json() == {"queue": []}
    assert (await client.delete(f"{place}/queue/x")).status_code == 404
    assert (await client.get("/api/sessions/nothing/queue")).status_code == 404


async def test_a_prompt_that_waited_is_answered_with_the_text_of_its_own_turn(
    serving: ServeProcess, workspace: Path, tmp_path: Path
) -> None:
    client, socket = serving.http(), await serving.socket()
    await socket.initialize()
    session = await socket.new_session(workspace)
    place, go = f"/api/sessions/{session}", tmp_path / "go"
    running = socket.start_prompt(session, f"say here\nwait-file {go}\nsay not mine")
    await socket.text(session, "here")
    waits = asyncio.create_task(client.post(f"{place}/prompt", json={"prompt": "say mine"}))
    while not (await client.get(f"{place}/queue")).json()["queue"]:
        pass
    go.touch()
    await running
    assert (await waits).json() == {"stopReason": "end_turn", "text": "mine", "truncated": False}


@pytest.mark.parametrize("how", ["rest", "inline"])
async def test_a_prompt_whose_token_is_revoked_while_it_waits_is_not_sent(
    serving: ServeProcess, workspace: Path, tmp_path: Path, how: str
) -> None:
    admin, socket = serving.http(), await serving.socket()
    await socket.initialize()
    session = await socket.new_session(workspace)
    place, go, sent = f"/api/sessions/{session}", tmp_path / "go", tmp_path / "sent"
    running = socket.start_prompt(session, f"say here\nwait-file {go}")
    await socket.text(session, "here")
    made = (await admin.post("/api/tokens", json={"name": "kim", "role": "control"})).json()
    kim = serving.http(token=False, headers={"Authorization": f"Bearer {made['secret']}"})
    words = f"sh touch {sent}"
    if how == "rest":
        request = kim.post(f"{place}/prompt", json={"prompt": words})
    else:
        params = {"sessionId": session, "prompt": [{"type": "text", "text": words}]}
        asked = {"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": params}
        request = kim.post("/acp/inline", json=asked)
    waits = asyncio.create_task(request)
    while not (await admin.get(f"{place}/queue")).json()["queue"]:
        pass
    assert (await admin.delete("/api/tokens/kim")).is_success
    go.touch()
    await running
    await socket.prompt(session, "say after")
    assert "not valid any more" in (await waits).text
    assert not sent.exists()


@pytest.mark.parametrize("leaving", ["keep", "cancel"])
async def test_a_waiting_prompt_of_a_client_that_left_is_sent_if_sessions_are_kept(
    serve: Serve, workspace: Path, tmp_path: Path, leaving: str
) -> None:
    serving = await serve(sessions={"queue": 5, "on_disconnect": leaving})
    stays, leaves = await serving.socket(), await serving.socket()
    for socket in (stays, leaves):
        await socket.initialize()
    session = await stays.new_session(workspace)
    await leaves.request("session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []})
    go, sent = tmp_path / "go", tmp_path / "sent"
    running = stays.start_prompt(session, f"say here\nwait-file {go}")
    await stays.text(session, "here")
    leaves.start_prompt(session, f"sh touch {sent}")
    await leaves.request("_dragoman/queue", {"sessionId": session})
    await leaves.close()
    client = serving.http()
    async with asyncio.timeout(PATIENCE):
        while (await client.get(f"/api/sessions/{session}")).json()["clients"] > 1:
            pass
    queue = (await stays.request("_dragoman/queue", {"sessionId": session}))["queue"]
    assert len(queue) == (leaving == "keep")
    go.touch()
    await running
    await stays.prompt(session, "say after")
    assert sent.exists() == (leaving == "keep")
