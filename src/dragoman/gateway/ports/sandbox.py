"""What the gateway needs of a sandbox: which box a session's agent runs in, and how to start something inside."""

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
    """A command as it is started on this machine so that it runs inside a box."""

    words: Sequence[str]
    env: Mapping[str, str]
    cwd: str | None = None
    preface: bytes = b""
    """Lines for its stdin, before anything else."""
    leave: Callable[[], Awaitable[None]] = _nothing
    """Ends what it left running inside; called once, when the process on this machine has ended."""


@dataclass(frozen=True, slots=True)
class Shared:
    """A file or folder of this machine that is the same inside a box."""

    path: str
    writable: bool
    covered: tuple[str, ...] = ()
    """What of it something else hides inside."""
    hidden: frozenset[tuple[int, int]] = frozenset()
    """Device and inode of what is covered, as it was when the box was made: an agent may rename a folder above it."""


class Box(Protocol):
    """The box of one workspace; all sessions below that root share it."""

    @property
    def name(self) -> str:
        """The sandbox's, as the configuration calls it."""

    @property
    def key(self) -> str:
        """Differs wherever two boxes differ."""

    def paths_for(self, cwd: str | None) -> PathMap | None:
        """How the client that calls its folder `cwd` names what is inside; None where every path is the same."""

    @property
    def environment(self) -> Mapping[str, str]:
        """What commands inside may know of this machine's environment."""

    def identity(self, agent: AgentConfig) -> str | None:
        """Changes whenever the agent inside may be another: the key of the capability cache; None if unknown."""

    def check(self, cwd: str, directories: Sequence[str]) -> None:
        """Raise `RpcError` for folders that do not exist inside."""

    @property
    def apart(self) -> bool:
        """Whether it keeps this machine from what runs inside; False for a sandbox by name only."""

    @property
    def elsewhere(self) -> bool:
        """Whether the files inside are another machine's."""

    @property
    def remembers(self) -> bool:
        """Whether the home inside is still there when a process has ended."""

    def shared(self) -> Sequence[Shared]:
        """What of this machine is seen inside, and may be served to what runs there."""

    async def agent(self, name: str, agent: AgentConfig, cwd: str | None) -> Enclosed:
        """An agent's command; makes the box if there is none yet. Raises `AgentUnavailable`."""

    async def command(self, words: Sequence[str], env: Mapping[str, str], cwd: str) -> Enclosed:
        """Any other command, in a folder named by its path on this machine. Raises `AgentUnavailable`."""

    def explain(self, end: AgentEnd) -> str:
        """What the end of a process inside says about the box, and what to do; empty if nothing."""


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
        """The box for a session, None for an agent that runs beside the gateway; raises `RpcError`.

        `wanted` is the name that the session itself asks for.
        Without a folder, before any session: a box over an empty workspace, to ask an agent what it can do.
        """

    async def close(self) -> None:
        """Leave every box, and remove those that are not to be kept."""
