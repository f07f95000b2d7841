"""An alert of ours on its way: from an exporter through a real Prometheus and a real Alertmanager to a webhook."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from dashboards import collectors, rules
from tests import collector, prometheus
from tests.test_rules import metrics
from tests.test_series import OTELCOL, post, span, with_collector

PAGE = """\
# TYPE otelcol_exporter_queue_size gauge
otelcol_exporter_queue_size{exporter="kafka",data_type="traces"} 950
# TYPE otelcol_exporter_queue_capacity gauge
otelcol_exporter_queue_capacity{exporter="kafka",data_type="traces"} 1000
"""


class Heard(ThreadingHTTPServer):
    """Somebody on this machine who shows one page and keeps what is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Asked)
        self.notices: list[dict[str, Any]] = []

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_port}"


class _Asked(BaseHTTPRequestHandler):
    server: Heard

    def do_GET(self) -> None:
        self._answer(PAGE.encode())

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self.server.notices.append(json.loads(self.rfile.read(length)))
        self._answer(b"")

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def heard() -> Iterator[Heard]:
    with Heard() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def hasty(path: Path, *alerts: str) -> Path:
    """These rules of ours, evaluated every second and without a time that they have to hold."""
    found = yaml.safe_load(rules.render())
    for group in found["groups"]:
        group["interval"] = "1s"
        group["rules"] = [rule | {"for": "0s"} for rule in group["rules"] if rule.get("alert") in alerts]
    path.write_text(yaml.safe_dump(found), "utf-8")
    return path


def test_an_alert_reaches_whoever_is_on_call(tmp_path: Path) -> None:
    """A queue that is nearly full arrives at the webhook once, firing, with its severity, its text, whom it is about
    and the link to the runbook."""
    prometheus.need("prometheus", "alertmanager")
    alert = "ContextLedgerCollectorQueueNearlyFull"
    rule_file = hasty(tmp_path / "rules.yaml", alert)
    with (
        heard() as server,
        prometheus.alerting(tmp_path / "alertmanager", f"http://{server.host}/") as manager,
        prometheus.running(tmp_path, targets={"otelcol": [server.host]}, rules=[rule_file], alertmanager=manager),
    ):
        notices = prometheus.waited(lambda: server.notices)
        assert len(notices) > 0
        (told,) = notices[0]["alerts"]
    assert (notices[0]["receiver"], told["status"]) == ("webhook", "firing")
    assert told["labels"] == {
        "alertname": alert,
        "exporter": "kafka",
        "instance": server.host,
        "job": "otelcol",
        "severity": "warning",
    }
    assert told["annotations"] == {
        "summary": f"A queue of the collector otelcol {server.host} is nearly full",
        "description": "95% of the queue of kafka is used; when it is full, data is lost.",
        "runbook_url": f"{rules.RUNBOOK}#{alert.lower()}",
    }


@with_collector
def test_a_real_collector_that_cannot_pass_data_on_is_told_of(tmp_path: Path) -> None:
    """With nobody behind an exporter, the alert names exporter and instance; and what the alerts on collectors ask for
    is on a real collector's page, but for signals that did not come and failures of what did not fail."""
    prometheus.need("prometheus")
    alert = "ContextLedgerCollectorExportFailing"
    rule_file = hasty(tmp_path / "rules.yaml", alert)
    with collector.running(OTELCOL, tmp_path, more=_nobody()) as running:
        host = running.own.removeprefix("http://").partition("/")[0]
        with prometheus.running(tmp_path / "prometheus", targets={"otelcol": [host]}, rules=[rule_file]) as server:
            sent = iter(range(1, 10_000))

            def fired() -> list[dict[str, Any]]:
                post(running.otlp, "traces", span(next(sent), {}))
                return [one for one in server.alerts() if one["state"] == "firing"]

            (told,) = prometheus.waited(fired)
            with urllib.request.urlopen(running.own, timeout=prometheus.SECONDS) as answer:
                page = answer.read().decode("utf-8")
    told = told["labels"]
    assert told == {
        "alertname": alert, "exporter": "otlp_http", "instance": host, "job": "otelcol", "severity": "critical"
    }  # fmt: skip
    asked = {name for one in rules.COLLECTOR_ALERTS for name in metrics(one.expr) if name.startswith("otelcol_")}
    assert asked <= collectors.OTELCOL
    absent = {name for name in asked if f"\n{name}{{" not in page and f"\n{name} " not in page}
    came = {name for name in absent if not name.endswith(("_log_records", "_metric_points"))}
    assert came <= {"otelcol_exporter_enqueue_failed_spans"}


def _nobody() -> str:
    """A configuration with an exporter to where nobody listens, that gives up at once."""
    exporter = {"endpoint": "http://127.0.0.1:9", "retry_on_failure": {"enabled": False}}
    pipelines = {"traces": {"exporters": ["context_ledger", "file", "otlp_http"]}}
    return json.dumps({"exporters": {"otlp_http": exporter}, "service": {"pipelines": pipelines}})
