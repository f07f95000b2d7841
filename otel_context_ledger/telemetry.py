"""Entry → span, event and metrics: the only module that speaks OpenTelemetry's signals. It computes nothing.

If another instrumentation's inference span (a *peer's*) is open in this context, the entry is written onto it right
before it ends; otherwise a standard inference span of our own is started. What a peer wrote stays as it wrote it, and
no usage is written under a standard name where another span of the same call may hold it (decision 0017).
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar, Token
from dataclasses import dataclass
from functools import lru_cache, partial, wraps
from operator import attrgetter
from threading import Event, Thread
from typing import Any, ClassVar

from opentelemetry import _logs as logs
from opentelemetry import context as otel
from opentelemetry import metrics, trace
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode

from otel_context_ledger import model as m
from otel_context_ledger import semconv as s
from otel_context_ledger.backlog import greenlets
from otel_context_ledger.records import changed, quick
from otel_context_ledger.reuse.identity import CACHE_PARTS

SCOPE = "otel_context_ledger"
MAX_BYTES = 16 * 1024
MAX_TEXT = 1024
# The SDK's default for one span (OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT).
MAX_ATTRIBUTES = 128
# The SDK's own bound for the points of one metric, and its attributes for what is beyond it.
MAX_POINTS = 2000
OVERFLOW = (("otel.metric.overflow", True),)
# The SDK's own bound for the shutdown of one provider.
MAX_DRAIN_SECONDS = 30.0
# How long the shutdown of a tracer provider, and the end of a trace's first span, wait for the spans still to end.
MAX_FLUSH_SECONDS = 5.0
MAX_WAIT_SECONDS = 1.0
INFERENCE = ("chat", "text_completion", "generate_content")
# How the inference spans of other instrumentations show at their start: (attribute, values or any).
PEERS: tuple[tuple[str, tuple[str, ...] | None], ...] = (
    (s.GEN_AI_OPERATION_NAME, INFERENCE),
    ("llm.request.type", None),
    ("openinference.span.kind", ("LLM",)),
    ("langfuse.observation.type", ("generation",)),
)
# Scopes whose spans begin below the seam, within a call that is ours already: our own, and anthropic 2's own tracing,
# to which its clients for other platforms add a name.
BELOW = (SCOPE, "com.anthropic.sdk.python")
# Names by which a span shows that it speaks the standard's language; on any other span only our own names are written.
STANDARD_SPEECH = (s.GEN_AI_OPERATION_NAME, s.GEN_AI_REQUEST_MODEL)
OWN, USAGE = "context_ledger.", "gen_ai.usage."
SUPPRESSED = ("suppress_instrumentation", "suppress_language_model_instrumentation")
_CONVERSATION = "opentelemetry.util.genai.conversation_id"
# The last span started in a context that was an inference from its start, and the last one of any kind: langfuse says
# only afterwards what its span is, and makes none current.
_announced: ContextVar[weakref.ref[Any] | None] = ContextVar("context_ledger_announced", default=None)
_started: ContextVar[weakref.ref[Any] | None] = ContextVar("context_ledger_started", default=None)
_in_flight: ContextVar[Recording | None] = ContextVar("context_ledger_in_flight", default=None)
# One watch for each tracer provider, whoever instruments how often: OpenTelemetry cannot take a span processor off.
_watches: list[tuple[weakref.ref[Any], Watch]] = []

# Standard names that an entry's fields have, by their places in the entry.
STANDARD: Mapping[str, str] = {
    s.GEN_AI_PROVIDER_NAME: "model.provider",
    s.GEN_AI_REQUEST_MODEL: "model.model_id",
    s.GEN_AI_RESPONSE_MODEL: "model.model_served",
    s.GEN_AI_RESPONSE_ID: "request.response_id",
    s.GEN_AI_RESPONSE_FINISH_REASONS: "request.finish_reasons",
    s.GEN_AI_USAGE_INPUT_TOKENS: "cache.input_tokens",
    s.GEN_AI_USAGE_OUTPUT_TOKENS: "request.output_tokens",
    s.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: "cache.cached_tokens",
    s.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS: "cache.cache_write_tokens",
    s.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS: "request.reasoning_tokens",
    s.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK: "request.time_to_first_token",
    s.VCS_REF_HEAD_REVISION: "repo_head",
    s.ERROR_TYPE: "request.error_type",
}
OPENAI: Mapping[str, str] = {
    s.OPENAI_RESPONSE_SERVICE_TIER: "service_tier",
    s.OPENAI_RESPONSE_SYSTEM_FINGERPRINT: "system_fingerprint",
}


def compacted(entry: m.Entry) -> bool:
    """Whether the history was seen to be compacted; not seen is unknown, never false."""
    if entry.compacted:
        return True
    cause, others = entry.cache.miss_cause, entry.cache.miss_secondary
    return bool(cause or others) and any(word.startswith("history_compacted") for word in (cause or "", *others))


def attributes(entry: m.Entry) -> dict[str, Any]:
    """The ledger part of a span or event: every known field by its registry name; unknown fields are left out."""
    return _found(entry, _PARTS)


def _found(entry: m.Entry, parts: tuple[Part, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    characters = 0
    for part_of, keys, read in parts:
        part = part_of(entry)
        if part is not None:
            characters += _gather(found, keys, read(part))
    # UTF-8 has at most four bytes for a character: few characters need no closer look.
    return found if 4 * characters + 8 * len(found) <= MAX_BYTES else bounded(found)


def _gather(found: dict[str, Any], keys: tuple[str, ...], values: tuple[Any, ...]) -> int:
    """Adds the known ones of these values as the registry types them; gives the characters of their texts."""
    characters = 0
    for key, value in zip(keys, values, strict=True):
        if value is None:
            continue
        kind = type(value)
        if kind is str:
            found[key] = value if len(value) <= MAX_TEXT else value[:MAX_TEXT]
            characters += len(value)
        elif kind is tuple:
            if value:
                found[key] = texts = typed(key, value)
                characters += sum(map(len, texts))
        else:
            found[key] = float(value) if key in _DOUBLES else value
    return characters


Read = Callable[[Any], Any]
Part = tuple[Read, tuple[str, ...], Read]


def _together(names: Sequence[str]) -> Read:
    """Reads several fields in one step; `attrgetter` gives one alone as it is."""
    read = attrgetter(*names)
    return read if len(names) > 1 else lambda part: (read(part),)


def _parts(fields: Iterable[tuple[str, str, str]]) -> Iterator[Part]:
    """Fields, given as (key, group, dotted field), by the part of an entry that holds them: how the part is found, the
    keys, how their values are read. A part inside a group may be missing: then its fields are unknown."""
    found: dict[str, list[tuple[str, str]]] = {}
    for key, group, path in fields:
        outer, _, inner = path.rpartition(".")
        found.setdefault(f"{group}.{outer}" if outer else group, []).append((key, inner))
    for place, pairs in found.items():
        keys, names = zip(*pairs, strict=True)
        yield attrgetter(place), keys, _together(names)


_PARTS = tuple(_parts(s.ENTRY_FIELDS))
_CHECKS = tuple(_parts(field for field in s.ENTRY_FIELDS if field[1] == "checks"))
# What narrows the verdict of a pillar, by the verdict: counts, detail, evidence.
_FINDINGS: Mapping[str, tuple[str, ...]] = {
    f"{OWN}{verdict}": tuple(f"{OWN}{pillar}.{what}" for what in ("counts", "detail", "evidence"))
    for pillar, verdict in m.PILLARS.items()
}
# What is given up last, first to last: enough for an entry in which everything is known.
_LEAST = (
    s.CONTEXT_LEDGER_REPO_PATHS,
    s.CONTEXT_LEDGER_REPO_CHANGES,
    *(keys[0] for keys in _FINDINGS.values()),
    *(keys[1] for keys in _FINDINGS.values()),
    s.CONTEXT_LEDGER_CACHE_WRITE_5M_TOKENS,
    s.CONTEXT_LEDGER_CACHE_WRITE_30M_TOKENS,
    s.CONTEXT_LEDGER_CACHE_WRITE_12H_TOKENS,
    s.CONTEXT_LEDGER_CACHE_WRITE_1H_TOKENS,
)
_VERDICTS = attrgetter(*m.PILLARS.values())
# Attributes of ours whose value has a standard name as well.
_TWINS: Mapping[str, str] = {
    key: name for key, group, path in s.ENTRY_FIELDS for name, place in STANDARD.items() if place == f"{group}.{path}"
}
_STANDARD, _OPENAI = _together(tuple(STANDARD.values())), _together(tuple(OPENAI.values()))


def typed(key: str, value: Any) -> Any:
    """A value as the registry types its attribute, texts cut to their bound."""
    if isinstance(value, str):
        return value[:MAX_TEXT]
    if isinstance(value, tuple):
        return [str(text)[:MAX_TEXT] for text in value]
    return float(value) if key in _DOUBLES and isinstance(value, int) else value


_DOUBLES = frozenset(key for key, kind in s.TYPES.items() if kind == "double")


def bounded(found: dict[str, Any]) -> dict[str, Any]:
    """The attributes within 16 KB: the longest lists go first, and `truncated` says so."""
    total = sum(map(_size, found.values()))
    if total <= MAX_BYTES:
        return found
    sizes = {key: _size(value) for key, value in found.items()}
    for key in sorted(sizes, key=lambda name: -sizes[name]):
        if total <= MAX_BYTES:
            break
        total -= sizes[key]
        del found[key]
        found[s.CONTEXT_LEDGER_TRUNCATED] = True
    return found


def fitting(found: Mapping[str, Any], span: Any = None) -> Mapping[str, Any]:
    """The attributes that our own span, or an event, has room for: with one too many the SDK would throw out what was
    there first, the standard names of the request, and complain of an event. Ours that stand under a standard name too
    go first, then what narrows the verdict of a pillar that is sound, then what others counted: of these an event has
    all, and the ledger line has everything."""
    there = getattr(span, "attributes", None) or {}
    if len(found) + len(there) <= MAX_ATTRIBUTES:
        return found
    over = len(found.keys() | there.keys()) - MAX_ATTRIBUTES
    kept = _without(found, (key for key, twin in _TWINS.items() if twin in found or twin in there), over)
    over -= len(found) - len(kept)
    if over <= 0:
        return kept
    sound = [key for verdict, keys in _FINDINGS.items() if found.get(verdict) in m.SOUND for key in keys]
    lean = _without(kept, (*sound, *_LEAST), over + (s.CONTEXT_LEDGER_TRUNCATED not in found))
    return {**lean, s.CONTEXT_LEDGER_TRUNCATED: True}


def _without(found: Mapping[str, Any], names: Iterable[str], most: int) -> Mapping[str, Any]:
    gone = frozenset([key for key in dict.fromkeys(names) if key in found][: max(0, most)])
    return {key: value for key, value in found.items() if key not in gone}


def _size(value: object) -> int:
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-8", "replace"))
    return sum(map(_size, value)) if isinstance(value, list) else 8


def standard(entry: m.Entry) -> dict[str, Any]:
    """The standard names of an entry; a reported 0 is there, an unreported count is not."""
    found: dict[str, Any] = {}
    _gather(found, tuple(STANDARD), _STANDARD(entry))
    if entry.model.provider == "openai":
        _gather(found, tuple(OPENAI), _OPENAI(entry))
    if compacted(entry):
        found[s.GEN_AI_CONVERSATION_COMPACTED] = True
    return found


def suppressed() -> bool:
    """Whether instrumentation is switched off in this context."""
    here = otel.get_current()
    return any(here.get(key) for key in (otel._SUPPRESS_INSTRUMENTATION_KEY, *SUPPRESSED))


def conversation() -> str | None:
    """The conversation id that the context holds: set by an instrumentation that knows it, never invented."""
    found = otel.get_value(_CONVERSATION)
    return found if isinstance(found, str) and found else None


class Watch(SpanProcessor):
    """Remembers the last inference span started in each context, so that it is found where it isn't the current one,
    and notices those that start below a call of ours. Who flushes the tracer provider gets what the ledger still has to
    say, too: `flush` waits for it."""

    def __init__(self) -> None:
        self.flush: Callable[[float], bool] = lambda _: True
        self.owed: Mapping[int, int] = {}
        self._led: bool | None = None

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self.flush(timeout_millis / 1000) if self._led is None else self._led

    def shutdown(self) -> None:
        self.force_flush(int(MAX_FLUSH_SECONDS * 1000))

    def lead(self, provider: Any) -> None:
        """Flushes before any processor of this provider is flushed or shut down: those that were there earlier would
        miss the spans that are still to end."""
        flush, shutdown = provider.force_flush, provider.shutdown

        @wraps(flush)
        def force_flush(*args: Any, **kwargs: Any) -> Any:
            with self._leading(args[0] if args else kwargs.get("timeout_millis", MAX_FLUSH_SECONDS * 1000)):
                return flush(*args, **kwargs)

        @wraps(shutdown)
        def shut_down(*args: Any, **kwargs: Any) -> Any:
            with self._leading(MAX_FLUSH_SECONDS * 1000):
                return shutdown(*args, **kwargs)

        provider.force_flush, provider.shutdown = force_flush, shut_down

    @contextmanager
    def _leading(self, timeout_millis: float) -> Iterator[None]:
        """Flushes once for all that is done inside."""
        with suppress(Exception):
            self._led = self.flush(timeout_millis / 1000)
        try:
            yield
        finally:
            self._led = None

    def _on_ending(self, span: Any) -> None:
        if self.owed:
            with suppress(Exception):
                self._ending(span)

    def _ending(self, span: Any) -> None:
        """Before the first span of a trace in this process ends, the calls beneath it get their spans: some processors
        give a trace away at that moment."""
        above, trace_id = span.parent, span.get_span_context().trace_id
        if (above is None or above.is_remote) and _scope(span) != SCOPE and trace_id in self.owed.values():
            self.flush(MAX_WAIT_SECONDS)

    def on_start(self, span: Any, parent_context: otel.Context | None = None) -> None:
        with suppress(Exception):
            self._started(span)

    def _started(self, span: Any) -> None:
        if _scope(span) == SCOPE:
            return
        above, known = _in_flight.get(), _infers(span)
        if above is not None and not above.over:
            above.below |= known
        elif not _below(span):
            held = weakref.ref(span)
            _started.set(held)
            if known:
                _announced.set(held)


def watch_of(provider: Any) -> Watch:
    """The watch of a tracer provider, which is put there once."""
    for held, watch in _watches:
        if held() is provider:
            return watch
    _watches[:] = [pair for pair in _watches if pair[0]() is not None]
    _watches.append((weakref.ref(provider), Watch()))
    watch = _watches[-1][1]
    provider.add_span_processor(watch)
    with suppress(AttributeError):
        watch.lead(provider)
    return watch


def inference(span: Any) -> bool:
    """Whether a live span is another instrumentation's inference span."""
    return bool(span.is_recording()) and not _below(span) and _infers(span)


