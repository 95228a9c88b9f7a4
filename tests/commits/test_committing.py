"""A commit has the files that it should, leaves the rest of the index alone, and runs nothing of the repository."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from dragoman.commits.engine import Engine
from dragoman.config.sections.checkpoints import CheckpointsConfig
from dragoman.gateway.ports.checkpoints import SharedChanges, Touched
from dragoman.gateway.ports.commits import CommitError, Committed, CommitWish
from support.checkpoints.project import SESSION, Project
from support.commits.repository import Repository


def commit(
    repository: Repository, *names: str, message: str = "Change", hooks: bool = False, **wish: object
) -> Committed:
    """Commit what a session changed, or what the wish names."""
    asked = CommitWish(**wish)  # type: ignore[arg-type]
    touched = Touched(str(repository.folder), {os.fsencode(name) for name in names}, set()) if names else None
    plan = repository.engine.plan(str(repository.folder), asked, touched)
    return repository.engine.commit(plan, message, hooks=hooks)


def refused(code: str, repository: Repository, *names: str, **more: object) -> str:
    with pytest.raises(CommitError) as error:
        commit(repository, *names, **more)  # type: ignore[arg-type]
    assert error.value.code == code, error.value
    return str(error.value)


def test_only_the_sessions_files_are_committed(repository: Repository) -> None:
    before = repository.commit(a="1\n", b="1\n", gone="1\n", staged="1\n")
    repository.write("a", "2\n")
    repository.write("b", "mine\n")
    repository.write("new\n\u202e", "1\n")
    (repository.folder / "gone").unlink()
    repository.write("staged", "staged by me\n")
    repository.git("add", "staged")
    repository.write("staged", "and changed\n")
    done = commit(repository, "a", "new\n\u202e", "gone", message="Change a\n\nWhy.  \n\n")
    assert (done.branch, sorted(done.files)) == ("main", ["a", "gone", "new\n\u202e"])
    assert repository.git("rev-parse", "HEAD") == done.commit
    assert repository.git("rev-parse", "HEAD~1") == before
    shown = repository.git("show", "--name-status", "-z", "--format=%an %ae %cn|%B", "HEAD")
    assert shown.startswith("Me me@example.org Me|Change a\n\nWhy.\n")
    assert repository.git("status", "--porcelain").splitlines() == ["M b", "MM staged"]
    assert repository.git("show", ":staged") == "staged by me"
    assert repository.git("reflog", "-1", "--format=%gs %gn") == "commit: Change a Me"
    assert repository.git("fsck", "--strict") == ""


def test_everything_or_named_files_are_committed_if_asked_for(repository: Repository) -> None:
    repository.commit(a="1\n")
    for name in ("a", "d/x", "d/y", "e"):
        repository.write(name, "2\n")
    assert commit(repository, paths=["d/", "./a"]).files == ["a", "d/x", "d/y"]
    assert "has nothing" in refused("no_change", repository, paths=["a"])
    assert commit(repository, all=True).files == ["e"]
    assert repository.git("status", "--porcelain") == ""
    assert "nothing to commit" in refused("nothing_to_commit", repository, all=True)


def test_what_others_changed_too_needs_a_word(repository: Repository) -> None:
    repository.commit(a="1\n", b="1\n")
    repository.write("a", "2\n")
    repository.write("b", "2\n")
    touched = Touched(str(repository.folder), {b"a", b"b"}, {b"b"})
    root = str(repository.folder)
    with pytest.raises(SharedChanges, match="changed b: say whether to commit"):
        repository.engine.plan(root, CommitWish(), touched)
    plan = repository.engine.plan(root, CommitWish(shared="leave"), touched)
    assert (plan.files, plan.left) == (("a",), ("b",))
    assert repository.engine.plan(root, CommitWish(shared="include"), touched).files == ("a", "b")


@pytest.mark.parametrize("how", ["--object-format=sha1", "--object-format=sha256"])
def test_what_differed_from_the_last_commit_before_the_first_turn_is_shared(
    repository: Repository, tmp_path: Path, how: str
) -> None:
    shutil.rmtree(repository.folder / ".git")
    repository.git("init", "-q", "-b", "main", how)
    repository.write(".gitattributes", "*.bat eol=crlf\n")
    repository.commit(plain="1\n", hand="1\n", mode="1\n", between="1\n")
    repository.write("x.bat", b"1\r\n")
    repository.commit("second")
    repository.write("hand", "by hand\n")
    repository.write("untracked", "by hand\n")
    (repository.folder / "mode").chmod(0o755)
    project = Project(repository.folder, tmp_path / "state")
    project.record("begin")
    for name in ("plain", "hand", "mode", "x.bat", "between", "untracked", "new"):
        with (repository.folder / name).open("ab") as file:
            file.write(b"2\n")
    project.record("end")
    repository.write("between", "by hand\n")
    project.record("begin")
    repository.write("between", "2\n")
    project.record("end")
    root = str(repository.folder)
    with pytest.raises(SharedChanges) as refused:
        repository.engine.plan(root, CommitWish(), project.engine.touched(SESSION))
    assert refused.value.paths == ["between", "hand", "mode", "untracked"]
    with pytest.raises(SharedChanges, match="changed between:"):
        repository.engine.plan(root, CommitWish(turn=2), project.engine.touched(SESSION, 2))
    plan = repository.engine.plan(root, CommitWish(shared="leave"), project.engine.touched(SESSION))
    assert plan.files == ("new", "plain", "x.bat")
    repository.commit("by hand, the rest too")
    project.record("begin")
    repository.write("hand", "3\n")
    project.record("end")
    assert repository.engine.plan(root, CommitWish(), project.engine.touched(SESSION)).files == ("hand",)


def test_modes_links_and_binary_files_are_committed(repository: Repository) -> None:
    repository.commit(run="#!/bin/sh\n", link="target")
    (repository.folder / "run").chmod(0o755)
    (repository.folder / "link").unlink()
    (repository.folder / "link").symlink_to("/etc/passwd")
    repository.write("binary", bytes(range(256)))
    repository.write(".gitattributes", "*.txt text\n")
    repository.write("x.txt", "a\r\nb\r\n")
    commit(repository, all=True)
    assert repository.git("status", "--porcelain") == ""
    listed = repository.git("ls-tree", "HEAD", "run", "link").split()
    assert (listed[0], listed[4]) == ("120000", "100755")
    assert repository.run("show", "HEAD:x.txt") == b"a\nb\n"


def test_a_file_that_is_staged_in_another_form_is_told(repository: Repository) -> None:
    before = repository.commit(a="1\n", b="1\n")
    repository.write("a", "2\n")
    repository.git("add", "a")
    repository.write("a", "3\n")
    assert "what is staged is not" in refused("staged", repository, "a")
    assert repository.git("rev-parse", "HEAD") == before
    assert repository.git("status", "--porcelain") == "MM a"
    repository.git("add", "a")
    assert commit(repository, "a").files == ["a"]
    assert repository.git("status", "--porcelain") == ""


def test_a_first_commit_is_made_on_an_unborn_branch(repository: Repository) -> None:
    repository.write("a", "1\n")
    repository.write("b", "1\n")
    repository.git("add", "b")
    done = commit(repository, "a")
    assert (done.branch, done.files) == ("main", ["a"])
    assert repository.git("status", "--porcelain") == "A  b"


def test_a_commit_in_a_linked_worktree_is_on_its_branch(repository: Repository, tmp_path: Path) -> None:
    before = repository.commit(a="1\n")
    repository.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "linked"))
    linked = Repository(tmp_path / "linked", repository.home)
    linked.write("a", "2\n")
    done = commit(linked, "a")
    assert (done.branch, linked.git("status", "--porcelain")) == ("other", "")
    assert (repository.git("rev-parse", "other"), repository.git("rev-parse", "main")) == (
        done.commit,
        before,
    )


def test_submodules_are_committed_by_their_commits(repository: Repository, tmp_path: Path) -> None:
    inner = Repository.make(tmp_path / "inner", repository.home)
    inner.commit(g="1\n")
    repository.commit(a="1\n")
    repository.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.folder), "sub")
    repository.commit("sub")
    sub = Repository(repository.folder / "sub", repository.home)
    new = sub.commit("second", g="2\n")
    mark = tmp_path / "ran"
    sub.git("config", "core.fsmonitor", f"touch {mark}; true")
    assert commit(repository, all=True).files == ["sub"]
    assert not mark.exists()
    sub.git("config", "--unset", "core.fsmonitor")
    assert repository.git("rev-parse", "HEAD:sub") == new
    assert repository.git("status", "--porcelain") == ""


def test_what_is_in_the_way_of_a_commit_is_said(repository: Repository) -> None:
    repository.commit(a="1\n")
    repository.write("a", "2\n")
    git = repository.folder / ".git"
    for name, said in (("MERGE_HEAD", "A merge is under way"), ("rebase-merge", "A rebase is under way")):
        (git / name).touch()
        assert said in refused("busy", repository, "a")
        (git / name).unlink()
    (git / "index.lock").touch()
    assert "index.lock" in refused("busy", repository, "a")
    assert (git / "index.lock").exists()
    (git / "index.lock").unlink()
    assert "must not be empty" in refused("no_message", repository, "a", message=" \n")
    assert "NUL" in refused("bad_message", repository, "a", message="a\0b")
    repository.git("checkout", "-q", "--detach")
    assert "git switch -c" in refused("detached_head", repository, "a")
    repository.git("checkout", "-q", "main")
    (repository.home / ".gitconfig").write_text("")
    assert "who you are" in refused("no_author", repository, "a")
    assert repository.git("status", "--porcelain") == "M a"
    assert not (git / "index.lock").exists()


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everything")
def test_a_repository_that_cannot_be_written_is_said(repository: Repository) -> None:
    repository.commit(a="1\n")
    repository.write("a", "2\n")
    (repository.folder / ".git").chmod(0o500)
    try:
        assert "cannot be written" in refused("io_failed", repository, "a")
    finally:
        (repository.folder / ".git").chmod(0o700)


def test_a_branch_that_moves_meanwhile_is_not_overwritten(repository: Repository) -> None:
    repository.commit(a="1\n")
    repository.write("a", "2\n")
    touched = Touched(str(repository.folder), {b"a"}, set())
    plan = repository.engine.plan(str(repository.folder), CommitWish(), touched)
    repository.git("commit", "-q", "--allow-empty", "-m", "meanwhile")
    with pytest.raises(CommitError, match="nothing was committed"):
        repository.engine.commit(plan, "Change", hooks=False)
    assert repository.git("log", "-1", "--format=%s") == "meanwhile"
    assert repository.git("status", "--porcelain") == "M a"


def test_a_hostile_repository_runs_nothing_for_a_commit(repository: Repository, tmp_path: Path) -> None:
    repository.commit(a="1\n", b="1\n")
    repository.write(".gitattributes", "a filter=x\n* diff=x merge=x\n")
    for name in ("a", "b", "c"):
        repository.write(name, "2\n")
    mark = tmp_path / "ran"
    repository.arm(mark)
    assert "--hooks" in refused("filter", repository, "a", "b")
    assert commit(repository, "b", "c", ".gitattributes").files == [".gitattributes", "b", "c"]
    assert not mark.exists()


def test_a_person_lets_hooks_and_filters_run(repository: Repository, tmp_path: Path) -> None:
    repository.commit(a="1\n")
    repository.git("config", "filter.x.clean", "tr a-z A-Z")
    repository.write(".gitattributes", "*.up filter=x\n")
    hook = repository.folder / ".git" / "hooks" / "commit-msg"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        '#!/bin/sh\ngrep -q FORBIDDEN "$1" && { echo no such word; exit 1; }\necho "From: hook" >> "$1"\n'
    )
    hook.chmod(0o755)
    repository.write("x.up", "abc\n")
    repository.write("other", "1\n")
    assert "no such word" in refused("git_failed", repository, "x.up", message="FORBIDDEN", hooks=True)
    assert "x.up" not in repository.git("ls-files")
    done = commit(repository, "x.up", ".gitattributes", hooks=True)
    assert repository.git("show", "HEAD:x.up") == "ABC"
    assert "From: hook" in repository.git("log", "-1", "--format=%B")
    assert done.commit == repository.git("rev-parse", "HEAD")
    assert repository.git("status", "--porcelain") == "?? other"


def test_our_own_folder_is_never_committed(repository: Repository) -> None:
    repository.commit(a="1\n")
    repository.write(".state/secret", "1\n")
    repository.write("b", "1\n")
    repository.engine = Engine(repository.folder / ".state", CheckpointsConfig())
    assert commit(repository, all=True).files == ["b"]
