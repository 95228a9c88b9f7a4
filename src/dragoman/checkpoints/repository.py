"""The object store of one project, in the state folder.

    checkpoints/KEY/          a git directory that we made ourselves; KEY is a hash of the project's path
      root                    that path
      refs/sessions/ID        the last checkpoint of a session; its parents are the earlier ones
      indexes/ID.TREE         an index of the session that holds exactly TREE, with the times of files as they were
      lock                    shared while objects are written, exclusive while unused ones are removed

An index is a cache by which git finds the changed files without reading the others. It is replaced as a whole under a
name that says which tree it holds, so that a crash leaves a pair that is old but true. A new session begins with a copy
of the newest index of its project; the copy keeps the file's time, by which git knows which entries it may not trust.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from dragoman.checkpoints.git import ATTRIBUTES, CONFIG, Git, Program
from dragoman.checkpoints.objects.commits import commit_body, locked, store
from dragoman.gateway.ports.checkpoints import CheckpointError

PRIVATE_DIR = 0o700
FOLDERS = ("objects", "refs", "refs/sessions", "info", "indexes")
TRIES = 10
DRAFT_AGE = 120.0
"""Seconds after which a pack or a directory that is not finished belongs to no process that runs."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_OBJECT = re.compile(r"[0-9a-f]{40}")


