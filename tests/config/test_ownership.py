"""Only the user's own folders are used."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.config.errors import ConfigError
from dragoman.config.load import load
from dragoman.config.paths import Paths, find_paths
from dragoman.config.workspace import Trust

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
NOBODY = 65534


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "mine"
    folder.mkdir()
    yield folder


def paths_in(home: Path) -> Paths:
    return find_paths({"DRAGOMAN_HOME": str(home)})


def refused(paths: Paths) -> str:
    """Why neither settings are read there nor anything is kept."""
    with pytest.raises(ConfigError) as loading:
        load(paths, environ={})
    with pytest.raises(ConfigError):
        paths.ensure(paths.state_dir)
    with pytest.raises(ConfigError):
        Trust(paths).grant(Path("/x/.dragoman/config.toml"), b"")
    return str(loading.value)


@pytest.mark.parametrize("mode", [0o777, 0o707, 0o1777])
def test_a_folder_that_others_write_to_is_refused(home: Path, mode: int) -> None:
    home.chmod(mode)
    why = refused(paths_in(home))
    assert why.startswith(f"{home} can be written to by other users (mode {mode:04o})")
    assert f"chmod go-w {home}" in why
    assert "DRAGOMAN_HOME" in why


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o700, 0o711])
def test_a_folder_that_others_may_read_is_used(home: Path, mode: int) -> None:
    home.chmod(mode)
    load(paths_in(home), environ={})
    assert paths_in(home).ensure(home / "run").stat().st_mode & 0o777 == 0o700


def test_a_sticky_parent_is_fine(tmp_path: Path, home: Path) -> None:
    tmp_path.chmod(0o1777)
    load(paths_in(home), environ={})


@pytest.mark.parametrize("below", ["run", "cache"])
def test_the_folders_below_count_too(home: Path, below: str) -> None:
    (home / below).mkdir()
    (home / below).chmod(0o777)
    assert str(home / below) in refused(paths_in(home))


@pytest.mark.parametrize("name", ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"])
def test_the_standard_folders_count_too(tmp_path: Path, name: str) -> None:
    theirs = tmp_path / "theirs" / "dragoman"
    theirs.mkdir(parents=True)
    theirs.chmod(0o777)
    paths = find_paths({"HOME": str(tmp_path), name: str(theirs.parent)})
    assert str(theirs) in refused(paths)


@AS_ROOT
@pytest.mark.parametrize("mode", [0o777, 0o700, 0o755])
def test_a_folder_of_another_user_is_refused(home: Path, mode: int) -> None:
    home.chmod(mode)
    os.chown(home, NOBODY, NOBODY)
    why = refused(paths_in(home))
    assert why.startswith(f"{home} belongs to another user (uid {NOBODY})")
    assert "set DRAGOMAN_HOME to a folder of your own" in why


@AS_ROOT
def test_a_group_of_others_may_not_write(home: Path) -> None:
    os.chown(home, -1, NOBODY)
    home.chmod(0o770)
    assert "mode 0770" in refused(paths_in(home))


def test_a_link_to_a_folder_of_ones_own_is_fine(tmp_path: Path, home: Path) -> None:
    (tmp_path / "link").symlink_to(home)
    load(paths_in(tmp_path / "link"), environ={})


def test_a_link_to_a_folder_of_others_is_refused(tmp_path: Path, home: Path) -> None:
    home.chmod(0o777)
    (tmp_path / "link").symlink_to(home)
    assert "can be written to" in refused(paths_in(tmp_path / "link"))


@AS_ROOT
def test_a_link_of_another_user_is_refused(tmp_path: Path, home: Path) -> None:
    """It may lead elsewhere a moment later."""
    (tmp_path / "link").symlink_to(home)
    os.chown(tmp_path / "link", NOBODY, NOBODY, follow_symlinks=False)
    assert "is a link of another user" in refused(paths_in(tmp_path / "link"))


def test_a_home_that_does_not_exist_is_made(tmp_path: Path) -> None:
    paths = paths_in(tmp_path / "new" / "home")
    load(paths, environ={})
    assert not (tmp_path / "new").exists(), "looking makes nothing"
    assert paths.ensure(paths.state_dir).stat().st_mode & 0o777 == 0o700
