"""A repository that has worktrees: its refs, its objects, and whether it can have a worktree at all."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from dragoman.checkpoints.git import Program
from dragoman.gateway.ports.checkpoints import CheckpointError
from dragoman.gateway.ports.worktrees import WorktreeError
from dragoman.worktrees.boxed import Clone, Enter
from dragoman.worktrees.git import Project, View, git_directories, head_branch, make_view
from dragoman.worktrees.records import Record

ASK_SECONDS = 10
SETTINGS = r"^(extensions\.objectformat|user\.name|user\.email|core\.sparsecheckout)$"
BUSY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")


class Repository:
    def __init__(self, program: Program, root: str, view: Path, enter: Enter | None = None) -> None:
        """`view` is the folder for a git directory of ours; `enter` runs commands in boxes."""
        self._enter = enter
        self.program = program
        self.root = root
        self.own, self.common = git_directories(root)
        if self.common.name != ".git":
            raise WorktreeError(
                f"The git directory of {root} is {self.common}, where its settings would not be protected from agents: "
                "worktrees need one with the name .git",
                "separate_git_dir",
            )
        self._place = view
        self._listed: dict[str, list[tuple[bytes, bytes, bytes]]] = {}
        self.project = Project(program, self.own)

    @property
    def objects(self) -> Path:
        return self.common / "objects"

    def view(self) -> View:
        """git with our configuration on the repository's objects."""
        return View(self.program, self._view, self.objects, author=self.author)

    def clone(self, record: Record) -> Clone:
        """The clone of a boxed session."""
        return Clone(record, self._enter)

    def view_of(self, objects: Path) -> View:
        """git with our configuration that writes its objects to another place."""
        return View(self.program, self._view, objects, self.objects, self.author)

    @cached_property
    def _view(self) -> Path:
        """Written once: processes that run at the same time read it."""
        make_view(self._place, self._settings.get("extensions.objectformat") == "sha256")
        return self._place

    @property
    def author(self) -> tuple[str, str]:
        """Name and address that the user's commits have."""
        return self._settings.get("user.name", ""), self._settings.get("user.email", "")

    @cached_property
    def _settings(self) -> dict[str, str]:
        """Values of the user's and the repository's git configuration: reading it runs nothing."""
        env = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": str(Path.home())}
        try:
            found = subprocess.run(
                [self.program.path, f"--git-dir={self.own}", "config", "--null", "--get-regexp", SETTINGS],
                env=env,
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=ASK_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return {}
        entries = (entry.partition("\n") for entry in found.stdout.decode(errors="replace").split("\0"))
        return {key: value.strip() for key, _, value in entries}

    # -- refs

    @property
    def branch(self) -> str:
        """The branch that is checked out; empty for a detached head."""
        return head_branch(self.own)

    def tip(self, ref: str) -> str:
        """The commit of a ref; empty if there is none."""
        found = self.project.run("rev-parse", "--verify", "-q", f"{ref}^{{commit}}", accepted=(0, 1, 128))
        return found.decode().strip()

    def head(self) -> str:
        found = self.tip("HEAD")
        if not found:
            raise WorktreeError(
                f"{self.root} has no commit yet, so there is nothing to begin a worktree with: commit first",
                "no_commit",
            )
        return found

    def set_ref(self, ref: str, new: str, old: str, why: str) -> None:
        """Move a ref from `old`, which is empty if it must not exist yet."""
        self.project.run("update-ref", "-m", f"dragoman: {why}", ref, new, old or "0" * len(new))

    def delete_ref(self, ref: str, old: str) -> None:
        self.project.run("update-ref", "-d", ref, old)

    def branches(self, folder: str) -> list[str]:
        """The names of the branches in a folder, and the folder if it is a branch itself."""
        found = self.project.run("for-each-ref", "--format=%(refname)", f"refs/heads/{folder}").decode()
        return [name.removeprefix("refs/heads/") for name in found.splitlines()]

    # -- what it may be used for

    def check_supported(self, commit: str) -> None:
        """Raise for submodules, filters (LFS), and sparse checkouts."""
        if self._settings.get("core.sparsecheckout") == "true":
            raise WorktreeError(f"{self.root} is a sparse checkout, which worktrees do not support", "sparse")
        files, view = self._files(commit), self.view()
        self._check_submodules(files, "start the session without --worktree")
        attributes = [
            head.split()[2].decode()
            for head, _, path in files
            if path.rpartition(b"/")[2] == b".gitattributes"
        ]
        texts = [view.run("cat-file", "blob", blob) for blob in attributes]
        for extra in (self.common / "info" / "attributes",):
            texts.append(extra.read_bytes() if extra.is_file() else b"")
        words = [
            word
            for text in texts
            for line in text.splitlines()
            if line[:1] != b"#"
            for word in line.split()[1:]
        ]
        for word in words:
            if word.startswith(b"filter="):
                kind = word[7:].decode(errors="backslashreplace")
                what = "Git LFS" if kind == "lfs" else f"the git filter {kind!r}"
                raise WorktreeError(
                    f"{self.root} uses {what}, and worktrees run no filters of a repository, so its files would be "
                    "wrong there: start the session without --worktree",
                    "filters",
                )

    def check_submodules(self, commit: str, instead: str) -> None:
        """Raise if a commit has a submodule."""
        rows = self.view().run("ls-tree", "-r", "-z", commit).split(b"\0")
        self._check_submodules((row.partition(b"\t") for row in rows), instead)

    def _check_submodules(self, files: Iterable[tuple[bytes, bytes, bytes]], instead: str) -> None:
        for head, _, path in files:
            if head.startswith(b"160000"):
                raise WorktreeError(
                    f"{self.root} has a submodule ({path.decode(errors='backslashreplace')}), and worktrees do not "
                    f"support submodules: {instead}",
                    "submodules",
                )

    def check_room(self, commit: str, folder: Path) -> None:
        """Raise if the files of a commit do not fit on the disk of a folder: git does not say so."""
        sizes = (head.split()[3] for head, _, _ in self._files(commit))
        needed = sum(int(size) for size in sizes if size.isdigit())
        free = shutil.disk_usage(folder).free
        if needed > free:
            raise WorktreeError(
                f"No space left for a worktree of {self.root}: its files have {needed >> 20} MB, and {folder} has "
                f"{free >> 20} MB",
                "no_space",
            )

    def _files(self, commit: str) -> list[tuple[bytes, bytes, bytes]]:
        """Mode, type, object and size of each file of a commit, and its path after a tab."""
        if commit not in self._listed:
            rows = self.view().run("ls-tree", "-r", "-z", "-l", commit).split(b"\0")
            self._listed[commit] = [row.partition(b"\t") for row in rows if row]
        return self._listed[commit]

    def check_calm(self) -> None:
        """Raise if a merge, rebase or the like is under way in the repository itself."""
        for name in BUSY:
            if (self.own / name).exists():
                raise WorktreeError(
                    f"A merge or rebase is under way in {self.root}: finish or abort it first", "busy"
                )


def as_worktree_error(error: CheckpointError) -> WorktreeError:
    return WorktreeError(str(error), "git_failed")
