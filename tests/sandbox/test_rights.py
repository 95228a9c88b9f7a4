"""What a process in a bubblewrap box may do: the same little whether the gateway runs as root or as anybody else."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dragoman.sandbox import seccomp
from support.gateway_process import Start
from support.sandboxes.sandbox_kinds import NOBODY, PYTHON, Kind, as_ordinary_user, machine_folders, run

Try = Callable[[str], Coroutine[Any, Any, dict[str, Any]]]


@dataclass
class Ground:
    """Folders that the gateway's user can reach, and what starts the gateway as that user."""

    folder: Path
    prefix: list[str]

    @property
    def ordinary(self) -> bool:
        return bool(self.prefix) or os.geteuid() != 0

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def shown(self) -> Path:
        return self.folder / "shown"


@pytest.fixture(params=["root", "ordinary user"])
def ground(request: pytest.FixtureRequest, bubblewrap: Kind, home: Path) -> Iterator[Ground]:
    is_root = os.geteuid() == 0
    if request.param == "root" and not is_root:
        pytest.skip("the tests do not run as root")
    drop = request.param != "root" and is_root
    prefix = as_ordinary_user() if drop else []
    why = run([*prefix, "bwrap", "--unshare-all", *machine_folders(), sys.executable, "-c", "0"])
    if why is not None:
        pytest.skip(f"an ordinary user cannot run bubblewrap or this Python here: {why}")
    with tempfile.TemporaryDirectory(prefix="dgm-ground-") as name:
        ground = Ground(Path(name), prefix)
        ground.folder.chmod(0o755)
        ground.project.mkdir()
        ground.shown.mkdir()
        (ground.shown / "a.txt").write_text("a")
        for path in (home, ground.folder, ground.project, ground.shown, ground.shown / "a.txt"):
            if drop:
                shutil.chown(path, NOBODY, NOBODY)
        yield ground


@pytest.fixture
async def attempt(dragoman: Start, bubblewrap: Kind, ground: Ground) -> AsyncIterator[Try]:
    """Run a shell line as the agent, in a box that shows a folder read-only."""
    read_only = [*bubblewrap.sandbox["read_only"], f"{ground.shown}:/shown"]
    config = bubblewrap.config(sandbox={"read_only": read_only})
    env = {"HOME": str(ground.folder / "nowhere")}
    gateway = await dragoman("acp", "scripted", prefix=ground.prefix, env=env, **config)
    await gateway.initialize()
    session = await gateway.new_session(ground.project)

    async def run(line: str) -> dict[str, Any]:
        result = (await gateway.prompt(session, f"sh {line}")).report("sh")
        assert isinstance(result, dict)
        return result

    yield run


async def test_nothing_inside_has_a_capability_or_can_get_one(attempt: Try) -> None:
    told = await attempt("grep -E '^(Cap|NoNewPrivs)' /proc/self/status")
    status = dict(line.split(":\t") for line in told["out"].splitlines())
    assert status.pop("NoNewPrivs") == "1"
    assert set(status) == {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}
    assert {int(each, 16) for each in status.values()} == {0}, status


NESTED = ("", "unshare --user --mount ", "unshare --user --map-root-user --mount --pid --fork ")
"""Where a change is tried: in the box, and in namespaces made inside, where the agent has capabilities again."""
MACHINES = tuple(
    f"/proc/sys/{name}"
    for name in ("vm/", "fs/suid_dumpable", "kernel/core", "kernel/modprobe", "kernel/sysrq", "kernel/yama/")
)
"""Settings of the whole machine; an ordinary user may change those of the box's own namespaces, which end with it."""


async def test_a_read_only_mount_stays_read_only(attempt: Try, ground: Ground) -> None:
    assert (await attempt("cat /shown/a.txt"))["out"] == "a"
    for change in (
        "mount -o remount,rw /shown",
        "mount -o remount,bind,rw /shown",
        "umount -l /shown",
        "mount --bind /shown /mnt",
    ):
        for how in NESTED:
            await attempt(f"{how}sh -c '{change}; echo changed > /shown/a.txt; echo new > /shown/b.txt'")
    assert [path.name for path in ground.shown.iterdir()] == ["a.txt"]
    assert (ground.shown / "a.txt").read_text() == "a"


