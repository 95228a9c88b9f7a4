"""The clone that a boxed session gets, and what a session in a worktree may write to."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.config.sections.worktrees import WorktreesConfig
from dragoman.gateway.ports.worktrees import WorktreeError, WorktreeWish
from dragoman.policy.act import Act, PathFact
from dragoman.policy.protected import denied_place
from dragoman.worktrees.engine import Engine

from .conftest import Checkout


def made(repository: Checkout, tmp_path: Path) -> tuple[Engine, Checkout]:
    engine, root = Engine(tmp_path / "state" / "worktrees"), str(repository.folder)
    place = engine.create("s", root, root, WorktreeWish(name="one"), WorktreesConfig(), boxed=True)
    return engine, Checkout(Path(place.folder))


def test_a_clone_points_nowhere_and_is_merged(repository: Checkout, tmp_path: Path) -> None:
    engine, clone = made(repository, tmp_path)
    assert (clone.folder / ".git").is_dir()
    assert not (clone.folder / ".git" / "objects" / "info" / "alternates").exists()
    assert clone.git("status", "--porcelain", "--branch") == "## dragoman/one"
    clone.commit("Add c", c="new\n")
    (clone.folder / "d").write_text("more\n")
    (found,) = engine.all()
    assert (found.uncommitted, found.unmerged) == (1, 1)
    assert engine.merge("one", None, "Add d", None).files == ["c", "d"]
    assert (repository.folder / "d").read_text() == "more\n"
    assert repository.git("status", "--porcelain") == ""
    (found,) = engine.all()
    assert found.loses == ""
    assert engine.clean([]).removed == ["one"]


def test_the_configuration_of_a_clone_is_not_used(repository: Checkout, tmp_path: Path) -> None:
    engine, clone = made(repository, tmp_path)
    mark = tmp_path / "ran"
    for key in ("core.fsmonitor", "filter.x.clean", "diff.external"):
        clone.git("config", key, f"touch {mark}; cat")
    (clone.folder / ".gitattributes").write_text("* filter=x\n")
    (clone.folder / "c").write_text("new\n")
    assert engine.all()[0].uncommitted == 2
    assert engine.merge("one", None, "Add c", None).files == [".gitattributes", "c"]
    assert not mark.exists()


def test_the_configuration_of_a_submodule_in_a_clone_is_not_used(
    repository: Checkout, tmp_path: Path
) -> None:
    engine, clone = made(repository, tmp_path)
    mark, inner = tmp_path / "ran", Checkout(clone.folder / "inner")
    inner.folder.mkdir()
    inner.git("init", "-q")
    for key, value in (("user.name", "x"), ("user.email", "x"), ("core.fsmonitor", f"touch {mark}; true")):
        inner.git("config", key, value)
    inner.git("commit", "-q", "--allow-empty", "-m", "inner")
    clone.git("update-index", "--add", "--cacheinfo", f"160000,{inner.git('rev-parse', 'HEAD')},inner")
    clone.git("commit", "-qm", "A submodule that .gitmodules does not name")
    mark.unlink(missing_ok=True)
    (inner.folder / "dirty").write_text("1\n")
    (clone.folder / "c").write_text("new\n")
    assert engine.all()[0].uncommitted == 1
    assert engine.merge("one", None, "Add c", None).files == ["c", "inner"]
    assert not mark.exists()


def test_a_clone_is_not_written_from_outside(repository: Checkout, tmp_path: Path) -> None:
    engine, _ = made(repository, tmp_path)
    with pytest.raises(WorktreeError, match="boxed session"):
        engine.rebase("one", None)


@pytest.mark.parametrize(
    ("path", "denied"),
    [
        ("/home/me/.dragoman/worktrees/k/one/src/a", False),
        ("/home/me/.dragoman/worktrees/k/one/.git", True),
        ("/home/me/.dragoman/worktrees/k/one/.git/config", True),
        ("/home/me/.dragoman/worktrees/k/one/.dragoman/config.toml", True),
        ("/home/me/.dragoman/worktrees/k/one.json", True),
        ("/home/me/.dragoman/worktrees/k/two/a", True),
        ("/home/me/.dragoman/tokens", True),
        ("/repo/.git/hooks/pre-commit", True),
        ("/repo/.git/worktrees/one/commondir", True),
    ],
)
def test_only_its_own_worktree_is_open_to_a_session(path: str, denied: bool) -> None:
    own = "/home/me/.dragoman/worktrees/k/one"
    act = Act(workspace=own, project="/repo", paths=(PathFact(path, "write", outside=False),))
    assert (denied_place(act, ["/home/me/.dragoman"]) is not None) is denied
    plain = Act(workspace=own, paths=(PathFact(path, "write", outside=False),))
    assert denied_place(plain, ["/home/me/.dragoman"]) is not None
