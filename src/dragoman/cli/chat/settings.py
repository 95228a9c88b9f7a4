"""The configuration, as far as a chat itself needs it; it is read when the prompt is there."""

from __future__ import annotations

from pathlib import Path

from dragoman.agents.known import known_layer
from dragoman.config.errors import ConfigError
from dragoman.config.load import load
from dragoman.config.model import Config
from dragoman.config.paths import find_paths
from dragoman.config.root import find_root


def settings_of(folder: Path) -> Config | None:
    """The configuration for a folder; None if it is not valid, which the gateway tells."""
    try:
        return load(find_paths(), known=known_layer(), workspace=find_root(folder)).config
    except ConfigError:
        return None
