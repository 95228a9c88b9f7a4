"""`dragoman completion`: scripts for shells, and the values that they complete.

The script runs `dragoman` with `_DRAGOMAN_COMPLETE` set at each Tab, so this must stay fast: commands come from the
table without importing them, sessions by one query.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing

import click
from click.shell_completion import CompletionItem, get_completion_class

from dragoman.cli.commands import COMPLETING, SETTINGS, root
from dragoman.config.errors import ConfigError
from dragoman.config.paths import find_paths

MOST = 50
"""Sessions that are offered, the newest first: a shell shows all of them at once."""
TITLE = 60

_WHERE = {
    "bash": 'put it into ~/.bashrc:  eval "$(dragoman completion bash)"',
    "zsh": 'put it into ~/.zshrc, behind compinit:  eval "$(dragoman completion zsh)"',
    "fish": "save it:  dragoman completion fish > ~/.config/fish/completions/dragoman.fish",
}


@click.command(context_settings=SETTINGS)
@click.argument("shell", type=click.Choice(list(_WHERE)))
def completion(shell: str) -> None:
    """Print the script that completes commands, options, sessions and agents in your shell."""
    made = get_completion_class(shell)
    assert made is not None
    click.echo(f"# {_WHERE[shell]}")
    click.echo(made(root, {}, "dragoman", COMPLETING).source())


class Live(click.ParamType[str]):
    """A parameter whose values are looked up when they are completed; it takes any text."""

    name = "text"

    def __init__(self, values: Callable[[str], Iterator[CompletionItem]]) -> None:
        self._values = values

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        try:
            return list(self._values(incomplete))
        except (ConfigError, OSError, sqlite3.Error):
            return []  # a Tab is no place for an error


def complete_values(command: click.Command, path: str) -> None:
    """Give the parameters of a command and those below it their values."""
    for parameter in command.params:
        values = VALUES.get((path, parameter.name or ""), VALUES.get(("", parameter.name or "")))
        if values is not None and isinstance(parameter.type, click.types.StringParamType):
            parameter.type = Live(values)
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            complete_values(inner, f"{path} {name}")


def _sessions(incomplete: str) -> Iterator[CompletionItem]:
    """Sessions by the beginning of their id, the last used first."""
    database = find_paths().database
    if not database.exists():
        return
    query = (
        "SELECT id, agent, title FROM directory WHERE substr(id, 1, ?) = ? ORDER BY updated_at DESC LIMIT ?"
    )
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True, timeout=0.2)) as connection:
        for id, agent, title in connection.execute(query, (len(incomplete), incomplete, MOST)):
            yield CompletionItem(id, help=_one_line(f"{agent}  {title or ''}"))


def _agents(incomplete: str) -> Iterator[CompletionItem]:
    from dragoman.agents.known import KNOWN, known_layer
    from dragoman.cli.settings import here
    from dragoman.config.load import load

    config = load(find_paths(), known=known_layer(), workspace=here()).config
    for name in config.agents:
        if name.startswith(incomplete):
            yield CompletionItem(name, help=KNOWN[name].title if name in KNOWN else None)


def _one_line(text: str) -> str:
    """Text of an agent, safe in the shell's list."""
    return "".join(letter for letter in text if letter.isprintable())[:TITLE].strip()


VALUES: dict[tuple[str, str], Callable[[str], Iterator[CompletionItem]]] = {
    ("", "id"): _sessions,
    ("", "ids"): _sessions,
    ("", "session"): _sessions,
    ("", "agent"): _agents,
    ("agents check", "names"): _agents,
    ("agents add", "name"): _agents,
    ("agents remove", "name"): _agents,
    ("audit show", "id"): lambda incomplete: iter(()),
    ("policy forget", "id"): lambda incomplete: iter(()),
}
"""By command and parameter, or by the parameter's name in every command."""
