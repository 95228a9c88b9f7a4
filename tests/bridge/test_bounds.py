"""Commands that wait have a bound in bytes, also where reading cannot be held back."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from server.conftest import Serve
from support.clients.bridge_page import Page
from support.clients.http2_websocket import open_socket
from support.gateway_process import agent
from support.waiting import until

MANY = 40


def limited(**values: int) -> tuple[str, ...]:
    """A prefix for servers with other limits of the bridge."""
    changes = "; ".join(f"limits.{name} = {value}" for name, value in values.items())
    script = f"import runpy, sys; from dragoman.bridge import limits; {changes}; sys.argv = sys.argv[3:]; "
    return (sys.executable, "-c", script + "runpy.run_module('dragoman', run_name='__main__')")


@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/2"])
async def test_commands_of_many_bytes_wait_outside_or_are_refused(
    serve: Serve, workspace: Path, version: str
) -> None:
    serving = await serve(
        agents={"scripted": agent("--modes")},
        prefix=limited(COMMAND_BYTES=5_000, COMMAND_BYTES_WAITING=15_000),
    )
    page = Page(await (open_socket(serving, "/bridge") if version == "HTTP/2" else serving.socket("/bridge")))
    session = await page.new_session(workspace)
    page.send("send_message", sessionId=session, content="pid\nsh kill -STOP $PPID")
    pid = (await page.next("message_chunk"))["content"].removeprefix("pid ")
    await until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
    page.send("change_mode", sessionId=session, modeId="code")  # never answered: what follows waits for it
    for number in range(MANY):
        page.send(
            "edit_queued", sessionId=session, clientMessageId=f"m{number}", queuedId="x", content="x" * 1000
        )
    other = await Page.open(serving)
    if version == "HTTP/2":
        error = await page.next("error", code="too_many_commands")
        assert error["clientMessageId"] == "m13"  # thirteen of them and the one that they wait for
        assert (await page.ask("ping"))["type"] in ("ack", "error")  # the socket stays open
    assert (await other.ask("ping"))["type"] == "ack"
    assert not [event for event in page.received if event.get("clientMessageId") == "m0"]
    serving.gateway.end_agents()


async def test_an_id_of_megabytes_is_nothing_that_is_kept(page: Page) -> None:
    answer = await page.ask("leave_session", sessionId="x" * 100_000)
    assert (answer["type"], answer["code"]) == ("error", "unknown_session")
    assert "sessionId" not in answer
    answer = await page.ask("permission_response", requestId="x" * 100_000, outcome={"outcome": "cancelled"})
    assert answer["code"] == "already_answered"
