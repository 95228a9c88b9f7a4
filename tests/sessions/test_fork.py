"""Sessions that begin with the history of another: from a message on, and with another agent."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from dragoman.audit.read import Query, query
from support.agents.agent_log import AgentLog
from support.command_line import CommandLine
from support.gateway_process import GatewayProcess, Start, agent
from support.rpc_peer import PATIENCE, RpcFailure
from support.session_client import load, prompts, resumable_agent
from support.store.journal_reader import records


async def begun(dragoman: Start, workspace: Path, heard: AgentLog, *words: str) -> tuple[GatewayProcess, str]:
    """A session of an agent that cannot fork, in which each of these words was said by a turn of its own."""
    agents = {"scripted": resumable_agent(*heard.flags), "other": agent(*heard.flags)}
    gateway = await dragoman("acp", agents=agents, default_agent="scripted")
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    for word in words:
        await gateway.prompt(session, f"say {word}")
    return gateway, session


async def fork(gateway: GatewayProcess, session: str, **own: Any) -> Any:
    return await gateway.request("session/fork", {"sessionId": session, "_meta": {"dragoman": own}})


def told(heard: AgentLog) -> str:
    return "\n".join(block["text"] for block in heard.params("session/prompt")[-1]["prompt"])


async def test_a_fork_at_a_message_has_what_was_before_it(
    dragoman: Start, workspace: Path, heard: AgentLog, home: Path
) -> None:
    gateway, session = await begun(dragoman, workspace, heard, "fig", "plum", "pear")
    made = await fork(gateway, session, at=2, name="  other\nway ")
    forked, facts = made["sessionId"], made["_meta"]["dragoman"]
    assert (facts["forkedFrom"], facts["message"]) == (session, 2)
    await gateway.prompt(forked, "say quince")
    assert "fig" in told(heard) and "plum" not in told(heard)
    assert prompts((await load(gateway, forked, workspace)).replay) == ["say fig", "say quince"]
    assert prompts((await load(gateway, session, workspace)).replay) == ["say fig", "say plum", "say pear"]
    listed = (await gateway.request("session/list", {}))["sessions"]
    assert {one["sessionId"]: one["title"] for one in listed}[forked] == "other way"
    (audited,) = query(home / "audit", Query(kind="session_forked"))
    assert (audited["session"], audited["fork"], audited["message"]) == (session, forked, 2)


async def test_another_agent_gets_the_conversation_with_its_first_prompt(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway, session = await begun(dragoman, workspace, heard, "fig")
    begin = time.monotonic()
    made = await fork(gateway, session, agent="other", wake=False)
    assert time.monotonic() - begin < 5, "measured on its own: some milliseconds"
    assert len(heard.params("session/new")) == 1, "no agent was started for it"
    await gateway.prompt(made["sessionId"], "say plum")
    assert "fig" in told(heard) and told(heard).endswith("say plum")
    listed = (await gateway.request("session/list", {}))["sessions"]
    found = {one["sessionId"]: one["_meta"]["dragoman"]["agent"] for one in listed}
    assert found == {session: "scripted", made["sessionId"]: "other"}


async def test_what_an_agent_replays_as_it_forks_is_not_in_the_journal_twice(
    dragoman: Start, workspace: Path
) -> None:
    caps = '{"sessionCapabilities": {"fork": {}}}'
    gateway = await dragoman(agents={"scripted": resumable_agent("--early-updates", "2", caps=caps)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "say fig")
    made = await gateway.request("session/fork", {"sessionId": session, "cwd": str(workspace)})
    forked = made["sessionId"]
    assert [text.strip() for text in (await load(gateway, forked, workspace)).texts] == [
        "early 0",
        "early 1",
        "fig",
    ]


async def test_a_fork_does_not_have_what_was_undone(
    dragoman: Start, workspace: Path, heard: AgentLog, home: Path
) -> None:
    gateway, session = await begun(dragoman, workspace, heard, "fig", "plum")
    await gateway.request("_dragoman/rewind", {"sessionId": session, "to": 2})
    await gateway.prompt(session, "say pear")
    forked = (await fork(gateway, session))["sessionId"]
    assert prompts((await load(gateway, forked, workspace)).replay) == ["say fig", "say pear"]
    assert records(home, forked, "rewound") == []
    with pytest.raises(RpcFailure, match="nothing to undo"):
        await gateway.request("_dragoman/rewind", {"sessionId": forked, "undo": True})
    result = await gateway.request("_dragoman/rewind", {"sessionId": forked, "to": 2})
    assert result["prompt"][0]["text"] == "say pear"


async def test_a_fork_that_cannot_be_is_refused(dragoman: Start, workspace: Path, heard: AgentLog) -> None:
    gateway, session = await begun(dragoman, workspace, heard, "fig")
    for own, said in (
        ({"at": 5}, "no message 5"),
        ({"at": {}}, "_meta.dragoman"),
        ({"agent": "nobody"}, "nobody"),
        ({"name": " \n"}, "at least one letter"),
    ):
        with pytest.raises(RpcFailure, match=said):
            await fork(gateway, session, **own)
    assert len((await gateway.request("session/list", {}))["sessions"]) == 1


async def test_a_fork_in_a_worktree_begins_with_the_files_of_that_message(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    for words in (
        ("init", "-q"), ("add", "-A"), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "first")
    ):  # fmt: skip
        (workspace / "a").write_text("0\n")
        subprocess.run(["git", *words], cwd=workspace, check=True)
    agents = {"scripted": resumable_agent(*heard.flags)}
    gateway = await dragoman(agents=agents, checkpoints={"patience": PATIENCE})
    await gateway.initialize()
    own = {"worktree": {"name": "one"}}
    setup = {"cwd": str(workspace), "mcpServers": [], "_meta": {"dragoman": own}}
    begun = await gateway.request("session/new", setup)
    folder = Path(begun["_meta"]["dragoman"]["worktree"]["folder"])
    for number in (1, 2):
        await gateway.prompt(begun["sessionId"], f"sh echo {number} > {folder}/a")
    made = await fork(gateway, begun["sessionId"], at=2, worktree={"name": "two"})
    place = Path(made["_meta"]["dragoman"]["worktree"]["folder"])
    assert place != folder
    assert ((place / "a").read_text(), (folder / "a").read_text()) == ("1\n", "2\n")


def test_a_stored_session_is_forked_by_its_command(home: Path, workspace: Path) -> None:
    shell = CommandLine(home, workspace)
    shell.configure(agents={"other": agent()})
    session = shell.run("exec", "say fig").stderr.split()[-1]
    assert shell.run("exec", "-s", session, "say plum").returncode == 0
    done = shell.run("fork", session, "--at", "2", "--agent", "other", "--name", "again")
    assert done.returncode == 0, done.stderr
    forked = done.stdout.strip()
    shown = json.loads(shell.run("sessions", "show", forked, "--json").stdout)
    assert (shown["agent"], shown["title"], shown["turnCount"]) == ("other", "again", 1)
    assert shell.run("exec", "-s", forked, "say on").stdout.strip().endswith("on")
    assert shell.run("fork", session, "--agent", "nobody").returncode != 0
    whole = json.loads(shell.run("fork", session, "--json").stdout)
    assert whole["_meta"]["dragoman"]["forkedFrom"] == session
