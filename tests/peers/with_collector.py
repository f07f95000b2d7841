"""Spans of one peer through the collector's real binary, from a program without the ledger: the entries that the
collector makes of them, held against those that the ledger makes itself of the same calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from otel_context_ledger import store
from tests import collector
from tests.conftest import flat
from tests.peers.conversations import CALLS, CONVERSATIONS
from tests.peers.runs import PEER, SECONDS
from tests.provider import CacheRules, Provider

OTELCOL = os.environ.get("OTELCOL", "")
NONE_BUILT = "OTELCOL names no binary of the collector; `make collector peers` builds one, which needs Go, and names it"
pytestmark = pytest.mark.skipif(not OTELCOL, reason=NONE_BUILT)

SURFACES = {"openai": "openai", "kimi": "kimi_open_platform", "vllm": "vllm"}
LATEST = {"OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental"}
# How content is captured and how it is not, where a peer lets its user choose.
CONTENT: dict[str, Mapping[str, str]] = {
    "genai-openai": {**LATEST, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "span_only"},
    "traceloop": {},
    "openinference": {},
    "langfuse": {},
    "logfire": {},
    "all": {},
}
COUNTS: dict[str, Mapping[str, str]] = {
    "genai-openai": {},
    "traceloop": {"TRACELOOP_TRACE_CONTENT": "false"},
    "openinference": {"OPENINFERENCE_HIDE_INPUTS": "true", "OPENINFERENCE_HIDE_OUTPUTS": "true"},
    "all": {
        "TRACELOOP_TRACE_CONTENT": "false",
        "OPENINFERENCE_HIDE_INPUTS": "true",
        "OPENINFERENCE_HIDE_OUTPUTS": "true",
    },
}
CAPTURED = [name for name, peers in (("content", CONTENT), ("counts", COUNTS)) if PEER in peers]
each = pytest.mark.parametrize("captured", CAPTURED)
QUICK = {"connectors": {"context_ledger": {"metrics_flush_interval": "100ms", "zero_first": "0s"}}}


@dataclass(frozen=True)
class Told:
    """What is compared of an entry. Place is where the cache was lost: segment and kind, if there is one."""

    input: int | None
    cached: int | None
    output: int | None
    report: str
    outcome: str
    cause: str | None
    place: tuple[str, str | None] | None


SILENT = {"cached": None, "report": "not_reported", "outcome": "unknown", "cause": "not_reported", "place": None}
Lack = Callable[[Told, str, int], Told]


def kimis_count(own: Told, name: str, at: int) -> Told:
    """Kimi's count of cached tokens stands beside the place where the peer looks for it."""
    return replace(own, **SILENT) if CONVERSATIONS[name].host == "kimi" else own


def zero(own: Told, name: str, at: int) -> Told:
    """The peer leaves a 0 out, so that it looks like no report."""
    return replace(own, **SILENT) if own.cached == 0 else own


def content(own: Told, name: str, at: int) -> Told:
    """Counts alone say that something was lost, and not what was sent before; models they tell."""
    known = own.cause in (None, "not_reported", "model_changed")
    return replace(own, cause=own.cause if known else "previous_unknown", place=None)


def block(own: Told, name: str, at: int) -> Told:
    """Neither address nor provider is told, so that nobody knows that the cache holds blocks of 128 tokens, until some
    counts have shown it."""
    blocks = [("append", 1), ("append", 2), ("tools reordered", 1)]
    return replace(own, outcome="partial", cause="granularity") if (name, at) in blocks else own


LACKS: dict[tuple[str, str], tuple[Lack, ...]] = {
    ("genai-openai", "content"): (kimis_count, zero),
    ("genai-openai", "counts"): (kimis_count, zero, content),
    ("traceloop", "content"): (kimis_count,),
    ("traceloop", "counts"): (kimis_count, content),
    ("openinference", "content"): (kimis_count,),
    ("openinference", "counts"): (kimis_count, content),
    ("langfuse", "content"): (kimis_count, block),
    ("logfire", "content"): (),
    ("all", "content"): (kimis_count,),
    ("all", "counts"): (kimis_count, content),
}


def carried(own: Told, name: str, at: int, captured: str) -> Told:
    """What is left of a call's entry where it can only be made of the peer's span."""
    for lack in LACKS[PEER, captured]:
        own = lack(own, name, at)
    return own


@contextmanager
def hosts() -> Iterator[dict[str, Provider]]:
    """A provider for each host of the conversations."""
    rules = CacheRules(block=128)
    with Provider(rules=rules) as openai, Provider(first=1001) as kimi, Provider(first=2001) as vllm:
        yield {"openai": openai, "kimi": kimi, "vllm": vllm}


