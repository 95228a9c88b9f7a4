"""Builds a gateway from its parts, for every command that runs one."""

from __future__ import annotations

import asyncio
import functools
import gc
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman import machine
from dragoman.agents.cache import FileCapabilityCache
from dragoman.agents.configured import ConfiguredAgents
from dragoman.agents.custody import Custody
from dragoman.agents.known import known_layer
from dragoman.agents.launcher import ProcessLauncher
from dragoman.agents.secrets import SecretError, resolve_secrets
from dragoman.cli.audit.opening import open_audit, secrets_of
from dragoman.cli.conversion.older_versions import convert_old_answers, convert_old_sessions
from dragoman.cli.entry import complain
from dragoman.cli.policy.opening import Policies, open_remembered
from dragoman.cli.sessions.unlisted import UNLISTED_SECONDS, log_unlisted
from dragoman.cli.settings import here
from dragoman.cli.worktrees.opening import open_commits, open_worktrees
from dragoman.config.errors import ConfigError
from dragoman.config.load import load
from dragoman.config.model import AgentConfig, Config
from dragoman.config.paths import Paths
from dragoman.gateway.access.client import Terms
from dragoman.gateway.access.identity import AGENT
from dragoman.gateway.client import ClientConnection
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.ports.audit import Audit
from dragoman.gateway.ports.checkpoints import Checkpoints
from dragoman.gateway.ports.sandbox import Box, Boxes
from dragoman.gateway.ports.store import Store, StoreError, StoreReadOnly
from dragoman.gateway.ports.witness import Several, Witness
from dragoman.gateway.runtime import Outside
from dragoman.search.feeder import Feeder
from dragoman.services import WorkspaceServices
from dragoman.transports.dial import UnixDialer
from dragoman.transports.followers import SocketFollowers
from dragoman.transports.listen import Listener, ListenError
from dragoman.wire.errors import internal

if TYPE_CHECKING:
    from dragoman.server.monitoring.traces import Traces

log = logging.getLogger(__name__)

OTEL_WANTED = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_TRACES_EXPORTER")

FILES = 16384
"""Open files to allow, if the system permits: a live session has its journal, its lock, and the pipes of its agent."""

COLLECT_AFTER = 5_000
"""New objects until garbage is looked for: with Python's 700, one turn in twenty waits for that."""
SWITCH_INTERVAL = 0.001
"""Seconds between thread switches: with Python's 5 ms, waiting for a thread that reads a journal adds latency."""


def run_loop(work: Coroutine[Any, Any, int]) -> int:
    """Run `work` on uvloop if it is installed, since its pipes are several times faster; else on asyncio."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    return uvloop.run(work)


def stop_on_signals(hangup: asyncio.Event | None = None) -> asyncio.Event:
    """An event that SIGTERM and SIGINT set; SIGHUP sets `hangup` if given, else the same event."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    loop.add_signal_handler(signal.SIGHUP, (hangup or stopped).set)
    return stopped