def _infers(span: Any) -> bool:
    known = getattr(span, "attributes", None) or {}
    return any(key in known and (values is None or known[key] in values) for key, values in PEERS)


def _scope(span: Any) -> str:
    return getattr(getattr(span, "instrumentation_scope", None), "name", None) or ""


def _below(span: Any) -> bool:
    name = _scope(span)
    return any(name == scope or name.startswith(f"{scope}.") for scope in BELOW)


class Recording:
    """The OpenTelemetry side of one call: a peer's span or our own, and what is written when the entry is there.

    `below` says that another instrumentation started a span of the same call beneath, `over` that the call has ended,
    `ended` when it did, in ns since 1970. `late` starts a span of our own, for the entry of a peer's span that was
    sealed before its stream was read.
    """

    def __init__(self, span: trace.Span, late: Callable[[], trace.Span] | None = None) -> None:
        self.span, self.below, self.over = span, False, False
        self.ended: int | None = None
        self._late = late
        self._attributes: dict[str, Any] = {}
        self._token: Token[otel.Context] | None = None
        self._flight: Token[Recording | None] | None = None

    @property
    def peer(self) -> bool:
        """Whether the span is another instrumentation's."""
        return self._late is not None

    def enter(self) -> None:
        """Marks the call as in flight and makes our own span the current one; a peer's is left as it stands."""
        self._flight = _in_flight.set(self)
        if not self.peer:
            self._token = otel.attach(trace.set_span_in_context(self.span))

    def leave(self) -> None:
        """Puts back what was current. A call that is collected instead of finished, as a coroutine of a closed loop is,
        leaves in another context, where there is nothing to put back: OpenTelemetry's `detach` would log an error."""
        tokens, self._token, self._flight = (self._token, self._flight), None, None
        for token in tokens:
            if token is not None:
                with suppress(ValueError):
                    token.var.reset(token)  # type: ignore[arg-type]

    def finish(self, entry: m.Entry, found: dict[str, Any]) -> None:
        """Writes the entry, of which `found` are the attributes: at once on our own span, at its end on a peer's."""
        self.over = True
        if self._late is not None and self.span.is_recording():
            self._attributes = found
            return
        alone = self._late is None and not self.below
        if self._late is not None:
            self.span, self._late = self._late(), None
        if not self.span.is_recording():
            return
        self.span.set_attributes(fitting(found if alone else _without_usage(found), self.span))
        if entry.request.error_type:
            self.span.set_status(Status(StatusCode.ERROR))
        self.span.end(self.ended)

    def enrich_at_end(self) -> None:
        """Writes onto a peer's span right before it is sealed: nothing set earlier would be safe from eviction."""
        original = self.span.end

        def end(*args: Any, **kwargs: Any) -> None:
            with suppress(Exception):
                enrich(self.span, _without_usage(self._attributes) if self.below else self._attributes)
            original(*args, **kwargs)

        self.span.end = end  # type: ignore[method-assign]


