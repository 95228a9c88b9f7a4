"""Chooses the sandbox of a session, and holds the boxes: one per sandbox, workspace and set of login files."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from dragoman.agents.custody import Custody
from dragoman.agents.environment import QUIET, agent_environment
from dragoman.config.model import AgentConfig, Config
from dragoman.config.paths import Paths
from dragoman.config.sandbox_model import SandboxConfig
from dragoman.config.sections.workspaces import rules_for
from dragoman.config.variables import DIRECT_SPAWN, is_on
from dragoman.gateway.ports.agent import AgentEnd
from dragoman.gateway.ports.sandbox import Box, Enclosed
from dragoman.sandbox.allowlist import GENERAL, TOOL, allowed, login_files, login_of
from dragoman.sandbox.box import Place, WorkspaceBox
from dragoman.sandbox.bubblewrap import BubblewrapBox
from dragoman.sandbox.own_folders import bound, own_folders
from dragoman.sandbox.podman import ContainerBox
from dragoman.sandbox.ssh import SshBox
from dragoman.wire.errors import RpcError, invalid_params

AGENT_WORDS = "{agent...}"


class LocalBox(WorkspaceBox):
    """The kind `local`: no confinement, only a sandbox's settings (variables and allowed roots)."""

    apart = False

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.paths = None
        self.environment = agent_environment(place.environ, place.config.env)

    def paths_for(self, cwd: str | None) -> None:
        """None: paths are the same inside."""

    def folder_inside(self, path: str) -> str:
        return path

    def check(self, cwd: str, directories: Sequence[str]) -> None:
        """Accepts every folder of this machine."""

    def shown(self) -> Iterator[tuple[str, str]]:
        """Nothing: an agent without a box sees the whole machine anyway."""
        return iter(())

    async def enclose(self, words: list[str], env: dict[str, str], cwd: str, *, agent: bool) -> Enclosed:
        return Enclosed(words, {**env, "PWD": cwd}, cwd)


class CommandBox(WorkspaceBox):
    """A box made by an external tool, such as `cai exec`; only as safe as that tool."""

    NAMES = (*GENERAL, *TOOL)

    async def enclose(self, words: list[str], env: dict[str, str], cwd: str, *, agent: bool) -> Enclosed:
        outside = self.paths.to_host.path(cwd) if self.paths is not None else cwd
        values = {"{workspace}": self.place.workspace, "{cwd}": outside}
        # The tool decides about the variables that it already has; the others are passed inside.
        tools = {**QUIET, **allowed(self.place.environ, (*self.NAMES, *self.place.config.pass_env))}
        told = {name: value for name, value in env.items() if tools.get(name) != value and name != "PWD"}
        preface = b""
        if told:
            words, preface = self.entry(words, told, stdin=agent)
        return Enclosed(_filled(self.place.config.command, values, words), tools, outside, preface)

    def shown(self) -> Iterator[tuple[str, str]]:
        yield from super().shown()
        yield from ((path, f"sandboxes.{self.name}.command") for path in bound(self.place.config.command))

    def explain(self, end: AgentEnd) -> str:
        return f" (it was started by {self.place.config.command[0]!r}, see sandboxes.{self.name}.command)"


def _filled(template: list[str], values: Mapping[str, str], agent: list[str]) -> list[str]:
    """The template's words with the values filled in; a word `{agent...}` becomes all of the agent's words."""
    filled: list[str] = []
    for word in template:
        if word == AGENT_WORDS:
            filled += agent
            continue
        for name, value in values.items():
            word = word.replace(name, value)
        filled.append(word)
    return filled


KINDS: Mapping[str, type[WorkspaceBox]] = {
    "local": LocalBox,
    "bubblewrap": BubblewrapBox,
    "podman": ContainerBox,
    "docker": ContainerBox,
    "ssh": SshBox,
    "command": CommandBox,
}
PLAIN: Mapping[str, SandboxConfig] = {"bubblewrap": SandboxConfig(kind="bubblewrap")}
"""Sandboxes that need no settings; `local` is no sandbox."""


