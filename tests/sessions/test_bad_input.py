"""Databases that are damaged, foreign, full or read-only, and ids from elsewhere: said clearly, nothing remade."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from support.agents.agent_log import AgentLog
from support.gateway_process import GatewayProcess, Start, Table
from support.rpc_peer import RpcFailure
from support.session_client import Watch, listed, load, notice, notices, resumable_agent
from support.store.journal_reader import read_journal
from support.store.small_disk import mounting, small_disk

AGENTS: Table = {"scripted": resumable_agent()}
IMPATIENT: Table = {"write_patience": 1}


async def failure(peer: GatewayProcess, session: str, workspace: Path) -> RpcFailure:
    with pytest.raises(RpcFailure) as caught:
        await load(peer, session, workspace)
    return caught.value


async def begun(dragoman: Start, workspace: Path) -> str:
    """A session with one turn, in a database that nobody uses any more."""
    gateway = await dragoman(agents=AGENTS)
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "say before")
    gateway.leave()
    await gateway.wait_exit()
    return session


async def serves_unsaved(gateway: GatewayProcess, workspace: Path, reason: str) -> None:
    """New sessions work, and say that they are not kept and why."""
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    told = await notice(gateway, session, "not being saved")
    assert reason in told
    assert (await gateway.prompt(session, "say works")).texts[-1] == "works"


def make_garbage(database: Path) -> None:
    database.write_bytes(b"this is no database, it is somebody's diary\n" * 100)


def make_truncated(database: Path) -> None:
    database.write_bytes(database.read_bytes()[:5000])


def make_newer(database: Path) -> None:
    with closing(sqlite3.connect(database)) as opened:
        opened.execute("PRAGMA user_version = 99")
        opened.execute("PRAGMA journal_mode = DELETE")


def make_foreign(database: Path) -> None:
    database.unlink()
    with closing(sqlite3.connect(database)) as opened:
        opened.execute("CREATE TABLE diary (text)")
        opened.commit()


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (make_garbage, "is not a database"),
        (make_truncated, "is damaged"),
        (make_newer, "newer Dragoman"),
        (make_foreign, "belongs to another program"),
    ],
)
async def test_a_database_that_cannot_be_used_is_left_alone_and_the_gateway_serves_without(
    dragoman: Start, home: Path, workspace: Path, harm: Callable[[Path], None], reason: str
) -> None:
    session = await begun(dragoman, workspace)
    database = home / "dragoman.db"
    harm(database)
    before = database.read_bytes()
    gateway = await dragoman(agents=AGENTS)
    await serves_unsaved(gateway, workspace, reason)
    refused = await failure(gateway, session, workspace)
    assert refused.code == -32002
    assert reason in str(refused.data) + refused.message
    gateway.leave()
    await gateway.wait_exit()
    assert database.read_bytes() == before


async def test_a_read_only_disk_is_told_and_the_gateway_serves_without(
    dragoman: Start, home: Path, workspace: Path
) -> None:
    session = await begun(dragoman, workspace)
    prefix = mounting(f"mount --bind {home} {home} && mount -o remount,ro,bind {home}")
    gateway = await dragoman(agents=AGENTS, prefix=prefix)
    await serves_unsaved(gateway, workspace, "read-only")
    assert session in [each["sessionId"] for each in await listed(gateway)]
    assert (await load(gateway, session, workspace)).texts == ["before"]
    await notice(gateway, session, "not being saved")
    assert (await gateway.prompt(session, "say on")).texts == ["on"]


async def test_a_home_in_which_nothing_can_be_made_is_told_and_the_gateway_serves_without(
    dragoman: Start, home: Path, workspace: Path
) -> None:
    prefix = mounting(f"mount --bind {home} {home} && mount -o remount,ro,bind {home}")
    gateway = await dragoman(agents=AGENTS, prefix=prefix)
    await serves_unsaved(gateway, workspace, "cannot make the directory")


async def test_a_disk_that_fills_up_in_mid_turn_does_not_end_the_turn(
    dragoman: Start, home: Path, workspace: Path, tmp_path: Path
) -> None:
    prefix = small_disk(home, tmp_path / "kept.toml")
    gateway = await dragoman(agents=AGENTS, prefix=prefix, sessions=IMPATIENT)
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    turn = await gateway.prompt(session, "flood 3000 5000\nsay last")
    assert turn.stop_reason == "end_turn"
    said = [text.split()[0] for text in turn.texts if "Dragoman:" not in text]
    assert said == [*map(str, range(3000)), "last"]
    told = await notice(gateway, session, "not being saved any more")
    assert "No space is left" in told
    assert (await gateway.prompt(session, "say still there")).texts[-1] == "still there"


async def test_what_was_stored_before_the_disk_was_full_can_still_be_read(
    dragoman: Start, home: Path, watch: Watch, workspace: Path, tmp_path: Path
) -> None:
    prefix = small_disk(home, tmp_path / "kept.toml")
    gateway = await dragoman(agents=AGENTS, prefix=prefix, sessions=IMPATIENT)
    await gateway.initialize()
    early = await gateway.new_session(workspace)
    await gateway.prompt(early, "say early")
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "flood 3000 5000")
    await notice(gateway, session, "not being saved any more")
    await gateway.request("session/close", {"sessionId": early})
    fill(gateway)
    assert early in [each["sessionId"] for each in await listed(gateway)]
    while not notices(gateway, early):  # what SQLite has taken already still has room for a little
        assert (await load(gateway, early, workspace)).texts[0] == "early"
        await gateway.request("session/close", {"sessionId": early})
    assert "No space is left" in notices(gateway, early)[0]
    assert "early" in (await load(gateway, early, workspace)).texts
    assert "on" in (await gateway.prompt(early, "say on")).texts


def fill(gateway: GatewayProcess) -> None:
    """Leave no room on the disk that the gateway sees."""
    path = Path(f"/proc/{gateway.process.pid}/root{gateway.home}/filler")
    with path.open("wb", buffering=0) as filler, pytest.raises(OSError, match="No space left"):
        while filler.write(bytes(4096)):
            pass


async def test_an_unknown_session_is_refused_with_its_id(gateway: GatewayProcess, workspace: Path) -> None:
    refused = await failure(gateway, "dgm_of_another_machine", workspace)
    assert refused.code == -32002
    assert refused.data["sessionId"] == "dgm_of_another_machine"
    assert "another machine" in refused.message + str(refused.data)
    session = await gateway.new_session(workspace)
    assert (await gateway.prompt(session, "say fine")).texts == ["fine"]


async def test_a_session_of_another_agent_is_refused_by_name(dragoman: Start, workspace: Path) -> None:
    agents = {"scripted": resumable_agent(), "other": resumable_agent()}
    first = await dragoman("acp", "other", agents=agents)
    await first.initialize()
    session = await first.new_session(workspace)
    await first.prompt(session, "say before")
    second = await dragoman("acp", "scripted", agents=agents)
    await second.initialize()
    refused = await failure(second, session, workspace)
    assert refused.code == -32002
    assert "other" in refused.message + str(refused.data)


async def test_damage_to_one_session_leaves_the_others_readable(
    dragoman: Start, home: Path, workspace: Path
) -> None:
    """Events that cannot be understood any more cost their session, not the gateway."""
    session = await begun(dragoman, workspace)
    other = await begun(dragoman, workspace)
    assert read_journal(home, session)
    (file,) = (home / "journal" / session).glob("*.log")
    file.write_bytes(file.read_bytes().replace(b"before", b"befoul"))
    gateway = await dragoman(agents=AGENTS)
    await gateway.initialize()
    assert (await load(gateway, other, workspace)).texts == ["before"]
    assert (await gateway.prompt(other, "say on")).texts == ["on"]
    damaged = await load(gateway, session, workspace)
    assert "befoul" not in str(damaged.replay) and "are damaged in the journal" in str(damaged.replay)


@pytest.mark.parametrize("method", ["session/load", "session/delete"])
async def test_a_store_that_fails_is_named_in_the_answer(
    gateway: GatewayProcess, home: Path, workspace: Path, method: str
) -> None:
    await gateway.new_session(workspace)
    with closing(sqlite3.connect(home / "dragoman.db")) as opened:
        opened.execute("ALTER TABLE directory RENAME TO elsewhere")
    params = {"sessionId": "dgm_any", "cwd": str(workspace), "mcpServers": []}
    with pytest.raises(RpcFailure) as caught:
        await gateway.request(method, params)
    assert caught.value.data["reason"] == "store_unavailable"
    assert "dragoman.db" in caught.value.message


async def test_a_session_that_was_cancelled_while_it_was_made_is_not_listed(
    dragoman: Start, home: Path, workspace: Path, heard: AgentLog
) -> None:
    gateway = await dragoman(agents={"scripted": resumable_agent(*heard.flags)})
    await gateway.initialize()
    with closing(sqlite3.connect(home / "dragoman.db", isolation_level=None)) as blocker:
        blocker.execute("BEGIN IMMEDIATE")
        asked = gateway.start_request("session/new", {"cwd": str(workspace), "mcpServers": []})
        await heard.until_method("session/new")
        await gateway.request("_echo", {})
        gateway.notify("$/cancel_request", {"requestId": asked})
        assert (await gateway.response(asked))["error"]["code"] == -32800
    assert await listed(gateway) == []
