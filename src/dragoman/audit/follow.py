"""New records as they are written, by any process: by their places in the files, since a clock may go back."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from dragoman.audit import folder as places
from dragoman.audit import record


class Follower:
    """Begins with what is written after it was made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read = 0
        """How far the index was read."""
        self._open: dict[str, dict[Path, int]] = {}
        """By chain that has not ended: how far its segments were read."""
        self._ended: list[str] = []
        self._read_index()
        for chain in self._open:
            self._open[chain] = {path: _size(path) for path in places.segments(folder / chain)}

    def new(self) -> list[dict[str, Any]]:
        """The records since the last call, in the order of time of each chain."""
        self._read_index()
        found: list[dict[str, Any]] = []
        for chain, sizes in self._open.items():
            for path in places.segments(self._folder / chain):
                lines, sizes[path] = _lines(path, sizes.get(path, 0))
                for line in lines:
                    with suppress(record.Broken):
                        facts = record.read_record(line)
                        found.append({"id": f"{chain}:{facts['n']}", **facts})
        for chain in self._ended:
            self._open.pop(chain, None)
        return found

    def _read_index(self) -> None:
        """Learn of chains that began and ended; those that ended are read once more."""
        lines, self._read = places.read_index(self._folder, self._read)
        self._ended = []
        for line in lines:
            with suppress(record.Broken):
                facts = record.read_record(line)
                chain = str(facts.get("chain"))
                if facts.get("kind") == "begun":
                    self._open.setdefault(chain, {})
                elif facts.get("kind") == "ended":
                    self._ended.append(chain)


def _lines(path: Path, offset: int) -> tuple[list[bytes], int]:
    """The whole lines from `offset` on, and where they end."""
    with suppress(FileNotFoundError), path.open("rb") as file:
        file.seek(offset)
        *lines, torn = file.read().split(b"\n")
        return lines, file.tell() - len(torn)
    return [], offset


def _size(path: Path) -> int:
    with suppress(OSError, record.Broken):
        end = places.end_of_file(path)
        return end.offset if end is not None else 0
    return 0
