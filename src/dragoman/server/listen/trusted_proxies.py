"""Finds out for whom a proxy asks, if that proxy is trusted (`serve.trusted_proxies`).

Any client can send headers that say where a request came from, so they are read from the right, where the nearest
proxy has written, and only as far as trusted addresses reach:

    X-Forwarded-For: 203.0.113.9, 198.51.100.7, 10.0.0.2      from 10.0.0.1; 10.0.0.0/8 is trusted
                     └─ claimed   └─ the client  └─ trusted

The client is the rightmost address that is not trusted; scheme and host are those that were written together with it.
An entry that is no address (`unknown`, a hidden name, nonsense) ends the search: the client is then the proxy that wrote
it. Most proxies write one of both families of headers (`X-Forwarded-*`, or `Forwarded`, RFC 7239) and let the other
one through as the client sent it. So both are believed only if they agree; otherwise the request counts for the proxy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from dragoman.server.auth.admission import Visit, came_secure

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

LONGEST_NODE = 64
"""Characters of an address with brackets and a port; whatever is longer is none."""


@dataclass(frozen=True, slots=True)
class Hop:
    """What one proxy wrote: who asked it, with which scheme, for which host; empty where it did not say."""

    node: str = ""
    scheme: str = ""
    host: str = ""


class TrustedProxies:
    def __init__(self, networks: Iterable[str] = ()) -> None:
        """`networks` are addresses, or networks as `10.0.0.0/8`; raises `ValueError` for anything else."""
        self._networks: tuple[Network, ...] = tuple(parse_network(text) for text in networks)

    def trusts(self, address: str) -> bool:
        parsed = _parse_address(address)
        return parsed is not None and self._trusts(parsed)

    def _trusts(self, address: Address) -> bool:
        return any(address in network for network in self._networks)

    def unwrap(self, visit: Visit) -> Visit:
        """The visit as its client made it; what an untrusted peer says about itself is not looked at."""
        if not self._networks:
            # A browser keeps a Secure cookie from a lie to itself; nothing else follows from this header.
            said = visit.header("x-forwarded-proto")
            return replace(visit, secure=came_secure(visit.secure, visit.address, said))
        peer = _parse_address(visit.address)
        if peer is None or not self._trusts(peer):
            return visit
        found = self._client(peer, visit.headers)
        if found is None:
            return replace(visit, address=str(peer), proxied=True, unclear=True)
        secure = _SECURE.get(found.scheme, visit.secure)
        return replace(
            visit, address=found.node, secure=secure, forwarded_host=found.host.lower(), proxied=True
        )

    def _client(self, peer: Address, headers: Mapping[str, str]) -> Hop | None:
        """None where the headers contradict each other, or cannot be read."""
        written = [hops for hops in (_x_forwarded(headers), _forwarded(headers.get("forwarded"))) if hops]
        if any(hops == MALFORMED for hops in written):
            return None
        found = [self._rightmost(peer, hops) for hops in written]
        if len(found) == 2:
            return _agreed(*found)
        return found[0] if found else Hop(node=str(peer))

    def _rightmost(self, peer: Address, hops: list[Hop]) -> Hop:
        """The hop that names the client; `peer` wrote the last one, and each trusted one the one before it."""
        writer = peer
        for index in range(len(hops) - 1, -1, -1):
            hop = hops[index]
            asked = _parse_node(hop.node)
            if asked is None:
                return replace(hop, node=str(writer))
            if index == 0 or not self._trusts(asked):
                return replace(hop, node=str(asked))
            writer = asked
        return Hop(node=str(writer))


MALFORMED = [Hop(node="malformed")]
"""Instead of the hops of a header that cannot be read."""

_SECURE = {"https": True, "wss": True, "http": False, "ws": False}


def parse_network(text: str) -> Network:
    """An address is a network of one; raises `ValueError`."""
    network = ip_network(text.strip(), strict=False)
    mapped = getattr(network.network_address, "ipv4_mapped", None)
    if mapped is not None and network.prefixlen >= 96:
        return ip_network(f"{mapped}/{network.prefixlen - 96}", strict=False)
    return network


def _parse_address(text: str) -> Address | None:
    try:
        parsed = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return mapped or parsed


_NODE = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::\d{1,5})?|([0-9.]+)(?::\d{1,5})?|([0-9A-Fa-f:.]+)", re.ASCII)


def _parse_node(text: str) -> Address | None:
    """`192.0.2.1`, `192.0.2.1:4711`, `[2001:db8::1]:4711`, and as X-Forwarded-For has it `2001:db8::1`."""
    matched = _NODE.fullmatch(text) if len(text) <= LONGEST_NODE else None
    return _parse_address(next(filter(None, matched.groups()), "")) if matched else None


def _x_forwarded(headers: Mapping[str, str]) -> list[Hop]:
    """Schemes and hosts of `X-Forwarded-*` go with the addresses one by one, or the last one goes with all."""
    nodes, schemes, hosts = (
        [part.strip() for part in headers.get(name, "").split(",")] if headers.get(name) else []
        for name in ("x-forwarded-for", "x-forwarded-proto", "x-forwarded-host")
    )
    if not (nodes or schemes or hosts):
        return []
    count = len(nodes) or 1

    def beside(index: int, values: list[str]) -> str:
        return (values[index] if len(values) == count else values[-1]) if values else ""

    return [
        Hop(nodes[index] if nodes else "", beside(index, schemes).lower(), beside(index, hosts))
        for index in range(count)
    ]


_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PAIR = re.compile(rf'[ \t]*({_TOKEN})=({_TOKEN}|"(?:[^"\\]|\\.)*")[ \t]*')


def _forwarded(header: str | None) -> list[Hop]:
    """RFC 7239 §4: `for=192.0.2.43;proto=https, for="[2001:db8::1]:4711"`."""
    if header is None:
        return []
    hops: list[Hop] = []
    pairs: dict[str, str] = {}
    place = 0
    while True:
        matched = _PAIR.match(header, place)
        if matched is None or matched[1].lower() in pairs:
            return MALFORMED
        pairs[matched[1].lower()] = _unquoted(matched[2])
        place = matched.end()
        ended = place == len(header)
        if ended or header[place] == ",":
            hops.append(Hop(pairs.get("for", ""), pairs.get("proto", "").lower(), pairs.get("host", "")))
            pairs = {}
        elif header[place] != ";":
            return MALFORMED
        if ended:
            return hops
        place += 1


def _unquoted(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value


def _agreed(one: Hop, other: Hop) -> Hop | None:
    if one.node != other.node:
        return None
    for said, also_said in ((one.scheme, other.scheme), (one.host, other.host)):
        if said and also_said and said.lower() != also_said.lower():
            return None
    return Hop(one.node, one.scheme or other.scheme, one.host or other.host)
