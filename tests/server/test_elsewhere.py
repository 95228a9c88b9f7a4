"""Sessions that another process has, asked about over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.clients.bridge_page import Page
from support.gateway_process import Start
from support.serve_process import ServeProcess


@pytest.mark.parametrize("front", ["rest", "inline notification", "inline request"])
async def test_a_turn_that_another_process_s_client_began_is_cancelled(
    serving: ServeProcess, dragoman: Start, workspace: Path, front: str
) -> None:
    editor = await dragoman("acp", "scripted", "--connect", "never")
    await editor.initialize()
    session = await editor.new_session(workspace)
    client = serving.http()
    cancel = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}
    for _ in range(2):  # the second time this process knows the session already
        turn = editor.start_prompt(session, "sleep-until-cancel dozing")
        await editor.text(session, "dozing")
        if front == "rest":
            assert (await client.post(f"/api/sessions/{session}/cancel")).status_code == 202
        else:
            asked = {**cancel, "id": 7} if front == "inline request" else cancel
            answer = await client.post("/acp/inline", json=asked)
            assert answer.status_code == (200 if "id" in asked else 202), answer.text
        assert (await turn).stop_reason == "cancelled"


@pytest.mark.parametrize("how", ["cancel", "page"])
async def test_a_process_that_was_looked_at_ends_with_its_editor(
    serving: ServeProcess, dragoman: Start, workspace: Path, how: str
) -> None:
    editor = await dragoman("acp", "scripted", "--connect", "never")
    await editor.initialize()
    session = await editor.new_session(workspace)
    if how == "cancel":
        await serving.http().post(f"/api/sessions/{session}/cancel")
    else:
        page = await Page.open(serving)
        await page.load(session)
        await page.turn(session, "say from the page")
        await page.close()
    editor.leave()
    await editor.wait_exit()
