"""Launches agents of every kind: those that speak ACP themselves, those behind an adapter, and remote ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
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
        if agent.kind in ADAPTED:
            return self._launch_adapter(name, agent, handler, cwd, box, hooks)
        return await self._launch_hooked(name, agent, handler, cwd, box, hooks)

    async def _launch_hooked(
        self,
        name: str,
        agent: AgentConfig,
        handler: LinkHandler,
        cwd: str | None,
        box: Box | None,
        hooks: HookHandler | None,
    ) -> AgentProcess:
        """Start an agent so that it runs our hook before each tool call, where that is known how and `hooks` answers."""
        passing = passing_for(agent) if box is None else None
        if passing is None or hooks is None or self._hooks is None:
            return await self._launch_program(name, agent, handler, cwd, box)
        from dragoman.agents.hooks.process import HookedAgent, private_folder
        from dragoman.agents.hooks.server import HookServer

        try:
            server = HookServer(private_folder(self._hooks()), hooks, passing.manner)
            await server.start()
        except OSError as error:
            raise AgentUnavailable(
                f"The agent {name} cannot be started: there is no socket for its hook ({error})"
            ) from error
        try:
            passed = pass_hook(passing, server.folder, server.address, {**os.environ, **agent.env})
            command = [*agent.command, *passed.arguments]
            told = msgspec.structs.replace(agent, command=command, env={**agent.env, **passed.env})
            running = await self._launch_program(name, told, handler, cwd, None, HookedAgent)
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

    def _launch_adapter(
        self,
        name: str,
        agent: AgentConfig,
        handler: LinkHandler,
        cwd: str | None,
        box: Box | None,
        hooks: HookHandler | None,
    ) -> AgentHandle:
        """Begin an adapter for an agent with its own protocol; a session that needs its program starts it."""
        from dragoman.agents.native.registry import begin

        if box is None:
            try:
                require(name, agent)
            except NotInstalled as error:
                raise AgentUnavailable(_sentence(str(error))) from error
        return begin(self._native(name, agent, cwd, box, self._guest(agent, box), hooks), handler)

    def _guest(self, host: AgentConfig, box: Box | None) -> Native | None:
        """The other agent with its own protocol, if installed; None in a box, where that is not known."""
        if box is not None or not host.duet:
            return None
        for name, agent in self._agents.items():
            if agent.kind not in ADAPTED or agent.kind == host.kind or not agent.duet or agent.sandbox:
                continue
            if locate(agent.command, agent.env.get("PATH")) is not None:
                return self._native(name, agent, None, None, None)
        return None

    def _native(
        self,
        name: str,
        agent: AgentConfig,
        cwd: str | None,
        box: Box | None,
        other: Native | None,
        hooks: HookHandler | None = None,
    ) -> Native:
        from dragoman.agents.native.registry import Native

        async def spawn(arguments: Sequence[str], lines: LinkHandler, folder: str | None) -> AgentProcess:
            told = msgspec.structs.replace(agent, command=[*agent.command, *arguments])
            return await self._launch_hooked(name, told, lines, folder if box is None else cwd, box, hooks)

        environ = agent_environment(os.environ, agent.env)
        return Native(name, agent, spawn, environ, boxed=box is not None, other=other, state=self._state)

    async def _launch_program(
        self,
        name: str,
        agent: AgentConfig,
        handler: LinkHandler,
        cwd: str | None,
        box: Box | None,
        process: type[AgentProcess] = AgentProcess,
    ) -> AgentProcess:
        if box is not None:
            return await self._launch_inside(name, agent, handler, cwd, box)
        try:
            require(name, agent)
            secrets = await resolve_secrets(agent.secrets, os.environ)
            place = {} if cwd is None else {"PWD": cwd}  # the inherited one is the gateway's own folder
            return await process.spawn(
                agent.command,
                handler=handler,
                custody=self._custody,
                env=agent_environment(os.environ, {**place, **secrets, **agent.env}),
                cwd=cwd,
                max_message_bytes=self._max_message_bytes,
            )
        except NotInstalled as error:
            raise AgentUnavailable(_sentence(str(error))) from error
        except (SpawnError, AgentError, SecretError) as error:
            raise AgentUnavailable(f"The agent {name} cannot be started. {error}") from error

    async def _launch_inside(
        self, name: str, agent: AgentConfig, handler: LinkHandler, cwd: str | None, box: Box
    ) -> AgentProcess:
        inside = await box.agent(name, agent, cwd)
        try:
            running = await BoxedAgent.spawn(
                inside.words,
                handler=handler,
                custody=self._custody,
                env=inside.env,
                cwd=inside.cwd,
                max_message_bytes=self._max_message_bytes,
            )
        except SpawnError as error:
            await inside.leave()
            raise AgentUnavailable(
                f"The agent {name} cannot be started in the sandbox {box.name}. {error}"
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
