"""What `clean` removes, what it leaves, and that a session whose worktree is gone gets it again."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dragoman.config.sections.worktrees import WorktreesConfig
from dragoman.gateway.ports.worktrees import WorktreeError, WorktreeWish
from dragoman.worktrees import ends
from dragoman.worktrees.engine import Engine
from support.command_line import CommandLine

from .conftest import Checkout
from .test_worktrees import listed, refused, worked

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
STEPS = frozenset(
    {"subprocess.Popen", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "shutil.rmtree"}
)


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setattr(ends, "FRESH", 0.0)
    monkeypatch.setattr(ends, "SCRATCH", 0.0)
    return Engine(tmp_path / "state" / "worktrees")


def make(engine: Engine, repository: Checkout, session: str = "s", name: str = "one") -> Checkout:
    root = str(repository.folder)
    made = engine.create(session, root, root, WorktreeWish(name=name), WorktreesConfig(), box=None)
    return Checkout(Path(made.folder))


def again(engine: Engine, session: str, tree: Checkout) -> list[str]:
    return engine.again(session, str(tree.folder), lambda root: WorktreesConfig())


def test_a_cleaned_worktree_is_made_again_for_its_session(engine: Engine, repository: Checkout) -> None:
    tree = make(engine, repository)
    tree.commit("Add c", c="new\n")
    engine.merge("one", None, None, None)
    assert engine.clean(["s"], stored=["s"]).left == {"one": "the session s uses it"}
    assert engine.clean([], stored=["s"]).removed == ["one"]
    assert engine.all() == []
    assert repository.git("branch", "--list", "dragoman/*") == ""
    (told,) = again(engine, "s", tree)
    assert "was made again, from main" in told
    assert (tree.folder / "c").read_text() == "new\n"
    assert tree.git("status", "--porcelain", "--branch") == "## dragoman/one"
    assert again(engine, "s", tree) == []


def test_a_folder_deleted_by_hand_is_made_again_from_its_branch(engine: Engine, repository: Checkout) -> None:
    tree = make(engine, repository)
    head = tree.commit("Add c", c="new\n")
    shutil.rmtree(tree.folder)
    (found,) = engine.all()
    assert (found.state, found.unmerged) == ("missing", 1)
    assert engine.clean([], stored=["s"]).left == {"one": "1 commit not merged"}
    (told,) = again(engine, "s", tree)
    assert "from dragoman/one" in told
    assert tree.git("rev-parse", "HEAD") == head


def test_a_name_that_another_session_took_is_not_given_back(engine: Engine, repository: Checkout) -> None:
    tree = make(engine, repository)
    engine.clean([], stored=["s"])
    make(engine, repository, "t")
    with pytest.raises(WorktreeError, match="begin a new session"):
        again(engine, "s", tree)
    engine.session_deleted("t")
    assert engine.all() == []


def test_the_record_of_a_removed_worktree_ends_with_its_session(engine: Engine, repository: Checkout) -> None:
    tree = make(engine, repository)
    engine.discard("one", None)
    assert engine.sessions() == ["s"]
    engine.session_deleted("s")
    assert engine.sessions() == []
    make(engine, repository)
    engine.discard("one", None)
    engine.clean([])
    assert engine.sessions() == []
    assert not tree.folder.exists()


def test_a_worktree_whose_session_is_about_to_begin_is_not_cleaned(
    engine: Engine, repository: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(engine, repository)
    monkeypatch.setattr(ends, "FRESH", 300.0)
    assert list(engine.clean([]).left) == ["one"]


def test_a_session_is_continued_in_a_worktree_made_again(shell: CommandLine, repository: Checkout) -> None:
    session, tree = worked(shell, "one", "say x")
    assert shell.run("worktrees", "clean").stdout == "removed one\n"
    done = shell.run("exec", "-s", session, "sh pwd; echo 2 > d")
    assert done.returncode == 0, done.stderr
    assert "It was made again, from main" in done.stderr
    assert (tree.folder / "d").read_text() == "2\n"
    assert [one["session"] for one in listed(shell)] == [session]
    shell.run("worktrees", "discard", "one", "--yes")
    worked(shell, "one", "say x")
    assert "begin a new session" in refused(shell, "exec", "-s", session, "sh pwd")


# -- crashes


def killed_at(step: int, act: Callable[[], object]) -> bool:
    """Do something in a child process that is killed before its change number `step`; whether it came so far."""
    pid = os.fork()
    if pid == 0:
        left = step

        def count(event: str, given: tuple[object, ...]) -> None:
            nonlocal left
            opens = event == "open" and isinstance(given[2], int) and given[2] & WRITING
            if event in STEPS or opens:
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(count)
            act()
        finally:
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status)


def steps(full: bool) -> Iterator[int]:
    return iter(range(0, 400, 1 if full else 40))


def traces(engine: Engine, repository: Checkout) -> list[str]:
    """What is left of worktrees: records, folders, drafts, links, branches."""
    home = engine._records.folder
    left = [str(path.relative_to(home)) for path in home.glob("*/*") if path.name != ".lock"]
    links = [path.name for path in (repository.folder / ".git" / "worktrees").glob("*")]
    return [*left, *links, *repository.git("branch", "--list", "dragoman/*").split()]


FULL = pytest.param(True, marks=pytest.mark.long)


@pytest.mark.parametrize("full", [False, FULL])
def test_what_a_kill_leaves_of_a_new_worktree_is_cleaned(
    engine: Engine, repository: Checkout, full: bool
) -> None:
    for step in steps(full):
        came = killed_at(step, lambda: make(engine, repository))
        engine.clean([])
        assert traces(engine, repository) == [], f"killed at {step}"
        assert repository.git("status", "--porcelain", "--branch") == "## main"
        if not came:
            return
    raise AssertionError("it never came to its end")


@pytest.mark.parametrize("full", [False, FULL])
def test_a_kill_loses_nothing_of_a_merge(engine: Engine, repository: Checkout, full: bool) -> None:
    for step in steps(full):
        name = f"new{step}"
        tree = make(engine, repository)
        (tree.folder / name).write_text("new\n")
        repository.commit(f"meanwhile {step}", b=f"{step}\n")
        came = killed_at(step, lambda: engine.merge("one", None, "Add", None))
        engine.merge("one", None, "Add", None)
        assert (repository.folder / name).read_text() == "new\n", f"killed at {step}"
        assert repository.git("status", "--porcelain") == "", f"killed at {step}"
        assert tree.git("status", "--porcelain") == "", f"killed at {step}"
        assert engine.clean([]).removed == ["one"]
        assert traces(engine, repository) == []
        if not came:
            return
    raise AssertionError("it never came to its end")


@pytest.mark.parametrize("full", [False, FULL])
def test_a_kill_while_a_worktree_is_discarded_is_finished_by_clean(
    engine: Engine, repository: Checkout, full: bool
) -> None:
    for step in steps(full):
        tree = make(engine, repository)
        tree.commit("Add c", c="new\n")
        came = killed_at(step, lambda: engine.discard("one", None, force=True))
        left = engine.clean([]).left
        if left:
            assert left == {"one": "1 commit not merged"}, f"killed at {step}"
            assert tree.git("status", "--porcelain", "--branch") == "## dragoman/one"
            engine.discard("one", None, force=True)
            engine.clean([])
        assert traces(engine, repository) == [], f"killed at {step}"
        if not came:
            return
    raise AssertionError("it never came to its end")
