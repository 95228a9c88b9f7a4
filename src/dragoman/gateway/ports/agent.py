"""What the gateway needs of an agent, however it runs: a link that speaks ACP, and custody of what is behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dragoman.config.model import AgentConfig
from dragoman.rpc.link import Link, LinkHandler

if TYPE_CHECKING:
    from dragoman.gateway.ports.sandbox import Box


@dataclass(frozen=True, slots=True)
class AgentEnd:
    """How an agent ended."""

    exit_code: int | None = None
    signal: str | None = None
    stderr_tail: str = ""
    reason: str | None = None
    """In words, where there is no process whose end could tell."""

    def describe(self) -> str:
        if self.reason is not None:
            return self.reason
        if self.signal is not None:
            return f"was ended by {self.signal}"
        if self.exit_code is not None:
            return f"exited with code {self.exit_code}"
        return "closed its output"


class AgentHandle(Link, Protocol):
    """A running agent."""

    @property
    def pid(self) -> int | None: ...

    def end(self) -> AgentEnd:
        """How it ended, as far as is known yet."""

    async def runs_since(self, moment: float) -> bool:
        """Whether anything of it runs that was started after `moment` of the monotonic clock, as far as we can see."""

    async def stop(self) -> None:
        """End it with its whole process tree: asked first, then forced, within a bounded time."""


class AgentUnavailable(Exception):
    """The agent cannot be started; the message says what to do about it."""


class Launcher(Protocol):
    """Starts agents by their configuration."""

    def identity(self, agent: AgentConfig) -> str | None:
        """Changes whenever the agent's program or arguments do: the key of the capability cache; None if unknown."""

    async def launch(
        self, name: str, agent: AgentConfig, handler: LinkHandler, cwd: str | None, box: Box | None = None
    ) -> AgentHandle:
        """Start it, inside a sandbox if there is one; raises `AgentUnavailable`."""


class CapabilityCache(Protocol):
    """Remembers `initialize` results over runs of the gateway."""

    def get(self, identity: str, fingerprint: str) -> dict[str, object] | None: ...

    def put(self, identity: str, fingerprint: str, result: dict[str, object]) -> None: ...
