"""A file is replaced whole, privately, or not at all."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
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


def test_threads_that_replace_the_same_file_never_publish_a_part(tmp_path: Path) -> None:
    file, sizes = tmp_path / "facts.json", (1, 300_000)
    replace_file(file, b"x")
    with ThreadPoolExecutor(4) as threads:
        writing = [threads.submit(replace_file, file, b"x" * sizes[number % 2]) for number in range(60)]
        while not all(each.done() for each in writing):
            assert file.stat().st_size in sizes
    assert all(each.result() is None for each in writing)
    assert os.listdir(tmp_path) == ["facts.json"]
