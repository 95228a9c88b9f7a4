"""Editors whose settings are JSON, most of them with comments: one entry is added, everything else stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.edited_file import Change, EditError, read_file
from dragoman.editors.editor import Found, Launch, Machine, program_in, split
from dragoman.editors.json_edit import Place, entries, put, take_out
from dragoman.editors.jsonc import JsoncError

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class JsonEditor:
    """The place of the entries in the settings, their form, and the file."""

    title: str
    place: Place
    entry: Callable[[Launch], Entry]
    where: Callable[[Machine], Path | None]
    note: str = ""
    unit: str = "  "
    """Indentation of a level in a file that has none yet."""
    id_is_name: bool = False
    """Whether entries are known by an identifier instead of the name as it was given."""

    by_hand = False

    def file(self, machine: Machine) -> Path | None:
        return self.where(machine)

    def show(self, launch: Launch) -> str:
        return put("", self.place, self._key(launch), self.entry(launch), self.unit)

    def install(self, launch: Launch, file: Path) -> list[Change]:
        before, text = _read(file)
        with _naming(file):
            after = put(text, self.place, self._key(launch), self.entry(launch), self.unit)
        return [Change(file, before, after.encode())]

    def find(self, file: Path) -> list[Found]:
        _, text = _read(file)
        with _naming(file):
            known = entries(text, self.place)
        found = ((name, program_in(_words(entry))) for name, entry in known.items())
        return [Found(name, program, file) for name, program in found if program is not None]

    def remove(self, name: str, file: Path) -> list[Change]:
        before, text = _read(file)
        with _naming(file):
            entry = entries(text, self.place).get(name)
            after = take_out(text, self.place, name)
            if entry is not None and put("", self.place, name, entry, self.unit) == text:
                return [Change(file, before, None, keep=False)]  # nothing else was ever in it
        return [Change(file, before, after.encode() if before is not None else None)]

    def _key(self, launch: Launch) -> str:
        return launch.id if self.id_is_name else launch.name


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Say in which file JSON is broken."""
    try:
        yield
    except JsoncError as error:
        raise EditError(
            f"{file}, {error}. The file was left alone: mend it and run the command again"
        ) from error


def _read(file: Path) -> tuple[bytes | None, str]:
    data = read_file(file)
    try:
        return data, (data or b"").decode()
    except UnicodeDecodeError as error:
        before = (data or b"")[: error.start]
        line, column = before.count(b"\n") + 1, error.start - (before.rfind(b"\n") + 1) + 1
        raise EditError(
            f"{file}, line {line}, column {column}: this is not UTF-8. The file was left alone"
        ) from error


def _words(entry: Any) -> list[str]:
    """The command of an entry, in whichever of the forms editors have."""
    if not isinstance(entry, dict):
        return []
    command, args = entry.get("command", entry.get("cmd")), entry.get("args", [])
    if not isinstance(command, str) or not isinstance(args, list):
        return []
    if "args" not in entry and " " in command:
        return split(command)
    return [command, *(str(word) for word in args)]
