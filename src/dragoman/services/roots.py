"""The only folders that files are served from, and how a path is followed into them.

Theory of operation. Checking a path and then opening it leaves a moment in which a folder on the way can be
swapped for a symlink. So a path is first resolved, every symlink of it, to where it really leads; that place
is compared with the roots, component by component; then it is walked from `/` one component at a time,
following no symlink. A resolved path has none, so whatever was swapped in meanwhile is met and refused. What another
mount of a box covers is known by its inode as well as by its path: a folder above it can be renamed.

Roots are resolved once: one root may lie inside another, where an agent could swap it for a symlink later.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from dragoman.wire.errors import NOT_FOUND, RpcError, internal, invalid_params

# O_PATH: folders that may be searched but not listed are walked through too.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: should a pipe be swapped in for the file, opening it must not hang.
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_KINDS: Mapping[int, str] = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a symlink that cannot be followed",
}

_REASONS: Mapping[int, str] = {
    errno.EACCES: "permission_denied",
    errno.EPERM: "permission_denied",
    errno.EROFS: "read_only",
    errno.ENOSPC: "no_space",
    errno.EDQUOT: "no_space",
}


Identity = tuple[int, int]
"""Device and inode."""
_COVERED = "is covered by another mount of the sandbox"


@dataclass(frozen=True, slots=True)
class Place:
    """A name in an open folder inside the roots; what it names need not exist."""

    folder: int
    name: str
    path: str
    """As it was asked for, for messages."""
    fixed: bool = False
    """The file itself is a root: one of another name beside it is outside."""
    hidden: frozenset[Identity] = frozenset()

    def open(self, flags: int) -> int:
        """Open the regular file that is there; the caller closes the descriptor."""
        # Looked at before it is opened: opening a device can do something to it.
        self._check(os.stat(self.name, dir_fd=self.folder, follow_symlinks=False))
        descriptor = os.open(self.name, flags | _FILE, dir_fd=self.folder)
        try:
            self._check(os.fstat(descriptor))
        except RpcError:
            os.close(descriptor)
            raise
        return descriptor

    def _check(self, status: os.stat_result) -> None:
        if (status.st_dev, status.st_ino) in self.hidden:
            raise refusal(self.path, _COVERED)
        kind = stat.S_IFMT(status.st_mode)
        if kind != stat.S_IFREG:
            what = _KINDS.get(kind, "something else")
            raise refusal(self.path, f"is {what}, not a file")


@dataclass(frozen=True, slots=True)
class Root:
    """A folder, or a single file, without the parts of it that are covered."""

    path: PurePosixPath
    covered: tuple[PurePosixPath, ...] = ()
    hidden: frozenset[Identity] = frozenset()
    """What was covered when the box was made, whatever it is called now."""

    @classmethod
    def of(cls, path: str, covered: Sequence[str] = (), hidden: frozenset[Identity] = frozenset()) -> Root:
        return cls(_real(path), tuple(_real(part) for part in covered), hidden)

    def holds(self, real: PurePosixPath) -> bool:
        return real.is_relative_to(self.path) and not any(map(real.is_relative_to, self.covered))


class Roots:
    """The folders of one session."""

    def __init__(self, folders: Sequence[str | Root], sandbox: str | None = None) -> None:
        """`sandbox` names the box that shows them, for messages."""
        # A client on another machine may name folders in its own system's way; they are nowhere here.
        here = (folder for folder in folders if isinstance(folder, Root) or folder.startswith("/"))
        roots = (folder if isinstance(folder, Root) else Root.of(folder) for folder in here)
        self._roots = tuple(dict.fromkeys(roots))
        self._sandbox = sandbox

    def resolve(self, path: str) -> PurePosixPath:
        """Where a path really leads; `RpcError` if that is outside of the roots."""
        if not path.startswith("/"):
            raise self._refusal(path, "is not an absolute path")
        if "\0" in path:
            raise self._refusal(path, "contains a NUL character")
        with told_about(path):
            real = _real(path)
        if self._root_of(real) is None:
            raise self._outside(path)
        return real

    @contextmanager
    def place(self, path: str, *, create_folders: bool = False) -> Iterator[Place]:
        """The place of a file; system errors on the way and in the body become answers about `path`."""
        real = self.resolve(path)
        root = self._root_of(real)
        if root is None or not real.name:
            raise self._refusal(path, "is a folder, not a file")
        with told_about(path):
            folder = _walk(real.parent, len(root.path.parts) if create_folders else None, root.hidden)
            if folder is None:
                raise self._refusal(path, _COVERED)
            try:
                yield Place(folder, real.name, path, fixed=real == root.path, hidden=root.hidden)
            finally:
                os.close(folder)

    def _root_of(self, real: PurePosixPath) -> Root | None:
        return next((root for root in self._roots if root.holds(real)), None)

    def _outside(self, path: str) -> RpcError:
        if self._sandbox is None:
            return self._refusal(path, "is outside of the workspace")
        return self._refusal(
            path,
            f"is not among the files that the sandbox {self._sandbox} shows or lets be written: use the workspace, or "
            f"add its folder to sandboxes.{self._sandbox}.mounts or .read_only",
        )

    def _refusal(self, path: str, why: str) -> RpcError:
        return refusal(path, why) if self._sandbox is None else refusal(path, why, sandbox=self._sandbox)


def refusal(path: str, why: str, **facts: object) -> RpcError:
    return invalid_params(f"{path!r} {why}", "path", path=path, **facts)


@contextmanager
def told_about(path: str) -> Iterator[None]:
    """Turn a system's error into the answer about a path."""
    try:
        yield
    except OSError as error:
        raise _explain(path, error) from error


def _explain(path: str, error: OSError) -> RpcError:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return RpcError(NOT_FOUND, f"File not found: {path}", {"uri": PurePosixPath(path).as_uri()})
    if error.errno in (errno.ELOOP, errno.ENAMETOOLONG, errno.EISDIR):
        return refusal(path, f"cannot be used: {error.strerror}")
    return internal(f"{path!r}: {error.strerror}", _REASONS.get(error.errno or 0, "file_system"), path=path)


def _real(path: str) -> PurePosixPath:
    # Two leading slashes mean something else than one to pathlib.
    return PurePosixPath(os.path.realpath("/" + path.lstrip("/")))


def _walk(folder: PurePosixPath, create_below: int | None, hidden: frozenset[Identity]) -> int | None:
    """Open a resolved folder; from depth `create_below` on, folders that are missing are made. None: it is hidden."""
    here = os.open("/", _FOLDER)
    for depth, name in enumerate(folder.parts[1:], start=1):
        above = here
        try:
            here = _enter(above, name, create=create_below is not None and depth >= create_below)
        finally:
            os.close(above)
        if hidden and _identity(here) in hidden:
            os.close(here)
            return None
    return here


def _identity(descriptor: int) -> Identity:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _enter(above: int, name: str, *, create: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=above)
    except FileNotFoundError:
        if not create:
            raise
    try:
        os.mkdir(name, dir_fd=above)
    except FileExistsError:
        pass  # somebody else made it at the same moment
    return os.open(name, _FOLDER, dir_fd=above)
