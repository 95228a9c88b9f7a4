"""What the log tells an operator, and what it keeps to itself."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

from support.clients.streamable_client import StreamableClient
from support.rpc_peer import is_request
from support.serve_process import ServeProcess

from .conftest import Serve

SECRET = "xylophone-confidential"
SAID = f"say {SECRET}\nmutter {SECRET}\npermission\nsay {SECRET}"
OF_A_SESSION = {
    "turn began": {"session", "client", "request", "agent"},
    "turn ended": {"session", "client", "request", "agent", "outcome", "seconds"},
    "question answered": {"session"},
    "request": {"client", "request"},
    "response": {"method", "path", "status"},
}


async def converse(serving: ServeProcess, workspace: Path) -> str:
    """Everything that could show words: a prompt, a title made from it, an agent's noise, a refusal with a token."""
    socket = await serving.socket(f"/acp?token={serving.token}", headers={})
    await socket.initialize()
    session = await socket.new_session(workspace)
    turn = socket.start_prompt(session, SAID)
    question = await socket.next_message(is_request("session/request_permission"))
    socket.reply(question, {"outcome": {"outcome": "selected", "optionId": "yes"}})
    await turn
    await socket.prompt(session, f"say {SECRET}\ncrash")
    socket.send(f'{{"jsonrpc": "2.0", "nonsense": "{SECRET}"'.encode())
    peer = StreamableClient(serving.http())
    await peer.initialize()
    events = await peer.listen()
    other = await peer.new_session(workspace, events)
    updates = await peer.listen(other)
    await updates.response_to(await peer.prompt(other, f"say {SECRET}"))
    wrong = serving.http(token=False)
    assert (await wrong.get(f"/readyz?token={SECRET}")).status_code == 401
    named = {"X-Request-ID": "proxy-17", "Authorization": f"Bearer {SECRET}"}
    assert (await wrong.get("/readyz", headers=named)).status_code == 401
    return session


async def logged(serving: ServeProcess) -> list[dict[str, Any]]:
    serving.gateway.process.send_signal(signal.SIGTERM)
    await serving.gateway.wait_exit()
    return [json.loads(line) for line in serving.gateway.stderr.splitlines()]


async def test_no_word_and_no_token_is_in_the_log_even_at_debug(serve: Serve, workspace: Path) -> None:
    serving = await serve("--log-level", "debug", "--log-format", "json")
    await converse(serving, workspace)
    lines = await logged(serving)
    assert len(lines) > 20
    assert SECRET not in serving.gateway.stderr
    assert serving.token not in serving.gateway.stderr


async def test_lines_say_which_session_client_and_request_they_are_about(
    serve: Serve, workspace: Path
) -> None:
    serving = await serve("--log-level", "debug", "--log-format", "json")
    session = await converse(serving, workspace)
    lines = await logged(serving)
    for message, fields in OF_A_SESSION.items():
        found = [line for line in lines if line["message"] == message]
        assert found, message
        for line in found:
            assert fields <= line.keys(), line
    ended = next(line for line in lines if line["message"] == "turn ended" and line["session"] == session)
    assert ended["outcome"] == "end_turn"
    started = [line for line in lines if line["message"] == "agent started"]
    assert all({"agent", "client", "request"} <= line.keys() for line in started)
    assert "proxy-17" in {
        line.get("request") for line in lines if line["message"].startswith("request refused")
    }


async def test_words_are_there_for_those_who_ask(serve: Serve, workspace: Path) -> None:
    serving = await serve("--log-format", "json", log={"prompts": True})
    await converse(serving, workspace)
    lines = await logged(serving)
    prompts = [line["prompt"] for line in lines if line["message"] == "turn began"]
    assert SECRET in prompts[0]
    assert serving.token not in serving.gateway.stderr
