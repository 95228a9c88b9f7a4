"""`dragoman acp --worktree`, as an editor sees it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.gateway_process import GatewayProcess, Start, agent

from .conftest import Checkout

OFFERS = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}


async def editor(dragoman: Start, *words: str, **sections: Any) -> GatewayProcess:
    gateway = await dragoman("acp", "scripted", *words, **sections)
    await gateway.initialize(clientCapabilities=OFFERS)
    return gateway


async def opened(gateway: GatewayProcess, workspace: Path) -> tuple[str, Path]:
    """A new session, and the folder of its worktree."""
    made = await gateway.request("session/new", {"cwd": str(workspace), "mcpServers": []})
    return made["sessionId"], Path(made["_meta"]["dragoman"]["worktree"]["folder"])


async def test_files_and_terminals_are_served_from_the_worktree(
    dragoman: Start, repository: Checkout, workspace: Path
) -> None:
    gateway = await editor(dragoman, "--worktree")
    session, folder = await opened(gateway, workspace)
    turn = await gateway.prompt(session, f"fswrite {folder}/c new\nfsread {folder}/a\nterminal pwd")
    assert turn.report("fsread")["result"] == {"content": "1\n2\n3\n"}
    assert turn.report("terminal/output")["result"]["output"].strip() == str(folder)
    assert (folder / "c").read_text() == "new"
    assert repository.git("status", "--porcelain") == ""
    served = [seen for seen in gateway.received if seen.get("method", "").startswith(("fs/", "terminal/"))]
    assert served == [], "the editor knows nothing of the worktree"


async def test_paths_are_shown_as_they_are(dragoman: Start, repository: Checkout, workspace: Path) -> None:
    gateway = await editor(dragoman, "--worktree")
    session, folder = await opened(gateway, workspace)
    call = {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Edit", "kind": "edit"}
    shown = {**call, "locations": [{"path": f"{folder}/a"}]}
    await gateway.prompt(session, f"update {json.dumps(shown)}")
    (seen,) = [update for update in gateway.of(session) if update["sessionUpdate"] == "tool_call"]
    assert seen["locations"] == [{"path": f"{folder}/a"}]


async def test_another_process_loads_the_session_into_the_same_worktree(
    dragoman: Start, repository: Checkout, workspace: Path
) -> None:
    first = await editor(dragoman, "--worktree")
    session, folder = await opened(first, workspace)
    await first.prompt(session, f"fswrite {folder}/c new")
    first.leave()
    await first.wait_exit()
    second = await editor(dragoman)
    params = {"sessionId": session, "cwd": str(workspace), "mcpServers": []}
    await second.request("session/load", params)
    turn = await second.prompt(session, f"cwd\nfsread {folder}/c\nfswrite {folder}/d more")
    assert turn.report("cwd") == str(folder)
    assert turn.report("fsread")["result"] == {"content": "new"}
    assert (folder / "d").read_text() == "more"
    assert not (workspace / "d").exists()
    listed = await second.request("session/list", {"cwd": str(folder)})
    assert [each["sessionId"] for each in listed["sessions"]] == [session]


@pytest.mark.parametrize("able", [True, False])
async def test_a_fork_gets_a_worktree_of_its_own(
    dragoman: Start, repository: Checkout, workspace: Path, able: bool
) -> None:
    caps = '{"sessionCapabilities": {"fork": {}}}' if able else "{}"
    gateway = await editor(dragoman, "--worktree", agents={"scripted": agent("--caps", caps)})
    session, folder = await opened(gateway, workspace)
    await gateway.prompt(session, f"fswrite {folder}/c new")
    forked = await gateway.request("session/fork", {"sessionId": session, "cwd": str(workspace)})
    own = forked["_meta"]["dragoman"]["worktree"]
    assert own["folder"] == f"{folder}-2"
    assert Path(own["folder"], "c").read_text() == "new"
    turn = await gateway.prompt(forked["sessionId"], f"fswrite {own['folder']}/c other\nterminal pwd")
    assert turn.report("terminal/output")["result"]["output"].strip() == own["folder"]
    assert (folder / "c").read_text() == "new"
    deleted = await gateway.request("session/delete", {"sessionId": forked["sessionId"]})
    assert deleted["_meta"]["dragoman"]["worktree"]["branch"] == own["branch"]
    deleted = await gateway.request(
        "session/delete", {"sessionId": session, "_meta": {"dragoman": {"discard": True}}}
    )
    assert deleted == {}
    assert (folder.exists(), Path(own["folder"]).exists()) == (False, True)
