"""The interface of sandboxes: which one a session's agent runs in, and how to start a command inside."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dragoman.config.model import AgentConfig
from dragoman.gateway.path_mapping.paths import PathMap
from dragoman.gateway.ports.agent import AgentEnd


async def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Enclosed:
    """A command line for this machine that runs a command inside a sandbox."""

    words: Sequence[str]
    env: Mapping[str, str]
    cwd: str | None = None
    preface: bytes = b""
    """Lines to write to its stdin first."""
    leave: Callable[[], Awaitable[None]] = _nothing
    """Ends what the command left running inside; called once, when the process on this machine has ended."""


@dataclass(frozen=True, slots=True)
class Shared:
    """A file or folder of this machine that is also visible inside a sandbox."""

    path: str
    writable: bool
    covered: tuple[str, ...] = ()
    """Paths below it that something else hides inside."""
    hidden: frozenset[tuple[int, int]] = frozenset()
    """Device and inode of each covered path when the sandbox was made: an agent may rename a folder above it."""


class Box(Protocol):
    """The sandbox of one workspace; all sessions below that root share it."""

    @property
    def name(self) -> str:
        """The sandbox's name in the configuration."""

    @property
    def key(self) -> str:
        """Identifies the sandbox: two different ones have different keys."""

    def paths_for(self, cwd: str | None) -> PathMap | None:
        """The path map for a client that names its folder `cwd`; None if all paths are the same inside."""

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables of this machine's environment that commands inside get."""

    def identity(self, agent: AgentConfig) -> str | None:
        """The key of the capability cache: changes when the agent inside may have changed; None if unknown."""

    def check(self, cwd: str, directories: Sequence[str]) -> None:
        """Raise `RpcError` for folders that do not exist inside."""

    @property
    def apart(self) -> bool:
        """Whether the sandbox isolates this machine from what runs inside; False for a sandbox by name only."""

    @property
    def elsewhere(self) -> bool:
        """Whether the files inside are on another machine."""

    @property
    def remembers(self) -> bool:
        """Whether the home folder inside outlives the agent's process."""

    def shared(self) -> Sequence[Shared]:
        """The files and folders of this machine that are visible inside, and may be served to the agent."""

    async def agent(self, name: str, agent: AgentConfig, cwd: str | None) -> Enclosed:
        """The command of an agent; makes the sandbox if there is none yet. Raises `AgentUnavailable`."""

    async def command(self, words: Sequence[str], env: Mapping[str, str], cwd: str) -> Enclosed:
        """Any other command, in a folder given by its path on this machine. Raises `AgentUnavailable`."""

    def explain(self, end: AgentEnd) -> str:
        """What the end of a process inside means for the sandbox, and what to do; empty if nothing."""


class Boxes(Protocol):
    """All sandboxes of a gateway."""

    @property
    def chosen(self) -> str | None:
        """The command line's sandbox, for all sessions of this process."""

    def find(
        self,
        name: str,
        agent: AgentConfig,
        cwd: str | None,
        workspace: str | None,
        wanted: str | None = None,
    ) -> Box | None:
        """The sandbox for a session; None for an agent that runs without one. Raises `RpcError`.

        `wanted` is the name that the session itself asks for.
        Without `cwd`, before any session: a sandbox with an empty workspace, to ask an agent for its capabilities.
        """

    async def close(self) -> None:
        """Leave every sandbox, and remove those that the configuration does not keep."""
