"""Composes the gateway for `dragoman acp` and runs it until its client is gone."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Coroutine
from typing import Any

import click

from dragoman.agents.acp import ProcessLauncher
from dragoman.agents.cache import FileCapabilityCache
from dragoman.agents.custody import Custody
from dragoman.agents.directory import ConfiguredAgents
from dragoman.cli.acp import AcpOptions
from dragoman.config.errors import ConfigError
from dragoman.config.model import Config
from dragoman.config.paths import Paths
from dragoman.gateway.client import ClientConnection
from dragoman.gateway.gateway import Gateway
from dragoman.services import WorkspaceServices
from dragoman.transports.listen import Listener, ListenError
from dragoman.transports.stdio import StdioLink

log = logging.getLogger(__name__)

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


def run(options: AcpOptions, config: Config, paths: Paths) -> int:
    """Returns the exit code."""
    if options.port is not None:
        _check_address(options)
    try:
        return run_loop(_serve(options, config, paths))
    except ListenError as error:
        raise click.ClickException(str(error)) from error


def run_loop(work: Coroutine[Any, Any, int]) -> int:
    """On uvloop where it installs: its pipes are several times faster."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    return uvloop.run(work)


async def _serve(options: AcpOptions, config: Config, paths: Paths) -> int:
    custody = Custody()
    gateway = Gateway(
        config,
        ConfiguredAgents(config),
        ProcessLauncher(custody, config.limits.max_message_bytes),
        FileCapabilityCache(paths.cache_dir / "capabilities"),
        WorkspaceServices(custody),
        spawn_in_cwd=options.port is not None,
    )
    stopped = asyncio.Event()
    _on_signals(stopped)
    try:
        if options.port is None:
            await _stdio(gateway, options, stopped)
        else:
            await _tcp(gateway, options, stopped)
    finally:
        await gateway.close()
        await custody.close()
    return 0


async def _stdio(gateway: Gateway, options: AcpOptions, stopped: asyncio.Event) -> None:
    client = gateway.connect(agent=options.agent)
    link = await StdioLink.open(client.peer, gateway.config.limits.max_message_bytes)
    await _first(client.left.wait(), stopped.wait())
    if not client.left.is_set():
        await gateway.close()
    await link.finish()


async def _tcp(gateway: Gateway, options: AcpOptions, stopped: asyncio.Event) -> None:
    assert options.port is not None

    def connect() -> ClientConnection:
        return gateway.connect(agent=options.agent, token=options.token)

    listener = Listener(connect, gateway.config.limits.max_message_bytes, strict_start=True)
    host = options.host or "127.0.0.1"
    port = await listener.tcp(host, options.port)
    log.info("listening", extra={"host": host, "port": port})
    sys.stderr.write(f"Listening on {host}:{port}\n")
    await stopped.wait()
    await listener.close()


def _check_address(options: AcpOptions) -> None:
    """Beyond loopback anybody could drive the agent: only with a token (DESIGN.md, settled details)."""
    host = options.host or "127.0.0.1"
    if host not in LOOPBACK and not options.token:
        raise ConfigError(f"listening on {host} lets others in: give --token, which clients must then send")


def _on_signals(stopped: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stopped.set)


async def _first(*waits: Coroutine[Any, Any, object]) -> None:
    """Wait for whichever happens first."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()


