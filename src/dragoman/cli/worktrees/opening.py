"""The worktrees of a gateway, with the settings of each repository."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.agents.known import known_layer
from dragoman.config.errors import ConfigError
from dragoman.config.load import load
from dragoman.config.model import Config
from dragoman.config.paths import Paths
from dragoman.config.root import WORKSPACE_FILE
from dragoman.config.sections.worktrees import WorktreesConfig
from dragoman.gateway.ports.acts import Acting, from_threads, unrecorded
from dragoman.gateway.ports.audit import Audit
from dragoman.gateway.ports.commits import Commits
from dragoman.gateway.ports.worktrees import WorktreeError, Worktrees

if TYPE_CHECKING:
    from dragoman.agents.custody import Custody
    from dragoman.gateway.ports.sandbox import Boxes
    from dragoman.worktrees.engine import Engine


@contextmanager
def open_engine(config: Config, paths: Paths, acting: Acting = unrecorded) -> Iterator[Engine]:
    """The worktrees of this user, for a command; `acting` records what is done."""
    from dragoman.cli.worktrees.boxes import boxes_for_commands
    from dragoman.worktrees.engine import Engine

    with boxes_for_commands(config, paths) as enter:
        yield Engine(paths.state_dir / "worktrees", acting, enter)


def open_worktrees(config: Config, paths: Paths, audit: Audit, boxes: Boxes, custody: Custody) -> Worktrees:
    from dragoman.cli.worktrees.boxes import BoxRunner, entering
    from dragoman.worktrees.service import WorktreeService

    def settings_for(root: Path) -> WorktreesConfig:
        """What holds in a repository; its own file counts only as far as it is trusted."""
        if not (root / WORKSPACE_FILE).exists():
            return config.worktrees
        try:
            return load(paths, known=known_layer(), workspace=root).config.worktrees
        except ConfigError as error:
            raise WorktreeError(f"The settings of {root} cannot be used: {error}", "bad_settings") from error

    enter = entering(BoxRunner(config, boxes, custody))
    return WorktreeService(paths.state_dir / "worktrees", settings_for, from_threads(audit), enter)


def open_commits(config: Config, paths: Paths, boxes: Boxes, custody: Custody) -> Commits:
    from dragoman.cli.worktrees.boxes import BoxRunner, entering
    from dragoman.commits.service import CommitService

    return CommitService(paths.state_dir, config.checkpoints, entering(BoxRunner(config, boxes, custody)))
