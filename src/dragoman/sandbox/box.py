"""The base of all kinds of boxes: one workspace, its mounts, its path map, its environment."""

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
from dragoman.config.model import AgentConfig
from dragoman.config.sandbox_model import SandboxConfig
from dragoman.gateway.path_mapping.paths import PathMap
from dragoman.gateway.ports.agent import AgentEnd, AgentUnavailable
from dragoman.gateway.ports.sandbox import Enclosed, Shared
from dragoman.sandbox.allowlist import GENERAL, LOGIN_VARIABLES, TOOL, allowed, login_of
from dragoman.sandbox.entry import EntryError, entry
from dragoman.sandbox.mounts import Mount, mounts_of, path_map, shared, spelled_map
from dragoman.sandbox.own_folders import OwnFolder, conflict
from dragoman.wire.errors import invalid_params

SYSTEM_KEY = "the system"
"""The key in `WorkspaceBox.shown` for system folders, which no setting adds."""


@dataclass(frozen=True, slots=True)
class Place:
    """The parameters of a box: the sandbox's name and settings, its workspace, and what it needs of this machine."""

    name: str
    config: SandboxConfig
    workspace: str
    custody: Custody
    runtime: Path
    """For sockets and locks."""
    environ: Mapping[str, str]
    logins: tuple[Path, ...] = ()
    """Login files of the agents that run in the box."""
    lasting: bool = True
    """False for a box that only serves to query an agent's capabilities."""
    own: Callable[[], Sequence[OwnFolder]] = tuple
    """Returns Dragoman's own folders, as they are now."""

    def error(self, problem: str, fix: str) -> AgentUnavailable:
        """An error that says what is wrong with the box and how to fix it."""
        return AgentUnavailable(f"The sandbox {self.name} ({self.config.kind}) {problem}. {fix}")


class WorkspaceBox(ABC):
    """Implements `Box`, except for `enclose`, which differs by kind."""

    NAMES: tuple[str, ...] = GENERAL
    """Variables of this machine that all processes inside get."""
    apart = True
    elsewhere = False
    remembers = True

    def __init__(self, place: Place) -> None:
        self.place = place
        self.elsewhere = self.elsewhere or place.config.elsewhere
        self.mounts = mounts_of(place.workspace, place.config)
        self.paths = path_map(self.mounts)
        self._shared = shared(self.mounts)
        # With the login files: a container shows them to all processes in it.
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
        """Raise `RpcError` if the box shows one of Dragoman's own folders."""
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
        """Files and folders of this machine that the box shows, each with the setting that adds it."""
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

        Unless `agent`, words and variables come from inside the box and must not affect anything outside.
        """

    def explain(self, end: AgentEnd) -> str:
        return ""

    async def close(self) -> None:  # noqa: B027 - most kinds have nothing to close
        """Close the box, and remove it unless it is configured to stay."""

    @property
    def outside(self) -> dict[str, str]:
        """The environment of the tool that makes or enters the box; not passed on inside."""
        return allowed(self.place.environ, (*GENERAL, *TOOL))

    def entry(
        self, words: Sequence[str], env: Mapping[str, str], folder: str = ".", *, stdin: bool
    ) -> tuple[list[str], bytes]:
        """The command inside, and the bytes before its stdin that set its variables."""
        try:
            return entry(words, env, folder, stdin=stdin)
        except EntryError as error:
            raise self.place.error(str(error), "Use a file instead") from error

    def paths_for(self, cwd: str | None) -> PathMap | None:
        return self.paths if cwd is None else spelled_map(self.mounts, cwd)

    def inside(self, path: str) -> str:
        return self.paths.to_box.path(path) if self.paths is not None else path

    def folder_inside(self, path: str) -> str:
        """As `inside`, for an existing folder: the box mounts it by its real path, so symlinks are resolved first."""
        real = str(Path(path).resolve())
        return self.inside(real if any(mount.holds(real) for mount in self.mounts) else path)

    def _holds(self, mount: Mount, path: str) -> bool:
        return mount.holds(path)

    async def _login(self, name: str, agent: AgentConfig) -> dict[str, str]:
        """The agent's credentials: its login variables and its configured secrets."""
        try:
            secrets = await resolve_secrets(agent.secrets, self.place.environ)
        except SecretError as error:
            raise AgentUnavailable(f"The agent {name} lacks a secret: {error}") from error
        return {**allowed(self.place.environ, LOGIN_VARIABLES.get(login_of(name, agent), ())), **secrets}


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()[:16]
