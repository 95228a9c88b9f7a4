"""Opens the rules and what people had us remember, for the gateway of this process."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.agents.known import known_layer
from dragoman.cli.audit.opening import record_renewal
from dragoman.config.load import Loaded, load
from dragoman.config.model import Config
from dragoman.config.paths import ADMINISTRATOR, Paths
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.ports.audit import Audit

if TYPE_CHECKING:
    from dragoman.policy.decide import Policy
    from dragoman.policy.memory.file import Remembered
    from dragoman.policy.rulebook import Change, Rulebook


def rulebook(config: Config, paths: Paths) -> Rulebook:
    from dragoman.policy.rulebook import Rulebook

    def read(workspace: Path | None) -> Loaded:
        return load(paths, known=known_layer(), workspace=workspace)

    return Rulebook(read, config.policy, paths)


def try_policy(config: Config, paths: Paths, workspace: Path) -> None:
    """Raise `ConfigError` if the rules for a workspace do not do what their examples say."""
    rules = [*config.policy.rules, *config.policy.narrow]
    if ADMINISTRATOR.exists() or any(rule.match or rule.not_match for rule in rules):
        rulebook(config, paths).read(str(workspace))


class Policies:
    """The policy by workspace: each session follows its own workspace's file, wherever this process was started.

    The engine is imported with the first question.
    """

    def __init__(self, config: Config, paths: Paths, audit: Audit) -> None:
        self._config = config
        self._paths = paths
        self._audit = audit
        self.gateway: Gateway | None = None
        """Whose sessions are told of changes."""

    @functools.cached_property
    def book(self) -> Rulebook:
        book = rulebook(self._config, self._paths)
        book.on_change = self._tell
        book.on_renewal = functools.partial(record_renewal, self._audit)
        book.on_first = lambda file: self._audit.watch([file])
        return book

    def policy_for(self, workspace: str) -> Policy:
        return self.book.policy_for(workspace)

    def trouble(self, workspace: str) -> str | None:
        return self.book.trouble(workspace)

    def _tell(self, change: Change) -> None:
        if self.gateway is not None:
            self.gateway.policy_changed(change.workspace, change.text, change.severity)


def open_remembered(paths: Paths) -> Remembered:
    from dragoman.policy.memory.file import FILE, Remembered

    return Remembered(paths.state_dir / FILE)
