"""A copy of a folder, with a list of the original files by which later changes are found, in the copy or the original.

The list is stored beside the copy. A file counts as changed if its size or time differs from the list, so a file that
another program changed in the workspace meanwhile is distinguished from one that was changed in the box.
"""

from __future__ import annotations

import itertools
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from dragoman.services.roots import Roots

MAX_BYTES = 2 * 1024**3
MAX_FILES = 200_000
"""Limits of a copy: a home folder that was opened by mistake must not fill the disk."""

Fingerprint = tuple[int, int, str]
"""Size, time in nanoseconds, and the target of a symlink."""


class CopyError(Exception):
    """The copy could not be made; the message is a part of a sentence."""


@dataclass(frozen=True, slots=True)
class Change:
    """A file that differs in the box."""

    path: str
    """Path in the workspace."""
    top: Path
    """The copied folder, in the box."""
    name: str
    """Path below `top`."""
    fingerprint: Fingerprint | None
    """Of the file in the box; None when it was removed."""
    conflict: bool
    """The file was changed in the workspace as well."""

    @property
    def removed(self) -> bool:
        return self.fingerprint is None

    @property
    def leads_to(self) -> str:
        """The target of a symlink, else empty."""
        return self.fingerprint[2] if self.fingerprint is not None else ""

    def copy_to(self, target: Path) -> None:
        """Copy the file as it is in the box now; no symlink made there meanwhile leads out. Raises `RpcError`."""
        if self.leads_to:
            target.symlink_to(self.leads_to)
            return
        path = str(self.top / self.name)
        with Roots([str(self.top)]).place(path) as place, os.fdopen(place.open(os.O_RDONLY), "rb") as file:
            with target.open("xb") as copied:
                shutil.copyfileobj(file, copied)
            target.chmod(stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o777)


class Copy:
    def __init__(self, source: Path, target: Path) -> None:
        self.source = source
        self.target = target
        self._list = target.with_suffix(".json")
        self._boxes = target.parent.parent

    def make(self) -> None:
        """Copy the folder, unless a copy of this session exists."""
        if self._list.exists() and self.target.is_dir():
            return
        self.remove()
        fingerprints = dict(itertools.islice(self._files(self.source), MAX_FILES + 1))
        if len(fingerprints) > MAX_FILES:
            raise CopyError(f"{self.source} has more than {MAX_FILES} files")
        size = sum(fingerprint[0] for fingerprint in fingerprints.values())
        if size > MAX_BYTES:
            raise CopyError(f"{self.source} has more than {MAX_BYTES // 1024**3} GiB")
        self.target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        shutil.copytree(self.source, self.target, symlinks=True, ignore=self._left_out)
        self.target.chmod(stat.S_IMODE(self.source.stat().st_mode) | stat.S_IRWXU)
        self._list.write_bytes(msgspec.json.encode(fingerprints))

    def changes(self) -> list[Change]:
        before = msgspec.json.decode(self._list.read_bytes(), type=dict[str, Fingerprint])
        now = dict(self._files(self.target))
        changed = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        return [
            Change(
                path=str(self.source / name),
                top=self.target,
                name=name,
                fingerprint=now.get(name),
                conflict=_fingerprint(self.source / name) != before.get(name),
            )
            for name in sorted(changed)
        ]

    def remove(self) -> None:
        self._list.unlink(missing_ok=True)
        if os.path.lexists(self.target):
            shutil.rmtree(self.target, ignore_errors=True)

    def _files(self, top: Path) -> Iterator[tuple[str, Fingerprint]]:
        """Files and symlinks below a folder, by their path in it."""
        for name, folders, files in os.walk(top):
            folder = Path(name)
            folders[:] = [each for each in folders if folder / each != self._boxes]
            links = [each for each in folders if (folder / each).is_symlink()]
            for each in (*files, *links):
                fingerprint = _fingerprint(folder / each)
                if fingerprint is not None:
                    yield str((folder / each).relative_to(top)), fingerprint

    def _left_out(self, folder: str, names: list[str]) -> set[str]:
        """Names not to copy: the copies themselves; sockets, pipes and devices, since reading one could block."""
        return {
            name for name in names if Path(folder, name) == self._boxes or _is_special(Path(folder, name))
        }


def _fingerprint(path: Path) -> Fingerprint | None:
    """The fingerprint of a file or symlink; None if there is none at `path`."""
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return 0, 0, str(path.readlink())
    except OSError:
        return None
    return (status.st_size, status.st_mtime_ns, "") if stat.S_ISREG(status.st_mode) else None


def _is_special(path: Path) -> bool:
    return not (path.is_symlink() or path.is_dir() or path.is_file())
