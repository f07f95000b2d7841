"""Entry → span, event and metrics, compared whole; and the registry's promise that names are complete and typed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from opentelemetry import trace
from opentelemetry.metrics import CallbackOptions
from opentelemetry.trace import SpanKind, StatusCode

from otel_context_ledger import model as m
from otel_context_ledger import semconv as s
from otel_context_ledger import telemetry
from otel_context_ledger.telemetry import Telemetry
from tests.conftest import Signals
from tests.full import COMPACTED, ENTRY, FULL, OPENING, OUTCOME

REGISTRY = Path(__file__).parent.parent / "spec" / "registry"
TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str, "int": int, "double": (float, int), "boolean": bool, "string[]": (tuple, list),
}  # fmt: skip


def put(speaking: Telemetry, entry: m.Entry, recording: telemetry.Recording) -> None:
    """Everything that is said of an entry, at once."""
    speaking.say(speaking.finish(entry, recording))


def record(signals: Signals, entry: m.Entry = ENTRY, opening: Mapping[str, Any] = OPENING) -> Any:
    """Records an entry on a span of our own, and gives that span."""
    speaking = Telemetry("0.1.0")
    put(speaking, entry, speaking.start(entry.model.model_id, opening, 1_800_000_000_500_000_000))
    return signals.spans.get_finished_spans()[-1]


def test_own_span(signals: Signals) -> None:
    """Without another inference span, a standard one of ours carries the request, the standard names and the entry."""
    entry = replace(ENTRY, money=m.MoneyGroup(cost_missing="usage_missing"))
    span = record(signals, entry)
    assert (span.name, span.kind, span.status.status_code) == ("chat gpt-5", SpanKind.CLIENT, StatusCode.ERROR)
    assert dict(span.attributes) == {
        **OPENING,
        **frozen(telemetry.attributes(entry)),
        **frozen(telemetry.standard(entry)),
    }


def test_a_full_span_loses_nothing_that_was_there_first(signals: Signals) -> None:
    """Of more attributes than a span has room for, those of ours go that stand under a standard name too, then what
    narrows the verdicts of sound pillars, then counts; what was there first stays, and the entry's event has them."""
    span = record(signals, FULL)
    every = {**OPENING, **frozen(telemetry.attributes(FULL)), **frozen(telemetry.standard(FULL))}
    gone = every.keys() - dict(span.attributes).keys()
    twins = {"context_ledger." + place.split(".")[1] for place in telemetry.STANDARD.values() if "." in place}
    sound = {f"context_ledger.policy.{what}" for what in ("detail", "counts", "evidence")}
    assert (len(span.attributes), len(gone), sound <= gone <= twins | {*telemetry._LEAST} | sound) == (
        128,
        len(every) - 128,
        True,
    )
    (event,) = (event for event in signals.logged() if event.event_name == s.EVENT_ENTRY)
    assert (len(event.attributes), set(OPENING) - dict(span.attributes).keys()) == (128, set())
    verdicts = {f"context_ledger.{verdict}" for verdict in m.PILLARS.values()}
    assert verdicts <= dict(span.attributes).keys() & event.attributes.keys()
    assert event.attributes.keys() >= telemetry.attributes(FULL).keys() - twins


def frozen(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, (list, tuple)) else value for key, value in attributes.items()}


def test_unknown_is_left_out_and_zero_is_not(signals: Signals) -> None:
    """A count that nobody reported has no attribute; a reported zero has one."""
    unknown = replace(ENTRY, cache=m.CacheGroup(input_tokens=10), usage=m.Usage(unreported=10))
    zero = replace(
        ENTRY, cache=m.CacheGroup(cache_report="reported", input_tokens=10, cached_tokens=0), usage=m.Usage(10, 0)
    )
    found = [record(signals, entry).attributes.get(s.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS) for entry in (unknown, zero)]
    assert found == [None, 0]


def test_the_ledger_part_is_bounded() -> None:
    """However much an entry holds, its attributes stay within 16 KB and say that something was left out."""
    huge = tuple(f"{n}:{'x' * 900}" for n in range(200))
    found = telemetry.attributes(replace(ENTRY, context=replace(ENTRY.context, prefix_locator=huge)))
    size = sum(len(str(value)) for value in found.values())
    assert (size < 16 * 1024, found[s.CONTEXT_LEDGER_TRUNCATED], s.CONTEXT_LEDGER_PREFIX_LOCATOR in found) == (
        True,
        True,
        False,
    )


