"""The help of every command: whole lines at 80 columns, with examples that the command takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click
import pytest

from dragoman.cli.commands import root
from dragoman.cli.examples import EXAMPLES

COLUMNS = 80


def walk(command: click.Command, above: click.Context | None, name: str) -> Iterator[click.Context]:
    """A context for the command and for each below it."""
    settings = {} if above is not None else {"terminal_width": COLUMNS, **command.context_settings}
    context = click.Context(command, above, name, **settings)
    yield context
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            assert found is not None
            yield from walk(found, context, inner)


CONTEXTS = {context.command_path: context for context in walk(root, None, "dragoman")}


@pytest.mark.parametrize("path", CONTEXTS)
def test_help_lines_are_whole_and_fit(path: str) -> None:
    for line in CONTEXTS[path].get_help().splitlines():
        assert len(line) <= COLUMNS, line
        assert not re.search(r"\w\.\.\.$", line) or line.startswith("Usage:"), f"cut: {line}"
        assert "RANGE" not in line, f"a type instead of a name: {line}"


@pytest.mark.parametrize("path", CONTEXTS)
def test_every_command_has_examples_that_it_takes(path: str) -> None:
    examples = EXAMPLES.get(path.removeprefix("dragoman").strip(), {})
    assert examples, f"{path} has no example"
    shown = CONTEXTS[path].get_help()
    for line in examples:
        assert line in shown
        typed = re.search(r"dragoman\b(?: [^|>)]*)?", line)
        assert typed is not None
        takes(shlex.split(typed[0])[1:])


def takes(arguments: list[str]) -> None:
    """Fails unless the words are a command with options that it has and as many arguments as it wants."""
    command, path = root, ["dragoman"]
    while isinstance(command, click.Group) and arguments and arguments[0] != "--help":
        path.append(arguments.pop(0))
        command = CONTEXTS[" ".join(path)].command  # type: ignore[assignment]
    if "--help" in arguments:
        return
    context = CONTEXTS[" ".join(path)]
    values, rest, _ = command.make_parser(context).parse_args(arguments)
    assert not rest
    for parameter in command.params:
        if isinstance(parameter, click.Argument) and parameter.required:
            assert values.get(parameter.name or "") not in (None, ()), f"{parameter.name} is missing"


def test_no_example_is_of_a_command_that_is_gone() -> None:
    assert {f"dragoman {path}".strip() for path in EXAMPLES} == set(CONTEXTS)
