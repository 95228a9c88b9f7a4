"""`dragoman --acp AGENT` in front of a tool that makes the box: sessions, workspaces, settings, shutdown."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from support.gateway_process import SCRIPTED_AGENT, Start, agent
from support.rpc_peer import RpcFailure

TOOL = """#!/bin/sh
# cai exec --workspace PATH --quiet -- AGENT...
echo "$@" >> "{log}"
[ "$CAI_NO_UPDATE_CHECK" = 1 ] || {{ echo "an update is there"; exit 9; }}
[ "$1" = exec ] && [ "$2" = --workspace ] && [ -d "$3" ] && [ "$4" = --quiet ] && [ "$5" = -- ] || exit 9
shift 5
exec "$@"
"""


@pytest.fixture
def cai(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    tool = folder / "cai"
    tool.write_text(TOOL.format(log=tmp_path / "cai.log"))
    tool.chmod(0o755)
    return tool


def sandboxes(cai: Path, inside: str) -> dict[str, object]:
    command = [str(cai), "exec", "--workspace", "{workspace}", "--quiet", "--", "{agent...}"]
    return {"cai": {"kind": "command", "command": command, "workspace": inside}}


@pytest.mark.rule("G-150", "G-151", "G-152")
async def test_a_terminating_proxy_over_an_existing_tool(
    dragoman: Start, cai: Path, project: Path, tmp_path: Path
) -> None:
    """Criteria 1, 2, 4 to 12: the handshake, several sessions, their ids, the tool, the root, the MCP servers."""
    inside = "/home/agent/workspace"
    heard = tmp_path / "heard.jsonl"
    scripted = agent("--journal-file", str(heard), sandbox="cai")
    gateway = await dragoman(
        "--acp", "scripted", agents={"scripted": scripted}, sandboxes=sandboxes(cai, inside)
    )
    result = await gateway.initialize()
    assert result["protocolVersion"] == 1
    server = {"name": "m", "command": "node", "args": [f"{project}/m.js", f"--x={project}", "rel"], "env": []}
    one = await gateway.new_session(project / "src", mcpServers=[server])
    two = await gateway.new_session(project)
    assert one != two
    turns = await asyncio.gather(*(gateway.prompt(each, f"say {each}") for each in (one, two)))
    assert [turn.texts for turn in turns] == [[one], [two]]
    asked = [json.loads(line) for line in heard.read_text().splitlines()]
    first = next(each["params"] for each in asked if each.get("method") == "session/new")
    assert first["cwd"] == f"{inside}/src"
    assert first["mcpServers"][0]["args"] == [f"{inside}/m.js", f"--x={project}", "rel"]
    used = [line.split(" --quiet")[0] for line in (tmp_path / "cai.log").read_text().splitlines()]
    assert used[-2:] == [f"exec --workspace {project}"] * 2


@pytest.mark.rule("G-152")
async def test_a_containai_project_is_a_workspace(dragoman: Start, cai: Path, tmp_path: Path) -> None:
    """Criterion 11."""
    project = tmp_path / "plain"
    (project / ".containai").mkdir(parents=True)
    (project / ".containai" / "config.toml").touch()
    (project / "deep" / "er").mkdir(parents=True)
    config = sandboxes(cai, "/home/agent/workspace")
    gateway = await dragoman("--acp", "scripted", agents={"scripted": agent(sandbox="cai")}, sandboxes=config)
    await gateway.initialize()
    await gateway.new_session(project / "deep" / "er")
    assert f"--workspace {project} " in (tmp_path / "cai.log").read_text().splitlines()[-1]


@pytest.mark.rule("G-152")
async def test_a_symlink_leads_to_the_same_workspace(
    dragoman: Start, cai: Path, project: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(project)
    agents = {"scripted": agent(sandbox="cai")}
    gateway = await dragoman("--acp", "scripted", agents=agents, sandboxes=sandboxes(cai, "/w"))
    await gateway.initialize()
    for folder in (project, tmp_path / "link", tmp_path / "link" / "src"):
        await gateway.new_session(folder)
    used = [line.split(" --quiet")[0] for line in (tmp_path / "cai.log").read_text().splitlines()]
    assert used[-3:] == [f"exec --workspace {project}"] * 3


@pytest.mark.parametrize("names", ["DRAGOMAN_ACP", "CAI_ACP"])
async def test_test_mode_takes_any_agent_and_direct_spawn_leaves_out_the_box(
    dragoman: Start, project: Path, tmp_path: Path, names: str
) -> None:
    """Criterion 13: `<agent> --acp` as a subprocess, whatever its name."""
    program = tmp_path / "mock-acp-server"
    program.write_text(f'#!/bin/sh\nshift\nexec {sys.executable} -S -E {SCRIPTED_AGENT} "$@"\n')
    program.chmod(0o755)
    modes = {f"{names}_TEST_MODE": "1", f"{names}_DIRECT_SPAWN": "1", "CAI_NO_UPDATE_CHECK": "1"}
    gateway = await dragoman("--acp", str(program), env=modes)
    await gateway.initialize()
    session = await gateway.new_session(project)
    assert (await gateway.prompt(session, "hello")).stop_reason == "end_turn"


async def test_sessions_end_and_so_does_everything_at_the_end_of_stdin(
    dragoman: Start, cai: Path, project: Path
) -> None:
    """Criteria 14 and 15."""
    agents = {"scripted": agent(sandbox="cai")}
    gateway = await dragoman("--acp", "scripted", agents=agents, sandboxes=sandboxes(cai, "/w"))
    await gateway.initialize()
    ended, running = await gateway.new_session(project), await gateway.new_session(project)
    await gateway.request("session/end", {"sessionId": ended})
    with pytest.raises(RpcFailure) as caught:
        await gateway.request(
            "session/prompt", {"sessionId": ended, "prompt": [{"type": "text", "text": "x"}]}
        )
    assert caught.value.code == -32002
    assert (await gateway.prompt(running, "pid")).report("pid")
    gateway.eof()
    assert await gateway.wait_exit() == 0
    await gateway.no_process_left()


async def test_stdout_is_pure_and_an_unknown_agent_is_named(dragoman: Start) -> None:
    gateway = await dragoman("--acp", "nonsense")
    assert await gateway.wait_exit() == 2
    assert gateway.received == []
    assert "nonsense" in gateway.stderr
