"""What the shells must never do to a program, and what they do about input that is wrong."""

from __future__ import annotations

import functools
import gc
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import openai
import pydantic
import pytest
import wrapt
from opentelemetry import context as otel
from opentelemetry import trace
from opentelemetry.instrumentation.utils import suppress_instrumentation

import otel_context_ledger
from otel_context_ledger.instrumentation import ContextLedgerInstrumentor
from tests.conftest import Ledger, Signals
from tests.provider import Behaviour, Provider

SYSTEM = {"role": "system", "content": "Be careful. " * 50}


def client(provider: Provider, path: str = "/kimi/v1") -> openai.OpenAI:
    return openai.OpenAI(base_url=provider.url + path, api_key="test-key", max_retries=0)


def ask(provider: Provider, **kw: Any) -> Any:
    given: dict[str, Any] = {"model": "m", "messages": [SYSTEM, {"role": "user", "content": "hi"}], **kw}
    return client(provider).chat.completions.create(**given)


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({"User-Agent": "KimiCLI/1.50.0", "X-Msh-Version": "1.50.0"}, "KimiCLI/1.50.0"),
        ({"X-Msh-Version": "1.50.0"}, "1.50.0"),
        ({"user-agent": "Agents/Python 0.24.0"}, "Agents/Python 0.24.0"),
        ({"user-agent": "agent/1.2 (Linux; host-7)"}, "agent/1.2"),
        ({"user-agent": "agent 10.0.0.7"}, "agent"),
        ({}, None),
    ],
)
def test_the_client_is_named_by_its_own_header(
    headers: dict[str, str], told: str | None, provider: Provider, ledger: Ledger
) -> None:
    """The product and version with which the program names itself are told, and nothing that may name its machine."""
    ask(provider, extra_headers=headers)
    assert [entry["client_version"] for entry in ledger.flat()] == [told]


def test_suppression_is_honoured(provider: Provider, ledger: Ledger) -> None:
    """Inside OpenTelemetry's suppression nothing is recorded."""
    with suppress_instrumentation():
        ask(provider)
    ask(provider)
    assert len(ledger.entries()) == 1


def test_the_language_model_key_is_honoured(provider: Provider, ledger: Ledger) -> None:
    """The key that other GenAI instrumentations use to silence those below them silences us."""
    token = otel.attach(otel.set_value("suppress_language_model_instrumentation", True))
    ask(provider)
    otel.detach(token)
    assert ledger.entries() == []


def test_a_peer_that_silences_those_below_is_enriched(provider: Provider, ledger: Ledger, signals: Signals) -> None:
    """A peer that suppresses instrumentation inside its own span, as logfire does, hides no call from us."""
    tracer = trace.get_tracer("peer")
    attributes = {"gen_ai.operation.name": "chat"}
    with tracer.start_as_current_span("peer", attributes=attributes), suppress_instrumentation():
        ask(provider)
        ask(provider)
    (span,) = signals.spans.get_finished_spans()
    assert [entry["self"]["entry_id"] for entry in ledger.entries()] == [span.attributes["context_ledger.entry_id"]]


def by_wrapt(method: Any, seen: list[str]) -> Any:
    return wrapt.FunctionWrapper(
        method, lambda wrapped, _, args, kwargs: seen.append("peer") or wrapped(*args, **kwargs)
    )


def by_closure(method: Any, seen: list[str]) -> Any:
    @functools.wraps(method)
    def request(*args: Any, **kwargs: Any) -> Any:
        seen.append("peer")
        return method(*args, **kwargs)

    return request


