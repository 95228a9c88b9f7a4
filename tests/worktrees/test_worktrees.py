"""`dragoman exec --worktree` and `dragoman worktrees`, with the real git."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.command_line import CommandLine

from .conftest import Checkout


def listed(shell: CommandLine) -> list[dict[str, Any]]:
    done = shell.run("worktrees", "list", "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def worked(shell: CommandLine, name: str, script: str) -> tuple[str, Checkout]:
    """A session in a worktree: its id, and the worktree."""
    done = shell.run("exec", "--worktree", "--name", name, script)
    assert done.returncode == 0, done.stderr
    session = done.stderr.split()[-1]
    (found,) = [one for one in listed(shell) if one["name"] == name]
    assert found["session"] == session
    return session, Checkout(Path(found["folder"]))


def refused(shell: CommandLine, *words: str) -> str:
    done = shell.run(*words)
    assert done.returncode in (1, 2), (done.stdout, done.stderr)
    return done.stderr


def test_a_session_works_in_a_folder_and_branch_of_its_own(
    shell: CommandLine, repository: Checkout, workspace: Path
) -> None:
    done = shell.run("exec", "--worktree", "sh pwd; echo new > c; echo 1 > a")
    assert done.returncode == 0, done.stderr
    (found,) = listed(shell)
    assert found["name"].startswith("sh-pwd-echo-new")
    assert (found["uncommitted"], found["form"], found["into"]) == (2, "linked", "main")
    assert found["bytes"] > 0
    assert not (workspace / "c").exists()
    assert (Path(found["folder"]) / "c").read_text() == "new\n"
    assert repository.git("status", "--porcelain") == ""
    assert Checkout(Path(found["folder"])).git("branch", "--show-current") == found["branch"]
    again = shell.run("exec", "-s", done.stderr.split()[-1], "sh echo 2 > d")
    assert again.returncode == 0, again.stderr
    assert (Path(found["folder"]) / "d").read_text() == "2\n", "the folder is the same after a restart"


def test_a_merge_brings_files_and_commits(shell: CommandLine, repository: Checkout) -> None:
    _, tree = worked(shell, "one", "sh echo new > c")
    assert "not committed (c)" in refused(shell, "worktrees", "merge", "one")
    repository.commit("meanwhile", b="other\n")
    done = shell.run("worktrees", "merge", "one", "-m", "Add c", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["files"] == ["c"]
    assert (repository.folder / "c").read_text() == "new\n"
    assert repository.git("status", "--porcelain") == ""
    assert repository.git("log", "-1", "--format=%P").count(" ") == 1
    assert tree.git("status", "--porcelain") == ""
    done = shell.run("worktrees", "clean")
    assert (done.returncode, done.stdout) == (0, "removed one\n")
    assert repository.git("branch", "--format=%(refname:short)") == "main"
    assert repository.git("worktree", "list").count("\n") == 0


def test_a_conflict_changes_nothing(shell: CommandLine, repository: Checkout) -> None:
    _, tree = worked(shell, "one", "sh echo theirs > a")
    head = repository.commit("ours", a="ours\n")
    assert "changed the same lines of a" in refused(shell, "worktrees", "merge", "one", "-m", "x")
    assert repository.git("rev-parse", "HEAD") == head
    assert repository.git("status", "--porcelain") == ""
    assert (tree.folder / "a").read_text() == "theirs\n"
    assert "changed the same lines of a" in refused(shell, "worktrees", "rebase", "one")


def test_files_in_the_way_stop_a_merge(shell: CommandLine, repository: Checkout) -> None:
    worked(shell, "one", "sh echo theirs > a; echo theirs > c")
    (repository.folder / "a").write_text("mine\n")
    assert "Nothing was changed" in refused(shell, "worktrees", "merge", "one", "-m", "x")
    assert (repository.folder / "a").read_text() == "mine\n"
    repository.git("checkout", "-q", "a")
    (repository.folder / "c").write_text("mine\n")
    assert "Nothing was changed" in refused(shell, "worktrees", "merge", "one", "-m", "x")
    assert (repository.folder / "c").read_text() == "mine\n"


def test_a_rebase_moves_commits(shell: CommandLine, repository: Checkout) -> None:
    _, tree = worked(shell, "one", "sh echo new > c")
    tree.commit("Add c")
    head = repository.commit("meanwhile", b="other\n")
    done = shell.run("worktrees", "rebase", "one")
    assert done.returncode == 0, done.stderr
    assert tree.git("rev-parse", "HEAD^") == head
    assert tree.git("log", "-1", "--format=%an %s") == "Me Add c"
    assert (tree.folder / "b").read_text() == "other\n"
    assert tree.git("status", "--porcelain") == ""


def test_discarding_asks_when_something_would_be_lost(shell: CommandLine, repository: Checkout) -> None:
    _, tree = worked(shell, "one", "sh echo new > c")
    assert "1 file not committed" in refused(shell, "worktrees", "discard", "one")
    tree.commit("Add c")
    assert "1 commit not merged" in refused(shell, "worktrees", "discard", "one")
    assert shell.run("worktrees", "discard", "one", "--yes").returncode == 0
    assert not tree.folder.exists()
    assert repository.git("branch", "--list", "dragoman/*") == ""


def test_programs_that_a_repository_names_are_not_run(
    shell: CommandLine, repository: Checkout, tmp_path: Path
) -> None:
    _, tree = worked(shell, "one", "sh echo new > c")
    mark = tmp_path / "ran"
    hook = repository.folder / ".git" / "hooks"
    hook.mkdir(exist_ok=True)
    for name in ("post-checkout", "pre-commit", "post-merge", "reference-transaction", "post-index-change"):
        (hook / name).write_text(f"#!/bin/sh\ntouch {mark}\n")
        (hook / name).chmod(0o755)
    run = f"touch {mark}; cat"
    for key in ("core.fsmonitor", "filter.x.clean", "filter.x.smudge", "merge.x.driver", "diff.external"):
        repository.git("config", key, run)
    (tree.folder / ".gitattributes").write_text("* filter=x merge=x\n")
    done = shell.run("worktrees", "merge", "one", "-m", "Add c")
    assert done.returncode == 0, done.stderr
    assert "removed one" in shell.run("worktrees", "clean").stdout
    assert not mark.exists()


def test_hooks_run_if_a_person_allows_them(shell: CommandLine, repository: Checkout, tmp_path: Path) -> None:
    worked(shell, "one", "sh echo new > c")
    hooks, mark = repository.folder / ".git" / "hooks", tmp_path / "ran"
    hooks.mkdir(exist_ok=True)
    for name in ("pre-commit", "post-merge"):
        (hooks / name).write_text(f"#!/bin/sh\necho {name} >> {mark}\n")
        (hooks / name).chmod(0o755)
    head = repository.commit("meanwhile", b="other\n")
    mark.unlink()
    refusing = hooks / "pre-merge-commit"
    refusing.write_text("#!/bin/sh\necho tests fail; exit 1\n")
    refusing.chmod(0o755)
    assert "tests fail" in refused(shell, "worktrees", "merge", "one", "-m", "Add c", "--hooks")
    assert (repository.git("rev-parse", "HEAD"), repository.git("status", "--porcelain")) == (head, "")
    refusing.unlink()
    done = shell.run("worktrees", "merge", "one", "--hooks", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["files"] == ["c"]
    assert mark.read_text() == "pre-commit\npost-merge\n"
    assert "removed one" in shell.run("worktrees", "clean").stdout
    worked(shell, "two", "sh echo theirs > a")
    head = repository.commit("ours", a="ours\n")
    assert "CONFLICT" in refused(shell, "worktrees", "merge", "two", "-m", "x", "--hooks")
    assert (repository.git("rev-parse", "HEAD"), repository.git("status", "--porcelain")) == (head, "")


def test_a_deleted_session_leaves_what_would_be_lost(shell: CommandLine, repository: Checkout) -> None:
    session, tree = worked(shell, "one", "sh echo new > c")
    done = shell.run("sessions", "delete", "-y", session)
    assert done.returncode == 0
    assert "its worktree one stays (1 file not committed)" in done.stderr
    assert tree.folder.exists()
    session, tree = worked(shell, "two", "say nothing")
    assert shell.run("sessions", "delete", "-y", session).stderr == ""
    assert not tree.folder.exists()
    session, tree = worked(shell, "three", "sh echo new > c")
    assert shell.run("sessions", "delete", "-y", "--discard", session).stderr == ""
    assert not tree.folder.exists()
    assert repository.git("branch", "--list", "dragoman/*").split() == ["+", "dragoman/one"]


@pytest.mark.parametrize("name", ["..", "a/b", "a\nb", "-x", "a b", "\u202ea", "x" * 60, ".", "a.lock"])
def test_bad_names_are_refused(shell: CommandLine, repository: Checkout, name: str) -> None:
    assert "is no name for a worktree" in refused(shell, "exec", "--worktree", f"--name={name}", "say x")
    assert listed(shell) == []


def test_a_name_or_branch_that_exists_is_refused(shell: CommandLine, repository: Checkout) -> None:
    worked(shell, "one", "say x")
    assert "There is a worktree one" in refused(shell, "exec", "--worktree", "--name", "one", "say x")
    repository.git("branch", "dragoman/two")
    assert "There is a branch dragoman/two" in refused(shell, "exec", "--worktree", "--name", "two", "say x")
    assert repository.git("branch", "--list", "dragoman/two")


def test_folders_that_cannot_have_a_worktree(shell: CommandLine, workspace: Path) -> None:
    there = Checkout(workspace)
    assert "is no git repository" in refused(shell, "exec", "--worktree", "say x")
    there.git("init", "-q", "-b", "main")
    assert "has no commit yet" in refused(shell, "exec", "--worktree", "say x")
    shutil.rmtree(workspace / ".git")
    there.git("init", "-q", "--bare")
    assert "is a bare repository" in refused(shell, "exec", "--worktree", "say x")


def test_submodules_and_lfs_are_refused(shell: CommandLine, repository: Checkout) -> None:
    repository.commit("lfs", **{".gitattributes": "*.bin filter=lfs diff=lfs\n"})
    assert "uses Git LFS" in refused(shell, "exec", "--worktree", "say x")
    repository.git("reset", "-q", "--hard", "HEAD^")
    head = repository.git("rev-parse", "HEAD")
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{head},sub")
    repository.git("commit", "-qm", "submodule")
    assert "has a submodule (sub)" in refused(shell, "exec", "--worktree", "say x")


def test_a_detached_head_begins_but_is_not_merged_into(shell: CommandLine, repository: Checkout) -> None:
    repository.git("checkout", "-q", "--detach")
    worked(shell, "one", "sh echo new > c")
    assert "head is detached" in refused(shell, "worktrees", "merge", "one", "-m", "x")
    repository.git("checkout", "-q", "main")
    assert shell.run("worktrees", "merge", "one", "-m", "x").returncode == 0
    repository.git("checkout", "-q", "-b", "other")
    worked(shell, "two", "sh echo new > d")
    repository.git("checkout", "-q", "main")
    assert "has main checked out, not other" in refused(shell, "worktrees", "merge", "two", "-m", "x")


def test_a_folder_that_was_deleted_by_hand_is_found(shell: CommandLine, repository: Checkout) -> None:
    _, tree = worked(shell, "one", "sh echo new > c")
    shutil.rmtree(tree.folder)
    assert [one["state"] for one in listed(shell)] == ["missing"]
    assert "is gone" in refused(shell, "worktrees", "merge", "one")
    assert "removed one" in shell.run("worktrees", "clean").stdout
    assert repository.git("branch", "--list", "dragoman/*") == ""


def test_what_a_crash_leaves_is_cleaned(shell: CommandLine, repository: Checkout) -> None:
    _, tree = worked(shell, "one", "say x")
    file = tree.folder.with_suffix(".json")
    file.write_text(file.read_text().replace('"stage":"ready"', '"stage":"removing"'))
    assert [one["state"] for one in listed(shell)] == ["unfinished"]
    assert "removed one" in shell.run("worktrees", "clean").stdout
    assert not tree.folder.exists()
    assert listed(shell) == []


def test_files_are_copied_and_setup_waits_for_approval(
    shell: CommandLine, repository: Checkout, workspace: Path, tmp_path: Path
) -> None:
    repository.commit("ignore", **{".gitignore": ".env\nout\n"})
    (workspace / ".env").write_text("A=1\n")
    (tmp_path / "secret").write_text("secret\n")
    (workspace / "out").symlink_to(tmp_path / "secret")
    shell.configure(worktrees={"copy": [".env", "out", "../secret"], "setup": ["echo done > ready"]})
    done = shell.run("exec", "--worktree", "--name", "one", "--approve", "all", "say x")
    assert done.returncode == 0, done.stderr
    assert "worktrees.setup are not run; --setup approves them" in done.stderr
    tree = Checkout(Path(listed(shell)[0]["folder"]))
    assert (tree.folder / ".env").read_text() == "A=1\n"
    assert not (tree.folder / "out").exists()
    assert not (tree.folder / "ready").exists()
    done = shell.run("exec", "--worktree", "--name", "two", "--setup", "say x")
    assert done.returncode == 0, done.stderr
    assert (tree.folder.parent / "two" / "ready").read_text() == "done\n"
    shell.configure(worktrees={"setup": ["echo broken; exit 3"]})
    told = refused(shell, "exec", "--worktree", "--name", "three", "--setup", "say x")
    assert "failed with exit code 3: broken" in told
    assert not (tree.folder.parent / "three").exists(), "what came to nothing is removed"


def test_a_workspace_that_is_not_trusted_names_no_files(
    shell: CommandLine, repository: Checkout, workspace: Path
) -> None:
    (workspace / ".dragoman").mkdir()
    (workspace / ".dragoman" / "config.toml").write_text('[worktrees]\ncopy = ["b.env"]\n')
    repository.commit("settings", **{".gitignore": "*.env\n"})
    (workspace / "b.env").write_text("x\n")
    _, tree = worked(shell, "one", "say x")
    assert not (tree.folder / "b.env").exists()
    assert (
        shell.run("config", "trust", "--yes").returncode == 0 or shell.run("config", "trust").returncode == 0
    )
    _, tree = worked(shell, "two", "say x")
    assert (tree.folder / "b.env").exists()


def test_every_session_gets_one_where_the_settings_say_so(shell: CommandLine, repository: Checkout) -> None:
    shell.configure(worktrees={"enabled": True})
    assert shell.run("exec", "say hello there").returncode == 0
    assert [one["name"] for one in listed(shell)] == ["say-hello-there"]
