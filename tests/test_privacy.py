"""What leaves the process: markers in every part of requests, answers, errors and the machine, searched for after."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from opentelemetry import trace

from otel_context_ledger import semconv as s
from otel_context_ledger import session
from otel_context_ledger.cli import main
from otel_context_ledger.invocation import Desk
from otel_context_ledger.telemetry import SCOPE
from tests.conftest import Ledger, Signals, flat
from tests.privacy import machine
from tests.privacy.machine import Left
from tests.privacy.markers import MAY_LEAVE, found, mark
from tests.provider import Answer, Behaviour, Provider
from tests.test_registry import EVERY

DIGEST = re.compile(r"(?:\bxxh3:|\bb2k:|\bgit:|\bkey-|\b\d+:\d+:|[~…])([0-9a-f]{16,32})\b")
MEANT = {
    "APIConnectionError", "BadRequestError", "CancelledError", "InternalServerError", "JSONDecodeError",
    "RateLimitError", "TypeError", "ok", "own",
}  # fmt: skip


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Left:
    """Two runs of the whole program over one ledger file, with all that can be opted into."""
    return machine.runs(tmp_path_factory.mktemp("whole"), 2, CONTEXT_LEDGER_PROVIDER_DIAGNOSTICS="true")


@pytest.fixture(scope="module")
def places(left: Left) -> frozenset[str]:
    """Every place where a marker was planted."""
    return left.planted | machine.PLACES_OF_MACHINE | machine.PLACES_OF_ANSWER


def test_every_marker_was_really_sent(left: Left) -> None:
    """What the program says that it planted in a request was in one that reached the provider."""
    sent = {place for place in left.planted if place.startswith("sent.")}
    assert sent - found(sent, left.wire) == set()


def test_every_call_ended_as_it_was_meant_to(left: Left) -> None:
    """No way of calling was left out for an error that nobody meant, and each one left its line."""
    assert {ending.rsplit(" ", 1)[1] for ending in left.ended} == MEANT
    assert len(left.lines) == 2 * sum(left.ended.values())


def test_nothing_is_left_on_the_machine_but_the_ledger(left: Left) -> None:
    """No temporary file, nothing in the user's home, nothing in the repository or its git directory."""
    assert left.made == {"ledger.jsonl"}


def test_nothing_leaves_but_what_may(left: Left, places: frozenset[str]) -> None:
    """PV01 PV02 PV03 PV06: no part of a marker, in any spelling, is in a byte that was exported, written or logged."""
    assert found(places - set(MAY_LEAVE), left.raw) == set()


def test_a_report_holds_nothing_but_what_may_leave(left: Left, places: frozenset[str], tmp_path: Path) -> None:
    """A page that is made of the ledger, in a place whose name is a marker too, is as free of content as the ledger."""
    folder = tmp_path / mark("machine.ledger")
    folder.mkdir()
    (folder / "ledger.jsonl").write_bytes(left.ledger)
    out = str(tmp_path / "page")
    assert main(["report", str(folder / "ledger.jsonl"), "--limit-sessions", "1000", "--html", out]) == 0
    page = Path(out).read_bytes()
    assert found(places - set(MAY_LEAVE), [page]) == set()
    assert {"named.session", "sent.model"} - found(places, [page]) == set()


PRIVACY = {key.removeprefix("context_ledger."): row["privacy"] for key, row in EVERY.items()}
# Names and ids that nobody else chooses: random, a host that was really called, a commit.
OWN = {
    "comparable_id", "compaction_event", "entry_id", "endpoint", "server.address", "vcs.ref.head.revision",
}  # fmt: skip


def test_the_registry_says_the_same(left: Left) -> None:
    """What may leave is a name, an id, a word or a phrase by the registry, and each name and id has a marker of its own
    that was seen in it, so that docs/privacy.md and this test cannot part."""
    holds = {name: PRIVACY[name]["holds"] for one in MAY_LEAVE.values() for name in one.names if name in PRIVACY}
    assert {name for name, kind in holds.items() if kind in ("number", "flag", "digest")} == set()
    chosen = {name for name, one in PRIVACY.items() if one["holds"] in ("name", "id")} - OWN
    assert chosen - set(holds) == set()
    assert chosen - {name for name, _ in left.texts} == set()


_PRINTABLE = "(?:[^\\W_]|[ -~\N{REPLACEMENT CHARACTER}…])"
FORMS = {
    "count": r"\d+(-\d+)?",
    "number": r"-?\d+(\.\d+)?(e-?\d+)?",
    "flag": "True|False",
    "word": r"[A-Za-z0-9_.:+-]{1,64}",
    "id": _PRINTABLE + "{1,256}",
    "name": _PRINTABLE + "{1,256}",
    "text": _PRINTABLE + "{1,512}",
    "phrase": _PRINTABLE + "{1,1024}",
    "digest": r"(xxh3|b2k|git):[0-9a-f]{32}|\d+:\d+:[0-9a-f]{16}|xxh3|b2k:[0-9a-f]{8}|pending|off|git:unborn",
}  # fmt: skip


