"""Folders that are no projects, or not the same any more: a clear word, nothing recorded, nothing written."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from dragoman.gateway.ports.checkpoints import CheckpointError
from support.checkpoints.project import SESSION, Project


def refused(code: str, project: Project) -> None:
    """Nothing of it is recorded, shown as it is now, or restored."""
    for act in (
        lambda: project.record("begin"),
        lambda: project.restore(shared="include"),
        lambda: project.engine.touched(SESSION),
    ):
        with pytest.raises(CheckpointError) as error:
            act()
        assert error.value.code == code, error.value


def worked(project: Project) -> None:
    project.write("a", "1\n")
    project.record("begin")
    project.write("a", "2\n")
    project.write("b", "2\n")
    project.record("end")


@pytest.mark.parametrize("above", [False, True])
def test_a_project_replaced_by_a_symlink_is_neither_recorded_nor_written(tmp_path: Path, above: bool) -> None:
    folder, state, outside = tmp_path / "x" / "project", tmp_path / "state", tmp_path / "outside"
    for one in (folder, state, outside / "project"):
        one.mkdir(parents=True)
    project = Project(folder, state)
    worked(project)
    for place in (outside, outside / "project"):
        (place / "a").write_text("2\n")
        (place / "b").write_text("2\n")
    moved, target = (folder.parent, outside) if above else (folder, outside)
    moved.rename(tmp_path / "moved")
    moved.symlink_to(target)
    refused("other_folder", project)
    assert (outside / "project" / "a").read_text() == (outside / "a").read_text() == "2\n"
    assert (outside / "b").exists()
    assert project.paths() == {"a": "modified", "b": "added"}  # what was recorded can be seen


def test_a_folder_deleted_by_hand_is_named(project: Project) -> None:
    worked(project)
    shutil.rmtree(project.folder)
    for act in (project.restore, lambda: project.record("begin")):
        with pytest.raises(CheckpointError, match="does not exist any more"):
            act()
    assert project.paths() == {"a": "modified", "b": "added"}
    project.folder.write_text("a file")
    with pytest.raises(CheckpointError, match="does not exist any more"):
        project.restore()
    assert project.folder.read_text() == "a file"


def test_a_bare_repository_is_not_recorded(tmp_path: Path) -> None:
    bare, state = tmp_path / "bare", tmp_path / "state"
    state.mkdir()
    subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
    with pytest.raises(CheckpointError, match="is a bare repository") as error:
        Project(bare, state).record("begin")
    assert error.value.code == "bare_repository"


def test_a_detached_head_and_a_conflict_are_recorded_as_they_are(project: Project) -> None:
    project.git("init", "-q", "-b", "main")
    project.write("a", "1\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "1")
    project.git("checkout", "-q", "--detach")
    project.record("begin")
    (project.folder / ".git" / "MERGE_HEAD").write_text("0" * 40 + "\n")
    project.write("a", "<<<<<<< HEAD\n1\n=======\n2\n>>>>>>> other\n")
    project.record("end")
    assert project.paths() == {"a": "modified"}
    project.restore()
    assert project.read("a") == b"1\n"
    assert (project.folder / ".git" / "MERGE_HEAD").exists()


@pytest.mark.long
def test_two_hundred_thousand_files_are_too_many(project: Project) -> None:
    for number in range(200_000):
        if number % 1000 == 0:
            (project.folder / str(number)).mkdir()
        (project.folder / str(number // 1000 * 1000) / f"f{number}").touch()
    with pytest.raises(CheckpointError, match="more than 100000 files") as error:
        project.record("begin")
    assert error.value.code == "too_many_files"
