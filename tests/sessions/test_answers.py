"""Whatever the store or the agent does, requests are answered and turns end."""

from __future__ import annotations

import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from support.gateway_process import Start, Table, agent
from support.rpc_peer import is_request
from support.session_client import LOAD, RESUME, Watch, listed, load, notice, resumable_agent, setup
from support.store.failing_store import WRITES, Faults
from support.store.journal_reader import read_journal

AT_ONCE: Table = {"write_patience": 0.05}
WAITS: Table = {"write_patience": 60}
LISTS = '{"loadSession": true, "sessionCapabilities": {"list": {}, "resume": {}}}'
OLD = [{"sessionId": "old-1", "cwd": "/tmp", "title": "First"}]


# A session that only its agent knows, while nothing can be stored


@pytest.mark.parametrize("methods", [("append",), WRITES])
async def test_it_is_loaded_and_shown_and_kept_when_it_is_loaded_with_a_store_that_works(
    dragoman: Start, home: Path, faults: Faults, methods: tuple[str, ...]
) -> None:
    knowing = agent("--caps", LISTS, "--list", json.dumps(OLD), "--load-replay", "3")
    gateway = await faults.start(dragoman, agents={"scripted": knowing}, sessions=AT_ONCE)
    await gateway.initialize()
    (known,) = await listed(gateway)
    session = known["sessionId"]
    faults.fail(*methods)
    history = ["replay 0", "replay 1", "replay 2"]
    loaded = await load(gateway, session, Path("/tmp"))
    assert [text for text in loaded.texts if "Dragoman:" not in text] == history
    await notice(gateway, session, "not being saved")
    assert (await gateway.prompt(session, "say on")).texts == ["on"]
    faults.heal()
    await gateway.request("session/close", {"sessionId": session})
    assert (await load(gateway, session, Path("/tmp"))).texts == history
    assert [
        e.body["params"]["update"]["content"]["text"] for e in read_journal(home, session) if e.tag == "U"
    ] == (history)


async def test_it_is_resumed(dragoman: Start, faults: Faults) -> None:
    knowing = agent("--caps", LISTS, "--list", json.dumps(OLD), "--load-replay", "3")
    gateway = await faults.start(dragoman, agents={"scripted": knowing}, sessions=AT_ONCE)
    await gateway.initialize()
    (known,) = await listed(gateway)
    faults.fail(*WRITES)
    await gateway.request("session/resume", setup(known["sessionId"], Path("/tmp")))
    assert (await gateway.prompt(known["sessionId"], "say on")).texts[-1] == "on"


# The end of the process while the store cannot write


@pytest.mark.parametrize("how", ["SIGTERM", "end of stdin"])
@pytest.mark.parametrize("store", ["fails", "hangs"])
async def test_a_prompt_is_answered_when_the_gateway_ends_while_the_store_cannot_write(
    dragoman: Start, home: Path, workspace: Path, faults: Faults, store: str, how: str
) -> None:
    gateway = await faults.start(dragoman, agents={"scripted": resumable_agent()}, sessions=WAITS)
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    blocks = [{"type": "text", "text": "say lost\nsleep-until-cancel"}]
    with closing(sqlite3.connect(home / "dragoman.db", isolation_level=None)) as blocker:
        if store == "fails":
            faults.fail(*WRITES)
        else:
            blocker.execute("BEGIN IMMEDIATE")
        asked = gateway.start_request("session/prompt", {"sessionId": session, "prompt": blocks})
        if store == "fails":
            await gateway.logged("journal is waiting")
        await gateway.request("session/list", {})  # so the prompt has arrived
        if how == "SIGTERM":
            gateway.process.send_signal(signal.SIGTERM)
        else:
            gateway.leave()
        answer = await gateway.response(asked)
    if how == "SIGTERM":
        assert answer["error"]["data"]["reason"] == "shutdown"
    else:
        assert answer["result"] == {"stopReason": "cancelled"}
    await gateway.wait_exit()


# A journal that cannot be read


async def test_a_turn_that_fails_ends_although_the_journal_cannot_be_read(
    dragoman: Start, workspace: Path, faults: Faults
) -> None:
    """The agent says in its last message why, and the journal has that."""
    gateway = await faults.start(dragoman, agents={"scripted": resumable_agent()})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    update = {"sessionUpdate": "session_info_update", "_meta": {"codex": {"threadStatus": "systemError"}}}
    faults.fail("read", "read_before")
    turn = await gateway.prompt(session, f"update {json.dumps(update)}\nsay The model said 400")
    assert turn.error is not None and "The turn failed" in turn.error.message
    faults.heal()
    assert (await gateway.prompt(session, "say again")).texts == ["again"]


