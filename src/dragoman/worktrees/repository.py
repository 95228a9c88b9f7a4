"""A repository that has worktrees: its refs, its objects, and whether it can have a worktree at all."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cached_property
from pathlib import Path

from dragoman.checkpoints.git import Program
from dragoman.gateway.ports.checkpoints import CheckpointError
from dragoman.gateway.ports.worktrees import WorktreeError
from dragoman.worktrees.boxed import Clone, Enter
from dragoman.worktrees.git import Project, View, git_directories, head_branch, make_view
from dragoman.worktrees.records import Record

ASK_SECONDS = 10
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
        self._view = view
        self.project = Project(program, self.own)

    @property
    def objects(self) -> Path:
        return self.common / "objects"

    def view(self) -> View:
        """git with our configuration on the repository's objects."""
        make_view(self._view, self._sha256)
        return View(self.program, self._view, self.objects, author=self.author)

    def clone(self, record: Record) -> Clone:
        """The clone of a boxed session."""
        return Clone(record, self._enter)

    def view_of(self, objects: Path) -> View:
        """git with our configuration that writes its objects to another place."""
        make_view(self._view, self._sha256)
        return View(self.program, self._view, objects, self.objects, self.author)

    @cached_property
    def _sha256(self) -> bool:
        return self.setting("extensions.objectformat") == "sha256"

    @cached_property
    def author(self) -> tuple[str, str]:
        """Name and address that the user's commits have."""
        return self.setting("user.name"), self.setting("user.email")

    def setting(self, key: str) -> str:
        """A value of the user's or the repository's git configuration: reading it runs nothing."""
        env = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": str(Path.home())}
        try:
            found = subprocess.run(
                [self.program.path, f"--git-dir={self.own}", "config", "--get", key],
                env=env,
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=ASK_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return found.stdout.decode(errors="replace").strip()

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

    def branch_in_the_way(self, branch: str) -> bool:
        """Whether a branch of this name, or one that is a folder of it, exists."""
        parts = branch.split("/")
        above = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
        if any(self.tip(f"refs/heads/{name}") for name in above):
            return True
        return bool(self.project.run("for-each-ref", "--count=1", f"refs/heads/{branch}/"))

    # -- what it may be used for

    def check_supported(self, commit: str) -> None:
        """Raise for submodules, filters (LFS), and sparse checkouts."""
        if self.setting("core.sparseCheckout") == "true":
            raise WorktreeError(f"{self.root} is a sparse checkout, which worktrees do not support", "sparse")
        self.check_submodules(commit, "start the session without --worktree")
        view = self.view()
        rows = (row.partition(b"\t") for row in view.run("ls-tree", "-r", "-z", commit).split(b"\0"))
        attributes = [
            head.split()[2].decode()
            for head, _, path in rows
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
        for row in self.view().run("ls-tree", "-r", "-z", commit).split(b"\0"):
            head, _, path = row.partition(b"\t")
            if head.startswith(b"160000"):
                raise WorktreeError(
                    f"{self.root} has a submodule ({path.decode(errors='backslashreplace')}), and worktrees do not "
                    f"support submodules: {instead}",
                    "submodules",
                )

    def check_room(self, commit: str, folder: Path) -> None:
        """Raise if the files of a commit do not fit on the disk of a folder: git does not say so."""
        sizes = self.view().run("ls-tree", "-r", "-z", "--format=%(objectsize)", commit).split(b"\0")
        needed = sum(int(size) for size in sizes if size.isdigit())
        free = shutil.disk_usage(folder).free
        if needed > free:
            raise WorktreeError(
                f"No space left for a worktree of {self.root}: its files have {needed >> 20} MB, and {folder} has "
                f"{free >> 20} MB",
                "no_space",
            )

    def check_calm(self) -> None:
        """Raise if a merge, rebase or the like is under way in the repository itself."""
        for name in BUSY:
            if (self.own / name).exists():
                raise WorktreeError(
                    f"A merge or rebase is under way in {self.root}: finish or abort it first", "busy"
                )


def as_worktree_error(error: CheckpointError) -> WorktreeError:
    return WorktreeError(str(error), "git_failed")
