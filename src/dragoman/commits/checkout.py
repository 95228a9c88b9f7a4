"""The repository of a project: its branch, its last commit, its index, and a git of ours to look at it with."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from dragoman.checkpoints.git import Program
from dragoman.commits.scratch import Scratch, make_scratch, read_small
from dragoman.commits.settings import Settings, read_settings
from dragoman.gateway.ports.commits import CommitError
from dragoman.gateway.ports.worktrees import WorktreeError
from dragoman.worktrees.git import Project, git_directories, head_branch
from dragoman.worktrees.repository import BUSY

EMPTY_TREE = {
    False: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    True: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
LARGEST_INDEX = 1 << 30


class Refs(Project):
    """A repository's refs, whose reflog names the user."""

    def __init__(self, program: Program, directory: Path, author: tuple[str, str]) -> None:
        super().__init__(program, directory)
        self._author = author

    def environment(self, index: Path | None = None, tree: str | None = None) -> dict[str, str]:
        name, email = self._author
        return super().environment(index, tree) | {"GIT_COMMITTER_NAME": name, "GIT_COMMITTER_EMAIL": email}


class Checkout:
    def __init__(self, program: Program, root: str) -> None:
        """`root` is the folder with `.git`."""
        self.program = program
        self.root = root
        try:
            self.own, self.common = git_directories(root)
        except WorktreeError as error:
            raise CommitError(str(error), error.code) from error
        self.project = Project(program, self.own)

    @cached_property
    def settings(self) -> Settings:
        return read_settings(self.program, self.own)

    @property
    def objects(self) -> Path:
        return self.common / "objects"

    @property
    def sha256(self) -> bool:
        return self.settings.get("extensions.objectformat") == "sha256"

    @property
    def branch(self) -> str:
        """The branch that is checked out; empty for a detached head."""
        return head_branch(self.own)

    def head(self, ref: str = "HEAD") -> str:
        """The last commit of a ref, or of what is checked out; empty if there is none yet."""
        found = self.project.run("rev-parse", "--verify", "-q", f"{ref}^{{commit}}", accepted=(0, 1, 128))
        return found.decode().strip()

    @property
    def base(self) -> str:
        """What the files are compared with."""
        return self.head() or EMPTY_TREE[self.sha256]

    @property
    def busy(self) -> str:
        """The file that says that a merge, a rebase or the like is under way; empty if none is."""
        return next((name for name in BUSY if (self.own / name).exists()), "")

    @contextmanager
    def scratch(self, *, keep: bool = False) -> Iterator[Scratch]:
        """git for the block; what it stores is lost afterwards, unless `keep` puts it into the repository."""
        with tempfile.TemporaryDirectory(prefix="dragoman-") as place:
            directory = Path(place, "git")
            directory.mkdir(mode=0o700)
            make_scratch(directory, self.settings, self.common, keep=keep)
            objects = self.objects if keep else directory / "objects"
            more = () if keep else (self.objects,)
            yield Scratch(self.program, directory, self.root, objects, more, self.settings.author)

    def move(self, new: str, old: str, subject: str) -> None:
        """Move the branch from `old`, which is empty if it has no commit yet."""
        kind = "commit" if old else "commit (initial)"
        refs = Refs(self.program, self.own, self.settings.author)
        refs.run("update-ref", "-m", f"{kind}: {subject}", "HEAD", new, old or "0" * len(new))

    def copy_index(self, git: Scratch, index: Path) -> None:
        """Copy the index of the work tree, or make one of the last commit where there is none that can be read."""
        original = self.own / "index"
        # git reads a file again that is not older than the index, so the copy keeps the time of the original.
        written = os.lstat(original).st_mtime_ns if original.exists() else 0
        content = read_small(original, LARGEST_INDEX)
        for shared in self.own.glob("sharedindex.*"):  # the part that a split index refers to
            (git.directory / shared.name).write_bytes(read_small(shared, LARGEST_INDEX) or b"")
        if content is not None:
            index.write_bytes(content)
            os.utime(index, ns=(written, written))
        elif self.head():
            git.run("read-tree", self.base, index=index)
