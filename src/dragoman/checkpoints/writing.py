"""Writes files below a project's root: no symlink is followed, and each file is replaced in one step."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from dragoman.checkpoints.reading import EXECUTABLE, SYMLINK, Content, Tree

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_EXECUTE = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH


def remove(tree: Tree, path: bytes) -> None:
    """Remove a file, and the folders above it that it leaves empty."""
    above, _, name = path.rpartition(b"/")
    os.unlink(name, dir_fd=tree.folder(above))
    tree.forget()
    while above:
        above, _, name = above.rpartition(b"/")
        try:
            os.rmdir(name, dir_fd=tree.folder(above))
        except OSError:
            return  # not empty


def write(tree: Tree, path: bytes, content: Content) -> None:
    """Put a file in its place; folders on the way are made. Raises `OSError` if something else stands there."""
    above, _, name = path.rpartition(b"/")
    folder = _make_folders(tree, above)
    draft = b".dragoman-" + os.urandom(6).hex().encode()
    try:
        if content.mode == SYMLINK:
            os.symlink(content.data, draft, dir_fd=folder)
        else:
            _write_file(folder, draft, content, tree.present(path))
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft, dir_fd=folder)
        raise


def _write_file(folder: int, draft: bytes, content: Content, former: os.stat_result | None) -> None:
    descriptor = os.open(draft, _NEW, 0o777 if content.mode == EXECUTABLE else 0o666, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content.data)
        if former is not None and stat.S_ISREG(former.st_mode):
            rights = stat.S_IMODE(former.st_mode) & ~_EXECUTE
            if content.mode == EXECUTABLE:
                rights |= (rights & 0o444) >> 2  # whoever may read it may run it
            os.fchmod(descriptor, rights & 0o777)


def _make_folders(tree: Tree, path: bytes) -> int:
    if not path:
        return tree.folder(b"")
    try:
        return tree.folder(path)
    except FileNotFoundError:
        above, _, name = path.rpartition(b"/")
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=_make_folders(tree, above))
        return tree.folder(path)
