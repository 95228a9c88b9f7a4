"""The web chat: its page at `/`, its files below `/assets/`, and the pages for refused browsers.

The files are built from `web/` into the package (`web/build.py`), each beside its compressed forms. Their names contain
a hash, so browsers cache them for good; the page itself is requested every time.
"""

from __future__ import annotations

import base64
import hashlib
from html import escape
from pathlib import Path
from urllib.parse import parse_qsl

from dragoman.server.asgi import HttpError, Request, Response
from dragoman.server.auth.admission import ASSETS, Refusal, Visit

BUILT = Path(__file__).parent.parent / "web_assets"

HTML = "text/html; charset=utf-8"
TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".wasm": "application/wasm",
}
ENCODINGS = (("br", ".br"), ("gzip", ".gz"))
"""Content encodings and file suffixes of the compressed forms, the smallest first."""

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src data: blob:; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""Nothing from other sites, nothing inline, nothing evaluated. Images and sound that agents send are `data:`."""

_PLAIN_STYLE = (
    ":root{color-scheme:light dark;font:15px/1.55 system-ui,sans-serif}"
    "body{max-width:27rem;margin:16vh auto;padding:0 1.25rem;"
    "background:light-dark(#fcfcfd,#101113);color:light-dark(#1a1c21,#e6e7ea)}"
    "h1{font-size:1.35rem;margin:0 0 .6rem}p{margin:0 0 1rem;color:light-dark(#565b66,#a5a8b0)}"
    "a{color:light-dark(#3552c8,#8ba7ff)}"
    "code{font:.9em ui-monospace,monospace;padding:.1em .35em;border-radius:4px;"
    "background:light-dark(#f0f1f4,#1c1e22);color:light-dark(#1a1c21,#e6e7ea)}"
    "form{display:flex;gap:.5rem;flex-wrap:wrap;align-items:end}label{flex:1;min-width:12rem;font-size:.85rem}"
    "input{display:block;box-sizing:border-box;width:100%;margin-top:.25rem}"
    "input,button{font:inherit;font-size:15px;height:36px;padding:0 .75rem;border-radius:6px;"
    "border:1px solid light-dark(#0f172930,#ffffff26);background:light-dark(#fff,#17181b);color:inherit}"
    "button{border:0;background:light-dark(#3b5bdb,#7c9cff);color:light-dark(#fff,#0b1020);cursor:pointer}"
)
_CLEAN_ADDRESS = "history.replaceState(null,'',location.pathname+location.hash)"
"""Removes a refused token from the address bar and the history: it may be nearly right."""


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


_PLAIN_POLICY = (
    f"default-src 'none'; style-src {_hash(_PLAIN_STYLE)}; script-src {_hash(_CLEAN_ADDRESS)}; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

_NOT_BUILT = """<p>This installation came without its web chat. In a checkout, <code>make web</code> builds it; then load
this page again. Everything else works: editors, <code>dragoman exec</code>,
<code>dragoman sessions attach</code>.</p>"""

_TOKEN_WANTED = """<p>This browser is not logged in. This page opens with a link that has a token in it.
<code>dragoman serve</code> printed it where it was started, and <code>dragoman serve --url</code> prints it again. Open
that link, or enter the token here; this browser then remembers it.</p>"""

_TOKEN_FORM = """<form action="/" method="get"><label>Token <input type="password" name="token" autocomplete="off"
required autofocus></label> <button>Open</button></form>"""

_TOKEN_REFUSED = """<p role="alert"><strong>That token is not valid.</strong> It may have been revoked, have expired, or
be cut off. <code>dragoman serve --url</code> prints a link that opens.</p>"""

_MISSING = """<p>Nothing is at <code>{path}</code>. The chat is on <a href="/">the start page</a>; what programs can ask
for is on <a href="/api/docs">/api/docs</a>.</p>"""


class Pages:
    def __init__(self, folder: Path = BUILT) -> None:
        self._folder = folder

    async def index(self, request: Request) -> Response:
        return self._built("index.html", 200)

    def reader(self, status: int) -> Response:
        """A page for a browser that sent only its cookie; it fetches its own address with the page secret."""
        return self._built("reader.html", status)

    def _built(self, name: str, status: int) -> Response:
        try:
            page = (self._folder / name).read_bytes()
        except FileNotFoundError:
            return _plain(503, "The web chat is not built", _NOT_BUILT)
        return Response(status, page, HTML, (("content-security-policy", CONTENT_POLICY),))

    async def worker(self, request: Request) -> Response:
        """The service worker; at the root, as it may act only for pages below its own path, and never cached."""
        try:
            script = (self._folder / "worker.js").read_bytes()
        except FileNotFoundError as error:
            raise HttpError(404, "There is no such file.") from error
        headers = (("cache-control", "no-cache"), ("content-security-policy", "default-src 'none'"))
        return Response(200, script, TYPES[".js"], headers)

    async def asset(self, request: Request) -> Response:
        name = request.path.removeprefix(ASSETS)
        kind = TYPES.get(Path(name).suffix)
        if kind is None or "/" in name or name.startswith("."):
            raise HttpError(404, "There is no such file.")
        for encoding, path in self._forms(name, request.header("accept-encoding")):
            try:
                content = path.read_bytes()
            except (OSError, ValueError):  # ValueError: a name that no file can have
                continue
            headers = [("cache-control", "private, max-age=31536000, immutable"), ("vary", "accept-encoding")]
            encoded = [("content-encoding", encoding)] if encoding else []
            return Response(200, content, kind, (*headers, *encoded))
        raise HttpError(404, "There is no such file.")

    def _forms(self, name: str, accepted: str) -> list[tuple[str, Path]]:
        plain = self._folder / "assets" / name
        taken = {part.partition(";")[0].strip() for part in accepted.lower().split(",")}
        smaller = [
            (encoding, Path(f"{plain}{suffix}")) for encoding, suffix in ENCODINGS if encoding in taken
        ]
        return [*smaller, ("", plain)]


def refused_page(visit: Visit, refused: Refusal) -> Response | None:
    """A page that explains the refusal, with a field for the token; None unless a browser asks for `/`."""
    if refused.status not in (401, 403) or visit.path != "/" or "text/html" not in visit.header("accept"):
        return None
    if refused.status == 401:
        wrong = any(name == "token" for name, _ in parse_qsl(visit.query, keep_blank_values=True))
        said = f"{_TOKEN_REFUSED}<script>{_CLEAN_ADDRESS}</script>" if wrong else _TOKEN_WANTED
        return _plain(401, "Dragoman wants a token", said + _TOKEN_FORM, refused.headers)
    return _plain(refused.status, "Dragoman", f"<p>{escape(refused.message)}</p>", refused.headers)


def missing_page(visit: Visit, error: HttpError) -> Response | None:
    """The 404 page for a user; None unless a browser asks for a page."""
    if error.status != 404 or visit.method != "GET" or "text/html" not in visit.header("accept"):
        return None
    return _plain(404, "There is no such page", _MISSING.format(path=escape(visit.path)), error.headers)


def _plain(status: int, title: str, body: str, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_PLAIN_STYLE}</style>'
        f"<h1>{title}</h1>{body}</html>\n"
    )
    return Response(status, page.encode(), HTML, (*headers, ("content-security-policy", _PLAIN_POLICY)))
