"""Another process takes a session over: only from an owner that is gone, and by what is true then."""

from __future__ import annotations

from pathlib import Path

from support.agent_journal import AgentJournal
from support.attaching import NEITHER, rememberer, setup
from support.faults import Faults
from support.gateway import Dragoman, Start, Table
from support.journal_file import records

AGENTS: Table = {"scripted": rememberer()}


async def started(dragoman: Start) -> Dragoman:
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
    faults.hold("owners")
    asked = other.start_request("session/list", {})
    await faults.held("owners")
    signal_file.touch()
    assert (await turn).stop_reason == "end_turn"
    one.leave()
    await one.wait_exit()
    faults.let_go("owners")
    (found,) = (await other.response(asked))["result"]["sessions"]
    assert found["_meta"]["dragoman"]["state"] != "interrupted"


async def test_a_session_that_is_taken_over_goes_on_with_the_agent_session_of_its_last_turn(
    dragoman: Start, home: Path, workspace: Path, heard: AgentJournal, faults: Faults
) -> None:
    """The agent was restarted, and has another session of its own, while the other process waited."""
    one = await dragoman(agents={"scripted": rememberer(caps=NEITHER)})
    await one.initialize()
    other = await faults.start(dragoman, agents={"scripted": rememberer(*heard.flags)})
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
