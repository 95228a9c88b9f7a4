"""Bubblewrap: Linux namespaces around every process, with the machine's own system folders.

Processes inside have no capability and cannot gain one: bubblewrap sets `no_new_privs`. If root starts them, they
still own root's files, so files that root can write without a capability are shown read-only.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from dragoman.agents.known import locate
from dragoman.atomic_file import replace_file
from dragoman.config.model import AgentConfig
from dragoman.gateway.ports.agent import AgentEnd
from dragoman.gateway.ports.sandbox import Enclosed
from dragoman.sandbox import seccomp
from dragoman.sandbox.allowlist import GENERAL, SAME_FILES
from dragoman.sandbox.box import SYSTEM_KEY, Place, WorkspaceBox, digest
from dragoman.sandbox.mounts import by_depth
from dragoman.sandbox.own_folders import conflict
from dragoman.sandbox.programs import needed_files

PROGRAM = "bwrap"
INSTALL = "Install it: apt install bubblewrap, dnf install bubblewrap or pacman -S bubblewrap"

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store")
"""Shown read-only where they exist: programs and libraries, no user data."""

ETC = tuple(
    f"/etc/{name}"
    for name in (
        *("alternatives", "ca-certificates", "ca-certificates.conf", "ssl", "pki", "crypto-policies"),
        *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "os-release", "static"),
        *("hosts", "resolv.conf", "nsswitch.conf", "passwd", "group", "gitconfig"),
    )
)
"""Files in /etc that programs need; the rest holds keys and passwords. Each entry costs a mount at each start."""

PROC = tuple(
    f"/proc/{name}"
    for name in ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "asound", "driver", "mtrr", "scsi")
)
"""Entries of /proc that change the machine. Their files belong to root, which can write them without a capability."""

FILTER_FD = 9
"""Any unused descriptor of one digit, as shells require."""

_MEMORY = re.compile(r"(\d+)([kmgt]?)b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class BubblewrapBox(WorkspaceBox):
    NAMES = (*GENERAL, *SAME_FILES)
    remembers = False

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._programs: dict[Path, None] = {}
        """Programs of the agents of this box; commands inside may run them too."""

    async def enclose(self, words: list[str], env: dict[str, str], cwd: str, *, agent: bool) -> Enclosed:
        program = shutil.which(PROGRAM, path=self.place.environ.get("PATH"))
        if program is None:
            raise self.place.error(f"needs the program {PROGRAM}, which is not on PATH", INSTALL)
        if agent:  # not for a command: the agent could name any file to be shown
            self._show_programs(needed_files(words, env.get("PATH", ""), SYSTEM))
        arguments = [
            *("--unshare-all", "--cap-drop", "ALL", "--die-with-parent", "--new-session"),
            *(["--share-net"] if self.place.config.network else []),
            *system_folders(),
            *("--proc", "/proc", *_guarded_proc(), "--dev", "/dev"),
            *("--tmpfs", "/tmp", "--tmpfs", "/run", "--dir", "/var/tmp"),
            *("--tmpfs", self._home(env if agent else self.environment)),
            *_bound("--ro-bind", ((str(path), str(path)) for path in self._programs)),
            *_bound("--ro-bind", ((str(path), str(path)) for path in self.place.logins if agent)),
            *self._mounted(),
            *("--chdir", cwd, "--"),
        ]
        inside, preface = self.entry(_limited(words, self._limits()), env, stdin=agent)
        # Bubblewrap passes its whole environment on and needs none of it.
        return Enclosed([*self._filtered(program), *arguments, *inside], {}, "/", preface)

    def _filtered(self, program: str) -> list[str]:
        """The words that start bubblewrap, with the system call filter where this machine supports one."""
        filter_file = self._filter_file()
        if filter_file is None:
            return [program]
        # Bubblewrap reads the filter from a descriptor; a shell opens a new one for each start.
        opened = f'exec "$@" {FILTER_FD}<"$0"'
        return ["/bin/sh", "-c", opened, str(filter_file), program, "--seccomp", str(FILTER_FD)]

    def _filter_file(self) -> Path | None:
        """The file with the filter, written again if it is gone: a logout may remove the runtime folder."""
        code = seccomp.program(os.uname().machine, root=os.geteuid() == 0)
        if code is None or not seccomp.AVAILABLE.exists():
            return None
        file = self.place.runtime / f"seccomp-{digest(code.hex())}"
        try:
            if not file.exists():
                self.place.runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
                replace_file(file, code)
        except OSError as error:
            raise self.place.error(
                f"cannot write its filter of system calls, {file}: {error.strerror}",
                "Make the folder writable, or move Dragoman's folders with DRAGOMAN_HOME",
            ) from error
        return file

    def shown(self) -> Iterator[tuple[str, str]]:
        yield from super().shown()
        yield from ((path, SYSTEM_KEY) for path in (*SYSTEM, *ETC) if Path(path).exists())

    def _show_programs(self, files: Sequence[Path]) -> None:
        own = self.place.own()
        for file in files:
            trouble = conflict(str(file), own, inside=False)
            if trouble is not None:
                raise self.place.error(
                    f"would have to show {file}, the agent's installation, which {trouble}",
                    "Install the agent elsewhere, or move Dragoman's folders with DRAGOMAN_HOME",
                )
        self._programs |= dict.fromkeys(files)

    def identity(self, agent: AgentConfig) -> str | None:
        """Includes the size and time of the program, which is this machine's: a new version is another agent."""
        program = locate(agent.command, agent.env.get("PATH") or self.place.environ.get("PATH"))
        if program is None:
            return None
        status = program.stat()
        return f"{super().identity(agent)}\n{program.resolve()} {status.st_size} {status.st_mtime_ns}"

    def explain(self, end: AgentEnd) -> str:
        if end.exit_code == 1 and "bwrap: " in end.stderr_tail:
            return ". Bubblewrap itself failed: `dragoman doctor` says what this machine lacks"
        if end.exit_code == 127 or "No such file or directory" in end.stderr_tail:
            return f". If it misses files of its own, add their folder to sandboxes.{self.name}.read_only"
        return ""

    def _home(self, env: Mapping[str, str]) -> str:
        return self.place.config.home or env.get("HOME") or str(Path.home())

    def _mounted(self) -> Iterator[str]:
        for mount in by_depth(self.mounts):
            yield from ("--bind" if mount.writable else "--ro-bind", mount.real, mount.inside)

    def _limits(self) -> list[str]:
        config, limits = self.place.config, []
        if config.memory is not None and (found := _MEMORY.fullmatch(config.memory)):
            limits.append(f"ulimit -v {int(found[1]) * _UNITS[found[2].lower()] // 1024}")
        if config.processes:
            limits.append(f"ulimit -u {config.processes}")
        return limits


