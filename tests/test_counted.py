"""A user's program with the ledger in it, whose signals go to the collector's real binary: who counts its calls, and
what the collector hands on, held against the ledger file."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import collector
from tests.provider import Provider
from tests.test_zero_code import entries, otlp, run

OTELCOL = os.environ.get("OTELCOL", "")
NONE_BUILT = "OTELCOL names no binary of the collector; `make collector` builds one, dist/otelcol-context-ledger"
pytestmark = pytest.mark.skipif(not OTELCOL, reason=NONE_BUILT)
QUICK = json.dumps({"connectors": {"context_ledger": {"metrics_flush_interval": "100ms", "zero_first": "0s"}}})
SDK = "otel_context_ledger"
CONNECTOR = "github.com/otel-context-ledger/otel-context-ledger/collector/contextledgerconnector"
# How near to each other two sums of money are that are the same.
CLOSE = 1e-9
# Totals of these differ with the time that things took.
TIMED = re.compile(r"_(?:bucket|sum)$")


@dataclass(frozen=True)
class Run:
    """Lines of the ledger file, the collector's entries as spans, and the ledger's metrics as scraped."""

    lines: list[dict[str, Any]]
    spans: list[dict[str, Any]]
    scraped: str

    def totals(self) -> dict[str, float]:
        """The sum of each metric of ours over all its series."""
        names = sorted(set(re.findall(r"^(context_ledger_\w+)\{", self.scraped, re.MULTILINE)))
        return {name: collector.total(self.scraped, name) for name in names if not TIMED.search(name)}

    def scopes(self) -> set[str]:
        """Who counted."""
        ours = "\n".join(line for line in self.scraped.splitlines() if line.startswith("context_ledger_"))
        return set(re.findall(r'otel_scope_name="([^"]*)"', ours))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """The same program, once with each that can count."""
    found = {}
    for counts in ("sdk", "collector"):
        folder: Path = tmp_path_factory.mktemp(counts)
        with Provider() as provider, collector.running(OTELCOL, folder, more=QUICK) as to:
            _, stderr, _, code = run(provider, folder, **otlp(to.otlp), CONTEXT_LEDGER_METRICS=counts)
            assert code == 0, stderr
            lines = entries(folder)
            scraped = [to.scrape(name, least * (1 - CLOSE)) for name, least in sums(lines).items()][-1]
            found[counts] = Run(lines, collector.calls(to.stop()), scraped)
    return found


def sums(lines: list[dict[str, Any]]) -> dict[str, float]:
    """What the lines of the ledger file add up to, by metric."""
    return {
        "context_ledger_calls_total": len(lines),
        "context_ledger_input_tokens_total": sum(line["input_tokens"] for line in lines),
        "context_ledger_output_tokens_total": sum(line["output_tokens"] for line in lines),
        "context_ledger_reusable_tokens_total": sum(line["reusable_tokens"] or 0 for line in lines),
        "context_ledger_cost_total": sum(line["cost"]["amount"] for line in lines),
    }


def test_the_collector_counts_what_the_program_leaves_to_it(runs: dict[str, Run]) -> None:
    """With CONTEXT_LEDGER_METRICS=collector all of our metrics are the connector's, else all are the program's: an
    entry that comes as a span and as a log record is counted once and in one place."""
    assert {counts: one.scopes() for counts, one in runs.items()} == {"sdk": {SDK}, "collector": {CONNECTOR}}
    assert {counts: {span["counted_by"] for span in one.spans} for counts, one in runs.items()} == {
        "sdk": {"sdk"},
        "collector": {"none"},
    }


def test_the_totals_are_those_of_the_ledger_file(runs: dict[str, Run]) -> None:
    """Calls, tokens and money are the sums over the file's lines, whoever counts."""
    for counts, one in runs.items():
        assert len(one.lines) == 4
        fields = {name: pytest.approx(told, rel=CLOSE) for name, told in sums(one.lines).items()}
        totals = one.totals()
        assert {name: totals.get(name) for name in fields} == fields, counts


def test_the_entry_on_the_span_is_the_line(runs: dict[str, Run]) -> None:
    """What the ledger said stands on the span that the collector hands on."""
    names = ("entry_id", "input_tokens", "cached_tokens", "cache_outcome", "miss_cause")
    for one in runs.values():
        told = [{name: span.get(name) for name in names} for span in one.spans]
        assert told == [{name: line[name] for name in names} for line in one.lines]
