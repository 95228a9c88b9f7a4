"""Sandboxes for tests, of every kind that works on this machine; what does not is skipped with the reason."""

from __future__ import annotations

import io
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support import prerequisites
from support.gateway_process import SCRIPTED_AGENT, Table, agent

PYTHON = Path(sys.base_prefix, "bin", "python3")
"""Not the virtual environment's, whose folder would have to be shown as well."""
INSIDE = "/home/agent/workspace"
LINUX_PODMAN = ["podman", "--runtime", "/usr/sbin/runc"]
LIMITS = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"]


@dataclass
class Kind:
    """How to make a sandbox of one kind, and what is special about it."""

    name: str
    sandbox: Table
    inside: str = INSIDE
    agent_settings: Table = field(default_factory=dict)

    def config(self, *flags: str, sandbox: Table | None = None, **settings: Any) -> Table:
        """Sections for the `dragoman` fixture: one scripted agent in one box named `box`."""
        made = {**self.sandbox, **(sandbox or {})}
        return {
            "agents": {"scripted": boxed_agent(*flags, sandbox="box", **settings)},
            "sandboxes": {"box": made},
        }


def boxed_agent(*flags: str, **settings: Any) -> Table:
    table = agent(*flags, **settings)
    return {**table, "command": [str(PYTHON), *table["command"][1:]]}


def machine_folders() -> list[str]:
    """Arguments of bubblewrap for a read-only view of this machine, without the folders in which containers come and go.

    Bubblewrap fails if a mount vanishes while it looks at it, and other tests end containers meanwhile.
    """
    words: list[str] = []
    for path in sorted(Path("/").iterdir()):
        if path.is_symlink():
            words += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir() and path.name not in ("var", "run", "proc", "sys", "dev"):
            words += ["--ro-bind", str(path), str(path)]
    return words


def bubblewrap() -> Kind:
    works = run(["bwrap", "--unshare-all", *machine_folders(), "true"])
    if works is not None:
        prerequisites.skip("bubblewrap", f"it does not work here: {works}")
    sandbox = {"kind": "bubblewrap", "workspace": INSIDE, "read_only": [str(SCRIPTED_AGENT.parent)]}
    return Kind("bubblewrap", sandbox)


def podman(image: str) -> Kind:
    shown = ["/usr", str(SCRIPTED_AGENT.parent), sys.base_prefix, "/etc/passwd"]
    sandbox = {
        "kind": "podman",
        "image": image,
        "engine": LINUX_PODMAN,
        "options": LIMITS,
        "network": False,
        "workspace": INSIDE,
        "read_only": shown,
    }
    return Kind("podman", sandbox)


def make_image(name: str) -> None:
    """An image of nothing but folders; programs are shown read-only from this machine.

    One folder has its name: two images with the same content, imported in one second, are one to podman, and what
    removes or imports one of them disturbs the other.
    """
    if shutil.which("podman") is None:
        prerequisites.skip("podman", "it is not installed")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for folder in ("usr", "proc", "sys", "dev", "etc", "tmp", "root", "home/agent/workspace", name):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for link in ("bin", "sbin", "lib", "lib64"):
            entry = tarfile.TarInfo(link)
            entry.type, entry.linkname = tarfile.SYMTYPE, f"usr/{link}"
            tar.addfile(entry)
    made = subprocess.run(
        [*LINUX_PODMAN, "import", "-", name], input=buffer.getvalue(), capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip(f"podman cannot import an image here: {made.stderr.decode()[-300:]}")
    words = ["run", "--rm", "--network=none", *LIMITS, "-v", "/usr:/usr:ro", name, "/bin/true"]
    works = run([*LINUX_PODMAN, *words])
    if works is not None:  # nothing that could be installed: many a machine of CI is a container itself
        pytest.skip(f"podman cannot run a container here: {works}")


def remove_image(name: str) -> None:
    subprocess.run([*LINUX_PODMAN, "rmi", "--force", name], capture_output=True, check=False)


@dataclass
class Sshd:
    """A private server with its own host key, which lets in one key."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]

    @property
    def options(self) -> list[str]:
        return [
            *("-p", str(self.port), "-i", str(self.folder / "key"), "-F", "none"),
            *("-o", f"UserKnownHostsFile={self.folder / 'known_hosts'}", "-o", "IdentitiesOnly=yes"),
        ]

    def kind(self, inside: str) -> Kind:
        sandbox = {"kind": "ssh", "host": "127.0.0.1", "options": self.options, "workspace": inside}
        return Kind("ssh", sandbox, inside)


def start_sshd(folder: Path) -> Sshd:
    program = shutil.which("sshd") or "/usr/sbin/sshd"
    if not Path(program).exists() or shutil.which("ssh") is None:
        prerequisites.skip("ssh", "OpenSSH's server and client are not installed")
    folder.mkdir(mode=0o700)
    for name in ("host", "key", "stranger"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    shutil.copy(folder / "key.pub", folder / "authorized_keys")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    host_key = (folder / "host.pub").read_text()
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key}")
    settings = {
        "Port": port,
        "ListenAddress": "127.0.0.1",
        "HostKey": folder / "host",
        "AuthorizedKeysFile": folder / "authorized_keys",
        "PidFile": "none",
        "StrictModes": "no",
        "UsePAM": "no",
        "PermitRootLogin": "yes",
        "PasswordAuthentication": "no",
        "KexAlgorithms": "curve25519-sha256",  # a third less work for each connection than with the default
    }
    (folder / "sshd_config").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    process = subprocess.Popen(
        [program, "-D", "-e", "-f", str(folder / "sshd_config")],
        stdin=subprocess.DEVNULL,
        stderr=(folder / "log").open("wb"),
    )
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return Sshd(folder, port, process)
        if process.poll() is not None:
            break
        time.sleep(0.05)
    pytest.skip(
        prerequisites.missing("ssh", f"sshd does not start here: {(folder / 'log').read_text()[-300:]}")
    )


NOBODY = 65534
_OPENED = """
set -e
mount -t tmpfs none /mnt
closed=$1; shift
at=0
for each in "$@"; do
  [ "$each" = -- ] && break
  at=$((at + 1)); mkdir /mnt/$at; mount --bind "$each" /mnt/$at
done
mount -t tmpfs -o mode=755 none "$closed"
at=0
while [ "$1" != -- ]; do
  at=$((at + 1)); mkdir -p "$1"; mount --bind /mnt/$at "$1"; shift
done
shift; umount -l /mnt
exec "$@"
"""


def as_ordinary_user() -> list[str]:
    """Words that run a command as the user nobody, who can use this Python and these tests wherever they are installed.

    What lies in a folder that only its owner enters (root's home, often) is bound into an open one, in a mount
    namespace of that command's own.
    """
    who = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "--"]
    needed = [Path(sys.base_prefix), Path(sys.prefix), Path(__file__).parents[3]]
    above = {folder for path in needed for folder in (path, *path.parents)}
    closed = sorted(folder for folder in above if not folder.stat().st_mode & 0o001)
    if not closed:
        return who
    inside = [str(path) for path in needed if path.is_relative_to(closed[0])]
    return ["unshare", "--mount", "sh", "-c", _OPENED, "sh", str(closed[0]), *inside, "--", *who]


def run(words: list[str]) -> str | None:
    """None if the command works, else why not."""
    if shutil.which(words[0]) is None:
        return f"{words[0]} is not installed"
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    return None if done.returncode == 0 else done.stderr[-300:] or f"exit code {done.returncode}"
