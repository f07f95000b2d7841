"""Every dialect over the wire: the SDKs call a provider that speaks it, and the entry has the provider's numbers.

The placements and spellings themselves are vectors (spec/vectors/surfaces); here is what only a real client shows: that
the counts survive the SDK's types, plain and streamed, sync and async.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import product
from typing import Any

import anthropic
import openai
import pytest

from tests.conftest import Ledger
from tests.provider import Answer, Behaviour, Provider, always, in_order
from tests.provider import call as tool
from tests.provider.usage import Counts, cost
from tests.ways import ASK, RULES

VERSION = "2025-04-01-preview"
USAGE = {"stream_options": {"include_usage": True}}


@dataclass(frozen=True)
class Spoken:
    """A vendor's dialect: the surface that its host is named as, the path of the API under the provider, the client
    classes, what a stream must ask for, and what the entry says beside the counts."""

    vendor: str
    surface: str
    path: str = "/v1"
    api: str = "chat"
    asked: Mapping[str, Any] = field(default_factory=dict)
    writes: bool = False
    reports: bool = True
    source: str = "event"
    flags: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.vendor}-{self.api}{'-asked' if self.asked else ''}"


CHATS = [
    Spoken("openai", "openai", asked=USAGE, writes=True),
    Spoken("legacy", "openai", asked=USAGE),
    Spoken("azure", "azure_openai", "/openai/v1", asked=USAGE),
    Spoken("deepseek", "deepseek", "", asked=USAGE),
    Spoken("openrouter", "openrouter", "/api/v1", writes=True),
    Spoken("gemini", "gemini", "/v1beta/openai", asked=USAGE, flags=("total_conflict",)),
    Spoken("x_ai", "x_ai", asked=USAGE),
    Spoken("groq", "groq", "/openai/v1"),
    Spoken("groq", "groq", "/openai/v1", asked=USAGE),
    Spoken("vllm", "vllm", asked=USAGE),
    Spoken("vllm-off", "vllm", asked=USAGE, reports=False),
    Spoken("llama", "llama_cpp", asked=USAGE),
    Spoken("llama", "llama_cpp", source="timings"),
    Spoken("llama-timings", "llama_cpp", asked=USAGE, source="timings"),
    *(
        Spoken(vendor, "kimi_open_platform", asked=asked, writes=writes, source="event" if asked else "choice")
        for vendor, writes in (
            ("kimi", False), ("kimi-details", False), ("kimi-both", False), ("kimi-writes", True),
            ("kimi-creation", True),
        )
        for asked in ({}, USAGE)
    ),
    Spoken("coding", "kimi_code", "/coding/v1", source="choice"),
    Spoken("kimi-both", "unknown", asked=USAGE),
]  # fmt: skip
OTHERS = [
    Spoken("openai", "openai", api="responses", writes=True),
    Spoken("azure", "azure_openai", "/openai/v1", "responses"),
    Spoken("vllm", "vllm", api="responses"),
    Spoken("llama", "llama_cpp", api="responses"),
    Spoken("anthropic", "anthropic", "", "messages", writes=True),
    Spoken("kimi", "kimi_open_platform", "/anthropic", "messages", writes=True),
    Spoken("coding", "kimi_code", "/coding", "messages", writes=True),
    Spoken("deepseek", "deepseek", "/anthropic", "messages", writes=True),
]
# openai before 1.66 has no Responses.
SPOKEN = [
    spoken for spoken in (*CHATS, *OTHERS) if spoken.api != "responses" or find_spec("openai.resources.responses")
]
THOUGHTFUL = Answer("Reading the parser.", "The test names it.")
EVERY = [
    pytest.param(
        spoken, asynchronous, streams, id=f"{spoken}-{'async' if asynchronous else 'sync'}{'-stream' * streams}"
    )
    for spoken, asynchronous, streams in product(SPOKEN, (False, True), (False, True))
]


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A provider whose answers hold thought, so that output and reasoning differ."""
    with Provider(always(THOUGHTFUL)) as running:
        yield running


Named = Callable[[str], None]


