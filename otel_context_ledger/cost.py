"""Tokens → money, on our own exclusive classes, or null with the reason; a missing rate is never a rate of zero.

Rates are genai-prices' (`genai_prices`, per million tokens, tiers by prompt size) under the user's `[prices]` tables.
Its own reader of usage is not used: it misses Kimi's top-level `cached_tokens` (pydantic/genai-prices, read at 0.2.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from otel_context_ledger.model import Cost, Usage

Steps = tuple[tuple[int, float], ...]
RATES = ("input", "cache_read", "cache_write", "cache_write_1h", "cache_write_12h", "output")
_LIBRARY = {
    "input": "input_mtok", "cache_read": "cache_read_mtok", "cache_write": "cache_write_mtok",
    "cache_write_1h": "cache_write_1h_mtok", "output": "output_mtok",
}  # fmt: skip
_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Card:
    """USD per million tokens by class; each rate holds (from this many prompt tokens on, rate), ascending."""

    rates: Mapping[str, Steps]
    window: int | None = None

    def rate(self, name: str, prompt: int) -> float | None:
        """The rate of a class for a prompt of this size."""
        steps = self.rates.get(name, ())
        if len(steps) == 1 and steps[0][0] == 0:
            return steps[0][1]
        return next((rate for start, rate in reversed(steps) if prompt > start or start == 0), None)


class Prices:
    """Price cards by price list and model: the user's first, then genai-prices', looked up once an hour."""

    def __init__(self, own: Mapping[str, Mapping[str, float]] | None = None) -> None:
        self._own = {
            model: Card({name: ((0, float(rate)),) for name, rate in card.items()})
            for model, card in (own or {}).items()
        }
        self._known: dict[tuple[str, str, int], Card | None] = {}

    def card(self, listed: str | None, model: str | None, now: float) -> Card | None:
        """The card of a model, or `None` when nobody lists it."""
        if model is None:
            return None
        if model in self._own or listed is None:
            return self._own.get(model)
        key = (listed, model, int(now // _HOUR))
        if key not in self._known:
            if len(self._known) > 1024:
                self._known.clear()
            self._known[key] = _library_card(listed, model, now)
        return self._known[key]


def _library_card(listed: str, model: str, now: float) -> Card | None:
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, found = get_snapshot().find_provider_model(model, None, listed, None)
    except LookupError:
        return None
    prices = found.get_prices(datetime.fromtimestamp(now, timezone.utc))
    rates = {ours: steps for ours, theirs in _LIBRARY.items() if (steps := _steps(getattr(prices, theirs, None)))}
    return Card(rates, getattr(found, "context_window", None))


def _steps(price: object) -> Steps:
    if price is None:
        return ()
    base, tiers = getattr(price, "base", price), getattr(price, "tiers", ())
    return ((0, float(str(base))), *((int(tier.start), float(tier.price)) for tier in tiers))


def price(usage: Usage, card: Card | None, avoidable: int | None = None, unit: str = "usd") -> Cost:
    """What a call cost. A provider's own cost wins and ours stays beside it; quota is never money."""
    if unit == "quota":
        return Cost(unit="quota", missing="quota_surface")
    ours = _computed(usage, card, avoidable)
    if usage.provider_cost is None:
        return ours
    return replace(
        ours,
        amount=usage.provider_cost,
        currency="USD",
        unit="usd",
        source="provider",
        computed=ours.amount,
        missing=None,
    )


def _computed(usage: Usage, card: Card | None, avoidable: int | None) -> Cost:
    prompt = usage.input
    if prompt is None or usage.output is None:
        return Cost(missing="usage_missing")
    if card is None:
        return Cost(missing="price_missing:model")
    tokens = components(usage)
    rates = {name: card.rate(name, prompt) for name in tokens}
    lacking = next((name for name, count in tokens.items() if count and rates[name] is None), None)
    if lacking:
        return Cost(missing=f"price_missing:{lacking}")
    if usage.unreported and rates["cache_read"] is not None:
        return Cost(missing="cached_tokens_not_reported")
    parts = {name: count * (rates[name] or 0.0) / 1e6 for name, count in tokens.items() if count}
    full, out, read = rates["input"], rates["output"], rates["cache_read"]
    unpriced = full is None or (out is None and usage.output > 0)
    without = None if unpriced else (prompt * (full or 0.0) + usage.output * (out or 0.0)) / 1e6
    lost = None if avoidable is None or full is None or read is None else avoidable * (full - read) / 1e6
    return Cost(sum(parts.values()), "USD", "computed", "usd", without, lost, components=parts)


def components(usage: Usage) -> dict[str, int]:
    """Tokens by rate. Writes whose lifetime was not reported are priced at the short one (5 or 30 minutes)."""
    hour, half_day = usage.write_1h or 0, usage.write_12h or 0
    long = hour + half_day
    short = (long if usage.cache_write is None else usage.cache_write) - long
    plain = (usage.uncached or 0) + (usage.unreported or 0)
    return {
        "input": plain, "cache_read": usage.cache_read or 0, "cache_write": short, "cache_write_1h": hour,
        "cache_write_12h": half_day, "output": usage.output or 0,
    }  # fmt: skip
