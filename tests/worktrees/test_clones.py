"""The clone that a boxed session gets, read by git in its box alone, and what a session in a worktree may write to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.agents.known import known_layer
from dragoman.cli.worktrees.boxes import boxes_for_commands
from dragoman.config.load import load
from dragoman.config.paths import find_paths
from dragoman.config.sections.worktrees import WorktreesConfig
from dragoman.gateway.ports.worktrees import BoxChoice, WorktreeError, WorktreeWish
from dragoman.policy.act import Act, PathFact
from dragoman.policy.protected import denied_place
from dragoman.worktrees.engine import Engine
from support.command_line import CommandLine
from support.sandboxes import sandbox_kinds

from .conftest import Checkout


@pytest.fixture
def engine(shell: CommandLine) -> Iterator[Engine]:
    """Worktrees, and a sandbox `box` for the sessions that they are for."""
    shell.configure(**sandbox_kinds.bubblewrap().config())
    paths = find_paths({"DRAGOMAN_HOME": str(shell.home)})
    config = load(paths, known=known_layer(), workspace=None).config
    with boxes_for_commands(config, paths) as enter:
        yield Engine(paths.state_dir / "worktrees", enter=enter)


@pytest.fixture
def clone(engine: Engine, repository: Checkout) -> Checkout:
    root, box = str(repository.folder), BoxChoice("scripted", "box")
    made = engine.create("s", root, root, WorktreeWish(name="one"), WorktreesConfig(), box=box)
    return Checkout(Path(made.folder))


def test_a_clone_points_nowhere_and_is_merged(engine: Engine, clone: Checkout, repository: Checkout) -> None:
    assert (clone.folder / ".git").is_dir()
    assert not (clone.folder / ".git" / "objects" / "info" / "alternates").exists()
    assert clone.git("status", "--porcelain", "--branch") == "## dragoman/one"
    clone.commit("Add c", c="new\n")
    (clone.folder / "d").write_text("more\n")
    (found,) = engine.all()
    assert (found.uncommitted, found.unmerged) == (1, 1)
    assert engine.merge("one", None, "Add d", None).files == ["c", "d"]
    assert (repository.folder / "d").read_text() == "more\n"
    assert repository.git("status", "--porcelain") == clone.git("status", "--porcelain") == ""
    assert repository.git("log", "-1", "--format=%an %s") == "Me Add d"
    (found,) = engine.all()
    assert found.loses == ""


def test_commits_on_other_branches_of_a_clone_would_be_lost(engine: Engine, clone: Checkout) -> None:
    clone.git("checkout", "-q", "-b", "other")
    clone.commit("Add c", c="new\n")
    clone.git("checkout", "-q", "dragoman/one")
    (clone.folder / "a").write_text("stashed\n")
    clone.git("stash", "-q")
    (found,) = engine.all()
    assert (found.uncommitted, found.unmerged) == (0, 3), "the commit, and the two of a stash"
    with pytest.raises(WorktreeError, match="3 commits not merged"):
        engine.discard("one", None)


def test_what_a_clone_names_is_run_in_its_box_alone(
    engine: Engine, clone: Checkout, repository: Checkout, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    for key in ("core.fsmonitor", "filter.x.clean", "diff.external"):
        clone.git("config", key, f"touch {mark}; cat")
    (clone.folder / ".gitattributes").write_text("* filter=x\n")
    (clone.folder / "c").write_text("new\n")
    assert engine.all()[0].uncommitted >= 2
    assert engine.merge("one", None, "Add c", None).files == [".gitattributes", "c"]
    assert (repository.folder / "c").read_text() == "new\n"
    assert not mark.exists()


def test_a_submodule_in_a_clone_is_not_merged(engine: Engine, clone: Checkout, tmp_path: Path) -> None:
    mark, inner = tmp_path / "ran", Checkout(clone.folder / "inner")
    inner.folder.mkdir()
    inner.git("init", "-q")
    for key, value in (("user.name", "x"), ("user.email", "x"), ("core.fsmonitor", f"touch {mark}; true")):
        inner.git("config", key, value)
    inner.git("commit", "-q", "--allow-empty", "-m", "inner")
    with pytest.raises(WorktreeError, match="is a repository of its own"):
        engine.merge("one", None, "Add inner", None)
    clone.git("update-index", "--add", "--cacheinfo", f"160000,{inner.git('rev-parse', 'HEAD')},inner")
    clone.git("commit", "-qm", "A submodule that .gitmodules does not name")
    mark.unlink(missing_ok=True)
    assert engine.all()[0].unmerged == 1
    with pytest.raises(WorktreeError, match=r"has a submodule \(inner\)"):
        engine.merge("one", None, None, None)
    (inner.folder / "dirty").write_text("1\n")
    assert engine.all()[0].uncommitted == 1
    assert not mark.exists()


def test_objects_that_a_clone_borrows_from_outside_are_not_read(
    engine: Engine, clone: Checkout, repository: Checkout, tmp_path: Path
) -> None:
    secret = Checkout(tmp_path / "secret")
    secret.folder.mkdir()
    secret.git("init", "-q")
    for key in ("user.name", "user.email"):
        secret.git("config", key, "x")
    secret.commit("secret", key="secret\n")
    tree = secret.git("rev-parse", "HEAD^{tree}")
    objects = clone.folder / ".git" / "objects"
    (objects / "info").mkdir(exist_ok=True)
    (objects / "info" / "alternates").write_text(f"{secret.folder}/.git/objects\n")
    head = clone.git("commit-tree", tree, "-p", "HEAD", "-m", "borrowed")
    clone.git("update-ref", "HEAD", head)
    with pytest.raises(WorktreeError):
        engine.merge("one", None, "x", None)
    assert not (repository.folder / "key").exists()
    assert repository.git("log", "--oneline", "--all").count("\n") == 0


def test_a_damaged_clone_is_never_taken_for_empty(engine: Engine, clone: Checkout) -> None:
    (clone.folder / ".git" / "HEAD").write_text("ref: refs/heads/none\n")
    (found,) = engine.all()
    assert "cannot be looked at" in found.loses
    assert "it may be damaged" in found.loses
    assert engine.clean([]).removed == []
    with pytest.raises(WorktreeError, match="cannot be looked at"):
        engine.discard("one", None)
    engine.discard("one", None, force=True)
    assert not clone.folder.exists()


def test_without_its_sandbox_a_clone_stays_as_it_is(
    shell: CommandLine, engine: Engine, clone: Checkout
) -> None:
    shell.configure()
    done = shell.run("worktrees", "merge", "one")
    assert done.returncode == 1
    assert "The sandbox of one cannot be used: There is no sandbox box" in done.stderr
    assert "cannot be looked at" in shell.run("worktrees", "discard", "one").stderr


def test_a_clone_is_not_rebased(engine: Engine, clone: Checkout) -> None:
    with pytest.raises(WorktreeError, match="boxed session"):
        engine.rebase("one", None)


def test_a_boxed_session_works_in_a_clone_and_is_merged_or_discarded(
    shell: CommandLine, repository: Checkout
) -> None:
    shell.configure(**sandbox_kinds.bubblewrap().config())
    setting = "git config user.name Agent; git config user.email agent@example.org"
    for name in ("one", "two"):
        script = f"sh {setting}; echo {name} > a; git commit -qam 'By the agent'; echo new > {name}; ls / > /dev/null"
        done = shell.run("exec", "--worktree", "--name", name, script)
        assert done.returncode == 0, done.stderr
    assert repository.git("status", "--porcelain") == ""
    done = shell.run("worktrees", "list")
    assert done.stdout.count("1 file not committed and 1 commit not merged") == 2, done.stdout
    done = shell.run("worktrees", "merge", "one", "-m", "The rest")
    assert "`dragoman worktrees discard one` removes them" in done.stderr
    assert done.returncode == 0, done.stderr
    assert repository.git("log", "--format=%an %s", "HEAD", "^HEAD~2") == "Me The rest\nAgent By the agent"
    assert (repository.folder / "one").read_text() == "new\n"
    assert "1 commit not merged" in shell.run("worktrees", "discard", "two").stderr
    assert shell.run("worktrees", "discard", "two", "--yes").returncode == 0
    assert not (repository.folder / "two").exists()
    assert repository.git("branch", "--list", "dragoman/two") == ""


def test_a_deleted_boxed_session_leaves_a_clone_that_would_lose_something(
    shell: CommandLine, repository: Checkout
) -> None:
    shell.configure(**sandbox_kinds.bubblewrap().config())
    sessions = {}
    for name, script in (("clean", "say x"), ("dirty", "sh echo new > c")):
        done = shell.run("exec", "--worktree", "--name", name, script)
        assert done.returncode == 0, done.stderr
        sessions[name] = done.stderr.split()[-1]
    done = shell.run("sessions", "delete", "-y", *sessions.values())
    assert "its worktree dirty stays (1 file not committed)" in done.stderr
    left = json.loads(shell.run("worktrees", "list", "--json").stdout)
    assert [one["name"] for one in left] == ["dirty"]
    assert repository.git("branch", "--list", "dragoman/*") == "dragoman/dirty"


def test_setup_runs_in_the_box(engine: Engine, repository: Checkout) -> None:
    root, box = str(repository.folder), BoxChoice("scripted", "box")
    settings = WorktreesConfig(setup=[f"test ! -e {repository.folder}", "pwd > place"])
    wish = WorktreeWish(name="one", setup=True)
    made = engine.create("s", root, root, wish, settings, box=box)
    assert Path(made.folder, "place").read_text() == f"{sandbox_kinds.INSIDE}\n"
    with pytest.raises(WorktreeError, match="failed with exit code 3: no"):
        engine.set_up("s", ["echo no; exit 3"], "me")


def test_a_fork_of_a_boxed_session_has_a_clone_of_its_own(engine: Engine, clone: Checkout) -> None:
    head = clone.commit("Add c", c="new\n")
    (clone.folder / "d").write_text("more\n")
    box = BoxChoice("scripted", "box")
    made = engine.fork("f", "s", str(clone.folder), WorktreeWish(), None, box=box)
    assert made is not None
    fork = Checkout(Path(made.folder))
    assert (fork.git("rev-parse", "HEAD"), fork.git("status", "--porcelain")) == (head, "?? d")


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
