"""Launches agents of every kind: those that speak ACP themselves, those behind an adapter, and remote ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from dragoman import __version__
from dragoman.agents.custody import Custody
from dragoman.agents.environment import agent_environment
from dragoman.agents.hooks.passing import pass_hook, passing_for
from dragoman.agents.known import ADAPTED, AgentError, NotInstalled, locate, require
from dragoman.agents.process import AgentProcess, BoxedAgent
from dragoman.agents.program import SpawnError
from dragoman.agents.secrets import SecretError, resolve_secrets
from dragoman.config.model import AgentConfig
from dragoman.gateway.ports.agent import AgentHandle, AgentUnavailable, HookHandler
from dragoman.gateway.ports.sandbox import Box
from dragoman.rpc.link import LinkHandler

if TYPE_CHECKING:
    from dragoman.agents.native.registry import Native
    from dragoman.agents.remote.launch import Remotes


@dataclass(frozen=True, slots=True)
class _Start:
    """An agent that is to be started; see `Launcher.launch`."""

    name: str
    agent: AgentConfig
    handler: LinkHandler
    cwd: str | None
    box: Box | None
    hooks: HookHandler | None


class ProcessLauncher:
    """Starts agents as processes of this machine; implements `Launcher`."""

    def __init__(
        self,
        custody: Custody,
        max_message_bytes: int,
        *,
        agents: Mapping[str, AgentConfig] | None = None,
        state: Path | None = None,
        hooks: Callable[[], Path] | None = None,
    ) -> None:
        """`agents` may be guests in another agent's session; adapters store the user's choices in `state`.

        `hooks` makes the folder for the sockets of agents' hooks; without it there are none.
        """
        self._custody = custody
        self._agents = agents or {}
        self._state = state
        self._max_message_bytes = max_message_bytes
        self._remotes: Remotes | None = None
        self._hooks = hooks

    def identity(self, agent: AgentConfig) -> str | None:
        """The program, and an interpreter's script, with size and time: a new version is another agent.

        Includes our own version: agents that we host change with it.
        """
        program = locate(agent.command, agent.env.get("PATH"))
        if program is None:
            return None
        files = [program, *(Path(part) for part in agent.command[1:2] if part.startswith("/"))]
        return "\n".join([*(_stamp(file) for file in files), *agent.command[1:], agent.kind, __version__])

    async def launch(
        self,
        name: str,
        agent: AgentConfig,
        handler: LinkHandler,
        cwd: str | None,
        box: Box | None = None,
        hooks: HookHandler | None = None,
    ) -> AgentHandle:
        if agent.kind == "remote":
            return await self._reach(name, agent, handler)
        start = _Start(name, agent, handler, cwd, box, hooks)
        return self._launch_adapter(start) if agent.kind in ADAPTED else await self._launch_hooked(start)

    async def _launch_hooked(self, start: _Start) -> AgentProcess:
        """Start an agent so that it runs our hook before each tool call, where that is known how and `hooks` answers."""
        agent = start.agent
        passing = passing_for(agent) if start.box is None else None
        if passing is None or start.hooks is None or self._hooks is None:
            return await self._launch_program(start)
        from dragoman.agents.hooks.process import HookedAgent, private_folder
        from dragoman.agents.hooks.server import HookServer

        try:
            server = HookServer(private_folder(self._hooks()), start.hooks, passing.manner)
            await server.start()
        except OSError as error:
            raise AgentUnavailable(
                f"The agent {start.name} cannot be started: there is no socket for its hook ({error})"
            ) from error
        try:
            passed = pass_hook(passing, server.folder, server.address, {**os.environ, **agent.env})
            command = [*agent.command, *passed.arguments]
            told = msgspec.structs.replace(agent, command=command, env={**agent.env, **passed.env})
            running = await self._launch_program(replace(start, agent=told), HookedAgent)
        except BaseException:
            server.close()
            raise
        assert isinstance(running, HookedAgent)
        running.use_hooks(server, passed.rewrite)
        return running

    async def _reach(self, name: str, agent: AgentConfig, handler: LinkHandler) -> AgentHandle:
        """Connect to a remote agent; the modules for that are imported on first use."""
        if self._remotes is None:
            from dragoman.agents.remote.launch import Remotes

            self._remotes = Remotes(self._max_message_bytes)
        return await self._remotes.launch(name, agent, handler)

    def _launch_adapter(self, start: _Start) -> AgentHandle:
        """Begin an adapter for an agent with its own protocol; a session that needs its program starts it."""
        from dragoman.agents.native.registry import begin

        if start.box is None:
            try:
                require(start.name, start.agent)
            except NotInstalled as error:
                raise AgentUnavailable(_sentence(str(error))) from error
        return begin(self._native(start, self._guest(start)), start.handler)

    def _guest(self, start: _Start) -> Native | None:
        """The other agent with its own protocol, if installed; None in a box, where that is not known."""
        host = start.agent
        if start.box is not None or not host.duet:
            return None
        for name, agent in self._agents.items():
            if agent.kind not in ADAPTED or agent.kind == host.kind or not agent.duet or agent.sandbox:
                continue
            if locate(agent.command, agent.env.get("PATH")) is not None:
                return self._native(replace(start, name=name, agent=agent, cwd=None, hooks=None), None)
        return None

    def _native(self, start: _Start, other: Native | None) -> Native:
        from dragoman.agents.native.registry import Native

        agent, boxed = start.agent, start.box is not None

        async def spawn(arguments: Sequence[str], lines: LinkHandler, folder: str | None) -> AgentProcess:
            told = msgspec.structs.replace(agent, command=[*agent.command, *arguments])
            cwd = start.cwd if boxed else folder
            return await self._launch_hooked(replace(start, agent=told, handler=lines, cwd=cwd))

        environ = agent_environment(os.environ, agent.env)
        return Native(start.name, agent, spawn, environ, boxed=boxed, other=other, state=self._state)

    async def _launch_program(
        self, start: _Start, process: type[AgentProcess] = AgentProcess
    ) -> AgentProcess:
        name, agent, cwd = start.name, start.agent, start.cwd
        if start.box is not None:
            return await self._launch_inside(start, start.box)
        try:
            require(name, agent)
            secrets = await resolve_secrets(agent.secrets, os.environ)
            place = {} if cwd is None else {"PWD": cwd}  # the inherited one is the gateway's own folder
            return await process.spawn(
                agent.command,
                handler=start.handler,
                custody=self._custody,
                env=agent_environment(os.environ, {**place, **secrets, **agent.env}),
                cwd=cwd,
                max_message_bytes=self._max_message_bytes,
            )
        except NotInstalled as error:
            raise AgentUnavailable(_sentence(str(error))) from error
        except (SpawnError, AgentError, SecretError) as error:
            raise AgentUnavailable(f"The agent {name} cannot be started. {error}") from error

    async def _launch_inside(self, start: _Start, box: Box) -> AgentProcess:
        inside = await box.agent(start.name, start.agent, start.cwd)
        try:
            running = await BoxedAgent.spawn(
                inside.words,
                handler=start.handler,
                custody=self._custody,
                env=inside.env,
                cwd=inside.cwd,
                max_message_bytes=self._max_message_bytes,
            )
        except SpawnError as error:
            await inside.leave()
            raise AgentUnavailable(
                f"The agent {start.name} cannot be started in the sandbox {box.name}. {error}"
            ) from error
        running.enter_box(inside)
        return running


def _stamp(file: Path) -> str:
    try:
        real = file.resolve()
        status = real.stat()
    except OSError:
        return str(file)
    return f"{real} {status.st_size} {status.st_mtime_ns}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
