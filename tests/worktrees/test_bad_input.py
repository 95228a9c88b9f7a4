"""Odd names, full disks, hostile settings, two at once: a clear word each, nothing lost, nothing run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dragoman.config.sections.worktrees import WorktreesConfig
from dragoman.gateway.ports.worktrees import WorktreeError, WorktreeWish
from dragoman.worktrees.engine import Engine
from dragoman.worktrees.names import LONGEST, check_name, name_of
from support.gateway_process import Start
from support.store.small_disk import mounting
from support.waiting import until

from .conftest import Checkout
from .test_editors import editor, opened


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path / "state" / "worktrees")


def make(engine: Engine, repository: Checkout, name: str | None = "one", title: str = "") -> Checkout:
    root = str(repository.folder)
    asked = WorktreeWish(name=name, title=title)
    return Checkout(Path(engine.create(f"s-{name}", root, root, asked, WorktreesConfig(), box=None).folder))


@pytest.mark.parametrize(
    "title",
    [
        "",
        "\n\0\r",
        "\u202egnp.exe",
        "../../etc",
        "-rf /",
        "ümläut & Größe",
        "x" * 5000,
        "a " * 3000,
        "日本語",
        ".lock",
    ],
)
def test_a_name_made_of_any_title_is_a_good_one(title: str) -> None:
    name = name_of(title)
    assert check_name(name) == name
    assert len(name) <= LONGEST


def test_names_of_one_title_differ(engine: Engine, repository: Checkout) -> None:
    names = [make(engine, repository, None, title="Fix it\n\u202e").folder.name for _ in range(3)]
    assert names == ["fix-it", "fix-it-2", "fix-it-3"]


def test_files_with_odd_names_are_counted_and_merged(engine: Engine, repository: Checkout) -> None:
    tree = make(engine, repository)
    names = [
        b"new\nline",
        b"\xff\xfe",
        "\u202ertl".encode(),
        b"-rf",
        b":(top)x",
        b'quo"te',
        b" space ",
        b"\x1b[31m",
    ]
    for name in names:
        (tree.folder / os.fsdecode(name)).write_bytes(name)
    assert engine.all()[0].uncommitted == len(names)
    assert len(engine.merge("one", None, "Odd names", None).files) == len(names)
    for name in names:
        assert (repository.folder / os.fsdecode(name)).read_bytes() == name
    assert repository.git("status", "--porcelain") == tree.git("status", "--porcelain") == ""


def test_two_merges_at_once_both_arrive(engine: Engine, repository: Checkout, tmp_path: Path) -> None:
    names = [f"w{number}" for number in range(4)]
    for name in names:
        (make(engine, repository, name).folder / name).write_text("new\n")
    errors: list[Exception] = []

    def merge(name: str) -> None:
        try:
            Engine(tmp_path / "state" / "worktrees").merge(name, None, f"Add {name}", None)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=merge, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert all((repository.folder / name).exists() for name in names)
    assert repository.git("status", "--porcelain") == ""
    assert [one.loses for one in engine.all()] == [""] * 4


def test_a_dirty_checkout_is_merged_into_where_nothing_is_in_the_way(
    engine: Engine, repository: Checkout
) -> None:
    tree = make(engine, repository)
    tree.commit("Add c", c="new\n")
    (repository.folder / "a").write_text("mine\n")
    (repository.folder / "untracked").write_text("mine\n")
    repository.git("rm", "-q", "--cached", "b")
    engine.merge("one", None, None, None)
    status = sorted(line.strip() for line in repository.git("status", "--porcelain").split("\n"))
    assert status == ["?? b", "?? untracked", "D  b", "M a"]
    assert (repository.folder / "a").read_text() == "mine\n"
    assert (repository.folder / "c").read_text() == "new\n"


def test_a_merge_or_rebase_that_is_under_way_is_not_disturbed(engine: Engine, repository: Checkout) -> None:
    tree = make(engine, repository)
    tree.commit("Add c", c="new\n")
    (repository.folder / ".git" / "MERGE_HEAD").write_text(f"{repository.git('rev-parse', 'HEAD')}\n")
    with pytest.raises(WorktreeError, match="is under way"):
        engine.merge("one", None, None, None)


def test_a_head_that_left_its_branch_is_named(engine: Engine, repository: Checkout) -> None:
    tree = make(engine, repository)
    tree.git("checkout", "-q", "--detach")
    tree.commit("Add c", c="new\n")
    assert engine.all()[0].unmerged == 1, "the commit that no branch has counts"
    with pytest.raises(WorktreeError, match="has no branch checked out"):
        engine.merge("one", None, None, None)


def test_a_repository_that_is_gone_leaves_its_worktrees_alone(engine: Engine, repository: Checkout) -> None:
    tree = make(engine, repository)
    (tree.folder / "c").write_text("new\n")
    shutil.rmtree(repository.folder)
    (found,) = engine.all()
    assert "cannot be looked at" in found.loses
    assert engine.clean([], stored=["s-one"]).removed == []
    assert (tree.folder / "c").exists()
    engine.discard("one", None, force=True)
    assert not tree.folder.exists()


def test_nothing_that_a_repository_names_runs_when_a_worktree_is_made(
    engine: Engine, repository: Checkout, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {mark}\ncat\n")
    program.chmod(0o755)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "reference-transaction", "post-index-change", "pre-commit", "post-merge"):
        shutil.copy(program, hooks / name)
    included = tmp_path / "included"
    included.write_text(f"[core]\n\thooksPath = {hooks}\n\tfsmonitor = {program}\n\tsshCommand = {program}\n")
    settings = {
        "include.path": str(included),
        "core.pager": str(program),
        "core.editor": str(program),
        "core.askPass": str(program),
        "gpg.program": str(program),
        "commit.gpgSign": "true",
        "diff.external": str(program),
        "credential.helper": str(program),
        "uploadpack.packObjectsHook": str(program),
        "filter.x.process": str(program),
        "remote.origin.url": f"ext::{program}",
        "remote.origin.promisor": "true",
        "merge.x.driver": f"{program} %A",
        "alias.worktree": f"!{program}",
    }
    for key, value in settings.items():
        repository.git("config", key, value)
    (repository.folder / ".git" / "info" / "attributes").write_text("* merge=x diff=x\n")
    tree = make(engine, repository)
    (tree.folder / "a").write_text("1\n2\n3\n4\n")
    engine.all()
    engine.merge("one", None, "More", None)
    engine.rebase("one", None)
    engine.discard("one", None)
    assert not mark.exists()
    with pytest.raises(WorktreeError, match="the git filter 'x'"):
        (repository.folder / ".git" / "info" / "attributes").write_text("* filter=x\n")
        make(engine, repository, "two")
    assert not mark.exists()


FULL = """
import subprocess, sys
from dragoman.config.sections.worktrees import WorktreesConfig
from dragoman.gateway.ports.worktrees import WorktreeError, WorktreeWish
from dragoman.worktrees.engine import Engine
from pathlib import Path
state, root = Path(sys.argv[1]), sys.argv[2]
engine = Engine(state / "worktrees")
engine.create("s", root, root, WorktreeWish(name="small"), WorktreesConfig(), box=None)
subprocess.run(["git", "-C", root, "commit", "-qm", "large"], check=True)
try:
    engine.create("t", root, root, WorktreeWish(name="large"), WorktreesConfig(), box=None)
