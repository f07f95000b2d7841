"""What becomes of the ledger's metrics on the way to a board: how many series, of which temporality, across restarts,
and under one name, whatever name the input had."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from opentelemetry.sdk.metrics.export import AggregationTemporality

from dashboards.promql import View, name
from otel_context_ledger import model as m
from otel_context_ledger import semconv as s
from otel_context_ledger import telemetry
from otel_context_ledger.telemetry import Telemetry
from tests import collector, prometheus
from tests.conftest import Signals
from tests.full import ENTRY, OPENING

OTELCOL = os.environ.get("OTELCOL", "")
with_collector = pytest.mark.skipif(not OTELCOL, reason="OTELCOL names no binary of the collector (make collector)")
SECOND = 1_000_000_000
BEGIN = 1_800_000_000 * SECOND
DELTA = 1
AT_ONCE = "connectors: {context_ledger: {metrics_flush_interval: 100ms, zero_first: 0s}}"


def test_sessions_tasks_and_hashes_make_no_series() -> None:
    """DB01: 10,000 sessions, 500 tasks and 300 policy hashes make as many series as one of each."""
    one = set(_series(ENTRY))
    many = {key for n in range(10_000) for key in _series(_entry(n))}
    assert many == one
    assert len(one) > 15


def test_no_label_is_an_id_a_hash_or_a_path() -> None:
    """DB01: an attribute of a metric is one of those that the registry calls bounded."""
    attributes = yaml.safe_load(
        (Path(__file__).parents[1] / "spec" / "registry" / "attributes.yaml").read_text("utf-8")
    )
    told = {key for metric in s.METRICS.values() for key in metric.attributes}
    unbounded = {one["key"] for one in _attributes(attributes) if one["annotations"]["cardinality"] == "unbounded"}
    assert len(unbounded) > 50
    assert told & unbounded == set()


def _series(entry: m.Entry) -> Iterator[tuple[str, frozenset[tuple[str, Any]]]]:
    base = telemetry.shared(entry)
    return ((metric, frozenset({**base, **own}.items())) for metric, _, own in telemetry.measurements(entry))


def _entry(n: int) -> m.Entry:
    """The same call of another session, task and policy."""
    return replace(
        ENTRY,
        task=replace(ENTRY.task, session_id=f"session-{n}", task_id=f"task-{n % 500}", attempt_id=f"attempt-{n}"),
        context=replace(ENTRY.context, policy_hash=f"xxh3:{n % 300:032x}", cache_identity=f"xxh3:{n:032x}"),
        self=replace(ENTRY.self, entry_id=f"e{n}"),
    )


def _attributes(found: Any) -> Iterator[dict[str, Any]]:
    """Every attribute that a registry file defines."""
    if isinstance(found, dict):
        if "key" in found and "annotations" in found and "cardinality" in found["annotations"]:
            yield found
        for value in found.values():
            yield from _attributes(value)
    elif isinstance(found, list):
        for value in found:
            yield from _attributes(value)


def test_a_process_tells_cumulative_sums(signals: Signals) -> None:
    """DB03: unless somebody asks for another temporality (OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE), each sum
    and histogram of the SDK is cumulative, which every backend takes."""
    speaking = Telemetry("0.1.0")
    speaking.say(speaking.finish(ENTRY, speaking.start(ENTRY.model.model_id, OPENING, 0)))
    counted: Any = signals.reader.get_metrics_data()
    found = {
        metric.name: metric.data.aggregation_temporality
        for resource in counted.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name in s.METRICS
    }
    assert {s.METRIC_CALLS, s.METRIC_INPUT_TOKENS, s.METRIC_TIME_TO_FIRST_TOKEN} <= found.keys()
    assert set(found.values()) == {AggregationTemporality.CUMULATIVE}


def test_a_counter_that_begins_anew_is_summed(tmp_path: Path) -> None:
    """DB04: a process counts 0, 5, 9 and is followed by one that counts 0, 4: a board's total is 13."""
    prometheus.need("promtool")
    asked = View("increase", "8m").total(s.METRIC_CALLS)
    test = {
        "input_series": [{"series": name(s.METRIC_CALLS), "values": "0 0 0 5 9 0 4 4 4"}],
        "promql_expr_test": [
            {"expr": asked, "eval_time": "8m", "exp_samples": [{"labels": "{}", "value": 13}]},
        ],
    }
    prometheus.tested(tmp_path, test)


