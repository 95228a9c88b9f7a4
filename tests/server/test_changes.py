"""Changes of a session and the way back, by REST."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.commits.repository import Repository
from support.rpc_peer import PATIENCE
from support.serve_process import ServeProcess

from .conftest import Serve


@pytest.fixture
async def serving(serve: Serve) -> ServeProcess:
    """A server whose prompts wait for their checkpoints, however busy the machine is."""
    return await serve(checkpoints={"patience": PATIENCE})


async def worked(serving: ServeProcess, workspace: Path) -> str:
    """A session with one turn; returns its address."""
    client = serving.http()
    place = (await client.post("/api/sessions", json={"cwd": str(workspace)})).headers["location"]
    script = f"sh echo 1 > {workspace}/a; mkdir {workspace}/d; echo 2 > {workspace}/d/b"
    assert (await client.post(f"{place}/prompt", json={"prompt": script})).status_code == 200
    return str(place)


async def test_changes_come_as_json_and_as_a_patch(serving: ServeProcess, workspace: Path) -> None:
    place = await worked(serving, workspace)
    client = serving.http()
    told = (await client.get(f"{place}/changes")).json()
    assert [(each["path"], each["status"], each["added"]) for each in told["files"]] == [
        ("a", "added", 1),
        ("d/b", "added", 1),
    ]
    assert told["files"][0]["hunks"][0]["text"] == "@@ -0,0 +1 @@\n+1"
    patch = await client.get(f"{place}/changes.patch?turn=1")
    assert patch.headers["content-type"].startswith("text/x-diff")
    assert patch.text.startswith("diff --git a/a b/a\nnew file mode 100644\n")
    points = (await client.get(f"{place}/checkpoints")).json()["checkpoints"]
    assert [each["kind"] for each in points] == ["begin", "end"]


async def test_what_is_not_committed_comes_as_json_and_as_a_patch(
    serving: ServeProcess, workspace: Path, tmp_path: Path
) -> None:
    repository = Repository(workspace, tmp_path)
    client = serving.http()
    place = (await client.post("/api/sessions", json={"cwd": str(workspace)})).headers["location"]
    refused = await client.get(f"{place}/uncommitted")
    assert (refused.status_code, refused.json()["code"]) == (400, "no_repository")
    repository.git("init", "-q", "-b", "main")
    repository.write("by hand", "1\n")
    told = (await client.get(f"{place}/uncommitted")).json()
    assert (told["branch"], [each["path"] for each in told["files"]]) == ("main", ["by hand"])
    patch = await client.get(f"{place}/uncommitted.patch")
    assert patch.content == repository.plain_diff()


async def test_files_are_restored_and_brought_back(serving: ServeProcess, workspace: Path) -> None:
    place = await worked(serving, workspace)
    client = serving.http()
    done = await client.post(f"{place}/restore", json={"turn": 1, "file": "a"})
    assert (done.status_code, done.json()["files"]) == (200, ["a"])
    assert not (workspace / "a").exists()
    done = await client.post(f"{place}/restore", json={"undo": True})
    assert (done.status_code, (workspace / "a").read_text()) == (200, "1\n")


async def test_a_closed_session_is_restored_without_its_agent(serving: ServeProcess, workspace: Path) -> None:
    place = await worked(serving, workspace)
    client = serving.http()
    await client.post(f"{place}/close")
    done = await client.post(f"{place}/restore", json={"to": 1})
    assert (done.status_code, done.json()["files"]) == (200, ["a", "d/b"]), done.text
    assert list(workspace.iterdir()) == []
    assert (await client.get(place)).json()["state"] != "working"


async def test_refusals_have_a_status_and_a_code(serving: ServeProcess, workspace: Path) -> None:
    place = await worked(serving, workspace)
    client = serving.http()
    (workspace / "hand").write_text("1")
    for answer, status, code in (
        (await client.get(f"{place}/changes?turn=9"), 404, "no_turn"),
        (await client.get(f"{place}/changes?turn=x"), 400, None),
        (await client.get("/api/sessions/dgm_none/changes"), 404, "unknown_session"),
        (await client.post(f"{place}/restore", json={"to": 1}), 409, "shared_changes"),
        (await client.post(f"{place}/restore", json={"undo": True}), 409, "nothing_to_undo"),
        (await client.post(f"{place}/restore", json={"file": "z"}), 404, "no_change"),
        (await client.post(f"{place}/restore", json={"nope": 1}), 400, None),
    ):
        assert answer.status_code == status, answer.text
        if code is not None:
            assert answer.json()["code"] == code


async def test_a_running_turn_shows_what_it_did_so_far(
    serving: ServeProcess, workspace: Path, tmp_path: Path
) -> None:
    client = serving.http()
    place = (await client.post("/api/sessions", json={"cwd": str(workspace)})).headers["location"]
    script = f"sh echo 1 > {workspace}/a\ntouch {tmp_path}/there\nwait-file {tmp_path}/go"
    turn = asyncio.create_task(client.post(f"{place}/prompt", json={"prompt": script}))
    async with asyncio.timeout(20):
        while not (tmp_path / "there").exists():
            await asyncio.sleep(0.01)  # another process's file raises no event here
    told = (await client.get(f"{place}/changes")).json()
    assert (told["running"], [each["path"] for each in told["files"]]) == (True, ["a"])
    refused = await client.post(f"{place}/restore", json={"to": 1})
    assert (refused.status_code, refused.json()["code"]) == (409, "prompt_in_flight")
    (tmp_path / "go").touch()
    assert (await turn).status_code == 200