class Peer:
    """Another instrumentation's inference span."""

    def __init__(self, name: str, attributes: Mapping[str, Any]) -> None:
        self.span = trace.get_tracer(name).start_span("peer", attributes=dict(attributes))


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.operation.name": "chat"},
        {"llm.request.type": "chat"},
        {"openinference.span.kind": "LLM"},
        {"langfuse.observation.type": "generation"},
    ],
    ids=lambda attributes: next(iter(attributes)),
)
def test_a_peers_span_is_enriched(attributes: dict[str, Any], signals: Signals) -> None:
    """With another inference span open, the entry is written onto it at its end and no span of ours is made."""
    speaking = Telemetry("0.1.0")
    peer = Peer("peer", attributes).span
    with trace.use_span(peer, end_on_exit=True):
        put(speaking, ENTRY, speaking.start("gpt-5", OPENING, 0))
    (span,) = signals.spans.get_finished_spans()
    assert {**attributes, **frozen(telemetry.attributes(ENTRY))}.items() <= dict(span.attributes).items()


def test_a_peers_span_that_is_not_current_is_found(signals: Signals) -> None:
    """An inference span that was started in this context and never made current is enriched all the same."""
    speaking = Telemetry("0.1.0")
    peer = Peer("peer", {"gen_ai.operation.name": "chat"}).span
    put(speaking, ENTRY, speaking.start("gpt-5", OPENING, 0))
    peer.end()
    (span,) = signals.spans.get_finished_spans()
    assert span.attributes[s.CONTEXT_LEDGER_ENTRY_ID] == "e1"


def test_a_call_that_is_over_hides_no_peer(signals: Signals) -> None:
    """A call that could not put back what was current when it returned stands above no later span."""
    speaking = Telemetry("0.1.0")
    ended = speaking.start("gpt-5", OPENING, 0)
    ended.enter()
    try:
        put(speaking, ENTRY, ended)
        peer = Peer("peer", {"gen_ai.operation.name": "chat"}).span
        put(speaking, replace(ENTRY, self=replace(ENTRY.self, entry_id="e2")), speaking.start("gpt-5", OPENING, 0))
        peer.end()
    finally:
        ended.leave()
    found = [span.attributes[s.CONTEXT_LEDGER_ENTRY_ID] for span in signals.spans.get_finished_spans()]
    assert found == ["e1", "e2"]


def test_an_agents_span_is_not_taken_for_an_inference(signals: Signals) -> None:
    """A span of another operation stays as it is; ours is started beneath it."""
    speaking = Telemetry("0.1.0")
    agent = Peer("agent", {"gen_ai.operation.name": "invoke_agent"}).span
    with trace.use_span(agent, end_on_exit=True):
        put(speaking, ENTRY, speaking.start("gpt-5", OPENING, 0))
    ours, theirs = signals.spans.get_finished_spans()
    assert (ours.parent.span_id, dict(theirs.attributes)) == (
        theirs.context.span_id,
        {"gen_ai.operation.name": "invoke_agent"},
    )


def test_a_peers_span_survives_its_attribute_limit(signals: Signals) -> None:
    """A peer that overruns 128 attributes evicts its own, not the entry."""
    speaking = Telemetry("0.1.0")
    peer = Peer("peer", {"openinference.span.kind": "LLM"}).span
    with trace.use_span(peer, end_on_exit=True):
        recording = speaking.start("gpt-5", OPENING, 0)
        put(speaking, ENTRY, recording)
        peer.set_attributes({f"llm.input_messages.{n}.content": "x" for n in range(400)})
    (span,) = signals.spans.get_finished_spans()
    assert frozen(telemetry.attributes(ENTRY)).items() <= dict(span.attributes).items()


def test_a_full_span_of_a_peer_loses_nothing_to_us(signals: Signals) -> None:
    """Room is made for the entry on a span that is at its limit: what the peer had is still there."""
    speaking = Telemetry("0.1.0")
    peer = Peer("peer", {"openinference.span.kind": "LLM"}).span
    own = {f"llm.input_messages.{n}.content": "x" for n in range(127)}
    with trace.use_span(peer, end_on_exit=True):
        put(speaking, ENTRY, speaking.start("gpt-5", OPENING, 0))
        peer.set_attributes(own)
    (span,) = signals.spans.get_finished_spans()
    expected = {"openinference.span.kind": "LLM", **own, **frozen(telemetry.attributes(ENTRY))}
    assert (dict(span.attributes), span.dropped_attributes) == (expected, 0)


