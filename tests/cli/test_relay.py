"""`dragoman acp --connect` and a real `dragoman serve`: one set of sessions, seen from both."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from support.gateway_process import GatewayProcess, Start
from support.rpc_peer import is_request, text_of
from support.serve_process import ServeProcess, UrlFraming
from support.store.failing_store import WRITES, Faults

Serve = Callable[..., Awaitable[ServeProcess]]


@pytest.fixture
async def serve(dragoman: Start) -> AsyncIterator[Serve]:
    started: list[ServeProcess] = []

    async def start(**sections: Any) -> ServeProcess:
        framing = UrlFraming()
        gateway = await dragoman("serve", "--port", "0", framing=framing, **sections)
        started.append(ServeProcess(gateway, await framing.url()))
        return started[-1]

    yield start
    for serving in started:
        await serving.close()


async def editor_of(dragoman: Start, *arguments: str) -> GatewayProcess:
    editor = await dragoman("acp", *(arguments or ("--connect", "always")))
    await editor.initialize()
    return editor


@pytest.mark.parametrize("mode", ["auto", "always"])
async def test_a_session_is_seen_from_both_sides(
    dragoman: Start, serve: Serve, workspace: Path, mode: str
) -> None:
    serving = await serve()
    editor = await editor_of(dragoman, "scripted", "--connect", mode)
    session = await editor.new_session(workspace)
    browser = await serving.socket()
    await browser.initialize()
    await browser.request("session/resume", {"sessionId": session, "cwd": str(workspace)})
    turn = editor.start_prompt(session, "say one\npermission\nsay two")
    question = await browser.next_message(is_request("session/request_permission"))
    browser.reply(question, {"outcome": {"outcome": "selected", "optionId": "yes"}})
    assert (await turn).stop_reason == "end_turn"
    await browser.text(session, "two")
    assert (await browser.prompt(session, "say from the browser")).texts == ["from the browser"]
    await editor.text(session, "from the browser")


async def test_never_has_sessions_of_its_own_that_both_can_see(
    dragoman: Start, serve: Serve, workspace: Path
) -> None:
    serving = await serve()
    editor = await editor_of(dragoman, "scripted", "--connect", "never")
    session = await editor.new_session(workspace)
    await editor.prompt(session, "say here")
    browser = await serving.socket()
    await browser.initialize()
    await browser.request("session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []})
    await browser.text(session, "here")


async def test_requests_in_flight_at_the_end_of_stdin_are_answered(
    dragoman: Start, serve: Serve, workspace: Path
) -> None:
    await serve()
    editor = await dragoman("acp", "scripted")
    asked = [
        editor.start_request("initialize", {"protocolVersion": 1}),
        editor.start_request("session/new", {"cwd": str(workspace), "mcpServers": []}),
    ]
    editor.leave()
    for request in asked:
        assert "result" in await editor.response(request)
    assert await editor.wait_exit() == 0


@pytest.mark.parametrize("how", ["kill", "stop"])
async def test_the_editor_outlives_a_restart_of_serve(
    dragoman: Start, serve: Serve, workspace: Path, how: str
) -> None:
    serving = await serve()
    editor = await editor_of(dragoman)
    session = await editor.new_session(workspace)
    assert (await editor.prompt(session, "flood 500 100")).stop_reason == "end_turn"
    turn = editor.start_prompt(session, "flood 500 100\nsay all\nsleep-until-cancel")
    await editor.text(session, "all")
    if how == "kill":
        await serving.gateway.kill()
    else:
        await serving.gateway.stop()
    await serve()
    error = (await turn).error
    assert error is not None and ("restarted" in error.message or "shutting down" in error.message)
    assert (await editor.prompt(session, "say again")).texts == ["again"]
    counted = [text.split()[0] for text in map(text_of, editor.of(session)) if text[:1].isdigit()]
    assert counted == [str(number) for number in range(500)] * 2
    assert '"seq"' not in str(editor.received)


@pytest.mark.parametrize("connect", ["always", "never"])
async def test_an_editor_sees_every_update_also_after_serve_could_not_store_some_and_was_restarted(
    dragoman: Start, serve: Serve, workspace: Path, faults: Faults, connect: str
) -> None:
    """Relayed to `serve`, or in a process of its own beside it."""
    serving = await serve(**faults.settings, sessions={"write_patience": 0.05})
    editor = await editor_of(dragoman, "scripted", "--connect", connect)
    browser = await serving.socket()
    await browser.initialize()
    session = await browser.new_session(workspace)
    await browser.prompt(session, "say before")
    await editor.request("session/load", {"sessionId": session, "cwd": str(workspace), "mcpServers": []})
    faults.fail(*WRITES)
    assert len((await editor.prompt(session, "flood 43 20")).texts) >= 43
    await serving.gateway.kill()
    faults.heal()
    await serve()
    for turn in ("first", "second"):
        texts = (await editor.prompt(session, "flood 20 20")).texts
        assert [text.split()[0] for text in texts if text[:1].isdigit()] == list(map(str, range(20))), turn
