"""The worktree that a fork gets: the files of the original's, as they are or as a checkpoint recorded them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from dragoman.config.sections.worktrees import WorktreesConfig
from dragoman.gateway.ports.checkpoints import Checkpoint
from dragoman.gateway.ports.worktrees import Made, RecordedTree, WorktreeError, WorktreeWish
from dragoman.worktrees.engine import Engine
from support.checkpoints.project import SESSION, Project

from .conftest import Checkout


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path / "state" / "worktrees")


@pytest.fixture
def original(repository: Checkout, engine: Engine) -> Checkout:
    root = str(repository.folder)
    repository.commit("more", c="c\n", d="d\n", gone="gone\n", **{".gitignore": "*.env\n"})
    made = engine.create(SESSION, root, root, WorktreeWish(name="one"), WorktreesConfig(), box=None)
    return Checkout(Path(made.folder))


def fork(engine: Engine, original: Checkout, recorded: RecordedTree | None = None) -> tuple[Made, Checkout]:
    made = engine.fork("f", SESSION, str(original.folder), WorktreeWish(), recorded, box=None)
    assert made is not None
    return made, Checkout(Path(made.folder))


def change(original: Checkout) -> None:
    """Commits, and everything that a file can become without one."""
    original.commit("work", b="committed\n")
    folder = original.folder
    (folder / "a").write_bytes(b"1\r\n\xff not text\n")
    (folder / "gone").unlink()
    (folder / "new").write_text("new\n")
    (folder / "new").chmod(0o755)
    (folder / "c").unlink()
    (folder / "c").mkdir()
    (folder / "c" / "inner\n\u202e").write_text("odd name\n")
    (folder / "d").unlink()
    (folder / "d").symlink_to("/etc/passwd")
    (folder / ".gitattributes").write_text("* text=auto\n")


def content(folder: Path) -> dict[str, bytes | str]:
    found: dict[str, bytes | str] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file() and name != ".git":
            found[name] = path.read_bytes()
    return found


def test_a_fork_has_the_files_of_the_original_and_a_branch_of_its_own(
    engine: Engine, original: Checkout
) -> None:
    change(original)
    made, tree = fork(engine, original)
    assert (made.name, made.branch) == ("one-2", "dragoman/one-2")
    assert content(tree.folder) == content(original.folder)
    assert tree.git("status", "--porcelain", "-z") == original.git("status", "--porcelain", "-z")
    assert tree.git("rev-parse", "HEAD") == original.git("rev-parse", "HEAD")
    (tree.folder / "new").write_text("other\n")
    assert (original.folder / "new").read_text() == "new\n"
    assert fork(engine, original)[0].name == "one-3"
    assert [one.name for one in engine.all()] == ["one", "one-2", "one-3"]


def recorded_as(project: Project, checkpoint: Checkpoint) -> RecordedTree:
    (reference,) = (project.state / "checkpoints").glob(f"*/refs/sessions/{SESSION}")
    left_out = frozenset(each.path for each in checkpoint.left_out)
    return RecordedTree(str(reference.parents[2]), checkpoint.tree, checkpoint.time, left_out)


def test_a_fork_of_a_checkpoint_has_the_files_and_commits_of_that_moment(
    engine: Engine, original: Checkout, tmp_path: Path
) -> None:
    (original.folder / "tracked.env").write_text("ignored, but tracked\n")
    original.git("add", "-f", "tracked.env")
    original.git("commit", "-qm", "tracked")
    change(original)
    before, head = content(original.folder), original.git("rev-parse", "HEAD")
    project = Project(original.folder, tmp_path / "state")
    checkpoint = project.record("begin")
    subprocess.run(["git", "add", "-A"], cwd=original.folder, check=True)
    env = {"GIT_COMMITTER_DATE": "@4102444800 +0000", "PATH": os.environ["PATH"]}
    subprocess.run(["git", "commit", "-qm", "later"], cwd=original.folder, env=env, check=True)
    (original.folder / "a").write_text("later\n")
    _, tree = fork(engine, original, recorded_as(project, checkpoint))
    assert content(tree.folder) == before
    assert tree.git("rev-parse", "HEAD") == head
    assert "tracked.env" not in tree.git("status", "--porcelain")


def test_a_session_without_a_worktree_has_none_to_fork(engine: Engine, original: Checkout) -> None:
    assert engine.fork("f", "other", str(original.folder), WorktreeWish(), None, box=None) is None
    subprocess.run(["rm", "-rf", str(original.folder)], check=True)
    with pytest.raises(WorktreeError, match="is gone"):
        fork(engine, original)
    assert [one.name for one in engine.all()] == ["one"]
