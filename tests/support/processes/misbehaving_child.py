"""Children that do what real agents, and what they start, have been seen to do: `misbehaving_child.py BEHAVIOUR`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable


def say(**message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def echo() -> None:
    for line in sys.stdin:
        sys.stdout.write(line)
        sys.stdout.flush()


def sleep_for_ever() -> None:
    while True:
        time.sleep(60)


def mark() -> None:
    say(pids=[os.getpid()], marker=os.environ.get("DRAGOMAN_CUSTODY"), cwd=os.getcwd())
    echo()


def stubborn() -> None:
    """Ignores the end of stdin and SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    say(pids=[os.getpid()])
    sys.stdin.read()
    sleep_for_ever()


def detached() -> None:
    """Leaves a grandchild in a session of its own, whose parent is gone, and which ignores SIGTERM."""
    readable, writable = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
            os.write(writable, str(os.getpid()).encode())
            os.close(writable)
            sleep_for_ever()
        os._exit(0)
    os.wait()
    say(pids=[os.getpid(), int(os.read(readable, 100))])
    echo()


def bare() -> None:
    """Starts a child without any environment in a session of its own."""
    child = subprocess.Popen(
        ["/bin/sleep", "1000"],
        env={},
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    say(pids=[os.getpid(), child.pid])
    echo()


def relaunch() -> None:
    """Starts itself again and waits for that, as gemini does."""
    child = subprocess.Popen([sys.executable, __file__, "echo"])
    say(pids=[os.getpid(), child.pid])
    sys.exit(child.wait())


def relaunch_stubborn() -> None:
    child = subprocess.Popen([sys.executable, __file__, "stubborn"])
    say(pids=[os.getpid(), child.pid])
    child.wait()


def holds_stdout() -> None:
    """Exits, but leaves a child that has its stdout and takes no notice of SIGTERM."""
    readable, writable = os.pipe()
    if (child := os.fork()) == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.write(writable, b"!")
        sleep_for_ever()
    os.read(readable, 1)
    say(pids=[os.getpid(), child])
    os._exit(3)


def flood_stderr() -> None:
    for number in range(20_000):
        sys.stderr.write(f"\x1b[31mline {number}\x1b[0m {'x' * 1000}\n")
    say(done=True)
    echo()


def endless_stderr_line() -> None:
    sys.stderr.write("y" * 1_000_000)
    sys.stderr.flush()
    say(done=True)
    echo()


def big_lines() -> None:
    """Exits right after it has written far more than a pipe holds."""
    for letter in "abcd":
        say(text=letter * 5_000_000)
    say(done=True)


def burst() -> None:
    os.write(1, b'{"n":1}\n' * 1000)


def signalled() -> None:
    say(last="words")
    sys.stderr.write("about to fall\n")
    sys.stderr.flush()
    os.kill(os.getpid(), signal.SIGKILL)


def fails() -> None:
    sys.stderr.write("no such model\n")
    sys.exit(7)


def closes_stdout() -> None:
    say(pids=[os.getpid()])
    os.close(1)
    sleep_for_ever()


def closes_stdin() -> None:
    os.close(0)
    say(pids=[os.getpid()])
    sleep_for_ever()


def never_reads() -> None:
    say(pids=[os.getpid()])
    sleep_for_ever()


def main() -> None:
    behaviours: dict[str, Callable[[], None]] = {
        name: value for name, value in globals().items() if callable(value)
    }
    behaviours[sys.argv[1]]()


if __name__ == "__main__":
    main()
