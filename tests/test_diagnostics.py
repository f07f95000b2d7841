"""Providers' own verdicts: asked for only where the user says so, in a copy of the request, and shown beside ours."""

from __future__ import annotations

import copy
import json
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from otel_context_ledger import semconv as s
from otel_context_ledger.surfaces import diagnostics, facts
from tests.conftest import Ledger, Signals
from tests.provider import Provider
from tests.ways import ASK, RULES, WAYS, Way, run

MODELS = {"responses": "gpt-5.6", "anthropic": "claude-x"}
ASKING = [way for way in WAYS if way.surface in MODELS]
VERDICT = ("miss_cause", "provider_verdict", "verdict_requested_by", "verdict_missed_tokens", "verdict_conflict")
has_responses = pytest.mark.skipif(find_spec("openai.resources.responses") is None, reason="openai before 1.66")
NEXT = {"role": "user", "content": "And now the other one."}


def name(monkeypatch: pytest.MonkeyPatch, provider: Provider, surface: str, asks: str = "1") -> None:
    """The user's environment: whose surface the loopback host is, and whether its verdict is asked for."""
    monkeypatch.setenv("CONTEXT_LEDGER_SURFACES", f"127.0.0.1:{provider.server_port}={surface}")
    monkeypatch.setenv("CONTEXT_LEDGER_PROVIDER_DIAGNOSTICS", asks)


def surface_of(way: Way) -> str:
    return {"responses": "openai", "anthropic": "anthropic"}[way.surface]


