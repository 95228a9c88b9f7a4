"""A process that an agent started, on our unix sockets: it may look, and change nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from server.conftest import Serve
from support.gateway_process import Start

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="custody knows its processes on Linux only")

CLIENT = """
import json, socket, sys
link = socket.socket(socket.AF_UNIX)
link.connect(sys.argv[1])
lines = link.makefile("rw")
def ask(id, method, **params):
    lines.write(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}) + "\\n")
    lines.flush()
    while True:
        answer = json.loads(lines.readline())
        if answer.get("id") == id and "method" not in answer:
            return answer
ask(1, "initialize", protocolVersion=1)
session = sys.argv[2]
listed = ask(2, "session/list")
prompted = ask(3, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "mine"}])
closed = ask(4, "session/close", sessionId=session)
forged = ask(5, "_dragoman/answer", sessionId=session, requestId="x", answerer={"name": "ann", "role": "admin"})
print(json.dumps([listed, prompted, closed, forged]))
"""


@pytest.fixture
def client(tmp_path: Path) -> Path:
    file = tmp_path / "client.py"
    file.write_text(CLIENT.replace("\\\\n", "\\n"))
    return file


def check(answers: list[dict[str, Any]], session: str) -> None:
    listed, *others = answers
    assert [each["sessionId"] for each in listed["result"]["sessions"]] == [session]
    for answer in others:
        assert answer["error"]["data"]["needed"] == "control"
        assert "a process that an agent started has the role observe" in answer["error"]["message"]


@pytest.mark.parametrize("away", ["", "setsid "])
async def test_what_an_agent_started_only_observes_on_the_socket_of_serve(
    serve: Serve, home: Path, workspace: Path, client: Path, away: str
) -> None:
    serving = await serve()
    socket = await serving.socket()
    await socket.initialize()
    session = await socket.new_session(workspace)
    found = next(home.rglob("*.sock"))
    turn = await socket.prompt(session, f"sh {away}{sys.executable} {client} {found} {session}")
    report = turn.report("sh")
    assert report["code"] == 0, report
    check(json.loads(report["out"]), session)


async def test_what_an_agent_started_only_observes_at_an_editors_process(
    dragoman: Start, home: Path, workspace: Path, client: Path
) -> None:
    editor = await dragoman("acp", "scripted", "--connect", "never")
    await editor.initialize()
    session = await editor.new_session(workspace)
    found = next(home.rglob("*.sock"))
    turn = await editor.prompt(session, f"sh {sys.executable} {client} {found} {session}")
    report = turn.report("sh")
    assert report["code"] == 0, report
    check(json.loads(report["out"]), session)


async def test_the_mark_is_enough_when_the_environment_is_gone(
    serve: Serve, home: Path, workspace: Path, client: Path
) -> None:
    serving = await serve()
    socket = await serving.socket()
    await socket.initialize()
    session = await socket.new_session(workspace)
    found = next(home.rglob("*.sock"))
    turn = await socket.prompt(session, f"sh env -i {sys.executable} {client} {found} {session}")
    check(json.loads(turn.report("sh")["out"]), session)


async def test_a_process_of_the_user_is_served(
    serve: Serve, dragoman: Start, home: Path, workspace: Path
) -> None:
    await serve()
    editor = await dragoman("acp", "scripted", "--connect", "always")
    await editor.initialize()
    session = await editor.new_session(workspace)
    assert (await editor.prompt(session, "fine")).texts == ["fine"]
