"""Fetches over HTTP: bounded in size, time and redirects; never over plain HTTP, save from this machine itself."""

from __future__ import annotations

import hashlib
import http.client
import ipaddress
import os
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any
from urllib.parse import urljoin, urlsplit, urlunsplit

import dragoman
from dragoman.registry.errors import RegistryError

REDIRECTS = 5
SILENCE_SECONDS = 30.0
"""A server that sends nothing for so long is given up, whatever the whole may take."""
CHUNK = 256 * 1024
Progress = Callable[[int, int | None], None]
"""Takes the bytes that arrived, and how many there will be if that is known."""
_REDIRECT = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class Bounds:
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Fetched:
    content: bytes
    etag: str
    unchanged: bool = False


class _AnyStatus(urllib.request.HTTPErrorProcessor):
    """Hands every response on: redirects are followed here, one by one, and each is checked."""

    def http_response(self, request: urllib.request.Request, response: Any) -> Any:
        return response

    https_response = http_response


def fetch(url: str, bounds: Bounds, etag: str = "") -> Fetched:
    """The content of `url`, or that it is still the one with this `etag`."""
    headers = {"Accept": "application/json", **({"If-None-Match": etag} if etag else {})}
    with _open(url, bounds, headers) as response:
        if response is None:
            return Fetched(b"", etag, unchanged=True)
        content = b"".join(_chunks(response, url, bounds))
        return Fetched(content, (response.headers.get("ETag") or "")[:200])


def download(url: str, out: IO[bytes], bounds: Bounds, show: Progress) -> str:
    """Write what is at `url` to `out`; returns its SHA-256."""
    digest = hashlib.sha256()
    done = 0
    with _open(url, bounds, {"Accept": "*/*"}) as response:
        assert response is not None
        length = _length(response)
        show(0, length)
        for chunk in _chunks(response, url, bounds):
            out.write(chunk)
            digest.update(chunk)
            done += len(chunk)
            show(done, length)
    out.flush()
    return digest.hexdigest()


def check_url(url: str, *, before: str | None = None) -> str:
    """The URL, if it may be fetched: `https`, or `http` on this machine; after an `https` one only `https`."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        parts.port  # noqa: B018 (raises if it is no number)
    except ValueError as error:
        raise RegistryError(f"{display(url)} is no URL: {error}") from error
    if parts.username is not None or parts.password is not None:
        raise RegistryError(
            f"{display(url)} has a user name or a password, which ends up in logs: leave it out"
        )
    after_https = before is not None and urlsplit(before).scheme == "https"
    if not host or any(character <= " " for character in url):
        raise RegistryError(f"{display(url)} is no URL of a web server")
    if parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host) and not after_https):
        return url
    led = f"{display(before)} leads to " if before else ""
    raise RegistryError(
        f"{led}{display(url)}, which is not fetched: only https is (http on this machine alone)"
    )


def display(url: str) -> str:
    """The URL for people: without a query, which may hold a signature, and without a password."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit((parts.scheme, host, parts.path, "", ""))[:300]
    except ValueError:
        return "that address"


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@contextmanager
def _open(url: str, bounds: Bounds, headers: dict[str, str]) -> Iterator[http.client.HTTPResponse | None]:
    """The response; None if it has not changed since the `If-None-Match` of the headers."""
    at = check_url(url)
    end = time.monotonic() + bounds.seconds
    for _ in range(REDIRECTS + 1):
        response = _request(at, headers, min(SILENCE_SECONDS, bounds.seconds))
        with response:
            if response.status == 304:
                yield None
                return
            if response.status == 200:
                yield response
                return
            if response.status not in _REDIRECT:
                raise RegistryError(f"{display(at)} answered {response.status} {response.reason}"[:300])
            target = response.headers.get("Location")
        if not target:
            raise RegistryError(f"{display(at)} leads elsewhere without saying where")
        at = check_url(urljoin(at, target), before=at)
        if time.monotonic() > end:
            raise _too_slow(url, bounds)
    raise RegistryError(f"{display(url)} leads on more than {REDIRECTS} times: it is not followed further")


def _request(url: str, headers: dict[str, str], silence: float) -> http.client.HTTPResponse:
    told = {"User-Agent": f"dragoman/{dragoman.__version__}", "Accept-Encoding": "identity", **headers}
    handlers: list[Any] = [_AnyStatus()]
    if _is_loopback(urlsplit(url).hostname or ""):
        handlers.append(urllib.request.ProxyHandler({}))
    opener = urllib.request.build_opener(*handlers)
    try:
        response = opener.open(urllib.request.Request(url, headers=told), timeout=silence)
    except (urllib.error.URLError, OSError, http.client.HTTPException, ValueError) as error:
        raise RegistryError(f"{display(url)} cannot be fetched: {_why(error)}") from error
    assert isinstance(response, http.client.HTTPResponse)
    return response


def _chunks(response: http.client.HTTPResponse, url: str, bounds: Bounds) -> Iterator[bytes]:
    end = time.monotonic() + bounds.seconds
    length = _length(response)
    if length is not None and length > bounds.bytes:
        raise _too_large(url, bounds)
    done = 0
    while True:
        try:
            chunk = response.read1(CHUNK)
        except (OSError, http.client.HTTPException) as error:
            raise RegistryError(
                f"the connection to {display(url)} broke after {done} bytes: {_why(error)}; try again"
            ) from error
        if not chunk:
            break
        done += len(chunk)
        if done > bounds.bytes:
            raise _too_large(url, bounds)
        if time.monotonic() > end:
            raise _too_slow(url, bounds)
        yield chunk
    if length is not None and done < length:
        raise RegistryError(
            f"the connection to {display(url)} broke after {done} of {length} bytes; try again"
        )


def _length(response: http.client.HTTPResponse) -> int | None:
    text = response.headers.get("Content-Length") or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def _too_large(url: str, bounds: Bounds) -> RegistryError:
    return RegistryError(f"{display(url)} has more than {bounds.bytes} bytes: it is not fetched further")


def _too_slow(url: str, bounds: Bounds) -> RegistryError:
    return RegistryError(f"{display(url)} did not arrive within {bounds.seconds:.0f} s: try again")


def _why(error: BaseException) -> str:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, TimeoutError | socket.timeout):
        return "it does not answer"
    if isinstance(reason, socket.gaierror):
        return f"{reason.strerror} (is the network there?)"
    if isinstance(reason, OSError) and reason.errno is not None and reason.errno > 0:
        return os.strerror(reason.errno)
    return str(reason)[:200] or type(reason).__name__
