"""What other instrumentations did to their programs (the IN rows of the cases) that the call matrix does not show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.resources.chat.completions import Completions
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

from otel_context_ledger import semconv as s
from otel_context_ledger.instrumentation import ContextLedgerInstrumentor
from tests.conftest import Ledger, Signals
from tests.provider import Behaviour, Provider
from tests.ways import ASK, CHAT, RULES

MAX_LEDGER_BYTES = 16 * 1024


@pytest.fixture
def client(provider: Provider) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{provider.url}/openai/v1", api_key="test-key", max_retries=0) as made:
        yield made


def raw_plain(client: openai.OpenAI) -> Any:
    raw = client.chat.completions.with_raw_response.create(model="m", **CHAT)
    return type(raw).__name__, sorted(raw.headers), raw.status_code, raw.parse().choices[0].message.content


def raw_stream(client: openai.OpenAI) -> Any:
    raw = client.chat.completions.with_raw_response.create(model="m", stream=True, **CHAT)
    stream = raw.parse()
    return type(raw).__name__, sorted(raw.headers), type(stream).__name__, [len(chunk.choices) for chunk in stream]


def raw_responses(client: openai.OpenAI) -> Any:
    raw = client.responses.with_raw_response.create(model="m", instructions=RULES, input="hi", stream=True)
    stream = raw.parse()
    return type(raw).__name__, sorted(raw.headers), type(stream).__name__, [event.type for event in stream]


@pytest.mark.parametrize("call", [raw_plain, raw_stream, raw_responses], ids=["IN01", "IN02", "IN03"])
def test_raw_responses_are_as_they_are(
    call: Any, client: openai.OpenAI, provider: Provider, settings: Any, signals: Signals
) -> None:
    """IN01, IN02, IN03: headers, type, parsed answer and events of a raw response are the SDK's own, and its usage is
    in the entry."""
    bare = call(client)
    running = Ledger(settings)
    running.instrumentor.instrument()
    watched = call(client)
    (entry,) = running.flat()
    running.instrumentor.uninstrument()
    assert watched == bare
    known = call is not raw_stream
    assert (entry["input_tokens"], entry["call_end"]) == (provider.requests[-1].prompt if known else None, "complete")


@pytest.mark.parametrize("details", [None, {}, {"cached_tokens": None}], ids=["null", "empty", "null count"])
def test_usage_details_that_are_null(details: Any, client: openai.OpenAI, provider: Provider, ledger: Ledger) -> None:
    """IN05: details that are there and say nothing are an unknown hit, never 0, and no error."""
    usage = {"prompt_tokens": 900, "completion_tokens": 9, "total_tokens": 909, "prompt_tokens_details": details}
    provider.plan = lambda _: Behaviour(report="absent", extra={"usage": usage})
    client.chat.completions.create(model="m", messages=[ASK])  # type: ignore[list-item]
    (entry,) = ledger.flat()
    names = ("input_tokens", "cached_tokens", "cache_report", "ledger_error")
    assert [entry[name] for name in names] == [900, None, "not_reported", None]


class Own(Completions):
    """A program's own resource, whose method calls the SDK's."""

    def create(self, **given: Any) -> Any:  # type: ignore[override]
        return super().create(**given)


def test_a_subclass_that_calls_the_sdk(client: openai.OpenAI, provider: Provider, ledger: Ledger) -> None:
    """IN06: instrumented twice, and called through a subclass that calls `super()`: one row per response id."""
    ContextLedgerInstrumentor()._patch(openai._base_client)
    Own(client).create(model="m", messages=[ASK])
    Own(client).create(model="m", messages=[ASK])
    ids = [entry["response_id"] for entry in ledger.flat()]
    assert (len(ids), len(set(ids)), None in ids) == (2, 2, False)


def test_a_huge_context(client: openai.OpenAI, provider: Provider, ledger: Ledger, signals: Signals) -> None:
    """IN10: a request of 900,000 tokens with 300 tools: the ledger's part of its span stays within 16 KB and 128
    attributes, and can be exported."""
    tools = [
        {"type": "function", "function": {"name": f"tool_{n}", "description": "word " * 200, "parameters": {}}}
        for n in range(300)
    ]
    messages = [{"role": "system", "content": RULES}]
    messages += [{"role": ("user", "assistant")[n % 2], "content": f"{n} " + "word " * 2_000} for n in range(300)]
    for given in (tools, tools[::-1]):
        client.chat.completions.create(model="m", messages=messages, tools=given)  # type: ignore[arg-type]
    first, second = ledger.flat()
    spans = signals.spans.get_finished_spans()
    assert first["input_tokens"] > 600_000
    assert second["miss_cause"] == "tools_reordered"
    for span in spans:
        ours = {name: value for name, value in dict(span.attributes or {}).items() if name in s.TYPES}
        assert (len(ours) <= 128, len(str(ours)) <= MAX_LEDGER_BYTES) == (True, True)
    assert len(encode_spans(spans).resource_spans) == 1
