"""Makes a worktree: a linked one, or for a boxed session a clone, since a linked one points out of its box.

The record is written first, then the branch, the folder, the files: whatever a crash leaves, the record names it.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from dragoman.checkpoints.git import Program
from dragoman.gateway.ports.worktrees import WorktreeError
from dragoman.worktrees.boxed import Enter
from dragoman.worktrees.git import Project, View
from dragoman.worktrees.records import Record
from dragoman.worktrees.repository import Repository

LARGEST_COPY = 16 << 20
"""Bytes of one file that `worktrees.copy` takes: settings, not data."""
SETUP_SECONDS = 600.0
TOLD = 2000


def make(program: Program, repository: Repository, record: Record, commit: str | None = None) -> Path:
    """The branch, the folder and the files of a record; returns the index.

    `commit` is the tip of a branch that exists already; without it the branch begins at the record's base.
    """
    ref, commit = f"refs/heads/{record.branch}", commit or record.base
    if repository.tip(ref) != commit:
        repository.set_ref(ref, commit, "", f"worktree {record.name}")
    if record.form == "linked":
        return _link(repository, record, commit)
    return _clone(program, repository, record, commit)


def admin_folder(repository: Repository, record: Record) -> Path | None:
    """The folder in the repository that stands for a linked worktree; None if there is none."""
    for folder in sorted((repository.common / "worktrees").glob("*")):
        try:
            named = (folder / "gitdir").read_text().strip()
        except (OSError, ValueError):
            continue
        if named == f"{record.folder}/.git":
            return folder
    return None


def remove_link(repository: Repository, record: Record) -> None:
    """Remove the folder in the repository that stands for a linked worktree."""
    admin = admin_folder(repository, record)
    if admin is not None:
        for entry in admin.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.name != "gitdir":  # last: the folder is found by it
                entry.unlink()
        (admin / "gitdir").unlink()
    for folder in (repository.common / "worktrees").glob(f"{record.name}*"):
        with suppress(OSError):  # only an empty one is removed: that of this worktree, or what a crash left
            folder.rmdir()


def _link(repository: Repository, record: Record, commit: str) -> Path:
    repository.project.run("worktree", "add", "--no-checkout", record.folder, record.branch)
    admin = admin_folder(repository, record)
    if admin is None:
        raise WorktreeError(f"git did not link {record.folder}", "git_failed")
    view = repository.view()
    view.run("read-tree", "-m", "-u", commit, index=admin / "index", tree=record.folder)
    return admin / "index"


def _clone(program: Program, repository: Repository, record: Record, commit: str) -> Path:
    """A repository of its own with the history of one commit; no configuration of the original comes along."""
    own = Path(record.folder, ".git")
    for folder in ("refs/heads/dragoman", "objects/pack", "info"):
        (own / folder).mkdir(parents=True, mode=0o700)
    sha256 = len(record.base) == 64
    config = f"[core]\n\trepositoryformatversion = {int(sha256)}\n\tbare = false\n\tlogallrefupdates = true\n"
    config += "[extensions]\n\tobjectformat = sha256\n" if sha256 else ""
    name, email = repository.author
    (own / "config").write_text(config)
    (own / "HEAD").write_text(f"ref: refs/heads/{record.branch}\n")
    send_commits(repository.view(), repository.view_of(own / "objects"), commit)
    (own / "refs" / "heads" / record.branch).write_text(f"{commit}\n")
    for key, value in (("user.name", name), ("user.email", email)):
        if value:
            Project(program, own).run("config", "--local", key, value)
    shallow = repository.common / "shallow"
    if shallow.is_file():
        shutil.copyfile(shallow, own / "shallow")
    repository.view().run("read-tree", "-m", "-u", commit, index=own / "index", tree=record.folder)
    return own / "index"


def send_commits(source: View, target: View, commit: str, known: str = "") -> None:
    """Copy a commit and its history from one object store to another, as one checked pack."""
    wanted = f"{commit}\n" + (f"^{known}\n" if known else "")
    pack = source.run("pack-objects", "--revs", "--stdout", "-q", given=wanted.encode())
    target.run("index-pack", "--stdin", "--strict", given=pack)


def copy_files(root: str, folder: str, names: list[str]) -> tuple[list[str], list[str]]:
    """Copy untracked files of a repository; returns what was copied and what there is to tell."""
    copied, told = [], []
    for name in names:
        try:
            if _copy(root, folder, name):
                copied.append(name)
        except WorktreeError as error:
            told.append(str(error))
        except OSError as error:
            told.append(f"{name!r} (worktrees.copy) was not copied: {error.strerror}.")
    return copied, told


def _copy(root: str, folder: str, name: str) -> bool:
    """Copy one file if the worktree does not have it; no step of its path may be a symlink."""
    parts = name.split("/")
    if name.startswith("/") or not name or "\0" in name or {"", ".", ".."} & set(parts) or ".git" in parts:
        raise WorktreeError(
            f"{name!r} (worktrees.copy) was not copied: it is no plain path in the repository."
        )
    source, handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), -1
    try:
        for part in parts[:-1]:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=source)
            os.close(source)
            source = inner
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        handle = os.open(parts[-1], flags, dir_fd=source)
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST_COPY:
            raise WorktreeError(
                f"{name!r} (worktrees.copy) was not copied: only regular files of up to {LARGEST_COPY >> 20} MB are."
            )
        content = b""
        while piece := os.read(handle, 1 << 20):
            content += piece
    except FileNotFoundError:
        return False
    finally:
        os.close(source)
        if handle >= 0:
            os.close(handle)
    return _write(folder, parts, content, facts.st_mode & 0o777)


def _write(folder: str, parts: list[str], content: bytes, mode: int) -> bool:
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            try:
                os.mkdir(part, dir_fd=place)
            except FileExistsError:
                pass
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
            os.close(place)
            place = inner
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            handle = os.open(parts[-1], flags, mode, dir_fd=place)
        except FileExistsError:
            return False
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        return True
    finally:
        os.close(place)


def run_setup(lines: list[str], record: Record, enter: Enter | None) -> None:
    """Run the commands that prepare a worktree, one after the other; raises with what the failed one printed."""
    for line in lines:
        with tempfile.TemporaryFile() as printed:
            if record.form == "clone":
                code = _in_box(line, record, enter, printed.fileno())
            else:
                code = _run(line, record.folder, printed.fileno())
            if code:
                printed.seek(max(0, printed.seek(0, os.SEEK_END) - TOLD))
                tail = printed.read(TOLD).decode(errors="replace").strip()
                raise WorktreeError(
                    f"{line!r} (worktrees.setup) failed with exit code {code}: {tail}", "setup_failed"
                )


def _in_box(line: str, record: Record, enter: Enter | None, output: int) -> int:
    if enter is None:
        raise WorktreeError(f"{line!r} (worktrees.setup) runs in the session's sandbox, which is not here")
    return enter(record, ["sh", "-c", line], {}, output)


def _run(line: str, folder: str, output: int) -> int:
    env = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
    process = subprocess.Popen(
        ["/bin/sh", "-c", line],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )
    try:
        return process.wait(timeout=SETUP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise WorktreeError(
            f"{line!r} (worktrees.setup) did not end within {SETUP_SECONDS:g} s and was stopped",
            "setup_failed",
        ) from None
