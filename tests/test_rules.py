"""The rules for Prometheus: every alert by promtool, at its threshold, at too little volume, without data and across a
restart of what counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboards import measures, promql, rules
from dashboards.collectors import OTELCOL
from dashboards.promql import View
from dashboards.thresholds import RECALL, below
from otel_context_ledger import semconv
from tests import prometheus, runbook, scenes
from tests.scenes import CASES, INCIDENT_MINUTES, NORMAL_MINUTES, Case, Scene

ROOT = Path(__file__).resolve().parents[1]
SECTIONS = ("Meaning", "Impact", "Look at", "Mitigation", "False alarms")
SEVERITIES = ("critical", "warning")
PRESENT = f'{scenes.SESSIONS}{{job="collectors",instance="%s"}}'


@pytest.fixture(scope="module", autouse=True)
def _needed() -> None:
    prometheus.need("promtool")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rules without annotations, whose numbers are not what these tests are about."""
    return _written(tmp_path_factory.mktemp("rules") / "bare.yaml", told=False)


def _written(path: Path, *alerts: str, told: bool = True) -> Path:
    """The rules, or what is recorded and these alerts of them, with or without annotations."""
    found = yaml.safe_load(rules.render())
    for group in found["groups"]:
        group["rules"] = [rule for rule in group["rules"] if not alerts or rule.get("alert", alerts[0]) in alerts]
        for rule in group["rules"]:
            if not told:
                rule.pop("annotations", None)
    path.write_text(yaml.safe_dump(found), "utf-8")
    return path


def counted(case: Case, scene: Scene, restart: int | None = None, gone: bool = False) -> Iterator[dict[str, str]]:
    """promtool's input: each series of a scene, a sample a minute. `restart`: the minute in which counters begin anew;
    `gone`: during the incident there is no series at all."""
    for name, (normal, incident) in scene.items():
        gauge = name.partition("{")[0] in case.gauges
        values = f"{normal}x{NORMAL_MINUTES}" if gauge else f"0+{normal}x{NORMAL_MINUTES}"
        at = 0.0 if gauge else normal * NORMAL_MINUTES
        if gone:
            values += f" stale _x{INCIDENT_MINUTES}"
        elif gauge:
            values += f" {incident}x{INCIDENT_MINUTES}"
        elif restart is None:
            values += f" {at + incident}+{incident}x{INCIDENT_MINUTES}"
        else:
            values += f" {at + incident}+{incident}x{restart} 0+{incident}x{INCIDENT_MINUTES - restart}"
        yield {"series": name, "values": values}


def _case(alert: str) -> Case:
    return next(case for case in CASES if case.alert == alert)


def expected(case: Case) -> dict[str, Any]:
    severity = next(alert.severity for alert in rules.ALERTS if alert.name == case.alert)
    return {"exp_labels": {**case.told, "severity": severity}}


def look(case: Case, *alerts: Mapping[str, Any]) -> dict[str, Any]:
    """promtool's look at an alert in the case's own minute: these fire."""
    return {
        "eval_time": f"{NORMAL_MINUTES + case.minutes}m",
        "alertname": case.alert,
        "exp_alerts": list(alerts),
    }


def check(folder: Path, rule_file: Path, inputs: Sequence[Mapping[str, str]], firing: Callable[[Case], bool]) -> None:
    """Runs promtool with every case looked at in its own minute: exactly those that are to fire do."""
    looks = [look(case, *([expected(case)] if firing(case) else [])) for case in CASES]
    looks.append({"eval_time": f"{NORMAL_MINUTES + 60}m", "alertname": "ContextLedgerNoMetrics", "exp_alerts": []})
    prometheus.tested(folder, {"input_series": list(inputs), "alert_rule_test": looks}, rules=[rule_file])


def strengths(level: str, volume: float | None = 1.0, **more: Any) -> list[dict[str, str]]:
    """Every case's series at a level ("short", "beyond", …) and a volume; None: the case's own too small one."""
    return [
        line
        for case in CASES
        for line in counted(
            case,
            scenes.rates(case, getattr(case, level), volume if volume is not None else case.few or 1.0),
            **more,
        )
    ]


def test_every_alert_has_a_case() -> None:
    """No alert is without these tests; NoMetrics, which is about what is not there, has its own."""
    assert {case.alert for case in CASES} | {"ContextLedgerNoMetrics"} == {alert.name for alert in rules.ALERTS}


def test_every_alert_fires_beyond_its_threshold(tmp_path: Path, bare: Path) -> None:
    """A little beyond its threshold each alert fires, once, for the agent, surface or collector that it is about."""
    check(tmp_path, bare, strengths("beyond"), lambda _: True)


def test_no_alert_fires_short_of_its_threshold(tmp_path: Path, bare: Path) -> None:
    """A little short of its threshold no alert fires."""
    check(tmp_path, bare, strengths("short"), lambda _: False)


