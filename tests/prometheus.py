"""A real Prometheus on a free port of this machine, over blocks of the past or over what it scrapes, and its tools.

prometheus.need("prometheus", "promtool")
prometheus.backfill(openmetrics, folder / "blocks")
with prometheus.running(folder, blocks=folder / "blocks") as server:
    server.query("sum(context_ledger_calls_total)", at=1767258000)
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from tests import ports

SECONDS = 60
# Debian names it after its package.
SPELLINGS = {"alertmanager": ("alertmanager", "prometheus-alertmanager")}
Labels = dict[str, str]
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Sample:
    """One series of an instant query."""

    labels: Labels
    value: float


@dataclass(frozen=True)
class Series:
    """One series of a range query: (seconds since the epoch, value) of each step."""

    labels: Labels
    points: list[tuple[float, float]]


@dataclass(frozen=True)
class Prometheus:
    """A running one. Its answers raise RuntimeError with Prometheus' own words where it refuses."""

    url: str
    log: Path = field(repr=False)

    def query(self, expression: str, at: float | None = None) -> list[Sample]:
        """What an expression is at a time, or now."""
        when = {} if at is None else {"time": at}
        return [Sample(one["metric"], float(one["value"][1])) for one in self._result("query", expression, when)]

    def query_range(self, expression: str, start: float, end: float, step: float) -> list[Series]:
        """What an expression is from one time to another, both in, in steps of so many seconds."""
        found = self._result("query_range", expression, {"start": start, "end": end, "step": step})
        return [Series(one["metric"], [(at, float(value)) for at, value in one["values"]]) for one in found]

    def until(
        self, expression: str, holds: Callable[[list[Sample]], bool] = bool, seconds: float = SECONDS
    ) -> list[Sample]:
        """What an expression is now, once something holds of it (that it has a series), or the time is up."""
        return waited(lambda: self.query(expression), holds, seconds)

    def alerts(self) -> list[dict[str, Any]]:
        """The alerts that are pending or firing now."""
        found: list[dict[str, Any]] = self.get("alerts")["alerts"]
        return found

    def get(self, path: str, **asked: str | float) -> Any:
        """The `data` of an answer of /api/v1."""
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(asked)}"
        try:
            with urllib.request.urlopen(url, timeout=SECONDS) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as refused:
            raise RuntimeError(f"{path} {asked}: {refused.read().decode('utf-8', 'replace')}") from None

    def _result(self, path: str, expression: str, asked: Mapping[str, float]) -> Any:
        return self.get(path, query=expression, **asked)["result"]


def need(*programs: str) -> None:
    """Skips the test where one of these programs is not installed."""
    if missing := [name for name in programs if not found(name)]:
        pytest.skip(f"needs {' and '.join(missing)} (Debian: apt-get install prometheus prometheus-alertmanager)")


def found(program: str) -> str | None:
    """Where a program is, or None."""
    return next((path for name in SPELLINGS.get(program, (program,)) if (path := shutil.which(name))), None)


def promtool(*arguments: str | Path) -> str:
    """What promtool says. Raises RuntimeError with its words where it is not content."""
    done = subprocess.run(
        [found("promtool") or "promtool", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS * 5,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stdout)
    return done.stdout


def tested(folder: Path, *tests: Mapping[str, Any], rules: Sequence[Path] = ()) -> None:
    """Runs promtool's tests, each over series of its own, minute by minute. Raises RuntimeError where one fails."""
    path = folder / "test.yaml"
    every = {"rule_files": list(map(str, rules)), "evaluation_interval": "1m"}
    path.write_text(yaml.safe_dump({**every, "tests": [{"interval": "1m", **test} for test in tests]}), "utf-8")
    promtool("test", "rules", path)


def backfill(openmetrics: Path, blocks: Path) -> Path:
    """Makes blocks of a history in OpenMetrics text."""
    promtool("tsdb", "create-blocks-from", "openmetrics", "--quiet", openmetrics, blocks)
    return blocks


@contextmanager
def running(
    folder: Path,
    blocks: Path | None = None,
    targets: Mapping[str, Sequence[str]] | None = None,
    rules: Sequence[Path] = (),
    alertmanager: str | None = None,
) -> Iterator[Prometheus]:
    """A Prometheus that keeps its files in the folder. `blocks`: a folder of blocks, taken as its storage, where
    nothing is too old. `targets`: (job, host:port of each), scraped every second at /metrics. Rules are evaluated every
    second, and their alerts sent to the Alertmanager at a URL."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "prometheus.yaml"
    config.write_text(yaml.safe_dump(_config(targets or {}, rules, alertmanager)), "utf-8")
    command = [
        found("prometheus") or "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={blocks or folder / 'storage'}",
        "--storage.tsdb.retention.time=100y",
        "--enable-feature=exemplar-storage",
    ]
    with _serving(command, "--web.listen-address", folder / "prometheus.log") as url:
        yield Prometheus(url, folder / "prometheus.log")


@contextmanager
def alerting(folder: Path, webhook: str) -> Iterator[str]:
    """The URL of an Alertmanager that tells a webhook of every alert within a second."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "alertmanager.yaml"
    route = {"receiver": "webhook", "group_by": ["..."], "group_wait": "0s", "group_interval": "1s"}
    receiver = {"name": "webhook", "webhook_configs": [{"url": webhook, "send_resolved": True}]}
    config.write_text(yaml.safe_dump({"route": route, "receivers": [receiver]}), "utf-8")
    command = [
        found("alertmanager") or "alertmanager",
        f"--config.file={config}",
        f"--storage.path={folder / 'alertmanager'}",
        "--cluster.listen-address=",
    ]
    with _serving(command, "--web.listen-address", folder / "alertmanager.log") as url:
        yield url


def waited(asked: Callable[[], Answer], holds: Callable[[Answer], bool] = bool, seconds: float = SECONDS) -> Answer:
    """What something gives once something holds of it, or the time is up."""
    until = time.monotonic() + seconds
    while not holds(answer := asked()) and time.monotonic() < until:
        time.sleep(0.1)
    return answer


def _config(targets: Mapping[str, Sequence[str]], rules: Sequence[Path], alertmanager: str | None) -> dict[str, Any]:
    managers = [{"static_configs": [{"targets": [alertmanager.removeprefix("http://")]}]}] if alertmanager else []
    return {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(path.resolve()) for path in rules],
        "scrape_configs": [
            {"job_name": job, "static_configs": [{"targets": list(hosts)}]} for job, hosts in targets.items()
        ],
        "alerting": {"alertmanagers": managers},
    }


@contextmanager
def _serving(command: list[str], listen: str, log: Path) -> Iterator[str]:
    """The URL of a program that is ready. Another port where somebody took the first one meanwhile."""
    for _ in range(5):
        host = f"127.0.0.1:{ports.free()[0]}"
        with log.open("wb") as out:
            process = subprocess.Popen([*command, f"{listen}={host}"], env=os.environ, stdout=out, stderr=out)
        try:
            if _ready(process, f"http://{host}"):
                yield f"http://{host}"
                return
        finally:
            process.terminate()
            process.wait(SECONDS)
    raise RuntimeError(f"{command[0]} does not start: {log.read_text('utf-8')[-2000:]}")


def _ready(process: subprocess.Popen[bytes], url: str) -> bool:
    return bool(waited(lambda: process.poll() is not None or _answers(url))) and process.poll() is None


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/-/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
