"""Calls back when a child process of the gateway exits.

The loop's own subprocess support is not used: with uvloop a child also inherits copies of its stdin, stdout
and stderr under higher numbers, which its own children keep open for ever, and starting one takes longer.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
from collections.abc import Callable

from dragoman.agents.custody.table import HAS_PIDFD

OnExit = Callable[[int | None], None]


def on_exit(child: subprocess.Popen[bytes], tell: OnExit) -> None:
    """Call `tell` with the return code, once, from the running loop, when the child has exited."""
    _on_exit(child, tell)


def _on_exit_by_pidfd(child: subprocess.Popen[bytes], tell: OnExit) -> None:
    loop = asyncio.get_running_loop()
    descriptor = os.pidfd_open(child.pid)

    def exited() -> None:
        loop.remove_reader(descriptor)
        os.close(descriptor)
        tell(child.wait())

    loop.add_reader(descriptor, exited)


def _on_exit_by_thread(child: subprocess.Popen[bytes], tell: OnExit) -> None:
    loop = asyncio.get_running_loop()

    def wait() -> None:
        returncode = child.wait()
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell, returncode)

    threading.Thread(target=wait, name=f"exit of {child.pid}", daemon=True).start()


_on_exit = _on_exit_by_pidfd if HAS_PIDFD else _on_exit_by_thread