@pytest.fixture
def named(ledger: Ledger, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Named:
    """Names the loopback host as a surface, for the ledger of this test."""

    def name(surface: str) -> None:
        monkeypatch.setenv("CONTEXT_LEDGER_SURFACES", f"127.0.0.1:{provider.server_port}={surface}")
        ledger.instrumentor.uninstrument()
        ledger.instrumentor.instrument()

    return name


def arguments(spoken: Spoken, streams: bool) -> dict[str, Any]:
    """The keyword arguments of one call."""
    body: dict[str, dict[str, Any]] = {
        "chat": {"messages": [{"role": "system", "content": RULES}, ASK]},
        "responses": {"instructions": RULES, "input": [ASK]},
        "messages": {"system": RULES, "messages": [ASK], "max_tokens": 64},
    }
    return {"model": "m", **body[spoken.api], **({"stream": True, **spoken.asked} if streams else {})}


def resource(spoken: Spoken, client: Any) -> Any:
    return {"chat": lambda: client.chat.completions, "responses": lambda: client.responses}.get(
        spoken.api, lambda: client.messages
    )()


def client(spoken: Spoken, url: str, asynchronous: bool) -> Any:
    """The SDK's client for the vendor's address."""
    base = f"{url}/{spoken.vendor}{spoken.path}"
    sdk = anthropic if spoken.api == "messages" else openai
    kinds = {anthropic: ("Anthropic", "AsyncAnthropic"), openai: ("OpenAI", "AsyncOpenAI")}[sdk]
    return getattr(sdk, kinds[asynchronous])(base_url=base, api_key="k", max_retries=0)


def call(using: Any, spoken: Spoken, streams: bool) -> None:
    with using:
        for _ in range(2):
            answer = resource(spoken, using).create(**arguments(spoken, streams))
            if streams:
                list(answer)


async def acall(using: Any, spoken: Spoken, streams: bool) -> None:
    async with using:
        for _ in range(2):
            answer = await resource(spoken, using).create(**arguments(spoken, streams))
            if streams:
                async for _event in answer:
                    pass


@pytest.mark.parametrize(("spoken", "asynchronous", "streams"), EVERY)
def test_the_entry_has_the_providers_numbers(
    spoken: Spoken, asynchronous: bool, streams: bool, provider: Provider, ledger: Ledger, named: Named
) -> None:
    """Twice the same call: what the provider counted is in the entry, in exclusive classes, under any placement."""
    named(spoken.surface)
    using = client(spoken, provider.url, asynchronous)
    if asynchronous:
        asyncio.run(acall(using, spoken, streams))
    else:
        call(using, spoken, streams)
    got = [
        (entry["provider_surface"], entry["input_tokens"], entry["cached_tokens"], entry["cache_report"])
        for entry in ledger.flat()
    ]
    report = "reported" if spoken.reports else "not_reported"
    assert got == [
        (spoken.surface, request.prompt, request.cached if spoken.reports else None, report)
        for request in provider.requests
    ]
    for entry in ledger.flat():
        assert (entry["cache_write_tokens"] is not None) == spoken.writes
        assert tuple(flag.split("(")[0] for flag in entry["usage_flags"]) == spoken.flags
        timed = "timings" if spoken.source == "timings" and "timings" in spoken.vendor else "response"
        assert entry["usage_source"] == (spoken.source if streams else timed)


@pytest.mark.parametrize("words", [5, 2000])
def test_counts_in_every_chunk(words: int, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that repeats growing counts in each of thousands of chunks: the last ones count, and the end of the
    stream, its tool call and its finish reason are not crowded out."""
    answer = Answer("word " * words, tool_calls=(tool("read", path="a.py"),))
    with Provider(always(answer)) as provider:
        monkeypatch.setenv("CONTEXT_LEDGER_SURFACES", f"127.0.0.1:{provider.server_port}=vllm")
        ledger.instrumentor.uninstrument()
        ledger.instrumentor.instrument()
        with openai.OpenAI(base_url=f"{provider.url}/vllm-continuous/v1", api_key="k", max_retries=0) as using:
            list(using.chat.completions.create(**arguments(CHATS[0], True)))
    (entry,) = ledger.flat()
    fields = ("output_tokens", "finish_reasons", "tool_calls", "truncated", "cached_tokens", "usage_flags")
    assert [entry[name] for name in fields] == [answer.output_tokens, ["tool_calls"], 1, False, 0, []]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("streams", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("deployment", [None, "deployed"], ids=["model-names-it", "client-names-it"])
def test_azures_own_client(
    asynchronous: bool, streams: bool, deployment: str | None, provider: Provider, ledger: Ledger, named: Named
) -> None:
    """AzureOpenAI puts the deployment into the path and the version into the query, below our seam or above it: the
    wire has Azure's shape, and the entry is that of any other call."""
    named("azure_openai")
    kind = openai.AsyncAzureOpenAI if asynchronous else openai.AzureOpenAI
    using = kind(
        azure_endpoint=f"{provider.url}/azure", azure_deployment=deployment, api_version=VERSION, api_key="k",
        max_retries=0,
    )  # fmt: skip
    spoken = CHATS[2]
    if asynchronous:
        asyncio.run(acall(using, spoken, streams))
    else:
        call(using, spoken, streams)
    place = f"/azure/openai/deployments/{deployment or 'm'}/chat/completions?api-version={VERSION}"
    assert [request.path for request in provider.requests] == [place] * 2
    assert [(entry["provider"], entry["input_tokens"], entry["cached_tokens"]) for entry in ledger.flat()] == [
        ("azure.ai.openai", request.prompt, request.cached) for request in provider.requests
    ]


@pytest.mark.parametrize("streams", [False, True], ids=["plain", "stream"])
def test_cm22_a_router_changes_the_host(streams: bool, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """CM22 over the wire: the router says which host served each call, and what it billed; the next host's cache never
    held the prefix."""
    hosts = ["host-1", "host-1", "host-2"]
    with Provider(plan=in_order([Behaviour(extra={"provider": host}) for host in hosts])) as provider:
        monkeypatch.setenv("CONTEXT_LEDGER_SURFACES", f"127.0.0.1:{provider.server_port}=openrouter")
        ledger.instrumentor.uninstrument()
        ledger.instrumentor.instrument()
        talk: list[Any] = [{"role": "system", "content": RULES}, ASK]
        with openai.OpenAI(base_url=f"{provider.url}/openrouter/api/v1", api_key="k", max_retries=0) as using:
            for turn in range(3):
                if turn == 2:
                    provider.cache = type(provider.cache)(provider.cache.rules)
                answer = using.chat.completions.create(model="m", messages=talk, stream=streams)
                if streams:
                    list(answer)
                talk += [{"role": "assistant", "content": f"Step {turn}."}, {"role": "user", "content": "Go on."}]
    entries = ledger.flat()
    assert [(entry["route"], entry["miss_cause"]) for entry in entries] == [
        ("host-1", "cold_start"), ("host-1", None), ("host-2", "route_changed"),
    ]  # fmt: skip
    assert entries[2]["miss_evidence"][:2] == ["provider_reported", "route=host-1>host-2"]
    billed = [
        cost(Counts(request.prompt, request.cached, request.written, entry["output_tokens"], 0))
        for request, entry in zip(provider.requests, entries, strict=True)
    ]
    assert [(entry["cost"]["amount"], entry["cost"]["source"]) for entry in entries] == [
        (amount, "provider") for amount in billed
    ]
