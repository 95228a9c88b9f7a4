"""Commits, pushes and pull requests of what a session changed, by REST."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from dragoman.server.auth.named_tokens import TokenFile
from support.commits.repository import Repository
from support.rpc_peer import PATIENCE
from support.serve_process import ServeProcess

from .conftest import Serve

RULE = {"name": "two people", "decision": "ask", "command": [["git", "push"]], "approvers": ["ann"]}


@pytest.fixture
def repository(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    workspace.rmdir()
    made = Repository.make(workspace, tmp_path / "me")
    made.commit(a="1\n")
    made.git("init", "-q", "--bare", "-b", "main", str(tmp_path / "bare.git"))
    made.git("remote", "add", "origin", "https://github.com/o/r.git")
    made.git("config", "--global", f"url.{tmp_path}/bare.git.insteadOf", "https://github.com/o/r.git")
    return made


@pytest.fixture
async def serving(serve: Serve, repository: Repository) -> ServeProcess:
    own = {"HOME": str(repository.home)}
    return await serve(checkpoints={"patience": PATIENCE}, policy={"rules": [RULE]}, env=own)


def client_of(serving: ServeProcess, tokens: TokenFile, name: str, role: str) -> httpx.AsyncClient:
    client = serving.http()
    client.headers["authorization"] = f"Bearer {tokens.create(name, role)[1]}"
    return client


async def test_each_step_is_decided_recorded_and_done(
    serving: ServeProcess, repository: Repository, workspace: Path, home: Path, tmp_path: Path
) -> None:
    tokens = TokenFile(home / "tokens.json")
    client, ann = serving.http(), client_of(serving, tokens, "ann", "approve")
    place = (await client.post("/api/sessions", json={"cwd": str(workspace)})).headers["location"]
    script = f"sh echo 2 > {workspace}/a"
    assert (await client.post(f"{place}/prompt", json={"prompt": script})).status_code == 200
    assert (await ann.post(f"{place}/commit", json={"message": "x"})).status_code == 403
    refused = await client.post(f"{place}/commit", json={})
    assert (refused.status_code, refused.json()["code"]) == (400, "no_message")
    refused = await client.post(f"{place}/commit", json={"all": True, "turn": 1, "message": "x"})
    assert refused.status_code == 400
    done = await client.post(f"{place}/commit", json={"message": "Change a"})
    assert (done.status_code, done.json()["committed"]["files"]) == (200, ["a"]), done.text
    assert repository.git("log", "-1", "--format=%an %s") == "Me Change a"
    refused = await client.post(f"{place}/commit", json={"message": "Change a"})
    assert (refused.status_code, refused.json()["code"]) == (409, "nothing_to_commit")

    pushing = asyncio.create_task(client.post(f"{place}/commit", json={"push": True}))
    async with asyncio.timeout(PATIENCE):
        while (question := (await ann.get(place)).json().get("question")) is None:
            await asyncio.sleep(0.02)  # REST has no event for a question
    assert question["toolCall"]["title"] == "git push origin main"
    own = await client.post(f"{place}/questions/{question['id']}", json={"optionId": "allow"})
    assert own.status_code == 403  # the one who asked for it does not count
    answered = await ann.post(f"{place}/questions/{question['id']}", json={"optionId": "allow"})
    assert answered.status_code == 200, answered.text
    done = await pushing
    assert (done.status_code, done.json()["pushed"]["url"]) == (200, "https://github.com/o/r.git"), done.text
    head = repository.git("rev-parse", "HEAD")
    assert repository.git("ls-remote", str(tmp_path / "bare.git"), "main").split()[0] == head

    found = (await client.get(f"/api/audit?session={place.rpartition('/')[2]}")).json()["records"]
    kinds = [one["kind"] for one in found]
    assert {"commit_made", "pushed", "decision", "answer"} <= set(kinds)
    assert await listed(client, "/api/openapi.json", "CommitResult")


async def listed(client: httpx.AsyncClient, path: str, name: str) -> bool:
    return name in (await client.get(path)).text


async def test_a_running_turn_is_not_committed(
    serving: ServeProcess, workspace: Path, tmp_path: Path
) -> None:
    client = serving.http()
    place = (await client.post("/api/sessions", json={"cwd": str(workspace)})).headers["location"]
    script = f"sh echo 2 > {workspace}/a\ntouch {tmp_path}/there\nwait-file {tmp_path}/go"
    turn = asyncio.create_task(client.post(f"{place}/prompt", json={"prompt": script}))
    async with asyncio.timeout(PATIENCE):
        while not (tmp_path / "there").exists():
            await asyncio.sleep(0.01)  # another process's file raises no event here
    refused = await client.post(f"{place}/commit", json={"message": "x"})
    assert (refused.status_code, refused.json()["code"]) == (409, "prompt_in_flight")
    (tmp_path / "go").touch()
    assert (await turn).status_code == 200
