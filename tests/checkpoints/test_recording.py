"""A project is recorded as it is, whatever is in it, and nothing in it is run."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from dragoman.checkpoints.git import find_git
from dragoman.checkpoints.repository import Repository, key_of
from dragoman.config.sections.checkpoints import CheckpointsConfig
from dragoman.gateway.ports.checkpoints import CheckpointError, LeftOut
from support.checkpoints.project import OTHER, SESSION, Project

ODD_NAMES = [
    b"line\nend",
    b"tab\there",
    b'quote"d',
    b"back\\slash",
    "rechts\u202elinks".encode(),
    b"bad\xff\xfeutf8",
    b" leading and trailing ",
    b"-rf",
    b":(top)*",
    b"*",
]


def in_tree(project: Project, checkpoint_tree: str) -> dict[bytes, bytes]:
    """Mode and content of every file in a recorded tree."""
    directory = project.state / "checkpoints" / key_of(str(project.folder))

    def git(*words: str) -> bytes:
        env = {"PATH": os.environ["PATH"], "GIT_DIR": str(directory)}
        return subprocess.run(["git", *words], env=env, capture_output=True, check=True).stdout

    rows = git("ls-tree", "-r", "-z", checkpoint_tree).split(b"\0")[:-1]
    found = {}
    for row in rows:
        head, _, path = row.partition(b"\t")
        mode, _, object_id = head.split()
        found[path] = mode + b" " + git("cat-file", "blob", object_id.decode())
    return found


def test_a_tree_is_recorded_to_the_byte(project: Project) -> None:
    project.write("a/b.txt", b"one\r\ntwo\n\r\xff no end")
    project.write("empty", b"")
    project.write("run.sh", b"#!/bin/sh\n").chmod(0o755)
    (project.folder / "link").symlink_to("/etc/passwd")
    found = in_tree(project, project.record("begin").tree)
    assert found == {
        b"a/b.txt": b"100644 one\r\ntwo\n\r\xff no end",
        b"empty": b"100644 ",
        b"run.sh": b"100755 #!/bin/sh\n",
        b"link": b"120000 /etc/passwd",
    }


@pytest.mark.parametrize("name", ODD_NAMES, ids=repr)
def test_any_name_can_be_recorded_changed_and_removed(project: Project, name: bytes) -> None:
    path = project.write(b"folder/" + name, "1\n")
    first = project.record("begin")
    assert in_tree(project, first.tree) == {b"folder/" + name: b"100644 1\n"}
    path.write_bytes(b"2\n")
    assert in_tree(project, project.record("end").tree) == {b"folder/" + name: b"100644 2\n"}
    (change,) = project.changes().files
    assert change.path == (b"folder/" + name).decode(errors="backslashreplace")
    path.unlink()
    project.record("begin")
    assert in_tree(project, project.record("end").tree) == {}


def test_the_same_size_and_time_do_not_hide_a_change(project: Project) -> None:
    path = project.write("a", "1111")
    status = path.stat()
    before = project.record("begin")
    path.write_bytes(b"2222")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert project.record("end").tree != before.tree


def test_files_and_folders_may_take_each_others_place(project: Project) -> None:
    project.write("a", "file")
    project.write("b/c", "in a folder")
    project.record("begin")
    (project.folder / "a").unlink()
    project.write("a/inner", "1")
    shutil.rmtree(project.folder / "b")
    (project.folder / "b").symlink_to("a")
    found = in_tree(project, project.record("end").tree)
    assert found == {b"a/inner": b"100644 1", b"b": b"120000 a"}


def test_a_folder_replaced_by_a_link_to_its_twin_is_a_link(project: Project, tmp_path: Path) -> None:
    """Device, inode and times of the files behind the link are those that the index has."""
    project.write("d/f", "inside")
    project.record("begin")
    (project.folder / "d").rename(tmp_path / "moved")
    (project.folder / "d").symlink_to(tmp_path / "moved")
    assert in_tree(project, project.record("end").tree) == {
        b"d": b"120000 " + os.fsencode(tmp_path / "moved")
    }


def test_ignored_files_are_not_recorded(project: Project) -> None:
    project.write(".gitignore", "*.o\nbuild/\n")
    project.write("a.o", "object")
    project.write("build/x", "made")
    project.write("a.c", "source")
    assert set(in_tree(project, project.record("begin").tree)) == {b".gitignore", b"a.c"}


def test_a_recorded_file_stays_recorded_when_it_is_ignored_later(project: Project) -> None:
    project.write("a.c", "1")
    project.record("begin")
    project.write(".gitignore", "*\n")
    project.write("a.c", "2")
    assert in_tree(project, project.record("end").tree)[b"a.c"] == b"100644 2"


def test_the_project_repository_is_neither_needed_nor_touched(project: Project) -> None:
    project.git("init", "-q")
    project.write("a", "1")
    project.git("add", "a")
    project.git("commit", "-qm", "first")
    project.write("a", "2")

    def state() -> dict[str, tuple[int, bytes]]:
        files = (each for each in (project.folder / ".git").rglob("*") if each.is_file())
        return {str(each): (each.stat().st_mtime_ns, each.read_bytes()) for each in files}

    before = state()
    assert set(in_tree(project, project.record("begin").tree)) == {b"a"}
    assert state() == before


def test_nothing_that_a_project_names_is_run(project: Project, tmp_path: Path) -> None:
    """Filters, fsmonitor, hooks, text conversion and external diffs, in the project and in one inside it."""
    trap, sprung = tmp_path / "trap.sh", tmp_path / "sprung"
    trap.write_text(f"#!/bin/sh\necho $0 $@ >> {sprung}\ncat\n")
    trap.chmod(0o755)
    for folder in (project.folder, project.folder / "inner"):
        folder.mkdir(exist_ok=True)
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True, capture_output=True)
        with (folder / ".git" / "config").open("a") as config:
            config.write(
                f'[core]\n\tfsmonitor = {trap}\n\tpager = {trap}\n[filter "x"]\n\tclean = {trap}\n\tsmudge = {trap}\n'
                f'\tprocess = {trap}\n\trequired = true\n[diff "x"]\n\ttextconv = {trap}\n\tcommand = {trap}\n'
                f"[diff]\n\texternal = {trap}\n[alias]\n\tls-files = !{trap}\n"
            )
        for hook in ("post-index-change", "pre-commit", "reference-transaction", "fsmonitor-watchman"):
            shutil.copy(trap, folder / ".git" / "hooks" / hook)
    project.write(
        ".gitattributes", "* filter=x diff=x text=auto eol=crlf ident working-tree-encoding=UTF-16\n"
    )
    project.write("a", b"$Id$ one\r\ntwo\n")
    project.record("begin")
    project.write("a", b"$Id$ one\r\nthree\n")
    assert in_tree(project, project.record("end").tree)[b"a"] == b"100644 $Id$ one\r\nthree\n"
    (change,) = project.changes().files
    assert "+three" in change.hunks[0].text
    assert project.engine.patch(SESSION)
    project.restore(turn=1)
    assert project.read("a") == b"$Id$ one\r\ntwo\n"
    assert not sprung.exists(), sprung.read_text()


def test_the_environment_does_not_reach_git(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("a", "1")
    for name, value in {
        "GIT_DIR": "/nonexistent",
        "GIT_INDEX_FILE": "/nonexistent",
        "GIT_EXTERNAL_DIFF": "/bin/false",
        "GIT_OBJECT_DIRECTORY": "/nonexistent",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.hooksPath",
        "GIT_CONFIG_VALUE_0": "/tmp",
    }.items():
        monkeypatch.setenv(name, value)
    project.record("begin")
    project.write("a", "2")
    project.record("end")
    assert project.paths() == {"a": "modified"}


def test_repositories_inside_are_named_as_left_out(project: Project) -> None:
    project.write("a", "1")
    inner = project.folder / "inner"
    inner.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=inner, check=True, capture_output=True)
    project.write("inner/x", "1")
    checkpoint = project.record("begin")
    assert set(in_tree(project, checkpoint.tree)) == {b"a"}
    assert checkpoint.left_out == [LeftOut("inner/", "repository")]


def test_a_huge_file_is_left_out_and_never_read(project: Project) -> None:
    with (project.folder / "disk.img").open("wb") as file:
        file.truncate(2 << 30)
    checkpoint = project.record("begin")
    assert checkpoint.left_out == [LeftOut("disk.img", "too_large", 2 << 30)]


def test_a_file_that_grows_too_large_is_not_shown_as_deleted(project: Project) -> None:
    small = Project(project.folder, project.state, CheckpointsConfig(max_file_bytes=10))
    small.write("a", "1")
    small.record("begin")
    small.write("a", "1" * 11)
    small.record("end")
    changes = small.changes()
    assert changes.files == []
    assert changes.left_out == [LeftOut("a", "too_large", 11)]


def test_too_many_files_are_refused_at_once_the_second_time(project: Project) -> None:
    bounded = Project(project.folder, project.state, CheckpointsConfig(max_files=3))
    for number in range(4):
        bounded.write(f"f{number}", "x")
    for _ in range(2):
        with pytest.raises(CheckpointError, match="more than 3 files"):
            bounded.record("begin")


def test_files_beyond_the_limit_are_refused_later_too(project: Project) -> None:
    bounded = Project(project.folder, project.state, CheckpointsConfig(max_files=3))
    for number in range(3):
        bounded.write(f"f{number}", "x")
    bounded.record("begin")
    bounded.write("f4", "x")
    with pytest.raises(CheckpointError, match="more than 3 files"):
        bounded.record("end")


def test_too_much_content_is_refused(project: Project) -> None:
    bounded = Project(project.folder, project.state, CheckpointsConfig(max_bytes=100))
    bounded.write("a", "x" * 60)
    bounded.write("b", "x" * 60)
    with pytest.raises(CheckpointError, match="more than 100 bytes"):
        bounded.record("begin")


def test_what_is_no_file_is_ignored(project: Project) -> None:
    os.mkfifo(project.folder / "pipe")
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(project.folder / "socket"))
    project.write("a", "1")
    assert set(in_tree(project, project.record("begin").tree)) == {b"a"}


def test_a_file_replaced_by_a_pipe_is_not_waited_for(project: Project) -> None:
    path = project.write("a", "1")
    project.record("begin")
    path.unlink()
    os.mkfifo(path)
    assert in_tree(project, project.record("end").tree) == {}


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_left_out(project: Project) -> None:
    project.write("a", "1").chmod(0)
    project.write("b", "1")
    assert project.record("begin").left_out == [LeftOut("a", "unreadable")]


def test_an_empty_folder_can_be_recorded(project: Project) -> None:
    project.record("begin")
    assert project.record("end").tree == project.record("begin").tree
    assert project.changes().files == []


def test_a_folder_that_is_gone_is_named(project: Project) -> None:
    project.record("begin")
    project.folder.rmdir()
    with pytest.raises(CheckpointError, match="does not exist any more"):
        project.record("end")


def test_our_own_state_folder_is_not_recorded(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    state = folder / "odd [state]!"
    state.mkdir(parents=True)
    project = Project(folder, state)
    project.write("a", "1")
    project.write(".gitignore", "!*\n!*/\n")
    assert set(in_tree(project, project.record("begin").tree)) == {b"a", b".gitignore"}
    project.record("end")
    assert project.paths() == {}


def test_the_root_and_the_home_folder_are_no_projects(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(project.folder))
    with pytest.raises(CheckpointError, match="is no project"):
        project.record("begin")


def test_without_git_it_is_said_what_to_install(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(project.folder))
    without = Project(project.folder, project.state)
    with pytest.raises(CheckpointError, match="install git"):
        without.record("begin")
    assert without.engine.trouble is not None


def test_a_damaged_index_costs_time_but_no_checkpoint(project: Project) -> None:
    project.write("a", "1")
    project.record("begin")
    folder = project.state / "checkpoints" / key_of(str(project.folder)) / "indexes"
    (index,) = folder.iterdir()
    index.write_bytes(b"DIRC garbage" * 10)
    project.write("b", "1")
    assert set(in_tree(project, project.record("end").tree)) == {b"a", b"b"}


def test_an_index_whose_objects_are_gone_is_not_believed(project: Project) -> None:
    project.write("a", "1")
    project.record("begin", OTHER)
    directory = project.state / "checkpoints" / key_of(str(project.folder))
    (index,) = (directory / "indexes").iterdir()
    index.rename(index.with_name(f"{SESSION}.{'1' * 40}"))
    assert in_tree(project, project.record("begin").tree) == {b"a": b"100644 1"}


def test_a_second_session_does_not_read_what_the_first_has_recorded(project: Project) -> None:
    project.write("a", "1")
    first = project.record("begin")
    assert project.record("begin", OTHER).tree == first.tree
    directory = project.state / "checkpoints" / key_of(str(project.folder)) / "indexes"
    assert len(list(directory.iterdir())) == 2


def test_a_project_that_was_prepared_is_not_read_again(project: Project) -> None:
    project.write("a", "1")
    project.engine.prepare(SESSION, str(project.folder))
    directory = project.state / "checkpoints" / key_of(str(project.folder))
    packed = {each for each in (directory / "objects").rglob("*") if each.is_file()}
    with pytest.raises(CheckpointError, match="no checkpoints"):
        project.changes()
    first = project.record("begin")
    assert in_tree(project, first.tree) == {b"a": b"100644 1"}
    added = {each for each in (directory / "objects").rglob("*") if each.is_file()} - packed
    assert len(added) == 1, "only the commit is new"


def test_turns_are_numbered(project: Project) -> None:
    kinds = [project.record(kind).turn for kind in ("begin", "end", "begin", "end")]
    assert kinds == [1, 1, 2, 2]
    assert [each.kind for each in project.engine.checkpoints(SESSION)] == ["begin", "end", "begin", "end"]


def test_deleting_the_last_session_of_a_project_removes_everything(project: Project) -> None:
    project.write("a", "1")
    project.record("begin")
    project.record("begin", OTHER)
    project.engine.delete(SESSION)
    with pytest.raises(CheckpointError, match="no checkpoints"):
        project.changes()
    project.record("end", OTHER)
    assert project.paths(session=OTHER) == {}
    project.engine.delete(OTHER)
    assert list((project.state / "checkpoints").iterdir()) == []


def test_a_project_can_be_recorded_while_its_last_session_is_deleted(project: Project) -> None:
    project.write("a", "1")
    stop = threading.Event()

    def come_and_go() -> None:
        while not stop.is_set():
            project.record("begin")
            project.engine.delete(SESSION)

    other = threading.Thread(target=come_and_go)
    other.start()
    try:
        for number in range(20):
            session = f"dgm_{number}"
            project.record("begin", session)
            project.record("end", session)
            assert project.paths(session=session) == {}
            project.engine.delete(session)
    finally:
        stop.set()
        other.join()


def test_the_directory_is_whole_wherever_its_making_is_crossed_by_a_removal(project: Project) -> None:
    """Removed as by the deletion of the last session, before each line that looks for the directory or makes it."""
    program = find_git()
    assert program is not None
    repository = Repository(program, project.state / "checkpoints" / "k")
    (project.state / "checkpoints").mkdir(parents=True)
    repository.create(str(project.folder))

    def remove() -> None:
        if repository.directory.exists():
            repository.directory.rename(project.state / f"removed-{os.urandom(4).hex()}")

    for line in range(1000):
        with _before_line(line, repository.create, remove) as done, repository.writing(str(project.folder)):
            repository.git.run("for-each-ref")
            assert repository.root == str(project.folder)
        if not done:
            break
    assert 10 < line < 1000


@contextmanager
def _before_line(number: int, first: Callable[..., None], act: Callable[[], None]) -> Iterator[list[bool]]:
    """Call `act` before one of the lines of a method and of what it calls in its file; yields whether that was done."""
    file, name = first.__code__.co_filename, first.__code__.co_name
    seen, depth = 0, 0
    done: list[bool] = []

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        nonlocal seen, depth
        if frame.f_code.co_filename != file or (depth == 0 and frame.f_code.co_name != name):
            return None
        depth += (event == "call") - (event == "return")
        if event == "line":
            if seen == number and not done:
                done.append(True)
                act()
            seen += 1
        return trace

    sys.settrace(trace)
    try:
        yield done
    finally:
        sys.settrace(None)


def test_deleting_a_session_frees_what_only_it_had(project: Project) -> None:
    project.record("begin", OTHER)
    secret = project.write("a", os.urandom(1 << 20))
    project.record("begin")
    secret.unlink()
    directory = project.state / "checkpoints" / key_of(str(project.folder))

    def size() -> int:
        return sum(each.stat().st_size for each in directory.rglob("*") if each.is_file())

    assert size() > 1 << 20
    project.engine.delete(SESSION)
    assert size() < 1 << 19
