"""What a replay shows: numbers, what was missed, terminals that are long gone, and no secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.clients.sample_answers import EVERYTHING
from support.gateway_process import GatewayProcess, Start, agent
from support.rpc_peer import Message, RpcFailure, RpcPeer, is_update
from support.session_client import (
    SEQ,
    Watch,
    by_agent,
    conversation,
    load,
    resumable_agent,
    resume,
    setup,
    turn_end,
)
from support.store.journal_reader import read_journal

SECRET = "hunter2-do-not-store-me"


def numbers(peer: RpcPeer, session: str) -> list[int]:
    """`params._meta.dragoman.seq` of the session's updates, in the order they came."""
    shown = [m["params"] for m in peer.received if is_update(session)(m)]
    return [params["_meta"]["dragoman"]["seq"] for params in shown if "_meta" in params]


async def test_a_replay_is_complete_before_the_answer(
    gateway: GatewayProcess, watch: Watch, workspace: Path
) -> None:
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "flood 3000 200\ntool a\nthink b")
    other = await watch(gateway)
    loaded = await load(other, session, workspace)
    assert by_agent(loaded.replay) == by_agent(gateway.of(session))
    assert len(loaded.replay) == 3004


async def test_updates_that_nobody_knows_yet_are_replayed_byte_by_byte(
    gateway: GatewayProcess, watch: Watch, workspace: Path
) -> None:
    session = await gateway.new_session(workspace)
    update = {"sessionUpdate": "hologram", "x": [None, 2**60, 1.0, "ü"], "_meta": {"future": True}}
    await gateway.prompt(session, f"update {json.dumps(update)}")
    other = await watch(gateway)
    await load(other, session, workspace)
    live = next(raw for raw in gateway.raw if b"hologram" in raw)
    again = [raw for raw in other.raw if b"hologram" in raw]
    assert again[-1] == live


@pytest.mark.rule("G-163")
async def test_state_is_not_replayed_as_history_but_told_as_it_stands(
    dragoman: Start, watch: Watch, workspace: Path
) -> None:
    gateway = await dragoman(agents={"scripted": agent("--modes", "--late-commands")})
    await gateway.initialize()
    session = await gateway.new_session(workspace)
    for mode in ("code", "ask", "code"):
        await gateway.request("session/set_mode", {"sessionId": session, "modeId": mode})
    await gateway.prompt(session, "say hello")
    other = await watch(gateway)
    loaded = await load(other, session, workspace)
    kinds = [u["sessionUpdate"] for u in loaded.replay]
    state = {"available_commands_update", "current_mode_update", "config_option_update"}
    assert kinds[:2] == ["user_message_chunk", "agent_message_chunk"]
    assert set(kinds[2:]) == state and len(kinds) == 5
    assert {"sessionUpdate": "current_mode_update", "currentModeId": "code"} in loaded.replay
    assert loaded.result["modes"]["availableModes"]
    await other.request("session/list", {})
    assert [u["sessionUpdate"] for u in other.of(session)] == kinds, "nothing follows the answer"


# Numbers


async def test_a_client_that_asks_for_it_gets_numbers_with_its_updates(
    dragoman: Start, watch: Watch, home: Path, workspace: Path
) -> None:
    gateway = await dragoman(agents={"scripted": resumable_agent()})
    await gateway.initialize(clientCapabilities=SEQ)
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "say one\nsay two\ntool a")
    stored = {e.seq: e.body["params"]["update"] for e in read_journal(home, session) if e.tag in "UPu"}
    live = {m["params"]["_meta"]["dragoman"]["seq"]: m["params"]["update"] for m in gateway.received if
            is_update(session)(m)}  # fmt: skip
    assert live.items() <= stored.items()
    other = await watch(gateway, **SEQ)
    await load(other, session, workspace)
    found = numbers(other, session)
    assert found == sorted(set(found))
    assert set(live) <= set(found) | {seq for seq, u in stored.items() if not conversation([u])}


async def test_a_client_that_does_not_ask_gets_no_numbers(
    gateway: GatewayProcess, watch: Watch, workspace: Path
) -> None:
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "say one")
    other = await watch(gateway)
    await load(other, session, workspace)
    assert numbers(gateway, session) == numbers(other, session) == []


