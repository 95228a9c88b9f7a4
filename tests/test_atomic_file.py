"""A file is replaced whole, privately, or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dragoman.atomic_file import replace_file


def test_a_file_is_made_and_replaced_and_is_private(tmp_path: Path) -> None:
    file = tmp_path / "facts.json"
    for content in (b"one", b"two, longer", b""):
        replace_file(file, content)
        assert file.read_bytes() == content
        assert file.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["facts.json"]


def test_a_file_that_cannot_be_replaced_stays_and_leaves_no_draft(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    with pytest.raises(OSError):
        replace_file(folder, b"x")
    assert folder.is_dir()
    assert os.listdir(tmp_path) == ["a folder"]


def test_a_link_in_the_place_of_the_draft_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept")
    (tmp_path / f".facts.json.{os.getpid()}").symlink_to(victim)
    with pytest.raises(OSError):
        replace_file(tmp_path / "facts.json", b"x")
    assert victim.read_text() == "kept"
