"""The call matrix: whatever the way of calling and ending, one entry, the provider's numbers, an unharmed program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace

from tests.conftest import Ledger, Signals
from tests.provider import Provider
from tests.ways import ASK, RULES, TOOLS, WAYS, Way, run

VOLATILE = {"date", "host", "traceparent", "x-stainless-retry-count", "x-stainless-read-timeout", "idempotency-key"}
STABLE = ("context_identity", "cache_identity", "policy_hash", "tool_schema_hash", "tool_wire_hash", "prefix_locator")


def applies(way: Way, ending: str) -> bool:
    """Early ends belong to streams; cancelling belongs to tasks."""
    if ending in ("close", "never", "collect"):
        return way.streams
    return way.asynchronous if ending == "cancel" else True


def pairs(*endings: str) -> list[Any]:
    return [pytest.param(way, end, id=f"{way}-{end}") for way in WAYS for end in endings if applies(way, end)]


def ways() -> list[Any]:
    return [pytest.param(way, id=str(way)) for way in WAYS]


@pytest.mark.parametrize("way", ways())
def test_the_entry_has_the_providers_numbers(way: Way, provider: Provider, ledger: Ledger) -> None:
    """Twice the same call: the second reads everything from the cache, and both entries say what was counted."""
    for _ in range(2):
        run(way, provider.url, "numbers")
    got = [
        {
            name: entry[name]
            for name in ("input_tokens", "cached_tokens", "cache_report", "call_end", "finish_reasons", "miss_cause")
        }
        for entry in ledger.flat()
    ]
    reasons = {"anthropic": ["end_turn"], "responses": ["completed"]}.get(way.surface, ["stop"])
    causes = ["cold_start", None]
    assert got == [
        {
            "input_tokens": request.prompt,
            "cached_tokens": request.cached,
            "cache_report": "reported",
            "call_end": "complete",
            "finish_reasons": reasons,
            "miss_cause": cause,
        }
        for request, cause in zip(provider.requests, causes, strict=True)
    ]


@pytest.mark.parametrize("surface", sorted({way.surface for way in WAYS}))
def test_every_way_gives_the_same_identity(surface: str, provider: Provider, ledger: Ledger) -> None:
    """The same call made in different ways has the same hashes, identities and locator."""
    alike = [way for way in WAYS if way.surface == surface and way.shape != "parse"]
    for way in alike:
        run(way, provider.url, "alike")
    got = [{name: entry[name] for name in STABLE} for entry in ledger.flat()]
    assert got == [got[0]] * len(alike)


@pytest.mark.parametrize(("way", "ending"), pairs("http_error", "drop", "close", "never", "cancel", "collect"))
def test_every_end_leaves_one_entry(way: Way, ending: str, provider: Provider, ledger: Ledger) -> None:
    """Failed, dropped, closed, abandoned and cancelled calls leave exactly one entry that says how they ended."""
    models = {"http_error": "err-500", "drop": "err-drop", "cancel": "stuck"}
    run(way, provider.url, models.get(ending, "ends"), ending)
    ends = [entry["call_end"] for entry in ledger.flat()]
    allowed = {
        "http_error": [["failed"]],
        "drop": [["failed"]],
        "close": [["closed"]],
        "never": [["abandoned"], ["closed"]],
        "cancel": [["cancelled"]],
        "collect": [["abandoned"], ["closed"]],
    }
    assert ends in allowed[ending]


@pytest.mark.parametrize(("way", "ending"), pairs("ok", "http_error", "drop", "close", "never"))
def test_the_program_sees_and_sends_the_same(
    way: Way, ending: str, provider: Provider, settings: Any, signals: Signals
) -> None:
    """IN15: with and without the ledger the wire bytes, headers, result types and exceptions are the same."""
    model = {"http_error": "err-500", "drop": "err-drop"}.get(ending, "wire")
    bare = run(way, provider.url, model, ending)
    recorder = Ledger(settings)
    recorder.instrumentor.instrument()
    try:
        seen = run(way, provider.url, model, ending)
    finally:
        recorder.instrumentor.uninstrument()
    assert seen == bare
    without, with_ = provider.requests
    assert (with_.path, with_.body, headers(with_)) == (without.path, without.body, headers(without))


def headers(request: Any) -> dict[str, str]:
    return {name: value for name, value in request.headers.items() if name not in VOLATILE}


def one_shot(items: list[Any]) -> Iterator[Any]:
    yield from items


@pytest.mark.parametrize("instrumented", [False, True])
def test_generators_are_sent_whole(instrumented: bool, provider: Provider, request: pytest.FixtureRequest) -> None:
    """IN13, IN15: messages and tools given as one-shot generators reach the provider complete."""
    if instrumented:
        request.getfixturevalue("ledger")
    body = {"messages": one_shot([{"role": "system", "content": RULES}, ASK]), "tools": one_shot(TOOLS)}
    run(Way("kimi", False, "plain"), provider.url, "generators", body=body)
    sent = provider.requests[-1].json
    assert (len(sent["messages"]), len(sent["tools"])) == (2, 3)


def test_ac21_two_layers_of_one_call_are_one_line(provider: Provider, ledger: Ledger, signals: Signals) -> None:
    """AC21: a framework's span that is blind to the cache around the SDK's call: one line for each call with the
    provider's cached count and one cost, no second inference span, and the framework's made whole."""
    for _ in range(2):
        with trace.get_tracer("framework").start_as_current_span("chat", attributes={"gen_ai.operation.name": "chat"}):
            run(Way("kimi", False, "plain"), provider.url, "layers")
    cached = [request.cached for request in provider.requests]
    assert [entry["cached_tokens"] for entry in ledger.flat()] == cached
    spans = signals.spans.get_finished_spans()
    read = "gen_ai.usage.cache_read.input_tokens"
    assert [(span.instrumentation_scope.name, span.attributes[read]) for span in spans] == [
        ("framework", count) for count in cached
    ]


@pytest.mark.parametrize("surface", sorted({way.surface for way in WAYS}))
def test_usage_is_on_one_span(surface: str, provider: Provider, ledger: Ledger, signals: Signals) -> None:
    """However many spans a call has, since anthropic 2 makes its own, one has the standard usage and one the entry."""
    run(Way(surface, False, "plain"), provider.url, "usage")
    spans = signals.spans.get_finished_spans()
    names = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "context_ledger.entry_id")
    assert [sum(name in span.attributes for span in spans) for name in names] == [1, 1, 1]


def test_uninstrument_restores_the_sdks(settings: Any, signals: Signals) -> None:
    """After uninstrument the methods of the SDKs are the very ones from before."""
    import anthropic._base_client
    import openai._base_client

    owners = [
        getattr(module, name)
        for module in (openai._base_client, anthropic._base_client)
        for name in ("SyncAPIClient", "AsyncAPIClient")
    ]
    before = [owner.__dict__["request"] for owner in owners]
    running = Ledger(settings)
    running.instrumentor.instrument()
    during = [owner.__dict__["request"] for owner in owners]
    running.instrumentor.uninstrument()
    assert all(was is not now for was, now in zip(before, during, strict=True))
    assert [owner.__dict__["request"] for owner in owners] == before
