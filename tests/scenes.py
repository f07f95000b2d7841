"""What a rule test is made of: for each alert a scene of counters that go up by so much a minute, normally and then
during an incident, whose strength is the quantity that the alert measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboards import rules
from dashboards.promql import label, name
from otel_context_ledger import semconv as s

# Per minute, normally and during the incident; a gauge is what it is.
Rates = tuple[float, float]
Scene = Mapping[str, Rates]
# What an incident measures, at a scale; and the volume.
Maker = Callable[[Callable[[float], Rates], float], Scene]
NORMAL_MINUTES, INCIDENT_MINUTES = 240, 145


@dataclass(frozen=True, slots=True)
class Case:
    """How an alert is put to the test. `scene`: series by the strength of the incident and the volume. It fires at
    `far` and `beyond`, not at `short` of the threshold; `normal` is what it is on other days. `minutes`: after how many
    it is looked at; `told`: the labels it then has besides the severity."""

    alert: str
    scene: Maker
    normal: float
    short: float
    beyond: float
    far: float
    minutes: int
    told: Mapping[str, str]
    gauges: Sequence[str] = ()
    few: float | None = 0.25


def series(metric: str, who: Mapping[str, str], picks: Mapping[str, str] | None = None) -> str:
    """A series of a metric of the registry."""
    labels = {label(key): value for key, value in {**who, **(picks or {})}.items()}
    return _series(name(metric), labels)


def own(metric: str, labels: Mapping[str, str]) -> str:
    """A series of the collector's own metrics."""
    return _series(metric, labels)


def _series(metric: str, labels: Mapping[str, str]) -> str:
    return f"{metric}{{{','.join(f'{key}={value!r}' for key, value in labels.items())}}}".replace("'", '"')


def rates(case: Case, strength: float, volume: float) -> Scene:
    """The scene with an incident of this strength at this volume."""
    return case.scene(lambda scale: (case.normal * scale, strength * scale), volume)


def steady(rate: float) -> Rates:
    return rate, rate


def rest(of: Callable[[float], Rates], scale: float) -> Rates:
    """What is left of the whole."""
    normal, incident = of(scale)
    return scale - normal, scale - incident


def _who(alert: str) -> dict[str, str]:
    keys = (s.GEN_AI_AGENT_NAME, s.GEN_AI_REQUEST_MODEL, s.GEN_AI_PROVIDER_NAME, s.CONTEXT_LEDGER_PROVIDER_SURFACE)
    return dict.fromkeys(keys, alert)


def _told(alert: str, keys: Sequence[str], **more: str) -> dict[str, str]:
    return {label(key): alert for key in keys} | more


SAME = {s.CONTEXT_LEDGER_IDENTITY: "same"}
AGENTS_OWN = {s.CONTEXT_LEDGER_REQUEST_KIND: "agent"}
SOURCE, CAUSE = s.CONTEXT_LEDGER_TOKEN_SOURCE, s.CONTEXT_LEDGER_MISS_CAUSE


def _dropped(alert: str, cause: str) -> Maker:
    who = _who(alert)

    def scene(x: Callable[[float], Rates], volume: float) -> Scene:
        return {
            series(s.METRIC_REUSABLE_TOKENS, who, SAME): steady(1000 * volume),
            series(s.METRIC_MISS_TOKENS, who, {CAUSE: cause, **SAME}): x(1000 * volume),
            series(s.METRIC_CALLS, who, {**SAME, **AGENTS_OWN}): steady(volume),
        }

    return scene


def _churn(alert: str) -> Maker:
    who = _who(alert)

    def scene(x: Callable[[float], Rates], volume: float) -> Scene:
        changed = {CAUSE: "volatile_prefix", s.CONTEXT_LEDGER_IDENTITY: "changed"}
        return {
            series(s.METRIC_MISS_TOKENS, who, changed): x(1000 * volume),
            series(s.METRIC_INPUT_TOKENS, who, {SOURCE: "uncached"}): x(1000 * volume),
            series(s.METRIC_INPUT_TOKENS, who, {SOURCE: "cache_read"}): rest(x, 1000 * volume),
            series(s.METRIC_CALLS, who, AGENTS_OWN): steady(volume),
        }

    return scene


def _reuse_up(alert: str) -> Maker:
    who, pillar = _who(alert), {s.CONTEXT_LEDGER_PILLAR: "constraints"}

    def scene(x: Callable[[float], Rates], volume: float) -> Scene:
        return {
            series(s.METRIC_INPUT_TOKENS, who, {SOURCE: "cache_read"}): x(1000 * volume),
            series(s.METRIC_INPUT_TOKENS, who, {SOURCE: "uncached"}): rest(x, 1000 * volume),
            series(s.METRIC_CHECKS, who, {**pillar, s.CONTEXT_LEDGER_VERDICT: "held"}): (volume, 0.9 * volume),
            series(s.METRIC_CHECKS, who, {**pillar, s.CONTEXT_LEDGER_VERDICT: "lost"}): (0, 0.1 * volume),
        }

    return scene


