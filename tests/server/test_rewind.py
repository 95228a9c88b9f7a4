"""Rewind and resend, by REST."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.rpc_peer import PATIENCE
from support.serve_process import ServeProcess

from .conftest import Serve


@pytest.fixture
async def serving(serve: Serve) -> ServeProcess:
    return await serve(checkpoints={"patience": PATIENCE})


async def test_a_conversation_goes_back_and_a_message_is_sent_again(
    serving: ServeProcess, workspace: Path
) -> None:
    client = serving.http()
    place = (await client.post("/api/sessions", json={"cwd": str(workspace)})).headers["location"]
    for script in ("say fig", f"sh echo 1 > {workspace}/a"):
        assert (await client.post(f"{place}/prompt", json={"prompt": script})).status_code == 200
    listed = (await client.get(f"{place}/messages")).json()["messages"]
    assert [(one["number"], one["text"][:7]) for one in listed] == [(1, "say fig"), (2, "sh echo")]
    done = await client.post(f"{place}/rewind", json={"to": 2, "what": "both"})
    assert (done.status_code, done.json()["undone"], done.json()["restored"]["files"]) == (200, 1, ["a"])
    assert not (workspace / "a").exists()
    exported = (await client.get(f"{place}/export?format=md")).text
    assert "sh echo" not in exported and "was undone" in exported
    again = (await client.post(f"{place}/resend", json={"prompt": "say plum"})).json()
    assert (again["stopReason"], again["text"].split()[-1]) == ("end_turn", "plum")
    again = (await client.post(f"{place}/resend", json={})).json()
    assert again["text"].split()[-1] == "plum"
    listed = (await client.get(f"{place}/messages")).json()["messages"]
    assert [one["number"] for one in listed if not one.get("undone")] == [4]
    made = await client.post(f"{place}/fork", json={"at": 4, "name": "another way"})
    assert (made.status_code, made.json()["title"]) == (201, "another way"), made.text
    assert made.headers["location"] != place
    assert (await client.get(f"{made.headers['location']}/messages")).json()["messages"] == []
    assert (await client.post(f"{place}/fork", json={"at": 77})).status_code == 404
    for body, status, code in (
        ({"to": 9}, 404, "unknown_message"),
        ({"to": 1}, 404, "unknown_message"),
        ({}, 400, "params"),
        ({"to": 4, "nope": 1}, 400, "bad_request"),
    ):
        refused = await client.post(f"{place}/rewind", json=body)
        assert (refused.status_code, refused.json().get("code")) == (status, code), refused.text
    assert (await client.post("/api/sessions/dgm_none/rewind", json={"undo": True})).status_code == 404


async def test_a_stored_session_is_rewound_without_its_agent(serving: ServeProcess, workspace: Path) -> None:
    client = serving.http()
    place = (await client.post("/api/sessions", json={"cwd": str(workspace)})).headers["location"]
    await client.post(f"{place}/prompt", json={"prompt": "say fig"})
    await client.post(f"{place}/close")
    done = await client.post(f"{place}/rewind", json={"retry": True})
    assert (done.status_code, done.json().get("agent")) == (200, None), done.text
    assert done.json()["prompt"] == [{"type": "text", "text": "say fig"}]
    back = await client.post(f"{place}/rewind", json={"undo": True})
    assert (back.status_code, back.json()["undone"]) == (200, 1)
