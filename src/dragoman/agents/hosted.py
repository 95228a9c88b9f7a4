"""Agents that we host ourselves: Python in a process of its own, started like any other agent."""

from __future__ import annotations

import sys

import msgspec

from dragoman.config.model import AgentConfig

_SAFE = "-P"
"""A workspace with a `json.py` of its own must not become part of the agent."""


def builtin_command(agent: AgentConfig) -> list[str]:
    """Our own agent, told which model it has."""
    command = [*_interpreter(agent), "-m", "dragoman.builtin"]
    for flag, value in (
        ("--model", agent.model),
        ("--base-url", agent.base_url),
        ("--context-window", agent.context_window),
        ("--sandbox-files", agent.sandbox_files if agent.sandbox_files != "copy" else None),
    ):
        if value:
            command += [flag, str(value)]
    return command


def python_command(agent: AgentConfig) -> list[str]:
    """The user's own agent."""
    return [*_interpreter(agent), "-m", "dragoman.builtin.host", agent.entry or ""]


def _interpreter(agent: AgentConfig) -> list[str]:
    """The configured one, which needs Dragoman installed beside it, else ours."""
    return [*(agent.command or [sys.executable]), _SAFE]


HOSTED = {"builtin": builtin_command, "python": python_command}
"""Kinds whose command is ours to make."""


def with_command(agent: AgentConfig) -> AgentConfig:
    """The agent with the command that starts it."""
    make = HOSTED.get(agent.kind)
    return agent if make is None else msgspec.structs.replace(agent, command=make(agent))