def program(peer: str, otlp: str, at: Mapping[str, Provider], **environment: str) -> None:
    """Runs the program with a peer, whose spans go to a receiver."""
    named = [f"{host}={provider.url}" for host, provider in at.items()]
    done = subprocess.run(
        [sys.executable, "-m", "tests.peers.told", peer, otlp, *named],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr


@cache
def own() -> tuple[Told, ...]:
    """What the ledger itself says of each call."""
    with TemporaryDirectory() as folder, hosts() as at, collector.running(OTELCOL, Path(folder)) as to:
        file = Path(folder) / "ledger.jsonl"
        surfaces = (f"127.0.0.1:{provider.server_port}={SURFACES[host]}" for host, provider in at.items())
        settings = {"CONTEXT_LEDGER_FILE": str(file), "CONTEXT_LEDGER_SURFACES": ",".join(surfaces)}
        program("none", to.otlp, at, CONTEXT_LEDGER_REPOSITORY="off", **settings)
        entries = [flat(dict(entry)) for entry in store.read(file).entries]
    return tuple(told(entry, entry["miss_position"]) for entry in entries)


@dataclass(frozen=True)
class Read:
    """What the collector made of a peer's spans: its entries, and its metrics in Prometheus' text form."""

    entries: list[dict[str, Any]]
    scraped: str


@cache
def read(captured: str) -> Read:
    """One run of the program with the peer alone."""
    chosen = {"content": CONTENT, "counts": COUNTS}[captured][PEER]
    with TemporaryDirectory() as folder, hosts() as at:
        served = {f"127.0.0.1:{one.server_port}": {"surface": SURFACES[host]} for host, one in at.items()}
        more = QUICK | {"processors": {"context_ledger": {"hosts": served}}}
        with collector.running(OTELCOL, Path(folder), more=json.dumps(more)) as to:
            program(PEER, to.otlp, at, **chosen)
            scraped = to.scrape("context_ledger_calls_total", len(CALLS))
            return Read(collector.calls(to.stop()), scraped)


def told(entry: Mapping[str, Any], position: Mapping[str, Any] | None) -> Told:
    """What is compared of an entry."""
    known = ("input_tokens", "cached_tokens", "output_tokens", "cache_report", "cache_outcome", "miss_cause")
    return Told(*(entry.get(name) for name in known), place(position))


def place(position: Mapping[str, Any] | None) -> tuple[str, str | None] | None:
    return (position["segment"], position.get("kind")) if position else None


def flattened(entry: Mapping[str, Any]) -> Told:
    """The same of an entry whose fields are attributes."""
    names = {"segment": "miss_position.segment", "kind": "miss_position.kind"}
    found = {name: entry[key] for name, key in names.items() if key in entry}
    return told(entry, found or None)


@each
def test_the_collector_says_what_the_ledger_says(captured: str) -> None:
    """Tokens, outcome, cause and place of each call are those of the ledger's own entry, but for what the peer's span
    does not carry: that is unknown, and nothing is made up for it."""
    expected = [(*call, carried(entry, *call, captured)) for call, entry in zip(CALLS, own(), strict=True)]
    found = [(*call, flattened(entry)) for call, entry in zip(CALLS, read(captured).entries, strict=True)]
    assert found == expected


@each
def test_each_conversation_is_one_session(captured: str) -> None:
    """No peer here names the session; it is found by what was captured, else by the trace."""
    sessions: dict[str, set[str]] = {}
    for (name, _), entry in zip(CALLS, read(captured).entries, strict=True):
        sessions.setdefault(name, set()).add(entry["session_id"])
    assert [len(found) for found in sessions.values()] == [1] * len(CONVERSATIONS)
    assert len(set.union(*sessions.values())) == len(CONVERSATIONS)


@each
def test_each_call_is_counted_once(captured: str) -> None:
    """The metrics that are scraped are the sums over the entries, however many spans tell of a call."""
    entries, scraped = read(captured).entries, read(captured).scraped
    counted = [collector.total(scraped, f"context_ledger_{name}_total") for name in ("calls", "input_tokens")]
    assert counted == [len(CALLS), sum(entry["input_tokens"] for entry in entries)]


def test_the_ledger_tells_causes_apart() -> None:
    """What the collector is held against is no row of unknowns: the last call of each conversation has its cause."""
    last = {name: entry.cause for (name, _), entry in zip(CALLS, own(), strict=True)}
    assert last == {
        "append": None,
        "tools reordered": "tools_reordered",
        "clock": "volatile_prefix",
        "another model": "model_changed",
        "kimi": None,
        "kimi, tools reordered": "tools_reordered",
        "responses": "tools_reordered",
        "responses, clock": "volatile_prefix",
        "not reported": "not_reported",
    }
