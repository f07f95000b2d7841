"""Owns a day that never was: what agents and collectors would have counted, minute by minute, always the same.

A day's work from 07:00 to 21:00 with an incident for each alert, each at one agent or collector, then a quiet night in
which one small agent makes a call now and then. Boards and rules are tried on it. Numbers are drawn call by call from a
generator of each agent's own, so that an incident at one agent changes nothing of the others.

python -m dashboards.history FOLDER    one file of OpenMetrics text for each two hours, for `promtool tsdb
                                       create-blocks-from openmetrics`
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from otel_context_ledger import semconv as s

from .collectors import CONNECTOR, PROCESSOR
from .promql import label, name

START = 1767592800  # 2026-01-05 06:00 UTC
STEP, MINUTES = 60, 24 * 60
DAWN, DUSK = 60, 15 * 60  # minutes after the start
CHUNK = 120
Weights = Mapping[str, float]
Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class Agent:
    """How an agent works on other days: calls a minute, tokens of a prompt and the share of it that was sent before,
    and how often what happens. `misses`: share of the calls by cause, `lost`: share of what was sent before that such a
    call misses."""

    agent: str
    provider: str
    surface: str
    model: str
    calls: float
    prompt: int = 40_000
    sent_before: float = 0.85
    misses: Weights = field(default_factory=lambda: {"retention_expired": 0.02, "provider_unexplained": 0.01})
    lost: float = 0.9
    reported: float = 1.0
    writes: bool = False
    streams: bool = False
    price: float | None = 3e-6
    checks: Mapping[str, Weights] = field(default_factory=lambda: SOUND)
    compacts: float = 0.03
    validated: Weights = field(default_factory=lambda: {"pass": 0.97, "uncertain": 0.02, "fail": 0.01})
    succeeds: float = 0.88
    conflicts: float | None = None
    breaks: bool = False
    restarts: tuple[int, ...] = ()
    night: float | None = 0.0


SOUND: Mapping[str, Weights] = {
    "policy": {"consistent": 0.98, "stale": 0.01, "unknown": 0.01},
    "repository": {"fresh": 0.92, "stale": 0.06, "unavailable": 0.02},
    "tools": {"consistent": 0.97, "drift": 0.02, "unknown": 0.01},
    "constraints": {"held": 0.97, "uncertain": 0.02, "lost": 0.01},
    "state": {"compatible": 0.99, "reasoning_dropped": 0.01},
}
AGENTS = (
    Agent("coder", "moonshot_ai", "kimi_open_platform", "kimi-k3", 3, 55_000, 0.92, streams=True, restarts=(420,)),
    Agent("reviewer", "anthropic", "anthropic", "claude-sonnet", 2.5, 30_000, 0.66, writes=True, conflicts=0.03),
    Agent("researcher", "openai", "openai", "gpt-large", 2, 45_000, 0.8, streams=True, price=5e-6, restarts=(180,)),
    Agent("support", "moonshot_ai", "openrouter", "kimi-k3", 3, 9_000, 0.75, price=1e-6, compacts=0.005),
    # A subscription: quota, and no money.
    Agent("batch", "moonshot_ai", "kimi_code", "kimi-for-coding", 2, 60_000, 0.9, price=None, night=None),
    Agent("triage", "vllm", "vllm", "qwen-small", 3, 4_000, 0.6, price=None, compacts=0, night=None),
    # Nothing is right with its few calls, and nobody is to be woken.
    Agent("nightly", "openai", "openai", "gpt-small", 0.08, 20_000, 0.8, {"volatile_prefix": 0.9}, night=1.0,
          succeeds=0.2, checks={**SOUND, "policy": {"stale": 0.8, "consistent": 0.2}}, conflicts=0.5),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Incident:
    """What is otherwise at an agent or a collector from one minute to another, and the alerts that say so."""

    alerts: Sequence[str]
    at: str
    begins: int
    ends: int
    otherwise: Mapping[str, Any]


def _instead(pillar: str, **weights: float) -> dict[str, Any]:
    return {"checks": {**SOUND, pillar: weights}}


EVERY = {"retention_expired": 0.02, "provider_unexplained": 0.01}
INCIDENTS = (
    Incident(["PrefixChurn"], "batch", 270, 360, {"misses": {**EVERY, "volatile_prefix": 0.7}}),
    Incident(["CompactionLoop"], "researcher", 300, 390, {"compacts": 0.4}),
    Incident(["HitRatioDropped"], "batch", 480, 570, {"misses": {**EVERY, "route_changed": 0.6}}),
    Incident(
        ["ReuseUpRecallDown"],
        "reviewer",
        420,
        510,
        {"sent_before": 0.92, **_instead("constraints", held=0.84, lost=0.14, uncertain=0.02)},
    ),
    Incident(["CoverageLow"], "triage", 420, 540, {"reported": 0.3}),
    Incident(
        ["ConstraintLostInCompaction"],
        "coder",
        480,
        600,
        {"compacts": 0.06, "validated": {"pass": 0.5, "fail": 0.5}},
    ),
    Incident(
        ["UnexplainedMisses"],
        "researcher",
        540,
        660,
        {"misses": {**EVERY, "provider_unexplained": 0.3}, "lost": 0.45},
    ),
    Incident(
        ["ToolContractChangedAtHighReuse"], "support", 540, 600, _instead("tools", consistent=0.7, contract_changed=0.3)
    ),
    Incident(["ChecksBlind"], "triage", 600, 690, _instead("repository", fresh=0.3, unavailable=0.7)),
    Incident(["PolicyStaleAtHighReuse"], "reviewer", 630, 720, _instead("policy", consistent=0.6, stale=0.4)),
    Incident(["RepositoryStaleAtHighReuse"], "coder", 660, 720, _instead("repository", fresh=0.4, stale=0.6)),
    Incident(["CostPerSuccessJump"], "support", 660, 840, {"succeeds": 0.3}),
    Incident(["VerdictConflicts"], "reviewer", 750, 840, {"conflicts": 0.6}),
    Incident(["InternalErrors"], "researcher", 720, 760, {"breaks": True}),
    Incident(["CollectorRefusing"], "gateway-0", 240, 270, {"refused": 40}),
    Incident(["CollectorExportFailing"], "gateway-0", 360, 390, {"failed": 25}),
    Incident(["CollectorQueueNearlyFull"], "gateway-1", 420, 460, {"queue": 930}),
    Incident(["SessionsEvicted"], "gateway-1", 480, 540, {"evicted": 12}),
    Incident(["NoMetrics"], "gateway-0", 810, 840, {"up": False}),
    Incident([], "gateway-1", 810, 840, {"up": False}),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Collector:
    """How a collector works on other days, per minute; `queue` is what waits in a queue of 1,000."""

    instance: str
    spans: int = 400
    refused: int = 0
    failed: int = 0
    queue: int = 30
    evicted: int = 0
    up: bool = True


COLLECTORS = (Collector("gateway-0"), Collector("gateway-1", 350))


class Counters:
    """What one process has counted, by series."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._labels = labels
        self.values: dict[Key, float] = {}

    def add(self, series: str, by: float, labels: Mapping[str, str] | None = None) -> None:
        """A series goes up."""
        key = self._key(series, labels or {})
        self.values[key] = self.values.get(key, 0) + by

    def hold(self, series: str, level: float, labels: Mapping[str, str] | None = None) -> None:
        """A series is at a level."""
        self.values[self._key(series, labels or {})] = level

    def _key(self, series: str, labels: Mapping[str, str]) -> Key:
        return series, tuple(sorted({**self._labels, **labels}.items()))


