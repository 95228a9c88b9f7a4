"""Limits open connections, in total and per client address."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv6Address, ip_address

from dragoman.server import limits
from dragoman.server.asgi import HttpError
from dragoman.server.auth.admission import Visit

log = logging.getLogger(__name__)


class ConnectionLimit:
    def __init__(
        self, files: int, per_address: int, is_proxy: Callable[[str], bool] = lambda address: False
    ) -> None:
        """`files` is the number of descriptors for everything, also for agents and the store.

        Connections from an address that `is_proxy` carry many clients: each request on them counts for its client.
        """
        self._is_proxy = is_proxy
        self.room = min(limits.MAX_CONNECTIONS, max(limits.LEAST_CONNECTIONS, files - limits.RESERVED_FILES))
        self._per_address = per_address
        self._inside = 0
        self._from: Counter[str] = Counter()
        self._told = False

    def __len__(self) -> int:
        return self._inside

    def enter(self, address: str) -> bool:
        """Count a connection; False when the total or the address is at its limit. After True, `leave` must follow."""
        origin = self._counted(address)
        if self._inside >= self.room:
            self._log_once("connections refused: there are %d already", self.room)
            return False
        if self._enough_from(origin):
            return False
        self._inside += 1
        self._add(origin)
        return True

    def leave(self, address: str) -> None:
        self._inside -= 1
        self._told = self._told and self._inside > self.room // 2
        self._remove(self._counted(address))

    def begin_visit(self, visit: Visit) -> None:
        """Count a visit through a trusted proxy for its client, or refuse it; `end_visit` must follow."""
        origin = _client_of(visit)
        if self._enough_from(origin):
            raise HttpError(
                429,
                f"There are {self._per_address} requests and WebSockets of this address already; end some of them "
                "first (serve.connections_per_address).",
                [("retry-after", "30")],
            )
        self._add(origin)

    def end_visit(self, visit: Visit) -> None:
        self._remove(_client_of(visit))

    @contextmanager
    def visiting(self, visit: Visit) -> Iterator[None]:
        self.begin_visit(visit)
        try:
            yield
        finally:
            self.end_visit(visit)

    def _counted(self, address: str) -> str:
        return "" if self._is_proxy(address) else origin_of(address)

    def _enough_from(self, origin: str) -> bool:
        if not origin or not self._per_address or self._from[origin] < self._per_address:
            return False
        self._log_once("connections of %s refused: serve.connections_per_address is reached", origin)
        return True

    def _add(self, origin: str) -> None:
        if origin:
            self._from[origin] += 1

    def _remove(self, origin: str) -> None:
        if origin:
            self._from[origin] -= 1
            if not self._from[origin]:
                del self._from[origin]

    def _log_once(self, text: str, fact: object) -> None:
        """Log the first refusal only, not each of ten thousand."""
        if not self._told:
            self._told = True
            log.warning(text, fact)


def _client_of(visit: Visit) -> str:
    """The address that a visit through a proxy counts for; visits with contradicting headers count for the proxy.

    This includes a proxy on this machine, where otherwise a client could escape the count with a header of its own.
    """
    if not visit.proxied:
        return ""
    return origin_of(visit.address) or (visit.address if visit.unclear else "")


def origin_of(address: str) -> str:
    """The key under which an address is counted; empty for loopback, which proxies and local users share.

    IPv6 addresses count by their /64 network: a holder of one address has all 2^64 of it.
    """
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            parsed = parsed.ipv4_mapped
        elif not parsed.is_loopback:
            return parsed.exploded[:19]
    return "" if parsed.is_loopback else str(parsed)
