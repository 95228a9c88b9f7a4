"""The adapters by kind of agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dragoman.agents.adapter import AdapterHandle, AgentAdapter, Spawn, Upstream
from dragoman.config.model import AgentConfig
from dragoman.gateway.ports.agent import AgentHandle
from dragoman.rpc.link import LinkHandler


@dataclass(frozen=True, slots=True)
class Native:
    name: str
    config: AgentConfig
    spawn: Spawn
    environ: Mapping[str, str]
    """The environment of the program outside of a box."""
    boxed: bool
    other: Native | None = None
    """The other kind of agent, if installed: the guest of a duet."""
    state: Path | None = None
    """Folder for the user's choices."""


def _claude(native: Native, upstream: Upstream) -> AgentAdapter:
    from dragoman.agents.claude.agent import ClaudeAgent

    return ClaudeAgent(native, upstream)


def _codex(native: Native, upstream: Upstream) -> AgentAdapter:
    from dragoman.agents.codex.agent import CodexAgent

    return CodexAgent(native, upstream)


ADAPTERS: Mapping[str, Callable[[Native, Upstream], AgentAdapter]] = {"claude": _claude, "codex": _codex}


def begin(native: Native, handler: LinkHandler) -> AgentHandle:
    """Create the adapter of an agent; returns its handle, which waits for the first request."""
    handle = AdapterHandle(handler, native.name)
    handle.begin(_adapter(native, handle))
    return handle


def _adapter(native: Native, upstream: Upstream) -> AgentAdapter:
    kind, other = native.config.kind, native.other
    if other is None:
        return ADAPTERS[kind](native, upstream)
    from dragoman.agents.native.duet import Duet
    from dragoman.agents.native.duet_state import DuetStates

    guest = other.config.kind
    make_host, make_guest = partial(ADAPTERS[kind], native), partial(ADAPTERS[guest], other)
    return Duet(upstream, kind, make_host, guest, make_guest, DuetStates(native.state))
