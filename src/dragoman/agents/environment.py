"""The environment of an agent: the client's, without variables that confuse agents, with update checks off."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.config.variables import PREFIX

QUIET: Mapping[str, str] = {
    "CAI_NO_UPDATE_CHECK": "1",  # ContainAI asks for updates before it starts the agent
    "NO_UPDATE_NOTIFIER": "1",  # the `update-notifier` package, in most agents written for node
    "npm_config_update_notifier": "false",  # npm and npx announce new versions of npm itself
    "DISABLE_AUTOUPDATER": "1",  # Claude Code replaces its own program while it runs
    "OPENCODE_DISABLE_AUTOUPDATE": "1",  # opencode likewise
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",  # agents started through pipx or a pip shim
}
"""Set unless the client's environment sets them."""

CONFUSING: Mapping[str, str] = {
    "CLAUDECODE": "Claude Code refuses to start inside what it takes for another Claude Code",
    "CLAUDE_CODE_ENTRYPOINT": "says who started the outer Claude Code, not this one",
    "NODE_CHANNEL_FD": "node opens this descriptor at start; it belongs to an editor's extension host",
    "NODE_CHANNEL_SERIALIZATION_MODE": "goes with NODE_CHANNEL_FD",
    "NODE_UNIQUE_ID": "node takes itself for a worker of the editor's cluster",
    "ELECTRON_RUN_AS_NODE": "set by editors for their own helpers; turns any Electron program into node",
    "__PYVENV_LAUNCHER__": "macOS: points every python below us at our own virtual environment",
    "NOTIFY_SOCKET": "systemd: a child could report readiness in the gateway's name",
    "WATCHDOG_PID": "systemd: the watchdog is the gateway's",
    "WATCHDOG_USEC": "systemd: the watchdog is the gateway's",
    "LISTEN_PID": "systemd: activation sockets are the gateway's",
    "LISTEN_FDS": "systemd: activation sockets are the gateway's",
    "LISTEN_FDNAMES": "systemd: activation sockets are the gateway's",
}
"""Removed variables, each with its effect on an agent; an agent's own `env` may still set them."""


OURS_KEPT = frozenset({"DRAGOMAN_CUSTODY", "DRAGOMAN_BOX", "DRAGOMAN_HOME"})
"""Those of our variables that agents inherit: the marks that end processes, and the state folder for a Dragoman below
us. The others are this gateway's settings and secrets: with `DRAGOMAN_SERVE_AUTH_TOKEN` an agent could approve its own
requests."""


def inherited(base: Mapping[str, str]) -> dict[str, str]:
    """The variables of `base`, the environment of this process, that a child process inherits."""
    return {
        name: value
        for name, value in base.items()
        if name not in CONFUSING and (not name.startswith(PREFIX) or name in OURS_KEPT)
    }


def agent_environment(base: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
    """The client's environment `base` with `QUIET` below it and the agent's configured `extra` on top."""
    return {**QUIET, **inherited(base), **extra}