@dataclass(slots=True)
class Process:
    """An agent's process: what it counts of its calls."""

    random: Random
    counters: Counters
    left: int = 10  # calls until the task ends

    def minute(self, who: Agent, busy: float) -> None:
        """One minute of work."""
        for _ in range(self._how_many(who.calls * busy)):
            self._call(who)

    def count(self, metric: str, by: float, who: Agent, **picks: str) -> None:
        """A measurement as the ledger makes it; of a task only the agent is known."""
        shared = {s.GEN_AI_AGENT_NAME: who.agent}
        if metric != s.METRIC_TASKS:
            shared |= {
                s.GEN_AI_PROVIDER_NAME: who.provider,
                s.GEN_AI_REQUEST_MODEL: who.model,
                s.CONTEXT_LEDGER_PROVIDER_SURFACE: who.surface,
            }
        own = {f"context_ledger.{key.replace('__', '.')}": value for key, value in picks.items()}
        unknown = set(own) - set(s.METRICS[metric].attributes)
        if unknown:
            raise ValueError(f"{metric} has no attribute {', '.join(unknown)}")
        self.counters.add(name(metric), by, {label(key): value for key, value in {**shared, **own}.items()})

    def _call(self, who: Agent) -> None:
        prompt = max(1_000, int(self.random.gauss(who.prompt, who.prompt * 0.2)))
        if self._happens(1 / 40):
            self._used(who, prompt, 0, "cold", "first")
        elif not self._happens(who.reported):
            self._silent(who, prompt)
        else:
            self._continued(who, prompt)
        for pillar, verdicts in who.checks.items():
            self.count(s.METRIC_CHECKS, 1, who, pillar=pillar, verdict=self._one_of(verdicts))
        if self._happens(who.compacts):
            self._compacted(who, prompt)
        self.left -= 1
        if not self.left:
            self.left = self.random.randrange(8, 17)
            outcome = "success" if self._happens(who.succeeds) else "failure"
            self.count(s.METRIC_TASKS, 1, who, task_outcome=self._one_of({outcome: 0.95, "unknown": 0.05}))
        if self._happens(0.3):
            self.count(s.METRIC_REPEATED_READ, self.random.randrange(1_000, 40_000), who)

    def _continued(self, who: Agent, prompt: int) -> None:
        """A call that continues an earlier one: what was sent before is read, or missed for a cause."""
        before = int(prompt * who.sent_before)
        cause = self._one_of({**who.misses, "": 1 - sum(who.misses.values())})
        missed = int(before * who.lost) if cause else 0
        changed = cause in CHANGES
        identity = "changed" if changed else "same"
        self.count(s.METRIC_REUSABLE_TOKENS, before - missed if changed else before, who, identity=identity)
        if missed:
            self.count(s.METRIC_MISS_TOKENS, missed, who, miss_cause=cause, identity=identity)
        if changed:
            self.count(s.METRIC_IDENTITY_CHANGES, 1, who, part=CHANGES[cause])
        if who.conflicts is not None and self._happens(0.5):
            conflict = "true" if self._happens(who.conflicts) else "false"
            self.count(s.METRIC_PROVIDER_VERDICTS, 1, who, verdict_conflict=conflict)
        self._used(who, prompt, before - missed, "partial" if missed else "hit", identity)

    def _silent(self, who: Agent, prompt: int) -> None:
        """A call whose reuse nobody told: what could have been reused is known all the same."""
        self._counted(who, "unknown", "same")
        self.count(s.METRIC_REUSABLE_TOKENS, int(prompt * who.sent_before), who, identity="same")
        self.count(s.METRIC_INPUT_TOKENS, prompt, who, token__source="unreported")
        self.count(s.METRIC_OUTPUT_TOKENS, 300, who)

    def _used(self, who: Agent, prompt: int, read: int, outcome: str, identity: str) -> None:
        self._counted(who, outcome, identity)
        written = int((prompt - read) * 0.8) if who.writes else 0
        uncached, output = prompt - read - written, self.random.randrange(100, 1_500)
        classes = {"cache_read": read, "uncached": uncached} | ({"cache_write": written} if who.writes else {})
        for source, tokens in classes.items():
            self.count(s.METRIC_INPUT_TOKENS, tokens, who, token__source=source)
        self.count(s.METRIC_OUTPUT_TOKENS, output, who)
        if who.streams:
            self._waited(who, 0.4 + (prompt - read) / 20_000 * self.random.uniform(0.8, 1.2), outcome)
        if who.price is not None:
            self._paid(who, who.price, {**classes, "output": output})

    def _counted(self, who: Agent, outcome: str, identity: str) -> None:
        kind = self._one_of({"agent": 0.94, "auxiliary": 0.06})
        self.count(s.METRIC_CALLS, 1, who, cache_outcome=outcome, identity=identity, request_kind=kind)

    def _paid(self, who: Agent, price: float, tokens: Weights) -> None:
        for source, count in tokens.items():
            component, share = PRICES[source]
            self.count(s.METRIC_COST, count * share * price, who, cost__component=component)
        whole = sum(count * (5 if source == "output" else 1) for source, count in tokens.items()) * price
        self.count(s.METRIC_COST_WITHOUT_CACHE, whole, who, cost__component="total")

    def _waited(self, who: Agent, seconds: float, outcome: str) -> None:
        family, metric = name(s.METRIC_TIME_TO_FIRST_TOKEN), s.METRICS[s.METRIC_TIME_TO_FIRST_TOKEN]
        labels = {
            label(s.GEN_AI_AGENT_NAME): who.agent,
            label(s.GEN_AI_PROVIDER_NAME): who.provider,
            label(s.GEN_AI_REQUEST_MODEL): who.model,
            label(s.CONTEXT_LEDGER_PROVIDER_SURFACE): who.surface,
            label(s.CONTEXT_LEDGER_CACHE_OUTCOME): outcome,
        }
        for bound in (*metric.boundaries, math.inf):
            le = "+Inf" if bound == math.inf else f"{bound:g}"
            self.counters.add(f"{family}_bucket", float(seconds <= bound), {**labels, "le": le})
        self.counters.add(f"{family}_count", 1, labels)
        self.counters.add(f"{family}_sum", seconds, labels)

    def _compacted(self, who: Agent, prompt: int) -> None:
        how = {"compaction__kind": "full", "compaction__trigger": self._one_of({"auto": 0.9, "manual": 0.1})}
        result = self._one_of(who.validated)
        self.count(s.METRIC_COMPACTIONS, 1, who, **how, compaction__outcome="done", compaction__validator_result=result)
        # The next call sends a summary instead of what was in the cache.
        self.count(s.METRIC_MISS_TOKENS, prompt, who, miss_cause="history_compacted", identity="changed")
        self.count(s.METRIC_IDENTITY_CHANGES, 1, who, part="summary")
        self.count(s.METRIC_COMPACTION_TOKENS, prompt * 2, who, side="before")
        self.count(s.METRIC_COMPACTION_TOKENS, prompt // 5, who, side="after")

    def _happens(self, share: float) -> bool:
        return self.random.random() < share

    def _one_of(self, weights: Weights) -> str:
        return self.random.choices(list(weights), list(weights.values()))[0]

    def _how_many(self, expected: float) -> int:
        """A number of calls whose mean is this (Knuth's way to draw from a Poisson distribution)."""
        limit, product, found = math.exp(-expected), self.random.random(), 0
        while product > limit:
            product *= self.random.random()
            found += 1
        return found


# Causes that change the cache identity, by the part that they change.
CHANGES = {"volatile_prefix": "policy_wire", "policy_changed": "policy", "tools_reordered": "tools_wire"}
# Component of the price, and its share of the price of input.
PRICES = {
    "cache_read": ("cache_read", 0.1),
    "cache_write": ("cache_write", 1.25),
    "uncached": ("input_uncached", 1.0),
    "output": ("output", 5.0),
}


def busy(minute: int, who: Agent) -> float:
    """How much an agent does at a time of the day, as a share of what it does on average while people work."""
    if DAWN <= minute < DUSK:
        return 1 + 0.25 * math.sin((minute - DAWN) / 100)
    return who.night or 0.0


def write(folder: Path, incidents: Sequence[Incident] = INCIDENTS) -> list[Path]:
    """The day with these incidents, a file for each two hours."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    days = [_agents_day(who, incidents) for who in AGENTS] + [_collectors_day(one, incidents) for one in COLLECTORS]
    chunk: dict[Key, list[str]] = {}
    for minute, states in enumerate(zip(*days, strict=True)):
        at = START + minute * STEP
        for state in states:
            for key, value in state.items():
                chunk.setdefault(key, []).append(f"{value:.12g} {at}")
        if minute % CHUNK == CHUNK - 1:
            files.append(folder / f"{minute // CHUNK:02d}.txt")
            files[-1].write_text("".join(_lines(chunk)) + "# EOF\n", "utf-8")
            chunk.clear()
    return files


def _lines(chunk: Mapping[Key, Sequence[str]]) -> Iterator[str]:
    for (series, labels), points in chunk.items():
        named = f"{series}{{{','.join(f'{key}={value!r}' for key, value in labels)}}}".replace("'", '"')
        yield from (f"{named} {point}\n" for point in points)


def _agents_day(who: Agent, incidents: Sequence[Incident]) -> Iterator[Mapping[Key, float]]:
    """What an agent's process shows after each minute; nothing while there is none."""
    where = {"job": "agents", "instance": f"{who.agent}-0"}
    process = Process(Random(who.agent), Counters(where))
    for minute in range(MINUTES):
        now = replace(who, **_otherwise(who.agent, minute, incidents))
        if minute in who.restarts:
            process.counters = Counters(where)
        process.minute(now, busy(minute, who))
        if now.breaks or minute == 30 * AGENTS.index(who) + 200:
            process.counters.add(name(s.METRIC_INTERNAL_ERRORS), 1, {label(s.CONTEXT_LEDGER_STAGE): "telemetry"})
        there = who.night is not None or DAWN <= minute < DUSK
        yield dict(process.counters.values) if there else {}


def _collectors_day(who: Collector, incidents: Sequence[Incident]) -> Iterator[Mapping[Key, float]]:
    """What a collector shows of itself after each minute; nothing while it is down."""
    where = {"job": "otelcol", "instance": f"{who.instance}:8888"}
    counters, scraped = Counters(where), Counters(where)
    for minute in range(MINUTES):
        now = replace(who, **_otherwise(who.instance, minute, incidents))
        _collected(counters, now, minute)
        # That nothing answers is Prometheus' own word, and stays.
        scraped.hold("up", float(now.up))
        yield scraped.values | (counters.values if now.up else {})


def _collected(counters: Counters, now: Collector, minute: int) -> None:
    """A minute of a collector. At night there is a tenth of the spans."""
    spans = now.spans if DAWN <= minute < DUSK else now.spans // 10
    for signal, share in (("spans", 1.0), ("log_records", 1.0), ("metric_points", 0.5)):
        at = {"receiver": "otlp", "transport": "grpc"}
        counters.add(f"otelcol_receiver_accepted_{signal}", int(spans * share), at)
        counters.add(f"otelcol_receiver_refused_{signal}", now.refused if signal == "spans" else 0, at)
        to = {"exporter": "otlp_grpc"}
        counters.add(f"otelcol_exporter_sent_{signal}", int(spans * share) - now.failed, to)
        counters.add(f"otelcol_exporter_send_failed_{signal}", now.failed if signal == "spans" else 0, to)
        counters.add(f"otelcol_exporter_enqueue_failed_{signal}", 0, to)
    for signal in ("traces", "logs"):
        for way in ("incoming", "outgoing"):
            counters.add(
                f"otelcol_processor_{way}_items", spans, {"processor": "context_ledger", "otel_signal": signal}
            )
    queue = {"exporter": "otlp_grpc", "data_type": "traces"}
    counters.hold("otelcol_exporter_queue_size", now.queue, queue)
    counters.hold("otelcol_exporter_queue_capacity", 1_000, queue)
    counters.add("otelcol_process_uptime", STEP)
    counters.add("otelcol_process_cpu_seconds", spans / 100)
    counters.hold("otelcol_process_memory_rss", 180e6 + 10e6 * math.sin(minute / 90))
    _ours(counters, now, spans)


def _ours(counters: Counters, now: Collector, spans: int) -> None:
    """What our components count in a collector."""
    calls = spans // 20
    counters.add(f"{PROCESSOR}_calls", calls, {"dialect": "context_ledger"})
    counters.add(f"{PROCESSOR}_calls", calls // 5, {"dialect": "gen_ai"})
    for by, cause, share in (
        ("none", "none", 0.9),
        ("collector", "none", 0.15),
        ("collector", "previous_unknown", 0.1),
    ):
        counters.add(f"{PROCESSOR}_verdicts", int(calls * share), {"by": by, "cause": cause})
    for metric in ("ambiguous", "calls"):
        counters.add(f"{PROCESSOR}_{metric}", 0, {"dialect": "open_inference"})
    for reason, forgotten in (("room", now.evicted), ("idle", calls // 10)):
        counters.add(f"{PROCESSOR}_evictions", forgotten, {"reason": reason})
    counters.hold(f"{PROCESSOR}_sessions", 900)
    counters.hold(f"{PROCESSOR}_state_size", 2.5e6, {"of": "calls"})
    counters.hold(f"{PROCESSOR}_state_size", 9e6, {"of": "captured"})
    counters.add(f"{PROCESSOR}_invariant_violations", 0)
    for component, stage in ((PROCESSOR, "judge"), (CONNECTOR, "count")):
        counters.add(f"{component}_errors", 0, {"stage": stage})
    counters.add(f"{PROCESSOR}_snapshot_failures", 0, {"step": "save"})
    counters.add(f"{PROCESSOR}_snapshot_saves", 1)
    for result, share in (("counted", 0.2), ("counted_elsewhere", 0.8), ("duplicate", 0.01)):
        counters.add(f"{CONNECTOR}_entries", int(calls * share), {"result": result})
    counters.hold(f"{CONNECTOR}_series", 240)
    counters.add(f"{CONNECTOR}_overflow", 0, {"bound": "values"})
    counters.add(f"{CONNECTOR}_flush_failures", 0)


def _under_way(at: str, minute: int, incidents: Sequence[Incident]) -> list[Incident]:
    return [one for one in incidents if one.at == at and one.begins <= minute < one.ends]


def _otherwise(at: str, minute: int, incidents: Sequence[Incident]) -> dict[str, Any]:
    return {key: value for one in _under_way(at, minute, incidents) for key, value in one.otherwise.items()}


if __name__ == "__main__":
    write(Path(sys.argv[1]))
