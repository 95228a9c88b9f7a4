"""`dragoman revert` and `dragoman rewind`, on sessions with and without an owner."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dragoman.audit.read import Query, query
from support.command_line import CommandLine
from support.gateway_process import GatewayProcess, Start, agent
from support.rpc_peer import PATIENCE, RpcFailure, is_request
from support.session_client import notice
from support.store.journal_reader import records


@pytest.fixture
def shell(home: Path, workspace: Path) -> CommandLine:
    made = CommandLine(home, workspace)
    made.configure(checkpoints={"patience": PATIENCE})
    return made


def worked(shell: CommandLine, *scripts: str) -> str:
    """A session of several turns, without an owner now."""
    session = ""
    for script in scripts:
        more = ("-s", session) if session else ()
        done = shell.run("exec", *more, script)
        assert done.returncode == 0, done.stderr
        session = session or done.stderr.split()[-1]
    return session


def test_a_stored_session_goes_back_and_forth(shell: CommandLine, workspace: Path) -> None:
    file = workspace / "a"
    file.write_text("0\n")
    session = worked(shell, f"sh echo 1 > {file}", f"sh echo 2 > {file}; echo x > {workspace}/new")
    done = shell.run("rewind", session, "--to", "2", "--files")
    assert (done.returncode, done.stdout.splitlines()) == (0, ["a", "new"]), done.stderr
    assert (file.read_text(), (workspace / "new").exists()) == ("1\n", False)
    done = shell.run("rewind", session, "--undo")
    assert (done.returncode, file.read_text(), (workspace / "new").read_text()) == (0, "2\n", "x\n")
    done = shell.run("revert", session, "--turn", "2", "--file", "new", "--json")
    assert json.loads(done.stdout)["files"] == ["new"]
    assert not (workspace / "new").exists()


def test_a_hunk_is_reverted_by_its_number(shell: CommandLine, workspace: Path) -> None:
    file = workspace / "a"
    file.write_text("".join(f"{number}\n" for number in range(30)))
    worked(shell, f"sh sed -i 's/^2$/two/; s/^25$/xxv/' {file}")
    assert shell.run("revert", "--file", "a", "--hunk", "2").returncode == 0
    lines = file.read_text().splitlines()
    assert (lines[2], lines[25]) == ("two", "25")


def test_shared_changes_need_a_word(shell: CommandLine, workspace: Path) -> None:
    session = worked(shell, f"sh echo 1 > {workspace}/a")
    (workspace / "mine").write_text("by hand\n")
    done = shell.run("rewind", session, "--to", "1", "--files")
    assert done.returncode == 1
    assert "mine" in done.stderr and "--shared include" in done.stderr
    assert (workspace / "a").exists()
    done = shell.run("rewind", session, "--to", "1", "--files", "--shared", "leave")
    assert (done.returncode, done.stderr.strip()) == (0, "left as it is: mine")
    assert [path.name for path in workspace.iterdir()] == ["mine"]


def test_bad_usage_is_named(shell: CommandLine) -> None:
    for words, said in (
        (["rewind"], "give one of --to MESSAGE, --undo and --list"),
        (["rewind", "--undo", "--files"], "leave out --files"),
        (["rewind", "--undo", "--resend", "x"], "--resend needs --to"),
        (["rewind", "--to", "1", "--resend", " "], "is empty"),
        (["revert", "--hunk", "1"], "--hunk needs --file"),
    ):
        done = shell.run(*words)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_a_deleted_session_has_no_checkpoints(shell: CommandLine, workspace: Path, home: Path) -> None:
    session = worked(shell, f"sh echo 1 > {workspace}/a")
    assert shell.run("sessions", "delete", "--yes", session).returncode == 0
    assert list((home / "checkpoints").iterdir()) == []


# -- a session that a gateway has


async def opened(dragoman: Start, workspace: Path) -> tuple[GatewayProcess, str]:
    gateway = await dragoman(agents={"scripted": agent()}, checkpoints={"patience": PATIENCE})
    await gateway.initialize()
    return gateway, await gateway.new_session(workspace)


async def test_files_are_restored_in_a_live_session(dragoman: Start, workspace: Path) -> None:
    gateway, session = await opened(dragoman, workspace)
    await gateway.prompt(session, f"sh echo 1 > {workspace}/a")
    told = await gateway.request("_dragoman/restore", {"sessionId": session, "to": 1})
    assert told["files"] == ["a"]
    assert not (workspace / "a").exists()
    assert "1 file was restored by local" in await notice(gateway, session, "restored")
    with pytest.raises(RpcFailure, match="turn 9"):
        await gateway.request("_dragoman/restore", {"sessionId": session, "to": 9})
    with pytest.raises(RpcFailure, match="unknown field"):
        await gateway.request("_dragoman/restore", {"sessionId": session, "too": 1})
    assert (await gateway.prompt(session, "say on")).texts == ["on"]


async def test_a_running_turn_refuses_to_have_its_files_restored(dragoman: Start, workspace: Path) -> None:
    gateway, session = await opened(dragoman, workspace)
    turn = gateway.start_prompt(session, "permission")
    asked = await gateway.next_message(is_request("session/request_permission"))
    with pytest.raises(RpcFailure, match="A turn is running"):
        await gateway.request("_dragoman/restore", {"sessionId": session, "to": 1})
    gateway.reply(asked, {"outcome": {"outcome": "cancelled"}})
    await turn


async def test_of_two_restores_at_once_the_first_wins(dragoman: Start, workspace: Path) -> None:
    gateway, session = await opened(dragoman, workspace)
    await gateway.prompt(session, f"sh echo 1 > {workspace}/a")
    first = gateway.start_request("_dragoman/restore", {"sessionId": session, "to": 1})
    second = gateway.start_request("_dragoman/restore", {"sessionId": session, "turn": 1})
    prompted = gateway.start_prompt(session, "say no")
    assert "result" in await gateway.response(first)
    refused = await gateway.response(second)
    assert refused["error"]["data"]["reason"] == "restoring"
    error = (await prompted).error
    assert error is not None and error.data["reason"] == "restoring"
    assert not (workspace / "a").exists()


async def test_the_journal_keeps_what_was_undone(dragoman: Start, workspace: Path, home: Path) -> None:
    gateway, session = await opened(dragoman, workspace)
    await gateway.prompt(session, f"sh echo 1 > {workspace}/a")
    await gateway.request("_dragoman/restore", {"sessionId": session, "turn": 1})
    gateway.leave()
    await gateway.wait_exit()
    (kept,) = records(home, session, "files_restored")
    (audited,) = query(home / "audit", Query(session=session, kind="files_restored"))
    assert (audited["by"], audited["count"]) == (kept["by"], kept["count"])
    assert (kept["wish"]["turn"], kept["files"], kept["by"]) == (1, ["a"], "local")