def _checked(alert: str, pillar: str, wrong: str, right: str, read: float = 0.8) -> Maker:
    who, about = _who(alert), {s.CONTEXT_LEDGER_PILLAR: pillar}

    def scene(x: Callable[[float], Rates], volume: float) -> Scene:
        return {
            series(s.METRIC_CHECKS, who, {**about, s.CONTEXT_LEDGER_VERDICT: wrong}): x(volume),
            series(s.METRIC_CHECKS, who, {**about, s.CONTEXT_LEDGER_VERDICT: right}): rest(x, volume),
            series(s.METRIC_INPUT_TOKENS, who, {SOURCE: "cache_read"}): steady(1000 * read),
            series(s.METRIC_INPUT_TOKENS, who, {SOURCE: "uncached"}): steady(1000 * (1 - read)),
        }

    return scene


def _compacted(alert: str) -> Maker:
    who, result = _who(alert), s.CONTEXT_LEDGER_COMPACTION_VALIDATOR_RESULT

    def scene(x: Callable[[float], Rates], volume: float) -> Scene:
        return {
            series(s.METRIC_COMPACTIONS, who, {result: "fail"}): x(0.3 * volume),
            series(s.METRIC_COMPACTIONS, who, {result: "pass"}): rest(x, 0.3 * volume),
        }

    return scene


def _looping(alert: str) -> Maker:
    who = _who(alert)

    def scene(x: Callable[[float], Rates], volume: float) -> Scene:
        return {
            series(s.METRIC_COMPACTIONS, who, {s.CONTEXT_LEDGER_COMPACTION_KIND: "full"}): x(volume),
            series(s.METRIC_CALLS, who, AGENTS_OWN): steady(volume),
        }

    return scene


def _dearer(alert: str) -> Maker:
    who, outcome = _who(alert), s.CONTEXT_LEDGER_TASK_OUTCOME

    def scene(x: Callable[[float], Rates], volume: float) -> Scene:
        return {
            series(s.METRIC_COST, who, {s.CONTEXT_LEDGER_COST_COMPONENT: "total"}): x(0.2 * volume),
            series(s.METRIC_TASKS, {s.GEN_AI_AGENT_NAME: alert}, {outcome: "success"}): steady(0.2 * volume),
        }

    return scene


def _reported(alert: str) -> Maker:
    who, outcome = _who(alert), s.CONTEXT_LEDGER_CACHE_OUTCOME

    def scene(x: Callable[[float], Rates], volume: float) -> Scene:
        return {
            series(s.METRIC_CALLS, who, {outcome: "hit"}): x(volume),
            series(s.METRIC_CALLS, who, {outcome: "unknown"}): rest(x, volume),
            series(s.METRIC_CALLS, who, {outcome: "unknown", s.ERROR_TYPE: "timeout"}): steady(volume),
        }

    return scene


def _conflicting(alert: str) -> Maker:
    who, conflict = _who(alert), s.CONTEXT_LEDGER_VERDICT_CONFLICT

    def scene(x: Callable[[float], Rates], volume: float) -> Scene:
        return {
            series(s.METRIC_PROVIDER_VERDICTS, who, {conflict: "true"}): x(volume),
            series(s.METRIC_PROVIDER_VERDICTS, who, {conflict: "false"}): rest(x, volume),
        }

    return scene


def _counted(alert: str, metric: str, **more: str) -> Maker:
    labels = _at(alert, **more)

    def scene(x: Callable[[float], Rates], volume: float) -> Scene:
        return {own(metric, labels): x(volume)}

    return scene


def _at(alert: str, **more: str) -> dict[str, str]:
    return {"job": alert, "instance": alert, **more}


QUEUE = "otelcol_exporter_queue_size", "otelcol_exporter_queue_capacity"
SESSIONS = "otelcol_processor_context_ledger_sessions"


def _queue(alert: str) -> Maker:
    at = _at(alert, exporter="kafka", data_type="traces")

    def scene(x: Callable[[float], Rates], _: float) -> Scene:
        return {own(QUEUE[0], at): x(1000), own(QUEUE[1], at): steady(1000)}

    return scene


def _evicted(alert: str) -> Maker:
    at = _at(alert)

    def scene(x: Callable[[float], Rates], volume: float) -> Scene:
        return {
            own("otelcol_processor_context_ledger_evictions", {**at, "reason": "room"}): x(1000 * volume / 30),
            own(SESSIONS, at): steady(1000 * volume),
        }

    return scene


