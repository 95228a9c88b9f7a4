"""What a terminal prints is told while it runs, in pieces that add up, and not without end."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from dragoman.gateway.session.terminals.live_terminals import (
    CLIENT_INTERVAL,
    DROPPED,
    LIVE_CHARACTERS,
    _Journaled,
)
from server.conftest import Serve, serve
from support.clients.bridge_page import Page
from support.clients.sample_answers import EVERYTHING
from support.gateway_process import agent
from support.rpc_peer import Message, is_request, is_update

__all__ = ["serve"]

TWO_STEPS = "echo one; while [ ! -e go ]; do sleep 0.02; done; echo two\n"


def printed(page: Page, session: str) -> list[str]:
    return [event["output"] for event in page.numbered(session) if event["type"] == "terminal_output"]


async def test_a_page_sees_what_a_command_prints_while_it_runs(serve: Serve, workspace: Path) -> None:
    (workspace / "steps.sh").write_text(TWO_STEPS)
    serving = await serve(agents={"scripted": agent(serve_terminal=True)})
    page = await Page.open(serving)
    session = await page.new_session(workspace)
    page.send("send_message", sessionId=session, content="terminal sh steps.sh")
    await page.next("terminal_output", output="one\n")
    (workspace / "go").touch()
    await page.next("turn_complete")
    assert "".join(printed(page, session)) == "one\ntwo\n"
    (ended,) = [event for event in page.numbered(session) if "exitStatus" in event]
    assert ended["exitStatus"]["exitCode"] == 0
    late = await Page.open(serving)
    await late.load(session)
    assert "".join(printed(late, session)) == "one\ntwo\n"


async def test_a_page_sees_output_of_a_command_that_a_dead_gateway_ran(serve: Serve, workspace: Path) -> None:
    (workspace / "steps.sh").write_text(TWO_STEPS)
    agents = {"scripted": agent(serve_terminal=True)}
    first = await serve(agents=agents)
    page = await Page.open(first)
    session = await page.new_session(workspace)
    page.send("send_message", sessionId=session, content="terminal sh steps.sh")
    await page.next("terminal_output", output="one\n")
    await first.gateway.kill()
    again = await Page.open(await serve(agents=agents))
    await again.load(session)
    assert "".join(printed(again, session)) == "one\n"


async def test_a_page_sees_what_an_editor_s_own_terminal_prints(serve: Serve, workspace: Path) -> None:
    serving = await serve()
    editor = await serving.socket()
    await editor.initialize(clientCapabilities=EVERYTHING)
    session = await editor.new_session(workspace)
    page = await Page.open(serving)
    await page.load(session)
    editor.on("terminal/create", {"terminalId": "mine"})
    editor.on("terminal/output", {"output": "so far\n", "truncated": False})
    editor.on("terminal/release", {})
    turn = editor.start_prompt(session, "terminal sh steps.sh")
    await page.next("terminal_output", terminalId="mine", output="so far\n")
    done = {"output": "so far\ndone\n", "truncated": False, "exitStatus": {"exitCode": 0, "signal": None}}
    editor.on("terminal/output", done)
    asked = await editor.next_message(is_request("terminal/wait_for_exit"))
    editor.reply(asked, {"exitCode": 0, "signal": None})
    assert (await turn).stop_reason == "end_turn"
    await page.next("turn_complete")
    assert "".join(printed(page, session)) == "so far\ndone\n"


async def test_a_command_that_prints_without_end_does_not_fill_the_journal(
    serve: Serve, workspace: Path
) -> None:
    page = await Page.open(await serve(agents={"scripted": agent(serve_terminal=True)}))
    session = await page.new_session(workspace)
    (workspace / "much.sh").write_text("yes 0123456789 | head -c 6000000; echo; echo last\n")
    await page.turn(session, "terminal sh much.sh")
    told = "".join(printed(page, session))
    assert len(told) <= LIVE_CHARACTERS + 1024 * 1024 + len(DROPPED)
    assert told.endswith("last\n")
    (ended,) = [event for event in page.numbered(session) if "exitStatus" in event]
    assert ended["truncated"] is True


async def test_who_looks_on_sees_what_a_terminal_of_a_shared_agent_prints(
    serve: Serve, workspace: Path
) -> None:
    serving = await serve(agents={"scripted": agent(share="all")})
    editor = await serving.socket()
    await editor.initialize(clientCapabilities=EVERYTHING)
    session = await editor.new_session(workspace)
    other = await serving.socket()
    await other.initialize()
    await other.request("session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []})
    editor.on("terminal/create", {"terminalId": "mine"})
    editor.on("terminal/output", {"output": "so far\n", "truncated": False})
    editor.on("terminal/release", {})
    turn = editor.start_prompt(session, "terminal-keep\nsleep-until-cancel")

    def shows_output(message: Message) -> bool:
        return is_update(session, "tool_call_update")(message) and "so far" in str(message)

    await other.next_message(shows_output)
    editor.cancel(session)
    assert (await turn).stop_reason == "cancelled"


async def test_an_editor_that_does_not_answer_is_asked_once(serve: Serve, workspace: Path) -> None:
    serving = await serve()
    editor = await serving.socket()
    await editor.initialize(clientCapabilities=EVERYTHING)
    session = await editor.new_session(workspace)
    page = await Page.open(serving)
    await page.load(session)
    editor.on("terminal/create", {"terminalId": "mine"})
    turn = editor.start_prompt(session, "terminal sh steps.sh")
    asked = await editor.next_message(is_request("terminal/output"))
    await asyncio.sleep(2.5 * CLIENT_INTERVAL)  # that nothing comes can only be waited for
    again = [message for message in editor.received if is_request("terminal/output")(message)]
    assert again == [asked]
    (waiting,) = [message for message in editor.received if is_request("terminal/wait_for_exit")(message)]
    editor.on("terminal/output", {"output": "", "truncated": False})
    editor.on("terminal/release", {})
    editor.reply(asked, {"output": "", "truncated": False})
    editor.reply(waiting, {"exitCode": 0, "signal": None})
    assert (await turn).stop_reason == "end_turn"


@given(st.lists(st.text("ab\n", max_size=400), max_size=12), st.integers(min_value=300, max_value=2000))
def test_pieces_add_up_as_long_as_the_terminal_keeps_its_output(pieces: list[str], limit: int) -> None:
    told, output, journaled = _Journaled(), "", ""
    for piece in pieces:
        output += piece
        news = told.news(output[-limit:] if len(output) > limit else output)
        if news is not None:
            told.add(news)
            journaled += news
    if len(output) <= limit:
        assert journaled == output
