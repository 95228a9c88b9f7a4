"""Finds the client of a request that a trusted proxy forwards (`serve.trusted_proxies`).

Any client can send forwarding headers, so they are read from the right, where the nearest proxy has written, and only
as far as trusted addresses reach:

    X-Forwarded-For: 203.0.113.9, 198.51.100.7, 10.0.0.2      from 10.0.0.1; 10.0.0.0/8 is trusted
                     └─ claimed   └─ the client  └─ trusted

The client is the rightmost address that is not trusted; scheme and host are those written together with it. An entry
that is no address (`unknown`, a hidden name, nonsense) ends the search: the client is then the proxy that wrote it.
Most proxies write one of the two families of headers (`X-Forwarded-*`, or `Forwarded`, RFC 7239) and forward the other
one as the client sent it. So both are used only if they agree; otherwise the request counts for the proxy.
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
"""Longest text that is parsed as an address, with brackets and a port."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One proxy's entry: the address of its client, the scheme and the host; empty where the proxy gave none."""

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
        """The visit with the client's address, scheme and host; headers of an untrusted peer are ignored."""
        if not self._networks:
            # The header only makes cookies Secure and adds HSTS: a false one affects its sender alone.
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
        """The hop that names the client; None if the headers contradict each other or are malformed."""
        written = [hops for hops in (_x_forwarded(headers), _forwarded(headers.get("forwarded"))) if hops]
        if any(hops == MALFORMED for hops in written):
            return None
        found = [self._rightmost(peer, hops) for hops in written]
        if len(found) == 2:
            return _agreed(*found)
        return found[0] if found else Hop(node=str(peer))

    def _rightmost(self, peer: Address, hops: list[Hop]) -> Hop:
        """The hop that names the client; `peer` wrote the last hop, each trusted proxy the hop before its own."""
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
"""Stands for the hops of a malformed header."""

_SECURE = {"https": True, "wss": True, "http": False, "ws": False}


def parse_network(text: str) -> Network:
    """Parse a network, or an address as a network of one; raises `ValueError`."""
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
    """Parse `192.0.2.1`, `192.0.2.1:4711`, `[2001:db8::1]:4711`, and `2001:db8::1` as in X-Forwarded-For."""
    matched = _NODE.fullmatch(text) if len(text) <= LONGEST_NODE else None
    return _parse_address(next(filter(None, matched.groups()), "")) if matched else None


def _x_forwarded(headers: Mapping[str, str]) -> list[Hop]:
    """Parse `X-Forwarded-*`: schemes and hosts belong to the addresses one by one, or the last one to all."""
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
    """Parse `Forwarded` (RFC 7239 §4): `for=192.0.2.43;proto=https, for="[2001:db8::1]:4711"`."""
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
