"""A user's program under `opentelemetry-instrument`, where five packages share the entry-point name `openai` and ours
has its own: spans as they reach an OTLP receiver, and the ledger file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from otel_context_ledger import semconv as s
from tests.peers.runs import PEER
from tests.provider import Provider
from tests.receiver import Receiver, receiving, values
from tests.test_zero_code import entries, otlp, run

# What a program adds in code for peers that `opentelemetry-instrument` cannot switch on.
IN_CODE = {
    "langfuse": "import langfuse.openai",
    "logfire": "import logfire; logfire.configure(send_to_logfire=False, console=False); logfire.instrument_openai()",
}
PROGRAM = """
import sys, openai
client = openai.OpenAI(base_url=sys.argv[1], api_key="test-key", max_retries=0)
ask = {"model": "kimi-k3", "messages": [{"role": "user", "content": "Fix the parser. " * 40}]}
print(client.chat.completions.create(**ask).choices[0].message.content)
print(sum(1 for _ in client.chat.completions.create(stream=True, **ask)))
print(client.chat.completions.with_raw_response.create(**ask).parse().choices[0].message.content)
"""
SCOPES = {
    "genai-openai": ["opentelemetry.instrumentation.genai.openai"],
    "traceloop": ["opentelemetry.instrumentation.openai.v1"],
    "openinference": ["openinference.instrumentation.openai"],
    "langfuse": ["langfuse-sdk"],
    "logfire": ["logfire.openai"],
}
SCOPES["all"] = [SCOPES[name][0] for name in ("genai-openai", "traceloop", "openinference")]
# The stream, whose span logfire ends before the program reads it.
SEALED = {"logfire": 1}


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One run: what the program printed without and with everything, the receiver with its spans, the ledger's lines,
    and what the provider was asked."""
    folder: Path = tmp_path_factory.mktemp("zero-code")
    with Provider() as provider, receiving() as receiver:
        keys = {
            "LANGFUSE_PUBLIC_KEY": "pk-lf-test",
            "LANGFUSE_SECRET_KEY": "sk-lf-test",
            "LANGFUSE_BASE_URL": receiver.url,
        }
        program = f"{IN_CODE.get(PEER, '')}\n{PROGRAM}"
        stdout, stderr, _, code = run(provider, folder, program, **otlp(receiver), **keys)
        asked = list(provider.requests)
        bare = run(provider, folder, PROGRAM, instrument=False)
        assert code == 0, stderr
        yield (bare[0], stdout), receiver, entries(folder), asked


def test_the_program_is_unharmed(trial: Any) -> None:
    """It prints what it would have printed without any instrumentation."""
    (bare, beside), _, _, _ = trial
    assert beside == bare


def test_one_line_for_each_call(trial: Any) -> None:
    """Each call has one line with the provider's numbers."""
    _, _, lines, asked = trial
    got = [(line["input_tokens"], line["cached_tokens"], line["call_end"]) for line in lines]
    assert got == [(request.prompt, request.cached, "complete") for request in asked]


def test_each_entry_is_on_one_span_of_the_receiver(trial: Any) -> None:
    """Every peer's spans arrive, those of several nested; each entry is on one, with a span of ours only where the
    peer's was sealed."""
    _, receiver, lines, _ = trial
    spans = received(receiver)
    carriers = [span for span in spans if s.CONTEXT_LEDGER_ENTRY_ID in span[1]]
    assert sorted(span[1][s.CONTEXT_LEDGER_ENTRY_ID] for span in carriers) == sorted(line["entry_id"] for line in lines)
    carrying = Counter(scope for scope, _ in carriers)
    innermost, sealed = SCOPES[PEER][-1], SEALED.get(PEER, 0)
    assert carrying == Counter({innermost: 3 - sealed, "otel_context_ledger": sealed}) - Counter()
    assert {scope for scope, _ in spans} >= set(SCOPES[PEER])


def received(receiver: Receiver) -> list[tuple[str, dict[str, Any]]]:
    """(scope, attributes) of every span that the standard exporter sent."""
    return [
        (scope.scope.name, values(span.attributes))
        for raw in receiver.bodies.get("/v1/traces", [])
        for resource in ExportTraceServiceRequest.FromString(raw).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def test_our_counters_count_once(trial: Any) -> None:
    """The counters that arrive are the sums over the lines."""
    _, receiver, lines, _ = trial
    sums = receiver.sums()
    found = (sums[s.METRIC_CALLS], sums[s.METRIC_INPUT_TOKENS])
    assert found == (len(lines), sum(line["input_tokens"] for line in lines))
