"""Values of variables in shell text: `TOKEN=abc ./deploy`, `export TOKEN=abc`. They may be secrets.

This is for text that is shown or recorded, which need not be a whole or a valid line; rules read lines exactly
(`dragoman.policy.shell`). Options such as `--depth=1`, and arguments such as `dd if=disk`, are no variables.
"""

from __future__ import annotations

import re

MASK = "***"
_VALUE = r"""(?:"(?:\\.|[^"\\])*"|'[^']*'|\\.|[^\s;&|()<>"'\\`])+"""
_ASSIGNED = re.compile(rf"(?<![\w.$/-])([A-Za-z_]\w*)=({_VALUE})", re.DOTALL)
_WORDS = "env|export|declare|typeset|local|readonly|sudo|doas|then|do|else"
_BEFORE = re.compile(rf"(?:^|[;&|(`{{\n]|\b(?:{_WORDS}))\s*(?:-\S+\s+)*\Z")
"""What stands before a variable, back to the beginning of its command."""
LOOKED_BACK = 100
_QUOTED = re.compile(r"""["']|\\(.)""", re.DOTALL)


def mask_assigned(text: str) -> tuple[str, list[str]]:
    """The text with the values of variables masked, and these values without their quotes."""
    shown: list[str] = []
    values: list[str] = []
    done = 0
    for found in _ASSIGNED.finditer(text):
        before = text[done : found.start()]
        follows = done > 0 and not before.strip()  # another one right before
        if not (
            found[1].isupper()
            or follows
            or _BEFORE.search(text, max(0, found.start() - LOOKED_BACK), found.start())
        ):
            continue
        shown.append(text[done : found.start(2)] + MASK)
        values.append(_QUOTED.sub(lambda quoted: quoted[1] or "", found[2]))
        done = found.end()
    return "".join([*shown, text[done:]]), values
