"""How much of an agent the rules see is told by REST and to pages, for its present mode."""

from __future__ import annotations

import sys
from pathlib import Path

from server.conftest import Serve
from support.clients.bridge_page import Page

SCRIPTED_CODEX = Path(__file__).parents[1] / "support" / "agents" / "scripted_codex.py"


async def test_a_session_tells_the_level_of_its_mode(serve: Serve, workspace: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-S", "-E", str(SCRIPTED_CODEX)]
    codex = {"kind": "codex", "command": command, "env": {"CODEX_HOME": str(tmp_path / "codex")}}
    serving = await serve(agents={"codex": codex, "builtin": {"kind": "builtin"}}, default_agent="codex")
    http = serving.http()
    levels = {each["name"]: each["mediation"] for each in (await http.get("/api/agents")).json()["agents"]}
    assert levels["builtin"]["level"] == "full" and "full-access" in levels["codex"]["neverAsks"]
    page = await Page.open(serving)
    session = await page.new_session(workspace, agent="codex")
    created = next(event for event in page.received if event["type"] == "session_created")
    assert created["session"]["mediation"]["level"] == levels["codex"]["level"]
    await page.ask("change_mode", sessionId=session, modeId="full-access")
    shown = (await http.get(f"/api/sessions/{session}")).json()["mediation"]
    assert shown["level"] == "none" and "full-access" in shown["why"]
    [hello] = [event["agents"] for event in page.received if event["type"] == "hello"]
    hello = {each["name"]: each["mediation"] for each in hello}
    assert hello["builtin"]["level"] == "full" and hello["builtin"]["why"]
