"""Fetches a web page as text with the standard library: bounded in time and size, redirects on one host only."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from html.parser import HTMLParser
from typing import IO, Any
from urllib.parse import urljoin, urlsplit

TIMEOUT = 30.0
"""Seconds for each socket operation, and for reading the whole page."""
MAX_BYTES = 5 * 1024 * 1024
_CHUNK = 64 * 1024
_SILENT = frozenset({"script", "style", "noscript", "template", "svg", "head"})
_BLOCKS = frozenset(
    {"p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "section", "article", "td"}
)


class FetchError(Exception):
    """The page could not be fetched; the message is a sentence."""


class _SameHost(urllib.request.HTTPRedirectHandler):
    """The user allowed one host: a redirect to another is reported, not followed."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        target = urljoin(req.full_url, newurl)
        if urlsplit(target).netloc.lower() != urlsplit(req.full_url).netloc.lower():
            raise FetchError(f"The page moved to another host: fetch {target} if that is wanted.")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def get_text(url: str) -> str:
    """The page as text; HTML without its markup. Blocking: call it in a thread."""
    opener = urllib.request.build_opener(_SameHost)
    request = urllib.request.Request(url, headers={"User-Agent": "dragoman"})
    try:
        with opener.open(request, timeout=TIMEOUT) as response:
            data = _read(response)
            kind = response.headers.get_content_type()
            charset = response.headers.get_content_charset() or "utf-8"
    except urllib.error.HTTPError as error:
        raise FetchError(f"The server answered {error.code} {error.reason}.") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise FetchError(f"{urlsplit(url).netloc} cannot be reached: {reason}.") from error
    if len(data) > MAX_BYTES:
        raise FetchError(f"The page is larger than {MAX_BYTES} bytes.")
    if b"\0" in data[:8192]:
        raise FetchError(f"The address leads to {kind}, which is not text.")
    try:
        text = data.decode(charset, "replace")
    except LookupError:
        text = data.decode("utf-8", "replace")
    return _plain(text) if kind in ("text/html", "application/xhtml+xml") else text


def _read(response: http.client.HTTPResponse) -> bytes:
    """Read the page within `TIMEOUT`: the socket's timeout is per read, so a page sent byte by byte would take days."""
    deadline = time.monotonic() + TIMEOUT
    data = bytearray()
    while len(data) <= MAX_BYTES and (part := response.read1(_CHUNK)):
        data += part
        if time.monotonic() > deadline:
            raise FetchError(f"The page did not arrive within {TIMEOUT:g} s.")
    return bytes(data)


def _plain(html: str) -> str:
    reader = _Reader()
    reader.feed(html)
    lines = (" ".join(line.split()) for line in "".join(reader.parts).splitlines())
    return "\n".join(line for line in lines if line)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SILENT:
            self._silent += 1
        elif tag in _BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT:
            self._silent = max(0, self._silent - 1)
        elif tag in _BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.parts.append(data)
