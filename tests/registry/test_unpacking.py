"""Archives: what is unpacked, and what is refused whole."""

from __future__ import annotations

import os
import stat
import tarfile
import tempfile
from pathlib import Path

import pytest

from dragoman.registry.archive_names import BadArchive
from dragoman.registry.unpacking import Limits, unpack
from support.registry.archives import (
    SCRIPT,
    put,
    special,
    tar,
    tar_with_huge_header,
    zip_with_many_entries,
    zipped,
)


def unpacked(
    content: bytes, name: str, folder: Path, program: str = "./agent", limits: Limits | None = None
) -> Path:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        return unpack(file, name, folder, program, limits)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *((f"a.tar.{kind}", tar(kind)) for kind in ("gz", "xz", "bz2")),
        ("a.tgz", tar("gz")),
        ("a.TAR", tar("")),
        ("a.zip", zipped()),
        ("download", tar("xz")),
        ("agent-linux-x64", SCRIPT),
    ],
)
def test_every_kind_of_archive_becomes_a_program(tmp_path: Path, name: str, content: bytes) -> None:
    program = unpacked(content, name, tmp_path)
    assert program == tmp_path / "agent" and program.read_bytes() == SCRIPT
    assert stat.S_IMODE(program.stat().st_mode) & 0o7111 == 0o111
    assert os.listdir(tmp_path) == ["agent"], "nothing is left beside it"


def test_folders_and_files_keep_their_places_and_lose_special_bits(tmp_path: Path) -> None:
    def add(archive: tarfile.TarFile) -> None:
        put(archive, "pkg", b"", type=tarfile.DIRTYPE)
        put(archive, "pkg/bin/agent", SCRIPT, 0o6755)
        put(archive, "pkg/data.txt", b"data", 0o600)

    program = unpacked(tar(files={}, add=add), "a.tgz", tmp_path, "pkg/bin/agent")
    assert program.stat().st_mode & 0o7000 == 0, "neither setuid nor setgid"
    assert (tmp_path / "pkg/data.txt").stat().st_mode & 0o111 == 0


REFUSED = {
    "traversal": (tar(files={"../agent": SCRIPT}), "leads outside"),
    "hidden traversal": (tar(files={"a/../../agent": SCRIPT}), "leads outside"),
    "absolute": (tar(files={"/tmp/agent": SCRIPT}), "absolute"),
    "symlink": (special(tarfile.SYMTYPE, linkname="/etc/passwd"), "a link"),
    "hard link": (special(tarfile.LNKTYPE, linkname="agent"), "a link"),
    "character device": (special(tarfile.CHRTYPE, devmajor=1, devminor=3), "a device"),
    "block device": (special(tarfile.BLKTYPE), "a device"),
    "fifo": (special(tarfile.FIFOTYPE), "a FIFO"),
    "unknown kind": (special(b"Q"), "unknown kind|twice|damaged"),
    "twice": (tar(add=lambda archive: put(archive, "agent")), "twice"),
    "case": (tar(files={"Agent": b"x", "agent": SCRIPT}), "one file on some disks"),
    "composed letters": (tar(files={"é": b"x", "e\u0301": b"y", "agent": SCRIPT}), "one file on some disks"),
    "folder in case": (tar(files={"A/x": b"", "a/y": b"", "agent": SCRIPT}), "one file on some disks"),
    "file as folder": (tar(files={"agent": SCRIPT, "agent/x": b""}), "twice"),
    "control characters": (tar(files={"a\x1b[31m": b"", "agent": SCRIPT}), "control characters"),
    "backslash": (tar(files={"..\\agent": SCRIPT}), "backslash"),
    "drive": (tar(files={"C:agent": SCRIPT}), "absolute"),
    "too deep": (tar(files={"a/" * 60 + "agent": SCRIPT}), "too deep"),
    "too long": (tar(files={"a" * 300: SCRIPT}), "too long"),
    "huge header": (tar_with_huge_header(), "header of more than 1 MB"),
    "cut": (tar()[:-20], "damaged"),
    "no program": (tar(files={"other": b""}), "has no './agent'"),
    "no archive": (b"<!doctype html><title>Not found</title>", "no gz archive"),
}


@pytest.mark.parametrize("trick", REFUSED)
def test_a_hostile_archive_is_refused(tmp_path: Path, trick: str) -> None:
    content, why = REFUSED[trick]
    folder = tmp_path / "inside"
    folder.mkdir()
    with pytest.raises(BadArchive, match=why):
        unpacked(content, "a.tar.gz", folder)
    assert os.listdir(tmp_path) == ["inside"], "nothing was written outside"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (zipped({"../agent": SCRIPT}), "leads outside"),
        (zipped({"/agent": SCRIPT}), "absolute"),
        (zipped({"agent\x00.txt": SCRIPT}), "control characters"),
        (zipped({"agent": b"/etc/passwd"}, {"agent": 0o120777}), "a link"),
        (zipped({"agent": b""}, {"agent": 0o010644}), "a device or a FIFO"),
        (zipped({"Agent": b"", "agent": SCRIPT}), "one file on some disks"),
        (zip_with_many_entries(0xFFFF), "entries"),
        (zipped()[:-30], "damaged"),
        (zipped().replace(b"PK\x01\x02", b"PK\x01\x03"), "damaged"),
    ],
)
def test_a_hostile_zip_is_refused(tmp_path: Path, content: bytes, why: str) -> None:
    with pytest.raises(BadArchive, match=why):
        unpacked(content, "a.zip", tmp_path)
    assert not (tmp_path.parent / "agent").exists()


@pytest.mark.parametrize("kind", ["gz", "xz", "bz2", "zip"])
def test_an_archive_that_grows_too_much_is_refused(tmp_path: Path, kind: str) -> None:
    zeros = {"agent": b"\0" * 300_000}
    content = zipped(zeros) if kind == "zip" else tar(kind, zeros)
    name = "a.zip" if kind == "zip" else f"a.tar.{kind}"
    for number, limits in enumerate((Limits(ratio=10, free=1000), Limits(bytes=1000))):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(BadArchive, match="grows to more than"):
            unpacked(content, name, folder, limits=limits)


def test_an_archive_of_too_many_files_is_refused(tmp_path: Path) -> None:
    content = tar(files={f"f{number}": b"" for number in range(30)})
    with pytest.raises(BadArchive, match="more than 20 entries"):
        unpacked(content, "a.tgz", tmp_path, limits=Limits(entries=20))


@pytest.mark.parametrize("program", ["../agent", "/bin/sh", ".", "", "a\\b"])
def test_the_program_is_a_file_of_the_archive(tmp_path: Path, program: str) -> None:
    with pytest.raises(BadArchive):
        unpacked(tar(), "a.tgz", tmp_path, program)


@pytest.mark.parametrize("name", ["a.dmg", "a.DEB", "a.AppImage", "a.msi"])
def test_installers_of_systems_are_not_run(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadArchive, match="installer"):
        unpacked(SCRIPT, name, tmp_path)


def test_a_write_error_is_no_damaged_archive(tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    with pytest.raises(OSError, match="exists"):
        unpacked(SCRIPT, "agent", tmp_path)
