"""Net changes of a session and of a turn are those of a plain `git diff`, whatever made them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from dragoman.gateway.ports.checkpoints import CheckpointError
from support.checkpoints.project import OTHER, SESSION, Project

LONG = "".join(f"line {number}\n" for number in range(60))


def plain_diff(project: Project, before: Path) -> bytes:
    """`git diff` between the project now and a copy of it, made by a repository of its own."""
    repository = project.state / "plain"
    subprocess.run(["git", "init", "-q", str(repository)], check=True, capture_output=True)

    def git(*words: str, tree: Path) -> bytes:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(project.state),
            "GIT_DIR": str(repository / ".git"),
            "GIT_WORK_TREE": str(tree),
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        return subprocess.run(["git", *words], cwd=tree, env=env, capture_output=True, check=True).stdout

    trees = []
    for tree in (before, project.folder):
        git("add", "-A", tree=tree)
        trees.append(git("write-tree", tree=tree).decode().strip())
    return git("diff", "--binary", "--full-index", *trees, tree=project.folder)


def test_a_patch_is_that_of_git_to_the_byte(project: Project) -> None:
    project.write("edited", LONG)
    project.write("renamed", LONG.replace("line", "row"))
    project.write("crlf", "one\r\ntwo\r\n")
    project.write("no end", "one\ntwo")
    project.write("latin1", b"caf\xe9\n" * 5)
    project.write("binary", bytes(range(256)))
    project.write("mode", "#!/bin/sh\n")
    project.write("gone", "x\n")
    project.write("emptied", "x\n")
    project.write("to a link", "target")
    project.write("new\nline", "1\n")
    before = project.state / "before"
    shutil.copytree(project.folder, before, symlinks=True)
    project.record("begin")
    project.write("edited", LONG.replace("line 3\n", "").replace("line 50\n", "other\n"))
    (project.folder / "renamed").rename(project.folder / "moved")
    project.write("moved", LONG.replace("line", "row").replace("row 7\n", "row seven\n"))
    project.write("crlf", "one\r\nthree\r\n")
    project.write("no end", "one\ntwo\nthree")
    project.write("latin1", b"caf\xe9\n" * 4 + b"th\xe9\n")
    project.write("binary", bytes(range(255)) + b"\0\0")
    (project.folder / "mode").chmod(0o755)
    (project.folder / "gone").unlink()
    project.write("emptied", "")
    project.write("empty", "")
    (project.folder / "to a link").unlink()
    (project.folder / "to a link").symlink_to("target")
    project.write("new\nline", "2\n")
    project.record("end")
    assert project.engine.patch(SESSION) == plain_diff(project, before)
    changes = {change.path: change for change in project.changes().files}
    assert {path: change.status for path, change in changes.items()} == {
        "edited": "modified",
        "moved": "renamed",
        "crlf": "modified",
        "no end": "modified",
        "latin1": "modified",
        "binary": "modified",
        "mode": "modified",
        "gone": "deleted",
        "emptied": "modified",
        "empty": "added",
        "to a link": "type_changed",
        "new\nline": "modified",
    }
    assert [(hunk.old_start, hunk.new_start) for hunk in changes["edited"].hunks] == [(1, 1), (48, 47)]
    assert (changes["edited"].added, changes["edited"].removed) == (1, 2)
    assert changes["moved"].old_path == "renamed"
    assert changes["binary"].binary and not changes["binary"].hunks
    assert (changes["mode"].old_mode, changes["mode"].new_mode) == ("100644", "100755")
    assert changes["no end"].hunks[0].text.endswith("\\ No newline at end of file")


def test_text_cannot_be_hidden_as_binary(project: Project) -> None:
    project.write(".gitattributes", "* -diff binary\n")
    project.write("a", "1\n")
    project.record("begin")
    project.write("a", "2\n")
    project.record("end")
    (change,) = project.changes().files
    assert (change.binary, change.added, change.removed) == (False, 1, 1)


def test_a_turn_has_its_own_changes_and_the_session_all(project: Project) -> None:
    for turn in (1, 2):
        project.record("begin")
        project.write(f"f{turn}", "x")
        project.record("end")
    assert project.paths(1) == {"f1": "added"}
    assert project.paths(2) == {"f2": "added"}
    assert project.paths() == {"f1": "added", "f2": "added"}
    with pytest.raises(CheckpointError, match="turn 3"):
        project.paths(3)


def test_what_was_changed_and_changed_back_is_no_change(project: Project) -> None:
    project.write("a", "1")
    project.record("begin")
    project.write("a", "2")
    project.record("end")
    project.record("begin")
    project.write("a", "1")
    project.record("end")
    assert project.paths() == {}


def test_a_running_turn_shows_the_present(project: Project) -> None:
    project.record("begin")
    project.write("a", "1")
    assert project.changes().running
    assert project.paths() == {"a": "added"}
    project.write("b", "1")
    assert project.paths(1) == {"a": "added", "b": "added"}
    assert not list((project.state / "checkpoints").glob("*/refs/looks/*"))
    assert project.record("end").turn == 1


def test_changes_between_turns_are_shared(project: Project) -> None:
    project.record("begin")
    project.write("own", "1")
    project.write("both", "1")
    project.record("end")
    project.write("person", "1")
    project.write("both", "2")
    project.record("begin")
    project.record("end")
    shared = {change.path: change.shared for change in project.changes().files}
    assert shared == {"own": False, "both": True, "person": True}
    assert not any(change.shared for change in project.changes(1).files)


def test_changes_of_two_turns_at_once_are_shared(project: Project) -> None:
    project.record("begin")
    project.write("mine", "1")
    project.record("begin", OTHER)
    project.write("either", "1")
    project.record("end", OTHER)
    project.record("end")
    assert {c.path: c.shared for c in project.changes().files} == {"mine": False, "either": True}
    assert {c.path: c.shared for c in project.changes(session=OTHER).files} == {"either": True}


def test_turns_one_after_the_other_share_nothing(project: Project) -> None:
    for session in (SESSION, OTHER):
        project.record("begin", session)
        project.write(session, "1")
        project.record("end", session)
    for session in (SESSION, OTHER):
        assert [(c.path, c.shared) for c in project.changes(session=session).files] == [(session, False)]


def test_many_hunks_are_cut_and_say_so(project: Project) -> None:
    rows = [f"{number} {'x' * 200}\n" for number in range(20_000)]
    project.write("big", "".join(rows))
    project.record("begin")
    project.write("big", "".join(row.upper() if number % 20 == 0 else row for number, row in enumerate(rows)))
    project.record("end")
    (change,) = project.changes().files
    assert (change.added, change.removed, change.truncated) == (1000, 1000, True)