@pytest.mark.parametrize("caps", [RESUME, LOAD, "{}"])
async def test_an_agent_is_restarted_although_the_journal_cannot_be_read(
    dragoman: Start, workspace: Path, faults: Faults, caps: str
) -> None:
    gateway = await faults.start(dragoman, agents={"scripted": resumable_agent(caps=caps)})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "say before")
    await gateway.prompt(session, "crash")
    faults.fail("read", "read_before", "find")
    assert (await gateway.prompt(session, "say after")).texts[-1] == "after"


async def test_a_prompt_that_needs_a_store_which_fails_is_answered_with_the_reason(
    dragoman: Start, workspace: Path, faults: Faults
) -> None:
    """The process that had the session is gone, and nobody can say who has it now."""
    one = await dragoman(agents={"scripted": resumable_agent()})
    await one.initialize()
    session = await one.new_session(workspace)
    other = await faults.start(dragoman, agents={"scripted": resumable_agent()})
    await other.initialize()
    await load(other, session, workspace)
    faults.fail("get", "acquire")
    await one.kill()
    await other.logged("agent ended")
    turn = await other.prompt(session, "say on")
    assert turn.error is not None and "No space is left" in turn.error.message


# An agent that says nothing


@pytest.mark.parametrize("journal", [True, False])
async def test_a_silent_agent_is_named_and_ended(dragoman: Start, workspace: Path, journal: bool) -> None:
    mute = agent("--new-hang", "--stderr-on-start", "waiting for the moon\n")
    gateway = await dragoman(
        agents={"scripted": mute}, limits={"session_timeout": 0.3}, sessions={"journal": journal}
    )
    await gateway.initialize()
    answer = await gateway.request_raw("session/new", {"cwd": str(workspace), "mcpServers": []})
    failure = answer["error"]
    assert failure["data"] == {"reason": "agent_unavailable", "agent": "scripted"}
    for part in (
        "agent scripted",
        "session/new",
        "0.3 s",
        "limits.session_timeout",
        "dragoman agents check",
        "moon",
    ):
        assert part in failure["message"]
    await gateway.logged("agent ended")


@pytest.mark.parametrize("method", ["session/load", "session/resume", "session/fork"])
async def test_a_silent_agent_does_not_keep_a_client_waiting_for_an_old_session(
    dragoman: Start, method: str
) -> None:
    caps = '{"loadSession": true, "sessionCapabilities": {"list": {}, "resume": {}, "fork": {}}}'
    hanging = agent("--caps", caps, "--list", json.dumps(OLD), "--hang", "session/load", "--hang", method)
    gateway = await dragoman(agents={"scripted": hanging}, limits={"session_timeout": 0.3})
    await gateway.initialize()
    session = (await listed(gateway))[0]["sessionId"]
    if method == "session/fork":
        session = await gateway.new_session("/tmp")
    failure = (await gateway.request_raw(method, setup(session, Path("/tmp"))))["error"]
    assert "did not answer" in failure["message"] and "limits.session_timeout" in failure["message"]


async def test_an_agent_that_waits_for_a_person_is_not_silent(
    dragoman: Start, workspace: Path, watch: Watch
) -> None:
    """It asks something while it makes a session, and the person takes longer than the limit."""
    asking = [
        "sh", "-c",
        "while read -r line; do case $line in "
        "*initialize*) echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":1}}';; "
        "*session/new*) echo '{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"_ask\",\"params\":{}}';; "
        "*'\"q\"'*) echo '{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"sessionId\":\"s1\"}}';; esac; done",
    ]  # fmt: skip
    gateway = await dragoman(
        agents={"scripted": {"kind": "acp", "command": asking}}, limits={"session_timeout": 2}
    )
    await gateway.initialize()
    asked = gateway.start_request("session/new", {"cwd": str(workspace), "mcpServers": []})
    question = await gateway.next_message(is_request("_ask"))
    with pytest.raises(TimeoutError):
        await gateway.response(asked, timeout=2.5)
    gateway.reply(question, {})
    assert (await gateway.response(asked))["result"]["sessionId"]
