"""Enters a turn in the ledger, after its answer was sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dragoman.gateway.json_types import JsonObject
from dragoman.gateway.ports.usage import UNIT, Entry, Money, Tokens
from dragoman.gateway.rewriting.reserved import OURS
from dragoman.gateway.session.settings.options import MODEL
from dragoman.gateway.session.usage.figures import MOST_MONEY, Used, name, read_turn
from dragoman.wire import timestamps

if TYPE_CHECKING:
    from dragoman.config.model import AgentConfig, Config
    from dragoman.gateway.runtime import Runtime
    from dragoman.gateway.session.settings.options import Options
    from dragoman.gateway.session.updates import AgentUpdates


_UNTOLD = [Used(None)]


class Accounted(Protocol):
    """The part of a session that is looked at here."""

    id: str
    agent_name: str
    workspace: str
    options: Options
    updates: AgentUpdates

    @property
    def gateway(self) -> Runtime: ...

    @property
    def agent_config(self) -> AgentConfig: ...

    @property
    def follows(self) -> bool: ...


class Prompted(Protocol):
    """The part of a turn that is looked at here."""

    call: int | None
    prompter: str


def turn_ended(
    session: Accounted, turn: Prompted, outcome: JsonObject, stop_reason: str, seconds: float
) -> None:
    """`outcome` is the result or error that the prompt was answered with; a prompt that no agent got is no turn."""
    ledger = session.gateway.usage
    if ledger is None or turn.call is None or session.follows:  # the owner enters it
        return
    before, told = session.updates.meter.take()
    config = session.agent_config
    parts = read_turn(outcome, ours=config.kind in OURS) or _UNTOLD
    if parts is not _UNTOLD and any(part.cost is not None for part in parts):
        told = None  # the same cost, as the session's
    chosen = name(session.options.value(MODEL))
    turn_id, at = ledger.new_turn(), timestamps.now()
    ledger.add(
        [
            Entry(
                turn=turn_id,
                part=number,
                session=session.id,
                agent=part.agent or session.agent_name,
                model=part.model or chosen,
                workspace=session.workspace,
                identity=turn.prompter,
                at=at,
                outcome=stop_reason,
                seconds=seconds,
                tokens=part.tokens,
                cost=part.cost,
                told=told if number == 0 else None,
                before=before if number == 0 else None,
                estimate=_estimate(part.tokens, part.model or chosen, session.gateway.config),
            )
            for number, part in enumerate(parts)
        ]
    )


def _estimate(tokens: Tokens | None, model: str, config: Config) -> Money | None:
    """The cost by the price table; None without tokens or a price."""
    price = config.usage.price_for(model) if tokens is not None and config.usage.prices else None
    if tokens is None or price is None:
        return None
    whole = (
        tokens.input * price.input
        + tokens.output * price.output
        + tokens.cache_read * (price.input if price.cache_read is None else price.cache_read)
        + tokens.cache_write * (price.input if price.cache_write is None else price.cache_write)
    ) / price.per
    return Money(round(whole * UNIT), price.currency.upper()) if whole <= MOST_MONEY else None
