"""Bubblewrap: namespaces around every process, over the machine's own system folders.

What runs inside has no capability and cannot get one: bubblewrap itself sets `no_new_privs`. Started by root it is
still root's files that it owns, so what root may write without a capability is shown read-only.
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
"""Shown read-only where they exist: programs and libraries, and nobody's data."""

ETC = tuple(
    f"/etc/{name}"
    for name in (
        *("alternatives", "ca-certificates", "ca-certificates.conf", "ssl", "pki", "crypto-policies"),
        *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "os-release", "static"),
        *("hosts", "resolv.conf", "nsswitch.conf", "passwd", "group", "gitconfig"),
    )
)
"""What programs need of /etc; not the rest, which holds keys and passwords. Every one costs a mount at each start."""

PROC = tuple(
    f"/proc/{name}"
    for name in ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "asound", "driver", "mtrr", "scsi")
)
"""What of /proc changes the machine itself. Its files belong to root, who needs no capability to write them."""

FILTER_FD = 9
"""Any that is not in use, of one digit for the shell's sake."""

_MEMORY = re.compile(r"(\d+)([kmgt]?)b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class BubblewrapBox(WorkspaceBox):
    NAMES = (*GENERAL, *SAME_FILES)
    remembers = False

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._programs: dict[Path, None] = {}
        """What the agents of this box are made of; their commands may run it too."""

    async def enclose(self, words: list[str], env: dict[str, str], cwd: str, *, agent: bool) -> Enclosed:
        program = shutil.which(PROGRAM, path=self.place.environ.get("PATH"))
        if program is None:
            raise self.place.error(f"needs the program {PROGRAM}, which is not on PATH", INSTALL)
        if agent:  # never for a command: its words would name the files that it wants to see
            self._show_programs(needed_files(words, env.get("PATH", ""), SYSTEM))
        arguments = [
            *("--unshare-all", "--cap-drop", "ALL", "--die-with-parent", "--new-session"),
            *(["--share-net"] if self.place.config.network else []),
            *_system(),
            *("--proc", "/proc", *_guarded_proc(), "--dev", "/dev"),
            *("--tmpfs", "/tmp", "--tmpfs", "/run", "--dir", "/var/tmp"),
            *("--tmpfs", self._home(env if agent else self.environment)),
            *_bound("--ro-bind", ((str(path), str(path)) for path in self._programs)),
            *_bound("--ro-bind", ((str(path), str(path)) for path in self.place.logins if agent)),
            *self._mounted(),
            *("--chdir", cwd, "--"),
        ]
        inside, preface = self.entry(_limited(words, self._limits()), env, stdin=agent)
        # Bubblewrap passes its whole environment on and needs nothing of it.
        return Enclosed([*self._filtered(program), *arguments, *inside], {}, "/", preface)

    def _filtered(self, program: str) -> list[str]:
        """Bubblewrap's own start, with the filter of system calls where this machine has one."""
        filter_file = self._filter_file()
        if filter_file is None:
            return [program]
        # It reads the filter from a descriptor, which a shell opens: each start needs one of its own.
        opened = f'exec "$@" {FILTER_FD}<"$0"'
        return ["/bin/sh", "-c", opened, str(filter_file), program, "--seccomp", str(FILTER_FD)]

    def _filter_file(self) -> Path | None:
        """Made anew whenever it is gone: a runtime folder may vanish at a logout."""
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
        """The program is this machine's own: a new version of it is another agent."""
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
def _system() -> tuple[str, ...]:
    """What every box of this machine shows."""
    words: list[str] = []
    for path in map(Path, SYSTEM):
        if path.is_symlink() and len(path.parts) == 2:  # /bin on a machine whose programs are all in /usr
            words += ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir() and any(path.iterdir()):
            words += ("--ro-bind", str(path), str(path))
    return (*words, *_bound("--ro-bind-try", ((path, path) for path in ETC if Path(path).exists())))


def _guarded_proc() -> tuple[str, ...]:
    """Read-only for root. For others the kernel refuses by itself, and a bare /proc lets them nest a box in this one."""
    if os.geteuid() != 0:
        return ()
    return tuple(_bound("--ro-bind-try", ((path, path) for path in PROC if Path(path).exists())))


def _bound(how: str, pairs: Iterator[tuple[str, str]]) -> Iterator[str]:
    for host, inside in pairs:
        yield from (how, host, inside)


def _limited(words: Sequence[str], limits: Sequence[str]) -> list[str]:
    """Bubblewrap has no limits of its own; those of the shell are inherited by everything below."""
    if not limits:
        return list(words)
    return ["/bin/sh", "-c", f'{" && ".join(limits)} && exec "$@"', "limits", *words]
