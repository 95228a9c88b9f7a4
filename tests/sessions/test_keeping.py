"""When events cannot be stored: nothing has a number that is not kept, and storing goes on as soon as it can."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path
from typing import Any

import pytest

from support.gateway_process import GatewayProcess, Start, Table
from support.rpc_peer import PATIENCE, Message, RpcPeer, is_update, text_of
from support.session_client import SEQ, Watch, by_agent, entry, load, notice, resumable_agent, resume, setup
from support.store.failing_store import WRITES, Faults
from support.store.journal_reader import read_journal, records
from support.store.small_disk import small_disk

AGENTS: Table = {"scripted": resumable_agent()}
AT_ONCE: Table = {"write_patience": 0.05}
WAITS: Table = {"write_patience": 60}
LOAD = 2.0
"""Seconds that a busy machine may add."""


async def failing(dragoman: Start, faults: Faults, sessions: Table, **capabilities: Any) -> GatewayProcess:
    """A gateway whose store can be made to fail."""
    gateway = await faults.start(dragoman, agents=AGENTS, sessions=sessions)
    await gateway.initialize(clientCapabilities={**SEQ, **capabilities})
    return gateway


def facts_of(message: Message) -> Message:
    facts: Message = (message["params"].get("_meta") or {}).get("dragoman") or {}
    return facts


def numbers(peer: RpcPeer, session: str) -> list[int]:
    """The numbers of all updates so far; those that are not kept have none."""
    return [
        facts_of(message)["seq"]
        for message in filter(is_update(session), peer.received)
        if "seq" in facts_of(message)
    ]


def unkept(peer: RpcPeer, session: str) -> list[str]:
    shown = [m for m in filter(is_update(session), peer.received) if facts_of(m).get("kept") is False]
    assert not any("seq" in facts_of(message) for message in shown)
    return [text for message in shown if (text := text_of(message["params"]["update"]))]


def check_numbers(home: Path, peer: RpcPeer, session: str) -> None:
    """Each rises, and the journal has that very event under it."""
    journal = {event.seq: event.body for event in read_journal(home, session)}
    given = numbers(peer, session)
    assert given == sorted(set(given))
    for message in filter(is_update(session), peer.received):
        seq, update = facts_of(message).get("seq"), message["params"]["update"]
        if seq is not None and "could not be saved" not in str(update):
            assert journal[seq]["params"]["update"] == update


def texts(home: Path, session: str) -> list[str]:
    """What the journal has of the agent's words."""
    updates = [e.body["params"]["update"] for e in read_journal(home, session) if e.tag == "U"]
    return [text for update in updates if (text := text_of(update))]


async def test_events_wait_for_writes_that_fail_for_a_moment_and_nothing_is_lost(
    dragoman: Start, home: Path, workspace: Path, faults: Faults
) -> None:
    gateway = await failing(dragoman, faults, WAITS)
    session = await gateway.new_session(workspace)
    faults.fail(*WRITES)
    turn = gateway.start_prompt(session, "flood 2000 1000\nsay last")
    await gateway.logged("journal is waiting")
    assert not gateway.of(session)
    faults.heal()
    assert (await turn).stop_reason == "end_turn"
    assert len((await turn).texts) == 2001
    assert texts(home, session) == (await turn).texts
    check_numbers(home, gateway, session)
    assert "could not be saved" not in str(gateway.received)


async def test_people_are_told_within_a_second_what_is_wrong_and_when_it_is_over(
    dragoman: Start, home: Path, workspace: Path, faults: Faults, watch: Watch
) -> None:
    gateway = await failing(dragoman, faults, WAITS)
    session = await gateway.new_session(workspace)
    other = await watch(gateway)
    await load(other, session, workspace)
    faults.fail("append")
    began = asyncio.get_running_loop().time()
    turn = gateway.start_prompt(session, "say waits")
    for client in (gateway, other):
        told = await notice(client, session, "cannot be saved")
        assert "No space is left" in told and "After 60 s" in told
    assert asyncio.get_running_loop().time() - began < 1.0 + LOAD
    late = await watch(gateway)
    late.start_request("session/load", setup(session, workspace))
    assert "No space is left" in await notice(late, session, "not being saved")
    faults.heal()
    for client in (gateway, other):
        await notice(client, session, "is being saved again")
    assert (await turn).texts[-1] == "waits"
    assert not records(home, session, "unkept")


