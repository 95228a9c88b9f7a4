"""Containers of podman or docker: one per workspace, made on first use, shared by all sessions of the workspace."""

from __future__ import annotations

import asyncio
import fcntl
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_address
from itertools import pairwise
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from dragoman.gateway.ports.agent import AgentEnd
from dragoman.gateway.ports.sandbox import Enclosed
from dragoman.sandbox.box import Place, WorkspaceBox
from dragoman.sandbox.own_folders import bound
from dragoman.sandbox.reaper import SCRIPT, TOKEN, Reaper, ReaperError

LABEL = "dragoman"
IDLE = "trap 'exit 0' TERM; while :; do sleep 86400 & wait $!; done"
"""The main process of a container: waits until it is stopped."""

ADDRESS_OPTIONS = ("-H", "--host", "--url")
ADDRESS_VARIABLES = ("DOCKER_HOST", "CONTAINER_HOST")
"""Options and variables that give the address of an engine, for docker and podman."""

NAME_TAKEN = "already in use"
"""In the message of both engines if a container's name exists."""

ENGINE_PATIENCE = 60.0
HOME = "/root"
"""Where login files are shown unless `home` is set: the home folder of most images' user."""

RIGHTS = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID")
"""Capabilities that root in a container gets: enough to own files of another user outside, to install packages,
and to end processes."""

_PROBLEMS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    # the engine's message, its meaning, and the fix
    (
        ("Cannot connect to", "connection refused", "no such host", "daemon running"),
        "cannot reach its engine",
        "Start it, or see `{engine} info`",
    ),
    (("permission denied",), "may not use its engine", "See `{engine} info`; your user may lack a group"),
    (
        ("no such container", "No such container"),
        "lost its container",
        "It is made again with the next session",
    ),
)