def enrich(span: Any, found: dict[str, Any]) -> None:
    """Adds to a peer's span what it lacks: our own names, and the standard ones if it speaks them."""
    known = span.attributes or {}
    speaks = any(name in known for name in STANDARD_SPEECH)
    new = {key: value for key, value in found.items() if key not in known and (speaks or key.startswith(OWN))}
    _make_room(getattr(span, "_attributes", None), len(new))
    span.set_attributes(new)


def _make_room(held: Any, count: int) -> None:
    """Raises one span's attribute limit by what is added: with a full span (OpenInference: some 60 messages) each of
    ours would else evict one of the peer's, the oldest and most telling first."""
    limit = getattr(held, "maxlen", None)
    if limit:
        held.maxlen = max(limit, len(held) + count)


def _without_usage(found: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if not key.startswith(USAGE)}


@quick
@dataclass(frozen=True, slots=True)
class Finished:
    """An entry whose span is written: its attributes if anybody listens to events, and the context of its span."""

    entry: m.Entry
    attributes: dict[str, Any] | None
    where: otel.Context

    def settled(self, entry: m.Entry) -> Finished:
        """The same with the entry as it is once its checks are done; the span is sealed by then."""
        if entry is self.entry:
            return self
        found = None if self.attributes is None else {**self.attributes, **_found(entry, _CHECKS)}
        return changed(self, entry=entry, attributes=found)