async def test_a_disk_that_hesitates_is_no_news(dragoman: Start, workspace: Path, faults: Faults) -> None:
    gateway = await failing(dragoman, faults, WAITS)
    session = await gateway.new_session(workspace)
    faults.fail("append")
    turn = gateway.start_prompt(session, "say soon")
    await gateway.logged("journal is waiting")
    faults.heal()
    assert (await turn).texts == ["soon"]
    assert "cannot be saved" not in str(gateway.received)


async def test_with_a_patience_of_zero_events_wait_for_ever(
    dragoman: Start, home: Path, workspace: Path, faults: Faults
) -> None:
    gateway = await failing(dragoman, faults, {"write_patience": 0})
    session = await gateway.new_session(workspace)
    faults.fail("append")
    turn = gateway.start_prompt(session, "say waits")
    told = await notice(gateway, session, "cannot be saved")
    assert "write_patience" not in told
    assert not turn.done()
    faults.heal()
    assert (await turn).texts[-1] == "waits"
    check_numbers(home, gateway, session)


async def test_a_file_that_may_not_grow_holds_its_own_session_and_no_other(
    dragoman: Start, home: Path, workspace: Path
) -> None:
    gateway = await dragoman(agents=AGENTS, sessions=WAITS)
    await gateway.initialize()
    one, other = [await gateway.new_session(workspace) for _ in range(2)]
    await gateway.prompt(one, f"say {'long ' * 2000}")
    (file,) = (home / "journal" / one).glob("*.log")
    size = file.stat().st_size
    limit = ["prlimit", f"--pid={gateway.process.pid}", f"--fsize={size}:{resource.RLIM_INFINITY}"]
    assert await (await asyncio.create_subprocess_exec(*limit)).wait() == 0
    turn = gateway.start_prompt(one, "say waits")
    assert "File too large" in await notice(gateway, one, "cannot be saved")
    assert (await gateway.prompt(other, "say undisturbed")).texts == ["undisturbed"]
    assert not turn.done()
    limit[-1] = f"--fsize={resource.RLIM_INFINITY}"
    assert await (await asyncio.create_subprocess_exec(*limit)).wait() == 0
    assert (await turn).texts[-1] == "waits"
    assert not records(home, one, "unkept")


async def test_what_is_shown_while_writes_fail_has_no_number_and_storing_goes_on_by_itself(
    dragoman: Start, home: Path, workspace: Path, faults: Faults, watch: Watch
) -> None:
    gateway = await failing(dragoman, faults, AT_ONCE)
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "say before")
    last = max(numbers(gateway, session))
    faults.fail(*WRITES)
    assert (await gateway.prompt(session, "\n".join(f"say {n}" for n in range(20)))).stop_reason == "end_turn"
    assert unkept(gateway, session) == [str(n) for n in range(20)]
    assert "No space" in await notice(gateway, session, "not being saved any more")
    faults.heal()
    await notice(gateway, session, "could not be saved")  # without a word from anybody
    assert (await gateway.prompt(session, "say after")).texts == ["after"]
    assert texts(home, session) == ["before", "after"]
    assert records(home, session, "unkept")[0]["events"] >= 20
    check_numbers(home, gateway, session)
    other = await watch(gateway, **SEQ)
    await resume(other, session, workspace, after=last)
    await notice(other, session, "could not be saved")
    await other.text(session, "after")
    assert "could not be saved" in str((await load(other, session, workspace)).replay)