async def first_of(*waits: Coroutine[Any, Any, object], timeout: float | None = None) -> None:
    """Wait until one of them is done or the time is over, then cancel the others."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    await asyncio.wait(tasks, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()


@asynccontextmanager
async def gateway(
    config: Config,
    paths: Paths,
    *,
    sandbox: str | None = None,
    witnesses: Iterable[Witness] = (),
) -> AsyncIterator[Gateway]:
    """A running gateway, with all of its agents in `sandbox` if given; at the end everything it started is ended."""
    machine.raise_file_limit(FILES)
    custody = Custody(_custody_records(paths))
    custody.start_soon()
    traces = open_traces(config)
    store, trouble = await open_store(config, paths)
    followers = SocketFollowers(functools.partial(_followers_folder, paths))
    await convert_old_answers(config, paths)
    audit, close_audit = open_audit(config, paths)
    policies = Policies(config, paths, audit)
    checkpoints, close_checkpoints = open_checkpoints(config, paths)
    feeder = (
        Feeder(paths.state_dir) if store is not None and store.writable and config.sessions.search else None
    )
    boxes = _boxes(config, paths, custody, sandbox)
    outside = Outside(
        agents=_agents(config, paths, audit),
        launcher=ProcessLauncher(
            custody,
            config.limits.max_message_bytes,
            agents=config.agents,
            state=paths.state_dir,
            hooks=functools.partial(_hooks_folder, paths),
        ),
        cache=FileCapabilityCache(paths.cache_dir / "capabilities"),
        services=WorkspaceServices(custody),
        dialer=UnixDialer(config.limits.max_message_bytes),
        followers=followers,
        store=store,
        trouble=trouble,
        policy_for=policies.policy_for,
        remembered=functools.partial(open_remembered, paths),
        policy_trouble=policies.trouble,
        boxes=boxes,
        read_secrets=_read_secrets,
        witness=Several([*witnesses, *traces, *([feeder] if feeder is not None else [])]),
        audit=audit,
        checkpoints=checkpoints,
        search=feeder,
        worktrees=open_worktrees(config, paths, audit, boxes, custody),
        commits=open_commits(config, paths, boxes, custody),
    )
    running = policies.gateway = Gateway(config, outside)
    neighbours = await _listen_to_processes(running, store)
    gc.freeze()  # permanent objects: later collections, which block the loop, skip them
    gc.set_threshold(COLLECT_AFTER, *gc.get_threshold()[1:])
    ending = asyncio.Event()
    unlisted = asyncio.create_task(log_unlisted(store, ending))
    try:
        yield running
    finally:
        ending.set()
        await asyncio.wait({unlisted}, timeout=UNLISTED_SECONDS)
        unlisted.cancel()
        if feeder is not None:
            await feeder.close()
        if neighbours is not None:
            await neighbours.close()
        await running.close()
        await close_checkpoints()
        await followers.close()
        await custody.close()
        for trace in traces:
            trace.close()
        await close_audit()


def _agents(config: Config, paths: Paths, audit: Audit) -> ConfiguredAgents:
    """The configured agents; one that is added, changed or removed while this process runs counts at once."""
    workspace = here()

    def read() -> Config:
        return load(paths, known=known_layer(), workspace=workspace).config

    agents = ConfiguredAgents(config, (paths.config_file, paths.installed_file), read)
    agents.on_change = lambda changed: audit.hide(secrets_of(changed))
    return agents


async def _read_secrets(references: Mapping[str, str], whose: str) -> dict[str, str]:
    try:
        return await resolve_secrets(references, os.environ)
    except SecretError as error:
        raise internal(f"{whose} lacks a secret: {error}") from error


def _custody_records(paths: Paths) -> Path | None:
    """The folder of records by which the next gateway finds what a killed one left; None if it cannot be made."""
    try:
        return paths.ensure(paths.state_dir / "custody")
    except ConfigError as error:
        log.info(
            "no record of started processes, so a later gateway cannot end them if this one is killed: %s",
            error,
        )
        return None


def _hooks_folder(paths: Paths) -> Path:
    try:
        return paths.ensure(paths.runtime_dir / "hooks")
    except ConfigError as error:
        raise OSError(str(error)) from error


def _followers_folder(paths: Paths) -> Path:
    try:
        folder = paths.ensure(paths.runtime_dir / "followers")
    except ConfigError as error:
        raise OSError(str(error)) from error
    machine.sweep_sockets(folder)
    return folder


def open_traces(config: Config) -> list[Traces]:
    """One `Traces` if spans are wanted, else none; OpenTelemetry is imported only then."""
    wanted = config.traces.endpoint is not None or any(os.environ.get(name) for name in OTEL_WANTED)
    if not wanted or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return []
    if os.environ.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp":
        return []
    try:
        from dragoman.server.monitoring.traces import Traces
    except ImportError as error:
        if config.traces.endpoint is not None:
            raise ConfigError("traces.endpoint needs OpenTelemetry: install dragoman[traces]") from error
        log.warning("OTEL_* is set, but there are no traces: install dragoman[traces]")
        return []
    return [Traces(config.traces.endpoint)]


def open_checkpoints(config: Config, paths: Paths) -> tuple[Checkpoints, Callable[[], Awaitable[None]]]:
    """The checkpoints of this process, and how they are closed."""
    if not config.checkpoints.enabled:
        return Checkpoints(), functools.partial(asyncio.sleep, 0)
    from dragoman.checkpoints.service import CheckpointService

    service = CheckpointService(paths.state_dir / "checkpoints", config.checkpoints)
    return service, service.close


def _boxes(config: Config, paths: Paths, custody: Custody, chosen: str | None) -> Boxes:
    named = [
        *(agent.sandbox for agent in config.agents.values()),
        *(rule.sandbox for rule in config.workspaces),
        *config.sandboxes,
    ]
    if not any((chosen, *named)):
        return _UnnamedBoxes(config, paths, custody)
    from dragoman.sandbox import Sandboxes

    return Sandboxes(config, paths, custody, chosen)


class _UnnamedBoxes:
    """For settings without sandboxes: a session may still ask for one that needs no settings; imported only then."""

    chosen = None

    def __init__(self, config: Config, paths: Paths, custody: Custody) -> None:
        self._given = (config, paths, custody)
        self._boxes: Boxes | None = None

    def find(
        self, name: str, agent: AgentConfig, cwd: str | None, workspace: str | None, wanted: str | None = None
    ) -> Box | None:
        if wanted is None:
            return None
        if self._boxes is None:
            from dragoman.sandbox import Sandboxes

            self._boxes = Sandboxes(*self._given)
        return self._boxes.find(name, agent, cwd, workspace, wanted)

    async def close(self) -> None:
        if self._boxes is not None:
            await self._boxes.close()


async def open_store(config: Config, paths: Paths) -> tuple[Store | None, str | None]:
    """The store, and why it is missing or read-only; sessions work without a writable store, but are not saved."""
    if not config.sessions.journal:
        return None, None
    from dragoman.store import FileStore

    try:
        paths.ensure(paths.state_dir)
        runtime = paths.ensure(paths.runtime_dir)
        if not paths.database.exists() and (lost := find_lost_directory(paths)):
            log.error("%s", lost)
        store = await FileStore.open(paths.database, runtime, sync=config.sessions.sync)
        if store.has_old_sessions:
            await asyncio.to_thread(convert_old_sessions, paths, complain)
        return store, None
    except (StoreError, ConfigError) as error:
        log.error("sessions are not saved: %s", error)
        unwritable = isinstance(error, StoreReadOnly | ConfigError) and paths.database.exists()
        return await _open_for_reading(paths) if unwritable else None, str(error)


def find_lost_directory(paths: Paths) -> str | None:
    """The error text for journals without a directory; None if there are no journals either."""
    from dragoman.store.locks import Folder

    if not any(Folder(paths.state_dir).sessions()):
        return None
    return f"{paths.database} is missing although there are journals: `dragoman doctor --fix` brings the sessions back"


async def _open_for_reading(paths: Paths) -> Store | None:
    """Open the store read-only: sessions can be listed and loaded, even if nothing can be written."""
    from dragoman.store import FileStore

    try:
        return await FileStore.open(paths.database, paths.runtime_dir, mode="ro")
    except StoreError as error:
        log.error("stored sessions cannot be read: %s", error, extra={"reason": error.code})
        return None


def listener_for_processes(running: Gateway, terms: Terms) -> Listener:
    """A listener for processes of this user: what an agent started may only observe."""
    from dragoman.agents.custody.membership import is_of_agent

    observing = Terms(keep_sessions=True, repeat_initialize=False, start_ahead=False, identity=AGENT)

    def connect(pid: int) -> ClientConnection:
        return running.connect(observing if is_of_agent(pid) else terms)

    limit = running.config.limits.max_message_bytes
    return Listener(lambda: running.connect(terms), limit, strict_start=False, connect_process=connect)


async def _listen_to_processes(running: Gateway, store: Store | None) -> Listener | None:
    """Listen on the socket over which other processes of this user reach the sessions of this one."""
    if store is None or not store.writable:
        return None
    terms = Terms(keep_sessions=True, repeat_initialize=False, start_ahead=False, local_process=True)
    listener = listener_for_processes(running, terms)
    socket = Path(store.owner.address.removeprefix("unix:"))
    try:
        machine.sweep_sockets(socket.parent)
        await listener.unix(socket)
    except ListenError as error:
        log.warning("other processes cannot reach the sessions of this one: %s", error)
        return None
    return listener