def test_no_alert_fires_at_too_little_volume(tmp_path: Path, bare: Path) -> None:
    """Far beyond the threshold of a share, yet of too few calls, checks, tasks or errors: nobody is woken. A queue has
    a level and no volume."""
    check(tmp_path, bare, strengths("beyond", volume=None), lambda case: case.few is None)


def test_no_alert_fires_without_data(tmp_path: Path, bare: Path) -> None:
    """When everything ends, as agents do at night, nothing fires: what is not there is unknown, not 0."""
    sessions = [{"series": PRESENT % "a", "values": f"5x{NORMAL_MINUTES + INCIDENT_MINUTES}"}]
    inputs = [line for line in strengths("normal", gone=True) if not line["series"].startswith(scenes.SESSIONS)]
    check(tmp_path, bare, inputs + sessions, lambda _: False)


def test_a_restart_wakes_nobody(tmp_path: Path, bare: Path) -> None:
    """DB04: counters that begin anew with their process are no fall and no rise."""
    check(tmp_path, bare, strengths("normal", restart=12), lambda _: False)


def test_a_restart_hides_no_incident(tmp_path: Path, bare: Path) -> None:
    """DB04: what goes wrong before and after a restart is one incident."""
    check(tmp_path, bare, strengths("far", restart=12), lambda _: True)


def test_no_metrics_is_told_of_the_last_collector_that_falls_silent(tmp_path: Path) -> None:
    """It fires when the last collector of a job is gone, not while one is left, not before the first one came, and no
    more when a day has gone by."""
    rule_file = _written(tmp_path / "rules.yaml", "ContextLedgerNoMetrics", told=False)
    silent = {"exp_labels": {"job": "collectors", "severity": "critical"}}
    looks = {"59m": [], "80m": [], "112m": [silent], f"{100 + 25 * 60}m": []}
    inputs = [
        {"series": PRESENT % "a", "values": "_x10 5x60 stale"},
        {"series": PRESENT % "b", "values": "_x10 5x90 stale"},
    ]
    alerts = [
        {"eval_time": at, "alertname": "ContextLedgerNoMetrics", "exp_alerts": told} for at, told in looks.items()
    ]
    prometheus.tested(tmp_path, {"input_series": inputs, "alert_rule_test": alerts}, rules=[rule_file])


def test_an_alert_says_what_happened(tmp_path: Path) -> None:
    """Summary and description name agent, model and number; the link leads to the runbook."""
    case = _case("ContextLedgerHitRatioDropped")
    rule_file = _written(tmp_path / "rules.yaml", case.alert)
    annotations = {
        "summary": "HitRatioDropped reuses less of HitRatioDropped's cache although nothing changed",
        "description": "40% of the reusable tokens were reused in the last 30 minutes, over 20 points less than in the "
        "day before. The cache identity is unchanged, and neither the program nor a pause explains it.",
        "runbook_url": f"{rules.RUNBOOK}#contextledgerhitratiodropped",
    }
    looks = [look(case, {**expected(case), "exp_annotations": annotations})]
    inputs = list(counted(case, scenes.rates(case, case.far, 1)))
    prometheus.tested(tmp_path, {"input_series": inputs, "alert_rule_test": looks}, rules=[rule_file])


def test_tasks_that_all_fail_have_no_end_to_their_cost(tmp_path: Path) -> None:
    """Where tasks cost money and none succeeds, the cost per success has jumped: nothing to divide by."""
    case = _case("ContextLedgerCostPerSuccessJump")
    rule_file = _written(tmp_path / "rules.yaml", case.alert, told=False)
    scene = dict(scenes.rates(case, 1, 1))
    for name in [name for name in scene if "task_outcome" in name]:
        normal, _ = scene[name]
        scene |= {name: (normal, 0), name.replace("success", "failure"): (0, normal)}
    looks, inputs = [look(case, expected(case))], list(counted(case, scene))
    prometheus.tested(tmp_path, {"input_series": inputs, "alert_rule_test": looks}, rules=[rule_file])


def test_a_fall_of_the_ratio_alerts_and_an_even_volume_hides_nothing(tmp_path: Path) -> None:
    """DB08: two times with 1,000,000 reusable tokens each, of which 900,000 and then 100,000 were reused: the volume is
    flat, and the alert on the ratio fires."""
    case = _case("ContextLedgerHitRatioDropped")
    rule_file = _written(tmp_path / "rules.yaml", case.alert, told=False)
    scene = case.scene(lambda scale: (0.1 * scale, 0.9 * scale), 1_000_000 / 30 / 1000)
    volume = 'increase(context_ledger_reusable_tokens_total{context_ledger_identity="same"}[30m])'
    flat = [
        {"expr": f"round(sum({volume}))", "eval_time": f"{at}m", "exp_samples": [{"labels": "{}", "value": 1_000_000}]}
        for at in (NORMAL_MINUTES, NORMAL_MINUTES + case.minutes)
    ]
    looks, inputs = [look(case, expected(case))], list(counted(case, scene))
    test = {"input_series": inputs, "alert_rule_test": looks, "promql_expr_test": flat}
    prometheus.tested(tmp_path, test, rules=[rule_file])


