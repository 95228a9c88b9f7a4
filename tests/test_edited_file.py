"""Changes to files of other programs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dragoman.edited_file import Change, EditError, read_file


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text("other")
    with pytest.raises(EditError, match="changed meanwhile"):
        Change(file, b"old", b"new").apply()
    assert file.read_text() == "other" and len(list(tmp_path.iterdir())) == 1


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name, says in (("pipe", "not a file"), ("loop", "cannot read"), (".", "not a file")):
        with pytest.raises(EditError, match=says):
            read_file(tmp_path / name)
    assert read_file(tmp_path / "none") is None


def test_two_back_ups_in_one_second_have_two_names(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("1")
    assert Change(file, b"1", b"2").apply() != Change(file, b"2", b"3").apply()
    assert sorted(path.read_text() for path in tmp_path.iterdir()) == ["1", "2", "3"]


def test_a_diff_shows_the_changed_lines_with_their_numbers() -> None:
    old = [f"{number}\n" for number in range(1, 5001)]
    new = [*old[:2500], "added\n", *old[2500:]]
    shown = Change(Path("x"), "".join(old).encode(), "".join(new).encode()).diff().splitlines()
    assert shown[2] == "@@ -2498,6 +2498,7 @@" and "+added" in shown and len(shown) == 10
    assert Change(Path("x"), b"a\n", b"a\n").diff() == ""
    assert Change(Path("x"), None, b"a\n").diff() == "--- /dev/null\n+++ x\n@@ -0,0 +1,1 @@\n+a\n"
    assert Change(Path("x"), b"a\nb\n", b"a\nc\n").diff().splitlines()[3:] == [" a", "-b", "+c"]
