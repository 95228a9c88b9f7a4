"""Which files turns of a session changed, and which of them others changed too."""

from __future__ import annotations

from support.checkpoints.project import OTHER, SESSION, Project


def test_only_what_turns_changed_is_the_sessions(project: Project) -> None:
    project.write("a", "0\n")
    project.record("begin")
    project.write("a", "1\n")
    project.write("gone", "1\n")
    project.record("end")
    project.write("by hand", "1\n")
    project.write("a", "2\n")
    project.record("begin")
    (project.folder / "gone").unlink()
    project.write("b", "1\n")
    project.record("end")
    found = project.engine.touched(SESSION)
    assert (found.paths, found.shared) == ({b"a", b"b", b"gone"}, {b"a"})
    assert project.engine.touched(SESSION, 2).paths == {b"b", b"gone"}
    project.write("b", "by hand\n")
    assert project.engine.touched(SESSION).shared == {b"a", b"b"}


def test_two_sessions_in_one_folder_share_what_both_changed(project: Project) -> None:
    for session in (SESSION, OTHER):
        project.record("begin", session)
    project.write("mine", "1\n")
    project.record("end")
    project.write("both", "1\n")
    project.record("begin")
    project.write("both", "2\n")
    project.record("end")
    project.record("end", OTHER)
    for session in (SESSION, OTHER):
        assert project.engine.touched(session).shared >= {b"both"}
    later = project.engine.touched(SESSION, 2)
    assert (later.paths, later.shared) == ({b"both"}, {b"both"})


def test_a_turn_that_runs_has_changed_what_is_there_now(project: Project) -> None:
    project.record("begin")
    project.write("a", "1\n")
    found = project.engine.touched(SESSION)
    assert (found.paths, found.shared, found.folder) == ({b"a"}, set(), str(project.folder))
