"""Another process takes a session over: only from an owner that is gone, and by what is true then."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from dragoman.store import limits
from support.agents.agent_log import AgentLog
from support.gateway_process import GatewayProcess, Start, Table
from support.rpc_peer import RpcFailure
from support.session_client import NEITHER, entry, load, notice, resumable_agent, setup
from support.store.failing_store import Faults
from support.store.journal_reader import records
from support.store.small_disk import mounting

AGENTS: Table = {"scripted": resumable_agent()}


async def started(dragoman: Start) -> GatewayProcess:
    gateway = await dragoman(agents=AGENTS)
    await gateway.initialize()
    return gateway


async def test_a_turn_that_ended_while_another_process_waited_for_the_session_is_not_called_interrupted(
    dragoman: Start, home: Path, workspace: Path, signal_file: Path, faults: Faults
) -> None:
    one = await started(dragoman)
    other = await faults.start(dragoman, agents=AGENTS)
    await other.initialize()
    session = await one.new_session(workspace)
    turn = one.start_prompt(session, f"say begun\nwait-file {signal_file}\nsay done")
    await one.text(session, "begun")
    faults.hold("acquire")
    asked = other.start_request("session/load", setup(session, workspace))
    await faults.held("acquire")
    signal_file.touch()
    assert (await turn).stop_reason == "end_turn"
    one.leave()
    await one.wait_exit()
    faults.let_go("acquire")
    assert "result" in await other.response(asked)
    assert [each.get("stopReason") for each in records(home, session, "turn_ended")] == ["end_turn"]


async def test_a_turn_that_ended_while_the_list_was_made_is_not_called_interrupted(
    dragoman: Start, home: Path, workspace: Path, signal_file: Path, faults: Faults
) -> None:
    one = await started(dragoman)
    other = await faults.start(dragoman, agents=AGENTS)
    await other.initialize()
    session = await one.new_session(workspace)
    turn = one.start_prompt(session, f"say begun\nwait-file {signal_file}\nsay done")
    await one.text(session, "begun")
    faults.hold("holders")
    asked = other.start_request("session/list", {})
    await faults.held("holders")
    signal_file.touch()
    assert (await turn).stop_reason == "end_turn"
    one.leave()
    await one.wait_exit()
    faults.let_go("holders")
    (found,) = (await other.response(asked))["result"]["sessions"]
    assert found["_meta"]["dragoman"]["state"] != "interrupted"


async def test_a_session_that_is_taken_over_goes_on_with_the_agent_session_of_its_last_turn(
    dragoman: Start, home: Path, workspace: Path, heard: AgentLog, faults: Faults
) -> None:
    """The agent was restarted, and has another session of its own, while the other process waited."""
    one = await dragoman(agents={"scripted": resumable_agent(caps=NEITHER)})
    await one.initialize()
    other = await faults.start(dragoman, agents={"scripted": resumable_agent(*heard.flags)})
    await other.initialize()
    session = await one.new_session(workspace)
    faults.hold("acquire")
    asked = other.start_request("session/load", setup(session, workspace))
    await faults.held("acquire")
    await one.prompt(session, "crash")
    renewed = (await one.prompt(session, "echo-params")).report("echo-params")["sessionId"]
    one.leave()
    await one.wait_exit()
    faults.let_go("acquire")
    assert "result" in await other.response(asked)
    assert (await heard.until_method("session/resume"))["sessionId"] == renewed


# A living owner stays the owner


async def test_a_turn_goes_on_undisturbed_when_the_runtime_folder_vanishes_and_another_process_asks(
    dragoman: Start, home: Path, workspace: Path, signal_file: Path, heard: AgentLog
) -> None:
    one = await dragoman(agents={"scripted": resumable_agent(*heard.flags)})
    await one.initialize()
    session = await one.new_session(workspace)
    turn = one.start_prompt(session, f"say begun\nwait-file {signal_file}\nsay done")
    await one.text(session, "begun")
    shutil.rmtree(home / "run")
    other = await dragoman(agents={"scripted": resumable_agent(*heard.flags)})
    await other.initialize()
    for method in ("session/load", "session/resume"):
        refused = (await other.request_raw(method, setup(session, workspace)))["error"]
        assert refused["data"]["reason"] == "session_held"
        assert "another Dragoman process" in refused["message"] and "end that process" in refused["message"]
    with pytest.raises(RpcFailure, match="session_held"):
        await other.request("session/delete", {"sessionId": session})
    assert (await entry(other, session))["_meta"]["dragoman"]["live"] is True
    signal_file.touch()
    assert ((await turn).texts, (await turn).stop_reason) == (["begun", "done"], "end_turn")
    assert not {"session/load", "session/resume"} & set(heard.methods)
    one.leave()
    await one.wait_exit()
    assert (await load(other, session, workspace)).texts == ["begun", "done"]
    assert len(records(home, session, "turn_ended")) == 1


async def test_an_owner_that_died_after_its_runtime_folder_vanished_is_taken_over(
    dragoman: Start, home: Path, workspace: Path
) -> None:
    one = await started(dragoman)
    session = await one.new_session(workspace)
    await one.prompt(session, "say before")
    shutil.rmtree(home / "run")
    await one.kill()
    other = await started(dragoman)
    assert (await load(other, session, workspace)).texts == ["before"]
    assert (await other.prompt(session, "say after")).texts == ["after"]


async def test_an_owner_whose_lock_file_is_lost_is_not_taken_for_dead_until_it_is(
    dragoman: Start, home: Path, workspace: Path
) -> None:
    one, other = await started(dragoman), await started(dragoman)
    session = await one.new_session(workspace)
    await one.prompt(session, "say before")
    (home / "journal" / session / "lock").unlink()
    assert (await load(other, session, workspace)).facts["revived"] == "live"
    await one.kill()
    assert (await load(other, session, workspace)).texts == ["before"]
    assert (await other.prompt(session, "say after")).texts == ["after"]


async def test_a_process_in_a_container_that_shares_the_home_keeps_its_session_until_it_ends(
    dragoman: Start, home: Path, workspace: Path, tmp_path: Path
) -> None:
    """Process ids mean nothing there, its runtime folder is its own, and it knows the home by another path."""
    elsewhere = tmp_path / "home"
    elsewhere.mkdir()
    contained = mounting(
        f"mount --bind {home} {elsewhere} && mkdir -p {elsewhere}/run && "
        f"mount -t tmpfs -o mode=700 tmpfs {elsewhere}/run",
        "--pid", "--fork", "--kill-child",
    )  # fmt: skip
    inside = await dragoman(
        agents=AGENTS, prefix=contained, env={"DRAGOMAN_HOME": str(elsewhere)}, cwd=workspace
    )
    await inside.initialize()
    outside = await started(dragoman)
    session = await inside.new_session(workspace)
    await inside.prompt(session, "say inside")
    refused = (await outside.request_raw("session/load", setup(session, workspace)))["error"]
    assert refused["data"]["reason"] == "session_held"
    assert (await inside.prompt(session, "say undisturbed")).texts == ["undisturbed"]
    await inside.kill()
    await inside.no_process_left()
    assert (await load(outside, session, workspace)).texts == ["inside", "undisturbed"]


async def test_what_an_owner_that_was_overtaken_says_is_not_shown(
    dragoman: Start, home: Path, workspace: Path, signal_file: Path
) -> None:
    one, other = await started(dragoman), await started(dragoman)
    session = await one.new_session(workspace)
    turn = one.start_prompt(session, f"say begun\nwait-file {signal_file}\nsay late\nsay later")
    await one.text(session, "begun")
    lock = home / "journal" / session / "lock"  # not held: what a dead process leaves behind
    lock.unlink()
    lock.touch()
    assert (await load(other, session, workspace)).texts == ["begun"]
    await asyncio.sleep(limits.LEASE_SECONDS)  # for so long an owner believes its last look at its lock
    signal_file.touch()
    ended = await turn  # however it ends: it is answered
    assert [text for text in ended.texts if "Dragoman:" not in text] == ["begun"]
    assert "took this session over" in await notice(one, session, "Load it again")
    assert (await other.prompt(session, "say mine")).texts == ["mine"]
    assert (await load(one, session, workspace)).texts == ["begun", "mine"]
