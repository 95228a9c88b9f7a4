"""Finds the files that an agent's command needs outside of a box's system folders.

Most agents are installed below the home folder (npm, nvm, pyenv, uv, pipx), which is never shown. So the program, the
targets of its symlinks and the interpreter of its first line are shown read-only, each with its installation where
that is a separate folder.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import dragoman
from dragoman.config.files.installed import MARK

LINKS = 40
"""Symlinks followed at most, as in the kernel."""

SHARED = (".local", ".config", ".cache", "bin", ".bin")
"""Folders in a home that many programs share: never shown as a whole."""


OURS = Path(dragoman.__file__).parents[1]
"""Folder of our own package, for an interpreter that runs an agent we host; may lie in a virtual environment."""


def needed_files(words: Sequence[str], path: str, system: Sequence[str]) -> list[Path]:
    """Files and folders to show for a command, looked up in `path` (PATH), without those in the `system` folders."""
    found: dict[Path, None] = {}
    if _is_hosted(words) and not any(OURS.is_relative_to(folder) for folder in system):
        found[OURS] = None
    for file in _files(words, path):
        if not any(file.is_relative_to(folder) for folder in system):
            found[_installation(file)] = None
    return [each for each in found if not any(each.is_relative_to(o) for o in found if o != each)]


def _files(words: Sequence[str], path: str) -> Iterator[Path]:
    program = shutil.which(words[0], path=path)
    if program is not None:
        yield from _chain(Path(program).absolute())
        interpreter = _interpreter(Path(program), path)
        if interpreter is not None:
            yield from _chain(interpreter)
    for word in words[1:]:
        if word.startswith("/") and Path(word).is_file():  # the script of an interpreter
            yield from _chain(Path(word))


def _is_hosted(words: Sequence[str]) -> bool:
    return any(pair[0] == "-m" and pair[1].split(".")[0] == "dragoman" for pair in pairwise(words))


def _chain(file: Path) -> Iterator[Path]:
    """The file, each symlink on the way, and the final target."""
    for _ in range(LINKS):
        yield file
        if not file.is_symlink():
            return
        file = file.parent / file.readlink()
    return


def _interpreter(program: Path, path: str) -> Path | None:
    try:
        with program.open("rb") as file:
            first = file.readline(4096)
    except OSError:
        return None
    if not first.startswith(b"#!"):
        return None
    words = first[2:].decode(errors="replace").split()
    if words[:1] and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    found = shutil.which(words[0], path=path) if words else None
    return Path(found).absolute() if found is not None else None


def _installation(file: Path) -> Path:
    """The installation folder of a file, or the file alone if that folder also holds other things."""
    parts = file.parts
    if "node_modules" in parts:
        at = len(parts) - 1 - parts[::-1].index("node_modules")
        return Path(*parts[: at + 1])  # a package's dependencies lie beside it
    own = next((folder for folder in file.parents if (folder / MARK).exists()), None)
    if own is not None:
        return own
    prefix = file.parent.parent
    if file.parent.name == "bin" and _is_installation(prefix):
        return prefix
    return file


def _is_installation(prefix: Path) -> bool:
    """Whether a folder belongs to one installation alone; unlike ~/.cargo, which has a token beside `bin`."""
    shared = Path.home().is_relative_to(prefix) or (prefix.parent == Path.home() and prefix.name in SHARED)
    return not shared and any((prefix / name).exists() for name in ("lib", "pyvenv.cfg"))
