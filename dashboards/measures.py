"""Owns what boards and alerts measure, each quantity once: `view` says over what time and of whom."""

from __future__ import annotations

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
REPORTED = ("cache_read", "cache_write", "uncached")


def read_share(view: View) -> str:
    """Share of the input tokens that were read from the cache, of those whose reuse was reported."""
    source = s.CONTEXT_LEDGER_TOKEN_SOURCE
    return share(
        view.total(s.METRIC_INPUT_TOKENS, {source: ("cache_read",)}),
        view.total(s.METRIC_INPUT_TOKENS, {source: REPORTED}),
    )


def checked_right(view: View, pillar: str) -> str:
    """Share of a pillar's judged checks that found the context right; for constraints this is recall."""
    judged = [verdict for verdict in s.MEMBERS[s.CONTEXT_LEDGER_VERDICT] if verdict not in UNJUDGED]
    about = {s.CONTEXT_LEDGER_PILLAR: (pillar,)}
    return share(
        view.total(s.METRIC_CHECKS, {**about, s.CONTEXT_LEDGER_VERDICT: RIGHT[pillar]}),
        view.total(s.METRIC_CHECKS, {**about, s.CONTEXT_LEDGER_VERDICT: judged}),
    )