class Telemetry:
    """The tracer, meter and logger of this process. `mode` says who counts entries: sdk (here), collector or off;
    `flush` waits for what others still have to say through this."""

    def __init__(self, version: str, mode: str = "sdk", flush: Callable[[float], bool] = lambda _: True) -> None:
        self._mode, self._flush = mode, flush
        Totals.flush = staticmethod(flush)
        self._tracer = trace.get_tracer(SCOPE, version, schema_url=s.SCHEMA_URL)
        self._logger = logs.get_logger(SCOPE, version, schema_url=s.SCHEMA_URL)
        meter = metrics.get_meter(SCOPE, version, schema_url=s.SCHEMA_URL)
        self._instruments = {name: instrument(meter, metric) for name, metric in s.METRICS.items() if name in EMITTED}
        self._standing_by: list[Thread] = []
        self._leaving = Event()
        self.met: Callable[[], None] = lambda: None
        self._watched: object = None
        # Spans of ours whose calls have ended, with their traces.
        self._owed: dict[int, int] = {}
        self._claimed: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self.watch()

    def watch(self) -> None:
        """Asks the tracer provider of this process to tell of spans started; providers come late, so ask again. `met`
        hears of each."""
        provider = trace.get_tracer_provider()
        if provider is not self._watched and hasattr(provider, "add_span_processor"):
            self._watched = provider
            watch = watch_of(provider)
            watch.flush, watch.owed = self._flush, self._owed
            self.met()

    def owe(self, recording: Recording, still: bool = True) -> None:
        """Notes that the call of a span of ours has ended and its span is still to end, or that it has ended."""
        where = recording.span.get_span_context()
        if still:
            self._owed[where.span_id] = where.trace_id
        else:
            self._owed.pop(where.span_id, None)

    def start(self, model: str | None, opening: Mapping[str, Any], started: int) -> Recording:
        """The recording of a call that begins; `opening` is what samplers want to see."""
        self.watch()
        name = f"{opening[s.GEN_AI_OPERATION_NAME]} {model}" if model else str(opening[s.GEN_AI_OPERATION_NAME])
        known: dict[str, Any] = {key: typed(key, value) for key, value in opening.items()}
        own = partial(self._tracer.start_span, name, kind=SpanKind.CLIENT, attributes=known, start_time=started)
        peer = self._peer()
        if peer is None:
            return Recording(own())
        self._claimed[peer.get_span_context().span_id] = peer
        recording = Recording(peer, partial(own, context=trace.set_span_in_context(peer, otel.Context())))
        recording.enrich_at_end()
        return recording

    def silenced(self) -> bool:
        """Whether a call in this context is not to be recorded: instrumentation is suppressed, and not merely by a peer
        that silences those below its own span of this very call, as logfire does."""
        return suppressed() and self._peer() is None

    def _peer(self) -> Any:
        remembered = (held() for held in (_started.get(), _announced.get()) if held is not None)
        spans = (trace.get_current_span(), *remembered)
        return next((span for span in spans if span is not None and inference(span) and self._free(span)), None)

    def _free(self, span: Any) -> bool:
        return span.get_span_context().span_id not in self._claimed

    def finish(self, entry: m.Entry, recording: Recording) -> Finished:
        """Writes an entry onto its span; what is left to say needs nobody to wait for it."""
        heard = not isinstance(logs.get_logger_provider(), (logs.NoOpLoggerProvider, _proxy()))
        wanted = heard or recording.peer or recording.span.is_recording()
        found = {**attributes(entry), **standard(entry)} if wanted else {}
        recording.finish(entry, found)
        return Finished(entry, found if heard else None, trace.set_span_in_context(recording.span))

    def say(self, finished: Finished) -> None:
        """Counts an entry and emits its events."""
        entry, found, where = finished.entry, finished.attributes, finished.where
        if self.counting():
            self._count(entry, where)
        if found is None:
            return
        self._emit(s.EVENT_ENTRY, entry, dict(fitting(found)), where)
        if entry.context.identity_changed:
            own = {key: found[key] for key in _IDENTITY if key in found}
            self._emit(s.EVENT_IDENTITY_CHANGED, entry, own, where)

    def tell(self, told: m.Outcome, agent: str | None, counted: bool) -> None:
        """Emits the event of an outcome, and counts a task that ended."""
        found = {key: typed(key, value) for key, get in OUTCOME if (value := get(told)) is not None}
        found[s.CONTEXT_LEDGER_COUNTED_BY] = self.counter() if counted else "off"
        if agent:
            found[s.CONTEXT_LEDGER_AGENT] = typed(s.CONTEXT_LEDGER_AGENT, agent)
        self._log(s.EVENT_OUTCOME, told.told_at, found, otel.get_current())
        if counted and self.counting():
            by = {s.CONTEXT_LEDGER_TASK_OUTCOME: told.word} | ({s.GEN_AI_AGENT_NAME: agent} if agent else {})
            self._instruments[s.METRIC_TASKS].add(1, by)

    def tell_compaction(self, told: m.Compacted) -> None:
        """Emits the event of a compaction that is over, and counts it; nothing for one that is not."""
        if not told.settled:
            return
        found = {key: typed(key, value) for name, value in told.row.items() if (key := COMPACTION.get(name))}
        names = {
            s.CONTEXT_LEDGER_SESSION_ID: told.session,
            s.CONTEXT_LEDGER_TASK_ID: told.task,
            s.CONTEXT_LEDGER_AGENT: told.agent,
            s.CONTEXT_LEDGER_PROVIDER: told.provider,
            s.CONTEXT_LEDGER_PROVIDER_SURFACE: told.surface,
            s.CONTEXT_LEDGER_MODEL_ID: told.model,
            s.CONTEXT_LEDGER_COUNTED_BY: self.counter(),
        }
        found |= {key: typed(key, name) for key, name in names.items() if name is not None}
        self._log(s.EVENT_COMPACTION, told.at, bounded(found), otel.get_current())
        if self.counting():
            for name, value, own in compaction_measurements(told):
                self._instruments[name].add(value, own)

    def stand_by(self) -> None:
        """Makes ready to shut the three providers down side by side. Called long before the end: from Python 3.12 on no
        thread can be started there."""
        if self._standing_by or greenlets():
            return
        every: tuple[Any, ...] = (trace.get_tracer_provider(), metrics.get_meter_provider(), logs.get_logger_provider())
        for provider in filter(leaving, every):
            thread = Thread(target=self._shut_down, args=(provider,), daemon=True)
            try:
                thread.start()
            except RuntimeError:  # too late: the SDK's own exit hooks shut them down one after the other
                return
            self._standing_by.append(thread)

    def stand_down(self) -> None:
        """In a forked child: the threads that stood by are the parent's."""
        self._standing_by, self._leaving = [], Event()
        self._owed.clear()

    def _shut_down(self, provider: Any) -> None:
        self._leaving.wait()
        # The program may have shut it down itself meanwhile; a second time the SDK complains.
        if leaving(provider):
            provider.shutdown()

    def drain(self) -> None:
        """At exit: the three providers that would each be shut down now, one after the other, are shut down side by
        side, so that a dead endpoint holds the exit for one export timeout and not for three."""
        self.stand_by()
        self._leaving.set()
        deadline = time.monotonic() + MAX_DRAIN_SECONDS
        for thread in self._standing_by:
            thread.join(max(0.0, deadline - time.monotonic()))

    def counting(self) -> bool:
        """Whether entries are counted here: asked for, and with a meter provider that counts."""
        silent = (metrics.NoOpMeterProvider, _proxy_meter())
        return self._mode == "sdk" and not isinstance(metrics.get_meter_provider(), silent)

    def counter(self) -> str:
        """What an entry says of who counted it."""
        return "off" if self._mode == "off" else "sdk" if self.counting() else "none"

    def failed(self, stage: str) -> None:
        """Counts an error of our own."""
        self._instruments[s.METRIC_INTERNAL_ERRORS].add(1, {s.CONTEXT_LEDGER_STAGE: stage})

    def _emit(self, name: str, entry: m.Entry, found: dict[str, Any], where: otel.Context) -> None:
        self._log(name, entry.self.started_at or 0.0, found, where)

    def _log(self, name: str, at: float, found: dict[str, Any], where: otel.Context) -> None:
        record = logs.LogRecord(
            timestamp=int(at * 1e9),
            context=where,
            severity_number=logs.SeverityNumber.INFO,
            attributes=found,
            event_name=name,
        )
        self._logger.emit(record)

    def _count(self, entry: m.Entry, where: otel.Context) -> None:
        base = shared(entry)
        for name, value, own in measurements(entry):
            if name in _totals:
                _totals[name].add(value, base, own)
                continue
            found = self._instruments[name]
            add = found.record if name == s.METRIC_TIME_TO_FIRST_TOKEN else found.add
            add(value, {**base, **own}, where)


