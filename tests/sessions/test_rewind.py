"""Conversations that are taken back to an earlier message, and forward again."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dragoman.audit.read import Query, query
from support.agents.agent_log import AgentLog
from support.command_line import CommandLine
from support.gateway_process import GatewayProcess, Start
from support.rpc_peer import PATIENCE, RpcFailure, is_request
from support.session_client import RESUME, Watch, load, notice, prompts, resumable_agent, resume
from support.store.journal_reader import records

REWIND = "_dragoman/rewind"


async def begun(dragoman: Start, workspace: Path, heard: AgentLog, *words: str) -> tuple[GatewayProcess, str]:
    """A session in which each of these words was said by a turn of its own."""
    agents = {"scripted": resumable_agent(*heard.flags, caps=RESUME)}
    gateway = await dragoman(agents=agents, checkpoints={"patience": PATIENCE})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    for word in words:
        await gateway.prompt(session, f"say {word}")
    return gateway, session


async def rewind(gateway: Any, session: str, **wish: Any) -> Any:
    return await gateway.request(REWIND, {"sessionId": session, **wish})


def told(heard: AgentLog) -> str:
    """All that the agent got with its last prompt."""
    return "\n".join(block["text"] for block in heard.params("session/prompt")[-1]["prompt"])


async def test_a_rewound_conversation_goes_on_without_what_was_undone(
    dragoman: Start, workspace: Path, heard: AgentLog, home: Path
) -> None:
    gateway, session = await begun(dragoman, workspace, heard, "fig", "plum", "pear")
    result = await rewind(gateway, session, to=2)
    assert (result["message"], result["undone"], result["agent"]) == (2, 2, "seed")
    assert result["prompt"] == [{"type": "text", "text": "say plum"}]
    assert "rewound by local to before message 2: 2 messages undone" in await notice(
        gateway, session, "rewound"
    )
    assert "transcript of the shortened conversation" in await notice(gateway, session, "by itself")
    assert (await gateway.prompt(session, "say quince")).texts[-1] == "quince"
    assert "fig" in told(heard)
    assert "plum" not in told(heard) and "pear" not in told(heard)
    loaded = await load(gateway, session, workspace)
    assert prompts(loaded.replay) == ["say fig", "say quince"]
    assert "plum" not in json.dumps(loaded.replay)
    (record,) = records(home, session, "rewound")
    assert (record["message"], record["by"], len(record["undone"])) == (2, "local", 1)
    (audited,) = query(home / "audit", Query(kind="conversation_rewound"))
    assert (audited["session"], audited["message"]) == (session, 2)


async def test_undo_brings_the_conversation_back_with_the_agents_own_memory(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway, session = await begun(dragoman, workspace, heard, "fig", "plum")
    former = heard.params("session/prompt")[-1]["sessionId"]
    await rewind(gateway, session, to=2)
    await gateway.prompt(session, "say quince")
    result = await rewind(gateway, session, undo=True)
    assert (result["undone"], result["agent"]) == (1, "resume")
    assert heard.params("session/resume")[-1]["sessionId"] == former
    await gateway.prompt(session, "say on")
    assert told(heard) == "say on"
    loaded = await load(gateway, session, workspace)
    assert prompts(loaded.replay) == ["say fig", "say plum", "say on"]
    with pytest.raises(RpcFailure, match="nothing to undo"):
        await rewind(gateway, session, undo=True)


async def test_rewinds_are_undone_one_after_the_other(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway, session = await begun(dragoman, workspace, heard, "fig", "plum", "pear")
    await rewind(gateway, session, to=3)
    await rewind(gateway, session, to=1)
    listed = (await gateway.request("_dragoman/messages", {"sessionId": session}))["messages"]
    assert [(one["number"], one["text"], one.get("undone")) for one in listed] == [
        (1, "say fig", True),
        (2, "say plum", True),
        (3, "say pear", True),
    ]
    await rewind(gateway, session, undo=True)
    assert prompts((await load(gateway, session, workspace)).replay) == ["say fig", "say plum"]
    await rewind(gateway, session, undo=True)
    assert prompts((await load(gateway, session, workspace)).replay) == ["say fig", "say plum", "say pear"]


async def test_conversation_and_files_go_back_together_and_come_back_together(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway, session = await begun(dragoman, workspace, heard, "fig")
    file = workspace / "a"
    await gateway.prompt(session, f"sh echo 1 > {file}")
    await gateway.prompt(session, f"sh echo 2 > {file}")
    result = await rewind(gateway, session, to=3, what="both")
    assert (result["restored"]["files"], file.read_text()) == (["a"], "1\n")
    await rewind(gateway, session, to=2, what="files")
    assert not file.exists()
    await rewind(gateway, session, undo=True)
    assert file.read_text() == "1\n"
    assert len(prompts((await load(gateway, session, workspace)).replay)) == 2
    await rewind(gateway, session, undo=True)
    assert file.read_text() == "2\n"
    assert len(prompts((await load(gateway, session, workspace)).replay)) == 3


WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"to": 7}, "no message 7 in this session: it has 1"),
    ({"to": "nobody"}, "no message nobody"),
    ({"to": 0}, "no message 0"),
    ({"to": -1}, "no message -1"),
    ({"to": "\u202e1\n"}, "no message"),
    ({}, "needs one of to, retry and undo"),
    ({"to": 1, "undo": True}, "needs one of"),
    ({"to": 1, "what": "everything"}, "what"),
    ({"to": [1]}, "to"),
    ({"undo": True}, "nothing to undo"),
)


async def test_what_cannot_be_gone_back_to_is_named(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway, session = await begun(dragoman, workspace, heard, "fig")
    for wish, said in WRONG:
        with pytest.raises(RpcFailure, match=said):
            await rewind(gateway, session, **wish)
    assert (await gateway.prompt(session, "say on")).texts == ["on"]


async def test_without_a_journal_only_files_go_back(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    agents = {"scripted": resumable_agent(*heard.flags)}
    settings: dict[str, Any] = {"sessions": {"journal": False}, "checkpoints": {"patience": PATIENCE}}
    gateway = await dragoman(agents=agents, **settings)
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, f"sh echo 1 > {workspace}/a")
    with pytest.raises(RpcFailure, match="has no journal"):
        await rewind(gateway, session, to=1)
    result = await rewind(gateway, session, to=1, what="files")
    assert (result["restored"]["files"], (workspace / "a").exists()) == (["a"], False)
    await rewind(gateway, session, undo=True)
    assert (workspace / "a").exists()


async def test_a_message_is_undone_once(dragoman: Start, workspace: Path, heard: AgentLog) -> None:
    gateway, session = await begun(dragoman, workspace, heard, "fig", "plum")
    await rewind(gateway, session, to=1)
    with pytest.raises(RpcFailure, match="Message 2 is undone already"):
        await rewind(gateway, session, to=2)
    with pytest.raises(RpcFailure, match="There is no message in this session"):
        await rewind(gateway, session, retry=True)
    await gateway.prompt(session, "say quince")
    assert told(heard) == "say quince", "there is nothing to tell the agent of"


async def test_a_message_is_found_by_its_clients_id(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway, session = await begun(dragoman, workspace, heard)
    for name in ("one", "two"):
        meta = {"dragoman": {"clientMessageId": f"id-{name}"}}
        prompt = [{"type": "text", "text": f"say {name}"}]
        await gateway.request("session/prompt", {"sessionId": session, "prompt": prompt, "_meta": meta})
    result = await rewind(gateway, session, to="id-two")
    assert result["message"] == 2


async def test_a_running_turn_is_not_rewound(dragoman: Start, workspace: Path, heard: AgentLog) -> None:
    gateway, session = await begun(dragoman, workspace, heard, "fig")
    turn = gateway.start_prompt(session, "permission")
    asked = await gateway.next_message(is_request("session/request_permission"))
    with pytest.raises(RpcFailure, match="A turn is running: wait until it ends, or cancel it, then rewind"):
        await rewind(gateway, session, to=1)
    gateway.reply(asked, {"outcome": {"outcome": "cancelled"}})
    await turn


async def test_of_two_rewinds_at_once_the_first_wins(
    dragoman: Start, workspace: Path, heard: AgentLog, watch: Watch
) -> None:
    gateway, session = await begun(dragoman, workspace, heard, "fig", "plum")
    other = await watch(gateway)
    await resume(other, session, workspace)
    first = asyncio.create_task(rewind(gateway, session, to=2))
    await heard.until(lambda log: len(log.params("session/new")) == 2 or None)
    results = await asyncio.gather(
        first, rewind(other, session, to=1), gateway.request(REWIND, {"sessionId": session, "retry": True}),
        return_exceptions=True,
    )  # fmt: skip
    assert not isinstance(results[0], BaseException)
    loaded = await load(gateway, session, workspace)
    done = sum(not isinstance(result, BaseException) for result in results)
    assert len(prompts(loaded.replay)) == max(0, 2 - done)


async def test_a_session_of_another_process_is_rewound_by_its_owner(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    owner, session = await begun(dragoman, workspace, heard, "fig", "plum")
    second = await dragoman(agents={"scripted": resumable_agent(*heard.flags, caps=RESUME)})
    await second.initialize()
    await load(second, session, workspace)
    listed = await second.request("_dragoman/messages", {"sessionId": session})
    assert len(listed["messages"]) == 2
    assert (await rewind(second, session, to=2))["undone"] == 1
    assert "before message 2" in await notice(owner, session, "rewound")
    assert "before message 2" in await notice(second, session, "rewound")
    assert prompts((await load(second, session, workspace)).replay) == ["say fig"]
    assert (await second.prompt(session, "say quince")).texts[-1] == "quince"
    assert "plum" not in told(heard)
    done = CommandLine(owner.home, workspace).run("rewind", session, "--undo")
    assert (done.returncode, "1 message brought back" in done.stderr) == (0, True), done.stderr
    assert prompts((await load(owner, session, workspace)).replay) == ["say fig", "say plum"]


async def test_a_rewind_that_was_not_recorded_before_a_crash_leaves_the_agent_its_session(
    dragoman: Start, workspace: Path, heard: AgentLog
) -> None:
    gateway, session = await begun(dragoman, workspace, heard, "fig", "plum")
    own = heard.params("session/prompt")[-1]["sessionId"]
    gateway.leave()
    await gateway.wait_exit()
    cut = {"session": own, "drop": 1, "text": "say plum", "event": 5}
    with closing(sqlite3.connect(gateway.home / "dragoman.db")) as directory:
        (extra,) = directory.execute("SELECT extra FROM directory WHERE id = ?", (session,)).fetchone()
        changed = json.dumps({**json.loads(extra or "{}"), "rewound": True, "cut": cut})
        directory.execute("UPDATE directory SET extra = ? WHERE id = ?", (changed, session))
        directory.commit()
    again = await dragoman(agents={"scripted": resumable_agent(*heard.flags, caps=RESUME)})
    await again.initialize()
    loaded = await load(again, session, workspace)
    assert (loaded.facts["revived"], prompts(loaded.replay)) == ("resume", ["say fig", "say plum"])


async def test_a_stored_session_is_rewound_by_its_command(home: Path, workspace: Path) -> None:
    shell = CommandLine(home, workspace)
    shell.configure(checkpoints={"patience": PATIENCE})
    first = shell.run("exec", "say fig")
    session = first.stderr.split()[-1]
    assert shell.run("exec", "-s", session, "say plum").returncode == 0
    listed = shell.run("rewind", session, "--list")
    assert [line.split()[-1] for line in listed.stdout.splitlines()] == ["TEXT", "fig", "plum"]
    done = shell.run("rewind", session, "--to", "2")
    assert (done.returncode, "before message 2: 1 message undone" in done.stderr) == (0, True), done.stderr
    assert "undone" in shell.run("rewind", session, "--list").stdout
    exported = shell.run("sessions", "export", session, "--format", "markdown").stdout
    assert "fig" in exported and "plum" not in exported and "was undone" in exported
    lines = [json.loads(line) for line in shell.run("sessions", "export", session).stdout.splitlines()]
    assert any(line.get("undone") and "plum" in json.dumps(line) for line in lines)
    (found,) = json.loads(shell.run("sessions", "search", "plum", "--json").stdout)[:1]
    assert found["undone"] is True
    assert json.loads(shell.run("sessions", "show", session, "--json").stdout)["turns"][1]["undone"] is True
    done = shell.run("rewind", session, "--to", "1", "--resend", "say quince")
    assert done.stdout.split()[-1] == "quince", done.stderr
    done = shell.run("retry", session)
    assert done.stdout.split()[-1] == "quince", done.stderr
    assert shell.run("rewind", session, "--to", "9").returncode == 1
    (workspace / "mine").write_text("by hand\n")
    done = shell.run("rewind", session, "--to", "4", "--both")
    assert (done.returncode, "mine: say whether" in done.stderr) == (1, True), done.stderr
    assert shell.run("rewind", session, "--list").stdout.splitlines()[-1].split()[-1] == "quince"
    assert "undone" not in shell.run("rewind", session, "--list").stdout.splitlines()[-1]
