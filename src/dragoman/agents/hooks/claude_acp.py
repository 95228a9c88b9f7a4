"""claude-agent-acp: a plugin of Claude Code, named in the parameters of its sessions.

The adapter 0.99 passes `_meta.claudeCode.options` to Claude Code's SDK, which starts `claude` with the plugin. Hooks of
plugins run beside those of the user's settings, in every mode.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import msgspec

from dragoman.agents.hooks.call import Manner
from dragoman.agents.hooks.passed import Passed, Passing, shell_line
from dragoman.wire.json_types import JsonObject, as_object

METHODS = frozenset({"session/new", "session/load", "session/resume", "session/fork"})
_MAYBE = tuple(f'"{method}"'.encode() for method in METHODS)
TIMEOUT = 600
"""Seconds, far above what rules need: people are asked by the adapter, not by the hook."""


def _give(folder: Path, env: Mapping[str, str]) -> Passed:
    plugin = folder / "dragoman"
    line = {"type": "command", "command": shell_line(), "timeout": TIMEOUT}
    hooks = {"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [line]}]}}
    about = {
        "name": "dragoman",
        "description": "Asks Dragoman's rules before each tool call",
        "version": "1.0.0",
    }
    for file, content in {".claude-plugin/plugin.json": about, "hooks/hooks.json": hooks}.items():
        (plugin / file).parent.mkdir(parents=True)
        (plugin / file).write_bytes(msgspec.json.encode(content))
    return Passed(rewrite=partial(_with_plugin, str(plugin)))


def _with_plugin(path: str, message: bytes) -> bytes:
    """A request that begins a session, with our plugin beside those that the client names."""
    if not any(method in message for method in _MAYBE):
        return message
    request = msgspec.json.decode(message)
    if not isinstance(request, dict) or request.get("method") not in METHODS:
        return message
    params = as_object(request.get("params"))
    meta = as_object(params.get("_meta"))
    claude = as_object(meta.get("claudeCode"))
    options = as_object(claude.get("options"))
    named = options.get("plugins")
    plugins = [*(named if isinstance(named, list) else []), {"type": "local", "path": path}]
    claude = {**claude, "options": {**options, "plugins": plugins}}
    return msgspec.json.encode({**request, "params": {**params, "_meta": {**meta, "claudeCode": claude}}})


def _describe(name: str, given: JsonObject, folder: str) -> JsonObject:
    from dragoman.agents.claude.tools import describe

    return describe(name, given)


PASSING = Passing(Manner(says_ask=True, describe=_describe), _give)
