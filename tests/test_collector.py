"""What an agent with the ledger sends, through the real collector: the binary that `make collector` builds, OTELCOL."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import ports
from tests.provider import Provider

ROOT = Path(__file__).resolve().parent.parent
# Seven turns with what makes every kind of measurement: a reused prefix, tools in another order, another system text, a
# compaction, a task that ends.
AGENT = """
import sys, openai
from otel_context_ledger import compaction, outcome, task
begun = task("T").start()
client = openai.OpenAI(base_url=sys.argv[1], api_key="k")
names = ("read", "write", "list")
tools = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in names]
messages = [{"role": "system", "content": "Follow the rules. " * 400}, {"role": "user", "content": "begin " * 900}]
for turn in range(6):
    if turn == 4:
        messages[0] = {"role": "system", "content": "Follow the other rules. " * 400}
    sent = tools[::-1] if turn == 2 else tools
    stream = client.chat.completions.create(model="kimi-k3", messages=messages, tools=sent, stream=True)
    text = "".join(c.choices[0].delta.content or "" for c in stream if c.choices)
    messages += [{"role": "assistant", "content": text}, {"role": "user", "content": f"turn {turn} " * 40}]
with compaction(trigger="manual", tokens_before=9000) as told:
    told.done("what was done so far " * 20)
messages[1:] = [{"role": "user", "content": "what was done so far " * 20}]
client.chat.completions.create(model="kimi-k3", messages=messages, tools=tools)
outcome("T", success=True)
begun.stop()
"""
# How often that agent does what is counted.
MADE = {"calls": 7, "compactions": 1, "tasks": 1}
OTELCOL = os.environ.get("OTELCOL", "")
pytestmark = pytest.mark.skipif(not OTELCOL, reason="OTELCOL names no binary of the collector (make collector)")
LINE = re.compile(r"^(context_ledger_\w+){(.*)} (\S+)$")
LABEL = re.compile(r'(\w+)="([^"]*)"')
# What differs by where it is counted: who wrote it, and seconds.
WRITER = re.compile(r"job|instance|otel_scope_\w+")
TIMES = re.compile(r"time_to_first_token_seconds_(bucket|sum)")
Series = Mapping[tuple[str, ...], float]


@contextmanager
def collector(folder: Path) -> Iterator[Mapping[str, str]]:
    """The binary with the configuration for one agent, on free ports; gives where it serves what."""
    own, *found = ports.free(5)
    names = ("HEALTH", "OTLP_GRPC", "OTLP_HTTP", "PROMETHEUS")
    served = {f"{name}_ENDPOINT": f"127.0.0.1:{port}" for name, port in zip(names, found, strict=True)}
    settings = {"SELF_PORT": str(own), "STATE_DIRECTORY": str(folder), "LEDGER_FILE": str(folder / "entries.jsonl")}
    flags = ["--config", str(ROOT / "collector" / "configs" / "agent.yaml")]
    quick = {"metrics_flush_interval": "100ms", "zero_first": "0s"}
    flags += [f"--set=connectors::context_ledger::{name}={value}" for name, value in quick.items()]
    with subprocess.Popen(
        [OTELCOL, *flags],
        env={**os.environ, **served, **settings},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as running:
        try:
            until(lambda: fetch(served["HEALTH_ENDPOINT"], "/"))
            yield served
        finally:
            running.terminate()


def until(holds: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def fetch(address: str, path: str) -> str:
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=5) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


def counted(scraped: str) -> Series:
    """The series of the ledger by name and labels, without what differs by who wrote them. Parts of the cost are added
    up, for an entry says the whole alone."""
    found: dict[tuple[str, ...], float] = {}
    for line in scraped.splitlines():
        match = LINE.match(line)
        if match and not TIMES.search(match[1]):
            labels = {key: value for key, value in LABEL.findall(match[2]) if not WRITER.fullmatch(key)}
            labels.pop("context_ledger_cost_component", None)
            key = (match[1], *(f"{name}={labels[name]}" for name in sorted(labels)))
            found[key] = round(found.get(key, 0) + float(match[3]), 9)
    return found


def run(served: Mapping[str, str], folder: Path, who: str) -> Series:
    """An agent that tells a collector of its calls; what is counted in the end."""
    exporters = {f"OTEL_{signal}_EXPORTER": "otlp" for signal in ("TRACES", "METRICS", "LOGS")}
    with Provider() as provider:
        environment = {
            **os.environ, **exporters, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{served['OTLP_HTTP_ENDPOINT']}",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_SERVICE_NAME": "agent", "CONTEXT_LEDGER_METRICS": who,
            "CONTEXT_LEDGER_SURFACES": f"127.0.0.1:{provider.server_port}=kimi_open_platform",
            "CONTEXT_LEDGER_FILE": str(folder / f"{who}.jsonl"),
        }  # fmt: skip
        line = [str(Path(sys.executable).with_name("opentelemetry-instrument")), sys.executable, "-c", AGENT]
        subprocess.run([*line, f"{provider.url}/kimi/v1"], env=environment, check=True, capture_output=True)
    seen: list[Series] = []

    def still() -> bool:
        seen.append(counted(fetch(served["PROMETHEUS_ENDPOINT"], "/metrics")))
        return all(total(seen[-1], name) == made for name, made in MADE.items()) and seen[-5:] == [seen[-1]] * 5

    until(still)
    return seen[-1]


def total(series: Series, name: str) -> float:
    return sum(value for (own, *_), value in series.items() if own == f"context_ledger_{name}_total")


def test_the_collector_counts_what_the_sdk_would(tmp_path: Path) -> None:
    """With CONTEXT_LEDGER_METRICS=collector everything is counted as the SDK would have counted it."""
    found = {}
    for who in ("sdk", "collector"):
        (tmp_path / who).mkdir()
        with collector(tmp_path / who) as served:
            found[who] = run(served, tmp_path, who)
    assert found["collector"] == found["sdk"]
    names = {name for name, *_ in found["sdk"]}
    assert {
        f"context_ledger_{part}_total" for part in ("calls", "miss_tokens", "checks", "compactions", "tasks")
    } <= names
