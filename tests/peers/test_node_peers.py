"""`dragoman acp` with npm's official SDK and with acpx as its clients."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from support.gateway_process import MARK, agent, clean_environment, gone, marked_processes, toml
from support.npm_packages import installed

GATEWAY = [sys.executable, "-m", "dragoman", "acp", "scripted"]


class Surroundings:
    """A home with a scripted agent, and an environment whose processes can be found again."""

    def __init__(self, tmp_path: Path, mark: str) -> None:
        self.home, self.mark = tmp_path / "home", mark
        self.home.mkdir()
        (self.home / "config.toml").write_text(toml({"agents": {"scripted": agent()}}))
        own = {"DRAGOMAN_HOME": str(self.home), "HOME": str(tmp_path), MARK: mark}
        self.env = {**clean_environment(), **own}

    async def run(self, *command: str, cwd: Path) -> str:
        """What `command` printed; everything that it started must have ended."""
        process = await asyncio.create_subprocess_exec(
            *command, cwd=cwd, env=self.env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        output, errors = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == 0, f"{output.decode()}\n{errors.decode()}"
        await gone(lambda: marked_processes(self.mark))
        return output.decode()


@pytest.fixture
def surroundings(tmp_path: Path, request: pytest.FixtureRequest) -> Surroundings:
    return Surroundings(tmp_path, f"{request.node.name}-{tmp_path.name}-{id(request)}")


async def test_the_official_typescript_sdk_does_a_whole_turn_two_sessions_and_a_cancel(
    surroundings: Surroundings, workspace: Path
) -> None:
    peers = installed()
    output = await surroundings.run(
        "node", str(peers / "client.mjs"), str(workspace), *GATEWAY, cwd=workspace
    )
    seen: dict[str, Any] = json.loads(output)
    assert (seen["version"], seen["exit"]) == (1, 0)
    assert seen["stops"] == ["end_turn", "end_turn", "cancelled"]
    assert len(set(seen["ids"])) == 2
    allowed = 'permission {"result": {"outcome": {"outcome": "selected", "optionId": "yes"}}}'
    assert seen["texts"] == {"one": ["hello", allowed, "beside"], "two": ["sleeping"]}
    assert "tool_call" in seen["kinds"]


def acpx(peers: Path, workspace: Path, *words: str) -> list[str]:
    raw = " ".join(GATEWAY)
    options = ["--agent", raw, "--cwd", str(workspace), "--timeout", "50"]
    return ["node", str(peers / "node_modules" / "acpx" / "dist" / "cli.js"), *options, *words]


async def test_acpx_does_a_whole_turn_with_a_permission(surroundings: Surroundings, workspace: Path) -> None:
    command = acpx(
        installed(), workspace, "--approve-all", "--format", "json", "exec", "say hello\npermission"
    )
    output = await surroundings.run(*command, cwd=workspace)
    messages = [json.loads(line) for line in output.splitlines()]
    updates = [m["params"]["update"] for m in messages if m.get("method") == "session/update"]
    texts = [u["content"]["text"] for u in updates if u["sessionUpdate"] == "agent_message_chunk"]
    assert texts[0] == "hello"
    assert '"optionId": "yes"' in texts[1]
    assert messages[-1]["result"] == {"stopReason": "end_turn"}


async def test_acpx_denies_and_the_agent_hears_it(surroundings: Surroundings, workspace: Path) -> None:
    command = acpx(installed(), workspace, "--deny-all", "--format", "quiet", "exec", "permission")
    try:
        output = await surroundings.run(*command, cwd=workspace)
    except AssertionError as failure:  # acpx may end with a code of its own for a denied tool
        output = str(failure)
    assert '"optionId": "no"' in output
