"""What every command does first: find the paths, load the configuration, start the log."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from dragoman import log
from dragoman.agents.known import known_layer
from dragoman.cli.entry import complain
from dragoman.config.errors import ConfigError
from dragoman.config.load import DEFAULT, Layer, Loaded, flag, load
from dragoman.config.paths import Paths, find_paths
from dragoman.config.root import find_root

QUIET = flag("this command", ("log", "level"), "error")
RESTORE = ".restore"
"""The working folder of `dragoman restore`; `dragoman.upkeep.restore` also names it, but is imported only if needed."""


def load_settings(flags: Sequence[Layer] = (), *, quiet: bool = False) -> tuple[Paths, Loaded]:
    """Load the configuration for the current directory, start the log, and log the warnings.

    `quiet` is for commands whose output the user reads: unless a level or a log file is set, only errors are logged.
    """
    paths = find_paths()
    if (paths.state_dir / RESTORE).exists():
        _finish_restore(paths)
    loaded = load(paths, known=known_layer(), workspace=here(), flags=flags)
    if quiet and loaded.origin("log", "level") == DEFAULT and loaded.config.log.file is None:
        loaded = load(paths, known=known_layer(), workspace=here(), flags=[QUIET, *flags])
    start_log(loaded)
    for warning in loaded.warnings:
        logging.getLogger("dragoman.config").warning(warning)
    return paths, loaded


def _finish_restore(paths: Paths) -> None:
    """Complete an interrupted restore, before anything reads a mixture of old and new files."""
    from dragoman.gateway.ports.store import StoreError
    from dragoman.upkeep import restore

    if not restore.is_interrupted(paths.state_dir):
        return
    try:
        before = restore.finish(paths.state_dir)
    except StoreError as error:
        raise ConfigError(f"a restore was interrupted, or is under way: {error}") from error
    complain("a restore that was interrupted is complete now")
    if before is not None:
        complain(f"what was there before is in {before}")


def here() -> Path | None:
    """The workspace around the current directory; None when that directory is gone."""
    try:
        return find_root(Path(os.getcwd()))  # noqa: PTH109 (not resolved: the path as the user knows it)
    except FileNotFoundError:
        return None


def start_log(loaded: Loaded) -> None:
    settings = loaded.config.log
    try:
        log.setup(settings.level, settings.file, settings.format, settings.prompts)
    except OSError as error:
        origin = loaded.origin("log", "file")
        raise ConfigError(f"{origin}: cannot write the log file {settings.file}: {error.strerror}") from error
