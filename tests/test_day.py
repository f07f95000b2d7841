"""A day that was written (dashboards/history.py), in a real Prometheus: which alerts fire and when, that a night is
quiet, and what every query of every board has to show of it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboards import collectors, history, promql, rules
from dashboards.history import INCIDENTS, MINUTES, START, STEP, Incident
from dashboards.promql import View, name
from otel_context_ledger import semconv as s
from tests import boards, prometheus, runbook
from tests.prometheus import Labels, Prometheus

END = START + (MINUTES - 1) * STEP
# The time of a board, and $__rate_interval with a sample a minute.
WINDOW, RATE = "1d", "4m"
LOOKS_BACK = 130
# An alert names the agent, the surface or the collector; an incident has the agent or the collector.
SERVED = {(who.surface, who.model): who.agent for who in history.AGENTS}
# By the title of a panel or annotation: why a written day has nothing for it.
NEVER = {"annotation Alerts": "nothing evaluates the rules over the past"}


@dataclass(frozen=True, order=True)
class Fired:
    """An alert that fired for somebody, and from which to which minute."""

    alert: str
    at: str
    begins: int
    ends: int


@dataclass(frozen=True)
class Day:
    """A Prometheus that holds a day, what is recorded included."""

    server: Prometheus

    def fired(self) -> list[Fired]:
        """Every alert of the table that would have fired, evaluated each minute."""
        return sorted(
            Fired(alert.name.removeprefix(rules.PREFIX), _at(series.labels), begins, ends)
            for alert in rules.ALERTS
            for series in self.server.query_range(alert.expr, START, END, STEP)
            for begins, ends in _held([int(at - START) // STEP for at, _ in series.points], int(alert.lasts[:-1]))
        )


def _at(labels: Labels) -> str:
    served = SERVED.get((labels.get("context_ledger_provider_surface", ""), labels.get("gen_ai_request_model", "")))
    return labels.get("gen_ai_agent_name") or served or labels.get("instance", labels.get("job", "")).partition(":")[0]


def _held(minutes: Sequence[int], lasts: int) -> Iterator[tuple[int, int]]:
    """The runs of minutes that are long enough: from the minute in which the alert fires to the last one."""
    begins = 0
    for place, minute in enumerate(minutes):
        if place and minute != minutes[place - 1] + 1:
            begins = place
        last = place + 1 == len(minutes) or minutes[place + 1] != minute + 1
        if last and minute - minutes[begins] >= lasts:
            yield minutes[begins] + lasts, minute


def held(folder: Path, incidents: Sequence[Incident]) -> Any:
    """A Prometheus over a day with these incidents."""
    for file in history.write(folder / "day", incidents):
        prometheus.backfill(file, folder / "blocks")
    return prometheus.running(folder, blocks=folder / "blocks")


def recorded(server: Prometheus, folder: Path) -> None:
    """Fills in what is recorded, as promtool does for a rule that came later."""
    found = yaml.safe_load(rules.render())
    found["groups"] = found["groups"][:1]
    (folder / "records.yaml").write_text(yaml.safe_dump(found), "utf-8")
    prometheus.promtool(
        "tsdb", "create-blocks-from", "rules", f"--start={START}", f"--end={END}", f"--url={server.url}",
        f"--output-dir={folder / 'blocks'}", folder / "records.yaml",
    )  # fmt: skip


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Day]:
    """The day with its incidents."""
    prometheus.need("prometheus", "promtool")
    folder = tmp_path_factory.mktemp("day")
    with held(folder, INCIDENTS) as server:
        recorded(server, folder)
    with prometheus.running(folder, blocks=folder / "blocks") as server:
        yield Day(server)


def test_the_planted_incidents_fire_their_alerts_and_nothing_else(day: Day) -> None:
    """DB07: each incident fires its alert at the agent or collector that it is at, before it is over and no longer than
    the alert looks back; nothing else fires all day. Each alert has its incident."""
    fired = day.fired()
    planned = {(alert, _named(one)): one for one in INCIDENTS for alert in one.alerts}
    assert {alert for alert, _ in planned} == {alert.name.removeprefix(rules.PREFIX) for alert in rules.ALERTS}
    assert {(one.alert, one.at) for one in fired} == set(planned)
    for one in fired:
        incident = planned[one.alert, one.at]
        assert incident.begins <= one.begins < incident.ends, one
        assert one.ends <= incident.ends + LOOKS_BACK, one


def test_a_quiet_night_wakes_nobody(day: Day) -> None:
    """From dusk on agents sleep, and the few calls of the one that does not are wrong in every way: no alert fires."""
    assert [one for one in day.fired() if one.ends >= history.DUSK] == []
    calls = day.server.query("sum(increase(context_ledger_calls_total[8h]))", at=END)
    assert 10 < calls[0].value < 100


def test_every_query_of_every_board_is_answered(day: Day) -> None:
    """DB05, DB06, DB07: over the day each query of a panel and of an annotation has an answer that is a number."""
    asked = [question for board in boards.boards() for question in boards.questions(board, WINDOW, RATE)]
    silent = [question for question in asked if not _answered(day.server, question)]
    assert len(asked) > 0
    assert [(one.name, one.expression) for one in silent if one.title not in NEVER] == []
    assert NEVER.keys() - {one.title for one in silent} == set()


def test_every_query_of_the_runbook_is_answered(day: Day) -> None:
    """Whoever is woken finds something wherever the runbook says to look."""
    asked = [query.replace(runbook.BLANK, '=~".+"') for query in runbook.queries()]
    assert [query for query in asked if not day.server.query_range(query, START, END, 600)] == []


def test_every_variable_offers_something(day: Day) -> None:
    """Agents, models and collectors can be chosen by name."""
    for board in boards.boards():
        for variable, series, label in boards.offers(board):
            found = day.server.query(f"count by ({label}) (last_over_time({series}[1d]))", at=END)
            assert [one.labels[label] for one in found if one.labels.get(label)], (board["uid"], variable)


def test_what_happened_once_is_there_as_long_as_it_is_in_range(day: Day) -> None:
    """DB05: a headline over the day still has what ended hours ago, of processes that are gone; what never was has no
    number."""
    over = View("increase", WINDOW)
    once = over.total(s.METRIC_MISS_TOKENS, {s.CONTEXT_LEDGER_MISS_CAUSE: ("route_changed",)})
    assert day.server.query(once, at=END)[0].value > 0
    assert day.server.query(name(s.METRIC_MISS_TOKENS) + '{context_ledger_miss_cause="route_changed"}', at=END) == []
    never = over.total(s.METRIC_MISS_TOKENS, {s.CONTEXT_LEDGER_MISS_CAUSE: ("model_changed",)})
    assert day.server.query(never, at=END) == []


def test_the_day_is_the_same_every_day(tmp_path: Path) -> None:
    """What is written is the same whenever it is written, and has only names and labels of the registry and of
    collectors: no id, hash or path."""
    one, other = (history.write(tmp_path / name)[4] for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()
    labels = {promql.label(key) for metric in s.METRICS.values() for key in metric.attributes}
    told = set(re.findall(r'[{,](\w+)="', one.read_text("utf-8")))
    assert told <= labels | collectors.LABELS | {"le"}


def _named(incident: Incident) -> str:
    """Whom an alert names that is about a job as a whole."""
    return {"InternalErrors": "agents", "NoMetrics": "otelcol"}.get(incident.alerts[0], incident.at)


def _answered(server: Prometheus, asked: boards.Question) -> bool:
    if asked.instant:
        return any(not math.isnan(sample.value) for sample in server.query(asked.expression, at=END))
    found = server.query_range(asked.expression, START, END, 600)
    return any(not math.isnan(value) for series in found for _, value in series.points)
