"""All secrets that open the door now: the instance's own, and those of the named tokens.

Follows the file of named tokens: looked at with every visit (one `stat`), read again when it has changed.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import time

from dragoman.config.errors import ConfigError
from dragoman.config.model import QuotaConfig
from dragoman.gateway.identity import INSTANCE, LOCAL, Identity
from dragoman.gateway.meter import Meter
from dragoman.server.stamp import Stamp, stamp_of
from dragoman.server.tokens import Token, TokenFile, digest

log = logging.getLogger(__name__)


class _Key:
    """One token, ready to be compared."""

    __slots__ = ("cookie", "hash", "identity", "token")

    def __init__(self, token: Token | None, hash: str, identity: Identity, cookie: str) -> None:
        self.token = token
        self.hash = hash
        self.identity = identity
        self.cookie = cookie

    def valid(self, now: float) -> bool:
        return self.token is None or not self.token.expired(now)


class Keys:
    def __init__(
        self, instance: str, file: TokenFile | None = None, quotas: QuotaConfig | None = None
    ) -> None:
        """`instance` is the secret of the instance's own token."""
        self._secret = instance
        self.file = file
        self._quotas = quotas or QuotaConfig()
        self._meters: dict[str, Meter] = {}
        identity = Identity(INSTANCE.name, INSTANCE.role, quota=self._quotas)
        self._instance = _Key(None, digest(instance), identity, self._cookie_value(""))
        self._keys: list[_Key] = [self._instance]
        self._seen: Stamp | None = None
        if file is not None:
            self._seen = stamp_of(file.path)
            self._use(file.read())

    # -- visits

    def by_secret(self, secret: str) -> Identity | None:
        self.refresh()
        return self._find(digest(secret), cookie=False)

    def by_cookie(self, value: str) -> Identity | None:
        self.refresh()
        return self._find(value, cookie=True) if value else None

    def cookie(self, identity: Identity) -> str:
        """What a browser keeps in place of the secret: whoever sees it cannot tell that."""
        return self._cookie_value(identity.key)

    def holds(self, identity: Identity) -> bool:
        """Whether whoever came in with it may stay."""
        if identity == LOCAL or identity == self._instance.identity:
            return True
        now = time.time()
        return any(key.identity == identity and key.valid(now) for key in self._keys)

    def meter(self, identity: Identity) -> Meter:
        """One for all visits with the same token."""
        meter = self._meters.get(identity.key)
        if meter is None:
            meter = self._meters[identity.key] = Meter(identity.quota)
        return meter

    def _find(self, given: str, *, cookie: bool) -> Identity | None:
        """Compares with every one of them, each in constant time: how long it takes tells nothing."""
        now = time.time()
        encoded = given.encode(errors="replace")
        found: Identity | None = None
        for key in self._keys:
            expected = key.cookie if cookie else key.hash
            if hmac.compare_digest(encoded, expected.encode()) and key.valid(now):
                found = key.identity
        return found

    def _cookie_value(self, key: str) -> str:
        """Needs the instance's secret too, so that the file of hashes is not enough to make one."""
        return hmac.new(self._secret.encode(), b"dragoman cookie" + key.encode(), hashlib.sha256).hexdigest()

    # -- the file

    def refresh(self) -> None:
        """Take over what changed in the file; one that cannot be read changes nothing, and that is logged."""
        if self.file is None or (stamp := stamp_of(self.file.path)) == self._seen:
            return
        self._seen = stamp
        try:
            self._use(self.file.read())
        except ConfigError as error:
            log.error("tokens stay as they were: %s", error)
        else:
            log.info("tokens have changed", extra={"tokens": len(self._keys) - 1})

    def _use(self, tokens: list[Token]) -> None:
        named = [
            _Key(each, each.hash, each.identity(self._quotas), self._cookie_value(each.hash))
            for each in tokens
        ]
        self._keys = [self._instance, *named]
        current = {key.identity.key for key in self._keys}
        self._meters = {key: meter for key, meter in self._meters.items() if key in current}
