"""Tells the audit when a token is first used from an address, and of every login."""

from __future__ import annotations

from dragoman.gateway.access.identity import Identity
from dragoman.gateway.bounded_dict import BoundedDict
from dragoman.gateway.ports.audit import Audit

REMEMBERED = 10_000
"""Pairs of a token and an address; beyond it the oldest is forgotten, and told once more."""


class FirstUse:
    def __init__(self, audit: Audit) -> None:
        self._audit = audit
        self._seen: BoundedDict[None] = BoundedDict(REMEMBERED)

    def admitted(self, identity: Identity, address: str) -> None:
        key = f"{identity.name} {address}"
        if key in self._seen:
            return
        self._seen[key] = None
        self._audit.record(
            "token_used", {"by": identity.name, "role": str(identity.role), "address": address}
        )

    def logged_in(self, identity: Identity, address: str) -> None:
        self._audit.record("login", {"by": identity.name, "role": str(identity.role), "address": address})