async def test_the_kernels_settings_cannot_be_changed(attempt: Try, ground: Ground) -> None:
    # Opened for writing, and nothing is written: should it work, the machine is as it was.
    opens = ": >> /proc/sys/kernel/core_pattern"
    changes = ("mount -o remount,bind,rw /proc/sys", "umount -l /proc/sys", "mount -t proc x /proc")
    for change in ("true", *changes):
        for how in NESTED:
            tried = await attempt(f"{how}sh -c '{change} 2>/dev/null; {opens}' && echo opened")
            assert "opened" not in tried["out"], (how, change, tried)
    listed = await attempt("find /proc/sys /proc/irq /proc/bus /proc/fs -type f -writable 2>/dev/null")
    found = listed["out"].splitlines()
    assert [path for path in found if path.startswith(MACHINES) or not ground.ordinary] == []


async def test_devices_cannot_be_made(attempt: Try, ground: Ground) -> None:
    await attempt("mknod disk b 8 0; mknod memory c 1 1")
    assert list(ground.project.iterdir()) == []


FORBIDDEN = """
import ctypes, fcntl, os, platform, termios
libc = ctypes.CDLL(None, use_errno=True)
aarch64 = platform.machine() == "aarch64"
for name, number in (("keyctl", 219 if aarch64 else 250), ("bpf", 280 if aarch64 else 321)):
    print(name, libc.syscall(number, 0, 0, 0, 0, 0), os.strerror(ctypes.get_errno()))
primary, secondary = os.openpty()
try:
    fcntl.ioctl(secondary, termios.TIOCSTI, b"x")
except OSError as error:
    print("TIOCSTI", error.strerror)
"""


async def test_the_kernel_refuses_calls_that_no_agent_needs(attempt: Try, ground: Ground) -> None:
    if not seccomp.AVAILABLE.exists() or seccomp.program(os.uname().machine, root=True) is None:
        pytest.skip("this machine has no filters, or its calls are not known")
    (ground.project / "forbidden.py").write_text(FORBIDDEN)
    told = await attempt(f"grep ^Seccomp: /proc/self/status; {PYTHON} -S -E forbidden.py")
    refused = os.strerror(errno.EPERM)
    wanted = ["Seccomp:\t2", f"keyctl -1 {refused}", f"bpf -1 {refused}", f"TIOCSTI {refused}"]
    assert told["out"].splitlines() == wanted, told


async def test_no_setuid_file_of_roots_is_left_behind(attempt: Try, ground: Ground) -> None:
    """It would make root of whoever runs it outside."""
    if ground.ordinary:
        pytest.skip("an ordinary user's own setuid file makes nobody root")
    script = "import os; os.close(os.open('made', os.O_CREAT | os.O_WRONLY, 0o4755))"
    await attempt(
        f'cp /bin/sh plain; chmod u+s plain; cp /bin/sh other; chmod 6755 other; {PYTHON} -S -E -c "{script}"; '
        "install -m 4755 /bin/sh installed; chmod 755 plain"
    )
    modes = {path.name: path.stat().st_mode & 0o7777 for path in ground.project.iterdir()}
    assert modes["plain"] == 0o755, modes
    assert not [name for name, mode in modes.items() if mode & 0o4000], modes


async def test_usual_programs_run_under_the_filter(attempt: Try) -> None:
    tried = await attempt(
        "set -e; git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; "
        "tar cf t.tar .git && mkdir out && tar xf t.tar -C out; "
        'if command -v node >/dev/null; then node -e \'fs=require("fs");fs.writeFileSync("n","1");'
        'fs.promises.readFile("n","utf8").then(console.log)\'; else echo 1; fi'
    )
    assert (tried["code"], tried["out"]) == (0, "1"), tried


async def test_an_ordinary_users_agent_can_make_a_box_of_its_own(attempt: Try, ground: Ground) -> None:
    """Agents have sandboxes too: what is taken from them here must not break those."""
    if not ground.ordinary:
        pytest.skip("what root's agents may not do keeps a box inside this one from having a /proc")
    made = await attempt("bwrap --unshare-all --ro-bind / / --proc /proc --dev /dev echo made")
    assert made["out"] == "made", made
