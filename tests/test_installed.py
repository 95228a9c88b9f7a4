"""Where the program is, and the PATH that is written down for editors and services."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dragoman.installed import NotInstalled, program, search_path


def make_program(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / "dragoman"
    made.write_text("#!/bin/sh\n")
    made.chmod(0o755)
    return made


def test_folders_that_will_be_gone_or_are_unsafe_are_left_out(tmp_path: Path) -> None:
    names = ("bin", "open", "tmp/x", "app/node_modules/.bin", "venv/bin")
    folders = {name: tmp_path / name for name in names}
    for folder in folders.values():
        folder.mkdir(parents=True)
    folders["open"].chmod(0o777)
    (tmp_path / "file").touch()
    given = [*map(str, folders.values()), "relative", "", "/gone", str(tmp_path / "file"), "/bin", "/bin"]
    own = {"VIRTUAL_ENV": str(tmp_path / "venv"), "TMPDIR": str(tmp_path / "tmp")}
    found = search_path({"PATH": ":".join(given), **own})
    assert found.folders[:2] == (str(folders["bin"]), "/bin")
    assert set(found.folders[2:]) <= {"/usr/local/bin", "/usr/bin"}
    assert dict(found.left_out) == {
        str(folders["open"]): "every user may write to it",
        str(folders["tmp/x"]): "temporary",
        str(folders["app/node_modules/.bin"]): "of one project",
        str(folders["venv/bin"]): "an activated environment",
        "relative": "not absolute",
        "": "not absolute",
        "/gone": "does not exist",
        str(tmp_path / "file"): "not a folder",
    }


def test_the_program_is_the_link_by_which_it_was_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = make_program(tmp_path / "tools" / "1.0")
    link = tmp_path / "bin" / "dragoman"
    link.parent.mkdir()
    link.symlink_to(real)
    monkeypatch.setattr(sys, "argv", [str(link)])
    assert program({}) == link


def test_a_program_that_cannot_last_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(sys, "argv", ["-c"])
    with pytest.raises(NotInstalled, match="--program"):
        program({"PATH": str(tmp_path)})
    monkeypatch.setattr(sys, "argv", [str(make_program(tmp_path / "archive-v0" / "x"))])
    with pytest.raises(NotInstalled, match="uv tool install"):
        program({})
