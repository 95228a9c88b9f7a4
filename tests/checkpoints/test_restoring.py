"""Hunks, files, turns and sessions are undone on the files as they are now; nothing else is touched."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from dragoman.config.sections.checkpoints import CheckpointsConfig
from dragoman.gateway.ports.acts import NotRecorded
from dragoman.gateway.ports.checkpoints import CheckpointError, SharedChanges
from support.checkpoints.project import SESSION, Project

LONG = "".join(f"line {number}\n" for number in range(60))
EDITED = LONG.replace("line 3\n", "line three\n").replace("line 50\n", "")


def tree_of(folder: Path) -> dict[str, bytes | str]:
    return {
        str(path.relative_to(folder)): os.readlink(path) if path.is_symlink() else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


@pytest.fixture
def worked(project: Project) -> Project:
    """Two turns: the first edits `a`, makes `new/b`, removes `c`; the second edits `a` at another place."""
    project.write("a", LONG)
    project.write("c", "c\n")
    project.record("begin")
    project.write("a", EDITED)
    project.write("new/b", "b\n")
    (project.folder / "c").unlink()
    project.record("end")
    project.record("begin")
    project.write("a", EDITED + "end\n")
    project.record("end")
    return project


def test_a_hunk_is_undone(worked: Project) -> None:
    restored = worked.restore(turn=1, file="a", hunk=2)
    assert worked.read("a").decode() == EDITED.replace("line 51\n", "line 50\nline 51\n") + "end\n"
    assert restored.files == ["a"]


def test_it_is_recorded_before_files_change(worked: Project) -> None:
    seen: list[tuple[list[str], bytes]] = []

    @contextmanager
    def act(before: str, files: list[str]) -> Iterator[None]:
        seen.append((files, worked.read("a")))
        yield

    restored = worked.restore(turn=1, act=act)
    assert seen == [(["a", "c", "new/b"], (EDITED + "end\n").encode())]
    assert sorted(restored.files) == seen[0][0]


def test_what_cannot_be_recorded_is_not_restored(worked: Project) -> None:
    def act(before: str, files: list[str]) -> AbstractContextManager[None]:
        raise NotRecorded("The disk is full.")

    before = tree_of(worked.folder)
    with pytest.raises(CheckpointError, match="disk is full"):
        worked.restore(turn=1, act=act)
    assert tree_of(worked.folder) == before


def test_each_hunk_alone_adds_up_to_the_file(project: Project) -> None:
    project.write("a", LONG + "no end")
    project.record("begin")
    project.write("a", "first\n" + EDITED)
    project.record("end")
    for number in (3, 2, 1):
        project.restore(turn=1, file="a", hunk=number)
    assert project.read("a").decode() == LONG + "no end"


def test_a_file_is_undone_beside_later_changes(worked: Project) -> None:
    worked.restore(turn=1, file="a")
    assert worked.read("a").decode() == LONG + "end\n"
    assert (worked.folder / "new/b").exists()


def test_a_turn_is_undone_and_its_new_folder_goes(worked: Project) -> None:
    worked.restore(turn=1)
    assert tree_of(worked.folder) == {"a": (LONG + "end\n").encode(), "c": b"c\n"}
    assert not (worked.folder / "new").exists()


def test_a_session_is_undone(worked: Project) -> None:
    worked.restore()
    assert tree_of(worked.folder) == {"a": LONG.encode(), "c": b"c\n"}


def test_files_go_back_to_a_message(worked: Project) -> None:
    worked.restore(to=2)
    assert worked.read("a").decode() == EDITED
    assert (worked.folder / "new/b").exists()


def test_what_was_restored_can_be_brought_back(worked: Project) -> None:
    before = tree_of(worked.folder)
    worked.restore(to=1)
    assert tree_of(worked.folder) == {"a": LONG.encode(), "c": b"c\n"}
    worked.restore(undo=True)
    assert tree_of(worked.folder) == before
    with pytest.raises(CheckpointError, match="nothing to undo"):
        worked.restore(undo=True)


def test_undo_goes_back_one_by_one(worked: Project) -> None:
    states = [tree_of(worked.folder)]
    worked.restore(turn=2)
    states.append(tree_of(worked.folder))
    worked.restore(turn=1)
    worked.restore(undo=True)
    assert tree_of(worked.folder) == states[1]
    worked.restore(undo=True)
    assert tree_of(worked.folder) == states[0]


def test_a_rename_is_undone_by_its_new_name(project: Project) -> None:
    project.write("old", LONG)
    project.record("begin")
    (project.folder / "old").rename(project.folder / "new")
    project.record("end")
    project.restore(turn=1, file="new")
    assert tree_of(project.folder) == {"old": LONG.encode()}


def test_modes_links_and_binary_files_come_back(project: Project) -> None:
    project.write("run", "x").chmod(0o750)
    project.write("kept", "x").chmod(0o640)
    (project.folder / "link").symlink_to("/etc/passwd")
    project.write("binary", bytes(range(256)))
    project.record("begin")
    (project.folder / "run").chmod(0o640)
    project.write("kept", "y")
    (project.folder / "link").unlink()
    project.write("link", "now a file")
    project.write("binary", b"\0")
    project.record("end")
    project.restore(turn=1)
    assert (project.folder / "run").stat().st_mode & 0o777 == 0o750
    assert (project.folder / "kept").stat().st_mode & 0o777 == 0o640
    assert os.readlink(project.folder / "link") == "/etc/passwd"
    assert project.read("binary") == bytes(range(256))


def test_a_folder_in_the_place_of_a_file_gives_way(project: Project) -> None:
    project.write("x", "file")
    project.record("begin")
    (project.folder / "x").unlink()
    project.write("x/y/z", "1")
    project.record("end")
    project.restore(turn=1)
    assert tree_of(project.folder) == {"x": b"file"}
    project.restore(undo=True)
    assert tree_of(project.folder) == {"x/y/z": b"1"}


def test_later_changes_of_the_same_lines_stop_everything(worked: Project) -> None:
    worked.write("a", EDITED.replace("line three", "line drei"))
    before = tree_of(worked.folder)
    with pytest.raises(CheckpointError, match="Later changes of a are in the way"):
        worked.restore(turn=1, shared="include")
    assert tree_of(worked.folder) == before


def test_changes_of_others_are_asked_about(worked: Project) -> None:
    worked.write("person", "1")
    worked.write("new/b", "person's\n")
    with pytest.raises(SharedChanges) as caught:
        worked.restore(to=1)
    assert caught.value.paths == ["new/b", "person"]
    restored = worked.restore(to=1, shared="leave")
    assert restored.left == ["new/b", "person"]
    assert tree_of(worked.folder) == {
        "a": LONG.encode(),
        "c": b"c\n",
        "person": b"1",
        "new/b": b"person's\n",
    }
    worked.restore(to=1, shared="include")
    assert tree_of(worked.folder) == {"a": LONG.encode(), "c": b"c\n"}


def test_files_that_no_checkpoint_holds_are_never_touched(project: Project) -> None:
    small = Project(project.folder, project.state, CheckpointsConfig(max_file_bytes=100))
    small.write(".gitignore", "ignored\n")
    small.write("large", "x" * 101)
    small.record("begin")
    small.write("large", "small now")
    small.write("ignored", "1")
    small.write("dir/own", "1")
    small.record("end")
    small.write(".gitignore", "ignored\ndir/data\n")
    small.write("dir/data", "not recorded")
    restored = small.restore(to=1, shared="include")
    assert small.read("large") == b"small now"
    assert small.read("ignored") == b"1"
    assert small.read("dir/data") == b"not recorded"
    assert restored.left == ["large"]


def test_something_unrecorded_in_the_way_stops_everything(project: Project) -> None:
    project.write(".gitignore", "x/\n")
    project.write("x", "file")
    project.write("y", "1")
    project.record("begin")
    (project.folder / "x").unlink()
    project.write("y", "2")
    project.record("end")
    project.write("x/data", "not recorded")
    with pytest.raises(CheckpointError, match="x is not as it was recorded"):
        project.restore(turn=1)
    assert project.read("y") == b"2"


def test_a_link_put_in_the_place_of_a_folder_is_not_followed(project: Project, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    project.write("d/f", "1")
    project.write("other", "1")
    project.record("begin")
    (project.folder / "d" / "f").unlink()
    project.write("other", "2")
    project.record("end")
    (project.folder / "d").rmdir()
    (project.folder / "d").symlink_to(outside)
    with pytest.raises(CheckpointError, match="d/f is not as it was recorded"):
        project.restore(turn=1)
    assert project.read("other") == b"2"
    project.restore(to=1, shared="include")
    assert tree_of(project.folder) == {"d/f": b"1", "other": b"1"}
    assert list(outside.iterdir()) == []


def test_a_session_that_moved_is_refused(worked: Project, tmp_path: Path) -> None:
    from dragoman.gateway.ports.checkpoints import Wish

    with pytest.raises(CheckpointError, match="its checkpoints are of"):
        worked.engine.restore(SESSION, str(tmp_path), Wish(to=1), lambda restored: None)


def test_bad_wishes_name_what_is_wrong(worked: Project) -> None:
    for wish, said in (
        ({"to": 9}, "turn 9"),
        ({"turn": 9}, "turn 9"),
        ({"file": "nope"}, "nope did not change"),
        ({"file": "a", "hunk": 99}, "no hunk 99"),
        ({"file": "new/b", "hunk": 1}, "no hunks"),
        ({"hunk": 1}, "together with its file"),
    ):
        with pytest.raises(CheckpointError, match=said):
            worked.restore(**wish)


def test_a_turn_without_an_end_can_be_undone(project: Project) -> None:
    """Its process died, so what changed since may be anybody's."""
    project.write("a", "1")
    project.record("begin")
    project.write("a", "2")
    with pytest.raises(SharedChanges):
        project.restore(turn=1)
    project.restore(turn=1, shared="include")
    assert project.read("a") == b"1"