class Sandboxes:
    """Implements `Boxes`."""

    def __init__(
        self,
        config: Config,
        paths: Paths,
        custody: Custody,
        chosen: str | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """`chosen` is the sandbox that the command line sets for all sessions."""
        self._config = config
        self._paths = paths
        self._custody = custody
        self.chosen = chosen
        self._environ = os.environ if environ is None else environ
        self._boxes: dict[tuple[str, str, tuple[Path, ...]], WorkspaceBox] = {}
        self._empty: Path | None = None

    def find(
        self,
        name: str,
        agent: AgentConfig,
        cwd: str | None,
        workspace: str | None,
        wanted: str | None = None,
    ) -> Box | None:
        sandbox = self._sandbox(agent, cwd, wanted)
        if sandbox is None:
            return None
        config = self._config.sandboxes.get(sandbox) or PLAIN[sandbox]
        logins = tuple(login_files(login_of(name, agent), config.login_files))
        if workspace is None:
            box = self._box(sandbox, config, str(self._empty_workspace()), logins, lasting=False)
            box.check_shown()
            return box
        _check_workspace(sandbox, config, workspace)
        box = self._box(sandbox, config, workspace, logins, lasting=True)
        box.check(cwd or workspace, ())
        box.check_shown()
        return box

    async def close(self) -> None:
        boxes, self._boxes = list(self._boxes.values()), {}
        await asyncio.gather(*(box.close() for box in boxes))
        if self._empty is not None:
            shutil.rmtree(self._empty, ignore_errors=True)

    def _sandbox(self, agent: AgentConfig, cwd: str | None, wanted: str | None) -> str | None:
        """The sandbox set by the command line, the session, the first matching workspace rule, or the agent."""
        if is_on(self._environ, DIRECT_SPAWN):
            return None
        name = (self._prescribed(cwd) if cwd is not None else None) or agent.sandbox
        if wanted is not None:
            self._check_wanted(wanted, name)
        name = self.chosen or wanted or name
        plain_local = name == "local" and name not in self._config.sandboxes
        return None if plain_local else name

    def _prescribed(self, cwd: str) -> str | None:
        named = (rule.sandbox for rule in rules_for(cwd, self._config.workspaces) if rule.sandbox is not None)
        return next(named, None)

    def _check_wanted(self, wanted: str, prescribed: str | None) -> None:
        """Raise unless the sandbox exists; a session must not choose `local` where the settings prescribe a sandbox."""
        kinds = {name: config.kind for name, config in self._config.sandboxes.items()}
        kinds = {"local": "local", **dict.fromkeys(PLAIN, "bubblewrap"), **kinds}
        if wanted not in kinds:
            raise invalid_params(
                f"There is no sandbox {wanted}; there are {', '.join(sorted(kinds))}",
                "sandbox",
                sandbox=wanted,
            )
        if kinds[wanted] == "local" and kinds.get(prescribed or "local") != "local":
            raise invalid_params(
                f"The settings prescribe the sandbox {prescribed} here; {wanted} would be none",
                "sandbox",
                sandbox=wanted,
            )

    def _box(
        self, name: str, config: SandboxConfig, workspace: str, logins: tuple[Path, ...], *, lasting: bool
    ) -> WorkspaceBox:
        key = (name, workspace, logins)
        if key not in self._boxes:
            place = Place(
                name,
                config,
                workspace,
                self._custody,
                self._paths.runtime_dir,
                self._environ,
                logins,
                lasting,
                partial(own_folders, self._paths),
            )
            self._boxes[key] = KINDS[config.kind](place)
        return self._boxes[key]

    def _empty_workspace(self) -> Path:
        """An empty workspace in which an agent is queried before any session: nothing in it to read or damage."""
        if self._empty is None:
            self._empty = Path(tempfile.mkdtemp(prefix="dragoman-empty-"))
        return self._empty


def _check_workspace(name: str, config: SandboxConfig, workspace: str) -> None:
    real = Path(workspace).resolve()
    if config.kind == "local":
        pass
    elif Path.home().resolve().is_relative_to(real):
        raise _refused(
            name, workspace, "it holds your home folder, which no sandbox is shown: open a project below it"
        )
    roots = [Path(root).expanduser().resolve() for root in config.roots]
    if roots and not any(real.is_relative_to(root) for root in roots):
        raise _refused(
            name,
            workspace,
            f"it is outside of {', '.join(config.roots)}: add it to sandboxes.{name}.roots or use another sandbox",
        )


def _refused(name: str, workspace: str, why: str) -> RpcError:
    return invalid_params(
        f"The sandbox {name} may not have the workspace {workspace}: {why}",
        "workspace",
        sandbox=name,
        workspace=workspace,
    )
