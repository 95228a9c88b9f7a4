"""Runs `dragoman serve` until a signal ends it."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from urllib.parse import quote

import click

from dragoman.agents.known import KNOWN, install_hint, is_installed
from dragoman.bridge.bridge import Bridge
from dragoman.builtin.commands.table import own_commands
from dragoman.cli.agents.listing import models_of
from dragoman.cli.compose import gateway, listener_for_processes, run_loop, stop_on_signals
from dragoman.cli.listening import check_sendable, check_token, is_loopback
from dragoman.cli.policy.opening import try_policy
from dragoman.cli.serve.address import read_address, remove_address, write_address
from dragoman.cli.serve.command import ServeOptions
from dragoman.cli.serve.holder import with_holder
from dragoman.config.errors import ConfigError
from dragoman.config.model import AgentConfig, Config, ServeConfig
from dragoman.config.paths import Paths
from dragoman.config.root import find_root
from dragoman.gateway.access.client import Terms
from dragoman.gateway.access.mediation import mediation_of
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.runtime import AgentDirectory
from dragoman.machine import short_path
from dragoman.server.auth.admission import Admission
from dragoman.server.auth.credentials import Credentials, instance_token
from dragoman.server.auth.logins import Logins
from dragoman.server.auth.named_tokens import TokenFile
from dragoman.server.listen.tls import Certificate
from dragoman.server.monitoring.metrics import Metrics
from dragoman.server.server import Server
from dragoman.transports.listen import Listener, ListenError

log = logging.getLogger(__name__)

ALL_ADDRESSES = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "[::1]"}
"""Wildcard addresses, and the loopback address for a browser on this machine."""


def run(options: ServeOptions, config: Config, paths: Paths) -> int:
    """Returns the exit code."""
    certificate = _certificate(config.serve)
    _check_address(config.serve.host, secure=certificate is not None, insecure=options.insecure)
    paths.ensure(paths.runtime_dir)
    paths.ensure(paths.state_dir)
    try_policy(config, paths, find_root(Path.cwd()))
    token = config.serve.auth_token
    if token is None:
        token = instance_token(paths.token_file)
    else:
        proxied = bool(config.serve.trusted_proxies)
        check_token(token, config.serve.host, "serve.auth_token", behind_proxy=proxied)
        check_sendable(token, "serve.auth_token")
    try:
        return run_loop(_run(options, config, paths, token, certificate))
    except ListenError as error:
        raise ConfigError(str(error)) from error


async def _run(
    options: ServeOptions, config: Config, paths: Paths, token: str, certificate: Certificate | None
) -> int:
    hangup = asyncio.Event()
    stopped = stop_on_signals(hangup if certificate is not None else None)
    metrics = Metrics()
    async with gateway(config, paths, witnesses=[metrics]) as running:
        running.audit.hide([token])
        neighbours = await _unix_socket(running, options, paths)
        logins = Logins(paths.logins_file)
        credentials = Credentials(token, TokenFile(paths.tokens_file), config.serve.quotas, logins)
        admission = _admission(config.serve, credentials)
        bridge = Bridge(running, lambda: describe_agents(running.agents, config.default_agent), admission)
        server = Server(running, admission, options.agent, {"/bridge": bridge.connect}, metrics)
        try:
            port = await _listen(server, config.serve, certificate)
            write_address(paths, _url(config.serve.host, port, secure=certificate is not None))
            _announce(config.serve.host, port, token, options, secure=certificate is not None)
            if running.search is not None:
                running.search.catch_up()
            reloading = asyncio.create_task(_reload(server, hangup))
            await stopped.wait()
            reloading.cancel()
            log.info("shutting down")
        finally:
            remove_address(paths)
            server.stop_listening()
            await neighbours.close()
            paths.socket.unlink(missing_ok=True)
            await running.close()  # ends turns and links while clients are still connected
            await server.close()
    return 0


async def _listen(server: Server, serve: ServeConfig, certificate: Certificate | None) -> int:
    try:
        return await server.listen(serve.host, serve.port, certificate)
    except ListenError as error:
        raise await with_holder(error, serve.host, serve.port) from error


def print_url(config: Config, paths: Paths) -> None:
    """Print the URL with the token, as the running `serve` did at its start."""
    found = read_address(paths)
    if found is None:
        raise ConfigError("no `dragoman serve` of this user is running (in this DRAGOMAN_HOME)")
    click.echo(_with_token(found.url, config.serve.auth_token or instance_token(paths.token_file)))


async def _reload(server: Server, hangup: asyncio.Event) -> None:
    """Reload certificate and tokens on SIGHUP, which certificate renewal tools send."""
    while True:
        await hangup.wait()
        hangup.clear()
        server.reload()


async def _unix_socket(running: Gateway, options: ServeOptions, paths: Paths) -> Listener:
    """Listen on the socket by which `dragoman acp --connect` finds a running `serve`."""
    path = paths.socket
    if await _answers(path):
        found = read_address(paths)
        where = f"at {found.url}, process {found.pid}" if found is not None else f"its socket is {path}"
        raise ListenError(
            f"another `dragoman serve` of this user is running ({where}): `dragoman serve --url` prints its address "
            "with the token; stop it first, or set DRAGOMAN_HOME to another folder for a second one"
        )
    keep = running.journaling and running.config.sessions.on_disconnect == "keep"
    terms = Terms(agent=options.agent, keep_sessions=keep, repeat_initialize=False)
    listener = listener_for_processes(running, terms)
    await listener.unix(path)
    return listener


async def _answers(path: Path) -> bool:
    try:
        with short_path(path) as name:
            _, writer = await asyncio.open_unix_connection(name)
    except OSError:
        return False  # no socket, or one that a killed process left
    writer.close()
    return True


def describe_agents(agents: AgentDirectory, default: str) -> list[dict[str, object]]:
    """The agents as the bridge shows them."""
    shown: list[dict[str, object]] = []
    for name, agent in agents.all().items():
        known = KNOWN.get(name)
        installed = is_installed(agent)
        row: dict[str, object] = {
            "name": name,
            "title": known.title if known else name,
            "default": name == default,
            "installed": installed,
            "sandbox": agent.sandbox,
            "mediation": mediation_of(agent, boxed=agent.sandbox is not None).shown(),
        }
        if agent.kind == "builtin":
            row |= _builtin_offer(agent)
        hint = None if installed else install_hint(name, agent)
        shown.append(row if hint is None else {**row, "install": hint})
    return shown


def _builtin_offer(agent: AgentConfig) -> dict[str, object]:
    """What the built-in agent can do before a session of it exists: its model, if it has one, and its commands."""
    return {"model": models_of(agent).default(), "commands": own_commands()}


def _admission(serve: ServeConfig, credentials: Credentials) -> Admission:
    return Admission(
        credentials,
        names=frozenset(name.lower() for name in serve.names),
        origins=frozenset(origin.lower().rstrip("/") for origin in serve.origins),
        allow_from=frozenset(serve.allow_from),
        deny_by_default=serve.deny_by_default,
    )


def _announce(host: str, port: int, token: str, options: ServeOptions, *, secure: bool) -> None:
    url = _with_token(_url(host, port, secure=secure), token)
    log.info("listening", extra={"host": host, "port": port})
    click.echo(url)
    if options.open:
        click.launch(url)


def _with_token(url: str, token: str) -> str:
    """The URL with the token, quoted: a bare `+`, as in base64, would be read as a space."""
    return f"{url}?token={quote(token, safe='')}"


def _url(host: str, port: int, *, secure: bool) -> str:
    shown = ALL_ADDRESSES.get(host, f"[{host}]" if ":" in host else host)
    return f"{'https' if secure else 'http'}://{shown}:{port}/"


def _check_address(host: str, *, secure: bool, insecure: bool) -> None:
    if not (secure or insecure or is_loopback(host)):
        raise ConfigError(
            f"listening on {host} without TLS would send the token and everything else over the network in the "
            "clear: set serve.tls_cert and serve.tls_key, put a proxy with TLS in front of 127.0.0.1, or give --insecure"
        )


def _certificate(serve: ServeConfig) -> Certificate | None:
    if serve.tls_cert is None and serve.tls_key is None:
        return None
    if serve.tls_cert is None or serve.tls_key is None:
        raise ConfigError("serve.tls_cert and serve.tls_key belong together: one of them is missing")
    return Certificate(serve.tls_cert, serve.tls_key)