def test_a_share_that_reads_as_its_floor_is_not_under_it(tmp_path: Path) -> None:
    """`increase` extrapolates a series that was there before more than one that is new: of 38 of 40 it makes 0.9499,
    which is shown as 95.0 % and is not under a floor of 0.95, nor does an alert at 0.95 take it for less; 37 of 40 is
    under it."""
    series = 'context_ledger_checks_total{context_ledger_pillar="constraints",context_ledger_verdict="%s"}'
    recall = measures.checked_right(View("increase", "5h"), "constraints")
    floor = RECALL.met(recall).replace(RECALL.variable, str(RECALL.value))
    for held, shown, met in ((38, 0.9499, 1), (37, 0.9249, 0)):
        inputs = [
            {"series": series % "held", "values": f"_x20 0x19 {held}x280"},
            {"series": series % "lost", "values": f"100x30 {140 - held}x290"},
        ]
        alerted = f"count({below(recall, RECALL.value)}) or vector(0)"
        looks = [
            {"expr": expr, "eval_time": "5h30s", "exp_samples": [{"labels": "{}", "value": value}]}
            for expr, value in ((f"round({recall}, 0.0001)", shown), (floor, met), (alerted, 1 - met))
        ]
        rule_file = _written(tmp_path / "rules.yaml", told=False)
        prometheus.tested(tmp_path, {"input_series": inputs, "promql_expr_test": looks}, rules=[rule_file])


def test_the_rules_that_are_shipped_are_those_of_the_table() -> None:
    """The committed file is what the table gives, and promtool takes it."""
    path = ROOT / "dashboards" / "dist" / rules.PATH
    assert path.read_text("utf-8") == rules.render()
    assert f"{len(rules.RECORDS) + len(rules.ALERTS)} rules found" in prometheus.promtool("check", "rules", path)


def test_every_alert_is_complete() -> None:
    """Each has one of two severities, a time that it has to hold, texts and a link; each has a volume, or is on counts
    or levels of collectors, which are volumes."""
    counts = {alert.name for alert in rules.COLLECTOR_ALERTS}
    for alert in rules.ALERTS:
        assert alert.severity in SEVERITIES, alert.name
        assert re.fullmatch(r"\d+m", alert.lasts), alert.name
        assert alert.summary and alert.description.endswith((".", "}")), alert.name
        assert alert.enough or alert.name in counts, alert.name


def test_rules_ask_only_for_what_is_there() -> None:
    """Every metric in an expression is one of the registry, of the collector's own, or recorded; every record is of raw
    counters alone."""
    recorded = {record.name for record in rules.RECORDS}
    for record in rules.RECORDS:
        assert not any(name in record.expr for name in recorded), record.name
        assert metrics(record.expr) <= promql.SERIES.keys(), record.name
    for alert in rules.ALERTS:
        strange = metrics(alert.expr) - recorded - promql.SERIES.keys() - OTELCOL
        assert strange == set(), alert.name


def test_every_alert_has_its_heading_in_the_runbook() -> None:
    """Each link of an alert leads to a heading with all five sections, and no heading is left over."""
    told = runbook.sections()
    assert {rules.runbook(name) for name in told} == {rules.runbook(alert.name) for alert in rules.ALERTS}
    for name, text in told.items():
        assert re.findall(r"^\*\*([A-Z][a-z ]+)\.\*\*", text, re.MULTILINE) == list(SECTIONS), name
        assert "```promql" in text, name
    assert Path(rules.RUNBOOK).parts[-2:] == runbook.PATH.parts[-2:]


def test_every_query_of_the_runbook_is_one_for_prometheus(tmp_path: Path) -> None:
    """Each parses, and asks for what the registry, the rules or the collector have."""
    queries = runbook.queries()
    groups = [{"name": "runbook", "rules": [{"record": f"query:{n}", "expr": q} for n, q in enumerate(queries)]}]
    (tmp_path / "queries.yaml").write_text(yaml.safe_dump({"groups": groups}), "utf-8")
    assert f"{len(queries)} rules found" in prometheus.promtool("check", "rules", tmp_path / "queries.yaml")
    recorded = {record.name for record in rules.RECORDS}
    known = recorded | promql.SERIES.keys() | OTELCOL
    assert {query for query in queries if metrics(query) - known} == set()


def metrics(expression: str) -> set[str]:
    """Names of series in an expression, as the registry or the collector has them."""
    found = re.findall(r"\b(?:\w+:)?(?:context_ledger|otelcol)_\w+(?::\w+)?(?=[{\[() ]|$)", expression)
    named = re.findall(r'__name__=~"(\w+)', expression)
    labels = set(map(promql.label, (key for metric in semconv.METRICS.values() for key in metric.attributes)))
    return {name for name in [*found, *named] if name not in labels}
