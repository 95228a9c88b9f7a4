"""Any agent that speaks ACP by itself, as a subprocess."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from dragoman.agents.custody import Custody
from dragoman.agents.environment import agent_environment
from dragoman.agents.known import AgentError, NotInstalled, locate, require
from dragoman.agents.launch import SpawnError
from dragoman.agents.process import AgentProcess
from dragoman.config.model import AgentConfig
from dragoman.gateway.ports.agent import AgentEnd, AgentHandle, AgentUnavailable
from dragoman.rpc.link import LinkHandler


class AcpAgent(AgentProcess):
    """Implements `AgentHandle`."""

    def end(self) -> AgentEnd:
        status = self.exit
        return AgentEnd(
            status.exit_code if status is not None else None,
            status.signal if status is not None else None,
            self.stderr_tail(),
        )


class ProcessLauncher:
    """Starts agents as processes of this machine; implements `Launcher`."""

    def __init__(
        self, custody: Custody, max_message_bytes: int, environ: Mapping[str, str] | None = None
    ) -> None:
        self._custody = custody
        self._max_message_bytes = max_message_bytes
        self._environ = os.environ if environ is None else environ

    def identity(self, agent: AgentConfig) -> str | None:
        """The program, and the script of an interpreter, with size and time: a new version is another agent."""
        program = locate(agent.command, agent.env.get("PATH"))
        if program is None:
            return None
        files = [program, *(Path(part) for part in agent.command[1:2] if part.startswith("/"))]
        return "\n".join([*(_stamp(file) for file in files), *agent.command[1:]])

    async def launch(
        self, name: str, agent: AgentConfig, handler: LinkHandler, cwd: str | None
    ) -> AgentHandle:
        try:
            require(name, agent)
            return await AcpAgent.spawn(
                agent.command,
                handler=handler,
                custody=self._custody,
                env=agent_environment(self._environ, agent.env),
                cwd=cwd,
                max_message_bytes=self._max_message_bytes,
            )
        except NotInstalled as error:
            raise AgentUnavailable(_sentence(str(error))) from error
        except (SpawnError, AgentError) as error:
            raise AgentUnavailable(f"The agent {name} cannot be started. {error}") from error


def _stamp(file: Path) -> str:
    try:
        real = file.resolve()
        status = real.stat()
    except OSError:
        return str(file)
    return f"{real} {status.st_size} {status.st_mtime_ns}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