def test_every_value_is_what_the_registry_says(left: Left) -> None:
    """A word is a word, a digest a digest, a count a number; and nothing is exported that is not in the registry."""
    known = [(name, text) for name, text in left.texts if name in PRIVACY]
    wrong = {(name, text) for name, text in known if not re.fullmatch(FORMS[PRIVACY[name]["holds"]], text)}
    assert wrong == set()
    ours = {text.removeprefix("context_ledger.") for name, text in left.texts if name == "key"}
    beside = ("telemetry.", "service.", "code.", "process.", "host.")
    assert {name for name in ours - set(PRIVACY) if not name.startswith(beside)} == set()


def test_what_may_leave_stands_where_it_should(left: Left, places: frozenset[str]) -> None:
    """An exported marker is in the attributes that are named for it and in no other; none of the reasons is stale."""
    by_name: dict[str, set[bytes]] = {}
    for name, text in left.texts:
        by_name.setdefault(name, set()).add(text.encode("utf-8", "surrogatepass"))
    seen = {(place, name) for name, texts in by_name.items() for place in found(places, texts)}
    allowed = {(place, name) for place, exported in MAY_LEAVE.items() for name in exported.names}
    assert seen - allowed == set()
    assert set(MAY_LEAVE) - {place for place, _ in seen} == set()


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> list[Left]:
    """The same conversation without a key, twice with one key, once with another."""
    keys = ("", "one key", "one key", "another key")
    folders = [tmp_path_factory.mktemp("keyed") for _ in keys]
    return [
        machine.runs(folder, 1, "short", CONTEXT_LEDGER_DIGEST_KEY=key)
        for folder, key in zip(folders, keys, strict=True)
    ]


def digests(left: Left) -> dict[str, set[str]]:
    """The first 16 digits of every digest that was exported, by attribute. The context identity and the snapshot depend
    on whether git had answered yet."""
    found: dict[str, set[str]] = {}
    for name, text in left.texts:
        found.setdefault(name, set()).update(digits[:16] for digits in DIGEST.findall(text))
    return {name: values for name, values in found.items() if values}


FIELDS = {
    "policy_hash", "policy_wire_hash", "tool_schema_hash", "tool_wire_hash", "context_identity", "cache_identity",
    "prefix_locator", "repo_snapshot", "session_id", "parent_session_id", "fork_of", "segments",
    "task_id",
}  # fmt: skip


def test_no_bare_digest_leaves_beside_a_key(keyed: list[Left]) -> None:
    """PV07: under a key none of the digests that anybody could compute leaves in any byte; all fields have one."""
    bare, first = digests(keyed[0]), digests(keyed[1])
    assert set(bare) == set(first) >= FIELDS
    assert set(bare) - FIELDS - {name for name in PRIVACY if "guessable" in PRIVACY[name]} == set()
    known = {digits.encode() for values in bare.values() for digits in values}
    assert [digits for digits in known if any(digits in raw for raw in keyed[1].raw)] == []


def test_a_key_gives_the_same_digests_in_every_run(keyed: list[Left]) -> None:
    """PV07: two runs with one key can be compared, two runs with two keys cannot; the scheme tells them apart."""
    first, again, other = map(digests, keyed[1:])
    settled = FIELDS - {"context_identity"}
    assert {name: first[name] for name in settled} == {name: again[name] for name in settled}
    assert set().union(*first.values()) & set().union(*other.values()) == set()
    schemes = [{line["self"]["digest_scheme"] for line in left.lines} for left in keyed]
    assert schemes[1] == schemes[2]
    assert len({scheme for found in schemes for scheme in found}) == 3


PROSE = "My name is \n\x1b[31mJane\u202e and this is what I was told. " * 40
WORDS = ("finish_reasons", "reasoning_effort", "provider_verdict", "error_type")
PROSAIC = Behaviour(
    answer=Answer("It is."),
    extra={
        "id": PROSE, "model": f"/home/jane/{PROSE[:40]}", "system_fingerprint": PROSE, "service_tier": PROSE,
        "provider": PROSE, "prompt_cache_diagnostics": {"type": "cache_miss", "reason": PROSE},
        "diagnostics": {"cache_miss_reason": {"type": PROSE}}, "stop_reason": PROSE,
        "choices": [{"index": 0, "message": {"content": "x"}, "finish_reason": PROSE}] * 200,
        "incomplete_details": {"reason": PROSE},
    },
)  # fmt: skip


