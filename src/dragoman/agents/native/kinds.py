"""Which adapter speaks for which kind of agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dragoman.agents.adapter import AdapterHandle, Tongue
from dragoman.agents.native.native import Native
from dragoman.gateway.ports.agent import AgentHandle
from dragoman.rpc.link import LinkHandler


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
