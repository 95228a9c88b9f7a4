"""The built-in agent: its start, the cost of streaming, and searching without ripgrep."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.contenders import DRAGOMAN, PEERS, PYTHON_SDK, Arena, dragoman_command
from bench.installs import NotAvailable
from bench.row import Measure, Must, Row
from bench.rows.startup import startup_probe

TOKENS = 10_000
FILES, FOLDERS = 100_000, 100
PYDANTIC, RIPGREP = "pydantic-ai", "ripgrep"
STREAM_TIMEOUT = 120.0
PATTERN = r"function_\d+_999\("


@contextmanager
def start_probe(arena: Arena) -> Iterator[Measure]:
    def measure() -> float:
        with arena.start(dragoman_command("builtin")) as talk:
            talk.initialize()
            return 1000 * (time.perf_counter() - talk.started)

    measure()  # fills the caches, as in the row for other agents
    yield measure


@contextmanager
def model_server() -> Iterator[str]:
    command = [sys.executable, str(PEERS / "model.py"), str(TOKENS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        finally:
            server.terminate()


@contextmanager
def agent_stream_probe(arena: Arena) -> Iterator[Measure]:
    """CPU of the agent's process for one answer, from the kernel's books."""
    if not Path("/proc/self/stat").exists():
        raise NotAvailable("CPU time of others is read from /proc, which only Linux has")
    with model_server() as url:
        command = [sys.executable, "-P", "-m", "dragoman.builtin", "--forget"]
        with arena.start([*command, "--model", "openai:bench", "--base-url", url]) as talk:
            talk.initialize()
            session = talk.new_session(arena.workspace)

            def measure() -> float:
                before = cpu_seconds(talk.pid)
                params = {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}
                talk.request("session/prompt", params, STREAM_TIMEOUT)
                return cpu_seconds(talk.pid) - before

            measure()  # loads what speaks to models
            yield measure


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def pydantic_stream_probe(arena: Arena) -> Iterator[Measure]:
    with model_server() as url:
        command = [sys.executable, str(PEERS / "pydantic_stream.py"), url]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
            assert peer.stdin is not None and peer.stdout is not None
            stdin, stdout = peer.stdin, peer.stdout

            def measure() -> float:
                stdin.write("\n")
                stdin.flush()
                return float(stdout.readline())

            measure()
            try:
                yield measure
            finally:
                stdin.close()


def many_files(arena: Arena) -> Path:
    root = arena.workspace / "many"
    if not root.exists():
        for folder in range(FOLDERS):
            (root / f"{folder:03}").mkdir(parents=True)
            for number in range(FILES // FOLDERS):
                text = f"def function_{folder}_{number}(x):\n    return x\n" + "# a few words about it\n" * 20
                (root / f"{folder:03}" / f"{number:04}.py").write_text(text)
    return root


@contextmanager
def python_grep_probe(arena: Arena) -> Iterator[Measure]:
    from dragoman.builtin.files.search import search_in_python

    root = str(many_files(arena))
    expression = re.compile(PATTERN.encode(), re.MULTILINE)

    def measure() -> float:
        started = time.perf_counter()
        found = search_in_python(root, expression, None, FILES, threading.Event())
        assert len(found) == FOLDERS
        return 1000 * (time.perf_counter() - started)

    yield measure


@contextmanager
def ripgrep_probe(arena: Arena) -> Iterator[Measure]:
    program = shutil.which("rg")
    if program is None:
        raise NotAvailable("ripgrep is not installed")
    root = str(many_files(arena))

    def measure() -> float:
        started = time.perf_counter()
        subprocess.run([program, PATTERN, root], capture_output=True, check=True)
        return 1000 * (time.perf_counter() - started)

    yield measure


ROWS = (
    Row(
        "builtin-startup",
        "spawn to initialize, built-in agent",
        "ms",
        {DRAGOMAN: start_probe, PYTHON_SDK: startup_probe(PYTHON_SDK)},
        (Must("<=", 0.4, PYTHON_SDK),),
    ),
    Row(
        "builtin-stream",
        "CPU for 10,000 streamed tokens",
        "s",
        {DRAGOMAN: agent_stream_probe, PYDANTIC: pydantic_stream_probe},
        (Must("<=", 2, PYDANTIC),),
        rounds=3,
    ),
    Row(
        "builtin-grep",
        "search 100,000 files in Python",
        "ms",
        {DRAGOMAN: python_grep_probe, RIPGREP: ripgrep_probe},
        (Must("<=", 10, RIPGREP),),
        rounds=3,
    ),
)
