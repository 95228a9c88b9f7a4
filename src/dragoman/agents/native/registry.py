"""Which adapter speaks for which kind of agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from dragoman.agents.adapter import AdapterHandle, Tongue, Voice
from dragoman.agents.native.native import Native
from dragoman.gateway.ports.agent import AgentHandle
from dragoman.rpc.link import LinkHandler


def _claude(native: Native, voice: Voice) -> Tongue:
    from dragoman.agents.claude.agent import ClaudeAgent

    return ClaudeAgent(native, voice)


def _codex(native: Native, voice: Voice) -> Tongue:
    from dragoman.agents.codex.agent import CodexAgent

    return CodexAgent(native, voice)


TONGUES: Mapping[str, Callable[[Native, Voice], Tongue]] = {"claude": _claude, "codex": _codex}


def begin(native: Native, handler: LinkHandler) -> AgentHandle:
    """An agent that waits for its first request."""
    handle = AdapterHandle(handler, native.name)
    handle.begin(_tongue(native, handle))
    return handle


def _tongue(native: Native, voice: Voice) -> Tongue:
    kind, other = native.config.kind, native.other
    if other is None:
        return TONGUES[kind](native, voice)
    from dragoman.agents.native.duet import Duet
    from dragoman.agents.native.duet_state import Acquaintances

    guest = other.config.kind
    make_host, make_guest = partial(TONGUES[kind], native), partial(TONGUES[guest], other)
    return Duet(voice, kind, make_host, guest, make_guest, Acquaintances(native.state))
