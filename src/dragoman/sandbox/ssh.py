"""A box on another machine, by SSH: one connection per box, shared by all its processes."""

from __future__ import annotations

import asyncio
import posixpath
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import PurePosixPath

from dragoman.agents.custody import CustodyError, Ward
from dragoman.gateway.ports.agent import AgentEnd
from dragoman.gateway.ports.sandbox import Enclosed
from dragoman.sandbox.box import Place, WorkspaceBox, digest
from dragoman.sandbox.entry import NO_FOLDER
from dragoman.sandbox.mounts import Mount
from dragoman.sandbox.reaper import SCRIPT, TOKEN, Reaper, ReaperError

CONNECT_PATIENCE = 30.0

_PROBLEMS = (
    # the message of ssh, its meaning, and the fix
    (
        r"Permission denied",
        "was refused by {host}",
        "Check the key: `ssh {host} true` must work without a question",
    ),
    (
        r"Host key verification failed",
        "does not know {host}'s key",
        "Connect once by hand, `ssh {host}`, and accept it",
    ),
    (
        r"Could not resolve|Connection refused|timed out|No route|unreachable",
        "cannot reach {host}",
        "Check that it is up and that `ssh {host} true` works",
    ),
)


class SshBox(WorkspaceBox):
    elsewhere = True

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._host = str(place.config.host)
        self._env = self.outside
        # A socket's path has 107 bytes at most, and ssh appends 17 while it creates the socket.
        self._socket = place.runtime / f"s{digest(self.key)[:8]}"
        self._master: tuple[asyncio.subprocess.Process, Ward] | None = None
        self._reaper: Reaper | None = None
        self._entering = asyncio.Lock()

    async def enclose(self, words: list[str], env: dict[str, str], cwd: str, *, agent: bool) -> Enclosed:
        reaper = await self._connect()
        token = reaper.admit()
        told = {**env, TOKEN: token}
        for name in ("PWD", "PATH", "HOME"):  # the other machine's, not ours
            if name not in self.place.config.env:
                told.pop(name, None)
        folder = cwd if self.place.lasting else "."
        inside, preface = self.entry(words, told, folder, stdin=agent)
        return Enclosed(
            self._ssh(shlex.join(inside)), self._env, "/", preface, leave=lambda: reaper.end(token)
        )

    def shown(self) -> Iterator[tuple[str, str]]:
        """Nothing of this machine: the folders are on the host."""
        return iter(())

    def explain(self, end: AgentEnd) -> str:
        if end.exit_code == NO_FOLDER:
            return f". The workspace is not on {self._host}; copy it there or set sandboxes.{self.name}.workspace"
        if end.exit_code == 255:
            return f". The connection to {self._host} broke"
        if end.exit_code == 127:
            return f". Its program is not on {self._host}, or not on PATH there (sandboxes.{self.name}.env)"
        return ""

    async def close(self) -> None:
        reaper, self._reaper = self._reaper, None
        if reaper is not None:
            await reaper.close()
        if self._master is not None:
            (_, ward), self._master = self._master, None
            await self.place.custody.end(ward)

    def _holds(self, mount: Mount, path: str) -> bool:
        # The files are on the host, so only names are compared.
        return PurePosixPath(posixpath.normpath(path)).is_relative_to(mount.host)

    def _ssh(self, *words: str) -> list[str]:
        options = ["-T", "-S", str(self._socket), "-o", "ControlMaster=no", "-o", "BatchMode=yes"]
        return ["ssh", *options, *self.place.config.options, self._host, "--", *words]

    async def _connect(self) -> Reaper:
        async with self._entering:
            if self._reaper is not None and self._reaper.alive:
                return self._reaper
            if shutil.which("ssh", path=self._env.get("PATH")) is None:
                raise self.place.error(
                    "needs the program ssh, which is not on PATH", "Install OpenSSH's client"
                )
            if self._master is None or self._master[0].returncode is not None:
                await self._open_master()
            try:
                self._reaper = await Reaper.start(
                    self._ssh(shlex.join(["sh", "-c", SCRIPT])), self._env, self.place.custody
                )
            except ReaperError as error:
                raise self._problem(str(error)) from error
            return self._reaper

    async def _open_master(self) -> None:
        """Open the master connection that all others share: the key is checked once, and errors appear here."""
        self.place.runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._socket.unlink(missing_ok=True)
        options = [
            "-M",
            "-N",
            "-T",
            "-S",
            str(self._socket),
            "-o",
            "ControlPersist=no",
            "-o",
            "BatchMode=yes",
        ]
        alive = ["-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4"]
        try:
            ward = self.place.custody.admit()
        except CustodyError as error:
            raise self.place.error("cannot start ssh", str(error)) from error
        child = await asyncio.create_subprocess_exec(
            *("ssh", *options, *alive, *self.place.config.options, self._host),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=ward.mark(self._env),
            start_new_session=True,
        )
        self.place.custody.started(ward, child.pid)
        try:
            async with asyncio.timeout(CONNECT_PATIENCE):
                while not self._socket.exists() and child.returncode is None:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)  # there is no event for a new socket
        except TimeoutError:
            await self.place.custody.end(ward)
        if child.returncode is None and self._socket.exists():
            self._master = (child, ward)
            return
        assert child.stderr is not None
        said = (await child.stderr.read()).decode(errors="replace")
        await self.place.custody.end(ward)
        raise self._problem(said)

    def _problem(self, said: str) -> Exception:
        tail = said.strip()[-2000:]
        for sign, problem, fix in _PROBLEMS:
            if re.search(sign, said):
                return self.place.error(
                    problem.format(host=self._host), f"{fix.format(host=self._host)}.\n{tail}"
                )
        return self.place.error(f"cannot connect to {self._host}", f"Check `ssh {self._host} true`.\n{tail}")
