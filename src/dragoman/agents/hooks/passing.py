"""How each agent is made to run our hook: a table by program.

The user's own settings stay in force: ours are merged into what is there, and nothing is written but in the private
folder of the agent process.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from dragoman.agents.hooks.call import Manner
from dragoman.config.model import AgentConfig
from dragoman.gateway.ports.agent import AgentUnavailable, program_names
from dragoman.wire.json_types import JsonObject, as_object

HERE = Path(__file__).parent
VARIABLE = "DRAGOMAN_HOOK"
"""Has the address of the socket, and the secret, in the environment of the agent."""


@dataclass(frozen=True, slots=True)
class Passed:
    """What makes one agent process run the hook."""

    env: Mapping[str, str] = field(default_factory=dict)
    rewrite: Callable[[bytes], bytes] | None = None
    """Changes messages to the agent."""


@dataclass(frozen=True, slots=True)
class Passing:
    manner: Manner
    give: Callable[[Path, Mapping[str, str]], Passed]
    """Prepares the private folder; gets the environment of the agent. Raises `AgentUnavailable`."""


def pass_hook(passing: Passing, folder: Path, address: str, env: Mapping[str, str]) -> Passed:
    given = passing.give(folder, env)
    return Passed({**given.env, VARIABLE: address}, given.rewrite)


def passing_for(agent: AgentConfig) -> Passing | None:
    """How the hook is passed to this agent; None if that is not known."""
    if agent.kind != "acp":
        return None
    return next((BY_PROGRAM[name] for name in program_names(agent.command) if name in BY_PROGRAM), None)


# -- OpenCode

OPENCODE_SETTINGS = "OPENCODE_CONFIG_CONTENT"
_OPENCODE_KINDS = {
    **dict.fromkeys(("read",), "read"),
    **dict.fromkeys(("glob", "grep", "list", "codesearch", "lsp"), "search"),
    **dict.fromkeys(("edit", "write", "patch", "multiedit", "apply_patch"), "edit"),
    **dict.fromkeys(("webfetch", "websearch"), "fetch"),
    "bash": "execute",
    "task": "think",
}


def _opencode(folder: Path, env: Mapping[str, str]) -> Passed:
    """OpenCode 1.18 loads plugins that its settings name, and runs `tool.execute.before` of each for every call.

    Settings in this variable are merged with all others, and lists of plugins are joined.
    """
    plugin = folder / "dragoman.js"
    shutil.copyfile(HERE / "opencode.js", plugin)
    settings = _settings(env.get(OPENCODE_SETTINGS) or "{}", OPENCODE_SETTINGS)
    listed = settings.get("plugin")
    settings["plugin"] = [*(listed if isinstance(listed, list) else []), plugin.as_uri()]
    return Passed({OPENCODE_SETTINGS: msgspec.json.encode(settings).decode()})


# -- Qwen Code

QWEN_SETTINGS, QWEN_DEFAULTS = "QWEN_CODE_SYSTEM_SETTINGS_PATH", "QWEN_CODE_SYSTEM_DEFAULTS_PATH"
QWEN_SYSTEM = (
    "/Library/Application Support/QwenCode/settings.json"
    if sys.platform == "darwin"
    else "/etc/qwen-code/settings.json"
)
QWEN_PATIENCE = 50.0
"""Qwen Code 0.24 goes on with the call 60 s after it began to run hooks, whatever their own time limit is."""
_QWEN_KINDS = {
    **dict.fromkeys(("read_file", "read_many_files"), "read"),
    **dict.fromkeys(("list_directory", "glob", "grep_search", "search_file_content", "lsp"), "search"),
    **dict.fromkeys(("edit", "write_file", "replace", "notebook_edit", "save_memory"), "edit"),
    **dict.fromkeys(("web_fetch", "web_search"), "fetch"),
    "run_shell_command": "execute",
}


def _qwen(folder: Path, env: Mapping[str, str]) -> Passed:
    """Qwen Code 0.24 reads hooks from the settings of the system, beside those of the user and the project.

    Ours are those of the system with our hook added. The defaults of the system are looked for beside them.
    """
    system = Path(env.get(QWEN_SETTINGS) or QWEN_SYSTEM)
    try:
        settings = _settings(system.read_text(), str(system))
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
    defaults = env.get(QWEN_DEFAULTS) or str(system.with_name("system-defaults.json"))
    return Passed({QWEN_SETTINGS: str(file), QWEN_DEFAULTS: defaults})


def shell_line() -> str:
    """The command that runs the hook program; denies also if it cannot be started, or is killed."""
    program = shlex.join([sys.executable, "-I", "-S", str(HERE / "program.py")])
    failed = "Not allowed: the program that asks the rules failed."
    return f"{program} || {{ [ $? = 2 ] || echo {shlex.quote(failed)} >&2; exit 2; }}"


def _settings(text: str, where: str) -> JsonObject:
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise AgentUnavailable(
            f"{where} is not JSON ({error}), so that Dragoman cannot add its hook to it: correct it, or unset it"
        ) from error
    return as_object(found)


def _by_name(kinds: Mapping[str, str]) -> Callable[[str, JsonObject], JsonObject]:
    return lambda name, given: {"kind": kinds[name]} if name in kinds else {}


BY_PROGRAM: dict[str, Passing] = {
    "opencode": Passing(Manner(describe=_by_name(_OPENCODE_KINDS)), _opencode),
    "qwen": Passing(Manner(patience=QWEN_PATIENCE, describe=_by_name(_QWEN_KINDS)), _qwen),
}
