"""Two real agents in worktrees of one repository, by commands and by REST: what they changed, and what becomes of it.

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

from real.agents import AGENTS
from real.client import STARTING
from real.conftest import OTHERS, PROXIES
from real.install import installed
from real.model_script import WRITTEN
from real.model_server import ModelServer
from real.ways import Begun, Commands, Refused, Rest, Way
from support.command_line import CommandLine
from support.gateway_process import Start
from support.serve_process import ServeProcess, UrlFraming

NAMES = ("claude", "opencode")
RULES = [{"name": "all", "decision": "allow", "kind": ["read", "edit", "execute", "search", "other"]}]
PHRASE = "tamarind grows slowly"
CHANGES = (
    "printf 'more\\n' >> a; rm b; printf '\\000\\001' > binary; mkdir -p in; printf x > in/deep; chmod +x c"
)
CHANGED = {"a": "modified", "b": "deleted", "binary": "added", "c": "modified", "in/deep": "added"}
EDITED = {"written.txt": "added"}
BY_FORK = "printf forked > c; mv a moved"
INPUT, OUTPUT = 100, 20


@dataclass
class Work:
    """A repository, the way to sessions, and those that were begun."""

    repository: Path
    way: Way
    model: ModelServer
    sessions: dict[str, Begun] = field(default_factory=dict)

    def git(self, *words: str, at: Path | None = None, **env: str) -> bytes:
        given = {**os.environ, **env}
        done = subprocess.run(["git", *words], cwd=at or self.repository, env=given, capture_output=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def tree(self, folder: Path) -> str:
        """The files of a folder as git itself records them, in an index apart."""
        index = str(self.repository / ".git" / "test-index")
        self.git("read-tree", "HEAD", at=folder, GIT_INDEX_FILE=index)
        self.git("add", "-A", at=folder, GIT_INDEX_FILE=index)
        return self.git("write-tree", at=folder, GIT_INDEX_FILE=index).decode().strip()


@pytest.fixture(params=["commands", "rest"])
async def work(
    request: pytest.FixtureRequest,
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
    config: dict[str, Any] = {"checkpoints": {"enabled": True}, "policy": {"rules": RULES}, "agents": {}}
    for agent in AGENTS:
        if agent.name in NAMES:
            own = agent_home / agent.name
            own.mkdir()
            config["agents"][agent.name] = agent.table(installed(agent.name), own, model.url)
    make_repository(workspace)
    if request.param == "commands":
        shell = CommandLine(home, workspace)
        shell.configure(**config)
        yield Work(workspace, Commands(shell), model)
        return
    framing = UrlFraming()
    gateway = await dragoman("serve", "--port", "0", framing=framing, **config)
    serving = ServeProcess(gateway, await framing.url())
    http = serving.http()
    http.timeout = httpx.Timeout(STARTING)
    yield Work(workspace, Rest(http), model)
    await serving.close()


def make_repository(folder: Path) -> None:
    for name in "abc":
        (folder / name).write_text(f"{name}\n")
    identity = ("-c", "user.name=Me", "-c", "user.email=me@example.org")
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), (*identity, "commit", "-qm", "first")):
        subprocess.run(["git", *words], cwd=folder, check=True)


async def test_two_agents_work_in_worktrees_of_one_repository(work: Work) -> None:
    await asyncio.gather(*(begin(work, agent) for agent in NAMES))
    await asyncio.gather(*(change(work, agent) for agent in NAMES))
    assert work.git("status", "--porcelain") == b"", "the checkout is as it was"
    for agent in NAMES:
        await compare(work, agent, {**CHANGED, **EDITED})
    await rewind(work, "claude")
    await fork(work, "claude", "opencode", "fork")
    await merge(work, "fork")
    await discard(work, "opencode")
    await search(work)
    await add_up(work)
    await delete(work)


async def begin(work: Work, agent: str) -> None:
    """A session in a worktree of its own, and its first message."""
    begun = await work.way.begin(work.repository, agent, f"by-{agent}", f"remember that {PHRASE}")
    work.sessions[agent] = begun


async def change(work: Work, agent: str) -> None:
    """One turn with an edit, one with a command."""
    session = work.sessions[agent]
    for prompt in (f"write: {session.folder}/written.txt", f"do: {CHANGES}"):
        await work.way.prompt(session.id, prompt)
    assert (session.folder / "written.txt").read_text() == WRITTEN
    assert (session.folder / "binary").read_bytes() == b"\0\1"
    assert not (session.folder / "b").exists()


async def compare(work: Work, name: str, expected: dict[str, str], since: str = "HEAD") -> None:
    """Net changes beside a plain `git diff`."""
    session = work.sessions[name]
    now = work.tree(session.folder)
    form = ("diff", "--binary", "--full-index")
    assert await work.way.patch(session.id) == work.git(*form, "--find-renames", since, now)
    assert await work.way.changed(session.id) == expected
    assert await work.way.uncommitted(session.id) == work.git(*form, "--find-renames", "HEAD", now)


async def rewind(work: Work, name: str) -> None:
    """The turn with the command is undone, with its files; that with the edit stays."""
    session = work.sessions[name]
    undone = await work.way.rewind(session.id, 3)
    assert (undone["message"], undone["undone"]) == (3, 1)
    assert work.git("status", "--porcelain", at=session.folder) == b"?? written.txt\n"
    await compare(work, name, EDITED)


async def fork(work: Work, name: str, agent: str, made: str) -> None:
    """The other agent goes on in a worktree of its own; it knows what was said, and nothing of what was undone."""
    original = work.sessions[name]
    session = work.sessions[made] = await work.way.fork(original.id, agent)
    assert session.folder != original.folder
    before = work.tree(session.folder)
    assert before == work.tree(original.folder)
    work.model.heard.clear()
    await work.way.prompt(session.id, f"do: {BY_FORK}")
    asked = "".join(work.model.heard)
    assert PHRASE in asked and "in/deep" not in asked
    assert work.tree(original.folder) == before, "the original stays as it was"
    await compare_fork(work, session, before)


async def compare_fork(work: Work, session: Begun, before: str) -> None:
    """Its net changes are those of its own turns; since the last commit there are the original's too."""
    now = work.tree(session.folder)
    form = ("diff", "--binary", "--full-index", "--find-renames")
    assert await work.way.patch(session.id) == work.git(*form, before, now)
    assert await work.way.changed(session.id) == {"c": "modified", "moved": "renamed"}
    assert await work.way.uncommitted(session.id) == work.git(*form, "HEAD", now)


