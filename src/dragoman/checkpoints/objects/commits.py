"""Writes a commit without a process: checkpoints of a project that did not change need only this."""

from __future__ import annotations

import hashlib
import os
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dragoman.gateway.ports.checkpoints import CheckpointError

AUTHOR = b"dragoman <dragoman@localhost>"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
LOCK_PATIENCE = 1.0
LOCK_PAUSE = 0.005


def commit_body(tree: str, parent: str | None, message: bytes, seconds: int) -> bytes:
    lines = [b"tree " + tree.encode()]
    if parent is not None:
        lines.append(b"parent " + parent.encode())
    signed = b"%s %d +0000" % (AUTHOR, seconds)
    return b"\n".join([*lines, b"author " + signed, b"committer " + signed, b"", message])


def store(directory: Path, kind: bytes, body: bytes) -> str:
    """Store an object in a git directory, as git does: a file under the hash of what it holds."""
    data = b"%s %d\0%s" % (kind, len(body), body)
    object_id = hashlib.sha1(data, usedforsecurity=False).hexdigest()
    folder = directory / "objects" / object_id[:2]
    path = folder / object_id[2:]
    if not path.exists():
        draft = folder / f"tmp_obj_{os.urandom(6).hex()}"
        try:
            with os.fdopen(_new(draft), "wb") as file:
                file.write(zlib.compress(data, 1))
            draft.replace(path)
        except BaseException:
            with suppress(OSError):
                draft.unlink()
            raise
    return object_id


def _new(draft: Path) -> int:
    try:
        return os.open(draft, _NEW, 0o444)
    except FileNotFoundError:
        draft.parent.mkdir(0o700, exist_ok=True)
        return os.open(draft, _NEW, 0o444)


@contextmanager
def locked(reference: Path) -> Iterator[Path]:
    """Hold git's lock of a reference, a file beside it; what is written to that file becomes the reference."""
    lock = reference.with_name(reference.name + ".lock")
    deadline = time.monotonic() + LOCK_PATIENCE
    while True:
        try:
            os.close(os.open(lock, _NEW, 0o600))
            break
        except FileExistsError:
            if time.monotonic() > deadline:
                raise CheckpointError(
                    f"{lock} is in the way: another process records this session, or ended in the middle of it; "
                    "if none runs, remove that file."
                ) from None
            time.sleep(LOCK_PAUSE)
    try:
        yield lock
        lock.replace(reference)
    except BaseException:
        with suppress(OSError):
            lock.unlink()
        raise
