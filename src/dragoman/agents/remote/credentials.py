"""Credentials for a remote agent: token, headers, TLS, and the cookies that its server set."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable, Mapping
from pathlib import Path

from dragoman.agents.remote.errors import RemoteError
from dragoman.agents.secrets import resolve_secrets
from dragoman.config.model import AgentConfig

_REFERENCE = re.compile(r"(env|file|keyring):.+")


async def headers_of(agent: AgentConfig, environ: Mapping[str, str]) -> dict[str, str]:
    """The headers of every request; raises `SecretError`."""
    wanted = {name: value for name, value in agent.headers.items() if _REFERENCE.fullmatch(value)}
    headers = {**agent.headers, **await resolve_secrets(wanted, environ)}
    if agent.token is not None:
        token = await resolve_secrets({"token": agent.token}, environ)
        headers["Authorization"] = f"Bearer {token['token']}"
    return headers


def tls_context(ca: str | None) -> ssl.SSLContext:
    """A TLS context with the system's authorities, and that of `ca`; certificates are always verified."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca is not None:
        try:
            context.load_verify_locations(Path(ca).expanduser())
        except (OSError, ssl.SSLError) as error:
            raise RemoteError(
                f"the authority in {ca} cannot be read ({error}): `ca` is a PEM file", lasting=True
            ) from error
    return context


class Cookies:
    """Cookies, stored while the agent is in use: behind a load balancer they select the same server (G-127)."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def take(self, set_cookies: Iterable[str]) -> None:
        for cookie in set_cookies:
            pair, *attributes = cookie.split(";")
            name, _, value = pair.strip().partition("=")
            gone = any(part.strip().lower() in ("max-age=0", "max-age=-1") for part in attributes)
            if name and gone:
                self._values.pop(name, None)
            elif name:
                self._values[name] = value

    @property
    def header(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self._values.items())
