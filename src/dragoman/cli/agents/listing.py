"""`dragoman agents list`: which agents there are, and what is known of each without starting it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from dragoman.agents.environment import agent_environment
from dragoman.agents.known import HOSTED, KNOWN, KnownAgent, install_hint, locate, with_command
from dragoman.builtin.models.choice import ModelConfig, Models
from dragoman.cli.terminal.table import print_table
from dragoman.config.files.installed import ORIGIN, InstalledAgent
from dragoman.config.load import Loaded
from dragoman.config.model import AgentConfig
from dragoman.gateway.access.mediation import mediation_of
from dragoman.masking import mask_setting, mask_words

VERSION_SECONDS = 3.0
"""Time for one program to tell its version; a list must not wait for one that hangs."""
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?[-+.\w]*")
_VARIABLE = re.compile(r"\$\{(\w+):-([^}]*)\}")


def describe_all(loaded: Loaded, installed: Mapping[str, InstalledAgent]) -> list[dict[str, Any]]:
    """What is known of each agent; programs are asked for their versions at the same time."""
    config = loaded.config
    rows = [
        _describe(name, agent, name == config.default_agent) | _origin(loaded, name, installed.get(name))
        for name, agent in config.agents.items()
    ]
    asked = [
        (row, config.agents[row["name"]])
        for row in rows
        if row["program"] and row["kind"] not in HOSTED and not row["sandbox"]
    ]
    with ThreadPoolExecutor(max_workers=8) as threads:
        found = threads.map(lambda item: _version(item[0]["program"], item[1]), asked)
        for (row, _), version in zip(asked, found, strict=True):
            row["version"] = version
    return rows


def print_agents(rows: Sequence[dict[str, Any]]) -> None:
    """The agents as a table, those that can be used first; `*` marks the default."""
    cells = [
        [
            row["name"] + (" *" if row["default"] else ""),
            row["kind"],
            (row["version"] or "yes") if row["installed"] else "no",
            {True: "yes", False: "no", None: "?"}[row["loggedIn"]] if row["installed"] else "",
            row["mediation"],
            _from(row),
            _shown(row),
        ]
        for row in sorted(rows, key=lambda row: not row["installed"])
    ]
    print_table(
        ["NAME", "KIND", "INSTALLED", "LOGIN", "MEDIATION", "FROM", "COMMAND"],
        cells,
        {"yes": "green", "no": "bright_black"},
    )


def models_of(agent: AgentConfig) -> Models:
    """The models of a built-in agent, by what is configured and by the keys that it will have."""
    keys = {**os.environ, **agent.env, **dict.fromkeys(agent.secrets, "secret")}
    return Models(ModelConfig(agent.model, agent.base_url, agent.context_window), keys)


def _describe(name: str, agent: AgentConfig, default: bool) -> dict[str, Any]:
    known = KNOWN.get(name)
    agent = with_command(agent)
    program = locate(agent.command, agent.env.get("PATH"))
    mediation = mediation_of(agent, boxed=agent.sandbox is not None)
    models = models_of(agent) if agent.kind == "builtin" else None
    missing = models.missing() if models is not None else ""
    return {
        "name": name,
        "title": known.title if known else name,
        "kind": agent.kind,
        "default": default,
        "installed": program is not None or agent.kind == "remote",
        "available": True,
        "program": str(program) if program else None,
        "version": None,
        "command": mask_words(agent.command),
        "url": agent.url and mask_setting(agent.url),
        "sandbox": agent.sandbox,
        "mediation": mediation.level,
        "mediationWhy": mediation.why,
        "neverAsks": sorted(mediation.never_asks),
        "install": install_hint(name, agent),
        "login": missing or (known.login or None if known else None),
        "loggedIn": not missing if models is not None else is_logged_in(known, agent) if known else None,
        "model": models.default() if models is not None else None,
        "homepage": known.homepage or None if known else None,
    }


def _origin(loaded: Loaded, name: str, installed: InstalledAgent | None) -> dict[str, Any]:
    """Which layer of the configuration starts it, and what is known of it if we installed it."""
    origin = loaded.origin("agents", name, "command")
    if installed is None or origin != ORIGIN:
        return {"origin": origin, "source": None, "pinned": None}
    return {"origin": origin, "source": installed.source, "pinned": installed.pinned}


def _from(row: Mapping[str, Any]) -> str:
    if not row["installed"]:
        return ""
    if row["source"] is not None:
        return f"{row['source']}{'' if row['pinned'] else ', unpinned'}"
    if row["kind"] in HOSTED or row["origin"] == "known agent":
        return "Dragoman" if row["kind"] in HOSTED else "PATH"
    return "configuration"


def is_logged_in(known: KnownAgent, agent: AgentConfig) -> bool | None:
    """Whether a key or the file of a login is there; None if it cannot be told without asking the agent."""
    env = {**os.environ, **agent.env}
    if any(env.get(name) for name in known.keys) or any(name in known.keys for name in agent.secrets):
        return True
    files = [_expand(pattern, env) for pattern in known.logins]
    if any(file.is_file() for file in files):
        return True
    if (
        not files or sys.platform == "darwin" or agent.sandbox is not None
    ):  # keychain; another machine's files
        return None
    return False


def _expand(pattern: str, env: Mapping[str, str]) -> Path:
    """The path behind `~` and `${NAME:-default}`."""
    text = _VARIABLE.sub(lambda found: env.get(found[1]) or found[2], pattern)
    return Path(env.get("HOME") or Path.home(), text[2:]) if text.startswith("~/") else Path(text)


def _version(program: str, agent: AgentConfig) -> str | None:
    try:
        done = subprocess.run(
            [program, "--version"],
            env=agent_environment(os.environ, agent.env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=VERSION_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    found = _VERSION.search(done.stdout[:4096].decode(errors="replace")) if done.returncode == 0 else None
    return found and found[0][:40]


def _shown(row: Mapping[str, Any]) -> str:
    """The command, or how to install it; the command of a hosted agent is generated and of no use to the user."""
    if not row["installed"]:
        return row["install"] or " ".join(row["command"])
    if row["kind"] == "builtin":
        return f"(built in) {row['model']}" if row["loggedIn"] else f"(built in) for a model: {row['login']}"
    if row["kind"] in HOSTED:
        return "(built in)"
    return row["url"] or " ".join(row["command"])
