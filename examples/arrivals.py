"""Owns the last screen of `make demo STACK=1`, which says what of the ledger files arrived where.

Entries are read from the collector's file, counts are scraped once from its Prometheus endpoint; where a Prometheus
runs beside it, that is asked too. All of them go on running.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import verdict
from rich.console import Console
from rich.table import Table
from verdict import Entry, find

from tests import collector, prometheus

# How near to each other two sums of money are that are the same.
CLOSE = 1e-9
FILE, ENDPOINT, PROMETHEUS = "the collector's file", "the collector's endpoint", "Prometheus"


@dataclass(frozen=True, slots=True)
class Row:
    """Something that the ledger files have, and how much of it arrived where."""

    told: str
    sent: float
    arrived: float
    where: str

    @property
    def whole(self) -> bool:
        return math.isclose(self.sent, self.arrived, rel_tol=CLOSE)


def judge(to: collector.Collector, seen: prometheus.Prometheus | None, ledgers: Sequence[Path]) -> list[Row]:
    """Holds what the collector has, and Prometheus if there is one, against the ledger files; waits for it a while."""
    entries = [entry for ledger in ledgers for entry in verdict.read(ledger)]
    others = [json.loads(line) for ledger in ledgers for line in ledger.read_text("utf-8").splitlines()]
    sums, missed = _sums(entries, others), _missed_tokens(entries)
    for name, sent in (*sums.items(), ("miss_tokens", sum(missed.values()))):
        scraped = to.scrape(f"context_ledger_{name}_total", sent * (1 - CLOSE))
    told = prometheus.waited(lambda: _told(to), lambda found: min(found) >= len(entries))
    return [
        Row("calls, as spans", len(entries), told[0], FILE),
        Row("calls, as log records", len(entries), told[1], FILE),
        *_counted(sums, scraped),
        *_missed(missed, scraped),
        *(_asked(seen, sums) if seen else ()),
    ]


def _told(to: collector.Collector) -> tuple[int, int]:
    """How many calls are in the collector's file: as spans, as log records."""
    requests = to.requests()
    events = Counter(event for event, _ in collector.events(requests))
    return len(collector.calls(requests)), events["context_ledger.entry"]


def _asked(seen: prometheus.Prometheus, sums: Mapping[str, float]) -> Iterator[Row]:
    """The calls as Prometheus has them, and as it saw them rise, for what it first sees of a series is no rise; once it
    has everything else."""
    for name, sent in sums.items():
        seen.until(f"sum(context_ledger_{name}_total)", partial(_reaches, sent * (1 - CLOSE)))
    metric = "context_ledger_calls_total"
    for told, query in (
        ("calls, counted", f"sum(last_over_time({metric}[1h]))"),
        ("calls, seen from 0 on", f"sum(max_over_time({metric}[1h]) - min_over_time({metric}[1h]))"),
    ):
        yield Row(told, sums["calls"], sum(one.value for one in seen.query(query)), PROMETHEUS)


def _reaches(least: float, found: Sequence[prometheus.Sample]) -> bool:
    return sum(one.value for one in found) >= least


def _sums(entries: Sequence[Entry], others: Sequence[Entry]) -> dict[str, float]:
    """What is to be counted, by the name of its metric. A compaction has several lines; the end of a task may be told
    more than once, and an attempt that failed is no end."""
    over = [line for line in others if line.get("kind") == "compaction" and find(line, "outcome")]
    told = [line for line in others if line.get("kind") == "outcome"]
    ends = [line for line in told if not (find(line, "attempt_id") and find(line, "task_outcome") == "failure")]
    return {
        "calls": len(entries),
        "input_tokens": _sum(entries, "input_tokens"),
        "output_tokens": _sum(entries, "output_tokens"),
        "cost": _money(entries),
        "compactions": len({find(line, "compaction_event") for line in over}),
        "tasks": len({(find(line, "task_id"), find(line, "task_outcome")) for line in ends}),
    }


def _counted(sums: Mapping[str, float], scraped: str) -> Iterator[Row]:
    words = {"tasks": "tasks that ended", "cost": "cost in USD"}
    for name, sent in sums.items():
        told = f"{words.get(name, name.replace('_', ' '))}, counted"
        yield Row(told, sent, collector.total(scraped, f"context_ledger_{name}_total"), ENDPOINT)


def _missed_tokens(entries: Sequence[Entry]) -> Counter[str]:
    missed: Counter[str] = Counter()
    for entry in entries:
        if find(entry, "miss_cause") and find(entry, "avoidable_tokens"):
            missed[find(entry, "miss_cause")] += find(entry, "avoidable_tokens")
    return missed


def _missed(missed: Counter[str], scraped: str) -> Iterator[Row]:
    arrived = collector.by(scraped, "context_ledger_miss_tokens_total", "context_ledger_miss_cause")
    for cause in sorted(missed.keys() | arrived.keys()):
        yield Row(f"tokens missed: {cause}", missed[cause], arrived.get(cause, 0), ENDPOINT)


def _sum(entries: Sequence[Entry], name: str) -> float:
    return sum(find(entry, name) or 0 for entry in entries)


def _money(entries: Sequence[Entry]) -> float:
    costs: list[Any] = [find(entry, "cost") or {} for entry in entries]
    return sum(cost.get("amount") or 0 for cost in costs if cost.get("unit") == "usd")


def show(rows: Sequence[Row], to: collector.Collector, console: Console) -> bool:
    """Prints the table; whether everything arrived, and once."""
    table = Table("what", "ledger files", "arrived", "at", "", title="What arrived where")
    for row in rows:
        sign = "the same" if row.whole else "NOT THE SAME"
        table.add_row(row.told, _number(row.sent), _number(row.arrived), row.where, sign)
    console.print(table)
    whole = all(row.whole for row in rows)
    said = "Everything arrived, and was counted once" if whole else "Not everything arrived as it was sent"
    console.print(f"{said}: the agents counted nothing themselves (CONTEXT_LEDGER_METRICS=collector).")
    console.print(f"The collector's entries: {to.file}", soft_wrap=True)
    return whole


def _number(count: float) -> str:
    return f"{count:,.0f}" if count == int(count) else f"{count:.4f}"
