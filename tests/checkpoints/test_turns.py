"""Turns are recorded over a real gateway, with an agent that edits and runs commands."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.checkpoints.engine import Engine
from dragoman.config.sections.checkpoints import CheckpointsConfig
from dragoman.gateway.ports.checkpoints import Checkpoint, CheckpointError
from support.command_line import CommandLine
from support.gateway_process import GatewayProcess, Start, agent
from support.rpc_peer import PATIENCE, is_request, text_of
from support.session_client import notices

SLOW_GIT = """#!/bin/sh
case "$1" in
  fast-import) while [ ! -e {go} ]; do sleep 0.02; done;;
esac
exec {git} "$@"
"""


def engine(home: Path) -> Engine:
    return Engine(home / "checkpoints", CheckpointsConfig())


async def recorded(home: Path, session: str, count: int) -> list[Checkpoint]:
    """The checkpoints of a session, when there are `count`."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                if len(found := engine(home).checkpoints(session)) >= count:
                    return found
            except CheckpointError:
                pass
            await asyncio.sleep(0.02)  # another process's files raise no event here


def slow_git(folder: Path, go: Path) -> dict[str, str]:
    """A PATH with a git that waits for a file before it records anything."""
    import shutil

    folder.mkdir()
    script = folder / "git"
    script.write_text(SLOW_GIT.format(go=go, git=shutil.which("git")))
    script.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


async def started(dragoman: Start, env: dict[str, str] | None = None, **checkpoints: Any) -> GatewayProcess:
    settings = {"patience": PATIENCE, **checkpoints}
    gateway = await dragoman(agents={"scripted": agent(serve_fs=True)}, env=env, checkpoints=settings)
    await gateway.initialize()
    return gateway


async def test_each_turn_is_recorded_from_its_beginning_to_its_end(
    dragoman: Start, workspace: Path, home: Path
) -> None:
    (workspace / "a").write_text("1\n")
    gateway = await started(dragoman)
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, f"sh echo 2 > {workspace}/a\nsay Done")
    await gateway.prompt(session, f"sh mv {workspace}/a {workspace}/b")
    points = await recorded(home, session, 4)
    assert [(point.kind, point.turn) for point in points] == [
        ("begin", 1),
        ("end", 1),
        ("begin", 2),
        ("end", 2),
    ]
    assert points[0].title.startswith("sh echo 2")
    assert {change.path for change in engine(home).changes(session, 1).files} == {"a"}
    (renamed,) = engine(home).changes(session, 2).files
    assert (renamed.old_path, renamed.path) == ("a", "b")


async def test_an_agent_that_writes_at_once_is_recorded_turn_by_turn(
    dragoman: Start, workspace: Path, home: Path
) -> None:
    """Nothing changes between these turns, so no prompt waits; what was there before each one is still known."""
    (workspace / "a").write_text("0\n")
    gateway = await started(dragoman)
    session = await gateway.new_session(workspace)
    turns = range(1, 7)
    for number in turns:
        words = f"sh echo {number} > {workspace}/a" if number != 4 else "say nothing"
        await gateway.prompt(session, words)
    points = await recorded(home, session, 2 * len(turns))
    assert [point.kind for point in points] == ["begin", "end"] * len(turns)
    for number in turns:
        files = engine(home).changes(session, number).files
        texts = [change.hunks[0].text.splitlines()[1:] for change in files]
        before = number - 1 if number != 5 else 3
        assert texts == ([[f"-{before}", f"+{number}"]] if number != 4 else [])
        assert not any(change.shared for change in files)


async def test_a_prompt_does_not_wait_for_git_if_nothing_changed(
    dragoman: Start, workspace: Path, home: Path, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    go.touch()
    gateway = await started(dragoman, slow_git(tmp_path / "bin", go))
    session = await gateway.new_session(workspace)
    for _ in range(2):
        await gateway.prompt(session, "say hello")
        await recorded(home, session, 2)
    await recorded(home, session, 4)
    go.unlink()
    for _ in range(3):
        assert (await gateway.prompt(session, "say hello")).stop_reason == "end_turn"
    points = await recorded(home, session, 10)
    assert [(point.kind, point.turn, point.late) for point in points[-2:]] == [
        ("begin", 5, False),
        ("end", 5, False),
    ]


async def test_a_gateway_that_ends_records_the_end_first(
    dragoman: Start, workspace: Path, home: Path
) -> None:
    gateway = await started(dragoman)
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, f"sh echo 1 > {workspace}/a")
    gateway.leave()
    await gateway.wait_exit()
    assert [point.kind for point in engine(home).checkpoints(session)] == ["begin", "end"]


