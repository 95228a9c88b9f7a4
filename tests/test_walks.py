"""How many files one message visits, counted in a running gateway (`docs/architecture.md` shows the walks)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from server.conftest import Serve, serve
from support import walk
from support.clients.bridge_page import Page
from support.walk import ANSWER, QUESTION, UPDATE, Walk

__all__ = ["serve"]

YES = {"outcome": "selected", "optionId": "yes"}
TIMES = 3
"""How often each message is sent."""


@pytest.fixture
def steps(tmp_path: Path) -> Path:
    return tmp_path / "steps"


@pytest.fixture
def gates(tmp_path: Path) -> list[Path]:
    """Files for which the agent waits, so that each update comes alone."""
    return [tmp_path / f"gate{number}" for number in range(TIMES + 1)]


def script(gates: list[Path]) -> str:
    return "\n".join(["first", *(f"wait-file {gate}\n{UPDATE} {gate.name}" for gate in gates)])


def traced(steps: Path) -> tuple[str, ...]:
    return (sys.executable, walk.__file__, str(steps))


async def test_an_update_to_a_websocket_client(
    serve: Serve, workspace: Path, steps: Path, gates: list[Path]
) -> None:
    serving = await serve(prefix=traced(steps))
    socket = await serving.socket()
    await socket.initialize()
    session = await socket.new_session(workspace)
    turn = socket.start_prompt(session, script(gates))
    await socket.text(session, "first")
    for gate in gates:
        gate.touch()
        await socket.text(session, f"{UPDATE} {gate.name}")
    await turn
    found = walk.read(steps)[UPDATE]
    assert len(found.files) <= 12 and len(found.revisits) <= 1, str(found)


async def test_an_update_to_a_page(serve: Serve, workspace: Path, steps: Path, gates: list[Path]) -> None:
    serving = await serve(prefix=traced(steps))
    page = await Page.open(serving)
    session = await page.new_session(workspace)
    page.send("send_message", sessionId=session, content=script(gates))
    await page.next("message_chunk", content="first")
    for gate in gates:
        gate.touch()
        await page.next("message_chunk", content=f"{UPDATE} {gate.name}")
    await page.next("turn_complete")
    found = walk.read(steps)[UPDATE]
    assert len(found.files) <= 14, str(found)


async def test_a_permission_to_a_page_and_back(
    serve: Serve, workspace: Path, steps: Path, gates: list[Path]
) -> None:
    serving = await serve(prefix=traced(steps))
    page = await Page.open(serving)
    session = await page.new_session(workspace)
    lines = "\n".join(f"permission\nwait-file {gate}" for gate in gates)
    page.send("send_message", sessionId=session, content=lines)
    for gate in gates:
        asked = await page.next("permission_request")
        page.send("permission_response", requestId=asked["requestId"], outcome=YES)
        await page.next("message_chunk")
        gate.touch()
    await page.next("turn_complete")
    walks = walk.read(steps)
    both = Walk("there and back", walks[QUESTION].route + walks[ANSWER].route)
    assert len(both.files) <= 16, str(both)
    assert "bridge/background_client.py" not in walks[QUESTION].steps, "a page is not sent a request too"
