"""A pipe end that is handed to the event loop and closed exactly once.

uvloop lets libuv close the descriptor and then closes the file object as well (uvloop#763). In between, the number may
have been given to another thread, which then loses what it just opened: a folder, a socket, the database.
"""

from __future__ import annotations

import asyncio
import os
from typing import IO


class LoopPipe:
    """A pipe taken over from a file object, for `connect_read_pipe` and `connect_write_pipe`."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._descriptor = os.dup(pipe.fileno())
        pipe.close()
        self._closed_by_loop = type(asyncio.get_running_loop()).__module__.startswith("uvloop")

    def fileno(self) -> int:
        if self._descriptor < 0:
            raise ValueError("the pipe is closed")
        return self._descriptor

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0 and not self._closed_by_loop:
            os.close(descriptor)
