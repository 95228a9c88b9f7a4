"""Names of files in an archive: which are accepted, and which of them are the same on some disk."""

from __future__ import annotations

import unicodedata

from dragoman.registry.errors import RegistryError

DEEPEST = 40
LONGEST = 255
"""Bytes of one part of a name, as most file systems have it."""


class BadArchive(RegistryError):
    """An archive that is not unpacked."""


class Names:
    """The names of one archive; two that differ only in case, or in how a letter is composed, are refused."""

    def __init__(self) -> None:
        self._files: dict[str, str] = {}
        self._folders: dict[str, str] = {}

    def folder(self, name: str) -> tuple[str, ...]:
        parts = split(name)
        self._enter(parts)
        return parts

    def file(self, name: str) -> tuple[str, ...]:
        parts = split(name)
        if not parts:
            raise BadArchive(f"the archive has a file without a name: {name[:100]!r}")
        self._enter(parts[:-1])
        folded, whole = _folded(parts), "/".join(parts)
        other = self._files.get(folded) or self._folders.get(folded)
        if other is not None:
            raise _collision(whole, other)
        self._files[folded] = whole
        return parts

    def _enter(self, parts: tuple[str, ...]) -> None:
        for end in range(1, len(parts) + 1):
            folded, whole = _folded(parts[:end]), "/".join(parts[:end])
            if folded in self._files:
                raise _collision(whole, self._files[folded])
            if self._folders.setdefault(folded, whole) != whole:
                raise _collision(whole, self._folders[folded])


def split(name: str) -> tuple[str, ...]:
    """The parts of a relative name that stays below its folder; raises `BadArchive` for every other."""
    if name.startswith(("/", "\\")) or name[1:2] == ":":
        raise BadArchive(f"the archive has an absolute name: {name[:100]!r}")
    if any(ord(letter) < 32 or letter == "\x7f" or "\ud800" <= letter <= "\udfff" for letter in name):
        raise BadArchive(f"the archive has a name with control characters: {name[:100]!r}")
    if "\\" in name:
        raise BadArchive(f"the archive has a name with a backslash: {name[:100]!r}")
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if ".." in parts:
        raise BadArchive(f"the archive has a name that leads outside: {name[:100]!r}")
    if len(parts) > DEEPEST or any(len(part.encode()) > LONGEST for part in parts):
        raise BadArchive(f"the archive has a name that is too long or too deep: {name[:100]!r}")
    return parts


def _folded(parts: tuple[str, ...]) -> str:
    return unicodedata.normalize("NFKC", "/".join(parts)).casefold()


def _collision(one: str, other: str) -> BadArchive:
    if one == other:
        return BadArchive(f"the archive has {one[:100]!r} twice")
    return BadArchive(f"the archive has {one[:100]!r} and {other[:100]!r}, which are one file on some disks")
