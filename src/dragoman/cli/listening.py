"""Checks of an address and its token before the gateway listens there."""

from __future__ import annotations

import logging
from ipaddress import ip_address

from dragoman.config.errors import ConfigError

log = logging.getLogger(__name__)

SHORTEST_TOKEN = 16


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False  # a name may resolve to anything


def check_token(token: str, host: str, name: str, *, behind_proxy: bool = False) -> None:
    """Refuse a token that can be guessed if other machines may try; on loopback only warn.

    `behind_proxy`: other machines connect through a proxy, whatever the address is.
    """
    if not token:
        raise ConfigError(f"{name} is empty: leave it out, or give it at least {SHORTEST_TOKEN} characters")
    if len(token) >= SHORTEST_TOKEN:
        return
    short = f"{name} has fewer than {SHORTEST_TOKEN} characters and can be guessed"
    if not is_loopback(host):
        raise ConfigError(f"{short}: give it at least {SHORTEST_TOKEN} to listen on {host}")
    if behind_proxy:
        raise ConfigError(
            f"{short}: give it at least {SHORTEST_TOKEN} behind a proxy (serve.trusted_proxies)"
        )
    log.warning("%s: only programs of this machine can try that on %s", short, host)


def check_sendable(token: str, name: str) -> None:
    """Refuse a token that no client can send, before clients fail with it."""
    if not (token.isascii() and token.isprintable()) or token != token.strip():
        raise ConfigError(
            f"{name} has characters that no client can send in a header: letters, digits and punctuation of ASCII "
            "are good, spaces at its ends are not"
        )
