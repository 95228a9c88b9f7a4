"""The entry point of `dragoman ...`.

An editor waits for `dragoman acp AGENT`, so that form does not even import the command line library.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from dragoman.config.errors import ConfigError
from dragoman.masking import mask
from dragoman.terminal import guard

USAGE_ERROR = 2


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit with its code."""
    guard()
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["--acp"]:  # used by editors configured for a terminating proxy
        arguments[0] = "acp"
    try:
        code = run(arguments)
    except ConfigError as error:
        complain(str(error))
        code = USAGE_ERROR
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run the command that `arguments` name; returns its exit code."""
    if (
        arguments[:1] == ["acp"]
        and len(arguments) <= 2
        and not any(argument.startswith("-") for argument in arguments)
    ):
        _import_msgspec()
        from dragoman.cli.acp.start import AcpOptions, start

        return start(AcpOptions(agent=arguments[1] if arguments[1:] else None))
    from dragoman.cli.commands import dispatch

    return dispatch(arguments or _without_command())


def _without_command() -> list[str]:
    """A chat where a person sits at a terminal, else the help."""
    streams = (sys.stdin, sys.stdout)
    return ["chat"] if all(stream is not None and stream.isatty() for stream in streams) else []


def _import_msgspec() -> None:
    """Keep msgspec from importing `typing_extensions`, which it does not need and which costs 20 ms."""
    if "typing_extensions" in sys.modules:
        return
    hidden: dict[str, Any] = {"typing_extensions": None}
    sys.modules.update(hidden)
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules["typing_extensions"]


def complain(message: str) -> None:
    """Print a message to stderr, secrets masked; a closed stderr is ignored."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write("".join(f"dragoman: {line}\n" for line in mask(message).splitlines()))
        sys.stderr.flush()
    except OSError:
        pass  # stderr is closed; the exit code remains
