"""Every editor by its name: where its settings are, and which keys they have.

The keys come from the documentation or the source of each editor or plugin; `docs/how-to/editors.md` names the source.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from dragoman.edited_file import EditError, read_file
from dragoman.editors import emacs, neovim
from dragoman.editors.by_hand import ByHand
from dragoman.editors.code_files import CodeFile
from dragoman.editors.editor import Editor, Launch, Machine
from dragoman.editors.json_edit import Place
from dragoman.editors.json_editor import Entry, JsonEditor


def _common(launch: Launch) -> Entry:
    env = {"env": launch.env} if launch.env else {}
    return {"command": launch.program, "args": launch.args, **env}


def _zed(launch: Launch) -> Entry:
    return {"type": "custom", **_common(launch)}


def _with_env(launch: Launch) -> Entry:
    return {"command": launch.program, "args": launch.args, "env": launch.env}


def _sublime(launch: Launch) -> Entry:
    env = {"env": launch.env} if launch.env else {}
    return {"title": launch.name, "cmd": launch.program, "args": launch.args, **env}


def _obsidian(launch: Launch) -> Entry:
    env = [{"key": key, "value": value} for key, value in launch.env.items()]
    return {
        "id": launch.id,
        "displayName": launch.name,
        "command": launch.program,
        "args": launch.args,
        "env": env,
    }


def _acpx(launch: Launch) -> Entry:
    return {"command": shlex.join(launch.words)}


def _vscode(folder: str) -> Callable[[Machine], Path]:
    return lambda machine: machine.support / folder / "User" / "settings.json"


def _sublime_file(machine: Machine) -> Path:
    folder = "Sublime Text" if machine.is_mac else "sublime-text"
    return machine.support / folder / "Packages" / "User" / "ACP.sublime-settings"


def _obsidian_file(machine: Machine) -> Path | None:
    """The settings of the plugin in the only vault that has it; None if there is no such vault, or more than one."""
    try:
        known: Any = json.loads(read_file(machine.support / "obsidian" / "obsidian.json") or b"{}")
        vaults = [Path(str(vault["path"])) for vault in known.get("vaults", {}).values()]
    except (EditError, ValueError, KeyError, TypeError, AttributeError):
        return None
    plugins = [vault / ".obsidian" / "plugins" / "agent-client" for vault in vaults]
    present = [plugin for plugin in plugins if plugin.is_dir()]
    return present[0] / "data.json" if len(present) == 1 else None


def _toad(launch: Launch) -> str:
    return f"toad acp {shlex.quote(shlex.join(launch.words))} --title {shlex.quote(launch.name)}\n"


def _qt_creator(launch: Launch) -> str:
    env = "".join(f"Environment Changes   {key}={value}\n" for key, value in launch.env.items())
    return (
        "Preferences > AI > ACP Servers > Add, with\n"
        "Template              Custom\n"
        f"Name                  {launch.name}\n"
        f"Executable            {launch.program}\n"
        f"Arguments             {shlex.join(launch.args)}\n{env}"
    )


_CLIENT = partial(JsonEditor, place=Place(("acp.agents",)), entry=_with_env, unit="    ")
_EXTENSION = "Needs the extension ACP Client (formulahendry.acp-client)."

EDITORS: dict[str, Editor] = {
    "zed": JsonEditor(
        "Zed",
        Place(("agent_servers",)),
        _zed,
        lambda machine: (
            (machine.home / ".config" if machine.is_mac else machine.config) / "zed" / "settings.json"
        ),
        "Open the agent panel and choose it for a new thread.",
    ),
    "jetbrains": JsonEditor(
        "JetBrains IDEs",
        Place(("agent_servers",)),
        _common,
        lambda machine: machine.home / ".jetbrains" / "acp.json",
        "Choose it in the AI Chat; it needs the plugin AI Assistant, but no subscription.",
    ),
    "vscode": _CLIENT("Visual Studio Code", where=_vscode("Code"), note=_EXTENSION),
    "vscode-insiders": _CLIENT("VS Code Insiders", where=_vscode("Code - Insiders"), note=_EXTENSION),
    "vscodium": _CLIENT("VSCodium", where=_vscode("VSCodium"), note=_EXTENSION),
    "cursor": _CLIENT("Cursor", where=_vscode("Cursor"), note=_EXTENSION),
    "windsurf": _CLIENT("Windsurf", where=_vscode("Windsurf"), note=_EXTENSION),
    "codecompanion": CodeFile(
        "Neovim with CodeCompanion",
        neovim.codecompanion,
        neovim.codecompanion_file,
        "Restart Neovim; :CodeCompanionChat talks to it.",
    ),
    "avante": CodeFile(
        "Neovim with Avante", neovim.avante, neovim.avante_file, "Restart Neovim; :AvanteAsk talks to it."
    ),
    "agent-shell": CodeFile(
        "Emacs with agent-shell",
        emacs.agent_shell,
        emacs.file,
        "Restart Emacs; M-x dragoman-agent-shell starts it, and M-x agent-shell offers it.",
        (emacs.init_file, emacs.load_line),
    ),
    "sublime": JsonEditor(
        "Sublime Text",
        Place(("commands",), "title"),
        _sublime,
        _sublime_file,
        "Needs the package ACP.",
    ),
    "obsidian": JsonEditor(
        "Obsidian",
        Place(("customAgents",), "id"),
        _obsidian,
        _obsidian_file,
        "Needs the plugin Agent Client. Close Obsidian first: it writes this file too.",
        id_is_name=True,
    ),
    "acpx": JsonEditor(
        "acpx",
        Place(("agents",)),
        _acpx,
        lambda machine: machine.home / ".acpx" / "config.json",
        "Then `acpx NAME 'a prompt'`.",
        id_is_name=True,
    ),
    "toad": ByHand("Toad", _toad, "Run the command."),
    "qt-creator": ByHand("Qt Creator", _qt_creator, "Needs the extension ACP Client."),
}
