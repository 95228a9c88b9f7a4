"""The check that every request and every upgrade passes before it is routed.

In this order, so that an unauthenticated client learns as little as possible:

    Host      403   an address, `localhost`, or a name that was configured: a web page whose name suddenly resolves
                    to this machine (DNS rebinding, CVE-2025-66414) shows its own name here
    Origin    403   must be this site or configured (cross-site WebSocket hijacking, CVE-2026-22812)
    token     401   `Authorization: Bearer`, `?token=`, or a browser's login, which `?token=` is exchanged for: a cookie,
                    and the page secret in `X-Dragoman-Page` or among a WebSocket's subprotocols
    name      403   of the token: `serve.allow_from` and `serve.deny_by_default` say which are allowed

Programs send no Origin; browsers always do where it matters, and pages cannot forge it.

The cookie alone opens nothing but the page's own files (`logins` says why).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from dragoman.gateway.access.identity import Identity, Role, name_refusal
from dragoman.server.auth.credentials import Credentials
from dragoman.server.auth.first_use import FirstUse
from dragoman.server.auth.logins import LIFETIME

OPEN_PATHS = frozenset({"/healthz"})
"""Paths without a token, for probes; their responses reveal nothing."""

ANONYMOUS = Identity("anonymous", Role.OBSERVE)
"""The identity of requests to an open path, where no role is checked."""

EXPOSED = "Acp-Connection-Id, Acp-Session-Id, Retry-After"
ALLOWED = "Authorization, Content-Type, Accept, Acp-Connection-Id, Acp-Session-Id, Last-Event-ID"
"""CORS headers for pages of configured origins; without cookies, which are for this site's own pages."""

PAGE_HEADER = "x-dragoman-page"
PAGE_OFFER = "dragoman.page."
"""A page sends its secret in this header, or in a subprotocol's name, as pages cannot set headers on WebSockets."""
SUBPROTOCOL = "dragoman.v1"
"""The subprotocol that is chosen of those that a page offers."""

WORKER = "/worker.js"
COOKIE_PATHS = frozenset({"/", "/readyz", WORKER})
ASSETS = "/assets/"
"""Paths that the cookie opens without the page secret: files that are the same for all, and readiness."""

LOOPBACK_NAMES = frozenset({"localhost"})


