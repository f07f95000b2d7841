"""Every query of every board, asked of a Prometheus that scrapes a collector through which the demo's agents run."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests import boards, prometheus
from tests.test_stack import NONE_BUILT, OTELCOL, ROOT

pytestmark = pytest.mark.skipif(not OTELCOL, reason=NONE_BUILT)
SCRAPING, SERVING = "Prometheus is at ", "The boards are at "
WINDOW, STEP = "10m", "20s"
# What a demo has no data for in one of its queries, by the title: what the panel's description says of that. An
# annotation has no description.
NEVER = {
    "annotation Alerts": "alerts wait for minutes, and the demo lasts for seconds",
    "Received per second": "Points only where agents send metrics",
    "Refused per second": "Points only where agents send metrics",
    "Export queue used": "Empty where no exporter has a queue",
    "SDK errors by stage": "Empty where none has happened",
    "Read again by agent": "Empty where no file was read twice.",
}


@dataclass(frozen=True)
class Live:
    """The Prometheus of a demo that has shown its last screen and waits, when it began, and where its boards are."""

    server: prometheus.Prometheus
    began: float
    boards: str

    def answered(self, asked: boards.Question) -> bool:
        """Whether a question has an answer that is a number, now or at any time since the demo began."""
        if asked.instant:
            return any(not math.isnan(sample.value) for sample in self.server.query(asked.expression))
        found = self.server.query_range(asked.expression, self.began, time.time(), 1)
        return any(not math.isnan(value) for series in found for _, value in series.points)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """The demo as it is run in a terminal: it goes on until Ctrl-C, which is no failure."""
    prometheus.need("prometheus")
    folder = tmp_path_factory.mktemp("live")
    ours = ("ENGINE", "CONTEXT_LEDGER_", "OTEL_", "OPENAI_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    command = [sys.executable, "-m", "examples.demo", "--wait", "--collector", OTELCOL]
    began = time.time()
    with subprocess.Popen(
        [*command, "--ledger", str(folder / "ledger.jsonl")],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, encoding="utf-8", start_new_session=True,
    ) as demo:  # fmt: skip
        assert demo.stdout
        said = {}
        for line in demo.stdout:
            said |= {
                start: line.removeprefix(start).split()[0] for start in (SCRAPING, SERVING) if line.startswith(start)
            }
            if SERVING in said:
                break
        server = prometheus.Prometheus(said[SCRAPING].rstrip("."), folder / "prometheus.log")
        yield Live(server, began, said[SERVING])
        os.killpg(demo.pid, signal.SIGINT)
        assert demo.wait(prometheus.SECONDS) == 0


def test_every_query_of_every_board_is_answered(live: Live) -> None:
    """DB07: each query returns data, or the panel's description says why a demo has none."""
    asked = [question for board in boards.boards() for question in boards.questions(board, WINDOW, STEP)]
    silent = [question for question in asked if not live.answered(question)]
    assert len(asked) > 0
    # A scrape that a busy machine missed is made up for by the next one.
    lost = [one for one in silent if one.title not in NEVER and not prometheus.waited(partial(live.answered, one))]
    assert {one.name: one.expression for one in lost} == {}
    assert NEVER.keys() - {one.title for one in silent} == set()
    told = [one for one in silent if one.title in NEVER and one.description]
    assert [one.name for one in told if NEVER[one.title] not in one.description] == []


def test_every_rule_is_evaluated_and_none_pages(live: Live) -> None:
    """Prometheus has our rules and can answer each of them, and so few calls are no alert."""
    groups = live.server.get("rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) > 0
    for rule in rules:
        live.server.query(rule["query"])
    assert [rule["name"] for rule in rules if rule.get("lastError")] == []
    assert [alert["labels"]["alertname"] for alert in live.server.alerts() if alert["state"] == "firing"] == []


def test_the_boards_are_served_over_it(live: Live) -> None:
    """The address that the demo prints has the page, and the same Prometheus behind it."""
    address, _, asked = live.boards.partition("?")
    behind = prometheus.Prometheus(address.rstrip("/"), live.server.log)
    total = "sum(last_over_time(context_ledger_calls_total[1h]))"
    with urllib.request.urlopen(live.boards) as page:
        assert "<html" in page.read().decode("utf-8")
    assert "context-ledger-misses" in asked
    assert [one.value for one in behind.query(total)] == [one.value for one in live.server.query(total)] != []


def test_points_lead_to_traces(live: Live) -> None:
    """Dots on the graphs of misses, wrong contexts and first tokens are calls of the demo, each with its trace."""
    asked = [one for board in boards.boards() for one in boards.questions(board, WINDOW, STEP) if one.exemplars]
    assert len(asked) > 0
    for question in asked:
        found = live.server.get("query_exemplars", query=question.expression, start=live.began, end=time.time())
        traces = [one["labels"].get("trace_id") for series in found for one in series["exemplars"]]
        assert traces and all(traces), question.name


def test_every_variable_offers_something(live: Live) -> None:
    """The values of every variable: agents and models by name, the collectors."""
    for board in boards.boards():
        for name, series, label in boards.offers(board):
            found = live.server.query(f"count by ({label}) ({series})")
            assert [one.labels[label] for one in found if one.labels.get(label)], (board["uid"], name)