async def test_meta_of_the_agent_stays_beside_the_number(
    dragoman: Start, watch: Watch, workspace: Path
) -> None:
    gateway = await dragoman(agents={"scripted": resumable_agent()})
    await gateway.initialize(clientCapabilities=SEQ)
    session = await gateway.new_session(workspace)
    params = {
        "sessionId": "{sid}",
        "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}},
        "_meta": {"mine": 2**60},
    }
    await gateway.prompt(session, f"notify session/update {json.dumps(params)}")
    shown = next(m["params"] for m in gateway.received if is_update(session, "agent_message_chunk")(m))
    assert shown["_meta"]["mine"] == 2**60
    assert isinstance(shown["_meta"]["dragoman"]["seq"], int)


@pytest.mark.parametrize("missed", [0, 5])
async def test_resume_with_a_number_gives_exactly_what_was_missed(
    gateway: GatewayProcess, watch: Watch, workspace: Path, missed: int
) -> None:
    session = await gateway.new_session(workspace)
    first = await watch(gateway, **SEQ)
    await load(first, session, workspace)
    await gateway.prompt(session, "\n".join(f"say {n}" for n in range(10)))
    await turn_end(first, session)
    seen = numbers(first, session)
    position = seen[-1 - missed]
    back = await watch(gateway, **SEQ)
    result = await resume(back, session, workspace, after=position)
    assert result["_meta"]["dragoman"]["seq"] >= seen[-1]
    await gateway.prompt(session, "say live")
    for _ in range(1 + bool(missed)):  # the end of the first turn was missed too
        await turn_end(back, session)
    await turn_end(first, session)
    assert numbers(back, session) == [seq for seq in numbers(first, session) if seq > position]
    told = [
        update for update in back.of(session) if not facts_of(update).get("caughtUp")
    ]  # for the latecomer alone
    assert told == first.of(session)[-len(told) :]


def facts_of(update: Message) -> Message:
    facts: Message = update.get("_meta", {}).get("dragoman", {})
    return facts


async def test_resume_without_a_number_gives_only_what_comes(
    gateway: GatewayProcess, watch: Watch, workspace: Path
) -> None:
    session = await gateway.new_session(workspace)
    await gateway.prompt(session, "say before")
    other = await watch(gateway)
    await resume(other, session, workspace)
    await gateway.prompt(session, "say after")
    await turn_end(other, session)
    assert [u["content"]["text"] for u in by_agent(other.of(session))] == ["after"]


@pytest.mark.parametrize("after", [-1, "3", 1.5, True])
async def test_a_number_that_is_none_is_refused(gateway: GatewayProcess, workspace: Path, after: Any) -> None:
    session = await gateway.new_session(workspace)
    with pytest.raises(RpcFailure) as failure:
        await resume(gateway, session, workspace, after=after)
    assert (failure.value.code, failure.value.data["reason"]) == (-32602, "afterSeq")


async def test_resume_after_a_restart_gives_what_was_stored_and_not_seen(
    dragoman: Start, workspace: Path
) -> None:
    agents = {"scripted": resumable_agent()}
    first = await dragoman(agents=agents)
    await first.initialize(clientCapabilities=SEQ)
    session = await first.new_session(workspace)
    await first.prompt(session, "say one\nsay two\nsay three")
    position = next(
        m["params"]["_meta"]["dragoman"]["seq"]
        for m in first.received
        if is_update(session)(m) and m["params"]["update"]["content"]["text"] == "one"
    )
    await first.kill()
    second = await dragoman(agents=agents)
    await second.initialize(clientCapabilities=SEQ)
    await resume(second, session, workspace, after=position)
    await second.text(session, "three")
    assert [u["content"]["text"] for u in by_agent(second.of(session))] == ["two", "three"]


# Terminals


@pytest.fixture
async def terminal_client(dragoman: Start) -> GatewayProcess:
    gateway = await dragoman(agents={"scripted": resumable_agent()})
    gateway.on("terminal/create", {"terminalId": "term-7"})
    gateway.on("terminal/wait_for_exit", {"exitCode": 0})
    gateway.on("terminal/output", {"output": "42 tests passed", "truncated": False})
    gateway.on("terminal/release", {})
    await gateway.initialize(clientCapabilities=EVERYTHING)
    return gateway


REFERENCE = {
    "sessionUpdate": "tool_call",
    "toolCallId": "term",
    "title": "Tests",
    "content": [{"type": "terminal", "terminalId": "term-7"}],
}


