"""Passes variables into a box as the first lines of stdin, which a shell inside evaluates.

On a command line every user of this machine could read them. In the environment of the tool that makes the box they
would act outside: an agent chooses a command's variables and could set LD_PRELOAD or PATH.
"""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Mapping, Sequence

NO_FOLDER = 72
"""Exit code of the shell if the folder is missing."""

_SCRIPT = (
    'dragoman_vars=; while IFS= read -r dragoman_line && [ "$dragoman_line" != "$1" ]; do '
    'dragoman_vars="$dragoman_vars$dragoman_line\n"; done; eval "$dragoman_vars"; '
    f'cd -- "$2" || exit {NO_FOLDER}; shift 2; exec "$@"'
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHELLS_OWN = frozenset({"BASHOPTS", "BASH_VERSINFO", "EUID", "GROUPS", "PPID", "SHELLOPTS", "UID"})
"""Variables that are read-only in some shells, which exit on an attempt to set them."""


class EntryError(Exception):
    """A variable cannot be passed on; the message continues a sentence that begins with the box's name."""


def entry(
    words: Sequence[str], env: Mapping[str, str], folder: str = ".", *, stdin: bool
) -> tuple[list[str], bytes]:
    """The command to run inside, and the bytes that its stdin must begin with; without `stdin` nothing follows them.

    Without `stdin` the command gets /dev/null: some programs take an empty file or pipe for their input.
    """
    lines = []
    for name, value in env.items():
        if not _NAME.fullmatch(name) or name in _SHELLS_OWN:
            raise EntryError(f"cannot pass the variable {name!r} on, which no shell lets be set")
        lines.append(f"export {name}={shlex.quote(value)}\n")
    end = secrets.token_hex(8)  # random: cannot occur in a value of several lines
    preface = "".join([*lines, end, "\n"]).encode(errors="surrogateescape")
    script = _SCRIPT if stdin else f"{_SCRIPT} </dev/null"
    return ["sh", "-c", script, "dragoman", end, folder, *words], preface
