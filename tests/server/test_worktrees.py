"""Worktrees of sessions, by REST."""

from __future__ import annotations

import subprocess
from pathlib import Path

from dragoman.audit.read import Query, query

from .conftest import Serve


def git(folder: Path, *words: str) -> str:
    own = ("-c", "user.name=Me", "-c", "user.email=me@example.org")
    return subprocess.run(
        ["git", *own, *words], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()


async def test_a_session_in_a_worktree_is_merged_and_another_discarded(
    serve: Serve, workspace: Path, home: Path
) -> None:
    git(workspace, "init", "-q", "-b", "main")
    (workspace / "a").write_text("1\n")
    git(workspace, "add", ".")
    git(workspace, "commit", "-qm", "first")
    serving = await serve()
    client = serving.http()
    for name in ("one", "two"):
        body = {"cwd": str(workspace), "worktree": {"name": name}}
        made = await client.post("/api/sessions", json=body)
        assert made.status_code == 201, made.text
        assert Path(made.json()["cwd"]).name == name
        done = await client.post(
            f"{made.headers['location']}/prompt", json={"prompt": f"sh echo new > {name}"}
        )
        assert done.status_code == 200
    assert not (workspace / "one").exists()
    found = (await client.get("/api/worktrees")).json()["worktrees"]
    assert [(each["name"], each["uncommitted"]) for each in found] == [("one", 1), ("two", 1)]
    again = await client.post("/api/sessions", json=body)
    assert (again.status_code, again.json()["code"]) == (409, "name_taken")
    bad = await client.post("/api/sessions", json={"cwd": str(workspace), "worktree": {"name": "../x"}})
    assert (bad.status_code, bad.json()["code"]) == (400, "bad_name")
    refused = await client.post("/api/worktrees/one/merge", json={})
    assert (refused.status_code, refused.json()["code"]) == (409, "uncommitted")
    merged = await client.post("/api/worktrees/one/merge", json={"message": "Add one"})
    assert (merged.status_code, merged.json()["files"]) == (200, ["one"]), merged.text
    assert (workspace / "one").read_text() == "new\n"
    told = await client.delete(f"/api/sessions/{found[1]['session']}")
    assert (told.status_code, told.json()["worktree"]["branch"]) == (200, "dragoman/two")
    lost = await client.delete("/api/worktrees/two")
    assert (lost.status_code, lost.json()["code"]) == (409, "would_lose")
    assert (await client.delete("/api/worktrees/two?force=true")).status_code == 200
    assert (await client.delete(f"/api/sessions/{found[0]['session']}")).status_code == 204
    assert (await client.get("/api/worktrees")).json() == {"worktrees": []}
    assert (await client.post("/api/worktrees/two/keep")).status_code == 404
    assert (await client.delete("/api/worktrees")).json() == {"removed": [], "left": {}}
    assert git(workspace, "branch", "--format=%(refname:short)") == "main"
    acts = [
        (one["kind"], one["worktree"], one["by"])
        for one in query(home / "audit", Query())
        if "worktree" in one
    ]
    assert acts == [
        ("worktree_made", "one", "admin"),
        ("worktree_made", "two", "admin"),
        ("worktree_merged", "one", "admin"),
        ("act_failed", "one", "admin"),
        ("worktree_merged", "one", "admin"),
        ("worktree_discarded", "two", "admin"),
        ("worktree_discarded", "one", "admin"),
    ]
