"""The agents that `dragoman agents install` put into the state folder, as a layer below the user's configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from dragoman.config.errors import ConfigError
from dragoman.config.files.regular_file import read_regular
from dragoman.config.paths import Paths

MAX_BYTES = 4 * 1024 * 1024
"""Size limit of the file: enough for thousands of agents."""
FORMAT = 1
ORIGIN = "installed agent"
"""The origin of a setting that comes from an installed agent."""
MARK = ".dragoman-agent"
"""Name of an empty file in the folder of each installed version: everything below the folder belongs to it."""
ADVICE = "remove the file, then install the agents again: `dragoman agents install NAME`"


class InstalledAgent(msgspec.Struct, frozen=True, kw_only=True):
    """One installed agent, and how it is started."""

    version: str
    source: Literal["binary", "npm", "uv"]
    package: str
    """The package, or the URL of the archive."""
    folder: str
    """Name of its folder below `agents/NAME`."""
    hash: str | None = None
    """SHA-256 of the archive, or npm's integrity value of the package."""
    pinned: bool = True
    """False: no registry told a hash beforehand, so the one that was seen first counts."""
    scripts: bool = False
    """Whether scripts of the package were run."""
    installed: str = ""
    kind: Literal["acp", "claude", "codex"] = "acp"
    command: list[str] = []
    env: dict[str, str] = {}


class InstalledFile(msgspec.Struct, frozen=True):
    format: int
    agents: dict[str, InstalledAgent] = {}


def read_installed(file: Path) -> dict[str, InstalledAgent]:
    """The installed agents by name; raises `ConfigError` if the file cannot be used."""
    content = read_regular(file, MAX_BYTES)
    if content is None:
        return {}
    try:
        found = msgspec.json.decode(content, type=InstalledFile)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{file}: the list of installed agents is damaged: {error}; {ADVICE}") from error
    if found.format != FORMAT:
        raise ConfigError(f"{file}: another version of Dragoman wrote it (format {found.format}); {ADVICE}")
    return found.agents


def installed_agents(paths: Paths) -> dict[str, InstalledAgent]:
    """As `read_installed`; none if the file cannot be used, of which loading the configuration warned."""
    try:
        return read_installed(paths.installed_file)
    except ConfigError:
        return {}


def settings_of(agents: dict[str, InstalledAgent]) -> dict[str, Any]:
    """What the installed agents set in the configuration."""
    return {
        "agents": {
            name: {"kind": agent.kind, "command": agent.command, "env": agent.env}
            for name, agent in agents.items()
        }
    }
