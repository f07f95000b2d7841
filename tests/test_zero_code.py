"""A user's program under `opentelemetry-instrument`, with nothing but environment variables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from otel_context_ledger import semconv as s
from otel_context_ledger import store
from otel_context_ledger.surfaces import facts
from tests.conftest import flat
from tests.provider import Provider
from tests.receiver import Receiver, receiving

AGENT = """
import sys, openai
client = openai.OpenAI(base_url=sys.argv[1], api_key="test-key", max_retries=0)
def tool(name):
    return {"type": "function", "function": {"name": name, "description": name * 40, "parameters": {"type": "object"}}}
tools = [tool("read"), tool("edit")]
messages = [{"role": "system", "content": "Be careful. " * 80}, {"role": "user", "content": "Fix it. " * 40}]
for turn in range(4):
    sent = tools[::-1] if turn == 2 else tools
    stream = client.chat.completions.create(model="kimi-k3", messages=messages, tools=sent, stream=True)
    text = "".join(c.choices[0].delta.content or "" for c in stream if c.choices)
    messages += [{"role": "assistant", "content": text}, {"role": "user", "content": f"turn {turn} " * 40}]
print("done")
"""


def run(provider: Provider, folder: Path, program: str = AGENT, instrument: bool = True, **env: str) -> Any:
    """The program in a process of its own; stdout, stderr, seconds and exit code."""
    bin_ = Path(sys.executable).parent
    command = [str(bin_ / "python"), "-c", program, f"{provider.url}/kimi/v1"]
    if instrument:
        command.insert(0, str(bin_ / "opentelemetry-instrument"))
    settings = {
        "CONTEXT_LEDGER_FILE": str(folder / "ledger.jsonl"),
        "CONTEXT_LEDGER_SURFACES": f"127.0.0.1:{provider.server_port}=kimi_open_platform",
        "OTEL_TRACES_EXPORTER": "none",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
    }
    started = time.monotonic()
    done = subprocess.run(
        command, env=os.environ | settings | env, capture_output=True, text=True, check=False, timeout=120, cwd=folder
    )
    return done.stdout, done.stderr, time.monotonic() - started, done.returncode


def entries(folder: Path) -> list[dict[str, Any]]:
    return [flat(entry) for entry in store.read(folder / "ledger.jsonl").entries]  # type: ignore[arg-type]


def otlp(receiver: Receiver | str | None = None) -> dict[str, str]:
    """The standard variables that send all three signals to a receiver or URL, or to a port where nobody listens."""
    url = (receiver.url if isinstance(receiver, Receiver) else receiver) if receiver else "http://127.0.0.1:9"
    exporters = {f"OTEL_{signal}_EXPORTER": "otlp" for signal in ("TRACES", "METRICS", "LOGS")}
    return exporters | {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}


@pytest.fixture
def program(provider: Provider, tmp_path: Path) -> Any:
    return lambda **env: run(provider, tmp_path, **env)


def test_the_ledger_file_alone(program: Any, provider: Provider, tmp_path: Path) -> None:
    """With a file and no exporter the program is quiet, unharmed, and every call has its true line."""
    stdout, stderr, _, code = program()
    got = [(e["input_tokens"], e["cached_tokens"], e["miss_cause"]) for e in entries(tmp_path)]
    causes = ["cold_start", None, "tools_reordered", None]
    assert (stdout, stderr, code) == ("done\n", "", 0)
    assert got == [(r.prompt, r.cached, cause) for r, cause in zip(provider.requests, causes, strict=True)]


def test_spans_events_and_metrics_reach_the_receiver(program: Any, provider: Provider) -> None:
    """Environment variables alone send one inference span and one event per call, and counters that add up."""
    with receiving() as receiver:
        program(**otlp(receiver))
        spans, events, sums = receiver.spans(), receiver.events(), receiver.sums()
    ours = [attributes for name, attributes in spans if name == "chat kimi-k3"]
    cached = [request.cached for request in provider.requests]
    assert [a[s.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS] for a in ours] == cached
    assert [a[s.CONTEXT_LEDGER_CACHED_TOKENS] for name, a in events if name == s.EVENT_ENTRY] == cached
    assert sums[s.METRIC_CALLS] == 4
    assert sums[s.METRIC_INPUT_TOKENS] == sum(request.prompt or 0 for request in provider.requests)


def test_documented_attributes(program: Any) -> None:
    """Every attribute on the wire is in the registry, with the registry's type."""
    with receiving() as receiver:
        program(**otlp(receiver))
        spans = [attributes for name, attributes in receiver.spans() if name == "chat kimi-k3"]
    kinds = {"string": str, "int": int, "double": float, "boolean": bool, "string[]": list}
    wrong = {
        (name, type(value).__name__)
        for attributes in spans
        for name, value in attributes.items()
        if name not in s.TYPES or not isinstance(value, kinds[s.TYPES[name]])
    }
    assert wrong == set()


