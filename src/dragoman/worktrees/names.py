"""Names of worktrees: part of a branch and of a folder, so only letters, digits, `-` and `_`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from dragoman.gateway.ports.worktrees import WorktreeError

LONGEST = 48
BRANCHES = "dragoman/"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_OTHER = re.compile(r"[^a-z0-9]+")


def check_name(name: str) -> str:
    """A name that a person gave; raises `WorktreeError`."""
    if len(name) > LONGEST or _NAME.fullmatch(name) is None:
        raise WorktreeError(
            f"{name[:80]!r} is no name for a worktree: take up to {LONGEST} letters, digits, - and _, "
            "beginning with a letter or digit",
            "bad_name",
        )
    return name


def name_of(title: str) -> str:
    """A name made of a title or a prompt."""
    plain = unicodedata.normalize("NFKD", title[:400]).encode("ascii", "ignore").decode().lower()
    words = [word for word in _OTHER.split(plain) if word]
    name = ""
    for word in words:
        longer = f"{name}-{word}" if name else word[:LONGEST]
        if len(longer) > 32:
            break
        name = longer
    return name or "session"


def in_the_way(branches: Iterable[str], wanted: str) -> bool:
    """Whether a branch of this name exists, one that is a folder of it, or one that has it as a folder."""
    return any(f"{one}/".startswith(f"{wanted}/") or wanted.startswith(f"{one}/") for one in branches)