async def merge(work: Work, name: str) -> None:
    """The files of the repository are then those of the worktree, and of no other."""
    session = work.sessions[name]
    files = work.tree(session.folder)
    merged = await work.way.merge(session.name, "By an agent")
    assert merged["into"] == "main" and sorted(merged["files"]) == ["a", "c", "moved", "written.txt"]
    assert work.git("rev-parse", "HEAD^{tree}").decode().strip() == files
    assert work.git("status", "--porcelain") == b""
    found = {one["name"]: one.get("uncommitted", 0) for one in await work.way.worktrees()}
    assert found == {session.name: 0, "by-claude": 1, "by-opencode": 6}


async def discard(work: Work, name: str) -> None:
    """What would be lost is named first."""
    session = work.sessions[name]
    with pytest.raises(Refused, match="6 files not committed"):
        await work.way.discard(session.name)
    assert (session.folder / "written.txt").exists()
    await work.way.discard(session.name, sure=True)
    assert not session.folder.exists()
    assert session.name not in {one["name"] for one in await work.way.worktrees()}
    assert b"by-opencode" not in work.git("branch")


async def search(work: Work) -> None:
    """The phrase is found in every session, also in that whose worktree was discarded."""
    hits = await work.way.search(PHRASE)
    assert {hit["sessionId"] for hit in hits} == {session.id for session in work.sessions.values()}
    for hit in hits:
        begin = hit["matches"][0][0]
        assert hit["text"][begin:].startswith("tamarind")


async def add_up(work: Work) -> None:
    """Tokens are those that the model told, whatever they are summed up by."""
    sums = {by: await work.way.usage(by) for by in ("turn", "session", "agent", "workspace", "day")}
    for told in sums.values():
        for kind in ("input", "output"):
            assert sum(group["tokens"][kind] for group in told["groups"]) == told["total"]["tokens"][kind]
        assert told["total"] == sums["turn"]["total"]
        assert sum(group["turns"] for group in told["groups"]) == 7
    by_agent = {group["key"]: group["tokens"] for group in sums["agent"]["groups"]}
    # OpenCode tells the tokens of a turn's last request, and none of those that find a title.
    answers = {"claude": work.model.answers.total() - work.model.answers["model"], "opencode": 4}
    for agent, count in answers.items():
        assert (by_agent[agent]["input"], by_agent[agent]["output"]) == (INPUT * count, OUTPUT * count)


async def delete(work: Work) -> None:
    """A merged worktree goes with its session; one with something of its own stays, and is named."""
    assert work.sessions["fork"].name not in await work.way.delete(work.sessions["fork"].id)
    assert not work.sessions["fork"].folder.exists()
    assert "by-claude" in await work.way.delete(work.sessions["claude"].id)
    assert work.sessions["claude"].folder.exists()
    await work.way.discard("by-claude", sure=True)
    await work.way.delete(work.sessions["opencode"].id)
    assert work.git("branch", "--format=%(refname:short)") == b"main\n"
    assert await work.way.worktrees() == []
