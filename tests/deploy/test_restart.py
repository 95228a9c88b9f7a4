"""What `systemctl restart` does: SIGTERM to the gateway alone, then a start; nobody loses a session."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path

from support.gateway_process import Start
from support.rpc_peer import Message, is_update, text_of
from support.serve_process import ServeProcess, Socket, UrlFraming

SHUTDOWN = 10.0
SEQ = {"clientCapabilities": {"_meta": {"dragoman": {"seq": True}}}}


async def start(dragoman: Start) -> ServeProcess:
    framing = UrlFraming()
    gateway = await dragoman("serve", "--port", "0", framing=framing)
    return ServeProcess(gateway, await framing.url())


async def test_a_session_in_mid_turn_goes_on_after_a_restart(dragoman: Start, workspace: Path) -> None:
    first = await start(dragoman)
    socket = await first.socket()
    await socket.initialize(**SEQ)
    session = await socket.new_session(workspace)
    asked = socket.start_request(
        "session/prompt",
        {"sessionId": session, "prompt": [{"type": "text", "text": "flood 20000 60\nignore-cancel"}]},
    )
    await socket.next_message(lambda m: is_update(session)(m) and _number(m) > 300)

    began = time.monotonic()
    first.gateway.process.send_signal(signal.SIGTERM)
    assert await first.gateway.wait_exit() == 0
    assert time.monotonic() - began < SHUTDOWN
    assert (await socket.response(asked))["error"]["data"]["reason"] == "shutdown"
    assert await socket.closed() == 1012
    await first.gateway.no_process_left()
    had = _numbers(socket, session)

    second = await start(dragoman)
    again = await second.socket()
    await again.initialize(**SEQ)
    after = {"sessionId": session, "cwd": str(workspace), "_meta": {"dragoman": {"afterSeq": had[-1]}}}
    await again.request("session/resume", after)
    done = await again.prompt(session, "say back again")
    assert done.stop_reason == "end_turn"
    got = _numbers(again, session)
    assert got == sorted(got)
    assert got[0] > had[-1]
    said = [text for text in map(text_of, [*socket.of(session), *again.of(session)]) if text]
    assert said[-1] == "back again"
    flood = [int(text.partition(" ")[0]) for text in said[:-1] if text[0].isdigit()]
    assert flood == list(range(len(flood)))
    await second.close()
    await first.close()


async def test_many_sessions_in_mid_turn_end_in_time(dragoman: Start, workspace: Path) -> None:
    serving = await start(dragoman)
    sockets = [await serving.socket() for _ in range(8)]
    await asyncio.gather(*(socket.initialize() for socket in sockets))
    sessions = await asyncio.gather(*(socket.new_session(workspace) for socket in sockets))
    prompts = [
        {"sessionId": each, "prompt": [{"type": "text", "text": "say on\nignore-cancel"}]}
        for each in sessions
    ]
    asked = [
        socket.start_request("session/prompt", prompt)
        for socket, prompt in zip(sockets, prompts, strict=True)
    ]
    for socket, session in zip(sockets, sessions, strict=True):
        await socket.text(session, "on")
    began = time.monotonic()
    serving.gateway.process.send_signal(signal.SIGTERM)
    assert await serving.gateway.wait_exit() == 0
    assert time.monotonic() - began < SHUTDOWN
    for socket, request in zip(sockets, asked, strict=True):
        assert (await socket.response(request))["error"]["data"]["reason"] == "shutdown"
    await serving.gateway.no_process_left()
    await serving.close()


def _numbers(socket: Socket, session: str) -> list[int]:
    found = [_number(message) for message in socket.received if is_update(session)(message)]
    return [number for number in found if number]


def _number(message: Message) -> int:
    """Its number in the journal; 0 for what is in none, such as that a client has caught up."""
    return int(message["params"].get("_meta", {}).get("dragoman", {}).get("seq", 0))
