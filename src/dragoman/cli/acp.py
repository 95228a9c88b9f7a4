"""`dragoman acp`: from options to a running gateway. The options themselves are in `acp_command`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dragoman.agents.known import find_agent
from dragoman.cli.settings import load_settings
from dragoman.config.check import sandbox_names
from dragoman.config.errors import ConfigError
from dragoman.config.load import Layer

HINT = """\
dragoman acp speaks the Agent Client Protocol on stdin and stdout: it is meant to be started by an editor.
In Zed's settings.json, for example:

  "agent_servers": {{ "Dragoman": {{ "command": "dragoman", "args": ["acp"{agent}] }} }}

It runs now and waits for messages; end it with Ctrl-D.
"""


@dataclass(frozen=True, slots=True)
class AcpOptions:
    """What the command line of `dragoman acp` asked for."""

    agent: str | None = None
    host: str | None = None
    port: int | None = None
    token: str | None = None
    connect: Literal["auto", "always", "never"] = "auto"
    sandbox: str | None = None


def start(options: AcpOptions, flags: Sequence[Layer] = ()) -> int:
    """Check what can be checked before the first message, then run until the client is gone."""
    paths, loaded = load_settings(flags)
    if options.agent is not None:
        find_agent(loaded.config, options.agent)
    if options.sandbox is not None and options.sandbox not in sandbox_names(loaded.config):
        from dragoman.config.schema import suggest

        hint = suggest(options.sandbox, sandbox_names(loaded.config))
        raise ConfigError(f'there is no sandbox "{options.sandbox}"{hint}')
    if options.port is None and sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None:
        sys.stderr.write(HINT.format(agent=f', "{options.agent}"' if options.agent else ""))
    from dragoman.cli.acp_run import run

    return run(options, loaded.config, paths)