class Totals:
    """What a counter has counted in this process, by attributes; asked for at each export, because a sum here takes a
    tenth of the time that the SDK takes for a measurement. Written to by one thread at a time.

    One for each process, as the meter provider is: the SDK keeps the first observer of a metric for good. Who collects
    gets what still waits to be counted, too: `flush` waits for it, wherever the ledger was switched on last.
    """

    flush: ClassVar[Callable[[float], bool]] = staticmethod(lambda _: True)

    def __init__(self) -> None:
        self._totals: dict[tuple[tuple[str, Any], ...], float] = {}

    def add(self, value: float, base: Mapping[str, Any], own: Mapping[str, Any]) -> None:
        """Count `value` under these attributes; beyond `MAX_POINTS` of them under OpenTelemetry's own for the rest."""
        key = (*base.items(), *own.items())
        if key not in self._totals and len(self._totals) >= MAX_POINTS:
            key = OVERFLOW
        self._totals[key] = self._totals.get(key, 0) + value

    def observe(self, options: metrics.CallbackOptions) -> Iterable[metrics.Observation]:
        """The totals as OpenTelemetry asks for them."""
        Totals.flush(options.timeout_millis / 1000)
        return [metrics.Observation(value, dict(key)) for key, value in list(self._totals.items())]


_IDENTITY = (
    s.CONTEXT_LEDGER_MODEL_ID,
    s.CONTEXT_LEDGER_ENTRY_ID,
    s.CONTEXT_LEDGER_SESSION_ID,
    s.CONTEXT_LEDGER_COMPARABLE_ID,
    s.CONTEXT_LEDGER_IDENTITY_CHANGED,
    s.CONTEXT_LEDGER_CONTEXT_IDENTITY,
    s.CONTEXT_LEDGER_CACHE_IDENTITY,
    s.CONTEXT_LEDGER_PROVIDER_SURFACE,
)
OUTCOME: tuple[tuple[str, Callable[[m.Outcome], object]], ...] = (
    (s.CONTEXT_LEDGER_TASK_ID, lambda told: told.task_id),
    (s.CONTEXT_LEDGER_ATTEMPT_ID, lambda told: told.attempt_id),
    (s.CONTEXT_LEDGER_TASK_OUTCOME, lambda told: told.word),
    (s.CONTEXT_LEDGER_OUTCOME_SUCCESS, lambda told: told.success),
    (s.CONTEXT_LEDGER_OUTCOME_TESTS, lambda told: told.tests),
    (s.CONTEXT_LEDGER_OUTCOME_CONSTRAINTS, lambda told: told.constraints),
    (s.CONTEXT_LEDGER_OUTCOME_ACCEPTED, lambda told: told.accepted),
    (s.CONTEXT_LEDGER_OUTCOME_ROLLED_BACK, lambda told: told.rolled_back),
    (s.CONTEXT_LEDGER_OUTCOME_REASON, lambda told: told.reason),
    (s.CONTEXT_LEDGER_OUTCOME_ID, lambda told: told.outcome_id),
    (s.CONTEXT_LEDGER_OUTCOME_TOLD_AT, lambda told: told.told_at),
)
EMITTED = (
    s.METRIC_CALLS,
    s.METRIC_INPUT_TOKENS,
    s.METRIC_OUTPUT_TOKENS,
    s.METRIC_REUSABLE_TOKENS,
    s.METRIC_MISS_TOKENS,
    s.METRIC_PROVIDER_VERDICTS,
    s.METRIC_IDENTITY_CHANGES,
    s.METRIC_COST,
    s.METRIC_COST_WITHOUT_CACHE,
    s.METRIC_TIME_TO_FIRST_TOKEN,
    s.METRIC_TASKS,
    s.METRIC_CHECKS,
    s.METRIC_COMPACTIONS,
    s.METRIC_COMPACTION_TOKENS,
    s.METRIC_REPEATED_READ,
    s.METRIC_INTERNAL_ERRORS,
)


