"""Idle sessions cost nothing: their agent's process ends and comes back with the next prompt."""

from __future__ import annotations

from pathlib import Path

from support.agents.agent_log import AgentLog
from support.gateway_process import GatewayProcess, Start, Table, gone, is_alive
from support.rpc_peer import RpcPeer, is_request
from support.sandboxes import sandbox_kinds
from support.sandboxes.sandbox_kinds import boxed_agent
from support.session_client import LOAD, NEITHER, Watch, entry, load, notice, resumable_agent
from support.store.journal_reader import records

SOON = {"park_after": 0.3}


async def started(dragoman: Start, **agents: Table) -> GatewayProcess:
    """A client of all these agents, whose sessions are parked soon."""
    gateway = await dragoman("acp", agents=agents, sessions=SOON)
    await gateway.initialize()
    return gateway


async def pid_of(peer: RpcPeer, session: str) -> int:
    return int((await peer.prompt(session, "pid")).report("pid"))


async def new(gateway: GatewayProcess, workspace: Path, name: str) -> str:
    return await gateway.new_session(workspace, _meta={"dragoman": {"agent": name}})


async def ended(pid: int) -> None:
    await gone(lambda: is_alive(pid))


async def test_the_process_of_an_idle_session_ends_and_the_next_prompt_revives_it(
    dragoman: Start, home: Path, workspace: Path
) -> None:
    gateway = await started(dragoman, scripted=resumable_agent())
    session = await gateway.new_session(workspace)
    pid = await pid_of(gateway, session)
    await ended(pid)
    facts = (await entry(gateway, session))["_meta"]["dragoman"]
    assert facts["state"] == "parked"
    turn = await gateway.prompt(session, "pid\nsay back")
    assert turn.report("pid") != pid
    assert turn.texts[-1] == "back"
    assert [each["rung"] for each in records(home, session, "revived")] == ["resume"]
    assert len(records(home, session, "parked")) == 1


async def test_a_session_that_was_never_prompted_is_parked_too(dragoman: Start, workspace: Path) -> None:
    gateway = await started(dragoman, scripted=resumable_agent())
    session = await gateway.new_session(workspace)
    await gateway.logged("session parked")
    assert (await gateway.prompt(session, "say back")).texts[-1] == "back"


async def test_an_agent_that_only_loads_is_parked_without_showing_its_replay(
    dragoman: Start, workspace: Path
) -> None:
    gateway = await started(dragoman, scripted=resumable_agent("--load-replay", "2", caps=LOAD))
    session = await gateway.new_session(workspace)
    await ended(await pid_of(gateway, session))
    assert (await gateway.prompt(session, "say back")).texts == ["back"]


async def test_a_parked_session_can_be_loaded(dragoman: Start, watch: Watch, workspace: Path) -> None:
    gateway = await started(dragoman, scripted=resumable_agent())
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "say before")
    await gateway.logged("session parked")
    other = await watch(gateway)
    loaded = await load(other, session, workspace)
    assert (loaded.texts, loaded.facts["revived"]) == (["before"], "resume")


async def test_an_agent_that_remembers_nothing_is_not_parked(dragoman: Start, workspace: Path) -> None:
    """The other session's timer starts later: when it has struck, the first one's has too."""
    gateway = await started(dragoman, scripted=resumable_agent(), forgetful=resumable_agent(caps=NEITHER))
    stays = await new(gateway, workspace, "forgetful")
    pid = await pid_of(gateway, stays)
    clock = await new(gateway, workspace, "scripted")
    await ended(await pid_of(gateway, clock))
    assert await pid_of(gateway, stays) == pid


async def test_park_always_parks_it_all_the_same(dragoman: Start, workspace: Path) -> None:
    gateway = await started(dragoman, scripted=resumable_agent(caps=NEITHER, park="always"))
    session = await gateway.new_session(workspace)
    await ended(await pid_of(gateway, session))
    turn = await gateway.prompt(session, "say back")
    assert turn.texts[-1] == "back"
    await notice(gateway, session, "does not remember")


