"""`dragoman editor`: show, write and take out the settings with which editors start Dragoman."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from dragoman.cli.commands import AS_JSON, SETTINGS, WholeLines
from dragoman.cli.setup.consent import NOT_DONE, YES, agreed, diff_of, make, reported, show_diff
from dragoman.config.errors import ConfigError
from dragoman.edited_file import Change, EditError
from dragoman.editors.catalog import EDITORS
from dragoman.editors.editor import Editor, Found, Launch, Machine, default_name
from dragoman.installed import NotInstalled, program, search_path

Command = TypeVar("Command", bound=Callable[..., Any])
LONGEST_NAME = 100


def _options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def give(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return give


EDITOR = click.argument("editor", metavar="NAME")
FILE = click.option(
    "--file", type=click.Path(path_type=Path), help="Settings file to use instead of the usual one."
)
LAUNCH = _options(
    click.option(
        "--agent", "-a", metavar="NAME", help="Agent of all sessions.  [default: each session picks one]"
    ),
    click.option("--sandbox", metavar="NAME", help="Run the agents in this sandbox."),
    click.option(
        "--name", metavar="TEXT", help="Name that the editor shows.  [default: Dragoman and the agent]"
    ),
    click.option("--program", "program_", metavar="PATH", help="Program to start.  [default: this one]"),
    click.option(
        "--path", metavar="FOLDERS", help="PATH for the agents; empty for none.  [default: the present one]"
    ),
)


@click.group(cls=WholeLines, context_settings=SETTINGS)
def editor() -> None:
    """Put Dragoman into editors, and take it out again."""


@editor.command("list")
@AS_JSON
def list_editors(as_json: bool) -> None:
    """Show the editors, and what in their settings starts Dragoman."""
    from dragoman.cli.terminal.table import print_table

    machine = Machine.this(os.environ)
    rows = [_state(name, known, machine) for name, known in EDITORS.items()]
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    colours = {"configured": "green", "broken": "red"}
    shown = [[row["editor"], row["title"], row["state"], row["detail"]] for row in rows]
    print_table(["NAME", "EDITOR", "STATE", "DETAIL"], shown, colours)


def _state(name: str, known: Editor, machine: Machine) -> dict[str, Any]:
    """One row: `configured`, `here`, `not here`, `by hand`, or `broken` with the reason."""
    file = known.file(machine)
    state, detail, entries = "not here", known.note, list[Found]()
    if known.by_hand:
        state = "by hand"
    elif file is not None:
        try:
            entries = known.find(file)
            state = "here" if file.exists() or _base(file).is_dir() else "not here"
        except EditError as error:
            state, detail = "broken", str(error)
    if entries:
        gone = [entry for entry in entries if not os.access(entry.program, os.X_OK)]
        state = "broken" if gone else "configured"
        detail = ", ".join(f"{entry.name} ({entry.program})" for entry in entries)
        if gone:
            detail += (
                f"; {gone[0].program} does not exist: `dragoman editor install {name}` writes the new path"
            )
    return {
        "editor": name,
        "title": known.title,
        "state": state,
        "file": None if file is None else str(file),
        "entries": [{"name": entry.name, "program": entry.program} for entry in entries],
        "detail": detail,
    }


def _base(file: Path) -> Path:
    """The folder that shows that the editor is used: `nvim` for a file in `nvim/after/plugin`."""
    return file.parent.parent.parent if file.parent.name == "plugin" else file.parent


@editor.command()
@EDITOR
@LAUNCH
def show(editor: str, **chosen: str | None) -> None:
    """Print the settings for the editor NAME, and change nothing."""
    click.echo(_find(editor).show(_launch(**chosen)), nl=False)


@editor.command()
@EDITOR
@LAUNCH
@FILE
@YES
@AS_JSON
@click.pass_context
def install(
    ctx: click.Context,
    /,
    editor: str,
    file: Path | None,
    yes: bool,
    as_json: bool,
    **chosen: str | None,
) -> None:
    """Write the settings for the editor NAME: shows the difference, asks, and keeps a copy of the old file.

    Comments, order and layout of the file stay. Exits with 3 if nobody agreed.
    """
    known, launch = _find(editor), _launch(**chosen)
    if known.by_hand:
        raise ConfigError(
            f"{known.title} is set up by hand: `dragoman editor show {editor}` prints what to type"
        )
    chosen_file = _file(editor, known, file)
    with reported():
        changes = known.install(launch, chosen_file)
    ctx.exit(_carry_out(known, launch.name, changes, yes=yes, as_json=as_json, done="configured"))


@editor.command()
@EDITOR
@click.option("--name", metavar="TEXT", help="Entry to take out; needed if there are several.")
@FILE
@YES
@AS_JSON
@click.pass_context
def remove(
    ctx: click.Context, editor: str, name: str | None, file: Path | None, yes: bool, as_json: bool
) -> None:
    """Take the settings for Dragoman out of the editor NAME, and nothing else."""
    known = _find(editor)
    if known.by_hand:
        raise ConfigError(f"{known.title} was set up by hand: remove it there")
    chosen_file = _file(editor, known, file)
    with reported():
        names = [found.name for found in known.find(chosen_file)]
    if name is None and len(names) > 1:
        raise ConfigError(f"{chosen_file} has several entries, choose one with --name: {', '.join(names)}")
    if name is not None and name not in names:
        there = f"it has {', '.join(names)}" if names else "it has none"
        raise ConfigError(f'{chosen_file} has no entry "{name}" that starts Dragoman: {there}')
    chosen = name or (names[0] if names else "")
    with reported():
        changes = known.remove(chosen, chosen_file) if names else []
    ctx.exit(_carry_out(known, chosen, changes, yes=yes, as_json=as_json, done="removed"))


def _carry_out(
    known: Editor, name: str, changes: Sequence[Change], *, yes: bool, as_json: bool, done: str
) -> int:
    """Show, ask and write; returns the exit code."""
    needed = [change for change in changes if change.is_needed]
    result = {
        "name": name,
        "state": "already" if not needed else done,
        "files": [str(change.path) for change in needed],
        "diff": diff_of(needed),
        "backups": list[str](),
    }
    code = 0
    if needed:
        if not as_json:
            show_diff(needed)
        files = " and ".join(str(change.path) for change in needed)
        if agreed(f"Change {files}?", yes):
            with reported():
                result["backups"] = [str(backup) for backup in make(needed)]
        else:
            code, result["state"] = NOT_DONE, "not changed"
    if as_json:
        click.echo(json.dumps(result, indent=2, ensure_ascii=False))
    elif not needed:
        click.echo(f"{known.title}: already so, nothing was changed.")
    elif code == 0:
        click.echo(f"{known.title}: {done} ({name}).{' ' + known.note if done == 'configured' else ''}")
        for backup in result["backups"]:
            click.echo(f"The old file is {backup}")
    return code


def _find(name: str) -> Editor:
    from dragoman.config.schema import suggest

    if name not in EDITORS:
        raise ConfigError(
            f'there is no editor "{name}"{suggest(name, EDITORS)}; `dragoman editor list` shows all of them'
        )
    return EDITORS[name]


def _file(name: str, known: Editor, given: Path | None) -> Path:
    file = given.expanduser().absolute() if given is not None else known.file(Machine.this(os.environ))
    if file is None:
        raise ConfigError(
            f"which settings file of {known.title} is meant is not clear here: give it with --file "
            f"(docs/how-to/editors.md says where it is)"
        )
    return file


def _launch(
    agent: str | None, sandbox: str | None, name: str | None, program_: str | None, path: str | None
) -> Launch:
    """The command for the editor, after the agent and the sandbox were found in the configuration."""
    if agent is not None or sandbox is not None:
        _check(agent, sandbox)
    chosen = default_name(agent, sandbox) if name is None else name
    if not chosen.strip() or not chosen.isprintable() or len(chosen) > LONGEST_NAME:
        raise ConfigError(f"--name must have 1 to {LONGEST_NAME} printable characters")
    for option, given in (("--program", program_), ("--path", path)):
        if given is not None and (not given.isprintable() or (option == "--program" and not given)):
            raise ConfigError(f"{option} has characters that settings cannot have")
    try:
        command = str(program()) if program_ is None else program_
    except NotInstalled as error:
        raise ConfigError(str(error)) from error
    folders = str(search_path()) if path is None else path
    return Launch(chosen, command, agent, sandbox, folders or None)


def _check(agent: str | None, sandbox: str | None) -> None:
    from dragoman.agents.known import find_agent
    from dragoman.cli.settings import load_settings

    _, loaded = load_settings(quiet=True)
    if agent is not None:
        find_agent(loaded.config, agent)
    if sandbox is not None:
        from dragoman.sandbox.boxes import PLAIN

        known = sorted({"local", *PLAIN, *loaded.config.sandboxes})
        if sandbox not in known:
            raise ConfigError(f'there is no sandbox "{sandbox}": there are {", ".join(known)}')
