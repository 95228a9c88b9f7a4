"""The roots, the only folders that files are served from, and safe opening of paths below them.

Theory of operation. Between checking a path and opening it, a folder on the way can be replaced by a symlink. So a
path is first resolved with all its symlinks; the result is compared with the roots, component by component; then it
is opened from `/` one component at a time, following no symlink. A resolved path has none, so a symlink that was put
in meanwhile is refused. The parts that another mount of a box covers are compared by inode as well as by path, since
a folder above them can be renamed.

Roots are resolved once: one root may lie inside another, where an agent could replace it by a symlink later.
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

# O_PATH: also opens folders that may be searched but not listed.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: if the file was replaced by a pipe, opening it must not hang.
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
    """A name in an open folder inside the roots; the file need not exist."""

    folder: int
    name: str
    path: str
    """The requested path, for messages."""
    fixed: bool = False
    """The file itself is a root: a file of another name beside it is outside."""
    hidden: frozenset[Identity] = frozenset()

    def open(self, flags: int) -> int:
        """Open the regular file of this name; the caller closes the descriptor."""
        # Checked before it is opened: opening a device can have side effects.
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
    """A folder or a single file, without the parts that another mount covers."""

    path: PurePosixPath
    covered: tuple[PurePosixPath, ...] = ()
    hidden: frozenset[Identity] = frozenset()
    """Identities of the parts that were covered when the box was made; they may be renamed since."""

    @classmethod
    def of(cls, path: str, covered: Sequence[str] = (), hidden: frozenset[Identity] = frozenset()) -> Root:
        return cls(_real(path), tuple(_real(part) for part in covered), hidden)

    def holds(self, real: PurePosixPath) -> bool:
        return real.is_relative_to(self.path) and not any(map(real.is_relative_to, self.covered))


class Roots:
    """The folders of one session."""

    def __init__(self, folders: Sequence[str | Root], sandbox: str | None = None) -> None:
        """`sandbox` is the name of the sandbox that shows them, for messages."""
        # A client on another machine may send paths of another system; these do not exist here.
        here = (folder for folder in folders if isinstance(folder, Root) or folder.startswith("/"))
        roots = (folder if isinstance(folder, Root) else Root.of(folder) for folder in here)
        self._roots = tuple(dict.fromkeys(roots))
        self._sandbox = sandbox

    def resolve(self, path: str) -> PurePosixPath:
        """The path with all symlinks resolved; raises `RpcError` if it is outside of the roots."""
        if not path.startswith("/"):
            raise self._refusal(path, "is not an absolute path")
        if "\0" in path:
            raise self._refusal(path, "contains a NUL character")
        with explain_errors(path):
            real = _real(path)
        if self._root_of(real) is None:
            raise self._outside(path)
        return real

    @contextmanager
    def place(self, path: str, *, create_folders: bool = False) -> Iterator[Place]:
        """The place of a file; an `OSError`, also in the body, becomes an `RpcError` about `path`."""
        real = self.resolve(path)
        root = self._root_of(real)
        if root is None or not real.name:
            raise self._refusal(path, "is a folder, not a file")
        with explain_errors(path):
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
def explain_errors(path: str) -> Iterator[None]:
    """Turn an `OSError` into an `RpcError` about a path."""
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
    # pathlib treats two leading slashes differently from one.
    return PurePosixPath(os.path.realpath("/" + path.lstrip("/")))


def _walk(folder: PurePosixPath, create_below: int | None, hidden: frozenset[Identity]) -> int | None:
    """Open a resolved folder, creating missing ones from depth `create_below` on; None if the folder is hidden."""
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
        pass  # created by another process meanwhile
    return os.open(name, _FOLDER, dir_fd=above)