except WorktreeError as error:
    print("refused:", error)
room = (state / "filler").open("wb")
try:
    while room.write(b"x" * 4096):
        room.flush()
except OSError:
    pass
print("listed:", [(one.name, one.loses) for one in engine.all()])
engine.discard("small", None, force=True)
print("left:", [one.name for one in engine.all()])
"""


def test_a_full_disk_is_named_and_does_not_keep_a_worktree_from_being_discarded(
    repository: Checkout, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    prefix = mounting(f"mount -t tmpfs -o size=3m tmpfs {state}")
    (repository.folder / "large").write_bytes(os.urandom(5 << 20))
    repository.git("add", "large")
    words = [*prefix, sys.executable, "-c", FULL, str(state), str(repository.folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    refused, listed, left = done.stdout.strip().split("\n")
    assert refused.startswith("refused:") and "No space left" in refused, refused
    assert listed.startswith("listed: [('small'")
    assert left == "left: []"
    assert repository.git("branch", "--list", "dragoman/large") == ""


@pytest.mark.long
async def test_retention_removes_a_merged_worktree_and_leaves_a_dirty_one(
    dragoman: Start, repository: Checkout, workspace: Path
) -> None:
    first = await editor(dragoman, "--worktree")
    _, clean = await opened(first, workspace)
    session, dirty = await opened(first, workspace)
    await first.prompt(session, f"fswrite {dirty}/c new")
    first.leave()
    await first.wait_exit()
    second = await editor(dragoman, sessions={"retain_days": 1e-9, "expire_after": 0.2})
    await second.logged("the worktree session-2 of a deleted session stays: 1 file not committed")
    await until(lambda: not clean.exists())
    assert (dirty / "c").read_text() == "new"
    assert repository.git("branch", "--list", "dragoman/*").split() == ["+", "dragoman/session-2"]
