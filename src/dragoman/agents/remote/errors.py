"""Errors of connecting to a remote agent; each message ends with a fix."""

from __future__ import annotations

import errno
import socket
import ssl

from dragoman.agents.remote.address import Address

CONNECT_TIMEOUT = 10.0
"""Seconds for a connection with TLS and handshake: a firewall that drops packets sends no error."""


class RemoteError(Exception):
    """A remote agent cannot be reached; the message is for the user, and retrying does not help if `lasting`."""

    def __init__(self, message: str, *, lasting: bool = False) -> None:
        super().__init__(message)
        self.lasting = lasting


_REFUSALS = {
    401: "it wants a valid token (401): set `token` of this agent to env:NAME, file:PATH or keyring:SERVICE/ACCOUNT",
    403: "it refuses this address or these credentials (403): if it is a Dragoman, serve.names there must list the "
    "host, and the token's role must allow it",
    404: "there is no agent at this path (404): it is usually /acp or /acp/AGENT",
    405: "this path is for something else (405): it is usually /acp or /acp/AGENT",
    426: "it does not speak this version of WebSocket (426): try http:// or https:// instead",
}
_PASSING = {408, 429, 500, 502, 503, 504}


def refused(address: Address, status: int) -> RemoteError:
    """The error for an HTTP error status."""
    if status in _PASSING:
        return RemoteError(f"{address} cannot take this now (HTTP status {status}): try again later")
    known = _REFUSALS.get(status)
    if known is not None:
        return RemoteError(f"{address}: {known}", lasting=True)
    return not_acp(address, f"HTTP status {status}")


def not_acp(address: Address, what: str) -> RemoteError:
    """The error for a server that does not speak ACP."""
    other = "http:// or https://" if address.websocket else "ws:// or wss://"
    return RemoteError(
        f"{address} answers, but not as an ACP server ({what}): check the path, which is usually /acp, "
        f"or try {other}",
        lasting=True,
    )


def unreachable(address: Address, error: OSError | TimeoutError) -> RemoteError:
    """The error for a failed connection or an untrusted certificate."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return RemoteError(
            f"the certificate of {address} is not trusted ({error.verify_message}): set `ca` of this agent to the "
            "PEM file of the authority that signed it, or correct the host name in `url`",
            lasting=True,
        )
    if isinstance(error, ssl.SSLError):
        plain = "ws://" if address.websocket else "http://"
        return RemoteError(
            f"{address} does not answer with TLS ({error.reason or error}): if it has none, use {plain}",
            lasting=True,
        )
    if isinstance(error, TimeoutError):
        return RemoteError(
            f"{address} does not answer within {CONNECT_TIMEOUT:g} s: is the machine up, and no firewall in between?"
        )
    if isinstance(error, socket.gaierror):
        return RemoteError(
            f"the name {address.host} is not known: check its spelling in `url`, and the network"
        )
    if isinstance(error, ConnectionRefusedError) or error.errno == errno.ECONNREFUSED:
        return RemoteError(
            f"nothing listens at {address}: start `dragoman serve` there, or correct `url` of this agent"
        )
    return RemoteError(f"{address} cannot be reached: {error.strerror or error}")
