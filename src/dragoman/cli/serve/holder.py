"""Finds out whether a port that is in use belongs to another `dragoman serve`."""

from __future__ import annotations

import asyncio
import errno
import re
import ssl

from dragoman.cli.listening import is_loopback
from dragoman.transports.listen import ListenError

TIMEOUT = 1.0
"""Seconds for one try: what holds the port may never answer."""
ANSWER_BYTES = 4096
_OURS = re.compile(rb'\r\nwww-authenticate: Bearer realm="dragoman"\r\n', re.IGNORECASE)
LOOPBACK = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
"""Wildcard addresses, and the address that reaches them from this machine."""


async def with_holder(error: ListenError, host: str, port: int) -> ListenError:
    """The error, with the URL of the `dragoman serve` that has the port, if it is one."""
    cause = error.__cause__
    if not isinstance(cause, OSError) or cause.errno != errno.EADDRINUSE:
        return error
    url = await find_holder(host, port)
    if url is None:
        return error
    return ListenError(
        f"{host}:{port} is in use by another `dragoman serve`, at {url}: use that one (`dragoman serve --url`, in the "
        "DRAGOMAN_HOME that it has, prints its address with the token), stop it, or take another port (--port N; "
        "--port 0 is a free one)"
    )


async def find_holder(host: str, port: int) -> str | None:
    """The URL of the `dragoman serve` on this port of this machine; None if it is something else."""
    host = LOOPBACK.get(host, host)
    if not is_loopback(host):
        return None
    shown = f"[{host}]" if ":" in host else host
    for scheme, context in (("http", None), ("https", unchecked())):
        try:
            async with asyncio.timeout(TIMEOUT):
                answer = await _ask(host, port, shown, context)
        except (OSError, TimeoutError):
            continue
        if _OURS.search(answer):
            return f"{scheme}://{shown}:{port}/"
    return None


async def _ask(host: str, port: int, shown: str, context: ssl.SSLContext | None) -> bytes:
    """The head of an answer to a request without a token."""
    reader, writer = await asyncio.open_connection(host, port, ssl=context)
    try:
        writer.write(f"GET /readyz HTTP/1.1\r\nHost: {shown}:{port}\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while b"\r\n\r\n" not in answer and len(answer) < ANSWER_BYTES:
            chunk = await reader.read(ANSWER_BYTES)
            if not chunk:
                break
            answer += chunk
        return answer
    finally:
        writer.close()


def unchecked() -> ssl.SSLContext:
    """Its name is asked, and nothing is sent that another program may not have."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
