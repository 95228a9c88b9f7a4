"""`[[workspaces]]` in the configuration: which agent and sandbox the sessions of a folder get."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct


class WorkspaceRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which agent and sandbox the sessions of a workspace get."""

    path: Annotated[
        str, Meta(min_length=1, description="A directory (and all below it) or a glob; `~` works.")
    ]
    agent: Annotated[str | None, Meta(description="The agent for it.")] = None
    sandbox: Annotated[str | None, Meta(description="The sandbox for it.")] = None


def rules_for(cwd: str, rules: Iterable[WorkspaceRule]) -> Iterator[WorkspaceRule]:
    """The rules that match `cwd`: those by its real path first, then by its name, each in the order of the file.

    No symlink and no `..` evades a rule; a rule that names a symlink also holds for what it leads to.
    """
    rules = list(rules)
    for folder in (os.path.realpath(cwd), cwd):
        yield from (rule for rule in rules if _matches(rule.path, folder))


def covers(pattern: str, cwd: str) -> bool:
    """Whether a directory or glob covers `cwd`, by its real path or its name."""
    return any(_matches(pattern, folder) for folder in (os.path.realpath(cwd), cwd))


def _matches(pattern: str, folder: str) -> bool:
    named = str(Path(pattern).expanduser())
    return any(
        folder == path or folder.startswith(path.rstrip("/") + "/") or fnmatch.fnmatchcase(folder, path)
        for path in (named, os.path.realpath(named))
    )
