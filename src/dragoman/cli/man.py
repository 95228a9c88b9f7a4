"""`dragoman man`: the manual page, made from the help of every command so that it cannot be out of date."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

import click

import dragoman
from dragoman.cli.commands import COMMANDS, SETTINGS, root


@click.command(context_settings=SETTINGS)
def man() -> None:
    """Print the manual page of dragoman, in the format of man."""
    click.echo("\n".join(page()))


def page() -> Iterator[str]:
    today = date.today().isoformat()
    yield f'.TH DRAGOMAN 1 "{today}" "dragoman {dragoman.__version__}" "User Commands"'
    yield ".SH NAME"
    yield "dragoman \\- one gateway between clients and coding agents"
    yield ".SH SYNOPSIS"
    yield ".B dragoman"
    yield "[\\-\\-color WHEN] COMMAND [OPTIONS] [ARGUMENTS]"
    yield ".SH COMMANDS"
    with click.Context(root, info_name="dragoman") as context:
        for name in COMMANDS:
            command = root.get_command(context, name)
            assert command is not None
            yield from _command(command, click.Context(command, context, name))
    yield ".SH EXIT STATUS"
    yield "0 for success, 1 if something failed, 2 for bad usage or a mistake in the configuration."
    yield "exec also has 3 (the agent refused), 124 (time limit) and 130 (cancelled)."
    yield ".SH FILES"
    yield ".TP\n~/.config/dragoman/config.toml"
    yield "The configuration; `dragoman config path \\-\\-all` prints all paths."
    yield ".SH ENVIRONMENT"
    yield ".TP\nDRAGOMAN_HOME\nOne folder for configuration and state."
    yield ".TP\nNO_COLOR\nNo colours."


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    """One command and those below it."""
    usage = " ".join(command.collect_usage_pieces(context))
    yield f".SS {_text(context.command_path)} {_text(usage)}"
    yield from _paragraphs(command.help or "")
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[1] and "--help" not in parameter.opts:
            yield f".TP\n.B {_text(record[0])}\n{_text(record[1])}"
    yield ".PP"
    yield from _paragraphs(command.epilog or "")
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                yield from _command(inner, click.Context(inner, context, name))


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(re.split(r"\n\s*\n", text.replace("\f", "").strip())):
        if number:
            yield ".PP"
        if "\b" in paragraph:
            yield f".nf\n{_text(paragraph.replace(chr(8), '').strip(), lines=True)}\n.fi"
        else:
            yield _text(paragraph)


def _text(text: str, *, lines: bool = False) -> str:
    """Text in which nothing is a request of roff."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    rows = [" ".join(row.split()) for row in text.splitlines()] if lines else [" ".join(text.split())]
    return "\n".join(f"\\&{row}" if row.startswith((".", "'")) else row for row in rows)
