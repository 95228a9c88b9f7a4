"""The logging options that commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from dragoman.config.load import Layer, flag
from dragoman.log import LEVELS

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--log-level", type=click.Choice(list(LEVELS)), help="Least severe level to log.  [default: info]"
    ),
    click.option("--log-file", metavar="FILE", help="Log to FILE instead of stderr."),
    click.option(
        "--log-format", type=click.Choice(["text", "json"]), help="Format of log lines.  [default: text]"
    ),
)


def log_options(command: F) -> F:
    """Give a command `--log-level`, `--log-file` and `--log-format`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def log_flags(log_level: str | None, log_file: str | None, log_format: str | None) -> list[Layer]:
    """The options that were given, as layers of the configuration."""
    given = {"level": log_level, "file": log_file, "format": log_format}
    return [flag(f"--log-{key}", ("log", key), value) for key, value in given.items() if value is not None]