@pytest.mark.parametrize("around", [by_wrapt, by_closure, lambda m, seen: by_wrapt(by_closure(m, []), seen)])
def test_a_peer_that_was_there_first_is_above_us(
    around: Any, provider: Provider, settings: Path, signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A peer that put itself around `OpenAI.request` before us holds the SDK's method; its calls pass us all the same,
    and no more after we are gone."""
    seen: list[str] = []
    monkeypatch.setattr(openai.OpenAI, "request", around(openai.OpenAI.request, seen), raising=False)
    running = Ledger(settings)
    running.instrumentor.instrument()
    ask(provider)
    entries = len(running.entries())
    running.instrumentor.uninstrument()
    ask(provider)
    assert (seen, entries, len(running.entries())) == (["peer"] * 2, 1, 1)


def test_a_collection_of_metrics_has_every_call(provider: Provider, ledger: Ledger, signals: Signals) -> None:
    """Whoever collects metrics alone gets the call that has just returned, though a background thread counts it."""

    def calls() -> float:
        return sum(value for _, value in signals.counted().get("context_ledger.calls", ()))

    before = calls()
    counts = []
    for _ in range(5):
        ask(provider)
        counts.append(calls() - before)
    assert counts == [1, 2, 3, 4, 5]


def test_a_stream_is_over_at_its_last_event(provider: Provider, ledger: Ledger) -> None:
    """A stream whose last event came is complete, even if the program reads no further."""
    with client(provider, "/openai/v1") as using:
        if not hasattr(using, "responses"):
            pytest.skip("this openai has no responses")
        stream = using.responses.create(model="m", input="hi", stream=True)
        next(event for event in stream if event.type == "response.completed")
        stream.close()
    assert [(entry["call_end"], entry["output_tokens"] is not None) for entry in ledger.flat()] == [("complete", True)]


def test_instrumenting_twice_records_once(provider: Provider, ledger: Ledger) -> None:
    """IN06: a second instrument() changes nothing."""
    logging.disable(logging.WARNING)
    ContextLedgerInstrumentor().instrument()
    logging.disable(logging.NOTSET)
    ask(provider)
    assert len(ledger.entries()) == 1


def test_sessions_tasks_and_attempts_of_the_program(provider: Provider, ledger: Ledger) -> None:
    """What the program calls its session, task and attempt is in the entry."""
    with otel_context_ledger.task("t-1"), otel_context_ledger.attempt("a-1"), otel_context_ledger.session("s-1"):
        ask(provider)
    (entry,) = ledger.flat()
    names = ("task_id", "attempt_id", "session_id", "session_source")
    assert [entry[name] for name in names] == ["t-1", "a-1", "s-1", "explicit"]


def test_names_from_the_environment(
    provider: Provider, settings: Path, signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell around the program can name the task, attempt, session and agent."""
    for name in ("TASK_ID", "ATTEMPT_ID", "SESSION_ID", "AGENT"):
        monkeypatch.setenv(f"CONTEXT_LEDGER_{name}", name.lower())
    running = Ledger(settings)
    running.instrumentor.instrument()
    ask(provider)
    (entry,) = running.flat()
    running.instrumentor.uninstrument()
    assert [entry[name] for name in ("task_id", "attempt_id", "session_id", "agent")] == [
        "task_id",
        "attempt_id",
        "session_id",
        "agent",
    ]


@pytest.mark.parametrize("path", ["/embeddings", "/files", "/models"])
def test_calls_without_a_context_leave_no_entry(path: str, provider: Provider, ledger: Ledger) -> None:
    """A call that carries no context passes, and the ledger has nothing to say of it."""
    with pytest.raises(openai.NotFoundError):
        client(provider).post(path, body={"model": "m", "input": "text"}, cast_to=object)
    assert ledger.entries() == []


def test_an_unknown_path_with_messages_has_an_entry(provider: Provider, ledger: Ledger) -> None:
    """A path that nobody knows, whose body holds messages, is read as a chat; what failed says so."""
    with pytest.raises(openai.NotFoundError):
        client(provider).post("/new-api", body={"model": "m", "messages": [SYSTEM]}, cast_to=object)
    (entry,) = ledger.flat()
    assert (entry["model_id"], entry["call_end"], entry["error_type"]) == ("m", "failed", "NotFoundError")


def test_an_unknown_host_has_an_entry(
    provider: Provider, settings: Path, signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that nobody named is `unknown`, and its counts are read wherever known dialects keep them."""
    monkeypatch.delenv("CONTEXT_LEDGER_SURFACES")
    running = Ledger(settings)
    running.instrumentor.instrument()
    ask(provider)
    (entry,) = running.flat()
    running.instrumentor.uninstrument()
    request = provider.requests[-1]
    got = tuple(
        entry[name] for name in ("provider_surface", "provider", "input_tokens", "cached_tokens", "cost_missing")
    )
    assert got == ("unknown", "unknown", request.prompt, request.cached, "price_missing:model")


@pytest.mark.parametrize("model", ["null-usage", "no-usage", "null-choices", "no-cache-report", "bad-usage"])
def test_odd_answers(model: str, provider: Provider, settings: Path, signals: Signals) -> None:
    """Usage null, absent or odd, choices null: the program gets what it would get, the entry says unknown."""
    bare = outcome(lambda: ask(provider, model=model).model_dump())
    running = Ledger(settings)
    running.instrumentor.instrument()
    seen = outcome(lambda: ask(provider, model=model).model_dump())
    (entry,) = running.flat()
    running.instrumentor.uninstrument()
    assert without_ids(seen) == without_ids(bare)
    assert entry["cached_tokens"] in (None, provider.requests[-1].cached)
    assert entry["ledger_error"] is None


def test_a_number_that_no_exporter_can_write(provider: Provider, ledger: Ledger, signals: Signals) -> None:
    """AR10: a setting beyond 64 bits is sent and is no attribute, so that the span can be exported."""
    ask(provider, max_tokens=2**70, temperature=0.5)
    (span,) = signals.spans.get_finished_spans()
    assert json.loads(provider.requests[-1].body)["max_tokens"] == 2**70
    names = ("gen_ai.request.max_tokens", "gen_ai.request.temperature")
    assert [span.attributes.get(name) for name in names] == [None, 0.5]


RESPONSE_LIKE = {"status_code": 200, "http_response": "none", "headers": {}, "parse": "text"}


def test_an_answer_with_the_members_of_a_raw_response(provider: Provider, settings: Path, signals: Signals) -> None:
    """US12: an answer may hold members that a raw response has: the program gets them, and the entry has the usage."""
    provider.plan = lambda received: Behaviour(extra=RESPONSE_LIKE)
    bare = outcome(lambda: ask(provider).model_dump())
    running = Ledger(settings)
    running.instrumentor.instrument()
    seen = outcome(lambda: ask(provider).model_dump())
    (entry,) = running.flat()
    running.instrumentor.uninstrument()
    request = provider.requests[-1]
    assert without_ids(seen) == without_ids(bare)
    assert {name: seen[name] for name in RESPONSE_LIKE} == RESPONSE_LIKE
    got = [entry[name] for name in ("call_end", "input_tokens", "cached_tokens", "ledger_error")]
    assert got == ["complete", request.prompt, request.cached, None]


class OddError(BaseException):
    """An error of the program's own, which looks back at who looks at it."""

    @property
    def completion(self) -> object:
        raise RuntimeError("not to be looked at")


class Refusing(openai.OpenAI):
    """A program's own client, whose hook before sending raises."""

    def _prepare_options(self, options: Any) -> Any:
        raise OddError


def test_an_error_that_cannot_be_looked_at(provider: Provider, ledger: Ledger) -> None:
    """AR02: an error whose attributes raise reaches the program as it is, and the entry names it."""
    with Refusing(base_url=f"{provider.url}/kimi/v1", api_key="test-key") as using, pytest.raises(OddError):
        using.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
    assert [entry["error_type"] for entry in ledger.flat()] == ["OddError"]


def test_a_cache_key_that_holds_half_a_character(provider: Provider, settings: Path, signals: Signals) -> None:
    """AR11: a lone surrogate in a cache key changes nothing for the program, and the call has its entry and session."""

    def call() -> Any:
        return ask(provider, extra_body={"prompt_cache_key": "half \ud83d"}).choices[0].message.content

    bare = outcome(call)
    running = Ledger(settings)
    running.instrumentor.instrument()
    seen = outcome(call)
    (entry,) = running.flat()
    running.instrumentor.uninstrument()
    assert seen == bare
    assert (entry["session_source"], entry["session_id"][:4], len(entry["session_id"])) == ("cache_key", "key-", 20)


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:  # noqa: BLE001
        return [type(error).__name__, str(error)]


def without_ids(value: Any) -> Any:
    return {k: v for k, v in value.items() if k not in ("id", "created", "usage")} if isinstance(value, dict) else value


def cyclic() -> dict[str, Any]:
    loop: dict[str, Any] = {"role": "user"}
    loop["content"] = loop
    return loop


STRANGE = {
    "bytes": {"role": "user", "content": b"raw"},
    "datetime": {"role": "user", "content": datetime(2026, 1, 1, tzinfo=timezone.utc)},
    "nan": {"role": "user", "content": float("nan")},
    "surrogate": {"role": "user", "content": "half \ud83d"},
    "cycle": cyclic(),
    "huge": {"role": "user", "content": 10**400},
    "set": {"role": "user", "content": {1, 2}},
    "text": "no message at all",
    "none": None,
}


@pytest.mark.parametrize("kind", STRANGE)
def test_strange_messages(kind: str, provider: Provider, settings: Path, signals: Signals) -> None:
    """IN13: whatever stands in a message, the program's call ends as it would without us, and one entry says what was
    odd."""

    def call() -> Any:
        return ask(provider, messages=[SYSTEM, STRANGE[kind]]).choices[0].message.content

    bare = outcome(call)
    running = Ledger(settings)
    running.instrumentor.instrument()
    seen = outcome(call)
    entries = running.flat()
    running.instrumentor.uninstrument()
    assert seen == bare
    assert len(entries) <= 1
    # The SDKs make lists of bytes and sets and text of dates themselves, each version in its own way.
    said = {entry["ledger_error"] for entry in entries}
    assert said <= {"nan": {"unencodable:nan"}, "surrogate": {"unencodable:surrogate"}}.get(kind, said)


def test_extra_body_is_part_of_the_request(provider: Provider, ledger: Ledger) -> None:
    """Kimi's `thinking`, given by extra_body, is where the effort is read from."""
    ask(provider, extra_body={"thinking": {"type": "enabled", "effort": "high"}})
    assert [entry["reasoning_effort"] for entry in ledger.flat()] == ["high"]


class _Plan(pydantic.BaseModel):
    steps: list[str]


def test_a_paid_answer_that_the_sdk_refuses_is_counted(provider: Provider, ledger: Ledger) -> None:
    """`parse` raises on an answer cut by its length; the usage of the billed call is in the entry."""
    if not hasattr(openai, "LengthFinishReasonError"):
        pytest.skip("this openai has no parse")
    from tests.provider import Answer

    provider.plan = lambda request: Behaviour(answer=Answer(cut=True))
    owner = (
        client(provider).chat.completions
        if hasattr(client(provider).chat.completions, "parse")
        else client(provider).beta.chat.completions
    )
    with pytest.raises(openai.LengthFinishReasonError):
        owner.parse(model="m", messages=[SYSTEM], response_format=_Plan)
    (entry,) = ledger.flat()
    assert (entry["input_tokens"], entry["error_type"]) == (provider.requests[-1].prompt, "LengthFinishReasonError")


def test_streaming_response_is_named_as_unread(provider: Provider, ledger: Ledger) -> None:
    """`with_streaming_response` hands the unread body to the program: the entry says that it was not read."""
    with client(provider).chat.completions.with_streaming_response.create(model="m", messages=[SYSTEM]) as response:  # type: ignore[list-item]
        text = response.read()
    (entry,) = ledger.flat()
    assert (entry["call_end"], entry["usage_source"], len(text) > 0) == ("unread", "missing", True)


def test_time_to_first_token(provider: Provider, ledger: Ledger) -> None:
    """A stream has the seconds to its first token; a plain call has none, never 0."""
    ask(provider)
    for _ in ask(provider, stream=True):
        pass
    plain, streamed = ledger.flat()
    assert plain["time_to_first_token"] is None
    assert 0 < streamed["time_to_first_token"] <= streamed["time_to_first_content"] <= streamed["duration"]


def test_threads_each_have_their_entry(provider: Provider, ledger: Ledger) -> None:
    """Calls of many threads leave one entry each, and none is blamed for another's."""

    def work(who: int) -> None:
        messages = [SYSTEM, {"role": "user", "content": f"task {who} " * 20}]
        for turn in range(4):
            ask(provider, messages=messages)
            messages += [{"role": "assistant", "content": f"step {turn} of {who}"}, {"role": "user", "content": "on"}]

    threads = [threading.Thread(target=work, args=(who,)) for who in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    causes = [entry["miss_cause"] for entry in ledger.flat()]
    assert (len(causes), set(causes)) == (24, {"cold_start", None})


LATE_PROVIDER = """
import sys
from otel_context_ledger.instrumentation import ContextLedgerInstrumentor
ContextLedgerInstrumentor().instrument()
import openai
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter(formatter=lambda span: span.name + "\\n")))
trace.set_tracer_provider(provider)
client = openai.OpenAI(base_url=sys.argv[1], api_key="test-key", max_retries=0)
stream = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}], stream=True)
next(iter(stream))
"""


def test_a_provider_that_came_later_gets_what_is_open_at_exit(provider: Provider, tmp_path: Path) -> None:
    """A stream open at exit has its span, though the tracer provider was made after the ledger was switched on and
    would be shut down before it."""
    command = [sys.executable, "-c", LATE_PROVIDER, f"{provider.url}/kimi/v1"]
    env = os.environ | {"CONTEXT_LEDGER_FILE": str(tmp_path / "ledger.jsonl"), "CONTEXT_LEDGER_REPOSITORY": "off"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("chat m\n", "", 0)


FORK = """
import os, sys
from opentelemetry.instrumentation.utils import suppress_instrumentation
import openai
def call():
    client = openai.OpenAI(base_url=sys.argv[1], api_key="test-key", max_retries=0)
    client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
call()
pids = []
for _ in range(2):
    pid = os.fork()
    if pid == 0:
        call()
        sys.exit(0)
    pids.append(pid)
print([os.waitpid(pid, 0)[1] for pid in pids])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_workers_have_their_entries(provider: Provider, tmp_path: Path) -> None:
    """A worker forked after the parent's first call writes its own line, and neither hangs."""
    command = [
        str(Path(sys.executable).parent / "opentelemetry-instrument"),
        sys.executable,
        "-c",
        FORK,
        f"{provider.url}/kimi/v1",
    ]
    file = tmp_path / "ledger.jsonl"
    env = os.environ | {f"OTEL_{signal}_EXPORTER": "none" for signal in ("TRACES", "METRICS", "LOGS")}
    done = subprocess.run(
        command, env=env | {"CONTEXT_LEDGER_FILE": str(file)}, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout, len(file.read_text("utf-8").splitlines())) == ("[0, 0]\n", 3)


def test_an_error_of_ours_is_counted_and_said_once(
    provider: Provider, ledger: Ledger, signals: Signals, caplog: pytest.LogCaptureFixture
) -> None:
    """When the ledger itself fails, the calls pass, one warning is given, and every failure is counted."""
    desk = ledger.instrumentor._desk
    assert desk is not None
    desk.surroundings = lambda: 1 / 0  # type: ignore[assignment, return-value]
    answers = [ask(provider).choices[0].message.content for _ in range(3)]
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert (len(set(answers)), len(warnings), desk.errors) == (1, 1, {"begin": 3})


def test_nothing_of_the_content_reaches_a_signal(provider: Provider, ledger: Ledger, signals: Signals) -> None:
    """No prompt, answer, tool text, key or error text is in the ledger file or in any signal."""
    secret = "m4rk3r"
    tool = {"type": "function", "function": {"name": "read", "description": secret, "parameters": {"title": secret}}}
    person = {"role": "user", "name": secret, "content": secret}
    given = {
        "messages": [{"role": "system", "content": secret}, person],
        "tools": [tool],
        "stop": [secret],
    }
    ask(
        provider,
        user=secret,
        extra_body={"metadata": {"note": secret}, "prompt_cache_key": secret},
        extra_headers={"Authorization": secret},
        **given,
    )
    with pytest.raises(openai.BadRequestError):
        ask(provider, **{**given, "model": "err-400"})
    ledger.entries()
    spans = [
        str(dict(span.attributes or {})) + str(span.events) + str(span.status.description)
        for span in signals.spans.get_finished_spans()
    ]
    events = [str(event.attributes) + str(event.body) for event in signals.logged()]
    everything = ledger.file.read_text("utf-8") + "".join(spans) + "".join(events) + str(signals.counted())
    assert secret not in everything


@pytest.fixture(autouse=True)
def _no_leftovers() -> Iterator[None]:
    yield
    logging.disable(logging.NOTSET)


def test_a_stream_collected_in_the_middle_of_our_own_work(provider: Provider, ledger: Ledger) -> None:
    """A collection that finalises an unread stream while our lock is held neither hangs nor loses its entry."""
    desk = ledger.instrumentor._desk
    assert desk is not None
    stream = ask(provider, stream=True)
    next(iter(stream))
    with desk.ledger._lock:
        del stream
        gc.collect()
    assert [entry["call_end"] for entry in ledger.flat()] == ["closed"]


def test_a_programs_own_stream_class(provider: Provider, ledger: Ledger) -> None:
    """A stream class of the program's own, derived from the SDK's, is iterated as it would be without us."""

    class Events(openai.Stream[object]):  # of what every openai from 1.26 on hands over as it came
        pass

    body = {"model": "m", "messages": [SYSTEM], "stream": True}
    stream = client(provider).post("/chat/completions", body=body, cast_to=object, stream=True, stream_cls=Events)
    assert isinstance(stream, Events)
    assert sum(1 for _ in stream) > 2
    assert [entry["call_end"] for entry in ledger.flat()] == ["complete"]
