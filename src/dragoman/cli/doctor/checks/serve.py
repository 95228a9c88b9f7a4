"""Checks a running `dragoman serve`, and whether its port is free if none runs."""

from __future__ import annotations

import asyncio
import errno
import http.client
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import dragoman
from dragoman.cli.doctor.finding import Context, Finding
from dragoman.cli.serve.address import ADDRESS_FILE, read_address
from dragoman.cli.serve.holder import find_holder, unchecked

PATIENCE = 5.0
"""Seconds to wait for an answer."""


def check(context: Context) -> Iterator[Finding]:
    found = read_address(context.paths)
    if found is None:
        yield from _leftover(context)
        yield from _port(context)
        return
    about = f"serve at {found.url}"
    if (trouble := _ask(found.url)) is not None:
        yield Finding(
            "error", about, f"process {found.pid} runs and does not answer: {trouble}",
            f"see its log; if it hangs, end it (`kill {found.pid}`) and start it again",
        )  # fmt: skip
        return
    if found.version != dragoman.__version__:
        theirs = found.version or "an older version"
        yield Finding(
            "warning", about, f"it is {theirs}, this command is {dragoman.__version__}",
            "restart `dragoman serve`, so that both are the same",
        )  # fmt: skip
        return
    yield Finding("ok", about, f"answers, version {found.version}, process {found.pid}")


def _leftover(context: Context) -> Iterator[Finding]:
    file = context.paths.runtime_dir / ADDRESS_FILE
    if file.exists():

        def remove() -> str:
            if read_address(context.paths) is None:
                file.unlink(missing_ok=True)
            return f"removed {file}"

        yield Finding(
            "warning", "serve", f"a `dragoman serve` was killed and left {file}",
            "nothing: the next `dragoman serve` replaces it, and --fix removes it", remove,
        )  # fmt: skip


def _port(context: Context) -> Iterator[Finding]:
    serve = context.loaded.config.serve
    if not serve.port:
        yield Finding("ok", "serve", "does not run; it takes any free port")
        return
    place = f"port {serve.port} of {serve.host}"
    try:
        number = _bind(serve.host, serve.port)
    except OSError as error:
        yield Finding(
            "warning", "serve", f"does not run, and could not listen at {serve.host}: {error.strerror or error}",
            "change serve.host to an address of this machine",
        )  # fmt: skip
        return
    if number == errno.EADDRINUSE:
        holder = _holder(serve.host, serve.port)
        yield Finding(
            "warning", f"port {serve.port}", f"`dragoman serve` would fail: {holder} holds {place}",
            f"end that program, or take another port: `dragoman config set serve.port {_free(serve.host)}`",
        )  # fmt: skip
    elif number == errno.EACCES:
        yield Finding(
            "warning", f"port {serve.port}", "only root may listen there",
            f"`dragoman config set serve.port {_free(serve.host)}`",
        )  # fmt: skip
    else:
        yield Finding("ok", "serve", f"does not run; {place} is free")


def _bind(host: str, port: int) -> int:
    """0 if it is possible, else the number of the error; raises `OSError` for an address that is not ours."""
    kind, _, _, _, address = socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(kind, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
            probe.listen(1)
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return error.errno
            raise
    return 0


def _free(host: str) -> int:
    """A port that nothing holds now."""
    kind, _, _, _, address = socket.getaddrinfo(
        host or None, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(kind, socket.SOCK_STREAM) as probe:
        probe.bind(address)
        return int(probe.getsockname()[1])


def _holder(host: str, port: int) -> str:
    """What listens at a port: a `dragoman serve` of another home, or a process, as far as this user may see it."""
    url = asyncio.run(find_holder(host, port))
    other = (
        f"another `dragoman serve`, of another DRAGOMAN_HOME or user, at {url}" if url is not None else None
    )
    return other or _process_at(port) or "another program"


def _process_at(port: int) -> str | None:
    """The process that listens at a port; Linux only."""
    inodes = set()
    for table in ("tcp", "tcp6"):
        try:
            rows = Path("/proc/net", table).read_text().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            fields = row.split()
            if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{fields[9]}]")
    if not inodes:
        return None
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(str(link.readlink()) in inodes for link in (process / "fd").iterdir()):
                return f"{(process / 'comm').read_text().strip()} (process {process.name})"
        except OSError:
            continue
    return None


def _ask(url: str) -> str | None:
    """Why `/healthz` does not answer; None if it does. No token is sent, so no certificate has to be trusted."""
    parts = urlsplit(url)
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        connection = http.client.HTTPSConnection(
            parts.hostname or "", parts.port, timeout=PATIENCE, context=unchecked()
        )
    else:
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE)
    try:
        connection.request("GET", "/healthz")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return str(error) or type(error).__name__
    finally:
        connection.close()
    return None if status == http.HTTPStatus.OK else f"it answers with status {status}"
