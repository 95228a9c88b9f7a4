"""Logins of browsers: a token is exchanged for a cookie and a page secret, which the page keeps in its storage.

Cookies are not separated by port: a browser sends the cookie to any program on another port of this host, and that
program can send it here. So the cookie alone opens only the page's own files. The browser stores the page secret for
this origin (scheme, host and port) alone; the secret is sent once, in exchange for a token.

The file has hashes only. Both secrets are 256 random bits, so one round of SHA-256 is enough. One `serve` at a time
uses a state folder, so the file is read at the start and written when something changes.
"""

from __future__ import annotations

import hmac
import logging
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from dragoman.atomic_file import PRIVATE, replace_file
from dragoman.server import limits
from dragoman.server.auth.named_tokens import digest

log = logging.getLogger(__name__)

LIFETIME = 30 * 24 * 3600
"""Seconds without use until a login ends."""

USED_STEP = 3600
"""Seconds between two writes of a login's last use to the file."""


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """A stored login."""

    cookie: str
    """The cookie's hash, which also names the login."""
    pages: list[str]
    """Hashes of the page secrets valid with the cookie, the newest last."""
    token: str
    """Hash of the token that was exchanged for the login; the login ends with that token."""
    used: float

    def expired(self, now: float) -> bool:
        return self.used + LIFETIME <= now

    def has_page(self, secret: str) -> bool:
        """Whether `secret` is one of the page secrets; compares with all of them, each in constant time."""
        shown = digest(secret).encode()
        matches = [hmac.compare_digest(shown, page.encode()) for page in self.pages]
        return any(matches)


@dataclass(frozen=True, slots=True)
class Pair:
    """The two secrets of a browser."""

    cookie: str
    page: str


class _File(msgspec.Struct):
    logins: list[Login] = []


class Logins:
    def __init__(self, file: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        """Without `file`, logins end with the process."""
        self._file = file
        self._clock = clock
        self._logins: dict[str, Login] = {}
        if file is not None:
            self._logins = {login.cookie: login for login in _read(file)}

    def begin(self, token: str, cookie: str = "") -> Pair:
        """Create a login for a browser that sent the token with this hash.

        A `cookie` that is valid for that token is reused, so that the browser's other tabs stay logged in.
        """
        known = self.find(cookie)
        secret = secrets.token_urlsafe(32)
        if known is None or known.token != token:
            cookie = secrets.token_urlsafe(32)
            known = Login(cookie=digest(cookie), pages=[], token=token, used=0.0)
        pages = [*known.pages, digest(secret)][-limits.MAX_PAGE_SECRETS :]
        self._logins[known.cookie] = msgspec.structs.replace(known, pages=pages, used=self._clock())
        self._make_room(token)
        self._write()
        return Pair(cookie, secret)

    def find(self, cookie: str) -> Login | None:
        """The login of a cookie value. The lookup is by hash, so its duration says nothing about the value."""
        login = self._logins.get(digest(cookie)) if cookie else None
        return login if login is not None and not login.expired(self._clock()) else None

    def holds(self, name: str) -> bool:
        """Whether the login with this cookie hash is still valid."""
        login = self._logins.get(name)
        return login is not None and not login.expired(self._clock())

    def use(self, name: str) -> None:
        """Record a use: the browser sent the pair, or has a connection that was opened with it."""
        login = self._logins.get(name)
        now = self._clock()
        if login is not None and not login.expired(now) and now - login.used >= USED_STEP:
            self._logins[name] = msgspec.structs.replace(login, used=now)
            self._write()

    def end(self, name: str) -> None:
        if self._logins.pop(name, None) is not None:
            self._write()

    def keep_only(self, tokens: Iterable[str]) -> None:
        """Delete the logins of all other tokens."""
        current = frozenset(tokens)
        kept = {name: login for name, login in self._logins.items() if login.token in current}
        if len(kept) < len(self._logins):
            self._logins = kept
            self._write()

    def _make_room(self, token: str) -> None:
        """Delete expired logins and, beyond the limit, this token's least recently used ones."""
        now = self._clock()
        self._logins = {name: login for name, login in self._logins.items() if not login.expired(now)}
        of_token = sorted(
            (login for login in self._logins.values() if login.token == token), key=lambda login: login.used
        )
        for login in of_token[: -limits.MAX_LOGINS]:
            del self._logins[login.cookie]

    def _write(self) -> None:
        if self._file is None:
            return
        encoded = msgspec.json.format(msgspec.json.encode(_File(list(self._logins.values()))), indent=1)
        try:
            replace_file(self._file, encoded + b"\n")
        except OSError as error:
            log.error("%s: browser logins cannot be stored (%s): a restart undoes changes", self._file, error)


def _read(file: Path) -> list[Login]:
    """The stored logins; none if the file cannot be read: users then open the printed address again."""
    try:
        raw = file.read_bytes()
        if file.stat().st_mode & 0o077:
            file.chmod(PRIVATE)
        return msgspec.json.decode(raw, type=_File).logins
    except FileNotFoundError:
        return []
    except (OSError, msgspec.MsgspecError) as error:
        log.error("%s: browser logins cannot be read (%s); all browsers must log in again", file, error)
        return []