# Sums that are only ever read as sums; every call has several of them. The others are measured one by one, in the
# context of their span: their exemplars lead from a rise to a call.
_totals = {
    name: Totals()
    for name in (
        s.METRIC_INPUT_TOKENS,
        s.METRIC_OUTPUT_TOKENS,
        s.METRIC_REUSABLE_TOKENS,
        s.METRIC_COST,
        s.METRIC_COST_WITHOUT_CACHE,
    )
}


def leaving(provider: Any) -> bool:
    """Whether a provider is the SDK's and was set up to shut itself down at exit; one that the program keeps in its
    own hands is left to it."""
    return any(getattr(provider, name, None) is not None for name in ("_atexit_handler", "_at_exit_handler"))


@lru_cache(maxsize=1)
def _proxy_meter() -> type:
    from opentelemetry.metrics._internal import _ProxyMeterProvider

    return _ProxyMeterProvider


@lru_cache(maxsize=1)
def _proxy() -> type:
    from opentelemetry._logs._internal import ProxyLoggerProvider

    return ProxyLoggerProvider


def instrument(meter: metrics.Meter, metric: s.Metric) -> Any:
    """The instrument of a registry metric."""
    named: dict[str, Any] = {"name": metric.name, "unit": metric.unit, "description": metric.description}
    if metric.kind == "histogram":
        return meter.create_histogram(**named, explicit_bucket_boundaries_advisory=metric.boundaries)
    if metric.name in _totals:
        return meter.create_observable_counter(**named, callbacks=[_totals[metric.name].observe])
    return meter.create_counter(**named)


