"""System calls denied in a bubblewrap box, as a filter for the kernel (seccomp, classic BPF).

The list is short on purpose: calls by which an unprivileged program can harm the machine and that no agent's tool
needs. Namespaces, mounts and ptrace stay, since agents and browsers make sandboxes and debuggers trace. Denied are

- the keyrings: a process inherits the session keyring of the gateway, with the keys that the login put there;
- `bpf`, `perf_event_open`, `userfaultfd`, `open_by_handle_at`, `syslog`: kernel internals and the kernel's log;
- the `ioctl`s that inject input into a terminal;
- for root, creating files with the setuid bit: a user who runs one from the workspace outside would become root.
  Calls that hide their arguments from a filter fail with ENOSYS then.

The filter is a flat list for each architecture: its name, then one comparison for each call, then "allow".
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

AVAILABLE = Path("/proc/sys/kernel/seccomp/actions_avail")
"""Exists if the kernel supports filters."""

_MACHINES: Mapping[str, tuple[str, ...]] = {"x86_64": ("x86_64", "i386"), "aarch64": ("aarch64", "arm")}
"""By the machine name of `uname`: the architectures whose calls its kernel accepts."""
_ARCHITECTURES = {"x86_64": 0xC000003E, "i386": 0x40000003, "aarch64": 0xC00000B7, "arm": 0x40000028}
"""Numbers from <linux/audit.h>."""
_COLUMNS = ("x86_64", "i386", "aarch64", "arm")
_NUMBERS: Mapping[str, tuple[int | None, int | None, int | None, int | None]] = {
    "add_key": (248, 286, 217, 309),
    "request_key": (249, 287, 218, 310),
    "keyctl": (250, 288, 219, 311),
    "bpf": (321, 357, 280, 386),
    "perf_event_open": (298, 336, 241, 364),
    "userfaultfd": (323, 374, 282, 388),
    "open_by_handle_at": (304, 342, 265, 371),
    "syslog": (103, 103, 116, 103),
    "ioctl": (16, 54, 29, 54),
    "chmod": (90, 15, None, 15),
    "fchmod": (91, 94, 52, 94),
    "fchmodat": (268, 306, 53, 333),
    "fchmodat2": (452, 452, 452, 452),
    "creat": (85, 8, None, 8),
    "open": (2, 5, None, 5),
    "openat": (257, 295, 56, 322),
    "openat2": (437, 437, 437, 437),
    "mknod": (133, 14, None, 14),
    "mknodat": (259, 297, 33, 324),
    "io_uring_setup": (425, 425, 425, 425),
}
_X32 = 0x40000000
"""The bit in call numbers of the x32 ABI, which has its own numbers and reports itself as x86_64."""

_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_MAKES = 0o100 | 0o20000000  # O_CREAT and O_TMPFILE: without them the mode register holds garbage
_SETUID = 0o4000


@dataclass(frozen=True, slots=True)
class Argument:
    """A test of the lower half of an argument."""

    index: int
    bits: int = 0
    """True if any of these bits is set; if 0, the argument must equal `value`."""
    value: int = 0


@dataclass(frozen=True, slots=True)
class Denied:
    """A call that fails if all of its tests are true."""

    name: str
    when: tuple[Argument, ...] = ()
    error: int = errno.EPERM


ALWAYS = (
    *map(Denied, ("add_key", "request_key", "keyctl", "bpf", "perf_event_open", "userfaultfd")),
    *map(Denied, ("open_by_handle_at", "syslog")),
    Denied("ioctl", (Argument(1, value=_TIOCSTI),)),
    Denied("ioctl", (Argument(1, value=_TIOCLINUX),)),
)
AS_ROOT = (
    *(Denied(name, (Argument(1, _SETUID),)) for name in ("chmod", "fchmod", "creat", "mknod")),
    *(Denied(name, (Argument(2, _SETUID),)) for name in ("fchmodat", "fchmodat2", "mknodat")),
    Denied("open", (Argument(1, _MAKES), Argument(2, _SETUID))),
    Denied("openat", (Argument(2, _MAKES), Argument(3, _SETUID))),
    Denied("openat2", error=errno.ENOSYS),
    Denied("io_uring_setup", error=errno.ENOSYS),
)

_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000


@cache
def program(machine: str, *, root: bool) -> bytes | None:
    """The filter for a machine; None if its call numbers are not known here."""
    names = _MACHINES.get(machine)
    if names is None:
        return None
    denied = (*ALWAYS, *AS_ROOT) if root else ALWAYS
    code: list[bytes] = []
    for name in names:
        block = _calls(name, denied)
        # A conditional jump reaches 255 instructions, so an unconditional one skips the block.
        code += [_load(4), _step(_EQUAL, 1, 0, _ARCHITECTURES[name]), _step(0x05, 0, 0, len(block)), *block]
    return b"".join([*code, _step(_RETURN, 0, 0, _FAIL | errno.EPERM)])


def _calls(architecture: str, denied: Iterable[Denied]) -> list[bytes]:
    column = _COLUMNS.index(architecture)
    code = [_load(0)]
    if architecture == "x86_64":
        code += [_step(_AT_LEAST, 0, 1, _X32), _step(_RETURN, 0, 0, _FAIL | errno.ENOSYS)]
    for rule in denied:
        number = _NUMBERS[rule.name][column]
        if number is not None:
            code += _rule(number, rule)
    return [*code, _step(_RETURN, 0, 0, _ALLOW)]


def _rule(number: int, rule: Denied) -> Sequence[bytes]:
    """Compare the number, then the arguments; if one differs, continue after the rule with the number loaded again."""
    after = 2 * len(rule.when) + 1 + bool(rule.when)
    code = [_step(_EQUAL, 0, after, number)]
    for at, argument in enumerate(rule.when):
        left = 2 * (len(rule.when) - at - 1) + 1
        how, value = (_ANY_BIT, argument.bits) if argument.bits else (_EQUAL, argument.value)
        code += [_load(16 + 8 * argument.index), _step(how, 0, left, value)]
    code.append(_step(_RETURN, 0, 0, _FAIL | rule.error))
    return [*code, _load(0)] if rule.when else code


def _load(offset: int) -> bytes:
    """Load a word of `struct seccomp_data`: number at 0, architecture at 4, arguments of 8 bytes from 16."""
    return _step(_LOAD, 0, 0, offset)


def _step(code: int, yes: int, no: int, value: int) -> bytes:
    return struct.pack("<HBBI", code, yes, no, value)