class ContainerBox(WorkspaceBox):
    """A container; the sandbox's kind is the name of the engine's program."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.container = f"dragoman-{self.key}"
        self._engine = place.config.engine or [place.config.kind]
        self.elsewhere = self.elsewhere or is_far(self._engine, place.environ)
        self._reaper: Reaper | None = None
        self._lock: IO[str] | None = None
        self._entering = asyncio.Lock()
        self._inside = 0
        """Number of agents and commands that still run inside."""

    async def enclose(self, words: list[str], env: dict[str, str], cwd: str, *, agent: bool) -> Enclosed:
        inside, preface = self.entry(words, env, stdin=agent)
        reaper = await self._enter()
        token = reaper.admit()
        self._inside += 1
        command = [
            *(*self._engine, "exec", "--interactive", "--workdir", cwd),
            *("--env", f"{TOKEN}={token}", self.container, *inside),
        ]
        return Enclosed(command, self.outside, "/", preface, leave=lambda: self._leave(reaper, token))

    def shown(self) -> Iterator[tuple[str, str]]:
        yield from super().shown()
        yield from ((path, f"sandboxes.{self.name}.options") for path in bound(self.place.config.options))

    def explain(self, end: AgentEnd) -> str:
        if end.exit_code == 127:
            return f". The image {self.place.config.image} may lack its program"
        if end.exit_code == 137 or self._reaper is None or not self._reaper.alive:
            look = f"{self._engine[0]} logs {self.container}"
            return f". Its container {self.container} ended or lacks memory; see `{look}`"
        return ""

    async def close(self) -> None:
        reaper, self._reaper = self._reaper, None
        if reaper is not None:
            await reaper.close()
        if self._lock is None:
            return
        lock, self._lock = self._lock, None
        with lock:
            if (not self.place.config.keep or not self.place.lasting) and _is_ours_alone(lock):
                at_once = ["--time", "1"] if self.place.config.kind == "podman" else []  # docker kills anyway
                await self._run("rm", "--force", *at_once, self.container)

    # -- the container

    async def _leave(self, reaper: Reaper, token: str) -> None:
        await reaper.end(token)
        self._inside -= 1
        if not self._inside and not self.place.lasting:
            await self.close()

    async def _enter(self) -> Reaper:
        """Start the container and its reaper if needed; while the reaper lives, the engine is not asked again."""
        async with self._entering:
            if self._reaper is not None and self._reaper.alive:
                return self._reaper
            if shutil.which(self._engine[0], path=self.place.environ.get("PATH")) is None:
                raise self.place.error(
                    f"needs the program {self._engine[0]}, which is not on PATH", f"Install {self._engine[0]}"
                )
            if self._lock is None:
                self._lock = await asyncio.to_thread(self._share)
            await self._make_run()
            words = [*self._engine, "exec", "--interactive", self.container, "sh", "-c", SCRIPT]
            try:
                self._reaper = await Reaper.start(words, self.outside, self.place.custody)
            except ReaperError as error:
                raise self._problem(str(error), "cannot run a shell inside") from error
            return self._reaper

    async def _make_run(self) -> None:
        if await self._start_existing():
            return
        image = str(self.place.config.image)
        code, _, said = await self._run("image", "inspect", "--format", "{{.Id}}", image)
        if code != 0:
            raise self._problem(
                said,
                f"needs the image {image}, which is not on this machine",
                f"Get it with `{' '.join(self._engine)} pull {image}`, or build it",
            )
        code, _, said = await self._run(*self._run_words())
        if code == 0 or (NAME_TAKEN in said and await self._start_existing()):  # another gateway was faster
            return
        raise self._problem(said, "cannot make its container")

    async def _start_existing(self) -> bool:
        """Start the container if it exists and is stopped; returns whether it exists."""
        code, state, _ = await self._run(
            "container", "inspect", "--format", "{{.State.Running}}", self.container
        )
        if code == 0 and state.strip() != "true":
            failed, _, said = await self._run("start", self.container)
            if failed:
                raise self._problem(said, f"cannot start its container {self.container}")
        return code == 0

    def _run_words(self) -> Iterator[str]:
        config = self.place.config
        yield from ("run", "--detach", "--name", self.container, "--label", LABEL)
        yield from (
            "--label",
            f"{LABEL}.sandbox={self.name}",
            "--label",
            f"{LABEL}.workspace={self.place.workspace}",
        )
        # Before `options`, which may add or drop more.
        yield from ("--security-opt", "no-new-privileges", "--cap-drop", "ALL")
        for name in () if _drops_all(config.options) else RIGHTS:
            yield from ("--cap-add", name)
        for mount in self.mounts:
            yield from ("--volume", f"{mount.real}:{mount.inside}:{'rw' if mount.writable else 'ro'}")
        for file in self.place.logins:
            yield from ("--volume", f"{file}:{self._in_home(file)}:ro")
        for host in config.hosts:
            yield from ("--add-host", host)
        limits = {
            "--memory": config.memory,
            "--cpus": f"{config.cpus:g}" if config.cpus else None,
            "--pids-limit": str(config.processes) if config.processes else None,
            "--user": config.user,
            "--network": None if config.network else "none",
        }
        for option, value in limits.items():
            if value is not None:
                yield from (option, value)
        yield from (*config.options, "--workdir", self.mounts[0].inside, "--entrypoint", "sh")
        yield from (str(config.image), "-c", IDLE)

    def _in_home(self, file: Path) -> str:
        home = Path.home()
        below = file.relative_to(home) if file.is_relative_to(home) else Path(file.name)
        return str(Path(self.place.config.home or HOME, below))

    # -- the engine

    async def _run(self, *words: str) -> tuple[int, str, str]:
        """Run an engine command; not in custody, since a container outlives us if `keep` is set."""
        # In a thread: uvloop's pipes are inherited by the container's monitor, and then never end.
        try:
            done = await asyncio.to_thread(_run, [*self._engine, *words], self.outside)
        except subprocess.TimeoutExpired as error:
            raise self.place.error(
                f"got no answer from {self._engine[0]} {words[0]} within {ENGINE_PATIENCE:g} s",
                f"See `{self._engine[0]} info`",
            ) from error
        return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")

    def _problem(self, said: str, problem: str, fix: str = "See what it says below") -> Exception:
        for signs, meaning, remedy in _PROBLEMS:
            if any(sign in said for sign in signs) and "image" not in problem:
                problem, fix = meaning, remedy.format(engine=" ".join(self._engine))
                break
        else:
            if any(sign in said for sign in _PROBLEMS[0][0]):
                problem, fix = _PROBLEMS[0][1], _PROBLEMS[0][2].format(engine=" ".join(self._engine))
        return self.place.error(problem, f"{fix}.\n{said.strip()[-2000:]}")

    def _share(self) -> IO[str]:
        """Take a shared lock that tells the user's other processes that the container is in use."""
        folder = self.place.runtime / "boxes"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (folder / f"{self.container}.lock").open("w")
        fcntl.flock(lock, fcntl.LOCK_SH)
        return lock


def is_far(engine: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Whether an engine runs on another machine, as its address says; then its folders are on that machine too."""
    words = [part for word in engine for part in word.split("=", 1)]
    named = [after for word, after in pairwise(words) if word in ADDRESS_OPTIONS]
    return any(_is_far(address) for address in (*named, *map(environ.get, ADDRESS_VARIABLES)) if address)


def _is_far(address: str) -> bool:
    try:
        host = urlsplit(address).hostname
        return host is not None and host != "localhost" and not ip_address(host).is_loopback
    except ValueError:  # a name, not an address
        return True


def _drops_all(options: Sequence[str]) -> bool:
    words = " ".join(options).replace("=", " ").lower()
    return "--cap-drop all" in words


def _run(words: Sequence[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=env,
        start_new_session=True,
        timeout=ENGINE_PATIENCE,
        check=False,
    )


def _is_ours_alone(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
