"""Agents by name, as the configuration has them now: a changed file is read again, so that nothing needs a restart."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from dragoman.agents.known import UnknownAgent, find_agent
from dragoman.atomic_file import Stamp, stamp_of
from dragoman.config.errors import ConfigError
from dragoman.config.model import AgentConfig, Config
from dragoman.wire.errors import invalid_params

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""Every prompt may ask for its agent; the file is not looked at more often than this."""


class ConfiguredAgents:
    """Implements the gateway's `AgentDirectory`."""

    def __init__(
        self,
        config: Config,
        files: Sequence[Path] = (),
        read: Callable[[], Config] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`read` loads the configuration again when one of `files` has changed; without them it stays as it is."""
        self._config = config
        self._files = files
        self._read = read
        self._clock = clock
        self._stamp = self._look()
        self._looked = clock()
        self._found: dict[str, AgentConfig] = {}
        """Agents by name as they were found in the present configuration: a turn asks several times."""
        self.on_change: Callable[[Config], None] = lambda config: None
        """Called with changed agents before they can be used."""

    def find(self, name: str) -> AgentConfig:
        """The agent's configuration; raises `RpcError` that suggests the nearest names."""
        config = self._current()
        found = self._found.get(name)
        if found is not None:
            return found
        try:
            found = find_agent(config, name)
        except UnknownAgent as error:
            message = f"Unknown agent: {error}"
            raise invalid_params(message, "agent", agent=name, nearest=error.nearest) from error
        if name in config.agents:  # clients can ask for any name
            self._found[name] = found
        return found

    def names(self) -> list[str]:
        return sorted(self._current().agents)

    def all(self) -> Mapping[str, AgentConfig]:
        """Known agents first, then others in the order of the file."""
        return self._current().agents

    def _current(self) -> Config:
        now = self._clock()
        if self._read is None or 0 <= now - self._looked < LOOK_SECONDS:
            return self._config
        self._looked = now
        stamp = self._look()
        if stamp != self._stamp:
            self._stamp = stamp
            self._renew(self._read)
        return self._config

    def _renew(self, read: Callable[[], Config]) -> None:
        try:
            agents = read().agents
        except ConfigError as error:
            log.error("the configuration cannot be used; agents stay as they were: %s", error)
            return
        if agents == self._config.agents:
            return
        changed = msgspec.structs.replace(self._config, agents=agents)
        self.on_change(changed)
        before, self._config = self._config.agents, changed
        self._found.clear()
        names = [name for name in {**before, **agents} if before.get(name) != agents.get(name)]
        log.info("agents changed in the configuration: %s", ", ".join(sorted(names)))

    def _look(self) -> list[Stamp | None]:
        return [stamp_of(file) for file in self._files]