def enriched(signals: Signals, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """What a peer's span with these attributes has in the end beside the ledger's own names."""
    speaking = Telemetry("0.1.0")
    with trace.use_span(Peer("peer", attributes).span, end_on_exit=True):
        put(speaking, ENTRY, speaking.start("gpt-5", OPENING, 0))
    (span,) = signals.spans.get_finished_spans()
    return {key: value for key, value in span.attributes.items() if not key.startswith("context_ledger.")}


def test_what_a_peer_wrote_stays(signals: Signals) -> None:
    """On a span that speaks the standard's names only those it lacks are added; a different number is left alone."""
    theirs = {"gen_ai.operation.name": "chat", s.GEN_AI_PROVIDER_NAME: "x", s.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: 0}
    assert enriched(signals, theirs) == {**frozen(telemetry.standard(ENTRY)), **theirs}


def test_a_peer_of_another_language_gets_no_standard_names(signals: Signals) -> None:
    """A span without standard names gets none from us: a sum over the standard usage would hold the call twice where a
    third instrumentation reports it, too."""
    assert enriched(signals, {"openinference.span.kind": "LLM"}) == {"openinference.span.kind": "LLM"}


def test_a_sealed_span_is_followed_by_one_of_ours(signals: Signals) -> None:
    """A peer that ends its span before the entry is there gets a span of ours beneath it, without usage."""
    speaking = Telemetry("0.1.0")
    peer = Peer("peer", {"gen_ai.operation.name": "chat"}).span
    with trace.use_span(peer, end_on_exit=True):
        recording = speaking.start("gpt-5", OPENING, 5)
    put(speaking, ENTRY, recording)
    theirs, ours = signals.spans.get_finished_spans()
    usage = {key for key in ours.attributes if key.startswith("gen_ai.usage.")}
    assert (dict(theirs.attributes), usage) == ({"gen_ai.operation.name": "chat"}, set())
    assert (ours.parent.span_id, ours.start_time) == (theirs.context.span_id, 5)
    assert frozen(telemetry.attributes(ENTRY)).items() <= dict(ours.attributes).items()
    assert {event.span_id for event in signals.logged()} == {ours.context.span_id}


@pytest.mark.parametrize("scope", ["com.anthropic.sdk.python", "com.anthropic.sdk.python.vertex", "another"])
def test_usage_is_left_to_a_span_below(scope: str, signals: Signals) -> None:
    """Where the SDK or anyone else starts an inference span beneath ours, that one holds the standard usage."""
    speaking = Telemetry("0.1.0")
    recording = speaking.start("gpt-5", OPENING, 0)
    recording.enter()
    Peer(scope, {"gen_ai.operation.name": "chat"}).span.end()
    recording.leave()
    put(speaking, ENTRY, recording)
    below, ours = signals.spans.get_finished_spans()
    held = {**OPENING, **frozen(telemetry.attributes(ENTRY)), **frozen(telemetry.standard(ENTRY))}
    assert below.parent.span_id == ours.context.span_id
    assert dict(ours.attributes) == {key: value for key, value in held.items() if not key.startswith("gen_ai.usage.")}


def test_a_span_that_says_later_what_it_is_is_found(signals: Signals) -> None:
    """An inference span that is neither current nor known as one at its start is enriched all the same."""
    speaking = Telemetry("0.1.0")
    peer = Peer("peer", {}).span
    peer.set_attribute("langfuse.observation.type", "generation")
    put(speaking, ENTRY, speaking.start("gpt-5", OPENING, 0))
    peer.end()
    (span,) = signals.spans.get_finished_spans()
    assert span.attributes[s.CONTEXT_LEDGER_ENTRY_ID] == "e1"


def test_a_peers_span_takes_one_entry(signals: Signals) -> None:
    """A second call inside the same span of a peer has a span of its own."""
    speaking = Telemetry("0.1.0")
    with trace.use_span(Peer("peer", {"gen_ai.operation.name": "chat"}).span, end_on_exit=True):
        for _ in range(2):
            put(speaking, ENTRY, speaking.start("gpt-5", OPENING, 0))
    assert [span.name for span in signals.spans.get_finished_spans()] == ["chat gpt-5", "peer"]


def test_one_watch_for_each_provider(signals: Signals) -> None:
    """However often the ledger is switched on, a tracer provider gets one span processor of it, which flushes for the
    latest."""
    provider: Any = trace.get_tracer_provider()
    Telemetry("0.1.0")
    before = len(provider._active_span_processor._span_processors)
    flushed: list[int] = []
    for number in range(3):
        Telemetry("0.1.0", flush=lambda _, number=number: not flushed.append(number))  # type: ignore[misc]
    provider.force_flush()
    assert (len(provider._active_span_processor._span_processors), flushed) == (before, [2])


def test_event(signals: Signals) -> None:
    """The record is exported as a log event of the call's span, and a changed identity as one of its own."""
    span = record(signals)
    events = [(e.event_name, e.span_id, e.attributes[s.CONTEXT_LEDGER_ENTRY_ID]) for e in signals.logged()]
    assert events == [
        (s.EVENT_ENTRY, span.context.span_id, "e1"),
        (s.EVENT_IDENTITY_CHANGED, span.context.span_id, "e1"),
    ]


def test_measurements() -> None:
    """Every metric of an entry with its value and attributes."""
    same = {s.CONTEXT_LEDGER_IDENTITY: "changed"}
    outcome = {s.CONTEXT_LEDGER_CACHE_OUTCOME: "partial"}
    error = {s.ERROR_TYPE: "LengthFinishReasonError"}
    source, part, component = s.CONTEXT_LEDGER_TOKEN_SOURCE, s.CONTEXT_LEDGER_PART, s.CONTEXT_LEDGER_COST_COMPONENT
    assert list(telemetry.measurements(ENTRY)) == [
        (s.METRIC_CALLS, 1, {**outcome, **same, s.CONTEXT_LEDGER_REQUEST_KIND: "agent", **error}),
        (s.METRIC_OUTPUT_TOKENS, 50, {}),
        (s.METRIC_REUSABLE_TOKENS, 9900, same),
        (s.METRIC_TIME_TO_FIRST_TOKEN, 0.4, outcome),
        (s.METRIC_INPUT_TOKENS, 9000, {source: "cache_read"}),
        (s.METRIC_INPUT_TOKENS, 400, {source: "cache_write"}),
        (s.METRIC_INPUT_TOKENS, 600, {source: "uncached"}),
        (s.METRIC_MISS_TOKENS, 900, {s.CONTEXT_LEDGER_MISS_CAUSE: "tools_reordered", **same}),
        (s.METRIC_PROVIDER_VERDICTS, 1, {s.CONTEXT_LEDGER_VERDICT_CONFLICT: False}),
        (s.METRIC_IDENTITY_CHANGES, 1, {part: "model"}),
        (s.METRIC_IDENTITY_CHANGES, 1, {part: "tools_wire"}),
        (s.METRIC_CHECKS, 1, {s.CONTEXT_LEDGER_PILLAR: "tools", s.CONTEXT_LEDGER_VERDICT: "drift"}),
        (s.METRIC_COST, 0.01, {component: "input_uncached"}),
        (s.METRIC_COST, 0.005, {component: "cache_read"}),
        (s.METRIC_COST, 0.001, {component: "cache_write"}),
        (s.METRIC_COST, 0.001, {component: "cache_write_1h"}),
        (s.METRIC_COST, 0.003, {component: "output"}),
        (s.METRIC_COST_WITHOUT_CACHE, 0.03, {component: "total"}),
    ]


@pytest.mark.parametrize(
    ("changed", "identity"),
    [
        (None, "first"),
        ((), "same"),
        (("repository",), "same"),
        (("policy_wire", "policy"), "changed"),
        (("model",), "changed"),
    ],
)
def test_identity_means_the_cache_identity(changed: tuple[str, ...] | None, identity: str) -> None:
    """A repository edit leaves the identity of alerts the same; what can change the provider's prefix does not."""
    assert telemetry.identity(replace(ENTRY, context=replace(ENTRY.context, identity_changed=changed))) == identity


def test_what_nobody_reported_is_not_kept() -> None:
    """Where the provider does not say what was reused, its reusable tokens are not counted: without a miss they would
    stand as reused."""
    silent = replace(ENTRY, cache=replace(ENTRY.cache, cached_tokens=None, avoidable_tokens=None))
    assert [value for name, value, _ in telemetry.measurements(ENTRY) if name == s.METRIC_REUSABLE_TOKENS] == [9900]
    assert [value for name, value, _ in telemetry.measurements(silent) if name == s.METRIC_REUSABLE_TOKENS] == []


def test_quota_is_never_dollars() -> None:
    """A call paid by quota has no cost measurement."""
    quota = replace(ENTRY, money=m.MoneyGroup(m.CostAmount(unit="quota"), None, None, "quota_surface"))
    assert [name for name, _, _ in telemetry.measurements(quota) if "cost" in name] == []


def test_sums_of_tokens_and_money_are_read_at_export(signals: Signals) -> None:
    """Each entry adds its measurements to the points of its attributes, whether the SDK adds them up or we do."""
    before = {name: dict(points(signals, name)) for name, _, _ in telemetry.measurements(ENTRY)}
    speaking = Telemetry("0.1.0")
    for _ in range(2):
        put(speaking, ENTRY, speaking.start("gpt-5", OPENING, 0))
    wanted = {
        (name, key(telemetry.shared(ENTRY) | own)): before[name].get(key(telemetry.shared(ENTRY) | own), 0) + 2 * value
        for name, value, own in telemetry.measurements(ENTRY)
        if name != s.METRIC_TIME_TO_FIRST_TOKEN
    }
    assert {pair: round(dict(points(signals, pair[0]))[pair[1]], 9) for pair in wanted} == pytest.approx(wanted)


def points(signals: Signals, name: str) -> list[tuple[frozenset[tuple[str, Any]], float]]:
    return [(key(attributes), value) for attributes, value in signals.counted().get(name, [])]


def key(attributes: Mapping[str, Any]) -> frozenset[tuple[str, Any]]:
    return frozenset(attributes.items())


def test_points_of_a_sum_are_bounded() -> None:
    """Beyond the bound, what has attributes of its own is counted under OpenTelemetry's name for the rest."""
    totals = telemetry.Totals()
    for number in range(telemetry.MAX_POINTS + 3):
        totals.add(1, {"a": number}, {})
    observed = list(totals.observe(CallbackOptions()))
    assert (len(observed), observed[-1].attributes, observed[-1].value) == (
        telemetry.MAX_POINTS + 1,
        {"otel.metric.overflow": True},
        3,
    )


def test_nothing_is_counted_when_the_collector_counts(signals: Signals) -> None:
    """With CONTEXT_LEDGER_METRICS=collector the entry is recorded and no instrument moves."""
    before = signals.counted()
    speaking = Telemetry("0.1.0", "collector")
    put(speaking, ENTRY, speaking.start("gpt-5", OPENING, 0))
    assert (signals.counted(), len(signals.spans.get_finished_spans())) == (before, 1)


def emitted(signals: Signals) -> dict[str, Any]:
    """Every name and a value of it that a full entry emits: attributes of span, event and metrics, events, metrics."""
    speaking = Telemetry("0.1.0")
    speaking.failed("begin")
    speaking.tell(OUTCOME, "fixer", counted=True)
    speaking.tell_compaction(COMPACTED)
    found: dict[str, Any] = dict(record(signals).attributes)
    signals.spans.clear()
    found |= record(signals, FULL).attributes
    for event in signals.logged():
        found |= {event.event_name: ""} | dict(event.attributes)
    for name, points in signals.counted().items():
        if name in s.METRICS:
            found |= {name: ""} | {key: value for attributes, _ in points for key, value in attributes.items()}
    return found


def test_every_emitted_name_is_in_the_registry_with_its_type(signals: Signals) -> None:
    """Nothing leaves this process under a name or type that the registry does not state."""
    events = {s.EVENT_ENTRY, s.EVENT_IDENTITY_CHANGED, s.EVENT_OUTCOME, s.EVENT_COMPACTION}
    wrong = [
        (name, type(value).__name__)
        for name, value in emitted(signals).items()
        if name not in events and name not in s.METRICS and not fits(name, value)
    ]
    assert wrong == []


def fits(name: str, value: Any) -> bool:
    if name not in s.TYPES or (isinstance(value, bool) and s.TYPES[name] != "boolean"):
        return False
    return isinstance(value, TYPES[s.TYPES[name]])


def test_every_registry_name_of_this_component_is_emitted(signals: Signals) -> None:
    """The registry promises nothing of the Python component that a full entry does not emit."""
    assert sorted(promised() - emitted(signals).keys()) == []


def promised() -> set[str]:
    """Names of the registry that are not marked as belonging to another component."""
    return {str(row.get("key") or row.get("name") or row.get("ref")) for row in rows() if component(row) == "sdk"}


def component(row: Mapping[str, Any]) -> str:
    return str(row.get("annotations", {}).get("component", "sdk"))


def rows() -> Iterable[Mapping[str, Any]]:
    files = {
        name: yaml.safe_load((REGISTRY / f"{name}.yaml").read_text("utf-8"))
        for name in ("attributes", "events", "metrics")
    }
    yield from files["attributes"]["attributes"]
    yield from files["events"]["events"]
    yield from files["metrics"]["metrics"]
    for group in files["attributes"].get("attribute_groups", ()):
        if group["id"] == "context_ledger.upstream":
            yield from group["attributes"]