async def test_park_never_keeps_it(dragoman: Start, workspace: Path) -> None:
    gateway = await started(dragoman, scripted=resumable_agent(), kept=resumable_agent(park="never"))
    stays = await new(gateway, workspace, "kept")
    pid = await pid_of(gateway, stays)
    clock = await new(gateway, workspace, "scripted")
    await ended(await pid_of(gateway, clock))
    assert await pid_of(gateway, stays) == pid


async def test_a_turn_keeps_the_process(dragoman: Start, workspace: Path, signal_file: Path) -> None:
    gateway = await started(dragoman, scripted=resumable_agent())
    busy = await gateway.new_session(workspace)
    turn = gateway.start_prompt(busy, f"say busy\nwait-file {signal_file}\npid")
    await gateway.text(busy, "busy")
    clock = await gateway.new_session(workspace)
    await ended(await pid_of(gateway, clock))
    signal_file.touch()
    assert (await turn).stop_reason == "end_turn"


async def test_an_open_question_keeps_the_process(dragoman: Start, workspace: Path) -> None:
    gateway = await started(dragoman, scripted=resumable_agent())
    asking = await gateway.new_session(workspace)
    turn = gateway.start_prompt(asking, "permission\nsay done")
    question = await gateway.next_message(is_request("session/request_permission"))
    clock = await gateway.new_session(workspace)
    await ended(await pid_of(gateway, clock))
    gateway.reply(question, {"outcome": {"outcome": "cancelled"}})
    assert (await turn).texts[-1] == "done"


async def test_parking_can_be_switched_off(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman(agents={"scripted": resumable_agent()}, sessions={"park_after": 0})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    pid = await pid_of(gateway, session)
    assert await pid_of(gateway, session) == pid


async def test_parked_sessions_do_not_count_as_live(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman(
        agents={"scripted": resumable_agent()}, sessions=SOON, limits={"max_sessions": 1}
    )
    await gateway.initialize()
    first = await gateway.new_session(workspace)
    await gateway.prompt(first, "say one")
    await gateway.logged("session parked")
    second = await gateway.new_session(workspace)
    assert (await gateway.prompt(second, "say two")).texts == ["two"]


async def test_an_agent_in_a_box_without_a_lasting_home_stays_unless_it_is_told_otherwise(
    dragoman: Start, tmp_path: Path
) -> None:
    box = sandbox_kinds.bubblewrap()
    (tmp_path / "project").mkdir()
    agents = {
        name: boxed_agent(*resumable_agent()["command"][4:], sandbox="box", park=park)
        for name, park in (("stays", "auto"), ("goes", "always"))
    }
    gateway = await dragoman("acp", agents=agents, sandboxes={"box": box.sandbox}, sessions=SOON)
    await gateway.initialize()
    stays = await new(gateway, tmp_path / "project", "stays")
    goes = await new(gateway, tmp_path / "project", "goes")
    await gateway.prompt(goes, "say hello")
    await gateway.logged("session parked")
    states = {each: (await entry(gateway, each))["_meta"]["dragoman"]["state"] for each in (stays, goes)}
    assert states == {stays: "idle", goes: "parked"}


async def test_a_shared_agent_is_told_to_let_go_of_a_parked_session(
    dragoman: Start, tmp_path: Path, workspace: Path
) -> None:
    heard = AgentLog(tmp_path / "heard.jsonl")
    caps = '{"sessionCapabilities": {"resume": {}, "close": {}}}'
    gateway = await started(dragoman, scripted=resumable_agent(*heard.flags, caps=caps, share="all"))
    busy = await gateway.new_session(workspace)
    running = gateway.start_prompt(busy, "sleep-until-cancel")
    idle = await gateway.new_session(workspace)
    await gateway.logged("session parked")
    assert (await gateway.prompt(idle, "say back")).texts[-1] == "back"
    gateway.cancel(busy)
    await running
    (resumed,) = heard.params("session/resume")
    assert heard.params("session/close")[0] == {"sessionId": resumed["sessionId"]}
