"""Which adapter speaks for which kind of agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dragoman.agents.adapter import AdapterHandle, Spawn, Tongue
from dragoman.config.model import AgentConfig
from dragoman.gateway.ports.agent import AgentHandle
from dragoman.rpc.link import LinkHandler


@dataclass(frozen=True, slots=True)
class Native:
    """What an adapter gets to work with."""

    name: str
    config: AgentConfig
    spawn: Spawn
    environ: Mapping[str, str]
    """What the program starts with, where it runs beside the gateway."""
    boxed: bool


def _claude(native: Native, handle: AdapterHandle) -> Tongue:
    from dragoman.agents.claude.agent import ClaudeAgent

    return ClaudeAgent(native, handle)


def _codex(native: Native, handle: AdapterHandle) -> Tongue:
    from dragoman.agents.codex.agent import CodexAgent

    return CodexAgent(native, handle)


TONGUES: Mapping[str, Callable[[Native, AdapterHandle], Tongue]] = {"claude": _claude, "codex": _codex}


def begin(native: Native, handler: LinkHandler) -> AgentHandle:
    """An agent that waits for its first request."""
    handle = AdapterHandle(handler, native.name)
    handle.begin(TONGUES[native.config.kind](native, handle))
    return handle
