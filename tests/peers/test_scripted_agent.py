"""The scripted agent itself, spoken to directly over pipes."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from support.gateway_process import LINE_LIMIT, agent, end_process, gone, is_alive
from support.rpc_peer import RpcFailure, RpcPeer, is_request, is_update, text_of

StartAgent = Callable[..., Awaitable[RpcPeer]]


@pytest.fixture
async def start() -> AsyncIterator[StartAgent]:
    started: list[tuple[asyncio.subprocess.Process, RpcPeer]] = []

    async def start_agent(*flags: str) -> RpcPeer:
        process = await asyncio.create_subprocess_exec(
            *agent(*flags)["command"],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=LINE_LIMIT,
        )
        assert process.stdin and process.stdout
        peer = RpcPeer(process.stdout, process.stdin)
        started.append((process, peer))
        return peer

    yield start_agent
    for process, peer in started:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await peer.close()


async def test_a_prompt_runs_its_directives_in_order(start: StartAgent, tmp_path: Path) -> None:
    peer = await start()
    await peer.initialize()
    session = await peer.new_session(tmp_path)
    turn = await peer.prompt(session, "say one\nthink two\ntool t1 failed\nplain words\nstop max_tokens")
    kinds = [update["sessionUpdate"] for update in turn.updates]
    wanted = ["agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update"]
    assert kinds == [*wanted, "agent_message_chunk"]
    assert turn.texts == ["one", "plain words"]
    assert turn.stop_reason == "max_tokens"


async def test_every_agent_gives_the_same_session_ids(start: StartAgent, tmp_path: Path) -> None:
    peers = [await start(), await start()]
    for peer in peers:
        await peer.initialize()
        assert await peer.new_session(tmp_path) == "s1"
        assert await peer.new_session(tmp_path) == "s2"


async def test_a_cancel_ends_the_turn_that_sleeps(start: StartAgent, tmp_path: Path) -> None:
    peer = await start()
    await peer.initialize()
    session = await peer.new_session(tmp_path)
    turn = peer.start_prompt(session, "sleep-until-cancel")
    await peer.text(session, "sleeping")
    peer.cancel(session)
    assert (await turn).stop_reason == "cancelled"


async def test_early_updates_come_before_the_response_and_late_commands_after(
    start: StartAgent, tmp_path: Path
) -> None:
    peer = await start("--early-updates", "2", "--late-commands")
    await peer.initialize()
    session = await peer.new_session(tmp_path)
    await peer.next_message(is_update(session, "available_commands_update"))
    shapes = [message.get("method", "response") for message in peer.received[1:]]
    assert shapes == ["session/update", "session/update", "response", "session/update"]


async def test_a_permission_reports_the_answer_it_got(start: StartAgent, tmp_path: Path) -> None:
    peer = await start("--request-ids", "string")
    answer = {"outcome": {"outcome": "selected", "optionId": "yes"}}
    peer.on("session/request_permission", answer)
    await peer.initialize()
    turn = await peer.prompt(await peer.new_session(tmp_path), "permission")
    assert turn.report("permission") == {"result": answer}
    assert (await peer.next_message(is_request("session/request_permission")))["id"] == "ask-0"


async def test_a_terminal_lives_from_creation_to_release(start: StartAgent, tmp_path: Path) -> None:
    peer = await start()
    peer.on("terminal/create", {"terminalId": "t"})
    peer.on("terminal/wait_for_exit", {"exitCode": 0})
    peer.on("terminal/output", {"output": "hi", "truncated": False})
    peer.on("terminal/release", {})
    await peer.initialize()
    turn = await peer.prompt(await peer.new_session(tmp_path), "terminal echo hi")
    assert turn.report("terminal/output") == {"result": {"output": "hi", "truncated": False}}
    assert turn.report("terminal/release") == {"result": {}}


async def test_the_journal_file_holds_what_was_received(start: StartAgent, tmp_path: Path) -> None:
    journal = tmp_path / "received.jsonl"
    peer = await start("--journal-file", str(journal))
    await peer.initialize()
    assert await peer.request("_echo", {"n": 2**70}) == {"n": 2**70}
    methods = [json.loads(line)["method"] for line in journal.read_text().splitlines()]
    assert methods == ["initialize", "_echo"]


async def test_errors_and_unknown_methods_are_answered(start: StartAgent, tmp_path: Path) -> None:
    peer = await start("--new-error")
    await peer.initialize()
    with pytest.raises(RpcFailure, match="4242"):
        await peer.new_session(tmp_path)
    with pytest.raises(RpcFailure, match="-32601"):
        await peer.request("no/such", {})


async def test_a_crash_ends_the_process(start: StartAgent, tmp_path: Path) -> None:
    peer = await start()
    await peer.initialize()
    session = await peer.new_session(tmp_path)
    with pytest.raises(ConnectionError):
        await peer.prompt(session, "say bye\ncrash 3")
    assert [text_of(update) for update in peer.of(session)] == ["bye"]


async def test_a_relaunched_agent_works_through_its_parent(start: StartAgent, tmp_path: Path) -> None:
    peer = await start("--spawn-child")
    await peer.initialize()
    turn = await peer.prompt(await peer.new_session(tmp_path), "say hi")
    assert turn.texts == ["hi"]
    peer.eof()
    await peer.ended()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_an_orphan_outlives_its_agent(start: StartAgent, tmp_path: Path) -> None:
    peer = await start()
    await peer.initialize()
    turn = await peer.prompt(await peer.new_session(tmp_path), "orphan")
    pid = turn.report("orphan")
    peer.eof()
    await peer.ended()
    assert is_alive(pid)
    end_process(pid)
    await gone(lambda: is_alive(pid))
