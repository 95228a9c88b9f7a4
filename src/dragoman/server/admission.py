"""Who may come in: the one check that every request and every upgrade passes, before anything looks at its path.

In this order, so that a stranger learns as little as possible:

    Host      403   an address, `localhost`, or a name that was configured: a web page whose name suddenly resolves
                    to this machine (DNS rebinding, CVE-2025-66414) shows its own name here
    Origin    403   the page that asks must be ours, or configured (cross-site WebSocket hijacking, CVE-2026-22812)
    token     401   `Authorization: Bearer`, `?token=`, or the cookie that `?token=` becomes in a browser

Programs send no Origin; browsers always do where it matters, and pages cannot forge it.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import parse_qsl, urlencode, urlsplit

from dragoman.gateway.identity import INSTANCE, Identity, Role

OPEN_PATHS = frozenset({"/healthz"})
"""Probes have no token, and these say nothing worth one."""

NOBODY = Identity("nobody", Role.OBSERVE)
"""Who visits an open path; nothing there asks."""

LOOPBACK_NAMES = frozenset({"localhost"})


@dataclass(frozen=True, slots=True)
class Visit:
    """What a request shows at the door; header names are lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    secure: bool = False

    def header(self, name: str) -> str:
        return self.headers.get(name, "")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Not admitted, or sent elsewhere: the whole answer."""

    status: int
    message: str
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Admission:
    token: str
    cookie: str
    """The cookie's name; cookies do not tell ports apart, so it has the port in it."""
    names: frozenset[str] = frozenset()
    """Host names besides `localhost` and addresses."""
    origins: frozenset[str] = frozenset()
    """Foreign pages that may call, as `scheme://host[:port]`."""
    _cookie_value: str = field(init=False, default="")

    def __post_init__(self) -> None:
        # Derived, so that whoever sees the cookie does not have the token.
        value = hmac.new(self.token.encode(), b"dragoman cookie", hashlib.sha256).hexdigest()
        object.__setattr__(self, "_cookie_value", value)

    def check(self, visit: Visit) -> Refusal | Identity:
        """Whoever may come in, by name and role."""
        if not self._known_host(visit.header("host")):
            return Refusal(403, "This Host is not served here; serve.names lists the names that are.")
        origin = visit.headers.get("origin")
        if origin is not None and not self._own_origin(origin, visit.header("host")):
            return Refusal(403, "Pages of this Origin may not call; serve.origins lists those that may.")
        if visit.path in OPEN_PATHS:
            return NOBODY
        return self._check_token(visit)

    def _check_token(self, visit: Visit) -> Refusal | Identity:
        asked = dict(parse_qsl(visit.query, keep_blank_values=True))
        scheme, _, bearer = visit.header("authorization").partition(" ")
        if scheme.lower() == "bearer":
            return INSTANCE if self._same(bearer.strip(), self.token) else _UNAUTHORIZED
        if "token" in asked:
            if not self._same(asked["token"], self.token):
                return _UNAUTHORIZED
            return self._welcome(visit) if _is_page_visit(visit) else INSTANCE
        if self._same(_cookies(visit.header("cookie")).get(self.cookie, ""), self._cookie_value):
            return INSTANCE
        return _UNAUTHORIZED

    def _welcome(self, visit: Visit) -> Refusal:
        """A browser keeps the token as a cookie and loses it from its address bar, history and referrers."""
        rest = [pair for pair in parse_qsl(visit.query, keep_blank_values=True) if pair[0] != "token"]
        # One slash: `//evil.example` would be another site's address.
        place = "/" + visit.path.lstrip("/\\") + (f"?{urlencode(rest)}" if rest else "")
        secure = "; Secure" if visit.secure else ""
        cookie = f"{self.cookie}={self._cookie_value}; Path=/; HttpOnly; SameSite=Lax{secure}"
        return Refusal(303, "", (("location", place), ("set-cookie", cookie)))

    def _known_host(self, host: str) -> bool:
        name = _host_name(host)
        return name in LOOPBACK_NAMES or name in self.names or _is_address(name)

    def _own_origin(self, origin: str, host: str) -> bool:
        if origin.lower() in self.origins:
            return True
        parts = urlsplit(origin.lower())
        return parts.scheme in ("http", "https") and parts.netloc == host.lower()

    @staticmethod
    def _same(given: str, expected: str) -> bool:
        """In constant time, so that a secret cannot be guessed letter by letter."""
        return hmac.compare_digest(given.encode(errors="replace"), expected.encode())


_UNAUTHORIZED = Refusal(
    401,
    "A valid token is needed: open the address that `dragoman serve` printed, or send Authorization: Bearer.",
    (("www-authenticate", 'Bearer realm="dragoman"'),),
)


def _is_page_visit(visit: Visit) -> bool:
    return visit.method == "GET" and "text/html" in visit.header("accept")


def _host_name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    """Rebinding needs a name; a page that was loaded from an address has that address as its Origin."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _cookies(header: str) -> dict[str, str]:
    pairs = (part.strip().partition("=") for part in header.split(";"))
    return {name: value for name, _, value in pairs}
