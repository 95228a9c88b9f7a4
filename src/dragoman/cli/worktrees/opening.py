"""The worktrees of a gateway, with the settings of each repository."""

from __future__ import annotations

from pathlib import Path

from dragoman.agents.known import known_layer
from dragoman.config.errors import ConfigError
from dragoman.config.load import load
from dragoman.config.model import Config
from dragoman.config.paths import Paths
from dragoman.config.root import WORKSPACE_FILE
from dragoman.config.sections.worktrees import WorktreesConfig
from dragoman.gateway.ports.acts import from_threads
from dragoman.gateway.ports.audit import Audit
from dragoman.gateway.ports.worktrees import WorktreeError, Worktrees


def open_worktrees(config: Config, paths: Paths, audit: Audit) -> Worktrees:
    from dragoman.worktrees.service import WorktreeService

    def settings_for(root: Path) -> WorktreesConfig:
        """What holds in a repository; its own file counts only as far as it is trusted."""
        if not (root / WORKSPACE_FILE).exists():
            return config.worktrees
        try:
            return load(paths, known=known_layer(), workspace=root).config.worktrees
        except ConfigError as error:
            raise WorktreeError(f"The settings of {root} cannot be used: {error}", "bad_settings") from error

    return WorktreeService(paths.state_dir / "worktrees", settings_for, from_threads(audit))
