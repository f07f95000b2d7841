"""Hostile programs, providers, settings and ledger files: the program never notices that we are there.

Every example is run without us and with us, and must look the same. `make fuzz SECONDS=…` runs these with other seeds
for as long as it is told to (tests/fuzz.py).
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import anthropic
import openai
import orjson
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

import otel_context_ledger
from otel_context_ledger import config, store
from otel_context_ledger.cli import main
from otel_context_ledger.correctness.tools import live
from otel_context_ledger.instrumentation import ContextLedgerInstrumentor
from otel_context_ledger.ledger import Ledger
from otel_context_ledger.mailbox import mailbox
from otel_context_ledger.surfaces import facts
from tests import hostile, rawserver
from tests.conftest import Signals, flat
from tests.provider import Answer, Behaviour, Provider, ToolCall
from tests.provider.dialects import CHAT, MESSAGES, RESPONSES, Api
from tests.provider.reply import Reply
from tests.provider.usage import Counts

LORE = facts.load()
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "40"))
fuzzed = settings(
    deadline=None, max_examples=EXAMPLES, database=None, print_blob=True, derandomize="FUZZ_EXAMPLES" not in os.environ,
    suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate, Phase.shrink],
)  # fmt: skip


class Scene:
    """A program's world: a ledger, and the instrumentor that is on for half of every example."""

    def __init__(self, file: Path) -> None:
        self.file, self.instrumentor = file, ContextLedgerInstrumentor()
        self.warned: list[str] = []

    def both(self, program: Callable[[], Any]) -> tuple[Any, Any, list[dict[str, Any]]]:
        """What a program sees without us and with us, and the entries that it left."""
        bare = seen(program)
        self.file.unlink(missing_ok=True)
        self.warned.clear()
        self.instrumentor.instrument()
        try:
            watched = seen(program)
            assert self.instrumentor.flush(60)
        finally:
            self.instrumentor.uninstrument()
        entries = store.read(self.file).entries if self.file.exists() else ()
        calls = [entry for entry in entries if "kind" not in entry]
        return bare, watched, [flat(entry) for entry in calls]  # type: ignore[arg-type]


def seen(program: Callable[[], Any]) -> Any:
    """What a call gives: its value, or its error with the errors below it."""
    try:
        return program()
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001
        return [type(error).__name__, text(error), type(error.__cause__).__name__]


