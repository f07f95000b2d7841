"""A collector of ours in a process of its own, with one of the shipped configurations on free ports of this machine."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import ports

CONFIGS = Path(__file__).resolve().parents[1] / "collector" / "configs"
SECONDS = 60
OURS = "context_ledger."


@dataclass(frozen=True)
class Collector:
    """A running one: where it takes OTLP over HTTP, where its metrics are and those of itself, its file of entries."""

    process: subprocess.Popen[bytes]
    otlp: str
    metrics: str
    own: str
    file: Path

    def scrape(self, metric: str, least: float) -> str:
        """The metrics in Prometheus' text form, once the sum of one of them is no less than so much, or time is up."""
        until = time.monotonic() + SECONDS
        while total(text := _get(self.metrics), metric) < least and time.monotonic() < until:
            time.sleep(0.05)
        return text

    def stop(self) -> list[dict[str, Any]]:
        """Ends it, as a service is ended, and gives the requests in its file."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        if self.process.wait(SECONDS):
            raise RuntimeError(f"the collector ended with {self.process.returncode}")
        return self.requests()

    def requests(self) -> list[dict[str, Any]]:
        """The requests in its file so far; a line that is still being written is none."""
        text = self.file.read_text("utf-8") if self.file.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


@contextmanager
def running(binary: str, folder: Path, config: str = "agent.yaml", more: str = "") -> Iterator[Collector]:
    """The binary with a shipped configuration, its files in the folder; `more` is YAML laid over that."""
    health, grpc, otlp, metrics, own = (f"127.0.0.1:{port}" for port in ports.free(5))
    places = {
        "STATE_DIRECTORY": str(folder / "state"),
        "LEDGER_FILE": str(folder / "entries.jsonl"),
        "HEALTH_ENDPOINT": health,
        "OTLP_GRPC_ENDPOINT": grpc,
        "OTLP_HTTP_ENDPOINT": otlp,
        "PROMETHEUS_ENDPOINT": metrics,
        "SELF_PORT": own.rpartition(":")[2],
    }
    command = [binary, "--config", str(CONFIGS / config)]
    command += ["--config", f"yaml:{more}"] if more else []
    with (folder / "collector.log").open("wb") as log:
        process = subprocess.Popen(command, env=os.environ | places, stdout=log, stderr=log)
    try:
        _wait(process, f"http://{health}", folder)
        told = (f"http://{at}/metrics" for at in (metrics, own))
        yield Collector(process, f"http://{otlp}", *told, folder / "entries.jsonl")
    finally:
        process.kill()
        process.wait()


def calls(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What OTLP/JSON requests tell of model calls as spans: `context_ledger.*` without that word, in order of starts.
    Spans that repeat a call are left out."""
    found = [
        (int(span["startTimeUnixNano"]), _plain(span.get("attributes", ())))
        for request in requests
        for resource in request.get("resourceSpans", ())
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    told = [attributes for _, attributes in sorted(found, key=lambda one: one[0])]
    return [
        {name.removeprefix(OURS): value for name, value in attributes.items() if name.startswith(OURS)}
        for attributes in told
        if f"{OURS}request_kind" in attributes and f"{OURS}aggregate" not in attributes
    ]


def events(requests: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """(event name, attributes) of every log record in OTLP/JSON requests."""
    return [
        (record.get("eventName", ""), _plain(record.get("attributes", ())))
        for request in requests
        for resource in request.get("resourceLogs", ())
        for scope in resource["scopeLogs"]
        for record in scope["logRecords"]
    ]


def total(scraped: str, metric: str) -> float:
    """The sum over all series of a metric in Prometheus' text form."""
    return sum(value for _, value in _series(scraped, metric))


def by(scraped: str, metric: str, label: str) -> dict[str, float]:
    """The sums over the series of a metric by the values of one of its labels."""
    sums: dict[str, float] = {}
    for labels, value in _series(scraped, metric):
        found = re.search(rf'\b{label}="([^"]*)"', labels)
        if found:
            sums[found[1]] = sums.get(found[1], 0) + value
    return sums


def _series(scraped: str, metric: str) -> Iterator[tuple[str, float]]:
    """(labels, value) of each series; what follows a value is its exemplar."""
    for labels, rest in re.findall(rf"^{metric}\{{(.*?)\}} (\S+)", scraped, re.MULTILINE):
        yield labels, float(rest)


def _plain(attributes: Any) -> dict[str, Any]:
    return {item["key"]: _value(item["value"]) for item in attributes}


def _value(value: dict[str, Any]) -> Any:
    ((kind, told),) = value.items()
    if kind == "arrayValue":
        return [_value(item) for item in told.get("values", ())]
    return int(told) if kind == "intValue" else told


def _wait(process: subprocess.Popen[bytes], url: str, folder: Path) -> None:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until and process.poll() is None:
        if _get(url):
            return
        time.sleep(0.05)
    raise RuntimeError(f"the collector does not start: {(folder / 'collector.log').read_text('utf-8')[-2000:]}")


def _get(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return str(answer.read().decode("utf-8"))
    except (urllib.error.URLError, OSError):
        return ""
