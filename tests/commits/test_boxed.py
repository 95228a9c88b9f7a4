"""Commits of a session whose clone git reads in its sandbox alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.agents.known import known_layer
from dragoman.cli.worktrees.boxes import boxes_for_commands
from dragoman.commits.engine import Engine
from dragoman.config.load import load
from dragoman.config.paths import find_paths
from dragoman.config.sections.checkpoints import CheckpointsConfig
from dragoman.config.sections.worktrees import WorktreesConfig
from dragoman.gateway.ports.checkpoints import Touched
from dragoman.gateway.ports.commits import CommitError, CommitWish
from dragoman.gateway.ports.worktrees import BoxChoice, WorktreeWish
from dragoman.worktrees.engine import Engine as Worktrees
from support.command_line import CommandLine
from support.commits.repository import Repository
from support.sandboxes import sandbox_kinds


@pytest.fixture
def clone(home: Path, repository: Repository) -> Iterator[Repository]:
    """The clone of a boxed session, with an engine that has its sandbox."""
    repository.commit(a="1\n", b="1\n")
    CommandLine(home, repository.folder).configure(**sandbox_kinds.bubblewrap().config())
    paths = find_paths({"DRAGOMAN_HOME": str(home)})
    config = load(paths, known=known_layer(), workspace=None).config
    with boxes_for_commands(config, paths) as enter:
        root, box = str(repository.folder), BoxChoice("scripted", "box")
        worktrees = Worktrees(paths.state_dir / "worktrees", enter=enter)
        made = worktrees.create("s", root, root, WorktreeWish(name="one"), WorktreesConfig(), box=box)
        found = Repository(Path(made.folder), repository.home)
        found.engine = Engine(paths.state_dir, CheckpointsConfig(), enter)
        yield found


def test_some_files_of_a_clone_are_committed_in_its_box_and_pushed(
    clone: Repository, repository: Repository, tmp_path: Path
) -> None:
    mark, bare, root = tmp_path / "ran", tmp_path / "bare.git", str(clone.folder)
    clone.arm(mark)
    clone.git("config", "--unset", "commit.gpgSign")
    clone.write("a", "2\n")
    (clone.folder / "b").unlink()
    clone.write("new *\n\u202e", "1\n")
    clone.write("other", "1\n")
    touched = Touched(root, {b"a", b"b", "new *\n\u202e".encode()}, set())
    plan = clone.engine.plan(root, CommitWish(), touched)
    done = clone.engine.commit(plan, "Change a", hooks=False)
    assert (done.branch, done.files) == ("dragoman/one", ["a", "b", "new *\n\u202e"])
    assert repository.git("rev-parse", "dragoman/one") == done.commit
    assert repository.git("log", "-1", "--format=%an %s", "dragoman/one") == "Me Change a"
    assert repository.git("ls-tree", "-z", "--name-only", "dragoman/one") == "a\0new *\n\u202e\0"
    repository.git("init", "-q", "--bare", str(bare))
    repository.git("remote", "add", "origin", str(bare))
    pushed = clone.engine.push(clone.engine.plan_push(root), hooks=False)
    assert (pushed.branch, pushed.commit) == ("dragoman/one", done.commit)
    assert clone.engine.plan(root, CommitWish(all=True), None).files == ("other",)
    assert not mark.exists()


def test_what_a_clone_does_not_offer_is_said(clone: Repository) -> None:
    root = str(clone.folder)
    clone.write("a", "2\n")
    plan = clone.engine.plan(root, CommitWish(all=True), None)
    with pytest.raises(CommitError, match="outside of its sandbox"):
        clone.engine.commit(plan, "x", hooks=True)
    with pytest.raises(CommitError, match="in its sandbox alone"):
        clone.engine.uncommitted(root)
    clone.git("checkout", "-q", "-b", "elsewhere")
    with pytest.raises(CommitError, match="has elsewhere checked out"):
        clone.engine.plan(root, CommitWish(all=True), None)