def text(error: BaseException) -> str:
    """The text of an error, without the addresses of objects."""
    return str(error).split(" at 0x")[0]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """One ledger for all examples of a test: hypothesis wants fixtures that live as long."""
    file = tmp_path_factory.mktemp("fuzz") / "ledger.jsonl"
    made = Scene(file)

    class Listening(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            made.warned.append(record.getMessage())

    ours, listening = logging.getLogger("otel_context_ledger"), Listening(logging.WARNING)
    ours.addHandler(listening)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTEXT_LEDGER_FILE", str(file))
        patch.setenv("CONTEXT_LEDGER_REPOSITORY", "off")
        yield made
    ours.removeHandler(listening)


@pytest.fixture(scope="module")
def simulated() -> Iterator[Provider]:
    with Provider() as running:
        yield running


@pytest.fixture(scope="module")
def raw() -> Iterator[rawserver.Raw]:
    with rawserver.serving() as running:
        yield running


# Requests

optional = st.fixed_dictionaries(
    {},
    optional={
        "tools": hostile.values, "extra_body": hostile.values, "metadata": hostile.values, "stop": hostile.values,
        "prompt_cache_key": hostile.values, "reasoning_effort": hostile.values, "temperature": hostile.values,
        "response_format": hostile.values, "stream": st.just(True), "max_tokens": hostile.values,
        "extra_headers": st.dictionaries(st.text(max_size=4), hostile.leaves, max_size=2),
    },
)  # fmt: skip
histories = st.one_of(
    hostile.values,
    st.lists(
        st.one_of(hostile.values, st.fixed_dictionaries({"role": hostile.values, "content": hostile.values})),
        max_size=4,
    ),
)


@fuzzed
@given(model=st.one_of(st.just("m"), hostile.values), messages=histories, more=optional)
def test_any_request(
    scene: Scene, simulated: Provider, providers: Signals, model: Any, messages: Any, more: dict[str, Any]
) -> None:
    """Whatever stands in a request, hostile objects and one-shot generators too: the program's call ends as it would,
    what is sent is the same to the byte, and the next call has its entry."""
    sent: list[list[Any]] = []

    def call() -> Any:
        simulated.requests.clear()
        try:
            made = {"model": model, "messages": messages, **more}
            answer = chat_client(simulated.url).chat.completions.create(**{k: hostile.make(v) for k, v in made.items()})
            return [type(answer).__name__, [type(part).__name__ for part in answer] if more.get("stream") else None]
        finally:
            sent.append([request.wire for request in simulated.requests])

    def program() -> Any:
        return [seen(call), CALLS["chat"](simulated.url, False).choices[0].message.content]

    bare, watched, entries = scene.both(program)
    assert watched == bare
    assert sent[1] == sent[0]
    assert ([entry["call_end"] for entry in entries][-1:], len(entries) <= 2) == (["complete"], True)
    assert len(scene.warned) == len(set(scene.warned))
    exportable(providers)


def exportable(signals: Signals) -> None:
    """What the spans and events hold can be encoded: one value that cannot would cost a whole batch, the spans of
    others in it too."""
    encode_spans(signals.spans.get_finished_spans())
    encode_logs(signals.events.get_finished_logs())
    signals.clear()


# What a program calls its work

names = st.one_of(hostile.values, st.integers(), st.just(10**5000))


@fuzzed
@given(
    name=names,
    told=st.dictionaries(
        st.sampled_from(["success", "tests", "constraints", "accepted", "rolled_back", "reason"]), names, max_size=3
    ),
)
def test_any_name_and_outcome(
    scene: Scene, simulated: Provider, providers: Signals, name: Any, told: dict[str, Any]
) -> None:
    """Whatever a program calls its task, attempt and session, and whatever it tells of their outcome: nothing is
    raised, the call inside has its entry, and all of it can be exported."""

    def program() -> Any:
        given_ = hostile.make(name)
        with otel_context_ledger.task(given_), otel_context_ledger.attempt(given_), otel_context_ledger.session(given_):
            answer = CALLS["chat"](simulated.url, False).choices[0].message.content
            otel_context_ledger.outcome(**{key: hostile.make(value) for key, value in told.items()})
        return answer

    bare, watched, entries = scene.both(program)
    assert (bare, watched) == ("Looking at the file.", "Looking at the file.")
    assert "complete" in [entry.get("call_end") for entry in entries]
    exportable(providers)


def told(**names: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=names)


told_of = st.fixed_dictionaries(
    {
        "id": names, "text": names, "listing": names, "after": names, "end": st.sampled_from(["done", "skip", "fail"]),
        "rule": told(supersedes=names, kind=names, severity=names, terms=names, status=names, evidence=names),
        "plan": told(kind=names, trigger=names, tokens_before=names, source_range=names, threshold=names, window=names),
        "contract": told(version=names, endpoint=names, permission=names, side_effect=names, timeout=names),
    }
)  # fmt: skip


@fuzzed
@given(recipe=told_of)
def test_any_word_on_rules_compactions_files_and_tools(
    scene: Scene, simulated: Provider, providers: Signals, recipe: dict[str, Any]
) -> None:
    """Whatever a program declares and tells, without a ledger and beside one: nothing is raised, each call has its
    entry, no check fails, and all that is said can be exported."""

    def program() -> Any:
        words = {name: hostile.make(value) for name, value in recipe.items()}
        otel_context_ledger.constraint(words["id"], words["text"], **words["rule"])
        otel_context_ledger.tool_registry(words["listing"], words["id"], **words["contract"])
        otel_context_ledger.tool_contracts({"read": words["contract"], "edit": words["listing"]})
        otel_context_ledger.read(words["listing"])
        answer = CALLS["chat"](simulated.url, False).choices[0].message.content
        with otel_context_ledger.session("s-1"):
            otel_context_ledger.constraint("C1", words["text"], **words["rule"])
            c = otel_context_ledger.compaction(words["id"], **words["plan"]).start()
            getattr(c, words["end"])(words["after"])
            for _ in range(2):
                CALLS["chat"](simulated.url, False)
        return answer

    try:
        bare, watched, entries = scene.both(program)
    finally:
        live.LIVE.clear()
        mailbox.take()
    assert (bare, watched) == ("Looking at the file.", "Looking at the file.")
    assert [(entry["call_end"], entry["ledger_error"]) for entry in entries] == [("complete", None)] * 3
    assert len(scene.warned) == len(set(scene.warned))
    exportable(providers)


# Answers

_KEY: dict[str, Any] = {"api_key": "test-key", "max_retries": 0}


@lru_cache(maxsize=8)
def chat_client(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/kimi/v1", **_KEY)


@lru_cache(maxsize=8)
def messages_client(url: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=f"{url}/anthropic", **_KEY)


ASK: list[Any] = [{"role": "user", "content": "hi"}]
CALLS: dict[str, Callable[[str, bool], Any]] = {
    "chat": lambda url, stream: chat_client(url).chat.completions.create(model="m", messages=ASK, stream=stream),
    "responses": lambda url, stream: chat_client(url).responses.create(model="m", input=ASK, stream=stream),
    "messages": lambda url, stream: messages_client(url).messages.create(
        model="m", max_tokens=9, messages=ASK, stream=stream
    ),
}
ASYNC: dict[str, Callable[[str], Any]] = {
    "chat": lambda url: openai.AsyncOpenAI(base_url=f"{url}/kimi/v1", **_KEY),
    "messages": lambda url: anthropic.AsyncAnthropic(base_url=f"{url}/anthropic", **_KEY),
}
shaped = st.one_of(
    hostile.jsons,
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            ("id", "model", "choices", "usage", "content", "output", "type", "delta", "message", "index", "role",
             "stop_reason", "status", "response", "service_tier", "diagnostics", "timings", "provider"),
            hostile.jsons,
        ),
    ),
)  # fmt: skip


