"""Every way of calling beside one peer, compared with the same program without us: the program gets the same, the peer
exports the same, and there is one entry, on one span."""

from __future__ import annotations

from typing import Any

import pytest

from otel_context_ledger import semconv as s
from tests.peers.calls import CALLS, WAYS
from tests.peers.runs import ORDERS, PEER, TIMED, run

ID = s.CONTEXT_LEDGER_ENTRY_ID
USAGE = (s.GEN_AI_USAGE_INPUT_TOKENS, s.GEN_AI_USAGE_OUTPUT_TOKENS, s.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS)
each = pytest.mark.parametrize("call", CALLS)
orders = pytest.mark.parametrize("order", ORDERS)

# Whose span carries the entry. "theirs": the peer's; "below": one of ours beneath it, since it was sealed too early;
# "ours": one of ours beside it or alone, since the peer made none that was open during the call; "nobody": a span that
# the peer never ends. The first rule whose words are all in the name of the call decides.
BROKEN_OFF = [("stream left", "below"), ("stream unread", "below")]
WHOSE: dict[str, list[tuple[str, str]]] = {
    "none": [("", "ours")],
    "genai-openai": [*BROKEN_OFF, ("", "theirs")],
    "openinference": [*BROKEN_OFF, ("", "theirs")],
    "all": [*BROKEN_OFF, ("", "theirs")],
    "traceloop": [*BROKEN_OFF, ("responses", "ours"), ("raw_stream", "below"), ("", "theirs")],
    "langfuse": [
        ("stream unread", "nobody"),
        ("stream left", "below"),
        ("stream closed", "below"),
        ("raw_stream", "ours"),
        ("", "theirs"),
    ],
    "logfire": [("helper", "below"), ("stream", "below"), ("", "theirs")],
}
ENDS = {
    "refused": "failed",
    "stream dropped": "failed",
    "stream unread": "abandoned",
    "stream closed": "closed",
    "stream left": "closed",
}
# With several peers the innermost, the one whose span is current at the seam, is written to.
INNERMOST = {"all": "openinference.instrumentation.openai"}
# A span that is not current is only known to a provider that we have met: the ledger was there before the provider.
UNMET = {("langfuse", "before", CALLS[0])}


def whose(call: str, order: str) -> str:
    """Who is to carry the entry of a call."""
    if (PEER, order, call) in UNMET:
        return "ours"
    return next(who for word, who in WHOSE[PEER] if word in call)


@orders
@each
def test_the_program_gets_the_same(call: str, order: str) -> None:
    """Types, headers, bodies, every chunk and every error are those of the run without us; so is what was sent."""
    bare, beside = run("none"), run(order)
    assert beside.calls[call]["got"] == bare.calls[call]["got"]
    assert beside.asked[call].body == bare.asked[call].body


@orders
@each
def test_one_entry(call: str, order: str) -> None:
    """A call is one line with the provider's numbers, whatever the peer makes of them."""
    (entry,) = run(order).entries[call]
    asked = run(order).asked[call]
    if call in WAYS or call in ("200 messages", "generators"):
        assert (entry["input_tokens"], entry["cached_tokens"]) == (asked.prompt, asked.cached)
    assert entry["call_end"] == end(call)


def end(call: str) -> str:
    """How the call ends; genai-openai closes a chat stream made from a raw response once it has its last chunk."""
    if PEER in ("genai-openai", "all") and "raw_stream" in call and not call.startswith("responses"):
        return "closed"
    return ENDS.get(call, "complete")


@orders
@each
def test_whose_span_carries_the_entry(call: str, order: str) -> None:
    """Exactly one span has the entry: the peer's where it is open, else one of ours."""
    spans = run(order).spans(call)
    carriers = [span for span in spans if ID in span["attributes"]]
    (entry,) = run(order).entries[call]
    expected = [(entry["entry_id"], whose(call, order))] if whose(call, order) != "nobody" else []
    assert [(span["attributes"][ID], place(span, spans)) for span in carriers] == expected
    assert len(run(order).spans(call, ours=True)) == (whose(call, order) in ("ours", "below"))


