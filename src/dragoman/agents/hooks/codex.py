"""Codex and codex-acp: a hook in the settings of the session, trusted by its hash.

Codex 0.166 runs hooks that are not the administrator's only if the user trusted them. That is a hash of the hook in the
settings, which may be given for one start too: ours names our hook alone, the trust of all others stays as it is.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from dragoman.agents.hooks.call import Manner
from dragoman.agents.hooks.passed import Passed, Passing, read_settings, shell_line
from dragoman.wire.json_types import JsonObject, as_object

SETTINGS = "CODEX_CONFIG"
"""Of codex-acp: settings of Codex as JSON; hooks in it are passed on to the app-server."""
TIMEOUT = 30 * 24 * 3600
"""Seconds after which Codex would go on with the call: a person may be asked meanwhile."""
_KEY = "/<session-flags>/config.toml:pre_tool_use:{}:0"
"""By which Codex knows a hook that was given at its start; with the place of the hook in the list."""
_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)


def _native(folder: Path, env: Mapping[str, str]) -> Passed:
    return Passed(arguments=("-c", f"hooks={_toml(_hooks({}))}"))


def _adapter(folder: Path, env: Mapping[str, str]) -> Passed:
    settings = read_settings(env.get(SETTINGS) or "{}", SETTINGS)
    settings["hooks"] = _hooks(as_object(settings.get("hooks")))
    return Passed({SETTINGS: msgspec.json.encode(settings).decode()})


def _hooks(given: JsonObject) -> JsonObject:
    """The hooks that the user gives at the start, with ours behind them."""
    before = given.get("PreToolUse")
    listed = before if isinstance(before, list) else []
    handler = {"type": "command", "command": shell_line(), "timeout": TIMEOUT}
    trusted = {_KEY.format(len(listed)): {"trusted_hash": _hash(handler)}}
    return {
        **given,
        "PreToolUse": [*listed, {"hooks": [handler]}],
        "state": {**as_object(given.get("state")), **trusted},
    }


def _hash(handler: JsonObject) -> str:
    """As Codex makes it, of the hook with its defaults filled in."""
    identity = {"event_name": "pre_tool_use", "hooks": [{**handler, "async": False}]}
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _toml(value: object) -> str:
    """Inline TOML; its strings are JSON's, save for characters that do not occur here."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)


def _describe(name: str, given: JsonObject, folder: str) -> JsonObject:
    """Codex calls every shell `Bash`, and has the text of a patch where others have a command.

    The hook runs in the folder that the command is to run in, which is not told otherwise.
    """
    command = given.get("command")
    if name == "Bash":
        where = {**given, "cwd": folder}
        return {"name": "exec_command", "title": str(command), "kind": "execute", "rawInput": where}
    if name == "apply_patch":
        named = _PATCHED.findall(command) if isinstance(command, str) else []
        paths: list[object] = [str(Path(folder) / path.strip()) for path in named]
        changes = [{"path": path} for path in paths or [0]]  # no path is one that is not understood
        return {"kind": "edit", "rawInput": {"changes": changes}}
    return {}


NATIVE = Passing(Manner(describe=_describe), _native)
ADAPTER = Passing(Manner(describe=_describe), _adapter)