@with_collector
def test_deltas_are_added_up_where_prometheus_scrapes(tmp_path: Path) -> None:
    """DB02, DB03: delta points 100, 0 and 50 of a sender that was told to send such are 150 on the collector's page for
    Prometheus, and the delta histogram beside them is the sum of its parts."""
    with collector.running(OTELCOL, tmp_path) as running:
        for minute, value in enumerate((100, 0, 50)):
            since, at = BEGIN + minute * 60 * SECOND, BEGIN + (minute + 1) * 60 * SECOND
            times = {"startTimeUnixNano": str(since), "timeUnixNano": str(at)}
            post(running.otlp, "metrics", _metrics(_sum(value, times), _histogram(1 + minute, times)))
        text = running.scrape("context_ledger_input_tokens_total", 150)
    assert collector.total(text, "context_ledger_input_tokens_total") == 150
    assert collector.total(text, "context_ledger_time_to_first_token_seconds_count") == 6


@with_collector
def test_calls_under_old_names_and_new_ones_are_one_series(tmp_path: Path) -> None:
    """DB11: a span with names of an old version of the conventions and one with the new ones are counted by the same
    labels, under the schema of one version, so that no panel loses its data by an upgrade."""
    old = {"gen_ai.system": "openai", "gen_ai.usage.prompt_tokens": 1_000, "gen_ai.usage.completion_tokens": 10}
    new = {"gen_ai.provider.name": "openai", "gen_ai.usage.input_tokens": 1_000, "gen_ai.usage.output_tokens": 10}
    with collector.running(OTELCOL, tmp_path, more=AT_ONCE) as running:
        for number, usage in enumerate((old, new), 1):
            post(running.otlp, "traces", span(number, usage))
        text = running.scrape("context_ledger_output_tokens_total", 20)
    lines = [line for line in text.splitlines() if line.startswith("context_ledger_output_tokens_total{")]
    assert [line.rpartition(" ")[2] for line in lines] == ["20"]
    assert 'gen_ai_provider_name="openai"' in lines[0]
    assert lines[0].count("otel_scope_schema_url=") == 1


def post(otlp: str, signal: str, body: Mapping[str, Any]) -> None:
    """Sends a request in OTLP's JSON to a collector."""
    asked = urllib.request.Request(
        f"{otlp}/v1/{signal}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(asked, timeout=prometheus.SECONDS) as answer:
        assert answer.status == 200


def _metrics(*metrics: Mapping[str, Any]) -> dict[str, Any]:
    return {"resourceMetrics": [{"resource": _named("agent"), "scopeMetrics": [{"metrics": list(metrics)}]}]}


def _sum(value: int, times: Mapping[str, str]) -> dict[str, Any]:
    points = [{**times, "asInt": str(value)}]
    told = {"isMonotonic": True, "aggregationTemporality": DELTA, "dataPoints": points}
    return {"name": s.METRIC_INPUT_TOKENS, "unit": "{token}", "sum": told}


def _histogram(count: int, times: Mapping[str, str]) -> dict[str, Any]:
    counts = {"count": str(count), "sum": 0.5 * count, "explicitBounds": [1.0], "bucketCounts": [str(count), "0"]}
    told = {"aggregationTemporality": DELTA, "dataPoints": [{**times, **counts}]}
    return {"name": s.METRIC_TIME_TO_FIRST_TOKEN, "unit": "s", "histogram": told}


def span(number: int, usage: Mapping[str, Any]) -> dict[str, Any]:
    """A request with one span of a model call."""
    told = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-5", **usage}
    span = {
        "traceId": f"{number:032x}",
        "spanId": f"{number:016x}",
        "name": "chat gpt-5",
        "kind": 3,
        "startTimeUnixNano": str(BEGIN),
        "endTimeUnixNano": str(BEGIN + SECOND),
        "attributes": [{"key": key, "value": _value(value)} for key, value in told.items()],
    }
    return {"resourceSpans": [{"resource": _named("agent"), "scopeSpans": [{"spans": [span]}]}]}


def _named(service: str) -> dict[str, Any]:
    return {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}


def _value(value: str | int) -> dict[str, str]:
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}
