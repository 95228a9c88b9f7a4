"""From a `cwd` to its project (G-152), and what a `cwd` must be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman.config.root import MARKERS
from dragoman.gateway.lifecycle.workspace import (
    check_cwd,
    check_cwd_exists,
    check_directories,
    workspace_root,
)
from dragoman.wire.errors import RpcError


@pytest.fixture
def deep(tmp_path: Path) -> Path:
    folder = tmp_path / "a" / "b" / "c"
    folder.mkdir(parents=True)
    return folder


def mark(folder: Path, marker: Path) -> None:
    (folder / marker).parent.mkdir(exist_ok=True)
    (folder / marker).touch()


class TestRoot:
    def test_without_any_mark_it_is_the_folder_itself(self, deep: Path) -> None:
        assert workspace_root(str(deep)) == str(deep)

    @pytest.mark.parametrize("kind", ["folder", "file"])
    def test_the_git_top_level(self, deep: Path, kind: str) -> None:
        git = deep.parent / ".git"
        git.mkdir() if kind == "folder" else git.write_text("gitdir: /elsewhere")  # as in a worktree
        assert workspace_root(str(deep)) == str(deep.parent)
        assert workspace_root(str(deep.parent)) == str(deep.parent)

    @pytest.mark.parametrize("marker", MARKERS)
    def test_else_the_nearest_marker(self, deep: Path, marker: Path) -> None:
        mark(deep.parent, marker)
        mark(deep.parent.parent, MARKERS[0])
        assert workspace_root(str(deep)) == str(deep.parent)

    def test_git_comes_before_a_nearer_marker(self, deep: Path) -> None:
        mark(deep, MARKERS[0])
        (deep.parent.parent / ".git").mkdir()
        assert workspace_root(str(deep)) == str(deep.parent.parent)

    def test_a_marker_that_is_a_folder_is_none(self, deep: Path) -> None:
        (deep / MARKERS[0]).mkdir(parents=True)
        assert workspace_root(str(deep / "x")) == str(deep / "x")

    def test_a_folder_that_does_not_exist_has_a_root_too(self, deep: Path) -> None:
        (deep / ".git").mkdir()
        assert workspace_root(str(deep / "gone" / "far")) == str(deep)


@pytest.mark.rule("G-052")
class TestCwd:
    @pytest.mark.parametrize("cwd", ["/", "/a b/ü", "/a/../b", "C:\\x", "c:/x"])
    def test_an_absolute_path_passes_as_it_is(self, cwd: str) -> None:
        assert check_cwd(cwd) == cwd

    @pytest.mark.parametrize(
        "cwd", [None, "", 5, [], {}, "a", "./a", "~/a", "..", "C:", "C:x", "\\x", "/a\0b"]
    )
    def test_anything_else_is_refused(self, cwd: Any) -> None:
        with pytest.raises(RpcError) as caught:
            check_cwd(cwd)
        assert caught.value.code == -32602
        assert caught.value.data["reason"] == "cwd"

    def test_it_must_be_a_folder_that_exists(self, tmp_path: Path) -> None:
        check_cwd_exists(str(tmp_path))
        (tmp_path / "file").touch()
        for missing in (tmp_path / "gone", tmp_path / "file"):
            with pytest.raises(RpcError, match="does not exist or is not a folder") as caught:
                check_cwd_exists(str(missing))
            assert caught.value.data == {"reason": "cwd", "cwd": str(missing)}


class TestAdditionalDirectories:
    def test_absent_or_null_is_none(self) -> None:
        assert check_directories(None) == check_directories([]) == []

    def test_absolute_paths_pass(self) -> None:
        assert check_directories(["/a", "C:\\b"]) == ["/a", "C:\\b"]

    @pytest.mark.parametrize("value", ["/a", {}, 1, [1], [None], ["a"], ["/a", ""], [["/a"]], ["/a\0"]])
    def test_anything_else_is_refused(self, value: Any) -> None:
        with pytest.raises(RpcError) as caught:
            check_directories(value)
        assert (caught.value.code, caught.value.data) == (-32602, {"reason": "additionalDirectories"})
