"""What child processes get of the gateway's environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dragoman.agents.environment import agent_environment, inherited
from dragoman.sandbox.allowlist import allowed
from support.gateway_process import GatewayProcess, Start, agent

SECRETS = {
    "DRAGOMAN_SERVE_AUTH_TOKEN": "a token of this gateway, long enough",
    "DRAGOMAN_TOKEN": "another",
    "DRAGOMAN_AGENTS_GEMINI_ENV": '{"KEY": "of another agent"}',
    "DRAGOMAN_ACP_TEST_MODE": "1",
}
LEAK = "env | grep '^DRAGOMAN_' | cut -d= -f1 | sort | tr '\\n' ' '"
"""Prints the names of our variables that a command sees."""


def test_of_our_own_variables_only_the_marks_and_the_home_are_inherited() -> None:
    kept = {"DRAGOMAN_CUSTODY": "m4rk", "DRAGOMAN_BOX": "b0x", "DRAGOMAN_HOME": "/h", "PATH": "/bin"}
    assert inherited({**SECRETS, **kept}) == kept


def test_what_an_agents_settings_name_passes() -> None:
    env = agent_environment({"DRAGOMAN_LOG_LEVEL": "debug"}, {"DRAGOMAN_LOG_LEVEL": "info"})
    assert env["DRAGOMAN_LOG_LEVEL"] == "info"


def test_a_pattern_lets_no_secret_of_ours_into_a_box_but_its_name_does() -> None:
    host = {"DRAGOMAN_TOKEN": "secret", "NOTIFY_SOCKET": "/run/x", "FOO": "bar"}
    assert allowed(host, ["*"]) == {"FOO": "bar"}
    assert allowed(host, ["DRAGOMAN_TOKEN"]) == {"DRAGOMAN_TOKEN": "secret"}


async def seen_by(gateway: GatewayProcess, workspace: Path, directive: str, report: str) -> Any:
    await gateway.initialize()
    turn = await gateway.prompt(await gateway.new_session(workspace), directive)
    return turn.report(report)


async def test_an_agent_sees_no_secret_of_the_gateway(dragoman: Start, workspace: Path) -> None:
    agents = {"scripted": agent(env={"DRAGOMAN_MINE": "1"})}
    gateway = await dragoman("acp", "scripted", env=SECRETS, agents=agents)
    seen = await seen_by(gateway, workspace, f"sh {LEAK}", "sh")
    assert seen["out"].split() == ["DRAGOMAN_CUSTODY", "DRAGOMAN_HOME", "DRAGOMAN_MINE"]


async def seen_in_terminal(gateway: GatewayProcess, workspace: Path) -> list[str]:
    answer = await seen_by(gateway, workspace, "terminal env", "terminal/output")
    names = [line.partition("=")[0] for line in answer["result"]["output"].splitlines()]
    return sorted(name for name in names if name.startswith("DRAGOMAN_"))


async def test_a_terminal_sees_no_secret_of_the_gateway(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman("acp", "scripted", env=SECRETS, agents={"scripted": agent(serve_terminal=True)})
    assert await seen_in_terminal(gateway, workspace) == ["DRAGOMAN_CUSTODY", "DRAGOMAN_HOME"]


async def test_a_sandbox_that_is_none_passes_on_what_its_settings_name(
    dragoman: Start, workspace: Path
) -> None:
    sandboxes = {"here": {"kind": "local", "env": {"DRAGOMAN_MINE": "1"}}}
    agents = {"scripted": agent(sandbox="here", serve_terminal=True)}
    gateway = await dragoman("acp", "scripted", env=SECRETS, agents=agents, sandboxes=sandboxes)
    wanted = ["DRAGOMAN_CUSTODY", "DRAGOMAN_HOME", "DRAGOMAN_MINE"]
    assert await seen_in_terminal(gateway, workspace) == wanted
    turn = await gateway.prompt(await gateway.new_session(workspace), f"sh {LEAK}")
    assert turn.report("sh")["out"].split() == wanted


async def test_a_python_agent_sees_no_secret_of_the_gateway(dragoman: Start, workspace: Path) -> None:
    file = workspace / "mine.py"
    file.write_text(
        "import os\n"
        "async def answer(prompt):\n"
        "    return ' '.join(sorted(n for n in os.environ if n.startswith('DRAGOMAN_')))\n"
    )
    gateway = await dragoman(
        "acp", "mine", env=SECRETS, agents={"mine": {"kind": "python", "entry": f"{file}:answer"}}
    )
    await gateway.initialize()
    turn = await gateway.prompt(await gateway.new_session(workspace), "show")
    assert "".join(turn.texts).split() == ["DRAGOMAN_CUSTODY", "DRAGOMAN_HOME"]


async def test_the_watcher_gets_no_secret_of_the_gateway(dragoman: Start, workspace: Path) -> None:
    gateway = await dragoman("acp", "scripted", env=SECRETS)
    await gateway.initialize()
    await gateway.new_session(workspace)
    others = {pid for pid in gateway.processes() if pid != gateway.process.pid}
    assert len(others) >= 2
    for pid in others:
        names = [entry.partition(b"=")[0] for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")]
        assert b"DRAGOMAN_SERVE_AUTH_TOKEN" not in names
