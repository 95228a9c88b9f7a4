"""The cost of a session as its agent tells it: a sum since the agent's session began, not since the turn did."""

from __future__ import annotations

from dragoman.gateway.ports.usage import Money
from dragoman.gateway.session.usage.figures import read_money

NOTHING = Money(0, "")
"""No cost yet, in whichever currency."""


class Meter:
    def __init__(self) -> None:
        self._last: Money | None = None
        self._before: Money | None = None
        self._news = False

    def starts_at_zero(self) -> None:
        """The agent has just made the session: what it tells first was spent here."""
        self._last = self._before = NOTHING

    def turn_begins(self) -> None:
        self._before = self._last

    def tell(self, cost: object) -> None:
        """The agent told the cost so far."""
        money = read_money(cost)
        if money is not None:
            self._last, self._news = money, True

    def take(self) -> tuple[Money | None, Money | None]:
        """The cost before the turn that ends, and the cost now if it was told since the last call."""
        told = self._last if self._news else None
        self._news = False
        return self._before, told
