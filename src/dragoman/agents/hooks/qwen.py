"""Qwen Code: a hook in the settings of the system."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from dragoman.agents.hooks.call import Manner
from dragoman.agents.hooks.passed import Passed, Passing, by_name, read_settings, shell_line
from dragoman.gateway.ports.agent import AgentUnavailable
from dragoman.wire.json_types import as_object

SETTINGS, DEFAULTS = "QWEN_CODE_SYSTEM_SETTINGS_PATH", "QWEN_CODE_SYSTEM_DEFAULTS_PATH"
SYSTEM = (
    "/Library/Application Support/QwenCode/settings.json"
    if sys.platform == "darwin"
    else "/etc/qwen-code/settings.json"
)
PATIENCE = 50.0
"""Qwen Code 0.24 goes on with the call 60 s after it began to run hooks, whatever their own time limit is."""
_KINDS = {
    **dict.fromkeys(("read_file", "read_many_files"), "read"),
    **dict.fromkeys(("list_directory", "glob", "grep_search", "search_file_content", "lsp"), "search"),
    **dict.fromkeys(("edit", "write_file", "replace", "notebook_edit", "save_memory"), "edit"),
    **dict.fromkeys(("web_fetch", "web_search"), "fetch"),
    "run_shell_command": "execute",
}


def _give(folder: Path, env: Mapping[str, str]) -> Passed:
    """Qwen Code 0.24 reads hooks from the settings of the system, beside those of the user and the project.

    Ours are those of the system with our hook added. The defaults of the system are looked for beside them.
    """
    system = Path(env.get(SETTINGS) or SYSTEM)
    try:
        settings = read_settings(system.read_text(), str(system))
    except FileNotFoundError:
        settings = {}
    except OSError as error:
        raise AgentUnavailable(
            f"{system} cannot be read ({error.strerror}), which Qwen Code needs"
        ) from error
    hooks = as_object(settings.get("hooks"))
    before = hooks.get("PreToolUse")
    ours = {"hooks": [{"type": "command", "name": "dragoman", "command": shell_line(), "timeout": 900}]}
    hooks["PreToolUse"] = [*(before if isinstance(before, list) else []), ours]
    file = folder / "settings.json"
    file.write_bytes(msgspec.json.encode({**settings, "hooks": hooks}))
    defaults = env.get(DEFAULTS) or str(system.with_name("system-defaults.json"))
    return Passed({SETTINGS: str(file), DEFAULTS: defaults})


PASSING = Passing(Manner(patience=PATIENCE, describe=by_name(_KINDS)), _give)
