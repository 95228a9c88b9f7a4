"""The mounts of a box: the workspace and the folders that the configuration adds."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from dragoman.config.sandbox_model import SandboxConfig
from dragoman.gateway.path_mapping.paths import PathMap
from dragoman.gateway.ports.sandbox import Shared


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder of this machine that a box shows."""

    host: str
    """The path as the client spells it."""
    inside: str
    writable: bool

    @property
    def real(self) -> str:
        return str(Path(self.host).resolve())

    def holds(self, path: str) -> bool:
        """Whether a path of this machine lies in the mount, symlinks followed."""
        return Path(path).resolve().is_relative_to(self.real)


def mounts_of(workspace: str, config: SandboxConfig) -> list[Mount]:
    """All mounts of a box, the workspace first."""
    return [
        Mount(workspace, config.workspace or workspace, writable=True),
        *_parsed(config.mounts, writable=True),
        *_parsed(config.read_only, writable=False),
    ]


def shared(mounts: Sequence[Mount]) -> list[Shared]:
    """The files of this machine that the mounts show, less the parts that another mount covers."""
    ordered = by_depth(mounts)
    found = []
    for at, mount in enumerate(ordered):
        covered = tuple(_covered(mount, ordered[at + 1 :]))
        found.append(Shared(mount.real, mount.writable, covered, frozenset(_identities(covered))))
    return found


def _identities(paths: Iterable[str]) -> Iterator[tuple[int, int]]:
    for path in paths:
        try:
            status = Path(path).stat()
        except OSError:
            continue  # missing: nothing to hide
        yield status.st_dev, status.st_ino


def by_depth(mounts: Sequence[Mount]) -> list[Mount]:
    """The mounts in mount order: outer ones first, so that they hide no inner one; of equals the last one wins."""
    return sorted(mounts, key=lambda mount: len(PurePosixPath(mount.inside).parts))


def _covered(mount: Mount, later: Iterable[Mount]) -> Iterator[str]:
    """The parts of a mount that later mounts cover, as paths on this machine."""
    inside = PurePosixPath(posixpath.normpath(mount.inside))
    for other in later:
        place = PurePosixPath(posixpath.normpath(other.inside))
        if place.is_relative_to(inside):
            yield str(PurePosixPath(mount.real, place.relative_to(inside)))


def path_map(mounts: Sequence[Mount]) -> PathMap | None:
    """The map of a box with these mounts; None if all paths are the same inside."""
    paths = PathMap([pair for mount in mounts for pair in _names(mount)])
    return paths if paths.changes else None


def spelled_map(mounts: Sequence[Mount], cwd: str) -> PathMap | None:
    """As `path_map`, for a client whose `cwd` has a symlink or `..` in it: its paths keep that spelling."""
    spelling = _spelling(mounts, cwd)
    if spelling is None:
        return path_map(mounts)
    return PathMap([spelling, *(pair for mount in mounts for pair in _names(mount))])


def _spelling(mounts: Sequence[Mount], cwd: str) -> tuple[str, str] | None:
    """The client's spelling of the highest folder that differs, and its path inside; None for the usual spelling."""
    real, named = Path(cwd).resolve(), cwd.rstrip("/")
    known = [mount for mount in mounts if real.is_relative_to(mount.real)]
    if not named or not known or any(_lies_below(named, mount.host) for mount in known):
        return None
    mount = max(known, key=lambda each: len(each.real))
    below = real.relative_to(mount.real)
    while below.parts and named.endswith(f"/{below.name}"):
        above = named[: -len(below.name) - 1]
        if not above or Path(above).resolve() != Path(mount.real, below.parent):
            break
        named, below = above, below.parent
    return named, posixpath.join(mount.inside, *below.parts)


def _lies_below(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or below it by name, with no symlink, `.` or `..` in between."""
    usual = path == folder or path.startswith(folder.rstrip("/") + "/")
    return (
        usual and str(Path(path).resolve()) == str(Path(folder).resolve()) + path[len(folder.rstrip("/")) :]
    )


def _names(mount: Mount) -> list[tuple[str, str]]:
    """Both paths of a mounted folder, the client's spelling first, then the real one."""
    return list(dict.fromkeys([(mount.host, mount.inside), (mount.real, mount.inside)]))


def _parsed(texts: Iterable[str], *, writable: bool) -> list[Mount]:
    """`PATH`, or `PATH:INSIDE`; `~` is the home folder."""
    found = []
    for text in texts:
        host, _, inside = text.partition(":")
        host = str(Path(host).expanduser())
        found.append(Mount(host, inside or host, writable))
    return found