def dumped(answer: Any) -> Any:
    """An answer as the program would look at it."""
    return answer.model_dump(warnings=False) if hasattr(answer, "model_dump") else repr(answer)


@fuzzed
@given(api=st.sampled_from(sorted(CALLS)), body=shaped, status=st.sampled_from([200, 200, 200, 201, 400, 429, 500]))
def test_any_answer(scene: Scene, providers: Signals, raw: rawserver.Raw, api: str, body: Any, status: int) -> None:
    """An answer of any shape: the program gets what it would get, and there is one entry."""
    raw.response, raw.cut, raw.splits = rawserver.whole(json.dumps(body).encode(), status=status), None, ()
    bare, watched, entries = scene.both(lambda: dumped(CALLS[api](raw.url, False)))
    assert repr(watched) == repr(bare)
    assert (len(entries), scene.warned) == (1, [])
    exportable(providers)


@fuzzed
@given(api=st.sampled_from(sorted(CALLS)), events=st.lists(st.tuples(st.text(max_size=12), shaped), max_size=5))
def test_any_events(
    scene: Scene, providers: Signals, raw: rawserver.Raw, api: str, events: list[tuple[str, Any]]
) -> None:
    """A stream of events of any shape: the program iterates what it would iterate, and there is one entry."""
    named = ("message_start", "message_delta", "content_block_start", "response.completed", "response.created")
    frames = [
        f"event: {named[len(name) % 5]}\ndata: {json.dumps(body)}\n\n".encode() for name, body in events
    ]  # fmt: skip
    raw.response, raw.cut, raw.splits = rawserver.whole(b"".join(frames), "text/event-stream"), None, ()
    bare, watched, entries = scene.both(lambda: drained(CALLS[api](raw.url, True)))
    assert repr(watched) == repr(bare)
    assert (len(entries), scene.warned) == (1, [])
    exportable(providers)


