"""`[usage]` in the configuration: prices of models, for agents that tell tokens but no cost."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated

from msgspec import Meta, Struct


class PriceConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a model's tokens cost."""

    input: Annotated[float, Meta(ge=0, description="Price of input tokens.")] = 0.0
    output: Annotated[float, Meta(ge=0, description="Price of output tokens, thoughts included.")] = 0.0
    cache_read: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="Price of tokens read from a cache; unset: as `input`."),
    ] = None
    cache_write: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="Price of tokens written to a cache; unset: as `input`."),
    ] = None
    per: Annotated[int, Meta(ge=1, description="So many tokens have these prices.")] = 1_000_000
    currency: Annotated[str, Meta(description="Code of the currency, such as `USD` or `EUR`.")] = "USD"


class UsageConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Account of tokens and cost."""

    prices: Annotated[
        dict[str, PriceConfig],
        Meta(description="Prices by model, for agents that tell no cost: a name, or a pattern with `*`."),
    ] = {}

    def price_for(self, model: str) -> PriceConfig | None:
        """The price of the longest pattern that matches; a name without `*` comes first."""
        lowered = model.lower()
        found = [pattern for pattern in self.prices if fnmatchcase(lowered, pattern.lower())]
        best = max(found, key=lambda pattern: (pattern.lower() == lowered, len(pattern)), default=None)
        return self.prices[best] if best is not None else None
