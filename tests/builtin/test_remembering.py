"""What the built-in agent is allowed for longer than once is remembered by the gateway, and not by the agent."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from support.agents.builtin_process import calls
from support.gateway_process import GatewayProcess, Start

OURS = {"agents": {"builtin": {"kind": "builtin"}}, "policy": {"remember": "gateway"}}


async def start(dragoman: Start) -> tuple[GatewayProcess, list[Any]]:
    """A gateway, and the questions that its client is asked, each answered with "in this project"."""
    gateway = await dragoman("acp", "builtin", env={"OPENAI_API_KEY": ""}, **OURS)
    questions: list[Any] = []

    def answer(params: Any) -> Any:
        questions.append(params)
        return {"outcome": {"outcome": "selected", "optionId": "dragoman:project"}}

    gateway.on("session/request_permission", answer)
    await gateway.initialize()
    return gateway, questions


async def run(gateway: GatewayProcess, session: str, line: str) -> str:
    return str(calls(await gateway.prompt(session, f"/run {line}"))[0]["status"])


async def test_the_gateway_remembers_and_forgets(dragoman: Start, workspace: Path, home: Path) -> None:
    gateway, questions = await start(dragoman)
    session = await gateway.new_session(workspace)
    assert [await run(gateway, session, "wc -l a.txt || true") for _ in range(2)] == ["completed"] * 2
    assert len(questions) == 1
    assert not (home / "builtin" / "allowed").exists()
    (home / "remembered.json").unlink()
    await run(gateway, session, "wc -l a.txt || true")
    assert len(questions) == 2


async def test_old_answers_of_the_agent_hold_only_as_remembered_ones(
    dragoman: Start, workspace: Path, home: Path
) -> None:
    (workspace / ".git").mkdir()
    first, _ = await start(dragoman)
    await run(first, await first.new_session(workspace), "ls")
    await first.stop()
    old = home / "builtin" / "allowed"
    old.mkdir()
    for cwd in (workspace, workspace / "never"):
        name = hashlib.sha256(os.fsencode(cwd)).hexdigest()[:32]
        (old / f"{name}.json").write_text(json.dumps(["run:wc"]))
        (old / f"{name}.json").chmod(0o600)
    (home / "remembered.json").unlink()

    again, questions = await start(dragoman)
    session = await again.new_session(workspace)
    assert (await run(again, session, "wc --version"), questions) == ("completed", [])
    (kept,) = json.loads((home / "remembered.json").read_text())["memories"]
    assert kept["pattern"] == [{"command": [["wc"]], "agent": ["builtin"]}]
    await again.logged("1 files? of remembered answers")
    (home / "remembered.json").unlink()
    await run(again, session, "wc --version")
    assert len(questions) == 1
