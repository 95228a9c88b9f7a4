"""What the gateway needs to keep account of tokens and cost: one or more entries per turn, and reports on them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated, Literal, Protocol, get_args

from msgspec import Meta, Struct

By = Literal["agent", "model", "session", "workspace", "identity", "day", "turn"]
BY: tuple[str, ...] = get_args(By)
"""What a report can be divided by."""
MOST_GROUPS = 10_000
"""Most rows of one report; its totals are of all."""
UNIT = 1_000_000_000
"""Amounts are whole billionths of a currency's unit: their sums are exact."""


class Money(Struct, frozen=True, gc=False):
    amount: int
    """In billionths (`UNIT`)."""
    currency: str
    """As the agent writes it, in capitals; `?` if it names none."""


class Tokens(Struct, frozen=True, rename="camel", gc=False):
    """No token is in two of them, but for `thought`, which is a part of `output`."""

    input: Annotated[int, Meta(description="Without what was read from or written to a cache.")] = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    thought: Annotated[int, Meta(description="The part of `output` that was reasoning, as far as told.")] = 0

    @property
    def total(self) -> int:
        return self.input + self.output + self.cache_read + self.cache_write


class Entry(Struct, frozen=True, kw_only=True, gc=False):
    """What one turn used of one model. Entries of a turn have its id and are counted from 0."""

    turn: str
    part: int = 0
    session: str
    agent: str
    model: str
    """Empty if unknown."""
    workspace: str
    identity: str
    at: str
    """When the turn ended: ISO 8601, UTC."""
    outcome: str
    seconds: float
    tokens: Tokens | None = None
    cost: Money | None = None
    """The turn's own cost, if the agent tells that."""
    told: Money | None = None
    """The session's cost up to now, if the agent tells that and told it since the last turn ended."""
    before: Money | None = None
    """The session's cost before the turn, if known."""
    estimate: Money | None = None
    """The turn's cost by the price table."""


class Cost(Struct, frozen=True):
    currency: Annotated[str, Meta(description="As the agent names it; `?` if it does not.")]
    amount: Annotated[float, Meta(description="All of it, the estimated part included.")]
    estimated: Annotated[float, Meta(description="The part that comes from the price table.")] = 0.0


class TurnFacts(Struct, frozen=True):
    session: str
    agent: str
    model: str
    workspace: str
    identity: str
    at: Annotated[str, Meta(description="When it ended: ISO 8601, UTC.")]
    outcome: Annotated[str, Meta(description="The stop reason, or `error`.")]
    seconds: float


class Group(Struct, frozen=True, rename="camel", omit_defaults=True):
    key: Annotated[str, Meta(description="The agent, model, day, … that it is about; empty if unknown.")]
    turns: int
    tokens: Tokens
    total_tokens: int
    costs: Annotated[list[Cost], Meta(description="One for each currency; they are never added up.")]
    unknown: Annotated[int, Meta(description="Turns of which neither tokens nor cost are known.")] = 0
    unpriced: Annotated[int, Meta(description="Turns of which tokens are known, but no cost.")] = 0
    title: Annotated[str | None, Meta(description="By session: its title, if it still exists.")] = None
    turn: TurnFacts | None = None


class Report(Struct, frozen=True, rename="camel"):
    by: By
    groups: list[Group]
    total: Annotated[Group, Meta(description="Of all turns, also if `more` is true.")]
    more: Annotated[bool, Meta(description=f"There are more than {MOST_GROUPS} groups.")] = False


class Wanted(Struct, frozen=True):
    by: By = "agent"
    since: str | None = None
    """ISO 8601, UTC; turns that ended then or later."""
    until: str | None = None
    agent: str | None = None
    model: str | None = None
    session: str | None = None
    workspace: str | None = None
    identity: str | None = None


@dataclass
class UsageFigures:
    """What this process wrote to the ledger so far."""

    tokens: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By agent and kind of token."""
    cost: Counter[tuple[str, str, bool]] = field(default_factory=Counter)
    """By agent, currency and whether it is estimated; in billionths."""
    unknown: Counter[str] = field(default_factory=Counter)
    """By agent: turns without figures."""
    lost: int = 0
    """Entries that could not be written."""


class Ledger(Protocol):
    figures: UsageFigures

    def new_turn(self) -> str:
        """An id for the entries of one turn, which no other turn has, also of other processes."""

    def add(self, entries: list[Entry]) -> None:
        """Write the entries of a turn soon, without waiting for it; never raises."""

    async def report(self, wanted: Wanted) -> Report:
        """Raises `StoreError` if the ledger cannot be read."""
