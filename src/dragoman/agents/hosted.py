"""Agents that Dragoman hosts: Python in its own process, started like any other agent."""

from __future__ import annotations

import sys

import msgspec

from dragoman.config.model import AgentConfig

_SAFE = "-P"
"""Python option that leaves the current folder off the path: a workspace may have its own `json.py`."""


def builtin_command(agent: AgentConfig) -> list[str]:
    """The command of the built-in agent, with its model settings."""
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
    """The command of an agent that the user wrote in Python."""
    return [*_interpreter(agent), "-m", "dragoman.builtin.host", agent.entry or ""]


def _interpreter(agent: AgentConfig) -> list[str]:
    """The configured interpreter, which must have Dragoman installed, else ours."""
    return [*(agent.command or [sys.executable]), _SAFE]


HOSTED = {"builtin": builtin_command, "python": python_command}
"""By kind: builds the command of an agent that Dragoman hosts."""


def with_command(agent: AgentConfig) -> AgentConfig:
    """The agent with the command that starts it."""
    make = HOSTED.get(agent.kind)
    return agent if make is None else msgspec.structs.replace(agent, command=make(agent))
