"""Tokens with a name, a role and an optional expiry, in a file that stores only their hashes.

A secret is 256 random bits, too many to try, so one round of SHA-256 is enough. It is shown once, when the token is
created. The file reveals names and roles, but no secret.
"""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

import msgspec

from dragoman.atomic_file import PRIVATE, lock_holder, locked, replace_file
from dragoman.config.errors import ConfigError
from dragoman.config.model import QuotaConfig
from dragoman.gateway.access.identity import ROLES, TAKEN_NAMES, Identity

log = logging.getLogger(__name__)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")
MAX_LIFETIME = 100 * 365.25 * 86400.0
"""Seconds. Times far beyond have no calendar date, and a list with such a time would fail."""
_LAST_MOMENT = 253_402_000_000.0
"""The end of the year 9999, in any time zone."""
PREFIX = "dgt_"
"""Prefix of every secret, so that scanners find a secret that leaked into a log or a repository."""

LOCK_SECONDS = 5.0
"""For which a change waits for another one; each takes milliseconds."""


class Token(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A stored token."""

    name: str
    role: str
    hash: str
    created: float
    expires: float | None = None
    quotas: dict[str, int] = {}
    """Limits of this token by the keys of `[serve.quotas]`; the configuration sets the others."""

    def expired(self, now: float) -> bool:
        """Whether the token has expired; an expiry after the year 9999, written by another program, counts as past."""
        return self.expires is not None and not now < self.expires <= _LAST_MOMENT

    def facts(self) -> dict[str, Any]:
        """The token's public data, without its hash."""
        return {
            "name": self.name,
            "role": self.role,
            "created": _iso(self.created),
            "expires": None if self.expires is None else _iso(self.expires),
            "expired": self.expired(time.time()),
            "quotas": self.quotas,
        }

    def identity(self, defaults: QuotaConfig) -> Identity:
        quota = msgspec.structs.replace(defaults, **self.quotas) if self.quotas else defaults
        return Identity(self.name, ROLES[self.role], self.hash, quota)


class _File(msgspec.Struct):
    tokens: list[Token] = []


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


class TokenFile:
    """The token file; each change reads and replaces it under a lock, and a running `serve` notices the change."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[Token]:
        try:
            raw = self.path.read_bytes()
            if self.path.stat().st_mode & 0o077:
                self.path.chmod(PRIVATE)
            tokens = msgspec.json.decode(raw, type=_File).tokens
            for token in tokens:
                _check(token.name, token.role, token.quotas)
        except FileNotFoundError:
            return []
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            raise ConfigError(f"{self.path}: the tokens cannot be read: {error}") from error
        return tokens

    def create(
        self,
        name: str,
        role: str,
        *,
        lifetime: float | None = None,
        quotas: dict[str, int] | None = None,
    ) -> tuple[Token, str]:
        """Create a token; returns it with its secret, which cannot be read again."""
        try:
            _check(name, role, quotas or {})
            if lifetime is not None and not -MAX_LIFETIME <= lifetime <= MAX_LIFETIME:
                raise ValueError(f"a token is good for 100 years at most ({MAX_LIFETIME:.0f} seconds)")
        except ValueError as error:
            raise ConfigError(str(error)) from error
        secret = PREFIX + secrets.token_urlsafe(32)
        now = time.time()
        token = Token(
            name=name,
            role=role,
            hash=digest(secret),
            created=now,
            expires=None if lifetime is None else now + lifetime,
            quotas=quotas or {},
        )

        def add(known: list[Token]) -> list[Token]:
            others = [other for other in known if other.name != name]
            if len(others) < len(known) and not _one(known, name).expired(now):
                raise ConfigError(f'there is a token "{name}" already: revoke it first, or take another name')
            return [*others, token]

        self._change(add)
        return token, secret

    def revoke(self, name: str) -> Token:
        """Delete the token; a running `serve` disconnects its clients."""
        gone: list[Token] = []

        def remove(known: list[Token]) -> list[Token]:
            gone.append(_one(known, name))
            return [token for token in known if token.name != name]

        self._change(remove)
        return gone[0]

    def _change(self, edit: Callable[[list[Token]], list[Token]]) -> None:
        lock = self.path.with_suffix(".lock")
        try:
            with locked(lock, LOCK_SECONDS):
                encoded = msgspec.json.format(msgspec.json.encode(_File(edit(self.read()))), indent=1)
                replace_file(self.path, encoded + b"\n")
        except BlockingIOError as error:
            raise ConfigError(
                f"{self.path}: the tokens are as before: {lock_holder(lock)} has held the lock {lock} for "
                f"{LOCK_SECONDS:g} s. Try again, or end that process if it hangs."
            ) from error
        except OSError as error:
            raise ConfigError(f"{self.path}: the tokens cannot be stored: {error.strerror}") from error


def date_of(moment: float, zone: tzinfo | None = None) -> datetime:
    """The date of a moment, limited to 1970 through 9999."""
    return datetime.fromtimestamp(min(max(moment, 0.0), _LAST_MOMENT), zone)


def _iso(moment: float) -> str:
    return date_of(moment, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _one(known: list[Token], name: str) -> Token:
    found = next((token for token in known if token.name == name), None)
    if found is None:
        raise ConfigError(f'there is no token "{name}": `dragoman tokens list` shows those that there are')
    return found


def _check(name: str, role: str, quotas: dict[str, int]) -> None:
    if not _NAME.fullmatch(name):
        raise ValueError(f'"{name}" is not a name for a token: up to 64 letters, digits, - _ . and @')
    if name in TAKEN_NAMES:
        raise ValueError(f'the name "{name}" is taken: it stands for the instance\'s own token')
    if role not in ROLES:
        raise ValueError(f'"{role}" is not a role: expected {", ".join(ROLES)}')
    msgspec.convert(quotas, QuotaConfig)
