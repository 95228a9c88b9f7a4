"""Two real agents in worktrees of one repository: what they changed, one merged and the other discarded.

Each step is a function that takes the work as it stands, so that more steps can come between.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from real.agents import AGENTS, RealAgent
from real.client import STARTING
from real.conftest import OTHERS, PROXIES
from real.install import installed
from real.model_script import WRITTEN
from real.model_server import ModelServer
from support.command_line import CommandLine
from support.gateway_process import Start
from support.serve_process import ServeProcess, UrlFraming

NAMES = ("claude", "opencode")
RULES = [{"name": "all", "decision": "allow", "kind": ["read", "edit", "execute", "search", "other"]}]
CHANGES = (
    "printf 'more\\n' >> a; rm b; printf '\\000\\001' > binary; mkdir -p in; printf x > in/deep; chmod +x c"
)


@dataclass
class Work:
    """A repository, two sessions in worktrees of it, and both ways to them."""

    repository: Path
    rest: httpx.AsyncClient
    shell: CommandLine
    sessions: dict[str, str] = field(default_factory=dict)
    folders: dict[str, Path] = field(default_factory=dict)

    def git(self, *words: str, at: Path | None = None, env: dict[str, str] | None = None) -> bytes:
        given = {**os.environ, **(env or {})}
        done = subprocess.run(["git", *words], cwd=at or self.repository, env=given, capture_output=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def command(self, *words: str) -> str:
        done = self.shell.run(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
async def work(
    dragoman: Start,
    model: ModelServer,
    home: Path,
    agent_home: Path,
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Work]:
    for name in os.environ:
        if name.upper().startswith(OTHERS) or name.lower() in PROXIES:
            monkeypatch.delenv(name)
    tables = {}
    for agent in AGENTS:
        if agent.name in NAMES:
            tables[agent.name] = _table(agent, agent_home / agent.name, model.url)
    framing = UrlFraming()
    shell = CommandLine(home, workspace)
    sections: dict[str, Any] = {"checkpoints": {"enabled": True}, "policy": {"rules": RULES}}
    gateway = await dragoman("serve", "--port", "0", framing=framing, agents=tables, **sections)
    serving = ServeProcess(gateway, await framing.url())
    made = Work(workspace, serving.http(), shell)
    made.rest.timeout = httpx.Timeout(STARTING)
    made.git("init", "-q", "-b", "main")
    for key, value in (("user.name", "Me"), ("user.email", "me@example.org")):
        made.git("config", key, value)
    for name in "abc":
        (workspace / name).write_text(f"{name}\n")
    made.git("add", "-A")
    made.git("commit", "-qm", "first")
    yield made
    await serving.close()


def _table(agent: RealAgent, home: Path, model: str) -> dict[str, Any]:
    home.mkdir()
    return agent.table(installed(agent.name), home, model)


async def test_two_agents_work_in_worktrees_of_one_repository(work: Work) -> None:
    for agent in NAMES:
        await begin(work, agent)
    await asyncio.gather(*(change(work, agent) for agent in NAMES))
    assert work.git("status", "--porcelain") == b"", "the checkout is as it was"
    for agent in NAMES:
        await compare(work, agent)
    await merge(work, "claude")
    await discard(work, "opencode")


async def begin(work: Work, agent: str) -> None:
    body = {"cwd": str(work.repository), "agent": agent, "worktree": {"name": f"by-{agent}"}}
    made = await work.rest.post("/api/sessions", json=body)
    assert made.status_code == 201, made.text
    work.sessions[agent], work.folders[agent] = made.json()["id"], Path(made.json()["cwd"])


async def change(work: Work, agent: str) -> None:
    """One turn with an edit, one with a command."""
    for prompt in (f"write: {work.folders[agent]}/written.txt", f"do: {CHANGES}"):
        done = await work.rest.post(f"/api/sessions/{work.sessions[agent]}/prompt", json={"prompt": prompt})
        assert done.status_code == 200, done.text
    folder = work.folders[agent]
    assert (folder / "written.txt").read_text() == WRITTEN
    assert (folder / "binary").read_bytes() == b"\0\1"
    assert not (folder / "b").exists()


async def compare(work: Work, agent: str) -> None:
    """Net changes, by the command and by REST, beside a plain `git diff`."""
    session, folder = work.sessions[agent], work.folders[agent]
    index = {"GIT_INDEX_FILE": str(work.repository / ".git" / "test-index")}
    work.git("read-tree", "HEAD", at=folder, env=index)
    work.git("add", "-A", at=folder, env=index)
    plain = work.git("diff", "--cached", "--binary", "--full-index", "HEAD", at=folder, env=index)
    by_rest = await work.rest.get(f"/api/sessions/{session}/changes.patch")
    assert by_rest.status_code == 200, by_rest.text
    assert by_rest.content == plain
    assert work.command("changes", session).encode() == plain
    stat = (await work.rest.get(f"/api/sessions/{session}/changes")).json()
    changed = {each["path"]: each["status"] for each in stat["files"]}
    expected = {"a": "modified", "b": "deleted", "binary": "added", "c": "modified", "in/deep": "added"}
    assert changed == {**expected, "written.txt": "added"}


async def merge(work: Work, agent: str) -> None:
    """Merged by the command; the files of the repository are then those of the worktree."""
    name, folder = f"by-{agent}", work.folders[agent]
    assert "6 files not committed" in work.command("worktrees", "list")
    assert "merged into main: 6 files changed" in work.command(
        "worktrees", "merge", name, "-m", "By an agent"
    )
    assert work.git("diff", "HEAD", at=folder) == b"" == work.git("status", "--porcelain")
    assert (work.repository / "binary").read_bytes() == b"\0\1"
    found = (await work.rest.get("/api/worktrees")).json()["worktrees"]
    assert [(one["name"], one.get("uncommitted", 0)) for one in found] == [(name, 0), ("by-opencode", 6)]


async def discard(work: Work, agent: str) -> None:
    """Discarded by REST, which names first what would be lost; the merged one goes with its session."""
    refused = await work.rest.delete(f"/api/worktrees/by-{agent}")
    assert (refused.status_code, refused.json()["code"]) == (409, "would_lose")
    assert "6 files not committed" in refused.json()["error"]
    done = await work.rest.delete(f"/api/worktrees/by-{agent}", params={"force": "true"})
    assert done.status_code == 200, done.text
    assert not work.folders[agent].exists()
    merged = next(name for name in NAMES if name != agent)
    work.command("sessions", "delete", "-y", work.sessions[merged])
    assert not work.folders[merged].exists()
    assert work.git("branch", "--format=%(refname:short)") == b"main\n"
