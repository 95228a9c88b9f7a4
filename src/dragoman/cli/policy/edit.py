"""`dragoman policy edit`: the user's file in an editor, put in force only when it is sound."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dragoman.cli.audit.tell import changing
from dragoman.config.errors import ConfigError
from dragoman.config.paths import find_paths

if TYPE_CHECKING:
    from dragoman.config.paths import Paths
    from dragoman.policy.check import Problem

EXAMPLE = """\
# Rules that answer permission questions; `dragoman policy test "git status"` tries them.
# [[policy.rules]]
# name = "tests and git reading"
# decision = "allow"
# command = [["git", ["status", "diff", "log"]], ["pytest"]]
# match = ["git diff --stat"]
# not_match = ["git push"]
"""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON; a broken file is not edited again.")
@click.pass_context
def edit(ctx: click.Context, as_json: bool) -> None:
    """Edit the rules in your configuration with $VISUAL or $EDITOR.

    The file is checked when the editor ends. One with mistakes is not put in force: it can be edited again, or stays
    beside the file as a draft. Exit code 1 if it was not put in force.
    """
    ctx.exit(edit_configuration(EXAMPLE, as_json=as_json))


def edit_configuration(example: str, *, as_json: bool) -> int:
    """Have the user's file edited, `example` if there is none, and put it in force if it is sound; the exit code."""
    paths = find_paths()
    paths.ensure(paths.config_file.parent)
    file = paths.config_file.resolve()
    before = file.read_bytes() if file.exists() else None
    draft = file.with_name("config.draft.toml")
    shown = before if before is not None else example.encode()
    _write_draft(draft, shown)
    while True:
        _open_editor(draft)
        problems, warnings = _check(paths, draft, file)
        again = bool(problems) and not as_json and sys.stdin.isatty()
        if not as_json:
            for text in (*problems, *(f"warning: {warning}" for warning in warnings)):
                click.echo(text, err=True)
        if not (again and click.confirm("Edit it again?", default=True, err=True)):
            break
    changed = False
    if not problems:
        with changing(paths.config_file):
            changed = _put_in_force(draft, file, before, shown)
    if as_json:
        told = {"file": str(file), "changed": changed, "problems": problems, "warnings": warnings}
        click.echo(json.dumps(told, indent=2, ensure_ascii=False))
    elif problems:
        click.echo(f"not put in force; what you wrote is in {draft}", err=True)
    else:
        click.echo(f"{file} is in force" if changed else "nothing changed")
    return 1 if problems else 0


def _write_draft(draft: Path, content: bytes) -> None:
    from dragoman.atomic_file import replace_file

    if draft.exists():
        raise ConfigError(
            f"{draft} is from an earlier edit that was not put in force: move its rules, then remove it"
        )
    replace_file(draft, content)


def _open_editor(draft: Path) -> None:
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        done = subprocess.run([*shlex.split(named), str(draft)], check=False)
    except (OSError, ValueError) as error:
        draft.unlink(missing_ok=True)
        raise ConfigError(f"cannot start the editor `{named}`: {error}; set VISUAL or EDITOR") from error
    if done.returncode != 0:
        draft.unlink(missing_ok=True)
        raise ConfigError(f"the editor `{named}` ended with exit code {done.returncode}: nothing changed")


def _check(paths: Paths, draft: Path, file: Path) -> tuple[list[str], list[str]]:
    """Mistakes of the draft and warnings about it, with the name that the file will have."""
    from dragoman.agents.known import known_layer
    from dragoman.cli.settings import here
    from dragoman.config.load import load
    from dragoman.policy.check import check_policy
    from dragoman.policy.load import load_policy

    draft_paths = replace(paths, config_file=draft)
    try:
        loaded = load(draft_paths, known=known_layer(), workspace=here())
        made, _ = load_policy(loaded, draft_paths)
    except ConfigError as error:
        return [str(error).replace(str(draft), str(file))], []
    found = [
        problem for problem in check_policy(made, list(loaded.config.agents)) if problem.file == str(draft)
    ]
    return _texts(found, draft, file, "error"), _texts(found, draft, file, "warning")


def _texts(problems: list[Problem], draft: Path, file: Path, severity: str) -> list[str]:
    return [str(one).replace(str(draft), str(file)) for one in problems if one.severity == severity]


def _put_in_force(draft: Path, file: Path, before: bytes | None, shown: bytes) -> bool:
    """Put the draft in the place of the file, if it is not as it was `shown`; whether that changed it."""
    from dragoman.atomic_file import replace_file

    content = draft.read_bytes()
    now = file.read_bytes() if file.exists() else None
    if now != before:
        raise ConfigError(f"{file} was changed by another program meanwhile: what you wrote is in {draft}")
    changed = content != shown
    if changed:
        replace_file(file, content)
    draft.unlink()
    return changed
