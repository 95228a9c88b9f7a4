"""Starts agents for the gateway, as children of the watcher.

The watcher adopts orphans, so all processes that an agent starts stay its descendants, however often they fork. The
agent's pipes come from the gateway with the request, so the watcher forwards no data.

A request is one packet with descriptors, in this order:

    status      a pipe for the answer: `started PID`, then `exit CODE`; or `failed ERRNO` or `nofolder ERRNO`
    words       a file with marker, program, number of arguments, arguments and variables, each ended by a NUL
    folder      the program's working folder
    0, 1, 2     its stdin, stdout and stderr

Stdlib only and without imports from the package: the watcher loads this file by path.
"""

from __future__ import annotations

import _socket  # `socket` itself takes as long to load as all the rest
import errno
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable, Sequence
    from typing import NoReturn
else:
    import _signal as signal

if TYPE_CHECKING or __package__:
    from dragoman.agents.custody import marks
else:
    import marks

DESCRIPTORS = 6
_READ_BYTES = 1 << 16


class Order:
    """A program to start, with its marker, arguments and variables."""

    def __init__(
        self, marker: str, program: bytes, arguments: list[bytes], variables: dict[bytes, bytes]
    ) -> None:
        self.marker = marker
        self.program = program
        self.arguments = arguments
        self.variables = variables

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Order) and vars(self) == vars(other)

    def pack(self) -> bytes:
        words = [self.marker.encode(), self.program, b"%d" % len(self.arguments), *self.arguments]
        words += [name + b"=" + value for name, value in self.variables.items()]
        if any(b"\0" in word for word in words):
            raise OSError(errno.EINVAL, "an argument or a variable contains a NUL character")
        return b"".join(word + b"\0" for word in words)

    @classmethod
    def unpack(cls, data: bytes) -> Order:
        marker, program, count, *rest = data.split(b"\0")[:-1]
        arguments, pairs = rest[: int(count)], rest[int(count) :]
        variables = (pair.partition(b"=") for pair in pairs)
        named = {name: value for name, _, value in variables if name}
        return cls(marker.decode(), program, arguments, named)


class Started:
    def __init__(self, marker: str, pid: int) -> None:
        self.marker = marker
        self.pid = pid


class Starter:
    """Starts children, and reports the exit of each on its status descriptor."""

    def __init__(self, requests: _socket.socket, defaults: Iterable[int]) -> None:
        """`defaults`: signals that this process ignores and its children must not ignore."""
        self._requests = requests
        self._defaults = list(defaults)
        self._status: dict[int, int] = {}

    def serve(self) -> Started | None:
        """Answer the next request; returns the started child, or None."""
        descriptors = self._receive()
        try:
            if len(descriptors) != DESCRIPTORS:
                return None  # the gateway is gone; stdin ends too
            return self._start(*descriptors)
        finally:
            for descriptor in descriptors:
                if descriptor not in self._status.values():
                    os.close(descriptor)

    def reap(self) -> bool:
        """Reap all children that have ended, adopted ones too; returns whether any are left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            descriptor = self._status.pop(pid, None)
            if descriptor is not None:
                _report(descriptor, f"exit {os.waitstatus_to_exitcode(status)}")
                os.close(descriptor)

    def _receive(self) -> list[int]:
        found: list[int] = []
        size = struct.calcsize("i")
        space = _socket.CMSG_SPACE(DESCRIPTORS * size)
        _, ancillary, _, _ = self._requests.recvmsg(1, space, _socket.MSG_CMSG_CLOEXEC)
        for level, kind, data in ancillary:
            if (level, kind) == (_socket.SOL_SOCKET, _socket.SCM_RIGHTS):
                found += struct.unpack_from(f"{len(data) // size}i", data)
        return found

    def _start(self, status: int, words: int, folder: int, *streams: int) -> Started | None:
        order = Order.unpack(_read_all(words))
        told, tells = os.pipe()
        try:
            pid = os.fork()
            if pid == 0:
                self._become(order, folder, streams, tells)
        except OSError as error:
            os.close(tells)
            _report(status, f"failed {error.errno}")
            return None
        else:
            os.close(tells)
            trouble = os.read(told, 64)  # closed by the exec
        finally:
            os.close(told)
        if trouble:
            os.waitpid(pid, 0)
            _report(status, trouble.decode())
            return None
        self._status[pid] = status
        _report(status, f"started {pid}")
        return Started(order.marker, pid)

    def _become(self, order: Order, folder: int, streams: Sequence[int], tells: int) -> NoReturn:
        """Turn a forked child into the program; the exec closes every other descriptor."""
        stage = "nofolder"
        try:
            os.setsid()
            os.fchdir(folder)
            stage = "failed"
            marks.apply(order.marker)
            for number, descriptor in enumerate(streams):
                os.dup2(descriptor, number)
            for name in self._defaults:
                signal.signal(name, signal.SIG_DFL)
            os.execve(order.program, order.arguments, order.variables)
        except OSError as error:
            os.write(tells, f"{stage} {error.errno}".encode())
        finally:
            os._exit(255)


def _read_all(descriptor: int) -> bytes:
    data = b""
    while chunk := os.pread(descriptor, _READ_BYTES, len(data)):
        data += chunk
    return data


def _report(descriptor: int, line: str) -> None:
    try:
        os.write(descriptor, line.encode() + b"\n")
    except BrokenPipeError:
        pass  # the gateway does not read it any more
