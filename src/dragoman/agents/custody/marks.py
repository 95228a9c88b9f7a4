"""Marks that all descendants of a process inherit, even if their environment is lost (Linux).

Every ward has a random marker in its environment, but daemons may start with an empty environment, overwrite it, or
hide it: `ssh-agent` is not dumpable, so that only root can read it. So the marker is also a number in `RLIMIT_LOCKS`.
The kernel has not used that limit since 2.4.25; it is inherited through fork and exec, also by programs that change the
user, and readable by all users in `/proc/PID/limits`.

    soft limit    the ward: 40 to 60 bits, from the last 16 digits of its marker
    hard limit    the gateway: 61 bits, from its token, with which the markers of all its wards begin

Below another gateway the hard limit is already that gateway's, and stays: lowering it would lose that mark.

Stdlib only and without imports from the package: the watcher loads this file by path.
"""

from __future__ import annotations

RLIMIT_LOCKS = 10
"""The same number on every architecture; Python has no name for it."""

TOKEN_DIGITS = 16
MARKER_DIGITS = 32
_LEAST, _GATEWAYS = 1 << 40, 1 << 60
"""Limits below `_LEAST` may be set by users; numbers of wards are below those of gateways, as soft limits must be."""

_DIGITS = frozenset("0123456789abcdef")
_LINE = b"Max file locks"


def number_of(marker: str) -> int | None:
    """The number of a ward's marker or of a gateway's token; None for other text."""
    if not set(marker) <= _DIGITS:
        return None
    if len(marker) == MARKER_DIGITS:
        return _LEAST + int(marker[TOKEN_DIGITS:], 16) % (_GATEWAYS >> 1)
    if len(marker) == TOKEN_DIGITS:
        return _GATEWAYS + int(marker, 16) % _GATEWAYS
    return None


def is_token(text: str) -> bool:
    return len(text) == TOKEN_DIGITS and number_of(text) is not None


def apply(marker: str, pid: int = 0) -> None:
    """Mark a process (default: this one) and all it will start; does nothing where that is not possible."""
    ward, gateway = number_of(marker), number_of(marker[:TOKEN_DIGITS])
    if ward is None or gateway is None:
        return
    try:
        import resource

        _, hard = resource.prlimit(pid, RLIMIT_LOCKS)
        hard = gateway if hard == resource.RLIM_INFINITY else hard
        resource.prlimit(pid, RLIMIT_LOCKS, (min(ward, hard), hard))
    except (ImportError, AttributeError, OSError, ValueError):
        pass  # another system, or a process that is gone or not ours: other marks remain


def parse(limits: bytes) -> tuple[int, ...]:
    """The numbers of the mark in the text of `/proc/PID/limits`."""
    start = limits.find(_LINE)
    if start < 0:
        return ()
    fields = limits[start + len(_LINE) : limits.find(b"\n", start)].split()[:2]
    return tuple(int(field) for field in fields if field.isdigit())


def is_mark(numbers: tuple[int, ...]) -> bool:
    """Whether limits as `parse` reads them are those of a ward or a gateway."""
    return any(number >= _LEAST for number in numbers)
