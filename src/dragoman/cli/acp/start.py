"""`dragoman acp`: from options to a running gateway or relay. The options themselves are in `command.py`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dragoman.agents.known import find_agent
from dragoman.cli.settings import load_settings
from dragoman.config.check import sandbox_names
from dragoman.config.errors import ConfigError
from dragoman.config.load import Layer
from dragoman.config.model import Config
from dragoman.config.paths import Paths

if TYPE_CHECKING:
    from dragoman.gateway.ports.worktrees import WorktreeWish

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
    worktree: WorktreeWish | None = None


def check_sandbox(config: Config, name: str | None) -> None:
    """Raise `ConfigError` if there is no sandbox of that name."""
    if name is not None and name not in sandbox_names(config):
        from dragoman.config.schema import suggest

        raise ConfigError(f'there is no sandbox "{name}"{suggest(name, sandbox_names(config))}')


def start(options: AcpOptions, flags: Sequence[Layer] = ()) -> int:
    """Check what can be checked before the first message, then run until the client is gone."""
    paths, loaded = load_settings(flags)
    if options.agent is not None:
        find_agent(loaded.config, options.agent)
    check_sandbox(loaded.config, options.sandbox)
    if options.port is None and sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None:
        sys.stderr.write(HINT.format(agent=f', "{options.agent}"' if options.agent else ""))
    code = _connect(options, loaded.config, paths)
    if code is not None:
        return code
    from dragoman.cli.acp.run import run

    return run(options, loaded.config, paths)


def _connect(options: AcpOptions, config: Config, paths: Paths) -> int | None:
    """Relay to a running `dragoman serve`; None if this process has to run the gateway."""
    always = options.connect == "always"
    own = {"--port": options.port, "--sandbox": options.sandbox, "--worktree": options.worktree}
    if options.connect == "never" or any(value is not None for value in own.values()):
        if always:
            option = next(name for name, value in own.items() if value is not None)
            raise ConfigError(
                f"--connect always cannot be combined with {option}, which needs a gateway in this process"
            )
        return None
    if paths.socket.exists():
        from dragoman.cli.acp.relay import NOT_LISTENING, relay
        from dragoman.cli.compose import run_loop

        code = run_loop(relay(paths.socket, options.agent, config.limits.max_message_bytes))
        if code != NOT_LISTENING:
            return code
    if always:
        raise ConfigError(
            f"no `dragoman serve` listens on {paths.socket}: start one, or leave out --connect always"
        )
    return None
