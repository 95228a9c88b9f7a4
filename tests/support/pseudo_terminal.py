"""A terminal with a person at it: a program on a pseudo terminal, what it shows, and keys."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path

from support.rpc_peer import PATIENCE

CTRL_C, CTRL_D = "\x03", "\x04"
ROWS, COLUMNS = 40, 120
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


class Terminal:
    """`dragoman ARGUMENTS` as a person runs it; use it in a `with`."""

    def __init__(self, *arguments: str, env: Mapping[str, str], cwd: Path) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dragoman", *arguments],
            env=dict(env),
            cwd=cwd,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl-C is a signal
        )
        os.close(slave)
        self.raw = ""

    @property
    def shown(self) -> str:
        """Everything so far, without colours."""
        return _STYLE.sub("", self.raw).replace("\r\n", "\n")

    def until(self, text: str, timeout: float = PATIENCE, *, times: int = 1) -> None:
        """Wait until `text` is shown, or shown so many times."""
        deadline = time.monotonic() + timeout
        while self.shown.count(text) < times:
            left = deadline - time.monotonic()
            assert left > 0 and self._read(left), f"{text!r} did not come:\n{self.shown}"

    def type(self, keys: str) -> None:
        self.type_bytes(keys.encode())

    def type_bytes(self, data: bytes) -> None:
        os.write(self._master, data)

    def end(self, timeout: float = PATIENCE) -> int:
        """Wait for the program to end; returns its exit code."""
        deadline = time.monotonic() + timeout
        while self._read(max(0.0, deadline - time.monotonic())):
            pass
        return self.process.wait(max(0.1, deadline - time.monotonic()))

    def ended(self, timeout: float = 0.05) -> bool:
        """Whether the program has ended; waits a moment for what it shows."""
        self._read(timeout)
        return self.process.poll() is not None and not self._read(0)

    def _read(self, timeout: float) -> bool:
        if not select.select([self._master], [], [], timeout)[0]:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # EIO: the other side is closed
            return False
        self.raw += data.decode(errors="replace")
        return bool(data)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)