Levels = tuple[float, float, float, float]


def _case(what: str, levels: Levels, minutes: int, told: Mapping[str, str], scene: Maker, **more: Any) -> Case:
    return Case(rules.PREFIX + what, scene, *levels, minutes, told, **more)


def _agent(what: str, levels: Levels, minutes: int, scene: Maker, **more: str) -> Case:
    return _case(what, levels, minutes, _told(what, rules.AGENT, **more), scene)


def _surface(what: str, levels: Levels, minutes: int, scene: Maker) -> Case:
    return _case(what, levels, minutes, _told(what, rules.PROVIDER), scene)


def _agents_check(what: str, levels: Levels, pillar: str, wrong: str, right: str) -> Case:
    return _agent(what, levels, 45, _checked(what, pillar, wrong, right))


def _collectors(what: str, levels: Levels, minutes: int, scene: Maker, **more: Any) -> Case:
    told = {key: more.pop(key) for key in ("receiver", "exporter", "stage") if key in more}
    return _case(what, levels, minutes, _at(what, **told), scene, **more)


RECEIVED, EXPORTED = {"receiver": "otlp"}, {"exporter": "kafka"}
BROKEN = "otelcol_processor_context_ledger_errors"
# Levels: normal, short of the threshold, beyond it, far beyond it.
CASES = (
    _agent("HitRatioDropped", (0.05, 0.23, 0.28, 0.6), 45, _dropped("HitRatioDropped", "route_changed")),
    _surface("UnexplainedMisses", (0.02, 0.08, 0.12, 0.2), 80, _dropped("UnexplainedMisses", "provider_unexplained")),
    _agent(
        "PrefixChurn", (0.02, 0.18, 0.22, 0.5), 50, _churn("PrefixChurn"), context_ledger_miss_cause="volatile_prefix"
    ),
    _agent("ReuseUpRecallDown", (0.5, 0.58, 0.63, 0.8), 45, _reuse_up("ReuseUpRecallDown")),
    _agent("ConstraintLostInCompaction", (0.02, 0.08, 0.12, 0.3), 130, _compacted("ConstraintLostInCompaction")),
    _agents_check("PolicyStaleAtHighReuse", (0.01, 0.08, 0.12, 0.4), "policy", "stale", "consistent"),
    _agents_check("RepositoryStaleAtHighReuse", (0.1, 0.28, 0.32, 0.6), "repository", "stale", "fresh"),
    _agents_check("ToolContractChangedAtHighReuse", (0, 0.03, 0.07, 0.3), "tools", "contract_changed", "consistent"),
    _agent("CompactionLoop", (0.01, 0.18, 0.22, 0.5), 45, _looping("CompactionLoop")),
    _case(
        "CostPerSuccessJump",
        (1, 1.4, 1.6, 3),
        140,
        _told("CostPerSuccessJump", (s.GEN_AI_AGENT_NAME,)),
        _dearer("CostPerSuccessJump"),
    ),
    _surface("CoverageLow", (1, 0.83, 0.77, 0.2), 80, _reported("CoverageLow")),
    _case(
        "ChecksBlind",
        (1, 0.74, 0.66, 0.2),
        50,
        _told("ChecksBlind", (s.GEN_AI_AGENT_NAME,), context_ledger_pillar="policy"),
        _checked("ChecksBlind", "policy", "consistent", "unknown"),
    ),
    _surface("VerdictConflicts", (0.02, 0.18, 0.22, 0.5), 80, _conflicting("VerdictConflicts")),
    _collectors(
        "CollectorRefusing",
        (0, 0.9, 1.1, 5),
        20,
        _counted("CollectorRefusing", "otelcol_receiver_refused_spans", **RECEIVED),
        **RECEIVED,
        few=0.1,
    ),
    _collectors(
        "CollectorExportFailing",
        (0, 0.9, 1.1, 5),
        20,
        _counted("CollectorExportFailing", "otelcol_exporter_enqueue_failed_log_records_total", **EXPORTED),
        **EXPORTED,
        few=0.1,
    ),
    _collectors(
        "CollectorQueueNearlyFull",
        (0.1, 0.78, 0.82, 1),
        20,
        _queue("CollectorQueueNearlyFull"),
        **EXPORTED,
        gauges=QUEUE,
        few=None,
    ),
    _collectors("SessionsEvicted", (0, 0.04, 0.06, 0.3), 45, _evicted("SessionsEvicted"), gauges=(SESSIONS,), few=0.05),
    _collectors(
        "InternalErrors",
        (0, 0.15, 0.2, 1),
        45,
        _counted("InternalErrors", BROKEN, stage="judge"),
        stage="judge",
        few=0.1,
    ),
)
