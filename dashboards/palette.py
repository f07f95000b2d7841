"""Owns the colour of each thing that is drawn. Colour is praise or blame only where bad is bad for everyone; how much
was reused is blue, and what is not known is grey."""

from __future__ import annotations

from otel_context_ledger import semconv as s
from otel_context_ledger.model import SOUND, UNJUDGED

REUSE, RIGHT, WRONG, WARNING, UNKNOWN, LINE = "blue", "green", "red", "orange", "#8e8e8e", "#8e8e8e"

# Of what has no such label: nobody told.
UNTOLD = "unknown"


def _verdicts() -> dict[str, str]:
    judged = {verdict: RIGHT if verdict in SOUND else WRONG for verdict in s.MEMBERS[s.CONTEXT_LEDGER_VERDICT]}
    shades = {"stale": "semi-dark-red", "drift": WARNING, "missing": "dark-orange", "superseded_revived": "dark-red"}
    return judged | shades | dict.fromkeys(UNJUDGED, UNKNOWN) | {"uncertain": "#b0b0b0"}


COLOURS = {
    s.CONTEXT_LEDGER_VERDICT: _verdicts(),
    s.CONTEXT_LEDGER_TOKEN_SOURCE: {
        "cache_read": REUSE,
        "cache_write": "purple",
        "uncached": "light-blue",
        "unreported": UNKNOWN,
    },
    s.CONTEXT_LEDGER_CACHE_OUTCOME: {
        "hit": REUSE,
        "partial": "light-blue",
        "miss": "purple",
        "cold": "light-purple",
        "unknown": UNKNOWN,
    },
    s.CONTEXT_LEDGER_COST_COMPONENT: {
        "cache_read": REUSE,
        "cache_write": "purple",
        "cache_write_1h": "semi-dark-purple",
        "cache_write_12h": "dark-purple",
        "input_uncached": "light-blue",
        "output": "#c8b08a",
        "total": REUSE,
    },
    s.CONTEXT_LEDGER_TASK_OUTCOME: {"success": RIGHT, "failure": WRONG, "unknown": UNKNOWN},
    s.CONTEXT_LEDGER_COMPACTION_VALIDATOR_RESULT: {
        "pass": RIGHT,
        "uncertain": "#b0b0b0",
        "fail": WRONG,
        "not_verifiable": UNKNOWN,
        UNTOLD: UNKNOWN,
    },
    s.CONTEXT_LEDGER_COMPACTION_TRIGGER: {
        "auto": REUSE,
        "manual": "light-blue",
        "reactive": WARNING,
        "window_downshift": "purple",
        UNTOLD: UNKNOWN,
    },
    s.CONTEXT_LEDGER_COMPACTION_OUTCOME: {
        "done": REUSE,
        "failed": WRONG,
        "skipped": UNKNOWN,
        "empty": "dark-red",
        "orphaned": WARNING,
    },
}
