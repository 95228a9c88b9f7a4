"""Completes `/` commands at the beginning of a line and `@` files anywhere."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from dragoman.cli.chat.lines.markdown import safe

MOST_FILES = 20_000
SHOWN = 12
LIST_AGE = 10.0
"""Seconds for which the list of files is used again."""
GIT_TIMEOUT = 2.0


class ChatCompleter(Completer):
    def __init__(self, folder: Path, commands: Callable[[], Mapping[str, str]]) -> None:
        self._folder = folder
        self._commands = commands
        self.arguments: Callable[[str], Sequence[tuple[str, str]]] = lambda name: ()
        """What may follow a command, with a hint each."""
        self._files: list[str] = []
        self._listed_at = 0.0

    @property
    def folder(self) -> Path:
        return self._folder

    @folder.setter
    def folder(self, folder: Path) -> None:
        if folder != self._folder:
            self._folder, self._listed_at = folder, 0.0

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        if before.startswith("/") and " " not in before and "\n" not in before:
            for name, help in self._commands().items():
                if name.startswith(before[1:]):
                    yield Completion(f"/{name}", -len(before), display_meta=safe(help))
            return
        word = before.split()[-1] if before and not before[-1].isspace() else ""
        if word.startswith("@"):
            for file in fuzzy(word[1:], self.files()):
                yield Completion(f"@{file}", -len(word), display=safe(file))
        elif before.startswith("/") and "\n" not in before:
            name, _, given = before[1:].partition(" ")
            for value, hint in self.arguments(name):
                if value.startswith(given):
                    yield Completion(value, -len(given), display=safe(value), display_meta=safe(hint))

    def files(self) -> list[str]:
        """The files of the folder: those that git knows or would add, else all but hidden ones."""
        if not self._listed_at or time.monotonic() - self._listed_at > LIST_AGE:
            self._files = _git_files(self._folder) or list(_walk(self._folder))
            self._listed_at = time.monotonic()
        return self._files


def fuzzy(word: str, names: Iterable[str]) -> list[str]:
    """The names that have the letters of `word` in this order, the closest first."""
    wanted = word.lower()
    found = []
    for name in names:
        lower, place = name.lower(), -1
        for letter in wanted:
            place = lower.find(letter, place + 1)
            if place < 0:
                break
        else:
            whole = lower.find(wanted)
            base = lower.rpartition("/")[2]
            found.append((not base.startswith(wanted), whole < 0, len(name), name))
    return [name for *_, name in sorted(found)[:SHOWN]]


def _git_files(folder: Path) -> list[str]:
    command = ["git", "-c", "core.fsmonitor=false", "ls-files", "-co", "--exclude-standard", "-z"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=GIT_TIMEOUT, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    names = done.stdout.decode(errors="replace").split("\0")
    return [name for name in names[:MOST_FILES] if name]


def _walk(folder: Path) -> Iterator[str]:
    count = 0
    for top, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if count >= MOST_FILES:
                return
            count += 1
            yield os.path.relpath(Path(top) / name, folder)
