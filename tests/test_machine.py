"""What is known of this machine."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from dragoman import machine

MACOS = """\
/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
devfs on /dev (devfs, local, nobrowse)
/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled, nobrowse, protect)
//me@server/share on /Volumes/our (big) share (smbfs, nodev, nosuid, mounted by me)
server:/home on /private/net/home (nfs)
tool@macfuse0 on /Volumes/tool (macfuse, nodev)
"""


@pytest.mark.parametrize(
    ("folder", "kind", "shared"),
    [
        ("/Users/me/.local/state/dragoman", "apfs", False),
        ("/System/Volumes/Data/Users/me", "apfs", False),
        ("/Volumes/our (big) share/dragoman", "smbfs", True),
        ("/private/net/home/me", "nfs", True),
        ("/Volumes/tool/x", "macfuse", True),
    ],
)
def test_network_disks_are_known_without_proc(
    monkeypatch: pytest.MonkeyPatch, folder: str, kind: str, shared: bool
) -> None:
    said = subprocess.CompletedProcess(["mount"], 0, MACOS)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: said)
    assert machine._mounted_at(Path(folder)) == kind
    monkeypatch.setattr(machine, "file_system", lambda _: kind)
    assert machine.is_shared(Path(folder)) is shared


def test_a_system_that_does_not_tell_counts_as_shared(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(machine, "_MOUNTS", tmp_path / "nowhere")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert machine.file_system(tmp_path) == ""
    assert machine.is_shared(tmp_path)


BTRFS = """\
22 1 0:20 / / rw,relatime shared:1 - btrfs /dev/sda2 rw,subvol=/@
30 22 0:20 /@home /home rw,relatime shared:2 - btrfs /dev/sda2 rw,subvol=/@home
31 22 0:44 / /net rw,relatime shared:3 - nfs4 server:/net rw
32 31 0:45 / /net/my\\040disk rw,relatime - ext4 /dev/sdb1 rw
33 22 0:46 / /mnt rw - ext4 /dev/sdc1 rw
34 33 0:47 / /mnt rw - cifs //server/mnt rw
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [("/home/me", "btrfs"), ("/net/state", "nfs4"), ("/net/my disk/state", "ext4"), ("/mnt/state", "cifs")],
)
def test_a_device_that_no_mount_has_is_found_by_its_mount_point(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: str, kind: str
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(BTRFS)
    known = Mock(st_dev=os.makedev(0, 99))
    monkeypatch.setattr(machine, "_MOUNTS", mounts)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "stat", lambda *_, **__: known)
        patched.setattr(Path, "resolve", lambda path, *_, **__: path)
        assert machine.file_system(Path(folder)) == kind


def test_macos_tells_its_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def run(command: tuple[str, ...], **_: object) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        return subprocess.CompletedProcess(command, 0, "6E7A-4F\n")

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(subprocess, "run", run)
    assert machine.boot_id.__wrapped__() == "6E7A-4F"
    assert asked == [("sysctl", "-n", "kern.bootsessionuuid")]


@pytest.mark.parametrize("error", [ValueError("not allowed to raise maximum limit"), OSError(1, "refused")])
def test_a_file_limit_that_is_refused_stays(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", Mock(side_effect=error))
    assert machine.raise_file_limit(16384) == 256


def test_sockets_of_dead_processes_are_removed_by_the_next(tmp_path: Path) -> None:
    sockets = tmp_path / "owners"
    sockets.mkdir()
    old, new, used = (sockets / f"{name}.sock" for name in ("old", "new", "used"))
    for each in (old, new, used):
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(each))
        if each is used:
            listening.listen()
            kept = listening
        else:
            listening.close()
    for each in (old, used):
        os.utime(each, (0, 0))
    machine.sweep_sockets(sockets)
    assert sorted(file.name for file in sockets.iterdir()) == ["new.sock", "used.sock"]
    kept.close()
