"""The machine's process table; all code of custody that depends on the operating system's process list is here.

Stdlib only and without imports from the package: the watcher loads this file by path.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
else:
    import _signal as signal

if TYPE_CHECKING or __package__:
    from dragoman.agents.custody import marks
else:
    import marks

_TELLING = 0.2
"""Seconds of tolerance: messages about a process may be late, and its start is only known to a hundredth."""
GONE = "gone"
"""The start time of a process that does not run."""


class Process:
    """One living process; zombies are not in the table."""

    __slots__ = ("pgid", "pid", "ppid", "sid", "start")

    def __init__(self, pid: int, ppid: int, pgid: int, sid: int, start: str) -> None:
        """`start` is in the system's own format: only compared, to detect a reused pid; "" if unknown."""
        self.pid = pid
        self.ppid = ppid
        self.pgid = pgid
        self.sid = sid
        self.start = start

    def _fields(self) -> tuple[object, ...]:
        return (self.pid, self.ppid, self.pgid, self.sid, self.start)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Process) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        return f"Process{self._fields()}"


class Snapshot:
    """The processes of one moment, by pid."""

    def __init__(
        self,
        processes: dict[int, Process],
        environ: Callable[[int], bytes],
        numbers: Callable[[int], tuple[int, ...]] = lambda _pid: (),
    ) -> None:
        self.processes = processes
        self._read_environ = environ
        self._read_numbers = numbers
        self._environs: dict[int, bytes] = {}
        self._numbers: dict[int, tuple[int, ...]] = {}

    def carries(self, pid: int, marker: bytes, number: int | None = None) -> bool:
        """Whether the process has the marker in its environment, or its number among its limits."""
        environ = self._environs.get(pid)
        if environ is None:
            environ = self._environs[pid] = self._read_environ(pid)
        return marker in environ or (number is not None and number in self._numbers_of(pid))

    def _numbers_of(self, pid: int) -> tuple[int, ...]:
        numbers = self._numbers.get(pid)
        if numbers is None:
            numbers = self._numbers[pid] = self._read_numbers(pid)
        return numbers


def snapshot() -> Snapshot:
    return Snapshot(_list_processes(), _read_environ, _read_numbers)


def start_of(pid: int) -> str:
    """Start time of `pid`; "" where that is not cheap to find, `GONE` if the process does not run."""
    if not _HAS_PROC:
        return ""
    process = _proc_stat(pid)
    return process.start if process is not None else GONE


def process(pid: int) -> Process | None:
    """The process that has this pid now; None where that is not cheap to find, or if none has it."""
    return _proc_stat(pid) if _HAS_PROC else None


def started_after(process: Process, moment: float) -> bool:
    """Whether a process started after `moment` of the monotonic clock; False if unknown."""
    if not _HAS_PROC:
        return False
    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic() + moment
    return int(process.start) / os.sysconf("SC_CLK_TCK") > since_boot - _TELLING


def send(process: Process, number: int) -> None:
    """Signal this process, never another one that reuses its pid."""
    try:
        _send(process, number)
    except (ProcessLookupError, PermissionError):
        pass  # already gone, or a set-user-id program that we may not signal


def _send_by_pidfd(process: Process, number: int) -> None:
    descriptor = os.pidfd_open(process.pid)
    try:
        # The descriptor is bound to the process that has the pid now; if the start time matches, it is ours.
        if start_of(process.pid) == process.start:
            signal.pidfd_send_signal(descriptor, number)
    finally:
        os.close(descriptor)


def _send_by_pid(process: Process, number: int) -> None:
    os.kill(process.pid, number)


def _proc_processes() -> dict[int, Process]:
    found = (_proc_stat(int(name)) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208
    return {process.pid: process for process in found if process is not None}


def _proc_stat(pid: int) -> Process | None:
    content = _read(f"/proc/{pid}/stat")
    # The second field is the program's name in parentheses, which may itself contain spaces and parentheses.
    fields = content[content.rfind(b")") + 2 :].split()
    if not fields or fields[0] in (b"Z", b"X"):
        return None
    return Process(pid, int(fields[1]), int(fields[2]), int(fields[3]), fields[19].decode())


def _proc_environ(pid: int) -> bytes:
    return _read(f"/proc/{pid}/environ")


def _proc_numbers(pid: int) -> tuple[int, ...]:
    return marks.parse(_read(f"/proc/{pid}/limits"))


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 (pathlib is slow to import)
            return file.readall()
    except OSError:
        return b""  # gone meanwhile, or another user's: not ours


PS = ("ps", "-axo", "pid=,ppid=,pgid=,stat=,lstart=")


def _ps_processes() -> dict[int, Process]:
    import subprocess  # slow to load, and not needed on Linux

    env = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    output = subprocess.run(PS, capture_output=True, check=False, env=env).stdout
    return parse_ps(output.decode("ascii", "replace"))


def parse_ps(output: str) -> dict[int, Process]:
    """Read the output of `PS`."""
    processes = {}
    for line in output.splitlines():
        fields = line.split(None, 4)
        if len(fields) == 5 and not fields[3].startswith("Z"):
            pid, ppid, pgid = (int(field) for field in fields[:3])
            # ps has no portable session id; the process group is closest to it.
            processes[pid] = Process(pid, ppid, pgid, pgid, fields[4].strip())
    return processes


def _no_environ(_pid: int) -> bytes:
    return b""


def _no_numbers(_pid: int) -> tuple[int, ...]:
    return ()


def _pidfd_works() -> bool:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False  # another system, or a kernel or sandbox without it
    return True


_HAS_PROC = os.path.exists("/proc/self/stat")  # noqa: PTH110
HAS_PIDFD = _HAS_PROC and _pidfd_works()
_list_processes = _proc_processes if _HAS_PROC else _ps_processes
_read_environ = _proc_environ if _HAS_PROC else _no_environ
_read_numbers = _proc_numbers if _HAS_PROC else _no_numbers
_send = _send_by_pidfd if HAS_PIDFD else _send_by_pid
