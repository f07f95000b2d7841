"""Owns what `make demo STACK=1` adds to the demo: a collector beside the agents, to which environment variables send
all that they tell, and the last screen, which says what of the ledger files arrived where.

Entries are read from the collector's file, counts are scraped once from its Prometheus endpoint.
"""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import verdict
from rich.console import Console
from rich.table import Table
from verdict import Entry, find

from tests import collector

QUICK = {"connectors": {"context_ledger": {"metrics_flush_interval": "500ms"}}}
# How near to each other two sums of money are that are the same.
CLOSE = 1e-9
FILE, ENDPOINT = "its file", "its Prometheus endpoint"


@dataclass(frozen=True, slots=True)
class Stack:
    """A collector that runs, and what tells an agent to send it everything and to count nothing itself."""

    to: collector.Collector

    @property
    def environment(self) -> dict[str, str]:
        exporters = {f"OTEL_{signal}_EXPORTER": "otlp" for signal in ("TRACES", "METRICS", "LOGS")}
        where = {"OTEL_EXPORTER_OTLP_ENDPOINT": self.to.otlp, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
        return exporters | where | {"CONTEXT_LEDGER_METRICS": "collector", "OTEL_SERVICE_NAME": "example-agent"}


@contextmanager
def opened(binary: str, folder: Path) -> Iterator[Stack]:
    """A collector with its files in a folder, which is emptied first: it is to know nothing of the last demo."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with collector.running(binary, folder, more=json.dumps(QUICK)) as to:
        yield Stack(to)


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


def judge(to: collector.Collector, ledgers: Sequence[Path]) -> list[Row]:
    """Ends the collector, and holds what it has against the ledger files."""
    entries = [entry for ledger in ledgers for entry in verdict.read(ledger)]
    others = [json.loads(line) for ledger in ledgers for line in ledger.read_text("utf-8").splitlines()]
    sums = _sums(entries, others)
    for name, sent in sums.items():
        scraped = to.scrape(f"context_ledger_{name}_total", sent * (1 - CLOSE))
    requests = to.stop()
    told = Counter(event for event, _ in collector.events(requests))
    return [
        Row("calls, as spans", len(entries), len(collector.calls(requests)), FILE),
        Row("calls, as log records", len(entries), told["context_ledger.entry"], FILE),
        *_counted(sums, scraped),
        *_missed(entries, scraped),
    ]


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


def _missed(entries: Sequence[Entry], scraped: str) -> Iterator[Row]:
    arrived = collector.by(scraped, "context_ledger_miss_tokens_total", "context_ledger_miss_cause")
    missed: Counter[str] = Counter()
    for entry in entries:
        if find(entry, "miss_cause") and find(entry, "avoidable_tokens"):
            missed[find(entry, "miss_cause")] += find(entry, "avoidable_tokens")
    for cause in sorted(missed.keys() | arrived.keys()):
        yield Row(f"tokens missed: {cause}", missed[cause], arrived.get(cause, 0), ENDPOINT)


def _sum(entries: Sequence[Entry], name: str) -> float:
    return sum(find(entry, name) or 0 for entry in entries)


def _money(entries: Sequence[Entry]) -> float:
    costs: list[Any] = [find(entry, "cost") or {} for entry in entries]
    return sum(cost.get("amount") or 0 for cost in costs if cost.get("unit") == "usd")


def show(rows: Sequence[Row], folder: Path, console: Console) -> bool:
    """Prints the table; whether everything arrived, and once."""
    table = Table("what", "ledger files", "arrived", "at the collector, in", "", title="What arrived where")
    for row in rows:
        sign = "the same" if row.whole else "NOT THE SAME"
        table.add_row(row.told, _number(row.sent), _number(row.arrived), row.where, sign)
    console.print(table)
    whole = all(row.whole for row in rows)
    said = "Everything arrived, and was counted once" if whole else "Not everything arrived as it was sent"
    console.print(f"{said}: the agents counted nothing themselves (CONTEXT_LEDGER_METRICS=collector).")
    console.print(f"The collector's entries: {folder / 'entries.jsonl'}", soft_wrap=True)
    return whole


def _number(count: float) -> str:
    return f"{count:,.0f}" if count == int(count) else f"{count:.6f}"
