"""The filter of system calls, run as the kernel runs it: for calls of every machine, whichever runs the tests."""

from __future__ import annotations

import errno
import struct

import pytest

from dragoman.sandbox.seccomp import program

ARCHITECTURES = {"x86_64": 0xC000003E, "i386": 0x40000003, "aarch64": 0xC00000B7, "arm": 0x40000028}
HOSTS = {"x86_64": "x86_64", "i386": "x86_64", "aarch64": "aarch64", "arm": "aarch64"}
KEYCTL = {"x86_64": 250, "i386": 288, "aarch64": 219, "arm": 311}
FCHMOD = {"x86_64": 91, "i386": 94, "aarch64": 52, "arm": 94}
OPENAT = {"x86_64": 257, "i386": 295, "aarch64": 56, "arm": 322}
IOCTL = {"x86_64": 16, "i386": 54, "aarch64": 29, "arm": 54}
MOUNT = {"x86_64": 165, "i386": 21, "aarch64": 40, "arm": 21}
OPENAT2 = 437
O_CREAT, TIOCSTI, TCGETS = 0o100, 0x5412, 0x5401
EACH = pytest.mark.parametrize("name", ARCHITECTURES)


def verdict(name: str, number: int, *arguments: int, root: bool = True) -> int:
    """0 if the call is allowed, else the error that it gets."""
    code = program(HOSTS[name], root=root)
    assert code is not None
    steps = list(struct.iter_unpack("<HBBI", code))
    assert len(steps) < 4096  # the kernel takes no more
    data = struct.pack("<IIQ6Q", number, ARCHITECTURES[name], 0, *arguments, *[0] * (6 - len(arguments)))
    at = loaded = 0
    while True:
        operation, yes, no, value = steps[at]
        at += 1
        if operation == 0x20:
            (loaded,) = struct.unpack_from("<I", data, value)
        elif operation == 0x05:
            at += value
        elif operation == 0x06:
            assert value in (0x7FFF0000, value & 0xFFFF | 0x00050000)
            return 0 if value == 0x7FFF0000 else value & 0xFFFF
        else:
            holds = {0x15: loaded == value, 0x45: bool(loaded & value), 0x35: loaded >= value}[operation]
            at += yes if holds else no


@EACH
def test_keyrings_are_closed_and_the_rest_is_open(name: str) -> None:
    for root in (True, False):
        assert verdict(name, KEYCTL[name], root=root) == errno.EPERM
        for number in (MOUNT[name], FCHMOD[name], OPENAT[name], IOCTL[name]):
            assert verdict(name, number, root=root) == 0


@EACH
def test_an_ioctl_is_known_by_its_command(name: str) -> None:
    assert verdict(name, IOCTL[name], 0, TIOCSTI) == errno.EPERM
    assert (
        verdict(name, IOCTL[name], 0, TIOCSTI | 1 << 32) == errno.EPERM
    )  # the kernel looks at the lower half too
    assert verdict(name, IOCTL[name], 0, TCGETS, TIOCSTI) == 0


@EACH
def test_root_makes_no_setuid_file(name: str) -> None:
    assert verdict(name, FCHMOD[name], 3, 0o4755) == errno.EPERM
    assert verdict(name, FCHMOD[name], 3, 0o755) == 0
    assert verdict(name, FCHMOD[name], 3, 0o4755, root=False) == 0
    assert verdict(name, OPENAT[name], 3, 0, O_CREAT, 0o4755) == errno.EPERM
    assert verdict(name, OPENAT[name], 3, 0, 0, 0o4755) == 0  # that is no mode, but what was in the register
    assert verdict(name, OPENAT[name], 3, 0, O_CREAT, 0o644) == 0
    assert verdict(name, OPENAT2) == errno.ENOSYS
    assert verdict(name, OPENAT2, root=False) == 0


def test_calls_by_other_numbers_do_not_exist() -> None:
    assert verdict("x86_64", 0x40000000 | 250) == errno.ENOSYS
    assert program("riscv64", root=True) is None
