"""What the boxes of all kinds share: one workspace, its mounts, its path map, its environment."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from dragoman.agents.custody import Custody
from dragoman.agents.environment import QUIET
from dragoman.agents.secrets import SecretError, resolve_secrets
from dragoman.config.model import AgentConfig, SandboxConfig
from dragoman.gateway.path_mapping.paths import PathMap
from dragoman.gateway.ports.agent import AgentEnd, AgentUnavailable
from dragoman.gateway.ports.sandbox import Enclosed, Shared
from dragoman.sandbox.allowlist import GENERAL, LOGIN_VARIABLES, TOOL, allowed, login_of
from dragoman.sandbox.entry import EntryError, entry
from dragoman.sandbox.mounts import Mount, mounts_of, path_map, shared, spelled_map
from dragoman.sandbox.own_folders import OwnFolder, conflict
from dragoman.wire.errors import invalid_params

SYSTEM_KEY = "the system"
"""What makes a box show the folders that programs lie in, whatever else does."""


@dataclass(frozen=True, slots=True)
class Place:
    """Which box: the sandbox's name and settings, over which workspace, on which machine."""

    name: str
    config: SandboxConfig
    workspace: str
    custody: Custody
    runtime: Path
    """For sockets and locks."""
    environ: Mapping[str, str]
    logins: tuple[Path, ...] = ()
    """Login files of the agents that run in it."""
    lasting: bool = True
    """False for a box that is only made to ask an agent what it can do."""
    own: Callable[[], Sequence[OwnFolder]] = tuple
    """Looks at Dragoman's own folders."""

    def error(self, problem: str, fix: str) -> AgentUnavailable:
        """What is wrong with the box and what to do about it."""
        return AgentUnavailable(f"The sandbox {self.name} ({self.config.kind}) {problem}. {fix}")


class WorkspaceBox(ABC):
    """Implements `Box`, but for how a command gets inside."""

    NAMES: tuple[str, ...] = GENERAL
    """Variables of this machine that everything inside may know."""
    apart = True
    elsewhere = False
    remembers = True

    def __init__(self, place: Place) -> None:
        self.place = place
        self.elsewhere = self.elsewhere or place.config.elsewhere
        self.mounts = mounts_of(place.workspace, place.config)
        self.paths = path_map(self.mounts)
        self._shared = shared(self.mounts)
        # With the login files: a container shows them to all that runs in it.
        self.key = digest(place.name, repr(place.config), self.mounts[0].real, *map(str, place.logins))
        self.environment: Mapping[str, str] = {
            **allowed(place.environ, (*self.NAMES, *place.config.pass_env)),
            **place.config.env,
        }

    @property
    def name(self) -> str:
        return self.place.name

    def identity(self, agent: AgentConfig) -> str | None:
        settings = msgspec.json.encode(msgspec.structs.replace(self.place.config, env={})).decode()
        return "\n".join([f"sandbox {self.name}", settings, *agent.command])

    def check(self, cwd: str, directories: Sequence[str]) -> None:
        for path in (cwd, *directories):
            if not any(self._holds(mount, path) for mount in self.mounts):
                shown = ", ".join(mount.host for mount in self.mounts)
                raise invalid_params(
                    f"{path} does not exist in the sandbox {self.name}, which shows only {shown}: use a folder in "
                    f"there, or add it to sandboxes.{self.name}.mounts or .read_only",
                    "cwd" if path == cwd else "additionalDirectories",
                    sandbox=self.name,
                    path=path,
                )

    def check_shown(self) -> None:
        """Raise `RpcError` if it shows one of Dragoman's own folders."""
        own = self.place.own()
        for path, key in self.shown():
            trouble = conflict(path, own, inside=key != SYSTEM_KEY)
            if trouble is None:
                continue
            what = f"the workspace {path}" if key == "workspace" else f"{path} (from {key})"
            raise invalid_params(
                f"The sandbox {self.name} may not show {what}, which {trouble}: an agent inside would find tokens and "
                "sockets there. Use another folder, or move Dragoman's with DRAGOMAN_HOME",
                "workspace",
                sandbox=self.name,
                workspace=self.place.workspace,
                path=path,
            )

    def shown(self) -> Iterator[tuple[str, str]]:
        """Files and folders of this machine that are seen inside, and what made them so."""
        settings = f"sandboxes.{self.name}"
        yield self.place.workspace, "workspace"
        yield from ((mount.host, f"{settings}.mounts or .read_only") for mount in self.mounts[1:])
        yield from ((str(file), f"{settings}.login_files") for file in self.place.logins)

    def shared(self) -> Sequence[Shared]:
        return [] if self.elsewhere else self._shared

    async def agent(self, name: str, agent: AgentConfig, cwd: str | None) -> Enclosed:
        env = {**QUIET, **self.environment, **await self._login(name, agent), **agent.env}
        words = [self.inside(word) for word in agent.command]
        return await self.enclose(words, env, self.folder_inside(cwd or self.place.workspace), agent=True)

    async def command(self, words: Sequence[str], env: Mapping[str, str], cwd: str) -> Enclosed:
        inside = self.folder_inside(cwd)
        return await self.enclose(list(words), {**env, "PWD": inside}, inside, agent=False)

    @abstractmethod
    async def enclose(self, words: list[str], env: dict[str, str], cwd: str, *, agent: bool) -> Enclosed:
        """The command that runs `words` inside, in the box's folder `cwd`.

        Unless they start an agent, words and variables come from inside the box: they decide nothing out here.
        """

    def explain(self, end: AgentEnd) -> str:
        return ""

    async def close(self) -> None:  # noqa: B027 - most have nothing to leave
        """Leave the box; whatever is not to be kept of it goes."""

    @property
    def outside(self) -> dict[str, str]:
        """The environment of a tool of this machine that makes the box or leads into it; nothing of it is for inside."""
        return allowed(self.place.environ, (*GENERAL, *TOOL))

    def entry(
        self, words: Sequence[str], env: Mapping[str, str], folder: str = ".", *, stdin: bool
    ) -> tuple[list[str], bytes]:
        """The command inside, with its variables before its stdin."""
        try:
            return entry(words, env, folder, stdin=stdin)
        except EntryError as error:
            raise self.place.error(str(error), "Use a file instead") from error

    def paths_for(self, cwd: str | None) -> PathMap | None:
        return self.paths if cwd is None else spelled_map(self.mounts, cwd)

    def inside(self, path: str) -> str:
        return self.paths.to_box.path(path) if self.paths is not None else path

    def folder_inside(self, path: str) -> str:
        """As `inside` for a folder that exists: whatever it is called, the box has it by its real name."""
        real = str(Path(path).resolve())
        return self.inside(real if any(mount.holds(real) for mount in self.mounts) else path)

    def _holds(self, mount: Mount, path: str) -> bool:
        return mount.holds(path)

    async def _login(self, name: str, agent: AgentConfig) -> dict[str, str]:
        """By name: what logs the agent in, and nothing else of this machine's environment."""
        try:
            secrets = await resolve_secrets(agent.secrets, self.place.environ)
        except SecretError as error:
            raise AgentUnavailable(f"The agent {name} lacks a secret: {error}") from error
        return {**allowed(self.place.environ, LOGIN_VARIABLES.get(login_of(name, agent), ())), **secrets}


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()[:16]
