"""All valid credentials: the instance's token, the named tokens, and browser logins.

The file of named tokens is checked at every visit (one `stat`) and read again when it has changed.
"""

from __future__ import annotations

import hmac
import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from dragoman.atomic_file import PRIVATE, Stamp, replace_file, stamp_of
from dragoman.config.errors import ConfigError
from dragoman.config.model import QuotaConfig
from dragoman.gateway.access.identity import INSTANCE, LOCAL, Identity
from dragoman.gateway.access.rate_limit import RateLimit
from dragoman.server.auth.logins import Login, Logins, Pair
from dragoman.server.auth.named_tokens import Token, TokenFile, digest

log = logging.getLogger(__name__)

MARK_LENGTH = 16


class _Key:
    """One token with its hash and identity."""

    __slots__ = ("hash", "identity", "token")

    def __init__(self, token: Token | None, hash: str, identity: Identity) -> None:
        self.token = token
        self.hash = hash
        self.identity = identity

    def valid(self, now: float) -> bool:
        return self.token is None or not self.token.expired(now)


class Credentials:
    def __init__(
        self,
        instance: str,
        file: TokenFile | None = None,
        quotas: QuotaConfig | None = None,
        logins: Logins | None = None,
    ) -> None:
        """`instance` is the secret of the instance's own token."""
        self.file = file
        self._logins = logins or Logins()
        self._quotas = quotas or QuotaConfig()
        self._rate_limits: dict[str, RateLimit] = {}
        identity = Identity(INSTANCE.name, INSTANCE.role, quota=self._quotas)
        self._instance = _Key(None, digest(instance), identity)
        self._keys: list[_Key] = [self._instance]
        self._seen: Stamp | None = None
        self.on_change: Callable[[list[str], list[str]], None] = lambda added, removed: None
        """Called with the names of tokens that a changed file adds and removes; a replaced one is both."""
        if file is not None:
            self._seen = stamp_of(file.path)
        self._use(file.read() if file is not None else [])

    # -- visits

    def by_secret(self, secret: str) -> Identity | None:
        self.refresh()
        return self._find(digest(secret))

    def holds(self, identity: Identity) -> bool:
        """Whether the token of an admitted client is still valid."""
        if identity == LOCAL or identity == self._instance.identity:
            return True
        now = time.time()
        return any(key.identity == identity and key.valid(now) for key in self._keys)

    def lapsed(self, identity: Identity) -> str | None:
        """Why a token is no longer valid, by its file as it is now; None while it is."""
        self.refresh()
        return None if self.holds(identity) else f"The token {identity.name} is not valid any more"

    def mark(self, identity: Identity) -> str:
        """Identifies this token, and no later one of the same name, in stored data; the mark is no credential."""
        return digest(identity.key or self._instance.hash)[:MARK_LENGTH]

    def current(self, name: str, mark: str) -> Identity | str:
        """The token's present identity, or a sentence that says why the token is no longer valid."""
        self.refresh()
        for key in self._keys:
            if key.identity.name == name and self.mark(key.identity) == mark:
                return key.identity if key.valid(time.time()) else f"The token {name} has expired."
        return f"The token {name} was {'replaced' if name == INSTANCE.name else 'revoked'}."

    def rate_limit(self, identity: Identity) -> RateLimit:
        """The rate limit shared by all visits with the same token."""
        rate_limit = self._rate_limits.get(identity.key)
        if rate_limit is None:
            rate_limit = self._rate_limits[identity.key] = RateLimit(identity.quota)
        return rate_limit

    def _find(self, hash: str) -> Identity | None:
        """The valid token with this hash; compares with all tokens, each in constant time."""
        now = time.time()
        found: Identity | None = None
        for key in self._keys:
            if hmac.compare_digest(hash.encode(), key.hash.encode()) and key.valid(now):
                found = key.identity
        return found

    # -- browsers

    def log_in(self, identity: Identity, cookie: str) -> Pair:
        """Create a cookie and a page secret for a browser that sent the token; a valid `cookie` is reused."""
        return self._logins.begin(identity.key or self._instance.hash, cookie)

    def by_cookie(self, cookie: str) -> tuple[Identity, Login] | None:
        """The login of a cookie. It is not enough to authenticate: the page secret must be checked too."""
        self.refresh()
        login = self._logins.find(cookie)
        identity = self._find(login.token) if login is not None else None
        return (
            (replace(identity, login=login.cookie), login)
            if identity is not None and login is not None
            else None
        )

    def use_login(self, identity: Identity) -> None:
        """Record that cookie and page secret were sent; the login's lifetime begins again."""
        self._logins.use(identity.login)

    def log_out(self, identity: Identity) -> None:
        self._logins.end(identity.login)

    def stays(self, identity: Identity) -> bool:
        """Whether a client may stay connected: its token is valid, and so is its login if it has one."""
        if not self.holds(identity):
            return False
        if identity.login:
            self._logins.use(identity.login)
        return not identity.login or self._logins.holds(identity.login)

    # -- the file

    def refresh(self) -> None:
        """Reload the token file if it has changed; a file that cannot be read is logged and changes nothing."""
        if self.file is None or (stamp := stamp_of(self.file.path)) == self._seen:
            return
        self._seen = stamp
        before = self._names()
        try:
            self._use(self.file.read())
        except ConfigError as error:
            log.error("token file could not be reloaded; keeping the previous tokens: %s", error)
        else:
            log.info("tokens have changed", extra={"tokens": len(self._keys) - 1})
            now = self._names()
            added, removed = (
                sorted(name for _, name in one.items() - other.items())
                for one, other in ((now, before), (before, now))
            )
            if added or removed:
                self.on_change(added, removed)

    def _names(self) -> dict[tuple[str, str], str]:
        """Names of the named tokens, by hash and role."""
        return {(key.hash, str(key.identity.role)): key.identity.name for key in self._keys[1:]}

    def _use(self, tokens: list[Token]) -> None:
        named = [_Key(token, token.hash, token.identity(self._quotas)) for token in tokens]
        self._keys = [self._instance, *named]
        current = {key.identity.key for key in self._keys}
        self._rate_limits = {
            key: rate_limit for key, rate_limit in self._rate_limits.items() if key in current
        }
        self._logins.keep_only(key.hash for key in self._keys)


def instance_token(file: Path) -> str:
    """The token in `file`, created if there is none yet."""
    try:
        token = file.read_text().strip()
        if token:
            if file.stat().st_mode & 0o077:
                file.chmod(PRIVATE)
            return token
    except FileNotFoundError:
        pass
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: the token cannot be read: {error}") from error
    return _make(file)


def _make(file: Path) -> str:
    token = secrets.token_urlsafe(32)
    try:
        replace_file(file, token.encode() + b"\n")
    except OSError as error:
        raise ConfigError(f"{file}: the token cannot be stored: {error.strerror}") from error
    return token
