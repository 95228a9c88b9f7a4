"""`dragoman editor` as a person runs it, on settings as people have them."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from dragoman.editors.catalog import EDITORS
from dragoman.editors.editor import Launch, Machine
from support.command_line import CommandLine

ZED = '// mine\n{\n\t"theme": "One Dark", // dark\n}\n'
AGENT = ("--agent", "scripted")


@pytest.fixture
def zed(user: Path) -> Path:
    file = user / ".config" / "zed" / "settings.json"
    file.parent.mkdir(parents=True)
    file.write_text(ZED)
    return file


def test_settings_are_written_once_and_taken_out_again(shell: CommandLine, zed: Path) -> None:
    zed.chmod(0o640)
    done = shell.run("editor", "install", "zed", *AGENT, "--yes")
    assert done.returncode == 0, done.stderr
    assert '+\t\t"Dragoman scripted": {' in done.stderr and " // mine" in done.stderr
    text = zed.read_text()
    entry = json.loads(text.removeprefix("// mine\n").replace("// dark", "").replace("\t},\n}", "\t}}"))
    server = entry["agent_servers"]["Dragoman scripted"]
    assert server["type"] == "custom" and server["args"] == ["acp", "scripted"]
    assert os.access(server["command"], os.X_OK) and server["command"].startswith("/")
    assert server["env"]["PATH"].split(":")[:2] == ["/usr/bin", "/bin"]
    assert stat.S_IMODE(zed.stat().st_mode) == 0o640
    (backup,) = zed.parent.glob("*.bak")
    assert backup.read_text() == ZED and stat.S_IMODE(backup.stat().st_mode) == 0o640

    again = shell.run("editor", "install", "zed", *AGENT, "--yes")
    assert (again.returncode, "already so" in again.stdout, zed.read_text()) == (0, True, text)
    (row, *_) = json.loads(shell.run("editor", "list", "--json").stdout)
    assert row["state"] == "configured" and row["entries"][0]["program"] == server["command"]

    removed = shell.run("editor", "remove", "zed", "--yes")
    assert removed.returncode == 0, removed.stderr
    assert zed.read_text() == ZED


def test_nothing_is_changed_without_consent(shell: CommandLine, zed: Path) -> None:
    asked = shell.run("editor", "install", "zed")
    assert asked.returncode == 3 and "--yes" in asked.stderr and "+" in asked.stderr
    told = shell.run("editor", "install", "zed", "--json")
    assert told.returncode == 3 and json.loads(told.stdout)["state"] == "not changed"
    assert [file.name for file in zed.parent.iterdir()] == ["settings.json"] and zed.read_text() == ZED


def test_a_person_at_a_terminal_is_asked(shell: CommandLine, zed: Path) -> None:
    with shell.terminal("editor", "install", "zed") as terminal:
        terminal.until("settings.json? [y/N]")
        terminal.type("n\r")
        assert terminal.end() == 3
    assert zed.read_text() == ZED


def test_a_link_into_a_dotfiles_folder_stays_one(shell: CommandLine, zed: Path, user: Path) -> None:
    real = user / "dotfiles" / "zed.json"
    real.parent.mkdir()
    zed.rename(real)
    zed.symlink_to(real)
    assert shell.run("editor", "install", "zed", "--yes").returncode == 0
    assert zed.is_symlink() and "agent_servers" in real.read_text()
    assert [file.name for file in real.parent.iterdir()] == ["zed.json"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{\n  "theme" 1\n}', "line 2, column 11"),
        (b'{"a": "\xff"}', "line 1, column 8: this is not UTF-8"),
        (b'{"agent_servers": 5}', '"agent_servers" is not an object'),
        (b" " * 5_000_001, "5,000,000 bytes"),
    ],
    ids=["broken", "latin", "another type", "huge"],
)
def test_a_file_that_is_not_understood_is_left_alone(
    shell: CommandLine, zed: Path, content: bytes, says: str
) -> None:
    zed.write_bytes(content)
    done = shell.run("editor", "install", "zed", "--yes")
    assert done.returncode == 1 and says in done.stderr and str(zed) in done.stderr
    assert zed.read_bytes() == content and len(list(zed.parent.iterdir())) == 1


def test_mistakes_are_explained(shell: CommandLine, user: Path) -> None:
    for arguments, says in (
        (("install", "zedd"), 'did you mean "zed"'),
        (("install", "zed", "--agent", "scriptedd"), "scripted"),
        (("install", "zed", "--sandbox", "none"), "bubblewrap"),
        (("install", "zed", "--name", "a\nb"), "--name"),
        (("install", "toad"), "editor show toad"),
        (("install", "obsidian"), "--file"),
        (("remove", "zed", "--name", "x"), "it has none"),
    ):
        done = shell.run("editor", *arguments)
        assert done.returncode == 2 and says in done.stderr, (arguments, done.stderr)
    assert shell.run("editor", "remove", "zed", "--yes").returncode == 0
    assert list(user.iterdir()) == []


def test_two_entries_are_told_apart_by_name(shell: CommandLine, user: Path) -> None:
    file = user / ".jetbrains" / "acp.json"
    for name in ("One", "Two"):
        assert shell.run("editor", "install", "jetbrains", "--name", name, "--yes").returncode == 0
    several = shell.run("editor", "remove", "jetbrains", "--yes")
    assert several.returncode == 2 and "One, Two" in several.stderr
    assert shell.run("editor", "remove", "jetbrains", "--name", "One", "--yes").returncode == 0
    assert list(json.loads(file.read_text())["agent_servers"]) == ["Two"]
    assert shell.run("editor", "remove", "jetbrains", "--yes").returncode == 0
    assert not file.exists()


def test_a_program_that_is_gone_is_named(shell: CommandLine) -> None:
    gone = ("--program", "/nowhere/dragoman", "--yes")
    assert shell.run("editor", "install", "jetbrains", *gone).returncode == 0
    rows = {row["editor"]: row for row in json.loads(shell.run("editor", "list", "--json").stdout)}
    assert rows["jetbrains"]["state"] == "broken" and "/nowhere/dragoman" in rows["jetbrains"]["detail"]


def test_an_init_file_gets_one_block_and_loses_it_again(shell: CommandLine, user: Path) -> None:
    for content in ("(setq a 1)\n", "(setq a 1)", ";; x\r\n"):
        init = user / ".emacs"
        init.write_bytes(content.encode())
        (user / ".emacs.d").mkdir(exist_ok=True)
        own = user / ".emacs.d" / "dragoman-agent-shell.el"
        for _ in range(2):
            assert shell.run("editor", "install", "agent-shell", "--yes").returncode == 0
        assert init.read_text().count("dragoman-agent-shell") == 1 and own.exists()
        assert shell.run("editor", "remove", "agent-shell", "--yes").returncode == 0
        assert init.read_bytes() == content.encode() and not own.exists()
    (user / ".emacs.d" / own.name).write_text("(mine)")
    refused = shell.run("editor", "install", "agent-shell", "--yes")
    assert refused.returncode == 1 and "not from Dragoman" in refused.stderr


LAUNCH = Launch('A "b" \\ ü', "/opt/dragoman", "gemini", "bubblewrap", "/usr/bin:/bin")


@pytest.mark.parametrize("name", [name for name, editor in EDITORS.items() if not editor.by_hand])
def test_every_editor_is_set_up_found_and_cleared(name: str, user: Path) -> None:
    machine = Machine(user, user / ".config", {}, is_mac=False)
    editor = EDITORS[name]
    file = editor.file(machine) or user / "data.json"
    for change in editor.install(LAUNCH, file):
        change.apply()
    assert file.read_text() == editor.show(LAUNCH)
    assert not any(change.is_needed for change in editor.install(LAUNCH, file))
    (found,) = editor.find(file)
    assert found.program == "/opt/dragoman"
    for change in editor.remove(found.name, file):
        change.apply()
    assert [path for path in user.rglob("*") if path.is_file()] == []


def test_settings_are_where_each_system_has_them(user: Path) -> None:
    linux, mac = Machine(user, user / "xdg", {}, is_mac=False), Machine(user, user / "xdg", {}, is_mac=True)
    places = {
        "zed": ("xdg/zed/settings.json", ".config/zed/settings.json"),
        "vscode": ("xdg/Code/User/settings.json", "Library/Application Support/Code/User/settings.json"),
        "jetbrains": (".jetbrains/acp.json", ".jetbrains/acp.json"),
        "codecompanion": ("xdg/nvim/after/plugin/dragoman_codecompanion.lua",) * 2,
    }
    for name, (on_linux, on_mac) in places.items():
        assert EDITORS[name].file(linux) == user / on_linux
        assert EDITORS[name].file(mac) == user / on_mac


def test_the_only_vault_with_the_plugin_is_found(user: Path) -> None:
    machine = Machine(user, user / ".config", {}, is_mac=False)
    vaults = {str(index): {"path": str(user / f"vault{index}")} for index in range(2)}
    (user / ".config" / "obsidian").mkdir(parents=True)
    (user / ".config" / "obsidian" / "obsidian.json").write_text(json.dumps({"vaults": vaults}))
    assert EDITORS["obsidian"].file(machine) is None
    plugin = user / "vault1" / ".obsidian" / "plugins" / "agent-client"
    plugin.mkdir(parents=True)
    assert EDITORS["obsidian"].file(machine) == plugin / "data.json"
