"""Limits how many things one token may have open, so that some are left for other tokens."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from dragoman.gateway.access.identity import Identity
from dragoman.server.asgi import HttpError

log = logging.getLogger(__name__)


class TokenShares:
    def __init__(self, what: str, each: int, together: int) -> None:
        """`each` is the limit per token, `together` that of all tokens; `what` is the plural noun for messages."""
        self._what = what
        self._each = each
        self._together = together
        self._taken: Counter[Identity] = Counter()
        self._all = 0
        self._told: set[Identity] = set()

    def take(self, identity: Identity) -> None:
        """Count one, or raise `HttpError` at the limit; `give_back` must follow."""
        if self._taken[identity] >= self._each:
            self._log_once(identity)
            raise HttpError(
                429,
                f"The token {identity.name} has {self._each} {self._what} already; end some of them first.",
                [("retry-after", "30")],
            )
        if self._all >= self._together:
            raise HttpError(503, f"There are too many {self._what}.", [("retry-after", "30")])
        self._taken[identity] += 1
        self._all += 1

    def give_back(self, identity: Identity) -> None:
        self._all -= 1
        self._taken[identity] -= 1
        if not self._taken[identity]:
            del self._taken[identity]
            self._told.discard(identity)

    @contextmanager
    def reserved(self, identity: Identity) -> Iterator[None]:
        """Take one for something that the `with` block creates; give it back only if the block raises."""
        self.take(identity)
        try:
            yield
        except BaseException:
            self.give_back(identity)
            raise

    @contextmanager
    def taken(self, identity: Identity) -> Iterator[None]:
        self.take(identity)
        try:
            yield
        finally:
            self.give_back(identity)

    def _log_once(self, identity: Identity) -> None:
        """Log the first refusal of a token only."""
        if identity not in self._told:
            self._told.add(identity)
            log.warning(
                "token has its share of %s", self._what, extra={"token": identity.name, "share": self._each}
            )