@dataclass(frozen=True, slots=True)
class Visit:
    """The parts of a request that admission checks; header names are lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    secure: bool = False
    """The client uses TLS, according to the connection or a trusted proxy."""
    address: str = ""
    """The address of the peer, or of the client behind a trusted proxy."""
    forwarded_host: str = ""
    """The Host that the trusted proxy received."""
    proxied: bool = False
    """The request comes through a trusted proxy, on the proxy's connection."""
    unclear: bool = False
    """The proxy's headers contradict each other, so the client is unknown."""

    def header(self, name: str) -> str:
        return self.headers.get(name, "")

    @property
    def for_person(self) -> bool:
        """Whether a browser navigates to this address; a page that fetches it sends its secret instead."""
        return (
            self.method == "GET" and "text/html" in self.header("accept") and PAGE_HEADER not in self.headers
        )

    @property
    def offered(self) -> list[str]:
        """The subprotocols that a WebSocket handshake offers."""
        return [name.strip() for name in self.header("sec-websocket-protocol").split(",")]

    @property
    def subprotocol(self) -> str | None:
        return SUBPROTOCOL if SUBPROTOCOL in self.offered else None

    @property
    def page_secret(self) -> str:
        secrets = [name.removeprefix(PAGE_OFFER) for name in self.offered if name.startswith(PAGE_OFFER)]
        return self.headers.get(PAGE_HEADER) or (secrets[0] if secrets else "")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A complete response to a request that is not admitted, or is redirected."""

    status: int
    message: str
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class Admission:
    credentials: Credentials
    cookie: str = "dragoman"
    """The cookie's name; cookies are not separated by port, so it contains the port once that is known."""
    names: frozenset[str] = frozenset()
    """Allowed host names besides `localhost` and addresses."""
    origins: frozenset[str] = frozenset()
    """Other origins whose pages may call, as `scheme://host[:port]`."""
    allow_from: frozenset[str] = frozenset()
    """Names of the allowed tokens; empty: all, or with `deny_by_default` none."""
    deny_by_default: bool = False
    first_use: FirstUse | None = None
    """Told of logins and of tokens that are used."""

    def check(self, visit: Visit) -> Refusal | Identity:
        """The identity of an admitted request, or the refusal."""
        hosts = [visit.header("host"), *filter(None, [visit.forwarded_host])]
        if not all(self._known_host(host) for host in hosts):
            return Refusal(403, "This Host is not served here; serve.names lists the names that are.")
        origin = visit.headers.get("origin")
        if origin is not None and not self._own_origin(origin, hosts):
            return Refusal(403, "Pages of this Origin may not call; serve.origins lists those that may.")
        preflight = self._preflight(visit)
        if preflight is not None:
            return preflight
        if visit.path in OPEN_PATHS:
            return ANONYMOUS
        admitted = self._check_token(visit)
        if isinstance(admitted, Identity) and self.first_use is not None:
            self.first_use.admitted(admitted, visit.address)
        return admitted

    def _check_token(self, visit: Visit) -> Refusal | Identity:
        asked = dict(parse_qsl(visit.query, keep_blank_values=True))
        scheme, _, bearer = visit.header("authorization").partition(" ")
        if scheme.lower() == "bearer":
            return self._check_name(self.credentials.by_secret(bearer.strip()))
        if "token" in asked:
            admitted = self._check_name(self.credentials.by_secret(_pasted(asked["token"])))
            if isinstance(admitted, Identity) and visit.for_person:
                return self._welcome(visit, admitted)
            return admitted
        return self._check_login(visit)

    def _check_login(self, visit: Visit) -> Refusal | Identity:
        found = self.credentials.by_cookie(self._cookie_of(visit))
        if found is None:
            return _UNAUTHORIZED
        identity, login = found
        if login.has_page(visit.page_secret):
            self.credentials.use_login(identity)
        elif not (visit.path in COOKIE_PATHS or visit.path.startswith(ASSETS)):
            return PAGE_WANTED
        return self._check_name(identity)

    def _check_name(self, identity: Identity | None) -> Refusal | Identity:
        if identity is None:
            return _UNAUTHORIZED
        refusal = name_refusal(identity.name, self.allow_from, self.deny_by_default)
        return identity if refusal is None else Refusal(403, refusal)

    def mark(self, identity: Identity) -> str:
        """Identifies this token, and no later one of the same name, in stored data."""
        return self.credentials.mark(identity)

    def current(self, name: str, mark: str) -> Identity | str:
        """The present identity of a token that was admitted before, or why it is no longer admitted."""
        found = self.credentials.current(name, mark)
        admitted = self._check_name(found) if isinstance(found, Identity) else found
        return admitted.message if isinstance(admitted, Refusal) else admitted

    def _welcome(self, visit: Visit, identity: Identity) -> Refusal:
        """Log a browser in and redirect it, so that the token leaves its address bar, history and referrers.

        The page secret is in the fragment, which browsers do not send to servers.
        """
        if self.first_use is not None:
            self.first_use.logged_in(identity, visit.address)
        pair = self.credentials.log_in(identity, self._cookie_of(visit))
        rest = [pair for pair in parse_qsl(visit.query, keep_blank_values=True) if pair[0] != "token"]
        place = _own_path(visit.path) + (f"?{urlencode(rest)}" if rest else "")
        cookie = self._set_cookie(visit, pair.cookie, LIFETIME)
        return Refusal(303, "", (("location", f"{place}#page={pair.page}"), cookie))

    def renewal(self, visit: Visit, identity: Identity) -> tuple[tuple[str, str], ...]:
        """Headers that extend the cookie of a logged-in browser for another month."""
        return (self._set_cookie(visit, self._cookie_of(visit), LIFETIME),) if identity.login else ()

    def log_out(self, visit: Visit, identity: Identity) -> tuple[tuple[str, str], ...]:
        """End the browser's login; the returned headers delete its cookie."""
        self.credentials.log_out(identity)
        return (self._set_cookie(visit, "", 0),)

    def _set_cookie(self, visit: Visit, value: str, age: int) -> tuple[str, str]:
        # Not SameSite=Strict: a link from another site would open the page without its cookie.
        secure = "; Secure" if visit.secure else ""
        return "set-cookie", f"{self.cookie}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}"

    def _cookie_of(self, visit: Visit) -> str:
        return _cookies(visit.header("cookie")).get(self.cookie, "")

    def cross_origin(self, visit: Visit) -> tuple[tuple[str, str], ...]:
        """CORS headers that let a page of a configured origin read the response; none for other origins."""
        origin = visit.headers.get("origin", "")
        if origin.lower() not in self.origins:
            return ()
        return (
            ("access-control-allow-origin", origin),
            ("access-control-expose-headers", EXPOSED),
            ("vary", "Origin"),
        )

    def _preflight(self, visit: Visit) -> Refusal | None:
        """Answer a CORS preflight of a configured origin, which browsers send without the token."""
        asked = visit.header("access-control-request-method")
        if visit.method != "OPTIONS" or not asked or not self.cross_origin(visit):
            return None
        allowed = (
            ("access-control-allow-methods", "GET, POST, PUT, PATCH, DELETE"),
            ("access-control-allow-headers", ALLOWED),
            ("access-control-max-age", "600"),
        )
        return Refusal(204, "", allowed)

    def _known_host(self, host: str) -> bool:
        name = _host_name(host)
        return name in LOOPBACK_NAMES or name in self.names or _is_address(name)

    def _own_origin(self, origin: str, hosts: list[str]) -> bool:
        if origin.lower() in self.origins:
            return True
        try:
            parts = urlsplit(origin.lower())
        except ValueError:  # such as `http://[x`
            return False
        return parts.scheme in ("http", "https") and parts.netloc in [host.lower() for host in hosts]