def test_a_dead_endpoint_holds_the_exit_for_one_timeout(program: Any) -> None:
    """With nobody listening the calls are made, and the exit waits for the three signals side by side: the longest of
    them, not their sum."""
    alone = [
        program(**{**otlp(), **quiet})[2] for quiet in ({f"OTEL_{x}_EXPORTER": "none" for x in pair} for pair in PAIRS)
    ]
    stdout, _, together, code = program(**otlp())
    assert (stdout, code) == ("done\n", 0)
    assert together < 0.75 * sum(alone)


PAIRS = (("METRICS", "LOGS"), ("TRACES", "LOGS"), ("TRACES", "METRICS"))


def test_disabled_means_nothing(program: Any, tmp_path: Path) -> None:
    """CONTEXT_LEDGER_ENABLED=false leaves no file, no span, no event and no metric."""
    with receiving() as receiver:
        program(CONTEXT_LEDGER_ENABLED="false", **otlp(receiver))
        names = [name for name, _ in receiver.spans() if name.startswith("chat")]
        assert (names, receiver.events(), receiver.sums()) == ([], [], {})
    assert not (tmp_path / "ledger.jsonl").exists()


def test_a_bad_setting_is_one_warning_that_holds_it(program: Any) -> None:
    """A wrong value costs one line on stderr that contains it and the accepted forms, and nothing else."""
    stdout, stderr, _, code = program(CONTEXT_LEDGER_MAX_SESSIONS="many")
    assert (stdout, code) == ("done\n", 0)
    assert stderr == (
        "context ledger: CONTEXT_LEDGER_MAX_SESSIONS: 'many' is not a whole number above 0; using the default\n"
    )


def test_a_misspelt_surface_is_one_warning(program: Any, provider: Provider, tmp_path: Path) -> None:
    """A surface name that is none costs one line on stderr that contains it and the names that there are; its host is
    then found like any other."""
    host = f"127.0.0.1:{provider.server_port}"
    stdout, stderr, _, code = program(CONTEXT_LEDGER_SURFACES=f"{host}=kimi_open_platfrom")
    names = ", ".join(sorted(facts.load().surfaces))
    assert (stdout, code) == ("done\n", 0)
    assert stderr == (
        f"context ledger: CONTEXT_LEDGER_SURFACES: 'kimi_open_platfrom' (of {host}) is no known surface; "
        f"known are {names}; going by the host\n"
    )
    assert [entry["provider_surface"] for entry in entries(tmp_path)] == ["unknown"] * 4


def test_a_ledger_that_cannot_be_written_is_one_warning(program: Any, tmp_path: Path) -> None:
    """A directory in the ledger file's place: the calls are made, one sentence says what is lost and the way out."""
    stdout, stderr, _, code = program(CONTEXT_LEDGER_FILE=str(tmp_path))
    assert (stdout, code, len(stderr.splitlines())) == ("done\n", 0, 1)
    assert "CONTEXT_LEDGER_FILE" in stderr


def test_lineage_survives_a_restart(program: Any, tmp_path: Path) -> None:
    """The same conversation in a second process continues the first one's session and blames nobody."""
    program()
    program()
    first, second = entries(tmp_path)[:4], entries(tmp_path)[4:]
    assert {e["session_id"] for e in second[1:]} == {second[1]["session_id"]}
    assert [e["miss_cause"] for e in second if e["cached_tokens"] == e["input_tokens"]] == [None] * 4
    assert len(first) == 4


def test_exit_in_mid_stream_leaves_its_entry(provider: Provider, tmp_path: Path) -> None:
    """A program that ends while a stream is open leaves one entry for it."""
    program = """
import sys, openai
client = openai.OpenAI(base_url=sys.argv[1], api_key="test-key", max_retries=0)
stream = client.chat.completions.create(model="kimi-k3", messages=[{"role": "user", "content": "hi"}], stream=True)
next(iter(stream))
print("done")
"""
    bare_out, bare_err, _, bare_code = run(provider, tmp_path, program, instrument=False)
    stdout, stderr, _, code = run(provider, tmp_path, program)
    # CPython 3.13.0 itself crashes at such an exit, with and without us.
    assert (stdout, stderr, code) == (bare_out, bare_err, bare_code)
    assert [entry["call_end"] for entry in entries(tmp_path)] == ["closed"]


def test_flags_of_opentelemetry_instrument(provider: Provider, tmp_path: Path) -> None:
    """`opentelemetry-instrument --context_ledger_file …` sets the variable of the same name."""
    bin_ = Path(sys.executable).parent
    done = subprocess.run(
        [str(bin_ / "opentelemetry-instrument"), "--help"], capture_output=True, text=True, check=False, timeout=60
    )
    assert "--context_ledger_file" in done.stdout


def test_every_line_is_json_of_known_groups(program: Any, tmp_path: Path) -> None:
    """A line holds the design's groups and the trail, nothing else."""
    program()
    line = json.loads((tmp_path / "ledger.jsonl").read_text("utf-8").splitlines()[0])
    assert list(line) == ["self", "task", "model", "context", "cache", "request", "money", "checks", "segments"]
