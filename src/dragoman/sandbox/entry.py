"""How variables get into a box: by the first lines of stdin, which a shell inside takes in.

In a command line everybody on this machine could read them. In the environment of the tool that makes the box they
would be obeyed outside of it: an agent that may name a command's variables could name LD_PRELOAD or PATH.
"""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Mapping, Sequence

NO_FOLDER = 72
"""How the shell exits where the folder is missing."""

_SCRIPT = (
    'dragoman_vars=; while IFS= read -r dragoman_line && [ "$dragoman_line" != "$1" ]; do '
    'dragoman_vars="$dragoman_vars$dragoman_line\n"; done; eval "$dragoman_vars"; '
    f'cd -- "$2" || exit {NO_FOLDER}; shift 2; exec "$@"'
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHELLS_OWN = frozenset({"BASHOPTS", "BASH_VERSINFO", "EUID", "GROUPS", "PPID", "SHELLOPTS", "UID"})
"""Read-only in one shell or another, which then ends at the attempt."""


class EntryError(Exception):
    """A variable cannot be passed on; the message goes on after the box's name."""


def entry(
    words: Sequence[str], env: Mapping[str, str], folder: str = ".", *, stdin: bool
) -> tuple[list[str], bytes]:
    """The command to run inside, and what its stdin begins with; without `stdin` there is nothing after that.

    An empty stdin is /dev/null for the command: of a file or pipe some programs think that it is their input.
    """
    lines = []
    for name, value in env.items():
        if not _NAME.fullmatch(name) or name in _SHELLS_OWN:
            raise EntryError(f"cannot pass the variable {name!r} on, which no shell lets be set")
        lines.append(f"export {name}={shlex.quote(value)}\n")
    end = secrets.token_hex(8)  # nobody can have put it into a value that has several lines
    preface = "".join([*lines, end, "\n"]).encode(errors="surrogateescape")
    script = _SCRIPT if stdin else f"{_SCRIPT} </dev/null"
    return ["sh", "-c", script, "dragoman", end, folder, *words], preface