def place(carrier: dict[str, Any], spans: list[dict[str, Any]]) -> str:
    """Where an entry was found."""
    theirs = {span["id"]: span for span in spans if span["scope"] != "otel_context_ledger"}
    if carrier["id"] in theirs:
        innermost = INNERMOST.get(PEER, carrier["scope"])
        return "theirs" if carrier["scope"] == innermost else carrier["scope"]
    return "below" if carrier["parent"] in theirs else "ours"


@orders
@each
def test_the_peers_spans_are_unchanged(call: str, order: str) -> None:
    """Names, kinds, parents, status, events and attributes of the peer's spans are those of the run without us; what is
    more there is ours."""
    bare, beside = run("none").spans(call), run(order).spans(call, ours=False)
    assert [shape(span, beside) for span in beside] == [shape(span, bare) for span in bare]
    for was, now in zip(bare, beside, strict=True):
        assert {key: now["attributes"].get(key) for key in stable(was)} == stable(was)
        assert [key for key in now["attributes"].keys() - was["attributes"].keys() if not added(key, was)] == []


def shape(span: dict[str, Any], spans: list[dict[str, Any]]) -> dict[str, Any]:
    """A span without attributes, times and ids; its parent by name."""
    names = {other["id"]: other["name"] for other in spans}
    parent = names.get(span["parent"]) if span["parent"] else None
    return {name: span[name] for name in ("scope", "name", "kind", "status", "dropped", "events")} | {"parent": parent}


def stable(span: dict[str, Any]) -> dict[str, Any]:
    """The attributes that hold no time."""
    return {key: value for key, value in span["attributes"].items() if key not in TIMED}


def added(key: str, was: dict[str, Any]) -> bool:
    """Whether an attribute is one that we add: our own names, and standard ones where the span speaks them."""
    speaks = {s.GEN_AI_OPERATION_NAME, s.GEN_AI_REQUEST_MODEL} & was["attributes"].keys()
    return key.startswith("context_ledger.") or bool(speaks and key in s.TYPES)


@orders
@each
def test_no_usage_of_ours_beside_the_peers(call: str, order: str) -> None:
    """No standard token count is on more spans than without us, unless it was on none. Traceloop makes its span of a
    Responses call after the call, when ours is gone already: nothing can keep the two from both having it."""
    late = PEER == "traceloop" and call.startswith("responses")
    for name in USAGE:
        was, now = (sum(name in span["attributes"] for span in run(o).spans(call)) for o in ("none", order))
        assert now <= max(was, 1) + late, name


@orders
def test_the_peers_metrics_are_unchanged(order: str) -> None:
    """The peer's instruments have the same points with the same counts and token sums; durations aside."""
    assert points(run(order).metrics) == points(run("none").metrics)


def points(metrics: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """What can be compared of all metrics but ours."""
    theirs = {name: found for name, found in metrics.items() if not name.startswith("context_ledger.")}
    return {
        name: sorted(
            [str(sorted(a.items())), value, count, total if name.endswith(".usage") else None]
            for a, value, count, total in found
        )
        for name, found in theirs.items()
    }


@orders
def test_our_counters_count_once(order: str) -> None:
    """Our metrics are the sums of the lines: each call and each of its tokens once."""
    entries = [entry for found in run(order).entries.values() for entry in found]
    found = run(order).metrics
    totals = {name: sum(value for _, value, _, _ in found[name]) for name in (s.METRIC_CALLS, s.METRIC_INPUT_TOKENS)}
    assert totals == {
        s.METRIC_CALLS: len(CALLS),
        s.METRIC_INPUT_TOKENS: sum(entry["input_tokens"] or 0 for entry in entries),
    }


@orders
def test_kimis_cached_tokens(order: str) -> None:
    """Kimi's own count of cached tokens, which no peer reads, is in the entry and on the span that carries it."""
    for call in (name for name in WAYS if name.startswith("kimi")):
        cached = run(order).asked[call].cached
        spans = [span["attributes"] for span in run(order).spans(call)]
        assert [a[s.CONTEXT_LEDGER_CACHED_TOKENS] for a in spans if ID in a] == [cached], call


@orders
def test_nothing_is_said(order: str) -> None:
    """The program's stderr has no line that it has not without us."""
    assert set(run(order).stderr.splitlines()) - set(run("none").stderr.splitlines()) == set()
