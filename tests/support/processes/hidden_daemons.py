"""Leaves a daemon behind that hides in one way or another, and prints its pid: `hidden_daemons.py KIND`.

    ssh-agent     not dumpable, so that only root can read its environment
    empty         started with an empty environment
    overwritten   writes over its own environment, as programs do that set their title
    unlimited     started with an empty environment and with resource limits of its own

All of them are in a session of their own, and their parent is gone.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable

RLIMIT_LOCKS = 10
READY = 3
"""The descriptor whose end tells that a daemon has become what it is to be."""


def ssh_agent() -> int:
    done = subprocess.run(
        ["ssh-agent", "-s"], capture_output=True, text=True, check=True, env={"TMPDIR": "/tmp"}
    )
    found = re.search(r"SSH_AGENT_PID=(\d+)", done.stdout)
    assert found is not None
    return int(found[1])


def empty() -> int:
    return detach(sleep)


def overwritten() -> int:
    return detach(lambda: os.execv(sys.executable, [sys.executable, "-S", "-E", __file__, "overwrite"]))


def unlimited() -> int:
    def live() -> None:
        resource.setrlimit(RLIMIT_LOCKS, (7, 7))
        sleep()

    return detach(live)


def sleep() -> None:
    os.set_inheritable(READY, False)
    os.execve("/bin/sleep", ["sleep", "1000"], {})


def overwrite() -> None:
    variables = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    addresses = ctypes.cast(variables, ctypes.POINTER(ctypes.c_void_p))
    index = 0
    while variables[index]:
        ctypes.memset(addresses[index] or 0, 0, len(variables[index] or b""))
        index += 1
    os.close(READY)
    while True:
        time.sleep(1000)


def detach(live: Callable[[], object]) -> int:
    """The pid of a grandchild that runs `live` in a session of its own."""
    readable, writable = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
            os.write(writable, b"%d" % os.getpid())
            os.dup2(writable, READY)
            if writable != READY:
                os.close(writable)
            live()
        os._exit(0)
    os.wait()
    os.close(writable)
    told = b""
    while chunk := os.read(readable, 100):
        told += chunk
    return int(told)


KINDS: dict[str, Callable[[], int]] = {
    "ssh-agent": ssh_agent,
    "empty": empty,
    "overwritten": overwritten,
    "unlimited": unlimited,
}

if __name__ == "__main__":
    if sys.argv[1] == "overwrite":
        overwrite()
    print(KINDS[sys.argv[1]](), flush=True)
