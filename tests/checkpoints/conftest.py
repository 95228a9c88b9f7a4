"""A project that is recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.checkpoints.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    folder, state = tmp_path / "project", tmp_path / "state"
    folder.mkdir()
    state.mkdir()
    return Project(folder, state)
