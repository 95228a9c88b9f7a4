"""How each agent is made to run our hook: a table by program.

The user's own settings stay in force: ours are merged into what is there, and nothing is written but in the private
folder of the agent process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dragoman.agents.hooks import claude_acp, codex, opencode, qwen
from dragoman.agents.hooks.passed import Passed, Passing
from dragoman.config.model import AgentConfig
from dragoman.gateway.ports.agent import program_names

VARIABLE = "DRAGOMAN_HOOK"
"""Has the address of the socket, and the secret, in the environment of the agent."""
BY_PROGRAM: dict[str, Passing] = {
    "claude-agent-acp": claude_acp.PASSING,
    "codex-acp": codex.ADAPTER,
    "opencode": opencode.PASSING,
    "qwen": qwen.PASSING,
}


def passing_for(agent: AgentConfig) -> Passing | None:
    """How the hook is passed to this agent; None if that is not known."""
    if agent.kind != "acp":
        return codex.NATIVE if agent.kind == "codex" else None
    return next((BY_PROGRAM[name] for name in program_names(agent.command) if name in BY_PROGRAM), None)


def pass_hook(passing: Passing, folder: Path, address: str, env: Mapping[str, str]) -> Passed:
    given = passing.give(folder, env)
    return replace(given, env={**given.env, VARIABLE: address})