def prosaic(url: str) -> None:
    """Calls whose names are prose, with control characters, and far too long."""
    key: dict[str, Any] = {"api_key": "test-key", "max_retries": 0}
    one = {"type": "function", "function": {"name": PROSE, "parameters": {"type": "object"}}}
    two = {"type": "function", "function": {"name": f"2{PROSE}", "parameters": {"type": "object"}}}
    rest: dict[str, Any] = {"reasoning_effort": PROSE, "service_tier": PROSE, "model": PROSE}
    for tools, role in (([one, two], "user"), ([two, one], "user"), ([one], "user"), ([one], PROSE)):
        said = [{"role": "system", "content": "Be brief."}, {"role": role, "content": "Go on. " * 400}]
        with openai.OpenAI(base_url=f"{url}/openai/v1", **key) as client, session(PROSE):
            client.chat.completions.create(messages=said, tools=tools, **rest)  # type: ignore[arg-type]
            client.responses.create(input="x", previous_response_id=PROSE, conversation=PROSE, model=PROSE)
        with anthropic.Anthropic(base_url=f"{url}/anthropic", **key) as claude:
            claude.messages.create(model=PROSE, max_tokens=8, messages=said[1:])  # type: ignore[arg-type]


def texts(value: Any) -> Iterator[str]:
    """Every text in a value of any shape, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for pair in value.items() for item in pair for text in texts(item))
    elif isinstance(value, (list, tuple)):
        yield from (text for item in value for text in texts(item))


def test_prose_in_the_place_of_a_name(ledger: Ledger, signals: Signals, provider: Provider) -> None:
    """Whatever a caller or a provider puts into ids, names and words leaves short, printable and on one line; what
    should be a word and is none is `other`; of a path only its end is told."""
    provider.plan = lambda received: PROSAIC
    prosaic(provider.url)
    entries = ledger.entries()
    spans = [span for span in signals.spans.get_finished_spans() if span.instrumentation_scope.name == SCOPE]
    sent: list[Any] = [[span.name, dict(span.attributes or {})] for span in spans]
    sent += [dict(record.attributes) for record in signals.logged()] + [signals.counted(), entries]
    long_or_wild = {text for text in texts(sent) if len(text) > 1024 or not text.isprintable()}
    assert (len(entries), len(spans), long_or_wild) == (12, 12, set())
    told = {word for entry in entries for name in WORDS for word in texts(flat(entry)[name])}
    assert told == {"other", "not_requested"}
    assert all(flat(entry)["model_served"].startswith("My name is") for entry in entries)
    assert {entry["self"]["truncated"] for entry in entries} == {True, False}


def test_an_error_is_logged_without_its_text(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """PV06: neither the text of an error of ours nor that of its cause is logged, only where it came up."""
    caplog.set_level(logging.DEBUG, "otel_context_ledger")
    with desk.guard("finish"):
        raise ValueError(mark("own")) from KeyError(mark("cause"))
    said = [record.getMessage() for record in caplog.records]
    assert said[0] == "context ledger: finish failed with ValueError; the call is unaffected"
    assert re.fullmatch(r"context ledger: finish at test_privacy\.py:\d+ test_an_error_\w+", said[1])
    assert (len(said), [record.exc_info for record in caplog.records]) == (2, [None, None])


@pytest.fixture
def desk(ledger: Ledger) -> Desk:
    """The desk of this process."""
    found = ledger.instrumentor._desk
    assert found is not None
    return found


PEERS: dict[str, Any] = {
    s.GEN_AI_OPERATION_NAME: "chat",
    s.GEN_AI_REQUEST_MODEL: "/home/jane/models/tiny.gguf",
    "file.path": "/home/jane/notes.txt",
    "gen_ai.input.messages": f"[{mark('peer')}]",
    "cached_tokens": 10,
    "token_type": "input",
    "api.token.count": 3,
    "authorization": "of the peer's own accord",
}


def test_nothing_of_others_is_redacted(ledger: Ledger, signals: Signals, provider: Provider) -> None:
    """PV04: attributes of another instrumentation stay as it set them, whatever they are called and hold."""
    client = openai.OpenAI(base_url=f"{provider.url}/kimi/v1", api_key="test-key", max_retries=0)
    with client, trace.get_tracer("peer").start_as_current_span("chat", attributes=PEERS):
        client.chat.completions.create(model=PEERS[s.GEN_AI_REQUEST_MODEL], messages=[{"role": "user", "content": "x"}])
    got = dict(signals.spans.get_finished_spans()[0].attributes or {})
    assert {name: got.get(name) for name in PEERS} == PEERS
    assert (got[s.CONTEXT_LEDGER_MODEL_ID], got[s.CONTEXT_LEDGER_CACHED_TOKENS]) == ("tiny.gguf", 0)
