"""Runs a Python module that is killed (SIGKILL) before the N-th line that it executes in some files of dragoman.

kill_at_line.py N FILE,FOLDER,… PYTHON -m MODULE ARGUMENTS
"""

from __future__ import annotations

import itertools
import os
import runpy
import signal
import sys
import threading
from types import FrameType
from typing import Any


def kill_at(line: int, marks: tuple[str, ...]) -> None:
    lines = itertools.count(1)
    watched: dict[str, bool] = {}

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if name not in watched:
            watched[name] = any(mark in name for mark in marks)
        if not watched[name] or frame.f_code.co_name == "<module>":
            return None
        if event == "line" and next(lines) == line:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    threading.settrace(trace)
    sys.settrace(trace)


if __name__ == "__main__":
    at, files, (_, _, module, *arguments) = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    sys.argv = [module, *arguments]
    kill_at(at, tuple(f"dragoman/{file}" for file in files.split(",")))
    runpy.run_module(module, run_name="__main__")