def twice(way: Way, provider: Provider, settings: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The same call twice under a new ledger: the bodies that arrived, and the entries."""
    start = len(provider.requests)
    recorder = Ledger(settings)
    recorder.instrumentor.instrument()
    try:
        for _ in range(2):
            run(way, provider.url, MODELS[way.surface])
        return [request.json for request in provider.requests[start:]], recorder.flat()[-2:]
    finally:
        recorder.instrumentor.uninstrument()


def judged(signals: Signals) -> Counter[bool]:
    """How many calls were counted by whether the provider contradicted us."""
    told = signals.counted().get(s.METRIC_PROVIDER_VERDICTS, [])
    found: Counter[bool] = Counter()
    for own, count in told:
        found[own[s.CONTEXT_LEDGER_VERDICT_CONFLICT]] += int(count)
    return found


@pytest.mark.parametrize("way", ASKING, ids=str)
def test_only_the_question_is_added(
    way: Way, provider: Provider, settings: Any, signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the switch on, a request differs from the bare one by one member, which names the comparable call's
    response; every way of calling, streams included, reads the verdict."""
    run(way, provider.url, MODELS[way.surface])
    bare = provider.requests[-1].json
    name(monkeypatch, provider, surface_of(way))
    (first, second), entries = twice(way, provider, settings)
    member = {"responses": "prompt_cache_options", "anthropic": "diagnostics"}[way.surface]
    ids = [entry["response_id"] for entry in entries]
    wanted = {
        "responses": [None, {"comparison_response_id": ids[0]}],
        "anthropic": [{"previous_message_id": None}, {"previous_message_id": ids[0]}],
    }[way.surface]
    assert [body.get(member) for body in (first, second)] == wanted
    assert [{key: value for key, value in body.items() if key != member} for body in (first, second)] == [bare] * 2
    said = {
        "responses": [("not_requested", None), ("cache_hit", "ledger")],
        "anthropic": [("no_comparison", "ledger"), ("no_divergence", "ledger")],
    }[way.surface]
    assert [(entry["provider_verdict"], entry["verdict_requested_by"]) for entry in entries] == said


@pytest.mark.parametrize("way", ASKING, ids=str)
@pytest.mark.parametrize("asks", ["", "0", "false"])
def test_off_means_the_bytes_are_the_programs(
    way: Way, asks: str, provider: Provider, settings: Any, signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the switch the wire bytes are those of the bare program, and the entry says that nobody asked."""
    run(way, provider.url, MODELS[way.surface])
    bare = provider.requests[-1].body
    name(monkeypatch, provider, surface_of(way), asks)
    _, entries = twice(way, provider, settings)
    assert [request.body for request in provider.requests[1:]] == [bare] * 2
    assert [(e["provider_verdict"], e["verdict_requested_by"]) for e in entries] == [("not_requested", None)] * 2


@has_responses
def test_the_programs_own_objects_stay_as_they_are(
    provider: Provider, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question goes beside what the program set, in copies: in extra_body, in a body that it posts itself."""
    name(monkeypatch, provider, "openai")
    ledger.instrumentor.uninstrument()
    ledger.instrumentor.instrument()
    given: dict[str, Any] = {"model": "gpt-5.6", "input": [ASK], "prompt_cache_options": {"ttl": "12h"}}
    inner = {"model": "gpt-5.6", "input": [ASK]}
    extra = {"prompt_cache_options": {"mode": "implicit"}}
    before = copy.deepcopy((given, inner, extra))
    with openai.OpenAI(base_url=f"{provider.url}/openai/v1", api_key="k", max_retries=0) as client:
        first = client.responses.create(**inner)
        client.responses.create(**inner, extra_body=extra)
        client.post("/responses", body=given, cast_to=object)
    assert (given, inner, extra) == before
    ids = [entry["response_id"] for entry in ledger.flat()]
    assert first.id == ids[0]
    sent = [request.json.get("prompt_cache_options") for request in provider.requests]
    assert sent == [
        None,
        {"mode": "implicit", "comparison_response_id": ids[0]},
        {"ttl": "12h", "comparison_response_id": ids[1]},
    ]


@has_responses
@pytest.mark.parametrize("own", [{"comparison_response_id": "resp_mine"}, {"comparison_response_id": None}, None])
def test_what_the_program_set_is_never_overridden(
    own: Any, provider: Provider, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A comparison that the program names, a null that it sets: its request goes out as it is."""
    name(monkeypatch, provider, "openai")
    ledger.instrumentor.uninstrument()
    ledger.instrumentor.instrument()
    with openai.OpenAI(base_url=f"{provider.url}/openai/v1", api_key="k", max_retries=0) as client:
        client.responses.create(model="gpt-5.6", input=[ASK])
        client.responses.create(model="gpt-5.6", input=[ASK], extra_body={"prompt_cache_options": own})
    assert provider.requests[-1].json["prompt_cache_options"] == own
    asked = ledger.flat()[-1]["verdict_requested_by"]
    assert asked == ("program" if own else None)


@has_responses
@pytest.mark.parametrize(
    ("surface", "path", "model"),
    [
        ("openai", "/openai/v1", "gpt-5.5"),
        ("openai", "/openai/v1", "o4-mini"),
        ("azure_openai", "/azure/openai/v1", "gpt-5.6"),
        ("openrouter", "/openrouter/api/v1", "gpt-5.6"),
        ("unknown", "/gateway/v1", "gpt-5.6"),
    ],
)
def test_others_are_not_asked(
    surface: str, path: str, model: str, provider: Provider, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Older models and other surfaces need not know the member, and could refuse the request: they are left alone."""
    name(monkeypatch, provider, surface)
    ledger.instrumentor.uninstrument()
    ledger.instrumentor.instrument()
    with openai.OpenAI(base_url=provider.url + path, api_key="k", max_retries=0) as client:
        for _ in range(2):
            client.responses.create(model=model, input=[ASK])
    assert [request.json for request in provider.requests] == [{"model": model, "input": [ASK]}] * 2
    assert [entry["verdict_requested_by"] for entry in ledger.flat()] == [None, None]


@has_responses
def test_a_response_of_another_api_is_no_baseline(
    provider: Provider, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that goes from Chat Completions to Responses: the earlier id means nothing there and is not sent."""
    name(monkeypatch, provider, "openai")
    monkeypatch.setenv("CONTEXT_LEDGER_SESSION_ID", "one")
    ledger.instrumentor.uninstrument()
    ledger.instrumentor.instrument()
    with openai.OpenAI(base_url=f"{provider.url}/openai/v1", api_key="k", max_retries=0) as client:
        client.chat.completions.create(model="gpt-5.6", messages=[ASK])
        client.responses.create(model="gpt-5.6", input=[ASK])
    assert [sorted(request.json) for request in provider.requests] == [["messages", "model"], ["input", "model"]]


def test_cm42_two_witnesses_of_one_change(
    provider: Provider, ledger: Ledger, signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CM42 over the wire: the system text changed, we see it and the provider says it: both are in the evidence, its
    word is kept as it is, and that the two agree is counted; the first call, of which it said nothing, is not."""
    before = judged(signals)
    name(monkeypatch, provider, "anthropic")
    ledger.instrumentor.uninstrument()
    ledger.instrumentor.instrument()
    said = [ASK, {"role": "assistant", "content": "Done."}, NEXT]
    cached = {"extra_body": {"cache_control": {"type": "ephemeral"}}}
    with anthropic.Anthropic(base_url=f"{provider.url}/anthropic", api_key="k", max_retries=0) as client:
        for rules, messages in ((RULES, [ASK]), ("Be quick. " + RULES, said)):
            client.messages.create(model="claude-x", max_tokens=9, system=rules, messages=messages, **cached)
    entry = ledger.flat()[-1]
    assert {name: entry[name] for name in VERDICT} == {
        "miss_cause": "policy_changed",
        "provider_verdict": "system_changed",
        "verdict_requested_by": "ledger",
        "verdict_missed_tokens": 100,
        "verdict_conflict": False,
    }
    assert entry["miss_evidence"] == ["local_diff", "provider_reported"]
    assert judged(signals) - before == {False: 1}
    assert json.loads(provider.requests[-1].body)["diagnostics"]["previous_message_id"] == "msg_1"


@pytest.mark.parametrize(
    ("model", "asked"),
    [
        ("gpt-5.6", True),
        ("gpt-5.6-mini", True),
        ("gpt-5.10", True),
        ("gpt-6", True),
        ("gpt-5.5-pro", False),
        ("gpt-5", False),
        ("gpt-4.1", False),
        ("o4-mini", False),
        ("house-gpt-5.6", False),
        (None, False),
    ],
)
def test_which_models_are_asked(model: str | None, asked: bool) -> None:
    """OpenAI's feature begins with GPT-5.6: newer ones of the family are asked, others of any name are not."""
    asks = facts.load().of("openai").diagnostics
    question = diagnostics.question("responses", asks, {"model": model}, "resp_1")
    assert (question is not None) == asked


@has_responses
def test_a_user_says_which_models_are_asked(
    provider: Provider, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The fact can be overridden like any other: here every model of a gateway that is named by the user."""
    own = tmp_path / "own.toml"
    own.write_text('[facts.house]\ndiagnostics = {responses = ""}\n', "utf-8")
    monkeypatch.setenv("CONTEXT_LEDGER_CONFIG", str(own))
    name(monkeypatch, provider, "house")
    ledger.instrumentor.uninstrument()
    ledger.instrumentor.instrument()
    with openai.OpenAI(base_url=f"{provider.url}/openai/v1", api_key="k", max_retries=0) as client:
        for _ in range(2):
            client.responses.create(model="any", input=[ASK])
    assert [entry["verdict_requested_by"] for entry in ledger.flat()] == [None, "ledger"]
