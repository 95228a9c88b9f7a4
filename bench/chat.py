"""`python -m bench.chat`: what `dragoman chat` costs on a pseudo terminal, beside `dragoman exec`.

First prompt sign and memory then; processor time of 10,000 streamed tokens, all processes together; the time from a key
to its echo while 100,000 lines are printed.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import tty
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.installs import ROOT

STARTS = 7
TOKENS = 10_000
LINES = 100_000
KEYS = 200
KEY_PAUSE = 0.02
LIMIT = 300.0
END = b"that is all"


class Terminal:
    """A program on a pseudo terminal of 80 × 24."""

    def __init__(self, arguments: Sequence[str], home: Path) -> None:
        self._master, slave = pty.openpty()
        tty.setraw(slave)  # a program that does not change it gets bytes as they are
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        env = {**os.environ, "DRAGOMAN_HOME": str(home), "TERM": "xterm-256color"}
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dragoman", *arguments],
            env=env, cwd=home, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self.seen = b""

    def write(self, data: bytes) -> None:
        os.write(self._master, data)

    def read(self, timeout: float) -> bytes:
        if not select.select([self._master], [], [], timeout)[0]:
            return b""
        try:
            data = os.read(self._master, 1 << 20)
        except OSError:
            return b""
        self.seen = (self.seen + data)[-(1 << 16) :]
        return data

    def until(self, text: bytes) -> float:
        """Read until the text comes; returns the seconds since the program was started."""
        deadline = time.perf_counter() + LIMIT
        while text not in self.seen:
            if time.perf_counter() > deadline or (not self.read(1.0) and self.process.poll() is not None):
                raise TimeoutError(f"{text!r} did not come: {self.seen[-2000:]!r}")
        return time.perf_counter() - self.began

    def memory(self) -> float:
        """Resident megabytes of the program itself."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    def worked(self) -> float:
        """Milliseconds that the program itself was on a processor: comparable when others use the machine too."""
        return int(Path(f"/proc/{self.process.pid}/schedstat").read_text().split()[0]) / 1e6

    def end(self) -> float:
        """Leave with Ctrl-D; returns the processor seconds of the program and its children."""
        self.write(b"\x04")
        while self.read(1.0):
            pass
        _, _, used = os.wait4(self.process.pid, 0)
        self.process.returncode = 0
        os.close(self._master)
        return used.ru_utime + used.ru_stime

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        os.close(self._master)


def starts(home: Path) -> tuple[float, float, float, float]:
    """Milliseconds to the first prompt sign (median) and of work for it, its memory, and the memory with a session."""
    times, works, first, later = [], [], 0.0, 0.0
    for _ in range(STARTS):
        terminal = Terminal(["chat"], home)
        times.append(terminal.until(b"> ") * 1000)
        works.append(terminal.worked())
        first = terminal.memory()
        terminal.until(b"Enter sends")
        later = terminal.memory()
        terminal.end()
    return sorted(times)[STARTS // 2], sorted(works)[STARTS // 2], first, later


class Tokens(NamedTuple):
    all: float
    """Processor seconds with the start."""
    more: float
    """Processor seconds beyond those for one token."""


def tokens(run: Callable[[Path, int], float], home: Path) -> Tokens:
    one, many = (median(lambda count=count: run(home, count)) for count in (1, TOKENS))  # type: ignore[misc]
    return Tokens(many, max(many - one, 0.001))


def tokens_in_chat(home: Path, count: int) -> float:
    terminal = Terminal(["chat"], home)
    terminal.until(b"Enter sends")
    terminal.write(f"tokens {count}\r".encode())
    terminal.until(END)
    return terminal.end()


def tokens_in_exec(home: Path, count: int) -> float:
    terminal = Terminal(["exec", f"tokens {count}"], home)
    terminal.until(END)
    return terminal.end()


def latencies(home: Path) -> tuple[list[float], list[float]]:
    """Milliseconds from each key to its echo, while lines are printed; and of work of the chat meanwhile."""
    terminal = Terminal(["chat"], home)
    terminal.until(b"Enter sends")
    terminal.write(f"lines {LINES}\r".encode())
    terminal.until(b"line 100 of")
    found, works = [], []
    for number in range(KEYS):
        key = chr(0x100 + number).encode()
        began, worked = time.perf_counter(), terminal.worked()
        terminal.write(key)
        seen = b""
        while key not in seen and time.perf_counter() - began < LIMIT:
            seen += terminal.read(0.5)
        found.append((time.perf_counter() - began) * 1000)
        works.append(terminal.worked() - worked)
        if END in terminal.seen:
            break
        until = time.perf_counter() + KEY_PAUSE
        while (left := until - time.perf_counter()) > 0:
            terminal.read(left)
    terminal.kill()
    return sorted(found), sorted(works)


def median(measure: Callable[[], float], times: int = 3) -> float:
    return sorted(measure() for _ in range(times))[times // 2]


def main() -> None:
    home = Path(tempfile.mkdtemp(prefix="bench-chat-"))
    command = [sys.executable, "-S", "-E", str(ROOT / "bench" / "peers" / "tokens.py")]
    (home / "config.toml").write_text(
        f'default_agent = "tokens"\n[agents.tokens]\nkind = "acp"\ncommand = {command!r}\n'
    )
    try:
        first, work, memory, with_session = starts(home)
        print(f"first prompt sign      {first:7.0f} ms   {work:.0f} ms of work (at most 300)")
        print(f"memory then            {memory:7.0f} MB   (at most 60)")
        print(f"memory with a session  {with_session:7.0f} MB")
        chat, exec_ = (tokens(run, home) for run in (tokens_in_chat, tokens_in_exec))
        print(
            f"{TOKENS:,} tokens, chat    {chat.all:7.2f} s of processor time, {chat.more:.2f} s more than for one"
        )
        print(
            f"{TOKENS:,} tokens, exec    {exec_.all:7.2f} s of processor time, {exec_.more:.2f} s more than for one"
        )
        print(
            f"chat / exec            {chat.more / exec_.more:7.2f}      (at most 1.5); "
            f"{chat.all / exec_.all:.2f} with the start"
        )
        keys, works = latencies(home)
        half, worst = (keys[len(keys) // 2], keys[int(len(keys) * 0.99)])
        print(f"key to echo, {len(keys):3} keys  {half:7.1f} ms median, {worst:.1f} ms p99 (at most 16)")
        half, worst = (works[len(works) // 2], works[int(len(works) * 0.99)])
        print(f"work meanwhile         {half:7.1f} ms median, {worst:.1f} ms p99")
        print(f"load of the machine    {os.getloadavg()[0]:7.1f}")
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
