"""What commands, servers and tools below the built-in agent get of its environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.agents.builtin_process import StartBuiltin, calls, shown
from support.agents.fake_llm import FakeLlm, call, text

SERVER = Path(__file__).parents[1] / "support" / "agents" / "mcp_server.py"
KEYS = {"OPENAI_API_KEY": "test", "DRAGOMAN_SERVE_AUTH_TOKEN": "a token of a gateway, long enough"}
LEAK = "env | grep '^DRAGOMAN_' | cut -d= -f1 | sort"


async def test_commands_and_servers_of_the_builtin_agent_see_no_secret(
    builtin: StartBuiltin, llm: FakeLlm, workspace: Path
) -> None:
    thinker = await builtin("--model", "openai:fake", "--base-url", llm.url, env=KEYS, warm=True)
    llm.tell(
        call("run", {"command": LEAK}),
        call("mcp__calc__environment", {"name": "DRAGOMAN_SERVE_AUTH_TOKEN"}),
        text("done"),
    )
    server = {"name": "calc", "command": sys.executable, "args": [str(SERVER)], "env": []}
    session = await thinker.new_session(workspace, mcpServers=[server])
    ran, asked = calls(await thinker.prompt(session, "look"))
    assert "DRAGOMAN_SERVE" not in shown(ran)
    assert "DRAGOMAN_CUSTODY" in shown(ran)
    assert "unset" in shown(asked)


async def test_git_below_the_builtin_agent_sees_no_secret(
    builtin: StartBuiltin, llm: FakeLlm, workspace: Path, tmp_path: Path
) -> None:
    """A repository may name a program that git runs whenever it lists files."""
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    hook, seen = tmp_path / "hook", tmp_path / "seen"
    hook.write_text(f"#!/bin/sh\nenv >{seen}\nprintf '\\0'\n")
    hook.chmod(0o755)
    (workspace / "a.txt").write_text("text")
    subprocess.run(["git", "-C", str(workspace), "config", "core.fsmonitor", str(hook)], check=True)
    thinker = await builtin("--model", "openai:fake", "--base-url", llm.url, env=KEYS, warm=True)
    llm.tell(call("glob", {"pattern": "*.txt"}), text("done"))
    session = await thinker.new_session(workspace)
    await thinker.prompt(session, "find")
    assert "DRAGOMAN_SERVE_AUTH_TOKEN" not in seen.read_text()
