"""OpenCode: a plugin of ours."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec

from dragoman.agents.hooks.call import Manner
from dragoman.agents.hooks.passed import HERE, Passed, Passing, by_name, read_settings

SETTINGS = "OPENCODE_CONFIG_CONTENT"
LIBRARY = "@opencode-ai/plugin"
HURRY = {"npm_config_fetch_retries": "0", "npm_config_fetch_timeout": "15000"}
_KINDS = {
    **dict.fromkeys(("read",), "read"),
    **dict.fromkeys(("glob", "grep", "list", "codesearch", "lsp"), "search"),
    **dict.fromkeys(("edit", "write", "patch", "multiedit", "apply_patch"), "edit"),
    **dict.fromkeys(("webfetch", "websearch"), "fetch"),
    "bash": "execute",
    "task": "think",
}


def _give(folder: Path, env: Mapping[str, str]) -> Passed:
    """OpenCode 1.18 loads plugins that its settings name, and runs `tool.execute.before` of each for every call.

    Settings in this variable are merged with all others, and lists of plugins are joined.
    """
    plugin = folder / "dragoman.js"
    shutil.copyfile(HERE / "opencode.js", plugin)
    settings = read_settings(env.get(SETTINGS) or "{}", SETTINGS)
    listed = settings.get("plugin")
    settings["plugin"] = [*(listed if isinstance(listed, list) else []), plugin.as_uri()]
    return Passed({**_hurried(env), SETTINGS: msgspec.json.encode(settings).decode()})


def _hurried(env: Mapping[str, str]) -> Mapping[str, str]:
    """With a plugin, OpenCode 1.18 begins only when npm has installed its own library for plugins, or failed.

    Where that library is missing, npm is told to give up soon: without a network its attempts take minutes.
    """
    config = Path(env.get("XDG_CONFIG_HOME") or Path(env.get("HOME") or Path.home()) / ".config")
    if (config / "opencode" / "node_modules" / LIBRARY).is_dir():
        return {}
    return {name: value for name, value in HURRY.items() if name not in env}


PASSING = Passing(Manner(describe=by_name(_KINDS)), _give)
