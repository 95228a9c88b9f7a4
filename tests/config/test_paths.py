"""Where things lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.config.errors import ConfigError
from dragoman.config.paths import find_paths


def test_the_xdg_directories_are_used() -> None:
    names = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR")
    paths = find_paths({name: f"/{name}" for name in names})
    assert paths.config_file == Path("/XDG_CONFIG_HOME/dragoman/config.toml")
    assert paths.database == Path("/XDG_STATE_HOME/dragoman/dragoman.db")
    assert paths.audit_dir == Path("/XDG_STATE_HOME/dragoman/audit")
    assert paths.log_dir == Path("/XDG_STATE_HOME/dragoman/logs")
    assert paths.socket == Path("/XDG_RUNTIME_DIR/dragoman/dragoman.sock")
    assert paths.token_file == Path("/XDG_RUNTIME_DIR/dragoman/token")
    assert paths.cache_dir == Path("/XDG_CACHE_HOME/dragoman")


def test_without_them_the_home_directory_is_used_and_relative_ones_are_ignored() -> None:
    paths = find_paths(
        {"HOME": "/home/me", "XDG_CONFIG_HOME": "conf", "XDG_RUNTIME_DIR": "/r"}, platform="linux"
    )
    assert paths.config_file == Path("/home/me/.config/dragoman/config.toml")
    assert paths.state_dir == Path("/home/me/.local/state/dragoman")


def test_a_mac_keeps_state_in_its_library() -> None:
    paths = find_paths({"HOME": "/Users/me", "XDG_RUNTIME_DIR": "/r"}, platform="darwin")
    assert paths.config_file == Path("/Users/me/.config/dragoman/config.toml")
    assert paths.state_dir == Path("/Users/me/Library/Application Support/dragoman")
    assert paths.cache_dir == Path("/Users/me/Library/Caches/dragoman")


@pytest.mark.parametrize("value", ["/d", "~/d"])
def test_dragoman_home_moves_everything(value: str) -> None:
    paths = find_paths({"DRAGOMAN_HOME": value, "HOME": "/", "XDG_CONFIG_HOME": "/other"})
    assert paths.config_file == Path("/d/config.toml")
    assert paths.database == Path("/d/dragoman.db")
    assert paths.socket == Path("/d/run/dragoman.sock")
    assert paths.cache_dir == Path("/d/cache")


def test_directories_are_private_and_made_only_when_asked(tmp_path: Path) -> None:
    paths = find_paths({"DRAGOMAN_HOME": str(tmp_path / "a" / "b")})
    assert not paths.state_dir.exists()
    paths.ensure(paths.audit_dir)
    for directory in (tmp_path / "a", tmp_path / "a" / "b", paths.audit_dir):
        assert directory.stat().st_mode & 0o777 == 0o700
    paths.ensure(paths.audit_dir)


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    paths = find_paths({"DRAGOMAN_HOME": str(tmp_path / "file")})
    with pytest.raises(ConfigError, match=r"cannot make the directory .*/file: File exists"):
        paths.ensure(paths.audit_dir)
