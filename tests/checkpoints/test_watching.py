"""A project that is watched: a checkpoint without a comparison holds what a comparison would find."""

from __future__ import annotations

import mmap
import os
import random
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dragoman.checkpoints.capture import Capture
from dragoman.checkpoints.engine import Engine
from dragoman.checkpoints.watching import known, project_watch
from dragoman.checkpoints.watching.inotify import Inotify
from dragoman.config.sections.checkpoints import CheckpointsConfig
from dragoman.gateway.ports.checkpoints import CheckpointError, Mark
from support.checkpoints.project import OTHER, SESSION, Project

EVENTS = 16_384
"""Default of `fs.inotify.max_queued_events`."""


@pytest.fixture
def watched(project: Project) -> Iterator[Project]:
    """A project with a few files whose state is known."""
    project.engine = Engine(project.state / "checkpoints", CheckpointsConfig(), watching=True)
    project.write(".gitignore", "*.o\nbuild/\n")
    project.write("a", "1111\n")
    project.write("folder/b", "2\n")
    project.write("folder/deep/c", "3\n")
    project.write("build/made", "4\n")
    (project.folder / "empty").mkdir()
    project.write("other/.git/HEAD", "ref: refs/heads/main\n")
    project.write("other/inside", "5\n")
    settle(project)
    yield project
    project.engine.stop()


def settle(project: Project) -> None:
    """Two turns without changes, after which the project is known."""
    for kind in ("begin", "end"):
        project.record(kind)
    assert unchanged(project)


def unchanged(project: Project, session: str = SESSION) -> bool:
    return project.engine.unchanged(session, str(project.folder), Mark("begin")) is not None


def compared(project: Project) -> str:
    """The tree that an engine records which knows nothing of the project."""
    other = Project(project.folder, project.state.with_name(f"state-{os.urandom(4).hex()}"))
    return other.record("begin").tree


def write_same_size_and_time(folder: Path) -> None:
    status = (folder / "a").stat()
    (folder / "a").write_text("9999\n")
    os.utime(folder / "a", ns=(status.st_atime_ns, status.st_mtime_ns))


def write_through_a_mapping(folder: Path) -> None:
    with (folder / "a").open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[0:1] = b"8"


def make_folder_later(folder: Path) -> None:
    (folder / "empty" / "new" / "newer").mkdir(parents=True)
    (folder / "empty" / "new" / "newer" / "file").write_text("new")


def link_for_file(folder: Path) -> None:
    (folder / "a").unlink()
    (folder / "a").symlink_to("folder/b")


def folder_for_file(folder: Path) -> None:
    (folder / "a").unlink()
    (folder / "a").mkdir()
    (folder / "a/inner").write_text("made")


def file_for_folder(folder: Path) -> None:
    shutil.rmtree(folder / "folder")
    (folder / "folder").write_text("made")