def shared(entry: m.Entry) -> dict[str, Any]:
    """The bounded attributes that every metric has; no id, hash or path is ever among them."""
    found = {
        s.GEN_AI_PROVIDER_NAME: entry.model.provider,
        s.GEN_AI_REQUEST_MODEL: entry.model.model_id,
        s.CONTEXT_LEDGER_PROVIDER_SURFACE: entry.model.provider_surface,
        s.GEN_AI_AGENT_NAME: entry.task.agent,
    }
    return {key: value for key, value in found.items() if value is not None}


def identity(entry: m.Entry) -> str:
    """same, changed or first: whether the cache identity is that of the comparable call."""
    changed = entry.context.identity_changed
    if changed is None:
        return "first"
    return "changed" if set(changed) & set(CACHE_PARTS) else "same"


_COMPONENTS = {"input": "input_uncached"}
Measurement = tuple[str, Any, dict[str, Any]]


def measurements(entry: m.Entry) -> Iterator[Measurement]:
    """Every (metric, value, own attributes) of an entry; an unknown value is no measurement."""
    same = {s.CONTEXT_LEDGER_IDENTITY: identity(entry)}
    error = {s.ERROR_TYPE: entry.request.error_type} if entry.request.error_type else {}
    outcome = {s.CONTEXT_LEDGER_CACHE_OUTCOME: entry.cache.cache_outcome}
    kind = {s.CONTEXT_LEDGER_REQUEST_KIND: entry.task.request_kind}
    found: list[tuple[str, float | None, dict[str, Any]]] = [
        (s.METRIC_CALLS, 1, {**outcome, **same, **kind, **error}),
        (s.METRIC_OUTPUT_TOKENS, entry.request.output_tokens, {}),
        (s.METRIC_REUSABLE_TOKENS, _reusable(entry), same),
        (s.METRIC_TIME_TO_FIRST_TOKEN, entry.request.time_to_first_token, outcome),
    ]
    yield from ((name, value, own) for name, value, own in found if value is not None)
    yield from _tokens(entry)
    if entry.cache.miss_cause and entry.cache.avoidable_tokens:
        yield (
            s.METRIC_MISS_TOKENS,
            entry.cache.avoidable_tokens,
            {s.CONTEXT_LEDGER_MISS_CAUSE: entry.cache.miss_cause, **same},
        )
    if entry.cache.verdict_conflict is not None:
        yield s.METRIC_PROVIDER_VERDICTS, 1, {s.CONTEXT_LEDGER_VERDICT_CONFLICT: entry.cache.verdict_conflict}
    for part in entry.context.identity_changed or ():
        yield s.METRIC_IDENTITY_CHANGES, 1, {s.CONTEXT_LEDGER_PART: part}
    for pillar, verdict in verdicts(entry.checks):
        yield s.METRIC_CHECKS, 1, {s.CONTEXT_LEDGER_PILLAR: pillar, s.CONTEXT_LEDGER_VERDICT: verdict}
    if entry.request.repeated_read_bytes:
        yield s.METRIC_REPEATED_READ, entry.request.repeated_read_bytes, {}
    yield from _costs(entry)