async def test_a_terminal_is_replaced_by_its_last_output_in_a_replay(
    terminal_client: GatewayProcess, watch: Watch, workspace: Path
) -> None:
    session = await terminal_client.new_session(workspace)
    create = json.dumps({"sessionId": "{sid}", "command": "make"})
    read = json.dumps({"sessionId": "{sid}", "terminalId": "term-7"})
    script = [
        f"request terminal/create {create}",
        f"update {json.dumps(REFERENCE)}",
        f"request terminal/output {read}",
    ]
    turn = await terminal_client.prompt(session, "\n".join(script))
    live = next(u for u in turn.updates if u.get("toolCallId") == "term")
    assert live["content"] == REFERENCE["content"]
    other = await watch(terminal_client)
    loaded = await load(other, session, workspace)
    shown = next(u for u in loaded.replay if u.get("toolCallId") == "term")
    text = {"type": "text", "text": "42 tests passed"}
    assert shown["content"] == [{"type": "content", "content": text}]


async def test_a_terminal_whose_output_was_never_read_is_said_to_be_lost(
    terminal_client: GatewayProcess, watch: Watch, workspace: Path
) -> None:
    session = await terminal_client.new_session(workspace)
    await terminal_client.prompt(session, "terminal-keep")
    other = await watch(terminal_client)
    loaded = await load(other, session, workspace)
    shown = next(u for u in loaded.replay if u.get("toolCallId") == "term")
    assert shown["content"][0]["type"] == "content"
    assert "not kept" in shown["content"][0]["content"]["text"]


# Secrets


@pytest.mark.rule("G-163")
async def test_secrets_of_mcp_servers_are_nowhere_in_the_state(
    dragoman: Start, home: Path, workspace: Path
) -> None:
    caps = '{"sessionCapabilities": {"resume": {}}, "mcpCapabilities": {"http": true}}'
    agents = {"scripted": resumable_agent(caps=caps)}
    gateway = await dragoman(agents=agents)
    await gateway.initialize()
    servers = [
        {"name": "a", "command": "/bin/a", "args": [], "env": [{"name": "TOKEN", "value": SECRET}]},
        {"type": "http", "name": "b", "url": "http://b", "headers": [{"name": "Auth", "value": SECRET}]},
    ]
    session = await gateway.new_session(workspace, mcpServers=servers)
    await gateway.prompt(session, "say hello")
    await gateway.request("session/close", {"sessionId": session})
    await load(gateway, session, workspace, mcpServers=servers)
    await gateway.prompt(session, "crash")
    await gateway.prompt(session, "say again")
    for path in home.rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path
    gateway.leave()
    await gateway.wait_exit()
    assert SECRET not in gateway.stderr
    for path in home.rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path


@pytest.mark.rule("G-163")
async def test_the_answer_to_an_elicitation_is_not_journaled(
    dragoman: Start, home: Path, workspace: Path, signal_file: Path
) -> None:
    gateway = await dragoman(agents={"scripted": resumable_agent()})
    await gateway.initialize(clientCapabilities=EVERYTHING)
    session = await gateway.new_session(workspace)
    asked = {
        "sessionId": "{sid}",
        "message": "Password?",
        "mode": "form",
        "requestedSchema": {"type": "object"},
    }
    script = f"request-nowait elicitation/create {json.dumps(asked)}\nwait-file {signal_file}\nsay done"
    turn = gateway.start_prompt(session, script)
    question = await gateway.next_message("elicitation/create")
    gateway.reply(question, {"action": "accept", "content": {"name": SECRET}})
    await gateway.logged("question answered")
    signal_file.touch()
    await turn
    assert SECRET not in json.dumps([event.body for event in read_journal(home, session)])


async def test_a_fork_keeps_the_output_of_terminals(
    terminal_client: GatewayProcess, watch: Watch, workspace: Path
) -> None:
    session = await terminal_client.new_session(workspace)
    create = json.dumps({"sessionId": "{sid}", "command": "make"})
    await terminal_client.prompt(
        session, f"request terminal/create {create}\nupdate {json.dumps(REFERENCE)}\n"
    )
    forked = (await terminal_client.request("session/fork", setup(session, workspace)))["sessionId"]
    other = await watch(terminal_client)
    loaded = await load(other, forked, workspace)
    shown = next(u for u in loaded.replay if u.get("toolCallId") == "term")
    assert shown["content"][0]["type"] == "content"
