"""A user's home for the configuration tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.agents.known import known_layer
from dragoman.config.load import Loaded, load
from dragoman.config.paths import Paths, find_paths
from dragoman.config.root import WORKSPACE_FILE

LoadWith = Callable[..., Loaded]


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return find_paths({"DRAGOMAN_HOME": str(tmp_path / "home")})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def load_with(paths: Paths, project: Path) -> LoadWith:
    """Load with these texts as the user's and the workspace's file."""

    def load_them(
        user: str = "", workspace: str = "", env: dict[str, str] | None = None, **rest: Any
    ) -> Loaded:
        if user:
            paths.ensure(paths.config_file.parent)
            paths.config_file.write_text(user)
        if workspace:
            (project / WORKSPACE_FILE).parent.mkdir(exist_ok=True)
            (project / WORKSPACE_FILE).write_text(workspace)
        return load(paths, known=known_layer(), workspace=project, environ=env or {}, **rest)

    return load_them
