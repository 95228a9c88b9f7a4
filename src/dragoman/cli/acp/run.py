"""Runs `dragoman acp` until its client is gone."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

from dragoman.cli.acp.start import AcpOptions
from dragoman.cli.compose import first_of, gateway, run_loop, stop_on_signals
from dragoman.cli.listening import check_token, is_loopback
from dragoman.cli.policy.opening import try_policy
from dragoman.config.errors import ConfigError
from dragoman.config.model import Config
from dragoman.config.paths import Paths
from dragoman.config.root import find_root
from dragoman.gateway.access.client import Terms
from dragoman.gateway.access.identity import INSTANCE, LOCAL, name_refusal
from dragoman.gateway.gateway import Gateway
from dragoman.transports.listen import Listener, ListenError
from dragoman.transports.stdio import StdioLink

log = logging.getLogger(__name__)


def run(options: AcpOptions, config: Config, paths: Paths) -> int:
    """Returns the exit code."""
    if options.port is not None:
        _check_address(options)
    try:
        return run_loop(_run(options, config, paths))
    except ListenError as error:
        raise ConfigError(str(error)) from error


async def _run(options: AcpOptions, config: Config, paths: Paths) -> int:
    stopped = stop_on_signals()
    async with gateway(config, paths, sandbox=options.sandbox) as running:
        if options.port is None:
            await _stdio(running, options, paths, stopped)
        else:
            await _tcp(running, options, stopped)
    return 0


async def _stdio(running: Gateway, options: AcpOptions, paths: Paths, stopped: asyncio.Event) -> None:
    def try_rules() -> None:
        running.spawn(_try_policy(running.config, paths))

    client = running.connect(
        Terms(agent=options.agent, beside=True, initialized=try_rules, worktree=options.worktree)
    )
    link = await StdioLink.open(client.peer, running.config.limits.max_message_bytes)
    await first_of(client.left.wait(), stopped.wait())
    if not client.left.is_set():
        await running.close()
    await link.finish()
    # Sessions that other clients are attached to go on until the last client leaves (G-113).
    await first_of(running.wait_unwatched(), stopped.wait())


async def _try_policy(config: Config, paths: Paths) -> None:
    """Try the examples of rules in a thread; rules that fail them do not decide, which the first question says too."""
    try:
        await asyncio.to_thread(try_policy, config, paths, find_root(Path.cwd()))
    except ConfigError as error:
        log.error("the policy cannot be used; every permission is asked for: %s", error)


async def _tcp(running: Gateway, options: AcpOptions, stopped: asyncio.Event) -> None:
    assert options.port is not None
    keep = running.journaling and running.config.sessions.on_disconnect == "keep"
    identity = INSTANCE if options.token else LOCAL
    serve = running.config.serve
    refusal = name_refusal(identity.name, serve.allow_from, serve.deny_by_default)
    if refusal is not None:
        log.warning("no client will be accepted: %s", refusal)
    if options.token:
        running.audit.hide([options.token])
    terms = Terms(
        agent=options.agent,
        token=options.token,
        keep_sessions=keep,
        refusal=refusal,
        worktree=options.worktree,
    )
    limit = running.config.limits.max_message_bytes
    listener = Listener(lambda: running.connect(terms), limit, strict_start=True)
    host = options.host or "127.0.0.1"
    port = await listener.tcp(host, options.port)
    log.info("listening", extra={"host": host, "port": port})
    sys.stderr.write(f"Listening on {host}:{port}\n")
    await stopped.wait()
    await listener.close()


def _check_address(options: AcpOptions) -> None:
    """Require a token beyond loopback, where any machine could use the agent."""
    host = options.host or "127.0.0.1"
    if options.token:
        check_token(options.token, host, "--token")
    elif not is_loopback(host):
        raise ConfigError(f"other machines can reach {host}: give --token, which clients must then send")