CHANGES: dict[str, Callable[[Path], object]] = {
    "write": lambda folder: (folder / "a").write_text("22\n"),
    "write in a folder": lambda folder: (folder / "folder/deep/c").write_text("33\n"),
    "the same size and time": write_same_size_and_time,
    "a mapping": write_through_a_mapping,
    "truncate": lambda folder: os.truncate(folder / "a", 2),
    "make executable": lambda folder: (folder / "a").chmod(0o755),
    "delete": lambda folder: (folder / "folder/b").unlink(),
    "delete the last of a folder": lambda folder: (folder / "folder/deep/c").unlink(),
    "delete a folder": lambda folder: shutil.rmtree(folder / "folder"),
    "rename": lambda folder: (folder / "a").rename(folder / "folder/a"),
    "replace": lambda folder: (folder / "folder/b").rename(folder / "a"),
    "new file": lambda folder: (folder / "new").write_text("new"),
    "new file in an empty folder": lambda folder: (folder / "empty/new").write_text("new"),
    "new ignored file": lambda folder: (folder / "new.o").write_text("new"),
    "new folders": make_folder_later,
    "rename a folder": lambda folder: (folder / "folder").rename(folder / "renamed"),
    "a link for a file": link_for_file,
    "a folder for a file": folder_for_file,
    "a file for a folder": file_for_folder,
    "other rules": lambda folder: (folder / ".gitignore").write_text("*.o\n"),
    "no rules": lambda folder: (folder / ".gitignore").unlink(),
    "a repository less": lambda folder: shutil.rmtree(folder / "other/.git"),
    "a repository more": lambda folder: (folder / "folder/.git").mkdir(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_change_is_noticed(watched: Project, change: Callable[[Path], object]) -> None:
    change(watched.folder)
    assert not unchanged(watched)
    assert watched.record("begin").tree == compared(watched)
    assert watched.record("end").tree == compared(watched)


def test_what_is_not_recorded_is_not_noticed(watched: Project) -> None:
    watched.write("build/made", "again")
    watched.write("build/more/made", "again")
    watched.write("other/.git/index", "x")
    assert unchanged(watched)


def test_a_checkpoint_without_changes_starts_no_process(watched: Project) -> None:
    assert watched.engine._program is not None
    watched.engine._program.path = "/nonexistent/git"
    points = [watched.record("begin"), watched.record("end")]
    assert [(point.kind, point.turn) for point in points] == [("begin", 2), ("end", 2)]
    with pytest.raises(CheckpointError, match="could not be started"):
        watched.record("before")  # before files are restored they are always compared


@pytest.mark.parametrize("packed", [False, True])
def test_a_few_changed_files_are_recorded_without_comparing_all(watched: Project, packed: bool) -> None:
    if packed:
        (store,) = watched.state.glob("checkpoints/*")
        subprocess.run(["git", "--git-dir", store, "repack", "-adq"], check=True)
    watched.write("a", "22\n")
    watched.write("folder/deep/c", "33\n").chmod(0o755)
    (watched.folder / "folder/b").unlink()
    temporary = watched.write("folder/temporary", "saved")
    temporary.rename(watched.folder / ".gitignore.new")
    (watched.folder / ".gitignore.new").unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Capture, "take", None)
        point = watched.record("begin")
    assert (point.turn, point.tree) == (2, compared(watched))
    assert watched.paths() == {"a": "modified", "folder/b": "deleted", "folder/deep/c": "modified"}
    assert unchanged(watched)


def test_a_recorded_file_that_grows_too_large_is_left_out(project: Project) -> None:
    project.engine = Engine(
        project.state / "checkpoints", CheckpointsConfig(max_file_bytes=10), watching=True
    )
    project.write("a", "1")
    settle(project)
    project.write("a", "x" * 11)
    assert [each.path for each in project.record("begin").left_out] == ["a"]
    project.write("a", "2")
    assert project.record("end").left_out == []
    project.engine.stop()


def test_turns_without_changes_can_be_read_by_another_engine(watched: Project) -> None:
    found = watched.engine.unchanged(SESSION, str(watched.folder), Mark("begin"))
    assert found is not None
    marks = [(Mark(kind, lambda: "hello"), 1e9) for _ in range(3) for kind in ("begin", "end")]
    watched.engine.append(SESSION, str(watched.folder), found, marks)
    watched.write("a", "2\n")
    watched.record("begin")
    points = Project(watched.folder, watched.state).engine.checkpoints(SESSION)
    assert [(point.kind, point.turn) for point in points[2:]] == [
        *[(kind, turn) for turn in (2, 3, 4) for kind in ("begin", "end")],
        ("begin", 5),
    ]
    assert points[2].time == "2001-09-09T01:46:40.000000Z"
    assert len({point.tree for point in points[:-1]}) == 1


def test_left_out_files_stay_named(project: Project) -> None:
    limits = CheckpointsConfig(max_file_bytes=10)
    project.engine = Engine(project.state / "checkpoints", limits, watching=True)
    project.write("large", "x" * 20)
    settle(project)
    assert [each.path for each in project.record("begin").left_out] == ["large"]
    project.engine.stop()


def test_more_events_than_the_kernel_keeps_are_a_change(watched: Project) -> None:
    descriptors = [os.open(watched.folder / name, os.O_WRONLY) for name in ("a", "folder/b")]
    for number in range(EVENTS // 2 + 100):
        for descriptor in descriptors:
            os.pwrite(descriptor, b"%d" % number, 0)
    watched.write("folder/later", "not in the queue any more")
    assert not unchanged(watched)
    assert watched.record("begin").tree == compared(watched)
    settle(watched)
    for descriptor in descriptors:
        os.close(descriptor)


def test_another_folder_in_the_place_of_one_above_is_noticed(project: Project, tmp_path: Path) -> None:
    above = tmp_path / "above"
    deep = above / "project"
    deep.mkdir(parents=True)
    project.folder = deep
    project.engine = Engine(project.state / "checkpoints", CheckpointsConfig(), watching=True)
    project.write("a", "1")
    settle(project)
    above.rename(tmp_path / "moved")
    deep.mkdir(parents=True)
    project.write("b", "2")
    assert not unchanged(project)
    assert project.record("begin").tree == compared(project)
    project.engine.stop()


def test_two_sessions_notice_each_others_changes(watched: Project) -> None:
    watched.record("begin", OTHER)
    watched.record("end", OTHER)
    assert unchanged(watched) and unchanged(watched, OTHER)
    watched.write("a", "by the other")
    watched.record("begin", OTHER)  # takes the events out of the queue
    assert unchanged(watched, OTHER) and not unchanged(watched)
    assert watched.record("begin").tree == compared(watched)


def test_a_new_session_begins_with_what_another_knows(watched: Project) -> None:
    assert watched.engine._program is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watched.engine._program, "path", "/nonexistent/git")
        points = [watched.record("begin", OTHER), watched.record("end", OTHER)]
    assert [(point.turn, point.tree) for point in points] == [(1, compared(watched))] * 2
    watched.engine.delete(SESSION)
    assert [point.kind for point in watched.engine.checkpoints(OTHER)] == ["begin", "end"]
    watched.write("a", "later")
    assert watched.record("begin", OTHER).tree == compared(watched)


def test_the_end_of_a_turn_compares_files_now_and_then(
    watched: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    os.link(watched.folder / "a", tmp_path / "outside")
    watched.record("begin")
    (tmp_path / "outside").write_text("through a link outside")
    monkeypatch.setattr("dragoman.checkpoints.watching.known.COMPARE_AFTER", 0.0)
    assert watched.record("end").tree == compared(watched)


def test_a_project_that_cannot_be_watched_is_compared(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_watch, "FOLDERS", 1)
    project.engine = Engine(project.state / "checkpoints", CheckpointsConfig(), watching=True)
    project.write("folder/a", "1")
    for _ in range(2):
        project.record("begin")
        project.write("folder/a", os.urandom(4).hex())
        assert project.record("end").tree == compared(project)
    assert not unchanged(project)


def test_a_network_disk_is_compared(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Inotify, "on_local_disk", lambda self, folder: False)
    project.engine = Engine(project.state / "checkpoints", CheckpointsConfig(), watching=True)
    for kind in ("begin", "end", "begin"):
        project.record(kind)
    assert not unchanged(project)


def test_only_a_few_projects_are_watched_at_once(
    tmp_path: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known, "PROJECTS", 1)
    engine = Engine(tmp_path / "checkpoints", CheckpointsConfig(), watching=True)
    projects = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        made = Project(folder, tmp_path)
        made.engine = engine
        for kind in ("begin", "end"):
            made.record(kind, f"dgm_{name}")
        projects.append(made)
    assert [unchanged(made, f"dgm_{made.folder.name}") for made in projects] == [False, True]
    engine.stop()


def test_writes_at_the_same_time_are_never_taken_for_none(watched: Project) -> None:
    """Checkpoints while another thread writes; each one that nothing followed holds exactly the files."""
    dice = random.Random(7)
    stop = threading.Event()

    def write() -> None:
        names = ["a", "folder/b", "folder/deep/c", "new", "folder/new"]
        while not stop.is_set():
            name = dice.choice(names)
            if dice.random() < 0.2:
                (watched.folder / name).unlink(missing_ok=True)
            else:
                watched.write(name, str(dice.random()))

    for _ in range(6):
        stop.clear()
        writer = threading.Thread(target=write)
        writer.start()
        try:
            for kind in ("begin", "end") * 2:
                watched.record(kind)
        finally:
            stop.set()
            writer.join()
        assert watched.record("begin").tree == compared(watched)


def test_a_locked_reference_is_named(watched: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.checkpoints.objects.commits.LOCK_PATIENCE", 0.0)
    (reference,) = watched.state.glob(f"checkpoints/*/refs/sessions/{SESSION}")
    reference.with_name(f"{SESSION}.lock").touch()
    with pytest.raises(CheckpointError, match="remove that file"):
        watched.record("begin")


def test_a_session_whose_checkpoints_another_process_deletes_is_recorded_anew(watched: Project) -> None:
    Project(watched.folder, watched.state).engine.delete(SESSION)
    (watched.state / "checkpoints").joinpath("x").mkdir(parents=True)
    with pytest.raises(CheckpointError, match="were deleted"):
        watched.record("begin")
    assert watched.record("begin").tree == compared(watched)
