"""What every command does first: find the places, load the configuration, start the log."""

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
"""What `dragoman restore` works in; its name in `dragoman.upkeep.restore`, which is loaded only if it is there."""


def load_settings(flags: Sequence[Layer] = (), *, quiet: bool = False) -> tuple[Paths, Loaded]:
    """The configuration for the directory we are in, with the log running and the warnings in it.

    `quiet` is for commands that a person reads: unless a level was asked for, only errors are logged.
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
    """Carry a restore through that was interrupted, before anything reads half of the old and half of the new files."""
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
