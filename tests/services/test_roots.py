from __future__ import annotations

import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from dragoman.services.roots import Roots
from dragoman.wire.errors import INVALID_PARAMS, NOT_FOUND, RpcError


def read(roots: Roots, path: object) -> bytes:
    with roots.place(str(path)) as place, os.fdopen(place.open(os.O_RDONLY), "rb") as file:
        return file.read()


def refusal(roots: Roots, path: object) -> RpcError:
    with pytest.raises(RpcError) as caught:
        read(roots, path)
    return caught.value


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    return outside / "secret"


def test_a_file_inside_a_root_is_reached(workspace: Path) -> None:
    (workspace / "a").mkdir()
    (workspace / "a" / "b").write_bytes(b"here")
    roots = Roots([str(workspace)])
    for path in ("a/b", "a/../a/b", "./a//b"):
        assert read(roots, f"{workspace}/{path}") == b"here"
    assert read(roots, f"/{workspace}/a/b") == b"here"


def test_every_root_counts(workspace: Path, secret: Path) -> None:
    assert read(Roots([str(workspace), str(secret.parent)]), secret) == b"secret"


def test_a_symlinked_root_serves_both_names(workspace: Path, tmp_path: Path) -> None:
    (workspace / "f").write_bytes(b"here")
    (tmp_path / "name").symlink_to(workspace)
    roots = Roots([str(tmp_path / "name")])
    assert read(roots, tmp_path / "name" / "f") == read(roots, workspace / "f") == b"here"


def test_a_symlink_that_stays_inside_is_followed(workspace: Path) -> None:
    (workspace / "real").mkdir()
    (workspace / "real" / "f").write_bytes(b"here")
    (workspace / "link").symlink_to("real")
    assert read(Roots([str(workspace)]), workspace / "link" / "f") == b"here"


@pytest.mark.parametrize(
    "path",
    ["../outside/secret", "folder/secret", "file", "deep/../../outside/secret", "folder/../outside/secret"],
)
def test_nothing_outside_is_reached(workspace: Path, secret: Path, path: str) -> None:
    (workspace / "folder").symlink_to(secret.parent)
    (workspace / "file").symlink_to(secret)
    (workspace / "deep").mkdir()
    error = refusal(Roots([str(workspace)]), f"{workspace}/{path}")
    assert error.code == INVALID_PARAMS
    assert error.data["reason"] == "path"
    assert "outside" in error.message


def test_a_folder_whose_name_begins_like_a_root_is_outside(workspace: Path) -> None:
    sibling = workspace.with_name(workspace.name + "-2")
    sibling.mkdir()
    (sibling / "f").write_bytes(b"")
    assert "outside" in refusal(Roots([str(workspace)]), sibling / "f").message


@pytest.mark.parametrize("path", ["f", "./f", "", "~/f", "C:\\f"])
def test_a_path_must_be_absolute(workspace: Path, path: str) -> None:
    error = refusal(Roots([str(workspace)]), path)
    assert (error.code, error.data["reason"]) == (INVALID_PARAMS, "path")


def test_a_root_named_in_another_systems_way_is_nowhere(
    monkeypatch: pytest.MonkeyPatch, secret: Path
) -> None:
    monkeypatch.chdir(secret.parent)
    assert "outside" in refusal(Roots(["C:\\work", "."]), secret).message


def test_a_nul_in_a_path_is_refused(workspace: Path) -> None:
    assert refusal(Roots([str(workspace)]), f"{workspace}/a\0b").code == INVALID_PARAMS


def test_a_missing_file_is_named_by_its_uri(workspace: Path) -> None:
    for path in (workspace / "not here", workspace / "no" / "folder"):
        error = refusal(Roots([str(workspace)]), path)
        assert (error.code, error.data) == (NOT_FOUND, {"uri": path.as_uri()})


def test_what_is_no_file_is_not_opened(workspace: Path) -> None:
    (workspace / "folder").mkdir()
    os.mkfifo(workspace / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(workspace / "socket"))
    (workspace / "loop").symlink_to("loop")
    for name, what in {
        "folder": "folder",
        "pipe": "pipe",
        "socket": "socket",
        "loop": "symlink",
        ".": "folder",
    }.items():
        error = refusal(Roots([str(workspace)]), f"{workspace}/{name}")
        assert (error.code, error.data["reason"]) == (INVALID_PARAMS, "path")
        assert what in error.message


def test_a_device_is_not_opened() -> None:
    assert "a device" in refusal(Roots(["/dev"]), "/dev/zero").message


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_in_the_workspace_is_not_opened(workspace: Path) -> None:
    try:
        os.mknod(workspace / "zero", stat.S_IFCHR | 0o600, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("not allowed in this container")
    assert "a device" in refusal(Roots([str(workspace)]), workspace / "zero").message


def test_a_folder_swapped_for_a_symlink_between_check_and_use_is_refused(
    workspace: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "folder").mkdir()
    (workspace / "folder" / "secret").write_bytes(b"mine")
    roots = Roots([str(workspace)])
    resolve = roots.resolve

    def swap_after_check(path: str) -> object:
        real = resolve(path)
        (workspace / "folder").rename(workspace / "moved")
        (workspace / "folder").symlink_to(secret.parent)
        return real

    monkeypatch.setattr(roots, "resolve", swap_after_check)
    assert refusal(roots, workspace / "folder" / "secret").code in (INVALID_PARAMS, NOT_FOUND)


def test_swapping_folders_for_symlinks_all_the_time_never_leads_outside(
    workspace: Path, secret: Path
) -> None:
    (workspace / "inside").mkdir()
    (workspace / "inside" / "secret").write_bytes(b"mine")
    (workspace / "a").symlink_to("inside")
    (workspace / "b").symlink_to(secret.parent)
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            os.replace(workspace / "a", workspace / "c")
            os.replace(workspace / "b", workspace / "a")
            os.replace(workspace / "c", workspace / "b")

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        roots = Roots([str(workspace)])
        for _ in range(2000):
            try:
                assert read(roots, workspace / "a" / "secret") == b"mine"
            except RpcError:
                pass
    finally:
        done.set()
        swapping.join()


def test_a_root_inside_a_root_cannot_be_swapped_for_a_symlink(workspace: Path, secret: Path) -> None:
    (workspace / "sub").mkdir()
    roots = Roots([str(workspace), str(workspace / "sub")])
    (workspace / "sub").rmdir()
    (workspace / "sub").symlink_to(secret.parent)
    assert "outside" in refusal(roots, workspace / "sub" / "secret").message


def test_folders_are_made_below_a_root_but_not_the_root(workspace: Path) -> None:
    with Roots([str(workspace)]).place(f"{workspace}/a/b/c", create_folders=True) as place:
        assert (place.name, (workspace / "a" / "b").is_dir()) == ("c", True)
    gone = Roots([str(workspace / "gone")])
    with pytest.raises(RpcError), gone.place(f"{workspace}/gone/f", create_folders=True):
        pass
    assert not (workspace / "gone").exists()
