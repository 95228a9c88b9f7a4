"""The shape of the source tree: folders stay small enough to be read as a list."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST_FILES = 16

FOLDERS = sorted(
    {file.parent for tree in ("src/dragoman", "tests/support") for file in (ROOT / tree).rglob("*.py")}
)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_a_folder_has_few_files(folder: Path) -> None:
    files = [file.name for file in folder.glob("*.py") if file.name != "__init__.py"]
    assert len(files) <= MOST_FILES, f"group the files of {folder.relative_to(ROOT)} by what changes together"
