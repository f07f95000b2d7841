"""Owns what `make demo STACK=1` adds to the demo: a collector to which environment variables send all that the agents
tell, and where one is installed a Prometheus that scrapes it and the boards in a browser, until Ctrl-C or
SIGTERM.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from tests import collector, prometheus

# The board that shows what was planted.
FIRST = "context-ledger-misses"
RULES = Path(__file__).resolve().parents[1] / "dashboards" / "dist" / "rules"
# Prometheus scrapes once a second, so that a new series is seen at 0 by then, however busy the machine is; and so is
# each flush before the next, for it has the exemplars of its own time alone.
QUICK = {"connectors": {"context_ledger": {"metrics_flush_interval": "3s", "zero_first": "8s"}}}
# Between two calls of an agent, so that a board has something to draw.
PACE = os.environ.get("AGENT_PAUSE", "0.7")
NONE_HERE = "No Prometheus is installed, so there is nothing to draw boards from (Debian: apt-get install prometheus)."


@dataclass(frozen=True, slots=True)
class Stack:
    """A collector that runs, the Prometheus that scrapes it, and what tells an agent to send it everything, to count
    nothing itself and to take its time."""

    to: collector.Collector
    seen: prometheus.Prometheus | None

    @property
    def environment(self) -> Mapping[str, str]:
        exporters = {f"OTEL_{signal}_EXPORTER": "otlp" for signal in ("TRACES", "METRICS", "LOGS")}
        where = {"OTEL_EXPORTER_OTLP_ENDPOINT": self.to.otlp, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
        ours = {"CONTEXT_LEDGER_METRICS": "collector", "OTEL_SERVICE_NAME": "example-agents", "AGENT_PAUSE": PACE}
        return exporters | where | ours


def ends_on_signals() -> None:
    """Lets Ctrl-C and SIGTERM end the demo in its order, with all that it started. A shell starts what runs in the
    background with SIGINT ignored, and the collector and Prometheus would end at it alone."""
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, _interrupt)


def _interrupt(number: int, _: object) -> None:
    raise KeyboardInterrupt(number)


@contextmanager
def opened(binary: str, folder: Path) -> Iterator[Stack]:
    """A collector with its files in a folder, and a Prometheus with its own below. The folder is emptied first: they
    are to know nothing of the last demo."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with ExitStack() as running:
        to = running.enter_context(collector.running(binary, folder, more=json.dumps(QUICK)))
        if prometheus.found("prometheus") is None:
            yield Stack(to, None)
            return
        jobs = {"context-ledger": to.metrics, "otelcol-context-ledger": to.own}
        targets = {job: [urlsplit(url).netloc] for job, url in jobs.items()}
        rules = sorted(RULES.glob("*.yaml"))
        yield Stack(to, running.enter_context(prometheus.running(folder / "prometheus", targets=targets, rules=rules)))


def boards(seen: prometheus.Prometheus, program: str, began: float, wait: bool) -> bool:
    """Serves the boards over this Prometheus, and says where the demo can be seen on them: until Ctrl-C, or for as long
    as it takes to get the page once. Whether they were served."""
    ended = time.time()
    options = ["--prometheus", seen.url, "--port", "0", "--scrape-interval", "1"]
    print(f"Prometheus is at {seen.url}.", flush=True)
    with subprocess.Popen([program, "dashboard", *options], stdout=subprocess.PIPE, text=True) as serving:
        try:
            greeting = serving.stdout.readline() if serving.stdout else ""
            address = next((word for word in greeting.split() if word.startswith("http://")), None)
            if address is None:
                return False
            asked = urlencode({"board": FIRST, "from": int(began * 1000), "to": math.ceil(ended) * 1000})
            told = f"The boards are at {address}?{asked}"
            return _stays(serving, f"{told} (Ctrl-C ends it)") if wait else _served(address, told)
        finally:
            serving.terminate()


def _stays(serving: subprocess.Popen[str], told: str) -> bool:
    """Waits for Ctrl-C or SIGTERM, which is no failure; the end of the boards before that is one."""
    with suppress(KeyboardInterrupt):
        print(told, flush=True)
        serving.wait()
        return False
    return True


def _served(address: str, told: str) -> bool:
    print(told, flush=True)
    with urllib.request.urlopen(address, timeout=collector.SECONDS) as page:
        return b"<html" in page.read().lower()