async def test_a_client_that_comes_back_after_a_restart_misses_nothing_of_what_is_said_then(
    dragoman: Start, home: Path, workspace: Path, faults: Faults
) -> None:
    gateway = await failing(dragoman, faults, AT_ONCE)
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "say before")
    faults.fail(*WRITES)
    await gateway.prompt(session, "\n".join(f"say {n}" for n in range(43)))
    check_numbers(home, gateway, session)
    last = read_journal(home, session)[-1].seq
    await gateway.kill()
    one, other = [await dragoman(agents=AGENTS) for _ in range(2)]
    for each in (one, other):
        await each.initialize(clientCapabilities=SEQ)
    await load(one, session, workspace)
    await one.prompt(session, "\n".join(f"say new {n}" for n in range(43)))
    await resume(other, session, workspace, after=last)
    await other.text(session, "new 42")
    assert [text for text in map(text_of, by_agent(other.of(session))) if text] == [
        f"new {n}" for n in range(43)
    ]


async def test_a_client_that_has_more_than_there_is_is_told(
    dragoman: Start, workspace: Path, gateway: GatewayProcess, watch: Watch
) -> None:
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "say one")
    other = await watch(gateway, **SEQ)
    result = await resume(other, session, workspace, after=1000)
    assert result["_meta"]["dragoman"]["seq"] < 1000
    assert "Load the session" in await notice(other, session, "this one ends at")


async def test_a_session_that_is_made_while_writes_fail_is_kept_as_soon_as_they_work(
    dragoman: Start, home: Path, workspace: Path, faults: Faults
) -> None:
    gateway = await failing(dragoman, faults, AT_ONCE)
    faults.fail(*WRITES)
    session = await gateway.new_session(workspace)
    await notice(gateway, session, "not being saved")
    assert (await gateway.prompt(session, "say lost")).texts == ["lost"]
    faults.heal()
    await notice(gateway, session, "could not be saved")
    assert (await gateway.prompt(session, "say kept")).texts == ["kept"]
    assert (texts(home, session), numbers(gateway, session)[0]) == (["kept"], 1)
    await gateway.kill()
    other = await dragoman(agents=AGENTS)
    await other.initialize()
    loaded = await load(other, session, workspace)
    assert (loaded.texts[-1], loaded.facts["revived"]) == ("kept", "resume")


async def test_a_session_that_is_loaded_while_writes_fail_is_kept_as_soon_as_they_work(
    dragoman: Start, home: Path, workspace: Path, faults: Faults
) -> None:
    first = await dragoman(agents=AGENTS)
    await first.initialize()
    session = await first.new_session(workspace)
    await first.prompt(session, "say before")
    first.leave()
    await first.wait_exit()
    gateway = await failing(dragoman, faults, AT_ONCE)
    faults.fail(*WRITES)
    assert (await load(gateway, session, workspace)).texts == ["before"]
    assert (await gateway.prompt(session, "say lost")).texts[-1] == "lost"
    faults.heal()
    await notice(gateway, session, "could not be saved")
    assert (await gateway.prompt(session, "say kept")).texts == ["kept"]
    assert texts(home, session) == ["before", "kept"]


async def test_a_client_in_another_process_sees_what_is_not_kept_and_goes_on(
    dragoman: Start, home: Path, workspace: Path, faults: Faults
) -> None:
    gateway = await failing(dragoman, faults, AT_ONCE)
    other = await dragoman(agents=AGENTS)
    await other.initialize()
    session = await gateway.new_session(workspace)
    await load(other, session, workspace)
    faults.fail(*WRITES)
    await gateway.prompt(session, "say unkept")
    await other.text(session, "unkept")
    turn = await other.prompt(session, "say from elsewhere")
    assert [text for text in turn.texts if "Dragoman:" not in text] == ["from elsewhere"]
    faults.heal()
    await gateway.logged("journal is stored")
    await gateway.prompt(session, "say kept")
    await gateway.kill()
    await other.logged("agent ended")
    assert (await other.prompt(session, "say taken over")).texts[-1] == "taken over"
    said = [text for text in map(text_of, other.of(session)) if text and "Dragoman:" not in text]
    assert said == ["unkept", "from elsewhere", "kept", "taken over"]
    assert texts(home, session) == ["kept", "taken over"]


