"""OpenCode: a plugin of ours."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec

from dragoman.agents.hooks.call import Manner
from dragoman.agents.hooks.passed import HERE, Passed, Passing, by_name, read_settings

SETTINGS = "OPENCODE_CONFIG_CONTENT"
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
    return Passed({SETTINGS: msgspec.json.encode(settings).decode()})


PASSING = Passing(Manner(describe=by_name(_KINDS)), _give)