def _reusable(entry: m.Entry) -> int | None:
    """None where nobody said what was reused: the tokens would count as kept, which nobody knows."""
    return entry.cache.reusable_tokens if entry.cache.cached_tokens is not None else None


# The registry's keys of what a compaction's row has.
COMPACTION: Mapping[str, str] = {
    key.removeprefix(OWN).removeprefix("compaction."): key for key in s.TYPES if key.startswith(f"{OWN}compaction")
}
_BY = tuple(COMPACTION[name] for name in ("kind", "trigger", "outcome", "validator_result"))
_SIDES = (("before", "tokens_before"), ("after", "tokens_after"))


def compaction_measurements(told: m.Compacted) -> Iterator[Measurement]:
    """Every (metric, value, attributes) of a compaction that is over."""
    names = {
        s.GEN_AI_PROVIDER_NAME: told.provider,
        s.GEN_AI_REQUEST_MODEL: told.model,
        s.CONTEXT_LEDGER_PROVIDER_SURFACE: told.surface,
        s.GEN_AI_AGENT_NAME: told.agent,
    }
    base = {key: value for key, value in names.items() if value is not None}
    by = {key: told.row[name] for name, key in COMPACTION.items() if key in _BY and told.row.get(name) is not None}
    yield s.METRIC_COMPACTIONS, 1, {**base, **by}
    for side, name in _SIDES:
        tokens = told.row.get(name)
        if tokens is not None:
            yield s.METRIC_COMPACTION_TOKENS, tokens, {**base, s.CONTEXT_LEDGER_SIDE: side}


def verdicts(checks: m.ChecksGroup) -> Iterator[tuple[str, str]]:
    """The pillars that were looked at, each with its verdict."""
    pairs = zip(m.PILLARS, _VERDICTS(checks), strict=True)
    return ((pillar, verdict) for pillar, verdict in pairs if verdict is not None)


def _tokens(entry: m.Entry) -> Iterator[Measurement]:
    usage = entry.usage
    classes = {
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "uncached": usage.uncached,
        "unreported": usage.unreported,
    }
    for source, count in classes.items():
        if count is not None:
            yield s.METRIC_INPUT_TOKENS, count, {s.CONTEXT_LEDGER_TOKEN_SOURCE: source}


def _costs(entry: m.Entry) -> Iterator[Measurement]:
    cost, without = entry.money.cost, entry.money.cost_without_cache
    if cost is None or cost.amount is None or cost.unit != "usd":
        return
    ours = {_COMPONENTS.get(name, name): amount for name, amount in entry.cost_components.items()}
    whole = {"total": cost.amount} if cost.source == "provider" else ours
    for component, amount in whole.items():
        yield s.METRIC_COST, amount, {s.CONTEXT_LEDGER_COST_COMPONENT: component}
    if without is not None:
        yield s.METRIC_COST_WITHOUT_CACHE, without, {s.CONTEXT_LEDGER_COST_COMPONENT: "total"}