async def test_the_directory_is_brought_up_to_date_when_writes_work_again(
    dragoman: Start, home: Path, workspace: Path, faults: Faults
) -> None:
    gateway = await failing(dragoman, faults, AT_ONCE)
    session = await gateway.new_session(workspace)
    faults.fail(*WRITES)
    await gateway.prompt(session, "say the title of it all")
    faults.heal()
    other = await dragoman(agents=AGENTS)
    await other.initialize()
    async with asyncio.timeout(PATIENCE):
        while "title" not in (found := await entry(other, session)):
            await asyncio.sleep(0.01)  # another process's table raises no event here
    assert found["title"] == "say the title of it all"
    await gateway.kill()
    assert (await entry(other, session))["_meta"]["dragoman"]["state"] == "idle"


async def test_a_session_that_was_closed_while_writes_failed_says_what_is_missing_when_it_is_loaded(
    dragoman: Start, home: Path, workspace: Path, faults: Faults
) -> None:
    gateway = await failing(dragoman, faults, AT_ONCE)
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "say before")
    faults.fail(*WRITES)
    await gateway.prompt(session, "say lost")
    await gateway.request("session/close", {"sessionId": session})
    faults.heal()
    loaded = await load(gateway, session, workspace)
    assert "could not be saved" in str(loaded.replay) or await notice(gateway, session, "could not be saved")
    assert len(records(home, session, "unkept")) == 1


async def test_a_slow_client_is_shown_everything_in_order_across_a_time_without_storing(
    dragoman: Start, home: Path, workspace: Path, faults: Faults, watch: Watch
) -> None:
    gateway = await failing(dragoman, faults, AT_ONCE)
    session = await gateway.new_session(workspace)
    slow = await watch(gateway)
    await load(slow, session, workspace)
    slow.pause()
    await gateway.prompt(session, "flood 2000 4000\nsay kept 1")
    faults.fail(*WRITES)
    turn = gateway.start_prompt(session, "say 2\nsay 3")
    await gateway.logged("journal is unkept")
    faults.heal()
    await turn  # the slow client holds its agent back only as long as it cannot read on from the journal
    await gateway.prompt(session, "say 4")
    slow.resume()
    await slow.text(session, "4")
    said = [text for text in map(text_of, slow.of(session)) if text in ("kept 1", "2", "3", "4")]
    assert said == ["kept 1", "2", "3", "4"]


async def test_a_full_disk_that_has_room_again_is_used_again(
    dragoman: Start, home: Path, workspace: Path, tmp_path: Path
) -> None:
    prefix = small_disk(home, tmp_path / "kept.toml")
    gateway = await dragoman(agents=AGENTS, prefix=prefix, sessions=AT_ONCE)
    await gateway.initialize(clientCapabilities=SEQ)
    session = await gateway.new_session(workspace)
    filler = Path(f"/proc/{gateway.process.pid}/root{home}/filler")
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while file.write(bytes(4096)):
            pass
    await gateway.prompt(session, "flood 300 5000")  # SQLite may have taken some room before
    await notice(gateway, session, "not being saved any more")
    filler.unlink()
    await notice(gateway, session, "could not be saved")
    assert (await gateway.prompt(session, "say saved")).texts == ["saved"]
    given = numbers(gateway, session)
    assert given == sorted(set(given))
    loaded = await load(gateway, session, workspace)
    assert loaded.texts[-1] == "saved" and "could not be saved" in loaded.texts[-2]


async def test_a_turn_whose_end_could_not_be_saved_is_not_said_to_be_cut_off_by_a_restart(
    dragoman: Start, home: Path, workspace: Path, faults: Faults
) -> None:
    gateway = await failing(dragoman, faults, AT_ONCE)
    session = await gateway.new_session(workspace)
    turn = gateway.start_prompt(session, "say stored\nsleep-until-cancel")
    await gateway.text(session, "sleeping")
    faults.fail(*WRITES)
    gateway.notify("session/cancel", {"sessionId": session})
    assert (await turn).stop_reason == "cancelled"
    await notice(gateway, session, "not being saved any more")
    gateway.leave()
    await gateway.wait_exit()
    faults.heal()
    later = await dragoman(agents=AGENTS)
    await later.initialize()
    await load(later, session, workspace)
    (ended,) = records(home, session, "turn_ended")
    assert ended["error"]["message"] == "This turn was interrupted, or its end could not be saved."
