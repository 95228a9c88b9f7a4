"""Starts the real `dragoman acp` as a process, with a home of its own, and speaks to it raw."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
import uuid
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from support.fork_server import ForkedProcess, start_forked
from support.rpc_peer import PATIENCE, Framing, RpcPeer
from support.waiting import runs

SCRIPTED_AGENT = Path(__file__).parent / "agents" / "scripted_agent.py"
MARK = "TEST_GATEWAY_MARK"
LINE_LIMIT = 256 * 1024 * 1024

Table = dict[str, Any]


def agent(*flags: str, **settings: Any) -> Table:
    """The configuration of a scripted agent that starts with `flags`."""
    command = [sys.executable, "-S", "-E", str(SCRIPTED_AGENT), *flags]
    return {"kind": "acp", "command": command, **settings}


def toml(table: Mapping[str, Any], path: str = "") -> str:
    """Just enough TOML for a configuration: scalars first, then the tables below."""
    scalars = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    lines = [f"[{path}]"] if path and scalars else []
    lines += [f"{key} = {_toml_value(value)}" for key, value in scalars.items()]
    below = [toml(value, f"{path}.{key}".lstrip(".")) for key, value in table.items() if key not in scalars]
    return "\n".join([*lines, *below]) + "\n"


def with_test_defaults(config: Mapping[str, Any]) -> Table:
    """The configuration with `policy.remember = "agent"` and without checkpoints, unless it says otherwise.

    Most tests answer with options of the scripted agent and see them arrive; those about our own answers set "gateway".
    A prompt waits for its checkpoint, which takes several processes: tests about them have a table `checkpoints`.
    """
    without = {"checkpoints": {"enabled": False}}
    return {**without, **config, "policy": {"remember": "agent", **config.get("policy", {})}}


def _toml_value(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        tables = (", ".join(f"{k} = {_toml_value(v)}" for k, v in entry.items()) for entry in value)
        return "[" + ", ".join(f"{{ {entry} }}" for entry in tables) + "]"
    return json.dumps(value)


class GatewayProcess(RpcPeer):
    """A running gateway and the one client that talks to it over its pipes."""

    process: Process | ForkedProcess

    @classmethod
    async def start(
        cls,
        home: Path,
        *arguments: str,
        config: Table | None = None,
        env: Mapping[str, str] | None = None,
        framing: Framing | None = None,
        cwd: Path | None = None,
        prefix: Sequence[str] = (),
    ) -> GatewayProcess:
        """Start `dragoman ARGUMENTS` with `config` as its only configuration; `prefix` is what runs it."""
        home.mkdir(parents=True, exist_ok=True)
        if config is not None:
            fresh = home / "config.toml.new"  # another one on the same files may be reading it
            fresh.write_text(toml(with_test_defaults(config)))
            fresh.replace(home / "config.toml")
        mark = uuid.uuid4().hex
        environment = {**clean_environment(), "DRAGOMAN_HOME": str(home), MARK: mark, **(env or {})}
        if not prefix and not any(name.startswith("PYTHON") for name in env or ()):
            process: Process | ForkedProcess = await start_forked(
                "gateway", arguments, environment, cwd or home, LINE_LIMIT
            )
        else:
            process = await asyncio.create_subprocess_exec(
                *(*prefix, sys.executable, "-m", "dragoman", *arguments),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment,
                cwd=cwd or home,
                limit=LINE_LIMIT,
            )
        assert process.stdin and process.stdout and process.stderr
        gateway = cls(process.stdout, process.stdin, framing)
        gateway.process, gateway.mark, gateway.home = process, mark, home
        gateway.line = f"{sys.executable} -m dragoman {' '.join(arguments)}"
        gateway.listens = "--port" in arguments
        gateway._drain = asyncio.create_task(gateway._collect(process.stderr))
        return gateway

    def __init__(self, *streams: Any) -> None:
        super().__init__(*streams)
        self.stderr = ""
        self.home = Path()
        self.mark = ""
        self.line = ""
        self.listens = False
        self._left = False
        self.connections: list[RpcPeer] = []
        self._drain: asyncio.Task[None]
        self._stderr_changed = asyncio.Event()

    async def _collect(self, stream: asyncio.StreamReader) -> None:
        while chunk := await stream.read(65536):
            self.stderr += chunk.decode(errors="replace")
            self._stderr_changed.set()

    async def logged(self, pattern: str, timeout: float = PATIENCE) -> re.Match[str]:
        """Wait until stderr holds `pattern`."""
        async with asyncio.timeout(timeout):
            while not (found := re.search(pattern, self.stderr)):
                self._stderr_changed.clear()
                await self._stderr_changed.wait()
        return found

    async def connect(self, port: int, framing: Framing | None = None) -> RpcPeer:
        """One more client, over TCP (`acp --port`)."""
        peer = RpcPeer(*await self.open(port), framing)
        self.connections.append(peer)
        return peer

    async def open(self, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A bare TCP connection, once the gateway listens."""
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    return await asyncio.open_connection("127.0.0.1", port, limit=LINE_LIMIT)
                except ConnectionRefusedError:
                    assert self.process.returncode is None, f"ended before it listened:\n{self.stderr}"
                    await asyncio.sleep(0.02)  # nothing tells another process that a port is open now

    async def wait_exit(self, timeout: float = PATIENCE) -> int:
        """Wait for the process to end; returns its exit code."""
        async with asyncio.timeout(timeout):
            code = await self.process.wait()
            await self._drain
        return code

    def processes(self) -> dict[int, str]:
        """Every process that this gateway started, itself included, whatever its parent is now."""
        found = marked_processes(self.mark)
        if isinstance(self.process, ForkedProcess) and runs(self.process.pid):
            found[self.process.pid] = self.line  # forked, so its own mark cannot be seen from outside
        return found

    async def no_process_left(self, timeout: float = PATIENCE) -> None:
        await gone(lambda: self.processes(), timeout)

    def leave(self) -> None:
        """Disconnect; the gateway ends by itself once no other client watches its sessions."""
        if self.process.returncode is None and not self._left:
            self._left = True
            self.eof()
            self.resume()
            if self.listens:
                self.process.send_signal(signal.SIGTERM)  # no stdin whose end would tell it

    async def kill(self) -> None:
        """`kill -9`, and wait until it is dead; what it had written before can still be read."""
        end_process(self.process.pid)
        await self.wait_exit()

    def end_agents(self) -> None:
        """`kill -9` of its scripted agents: ending those that take no hint takes seconds, and has tests of its own."""
        for pid, command in self.processes().items():
            if SCRIPTED_AGENT.name in command:
                end_process(pid)

    async def stop(self, expect_clean: bool = True) -> None:
        """End it as a leaving client does, and make sure that nothing stays behind."""
        try:
            self.leave()
            await self.wait_exit()
            if expect_clean:
                await self.no_process_left()
        finally:
            for pid in self.processes():
                end_process(pid)
            for connection in self.connections:
                await connection.close()
            await self.close()

    async def __aenter__(self) -> GatewayProcess:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.stop(expect_clean=exception[0] is None)


Start = Callable[..., Awaitable[GatewayProcess]]
"""The `dragoman` fixture: starts a gateway that ends with the test."""


def clean_environment() -> dict[str, str]:
    """This process's environment without any setting of Dragoman's; `TESTED_JOURNAL=off` tests without a journal."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("DRAGOMAN_")}
    if clean.get("TESTED_JOURNAL") == "off":
        clean["DRAGOMAN_SESSIONS_JOURNAL"] = "false"
    return clean


def marked_processes(mark: str) -> dict[int, str]:
    """Live processes that inherited `mark`, by pid, with their command lines."""
    wanted = f"{MARK}={mark}".encode()
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue  # ended meanwhile, or of another user
    return found


async def gone(processes: Any, timeout: float = PATIENCE) -> None:
    """Wait until `processes()` is empty."""
    try:
        async with asyncio.timeout(timeout):
            while processes():
                await asyncio.sleep(0.02)  # the end of another process's child raises no event here
    except TimeoutError:
        raise AssertionError(f"still running: {processes()}") from None


def end_process(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def is_alive(pid: int) -> bool:
    """Running, and not merely a zombie that was not reaped yet."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # it ended before, or while it was read
        return False
    return state != "Z"