@cache
def system_folders() -> tuple[str, ...]:
    """Arguments for the system folders that every box shows."""
    words: list[str] = []
    for path in map(Path, SYSTEM):
        if path.is_symlink() and len(path.parts) == 2:  # such as /bin where /usr is merged
            words += ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir() and any(path.iterdir()):
            words += ("--ro-bind", str(path), str(path))
    return (*words, *_bound("--ro-bind-try", ((path, path) for path in ETC if Path(path).exists())))


def _guarded_proc() -> tuple[str, ...]:
    """Make `PROC` read-only for root. The kernel protects it from other users, who need a plain /proc to nest boxes."""
    if os.geteuid() != 0:
        return ()
    return tuple(_bound("--ro-bind-try", ((path, path) for path in PROC if Path(path).exists())))


def _bound(how: str, pairs: Iterator[tuple[str, str]]) -> Iterator[str]:
    for host, inside in pairs:
        yield from (how, host, inside)


def _limited(words: Sequence[str], limits: Sequence[str]) -> list[str]:
    """Set limits with the shell's `ulimit`, which all descendants inherit; bubblewrap has no limits itself."""
    if not limits:
        return list(words)
    return ["/bin/sh", "-c", f'{" && ".join(limits)} && exec "$@"', "limits", *words]