def drained(stream: Any) -> Any:
    """The events of a stream, and the error that broke it."""
    parts: list[Any] = [type(stream).__name__]
    try:
        parts.extend(dumped(event) for event in stream)
    except Exception as error:  # noqa: BLE001
        parts.append([type(error).__name__, str(error)])
    return parts


def frames(api: Api) -> bytes:
    """A whole stream of a dialect, with text of several bytes a character, reasoning and a tool call."""
    answer = Answer("Größe: 😀 „gut“.", "Überlegung.", (ToolCall("read", '{"path": "ä"}'),))
    body = {"model": "m", "stream": True, "stream_options": {"include_usage": True}}
    return b"".join(api.events(Reply(1, "openai", body, Counts(900, 512, 0, 9, 3), answer, Behaviour())))


STREAMS = {"chat": frames(CHAT), "responses": frames(RESPONSES), "messages": frames(MESSAGES)}
APIS = [(api, asynchronous) for api in STREAMS for asynchronous in (False, True) if not asynchronous or api in ASYNC]


@pytest.mark.parametrize(("api", "asynchronous"), APIS)
@fuzzed
@given(data=st.data())
def test_a_stream_cut_and_split_at_any_byte(
    scene: Scene, raw: rawserver.Raw, api: str, asynchronous: bool, data: st.DataObject
) -> None:
    """The server hangs up after any byte and sends in any pieces, within a character too: the program sees the events
    and the error that it would see, and the entry says whether the stream was whole."""
    raw.response = rawserver.whole(STREAMS[api], "text/event-stream")
    raw.cut = data.draw(st.one_of(st.none(), st.integers(0, len(raw.response))))
    raw.splits = tuple(data.draw(st.lists(st.integers(0, len(raw.response)), max_size=4)))
    program = (
        (lambda: asyncio.run(_awaited(api, raw.url))) if asynchronous else (lambda: drained(CALLS[api](raw.url, True)))
    )
    bare, watched, entries = scene.both(program)
    assert watched == bare
    assert ([entry["call_end"] in ("complete", "failed") for entry in entries], scene.warned) == ([True], [])


async def _awaited(api: str, url: str) -> Any:
    async with ASYNC[api](url) as client:
        owner = client.chat.completions if api == "chat" else client.messages
        more = {} if api == "chat" else {"max_tokens": 9}
        stream = await owner.create(model="m", messages=ASK, stream=True, **more)
        parts: list[Any] = [type(stream).__name__]
        try:
            async for event in stream:
                parts.append(dumped(event))  # noqa: PERF401
        except Exception as error:  # noqa: BLE001
            parts.append([type(error).__name__, str(error)])
        return parts


# Settings

SETTINGS = tuple(name.removeprefix(config.PREFIX) for name in config.VARIABLES)
words = st.one_of(
    st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=12),
    st.sampled_from(
        ["1", "0", "-1", "true", "off", "١", "²", "1e9", "~nobody/x", "/", ".", "a=b,c", "127.0.0.1=kimi", "9" * 5000]
    ),
)
FACTS = (
    "block", "minimum", "lifetimes", "hosts", "windows", "markers", "retention", "provider", "unit", "price", "caches",
)  # fmt: skip


def tables(prefix: str, names: Sequence[str]) -> st.SearchStrategy[bytes]:
    """A TOML file with members of these names that hold anything."""
    chosen = st.dictionaries(st.sampled_from(names), hostile.jsons, max_size=3)
    return chosen.map(
        lambda found: "\n".join(f"{prefix}{name} = {toml(value)}" for name, value in found.items()).encode()
    )


tomls = st.one_of(
    st.binary(max_size=40),
    tables("", ["facts", "prices", "policy", "x"]),
    tables("facts.", ["openai", "unknown", "x", "kimi_open_platform"]),
    tables("facts.unknown.", FACTS),
    tables("prices.", ["m", "openai"]),
)


