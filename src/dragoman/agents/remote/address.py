"""The address of a remote agent, parsed from its URL."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

_PORTS = {"ws": 80, "http": 80, "wss": 443, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """A `ws://`, `wss://`, `http://` or `https://` address; the configuration has validated the URL."""

    url: str
    scheme: str
    host: str
    port: int
    target: str
    """Path and query, as in the first line of a request."""

    @classmethod
    def of(cls, url: str) -> Address:
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        scheme = parts.scheme.lower()
        return cls(url, scheme, parts.hostname or "", parts.port or _PORTS[scheme], target)

    @property
    def websocket(self) -> bool:
        return self.scheme in ("ws", "wss")

    @property
    def secure(self) -> bool:
        return self.scheme in ("wss", "https")

    @property
    def authority(self) -> str:
        """The value of the `Host` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    def __str__(self) -> str:
        """For messages and logs: without the query, which may hold a token."""
        return f"{self.scheme}://{self.authority}{self.path}"
