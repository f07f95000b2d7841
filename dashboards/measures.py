"""Owns what boards and alerts measure, each quantity once: `view` says over what time and of whom."""

from __future__ import annotations

from collections.abc import Sequence

from otel_context_ledger import semconv as s

from .promql import View, share

RIGHT = {
    "policy": ("consistent",),
    "repository": ("fresh",),
    "tools": ("consistent",),
    "constraints": ("held",),
    "state": ("compatible",),
}
# What was looked at and could not be judged is in neither number of a ratio, and has a panel of its own.
UNJUDGED = ("unknown", "not_verifiable", "unavailable", "uncertain")
JUDGED = tuple(verdict for verdict in s.MEMBERS[s.CONTEXT_LEDGER_VERDICT] if verdict not in UNJUDGED)
RIGHT_WORDS = tuple(dict.fromkeys(word for words in RIGHT.values() for word in words))
REPORTED = ("cache_read", "cache_write", "uncached")


def read_share(view: View) -> str:
    """Share of the input tokens that were read from the cache, of those whose reuse was reported."""
    source = s.CONTEXT_LEDGER_TOKEN_SOURCE
    return share(
        view.total(s.METRIC_INPUT_TOKENS, {source: ("cache_read",)}),
        view.total(s.METRIC_INPUT_TOKENS, {source: REPORTED}),
    )


def captured(view: View) -> str:
    """Share of the tokens that were in the cache and sent again that were read from it: the rest was missed."""
    read = view.total(s.METRIC_INPUT_TOKENS, {s.CONTEXT_LEDGER_TOKEN_SOURCE: ("cache_read",)})
    missed = f"({view.total(s.METRIC_MISS_TOKENS)} or {read} * 0)"
    return share(read, f"({read} + {missed})")


def saved(view: View) -> str:
    """Share of the price without a cache that was not paid; below 0 the cache costs more than it saves."""
    return f"1 - {share(view.total(s.METRIC_COST), view.total(s.METRIC_COST_WITHOUT_CACHE))}"


def checked_right(view: View, *pillars: str) -> str:
    """Share of the judged checks of these pillars (all of them where none is named) that found the context right; for
    constraints this is recall."""
    return share(_checks(view, pillars, RIGHT_WORDS), _checks(view, pillars, JUDGED))


def judged(view: View, *pillars: str) -> str:
    """Share of the checks of these pillars that could be judged at all."""
    return share(_checks(view, pillars, JUDGED), _checks(view, pillars, ()))


def reported(view: View) -> str:
    """Share of the calls of which the provider told how much was reused."""
    outcome = s.CONTEXT_LEDGER_CACHE_OUTCOME
    told = [word for word in s.MEMBERS[outcome] if word != "unknown"]
    return share(view.total(s.METRIC_CALLS, {outcome: told}), view.total(s.METRIC_CALLS))


def succeeded(view: View) -> str:
    """Share of the decided tasks that were a success."""
    outcome = s.CONTEXT_LEDGER_TASK_OUTCOME
    return share(
        view.total(s.METRIC_TASKS, {outcome: ("success",)}),
        view.total(s.METRIC_TASKS, {outcome: ("success", "failure")}),
    )


def cost_per_success(view: View) -> str:
    """All that calls cost, by the tasks that were a success."""
    successes = view.total(s.METRIC_TASKS, {s.CONTEXT_LEDGER_TASK_OUTCOME: ("success",)})
    return f"{view.total(s.METRIC_COST)} / ({successes} > 0)"


def _checks(view: View, pillars: Sequence[str], verdicts: Sequence[str]) -> str:
    wanted = {s.CONTEXT_LEDGER_PILLAR: pillars, s.CONTEXT_LEDGER_VERDICT: verdicts}
    return view.total(s.METRIC_CHECKS, {key: words for key, words in wanted.items() if words})