def toml(value: Any) -> str:
    """A JSON value in TOML's words, as far as it has them."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return '"null"' if value is None else json.dumps(value)


@fuzzed
@given(
    environ=st.dictionaries(
        st.sampled_from([name for name in SETTINGS if name not in ("FILE", "ENABLED")]), words, max_size=4
    ),
    table=st.one_of(st.none(), tomls),
)
def test_any_settings(
    scene: Scene,
    simulated: Provider,
    tmp_path_factory: pytest.TempPathFactory,
    environ: dict[str, str],
    table: bytes | None,
) -> None:
    """Whatever the environment and context-ledger.toml hold: the program starts and calls as ever, its call is
    recorded, and each warning is one sentence, given once."""
    file = tmp_path_factory.mktemp("settings") / "own.toml"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environ.items():
            patch.setenv(f"CONTEXT_LEDGER_{name}", value)
        if table is not None:
            file.write_bytes(table)
            patch.setenv("CONTEXT_LEDGER_CONFIG", str(file))
        patch.setenv("CONTEXT_LEDGER_REPOSITORY", "off")
        bare, watched, entries = scene.both(lambda: dumped(CALLS["chat"](simulated.url, False))["choices"])
    assert (watched, len(entries)) == (bare, 1)
    assert [warning for warning in scene.warned if "failed with" in warning or "report it" in warning] == []
    assert len(scene.warned) == len(set(scene.warned))


# Ledger files


@pytest.fixture(scope="module")
def honest(scene: Scene, simulated: Provider) -> bytes:
    """A ledger of a small conversation."""
    history = list(ASK)

    def program() -> None:
        for turn in range(4):
            chat_client(simulated.url).chat.completions.create(model="m", messages=history)
            history.extend([{"role": "assistant", "content": f"step {turn}"}, *ASK])

    scene.both(program)
    return scene.file.read_bytes()


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the members of a JSON value are."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, (*path, key))


def damaged(line: bytes, data: st.DataObject) -> bytes:
    """A line with one of its members replaced by anything."""
    entry = orjson.loads(line)
    *way, last = data.draw(st.sampled_from([place for place in places(entry) if place]))
    holder = entry
    for step in way:
        holder = holder[step]
    holder[last] = data.draw(st.one_of(hostile.jsons, st.sampled_from(["", "xxh3:", "1:2:zz", -1, 1e308, [], {}])))
    return json.dumps(entry).encode()


COMMANDS = (
    ["show"], ["show", "--json"], ["explain", "LAST"], ["explain", "LAST", "--json"], ["diff", "LAST", "LAST"],
    ["verify"], ["verify", "--json"], ["diagnose"], ["diagnose", "--json"],
    ["report"], ["report", "--json"], ["report", "--html", "-"],
)  # fmt: skip


@fuzzed
@given(data=st.data())
def test_any_ledger_file(scene: Scene, honest: bytes, simulated: Provider, capsys: Any, data: st.DataObject) -> None:
    """Torn lines, foreign bytes and members of wrong types: no command ends in a traceback, and a program that restores
    from such a file makes its call and has its entry."""
    lines = [damaged(line, data) if data.draw(st.booleans()) else line for line in honest.splitlines()]
    content = b"\n".join(lines)
    for _ in range(data.draw(st.integers(0, 2))):
        at = data.draw(st.integers(0, len(content)))
        content = content[:at] + data.draw(st.binary(max_size=6)) + content[at + data.draw(st.integers(0, 6)) :]
    scene.file.write_bytes(content)
    codes = [main([*command, "--file", str(scene.file)]) for command in COMMANDS]
    capsys.readouterr()
    assert set(codes) <= {0, 1, 2}
    Ledger(LORE).restore(store.tail(scene.file, len(content)).entries)
    scene.warned.clear()
    before = content.count(b"\n")
    scene.instrumentor.instrument()
    try:
        answer = seen(lambda: CALLS["chat"](simulated.url, False).choices[0].message.content)
    finally:
        scene.instrumentor.uninstrument()
    assert (answer, scene.warned) == ("Looking at the file.", [])
    assert scene.file.read_bytes().count(b"\n") > before