async def test_a_late_checkpoint_holds_up_writes_and_not_the_prompt(
    dragoman: Start, workspace: Path, home: Path, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    (workspace / "a").write_text("before\n")
    gateway = await started(dragoman, slow_git(tmp_path / "bin", go), patience=0.05)
    session = await gateway.new_session(workspace)
    prompt = f"say Begun\nfswrite {workspace}/a after"
    turn = gateway.start_prompt(session, prompt)
    await gateway.text(session, "Begun")
    assert (workspace / "a").read_text() == "before\n"
    go.touch()
    await turn
    begin, _ = await recorded(home, session, 2)
    assert begin.late
    (change,) = engine(home).changes(session).files
    assert (change.added, change.removed) == (1, 1)


async def test_an_answer_waits_for_a_late_checkpoint(
    dragoman: Start, workspace: Path, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    gateway = await started(dragoman, slow_git(tmp_path / "bin", go), patience=0.05)
    session = await gateway.new_session(workspace)
    turn = gateway.start_prompt(session, "permission")
    asked = await gateway.next_message(is_request("session/request_permission"))
    gateway.reply(asked, {"outcome": {"outcome": "selected", "optionId": "yes"}})
    await gateway.request("session/list", {})  # the answer was handled before this
    assert not any("permission " in text_of(update) for update in gateway.of(session))
    go.touch()
    assert (await turn).report("permission")["result"]["outcome"]["optionId"] == "yes"


async def test_a_cancel_ends_the_wait_for_a_late_checkpoint(
    dragoman: Start, workspace: Path, tmp_path: Path
) -> None:
    gateway = await started(dragoman, slow_git(tmp_path / "bin", tmp_path / "go"), patience=0.05)
    session = await gateway.new_session(workspace)
    turn = gateway.start_prompt(session, "permission")
    asked = await gateway.next_message(is_request("session/request_permission"))
    gateway.reply(asked, {"outcome": {"outcome": "selected", "optionId": "yes"}})
    gateway.cancel(session)
    assert (await turn).report("permission")["result"]["outcome"]["optionId"] == "yes"
    (tmp_path / "go").touch()


async def test_a_cancelled_turn_does_not_wait_for_its_checkpoint(
    dragoman: Start, workspace: Path, tmp_path: Path
) -> None:
    gateway = await started(dragoman, slow_git(tmp_path / "bin", tmp_path / "go"), patience=0.05)
    session = await gateway.new_session(workspace)
    turn = gateway.start_prompt(session, "sleep-until-cancel")
    gateway.cancel(session)
    assert (await turn).stop_reason == "cancelled"
    (tmp_path / "go").touch()


async def test_a_project_that_cannot_be_recorded_is_told_once(dragoman: Start, workspace: Path) -> None:
    for number in range(3):
        (workspace / str(number)).touch()
    gateway = await started(dragoman, max_files=2)
    session = await gateway.new_session(workspace)
    for _ in range(2):
        assert (await gateway.prompt(session, "say fine")).stop_reason == "end_turn"
    told = [each for each in notices(gateway, session) if "more than 2 files" in each]
    assert len(told) == 1


@pytest.mark.parametrize("how", ["off", "no git"])
async def test_without_checkpoints_turns_go_on(
    dragoman: Start, workspace: Path, home: Path, tmp_path: Path, how: str
) -> None:
    (tmp_path / "empty").mkdir()
    gateway = await started(
        dragoman,
        {"PATH": str(tmp_path / "empty")} if how == "no git" else None,
        enabled=how != "off",
    )
    session = await gateway.new_session(workspace)
    assert (await gateway.prompt(session, "say fine")).texts == ["fine"]
    assert not list((home / "checkpoints").glob("*/refs/sessions/*"))


async def test_deleting_a_session_deletes_its_checkpoints(
    dragoman: Start, workspace: Path, home: Path
) -> None:
    gateway = await started(dragoman)
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "say hello")
    await recorded(home, session, 2)
    await gateway.request("session/delete", {"sessionId": session})
    gateway.leave()
    await gateway.wait_exit()
    assert list((home / "checkpoints").iterdir()) == []


# -- dragoman changes


@pytest.fixture
def shell(home: Path, workspace: Path) -> CommandLine:
    made = CommandLine(home, workspace)
    made.configure(checkpoints={"patience": PATIENCE})
    return made


def test_changes_of_the_last_session_of_this_project_are_a_patch(shell: CommandLine, workspace: Path) -> None:
    (workspace / "a").write_text("1\n")
    shell.run("exec", f"sh echo 2 > {workspace}/a")
    done = shell.run("changes")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-2:] == ["-1", "+2"]
    (workspace / "a").write_text("1\n")
    import subprocess

    subprocess.run(["git", "apply"], cwd=workspace, input=done.stdout.encode(), check=True)
    assert (workspace / "a").read_text() == "2\n"


def test_changes_as_a_list_and_as_json(shell: CommandLine, workspace: Path) -> None:
    first = shell.run("exec", f"sh echo 2 > {workspace}/a")
    session = first.stderr.split()[-1]
    shell.run("exec", "-s", session, f"sh rm {workspace}/a; echo x > {workspace}/b")
    assert "b" in shell.run("changes", session, "--stat").stdout
    told = json.loads(shell.run("changes", session, "--turn", "1", "--json").stdout)
    assert [(each["path"], each["status"]) for each in told["files"]] == [("a", "added")]
    turns = shell.run("changes", session, "--turns").stdout.splitlines()
    assert [row.split()[0] for row in turns] == ["TURN", "1", "2"]


def test_changes_say_what_is_missing(shell: CommandLine) -> None:
    assert "no session has checkpoints of this project" in shell.run("changes").stderr
    session = shell.run("exec", "say hi").stderr.split()[-1]
    done = shell.run("changes", session, "--turn", "7")
    assert (done.returncode, "There is no checkpoint of turn 7" in done.stderr) == (1, True)