_UNAUTHORIZED = Refusal(
    401,
    "A valid token is needed: open the address that `dragoman serve` printed, or send Authorization: Bearer.",
    (("www-authenticate", 'Bearer realm="dragoman"'),),
)


def _pasted(token: str) -> str:
    """Extract the token if the user pasted the whole address that `dragoman serve` printed."""
    token = token.strip()
    if "token=" not in token:
        return token
    query = token.partition("?")[2].partition("#")[0] if "?" in token else token
    return dict(parse_qsl(query)).get("token", token).strip()


PAGE_WANTED = Refusal(
    401,
    "A cookie is not enough: open the address that `dragoman serve` printed again, so that the page can send "
    "X-Dragoman-Page with it, or send Authorization: Bearer.",
    _UNAUTHORIZED.headers,
)
"""The cookie is valid, and its page secret is missing or wrong."""


def came_secure(tls: bool, peer: str | None, forwarded: str) -> bool:
    """Whether a request came over TLS; `X-Forwarded-Proto` is believed only from a proxy on this machine."""
    if tls or not peer or not _is_address(peer):
        return tls
    return ip_address(peer).is_loopback and forwarded.rpartition(",")[2].strip().lower() == "https"


def strict_transport(visit: Visit) -> tuple[tuple[str, str], ...]:
    """Headers that make a browser use TLS for the next year (HSTS, RFC 6797).

    Not on `localhost`: HSTS would apply to all its ports, also to servers that agents start without TLS.
    """
    name = _host_name(visit.forwarded_host or visit.header("host"))
    if not visit.secure or name in LOOPBACK_NAMES or name.endswith(".localhost"):
        return ()
    return (("strict-transport-security", "max-age=31536000"),)


def _own_path(path: str) -> str:
    """Make `path` an address on this site: exactly one slash, the rest quoted.

    `//host`, and in browsers `/\\host` and `/<tab>/host` too, is the address of another site; a raw line end would
    begin another header.
    """
    return "/" + quote(path.lstrip(_BEFORE_A_PATH), safe=_IN_PATHS)


_BEFORE_A_PATH = "/\\\x7f" + "".join(map(chr, range(0x21)))
_IN_PATHS = "/:@!$&'()*+,;=~"
"""Characters allowed in paths besides letters and digits (RFC 3986 §3.3)."""


def _host_name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    """Whether `name` is an IP address, which is safe: DNS rebinding needs a name, and Origin shows the address."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _cookies(header: str) -> dict[str, str]:
    pairs = (part.strip().partition("=") for part in header.split(";"))
    return {name: value for name, _, value in pairs}