class Repository:
    def __init__(self, program: Program, directory: Path) -> None:
        self.directory = directory
        self.git = Git(program, directory)

    @property
    def root(self) -> str:
        """The project's path."""
        return os.fsdecode((self.directory / "root").read_bytes())

    def create(self, root: str) -> None:
        """Make the git directory if it does not exist; `git init` would use templates of the user."""
        for _ in range(TRIES - 1):
            with suppress(
                FileNotFoundError
            ):  # the last session was deleted meanwhile, and the directory with it
                self._create(root)
                return
        self._create(root)

    def _create(self, root: str) -> None:
        if not self.directory.is_dir():
            self._create_at_once(root)
        elif not (self.directory / "HEAD").exists():  # made by a version before this one, which was killed
            self._fill(self.directory, root)
        for name in FOLDERS:  # a back-up has no empty ones; without parents: the directory may be gone again
            (self.directory / name).mkdir(PRIVATE_DIR, exist_ok=True)

    def _create_at_once(self, root: str) -> None:
        """Others see the directory with all that git needs, or not at all; they may make or remove it meanwhile."""
        draft = self.directory.with_name(f".new-{self.directory.name}.{os.urandom(6).hex()}")
        draft.mkdir(PRIVATE_DIR)
        try:
            self._fill(draft, root)
            draft.rename(self.directory)
        except OSError as error:
            shutil.rmtree(draft, ignore_errors=True)
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):  # another one made it
                raise

    def _fill(self, directory: Path, root: str) -> None:
        for name in FOLDERS:
            (directory / name).mkdir(PRIVATE_DIR, exist_ok=True)
        for name, content in (
            ("config", CONFIG),
            ("info/attributes", ATTRIBUTES),
            ("root", os.fsencode(root)),
            ("HEAD", b"ref: refs/heads/none\n"),  # last: it says that the rest is there
        ):
            draft = directory / f"{name}.{os.urandom(6).hex()}"
            draft.write_bytes(content)
            draft.replace(directory / name)

    # -- references

    def tip(self, session_id: str) -> str | None:
        """The last checkpoint of a session; None if it has none."""
        try:
            found = self._reference(session_id).read_text().strip()
        except FileNotFoundError:
            return None
        if _OBJECT.fullmatch(found) is None:
            raise CheckpointError(f"The reference {self._reference(session_id)} is damaged; remove it.")
        return found

    def sessions(self) -> list[str]:
        folder = self.directory / "refs" / "sessions"
        return [each.name for each in folder.iterdir() if _NAME.fullmatch(each.name)]  # no lock files of git

    def latest(self) -> str | None:
        """The session that was recorded last."""
        return max(self.sessions(), key=lambda name: _time(self._reference(name)), default=None)

    def used_since(self, time: str, limit: int) -> list[str]:
        """Sessions whose last checkpoint is not older than an ISO time, those used last first."""
        since = datetime.fromisoformat(time).timestamp()
        found = sorted(((_time(self._reference(name)), name) for name in self.sessions()), reverse=True)
        return [name for changed, name in found if changed >= (since - 1) * 1e9][:limit]

    def forget(self, session_id: str) -> None:
        self._reference(session_id).unlink(missing_ok=True)
        for index in self._indexes(session_id):
            index.unlink(missing_ok=True)

    def append(self, session_id: str, tree: str, message: bytes) -> str:
        """Add a commit of a tree that is stored already to a session, without a process; returns its id."""
        with locked(self._reference(session_id)) as draft:
            body = commit_body(tree, self.tip(session_id), message, int(time.time()))
            commit = store(self.directory, b"commit", body)
            draft.write_text(commit + "\n")
        return commit

    def _reference(self, session_id: str) -> Path:
        return self.directory / "refs" / "sessions" / checked(session_id)

    # -- indexes

    @contextmanager
    def index(self, session_id: str, *, empty: bool = False) -> Iterator[WorkIndex]:
        """A private copy of the session's index, else of the newest of the project, else an empty one."""
        folder = self.directory / "indexes"
        draft = folder / f".{checked(session_id)}.{os.getpid()}-{os.urandom(4).hex()}"
        found = None if empty else self._newest(session_id)
        tree = None
        if found is not None:
            with suppress(FileNotFoundError):  # replaced meanwhile: an empty one is right too
                shutil.copy2(found, draft)
                tree = found.name.rpartition(".")[2]
        try:
            yield WorkIndex(self, session_id, draft, tree)
        finally:
            for left in (draft, draft.with_name(draft.name + ".lock")):
                left.unlink(missing_ok=True)

    def _newest(self, session_id: str) -> Path | None:
        """The session's own index, else the one that was used last."""
        own = self._indexes(session_id)
        others = own or self._indexes("*")
        return max(others, key=_time, default=None)

    def _indexes(self, session_id: str) -> list[Path]:
        return [
            each
            for each in (self.directory / "indexes").glob(f"{session_id}.*")
            if not each.name.startswith(".") and _OBJECT.fullmatch(each.name.rpartition(".")[2])
        ]

    @property
    def indexed(self) -> bool:
        """Whether a session has an index, so that the next one finds changes quickly."""
        return bool(self._indexes("*"))

    # -- the lock

    @contextmanager
    def writing(self, root: str) -> Iterator[None]:
        """While objects are written that nothing refers to yet; the git directory is made if it does not exist."""
        for _ in range(TRIES):
            self.create(root)
            with self._locked(fcntl.LOCK_SH) as there:
                if there:
                    yield
                    return
        raise CheckpointError(f"{self.directory} is removed again and again; try again.")

    @contextmanager
    def _locked(self, how: int) -> Iterator[bool]:
        """Hold the lock; False if the directory was removed, perhaps made again, before it was held."""
        path = self.directory / "lock"
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            yield False
            return
        try:
            fcntl.flock(descriptor, how)
            yield path.exists() and os.path.samestat(path.stat(), os.fstat(descriptor))
        finally:
            os.close(descriptor)

    def remove_drafts(self) -> None:
        """Remove what a git that failed left: packs that were not finished, and reports of its crash."""
        made = time.time() - DRAFT_AGE
        for left in (*self.directory.glob("objects/pack/tmp_*"), *self.directory.glob("fast_import_crash_*")):
            with suppress(OSError):
                if left.stat().st_mtime < made or left.name.startswith("fast_import"):
                    left.unlink()

    def collect(self) -> bool:
        """Remove objects that no session needs; False if other work goes on, which leaves them for the next time."""
        try:
            with self._locked(fcntl.LOCK_EX | fcntl.LOCK_NB) as there:
                if not there:
                    return True
                if not self.sessions():
                    self._remove()
                    return True
                self.remove_drafts()
                self.git.run("repack", "-a", "-d", "-q")
                self.git.run("prune", "--expire=now")
        except BlockingIOError:
            return False
        return True

    def _remove(self) -> None:
        """Remove the directory in one step: another process makes a new one, and never writes into half of this one."""
        self.directory.rename(self.directory.with_name(f".{self.directory.name}.{os.urandom(6).hex()}"))
        for removed in self.directory.parent.glob(f".{self.directory.name}.*"):
            shutil.rmtree(removed, ignore_errors=True)
        for draft in self.directory.parent.glob(f".new-{self.directory.name}.*"):
            if _time(draft) < (time.time() - DRAFT_AGE) * 1e9:  # the process that made it is gone
                shutil.rmtree(draft, ignore_errors=True)


class WorkIndex:
    """A private copy of an index; `keep` puts it in the place of the session's."""

    def __init__(self, repository: Repository, session_id: str, path: Path, tree: str | None) -> None:
        self.path = path
        self.tree = tree
        """The tree that it holds; None: it is empty."""
        self._repository = repository
        self._session_id = session_id

    def keep(self, tree: str) -> None:
        folder = self.path.parent
        kept = folder / f"{self._session_id}.{tree}"
        if not self.path.exists():
            return
        self.path.replace(kept)
        for old in folder.glob(f"{self._session_id}.*"):
            if old != kept:
                old.unlink(missing_ok=True)


def checked(session_id: str) -> str:
    """A session id that is safe as the name of a file."""
    if _NAME.fullmatch(session_id) is None:
        raise CheckpointError(f"{session_id!r} is no session id.")
    return session_id


def key_of(root: str) -> str:
    return hashlib.sha256(os.fsencode(root)).hexdigest()[:32]


def _time(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
