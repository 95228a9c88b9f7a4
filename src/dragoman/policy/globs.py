"""Patterns of paths in rules: `*` stays in one folder, `**` does not, and `x/**` also matches x itself."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from dragoman.policy.shell.real_paths import real

_WILD = re.compile(r"\*\*/?|\*|\?")
_KINDS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


@dataclass(frozen=True, slots=True)
class Glob:
    """One pattern, made for one workspace."""

    expression: re.Pattern[str]
    steps: tuple[str, ...]
    head: str
    """What stands before the first wildcard, in whole steps: all that matches is it, or is below it."""
    whole: bool
    """Everything below `head` matches, and `head` itself."""
    tail: str = ""
    """What stands after the last wildcard: all that matches ends like this."""

    def matches(self, path: str) -> bool:
        return self.expression.fullmatch(path) is not None

    def may_match_below(self, folder: str) -> bool:
        """Whether something that is in a folder, at any depth, may match."""
        parts = folder.rstrip("/").split("/")
        for part, step in zip(parts, self.steps, strict=False):
            if "**" in step:
                return True
            if part != step and not re.fullmatch(_translated(step), part, re.DOTALL):
                return False
        return len(self.steps) > len(parts)


@lru_cache(maxsize=4096)
def glob_of(pattern: str, workspace: str) -> Glob:
    """A pattern of a rule, ready for matching."""
    made = pattern.replace("{workspace}", real(workspace) if workspace else "\0")
    if made.startswith("~/"):
        made = os.path.expanduser(made)  # noqa: PTH111
    steps = tuple(made.split("/"))
    plain = next((index for index, step in enumerate(steps) if _WILD.search(step)), len(steps))
    expression = _translated(made.removesuffix("/**")) + ("(?:/.*)?" if made.endswith("/**") else "")
    return Glob(
        re.compile(expression, re.DOTALL),
        steps,
        "/".join(steps[:plain]) or "/",
        whole=steps[plain:] in ((), ("**",)),
        tail=made[max((found.end() for found in _WILD.finditer(made)), default=0) :],
    )


def _translated(pattern: str) -> str:
    return "".join(_pieces(pattern))


def _pieces(pattern: str) -> Iterator[str]:
    at = 0
    for found in _WILD.finditer(pattern):
        yield re.escape(pattern[at : found.start()])
        yield _KINDS[found[0]]
        at = found.end()
    yield re.escape(pattern[at:])
