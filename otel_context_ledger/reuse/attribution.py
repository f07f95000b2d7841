"""Who is to blame for tokens that were not reused: one primary cause, the others secondary.

The order of decision (spec/README.md, "Causes"): nothing reported, nothing to compare with, no shortfall, another
model, then whatever explains the earliest loss. A difference in content explains everything after its place; if the
provider reused less than up to that place, a difference outside the content (route, effort, settings, key, age)
explains more and leads, except that a mere possibility never leads over tools or system parts that are known to differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from otel_context_ledger.model import Cause, Position, Request, Response
from otel_context_ledger.records import quick
from otel_context_ledger.reuse import differences, weight
from otel_context_ledger.reuse.lineage import Anchor, Head, Link, named_role
from otel_context_ledger.reuse.segments import Outline
from otel_context_ledger.spelling import model, optional, word

SIGNIFICANT_TOKENS = 2000
SIGNIFICANT_SHARE = 0.05
# A miss near the documented minimum is put down to it until a prompt of that size was seen to hit (case CM29).
NEAR_MINIMUM = 2
PLATEAU = 3
# The largest block that a provider is known to count in (Kimi Code): a larger loss at the end of a prompt is no rest.
LARGEST_BLOCK = 256
# A prompt's header is told from its whole count alone, by the weight of its text: an eighth of it may be wrong.
SHARED_ERROR = 8
# Causes that say that nothing was there to be lost.
_HARMLESS = frozenset({"not_reported", "cold_start", "below_minimum", "granularity"})


@quick
@dataclass(frozen=True, slots=True)
class Rules:
    """What is held to be true of a provider's cache when a call is judged; tokens and seconds, `None` is unknown."""

    block: int = 1
    minimum: int | None = None
    minimum_previous: bool = False
    minimum_note: str | None = None
    smallest_hit: int | None = None
    lifetime: float | None = None
    retentions: Mapping[str, float] = field(default_factory=dict)
    write_lag: float = 5.0
    markers: bool = False
    windows: Mapping[str, int] | None = None
    summaries: tuple[str, ...] = ()


@quick
@dataclass(frozen=True, slots=True)
class Case:
    """One finished call beside its comparable call. `expected` are the tokens that could have been reused had nothing
    changed, `reusable` those of the unchanged prefix; `verdict` is the provider's word, or ours for its silence;
    `ending` is how the call ended."""

    link: Link
    outline: Outline
    request: Request
    response: Response
    rules: Rules
    now: float
    expected: int | None = None
    reusable: int | None = None
    verdict: str | None = None
    ending: str = "complete"

    @property
    def cached(self) -> int:
        return self.response.usage.cache_read or 0

    @property
    def idle(self) -> float | None:
        """Seconds since the comparable call ended."""
        head = self.link.head
        if head is None:
            return None
        return max(0.0, self.now - (head.closed if head.closed is not None else head.opened))

    @property
    def lifetime(self) -> float | None:
        """Seconds that the comparable call's prefix is kept: as its writes were reported or asked for, else as is usual
        for the model."""
        head = self.link.head
        kept = self.rules.retentions.get(head.written) if head and head.written else None
        return self.rules.lifetime if kept is None else kept

    @property
    def shortfall(self) -> int:
        return max(0, (self.expected or 0) - self.cached)


def estimate(link: Link, outline: Outline, block: int = 1) -> int | None:
    """Reusable tokens: the comparable call's own count on append, text weighed between known counts otherwise, in whole
    blocks. `None` when nothing was reported to measure by."""
    head = link.head or link.sibling
    if head is None:
        return None
    if link.relation in ("extends", "repeats", "continues") and head.outline.root == outline.root:
        exact = held(head)
        if exact is not None:
            return exact - exact % block
    if link.head is None and head.stored and head.request.breakpoints and not _marks_end(head.request):
        return head.stored
    own = link if link.head is not None else replace(link, shared=_shared(head, outline), relation="rewinds")
    tokens = interpolate(head.anchors, differences.shared_bytes(own, head, outline), head.outline)
    return None if tokens is None else tokens - tokens % block


def intact(link: Link, head: Head, outline: Outline) -> int | None:
    """Tokens of the segments that did not change at all: how far reuse reaches whatever the changed one begins with."""
    return interpolate(head.anchors, differences.intact_bytes(link, head, outline), head.outline)


def held(head: Head, route: str | None = None) -> int | None:
    """Tokens of a prompt that the provider can have kept: on another host what that host saw last; up to the last cache
    marker where it says what it wrote; else all of it."""
    if route and head.route and route != head.route:
        return dict(head.routes).get(route, head.tokens)
    automatic = not head.request.breakpoints and (head.stored or 0) > (head.cached or 0)
    return head.stored if head.stored and (automatic or _marks_end(head.request)) else head.tokens


def _marked(case: Case) -> bool:
    """Whether markers decide what is kept: then reuse ends at one of them, which may be long before a change."""
    return case.rules.markers or bool(case.request.breakpoints)


def _marks_end(request: Request) -> bool:
    return bool(request.breakpoints.get("message") or request.breakpoints.get("automatic"))


def _shared(head: Head, outline: Outline) -> int:
    pairs = zip(head.outline.prefix, outline.prefix, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(head.outline.prefix), len(outline.prefix)))


def interpolate(anchors: tuple[Anchor, ...], size: int, outline: Outline) -> int | None:
    """Tokens up to a byte position, by the weight of the text between the two reported counts around it."""
    if not anchors:
        return None
    below = max((a for a in anchors if a.size <= size), key=lambda a: a.size, default=Anchor(0, 0))
    above = min((a for a in anchors if a.size >= size), key=lambda a: a.size, default=None)
    if above is None or above.size == below.size:
        return below.tokens
    tokens, share = above.tokens - below.tokens, (size - below.size) / (above.size - below.size)
    if above.size - below.size <= weight.MAX_STRETCH and not weight.estimated(anchors):
        share = weight.share(outline, below.size, above.size, size, tokens)
    return below.tokens + int(share * tokens)


@quick
@dataclass(frozen=True, slots=True)
class Judgement:
    """The causes of a miss, the primary one first, and whether the provider's own reason contradicts what we saw."""

    causes: tuple[Cause, ...] = ()
    conflict: bool | None = None


def judge(case: Case) -> Judgement:
    """The verdict on one call; no cause when everything that could be was reused."""
    found = combined(causes(case), case.verdict)
    return replace(found, causes=_tagged(case, found.causes))


def combined(seen: tuple[Cause, ...], verdict: str | None) -> Judgement:
    """What we saw beside the provider's own word: confirmed, contradicted, or explained where we could not. A verdict
    that names no difference and claims no equality says nothing about ours."""
    name = seen[0].name if seen else None
    if verdict == "cache_hit":
        return Judgement(seen, bool(seen) and name != "not_reported")
    if verdict == NO_DIVERGENCE:
        return Judgement(seen, name in _DIVERGENT if seen else None)
    words = VERDICTS.get(verdict or "")
    if words is None:
        return Judgement(seen)
    confirmed = tuple(_confirmed(cause) if _same(cause, verdict or "", words) else cause for cause in seen)
    if confirmed != seen:
        return Judgement(confirmed, False)
    told = Cause(words[0], evidence=("provider_reported",))
    if name == "provider_unexplained":
        return Judgement((told, *seen[1:]), True)
    if name == "previous_unknown" or (name == "cold_start" and not seen[0].detail):
        return Judgement((told, *seen), False)
    return Judgement(seen, None if name == "not_reported" else True)


def causes(case: Case) -> tuple[Cause, ...]:
    """The causes as the client sees them, without the provider's word."""
    usage = case.response.usage
    if usage.cache_read is None:
        return (unreported(case),)
    if not usage.missed:
        return ()
    head = case.link.head
    if head is None:
        return (_without_comparison(case),)
    if case.expected is None:
        return ()
    if not _lost(case):
        return _unstored(case, head)
    found = _ordered(case, head, _content(case, head), [*_model(case, head), *_candidates(case, head)])
    return found or (_intact(case, head),)


def unreported(case: Case) -> Cause:
    """What kind of silence it was: the answer was not read to where counts stand, it brought no usage, or its usage
    says nothing of the cache."""
    if case.ending != "complete":
        return Cause("not_reported", ("answer_not_read",), evidence=(f"call_end={case.ending}",))
    if case.response.usage.input is None:
        return Cause("not_reported", ("no_usage",), evidence=("usage_missing",))
    return Cause("not_reported", evidence=("counters",))


def _lost(case: Case) -> bool:
    """Whether more was missed than one block, or than an estimate may err by where no earlier prompt ended."""
    if case.link.relation == "rewinds":
        return max(case.shortfall, _below_estimate(case)) > _slack(case)
    return case.shortfall > (case.rules.block if case.rules.block > 1 else 0)


def _below_estimate(case: Case) -> int:
    return max(0, (case.reusable or 0) - case.cached)


def _unstored(case: Case, head: Head) -> tuple[Cause, ...]:
    """Nothing was lost; but was anything there to be reused, or was the earlier prompt too short to be kept?"""
    appended = case.link.relation in ("extends", "repeats", "continues")
    short = _short(case, head) if appended else None
    return (short,) if short else ()


def _tagged(case: Case, found: tuple[Cause, ...]) -> tuple[Cause, ...]:
    """Marks what a fork lost to not being its parent, and a finished fork when it was woken (cases CM46, CM53)."""
    head = case.link.head
    if not found or head is None or found[0].name in _HARMLESS:
        return found
    if case.link.parent is not None:
        return (replace(found[0], detail=(*found[0].detail, "fork_lineage_lost")), *found[1:])
    if woken(head) and found[0].name in ("history_rewritten", "provider_unexplained"):
        evidence = (*found[0].evidence, f"wakes={head.wakes + 1}")
        return (replace(found[0], detail=(*found[0].detail, "fork_wake"), evidence=evidence), *found[1:])
    return found


def woken(head: Head) -> bool:
    """Whether a call after `head` wakes a fork that had finished its turn."""
    return head.forked and head.turn_ended


def significant(case: Case) -> bool:
    """Whether the shortfall is worth a person's attention."""
    return case.shortfall >= SIGNIFICANT_TOKENS and case.shortfall > SIGNIFICANT_SHARE * (case.expected or 0)


def _without_comparison(case: Case) -> Cause:
    if case.link.lost_track:
        return Cause("previous_unknown", evidence=("previous_response_unknown",), confidence="inferred")
    evidence = (f"cross_session_cached={case.cached}",) if case.cached else ()
    if case.link.concurrent:
        return Cause("cold_start", ("concurrent",), evidence=("in_flight", *evidence))
    return Cause("cold_start", evidence=("first_request", *evidence))


def _content(case: Case, head: Head) -> list[Cause]:
    """Differences in content, in the order of rendering."""
    old, new = head.outline, case.outline
    history = differences.history(case.link, head, new, case.rules.summaries)
    beside = (
        differences.pruned_beside(case.link, head, new) if history and history.name == "history_compacted" else None
    )
    found = (
        differences.tools(old.of("tool"), new.of("tool")),
        *differences.system(old.of("system"), new.of("system")),
        _with_sizes(case, head, history, beside is not None),
        beside,
    )
    return [_with_expectation(case, cause) for cause in found if cause is not None]


def _with_sizes(case: Case, head: Head, history: Cause | None, double: bool) -> Cause | None:
    """What a shrunken history shrank from and to, and whether two maintenance passes reset the prefix at once."""
    if history is None or history.detail[:1] not in ((), ("pruned",)):
        return history
    size = case.response.usage.input
    sizes = (f"prompt_tokens={head.tokens}>{size}",) if head.tokens is not None and size is not None else ()
    twice = ("double_prefix_reset=2",) if double else ()
    return replace(history, evidence=(*history.evidence, *sizes, *twice))


def _with_expectation(case: Case, cause: Cause) -> Cause:
    """Marks a memory block that the agent itself edited as expected (case CM52)."""
    position = cause.position
    if cause.name != "policy_changed" or position is None or position.name != "memory":
        return cause
    messages = case.outline.messages
    calls = (at for at in range(len(messages) - 1, max(-1, len(messages) - 7), -1) if _edits_memory(messages[at]))
    at = next(calls, None)
    if at is None:
        return cause
    by = f"initiated_by=tool_call:message[{at + case.outline.offset}]"
    return replace(cause, detail=("expected",), evidence=(*cause.evidence, by))


def _edits_memory(message: object) -> bool:
    return named_role(message) in ("assistant", "function_call") and any(
        "memory" in name for name in differences.called(message)
    )


def _model(case: Case, head: Head) -> Iterator[Cause]:
    asked, before = case.request.model, head.identity.parts["model"]
    served, served_before = case.response.model, head.served
    if asked != before:
        windows = case.rules.windows or {}
        sizes = windows.get(str(before)), windows.get(str(asked))
        both = sizes[0] is not None and sizes[1] is not None and sizes[0] != sizes[1]
        detail = (("window_downshift" if (sizes[1] or 0) < (sizes[0] or 0) else "window_upshift"),) if both else ()
        seen = ("local_diff", f"model={model(str(before))}>{model(asked)}")
        yield Cause("model_changed", detail, Position("settings", name="model"), seen)
    elif served and served_before and served != served_before:
        evidence = ("provider_reported", f"served={model(served_before)}>{model(served)}", "requested_unchanged")
        yield Cause("model_changed", ("served",), Position("settings", name="model"), evidence)


def _candidates(case: Case, head: Head) -> Iterator[Cause]:
    """Differences outside the content, each a possible reason and none a certain one."""
    request, before = case.request, head.request
    route = case.response.route
    if head.route and route and head.route != route:
        evidence = (
            "provider_reported",
            f"route={optional(head.route)}>{optional(route)}",
            f"idle_seconds={case.idle or 0:.0f}",
        )
        yield Cause("route_changed", evidence=evidence)
    if request.effort != before.effort:
        seen = ("local_diff", f"effort={word(before.effort)}>{word(request.effort)}")
        yield Cause("effort_changed", (), Position("settings", name="effort"), seen, "inferred")
    changed = differences.settings(before.settings, request.settings)
    if changed:
        where = Position("settings", name=changed[0])
        yield Cause("settings_changed", changed, where, ("local_diff",), "inferred")
    if request.cache_key != before.cache_key:
        yield Cause("cache_key_changed", (), Position("settings", name="cache_key"), ("local_diff",), "inferred")
    yield from _retention(case, head)


def _retention(case: Case, head: Head) -> Iterator[Cause]:
    lifetime, idle = case.lifetime, case.idle
    if lifetime is not None and idle is not None and idle > lifetime:
        evidence = (f"idle_seconds={idle:.0f}", f"retention_seconds={lifetime:.0f}")
        yield Cause("retention_expired", evidence=evidence, confidence="inferred")
    elif head.written and written(case.response, case.request) not in (None, head.written):
        now = written(case.response, case.request)
        twice = min(case.shortfall, case.response.usage.cache_write or 0)
        evidence = (f"retention={word(head.written)}>{word(now)}", f"duplicate_write_tokens={twice}")
        yield Cause("retention_changed", evidence=evidence)


def written(response: Response, request: Request) -> str | None:
    """The lifetime that a call's cache writes got: by their counts, as the answer says, else as asked for."""
    usage = response.usage
    told = {"12h": usage.write_12h, "1h": usage.write_1h, "30m": usage.write_30m, "5m": usage.write_5m}
    return next((name for name, count in told.items() if count), response.retention or request.retention)


def _ordered(case: Case, head: Head, content: list[Cause], others: list[Cause]) -> tuple[Cause, ...]:
    if content and others and others[0].name == "model_changed" and others[0].detail[:1] == ("window_downshift",):
        content = [replace(c, detail=("window_downshift",)) if c.name == "history_compacted" else c for c in content]
    if not content:
        return tuple(others)
    safe = intact(case.link, head, case.outline)
    reached = safe is None or case.cached + _slack(case) >= safe
    if others and _leads(others[0], content[0], reached):
        return _with_client(case, [*others, *content])
    early = _below_estimate(case) > _slack(case) and (case.reusable or 0) > (case.rules.minimum or 0)
    alone = not others and not _marked(case)
    late = [Cause("granularity", evidence=("counters",), confidence="inferred")] if early and alone else []
    return _with_client(case, [*content, *others, *late])


def _leads(other: Cause, content: Cause, reached: bool) -> bool:
    """Whether a difference outside the content goes before one in it. What is only possible (inferred) does not, where
    tools or the system part differ for certain: they alone lose nearly everything (case CM04)."""
    if other.name == "model_changed":
        return True
    in_history = content.position is not None and content.position.segment == "message"
    return not reached and (in_history or other.confidence == "observed")


def _with_client(case: Case, found: list[Cause]) -> tuple[Cause, ...]:
    """The causes with the client's update, if there was one; it explains a change of content and is none itself."""
    before, now = case.link.head.request.client_version if case.link.head else None, case.request.client_version
    if not before or not now or before == now:
        return tuple(found)
    client = Cause("client_version_changed", (f"{before}>{now}",), evidence=("local_diff",))
    known = next((cause for cause in found if cause.name == client.name), None)
    if known is None:
        return (*found, client)
    return tuple(replace(cause, detail=client.detail) if cause is known else cause for cause in found)


def _slack(case: Case) -> int:
    """How far a prediction may be off: a block, or one percent of the prompt."""
    return max(case.rules.block, 64, (case.response.usage.input or 0) // 100)


def _intact(case: Case, head: Head) -> Cause:
    """Why an unchanged prefix was not reused."""
    checks: tuple[Callable[[Case, Head], Cause | None], ...] = (
        _short, _markers, _lag, _near_minimum, _evicted, _granularity,
    )  # fmt: skip
    found = next((cause for check in checks if (cause := check(case, head))), None)
    if found is not None:
        return found
    stays = head.cached is not None and case.cached == head.cached and head.plateau + 1 >= PLATEAU - 1
    detail = ("hit_plateau",) if stays and case.cached else ()
    seen = (f"idle_seconds={case.idle or 0:.0f}", f"cached_tokens={head.cached}>{case.cached}")
    return Cause("provider_unexplained", detail, evidence=("prefix_intact", *seen), confidence="inferred")


def _short(case: Case, head: Head) -> Cause | None:
    rules, size = case.rules, _size(case, head)
    if rules.minimum is None or case.cached:
        return None
    short = size <= rules.minimum if rules.minimum_previous else size < rules.minimum
    return Cause("below_minimum", evidence=_threshold(rules)) if short else None


def _near_minimum(case: Case, head: Head) -> Cause | None:
    """Prompts little above the documented minimum, while none of their size was seen to hit: it may be too low."""
    rules, size = case.rules, _size(case, head)
    if rules.minimum is None or case.cached or size > NEAR_MINIMUM * rules.minimum:
        return None
    if rules.smallest_hit is not None and rules.smallest_hit <= size:
        return None
    return Cause("below_minimum", evidence=(*_threshold(rules), f"observed>{size}"), confidence="inferred")


def _size(case: Case, head: Head) -> int:
    """The prompt that could have been kept and asked for again, not yet cut to whole blocks."""
    known = [size for size in (head.tokens, case.response.usage.input) if size is not None]
    return min(known) if head.tokens is not None else (case.expected or 0)


def _threshold(rules: Rules) -> tuple[str, ...]:
    return (f"minimum={rules.minimum}", *([f"origin={rules.minimum_note}"] if rules.minimum_note else ()))


def _lag(case: Case, head: Head) -> Cause | None:
    """The earlier call's write is not readable yet: it is still in flight, or so fresh that what an even earlier call
    had written was read instead."""
    if head.closed is None or case.link.concurrent:
        return Cause("cold_start", ("concurrent",), evidence=("in_flight",), confidence="inferred")
    fresh = case.idle is not None and case.idle <= case.rules.write_lag
    if not fresh or head.plateau or case.link.relation == "rewinds":
        return None
    block = case.rules.block
    earlier = {0} if head.first else {anchor.tokens - anchor.tokens % block for anchor in head.anchors[:-1]}
    if case.cached not in earlier:
        return None
    return Cause("cold_start", ("write_not_visible",), None, (f"idle_seconds={case.idle:.0f}",), "inferred")


def _markers(case: Case, head: Head) -> Cause | None:
    marks, before = case.request.breakpoints, head.request.breakpoints
    used = case.rules.markers or marks or before
    if not used or _marks_end(case.request):
        return None
    last = case.outline.messages[-1] if case.outline.messages else None
    content = last.get("content") if isinstance(last, Mapping) else None
    part = content[-1] if isinstance(content, (list, tuple)) and content else None
    kind = word(str(part.get("type"))) if isinstance(part, Mapping) else "text"
    where = Position("message", len(case.outline.messages) - 1 + case.outline.offset, kind=f"last_block_{kind}")
    return Cause("cache_breakpoint_missing", ("messages",), where, ("local_diff", f"markers={sum(marks.values())}"))


def _evicted(case: Case, head: Head) -> Cause | None:
    """What was read is what this prompt shares with another call that went to the same place in between: the server
    seems to have had room for one of the two."""
    other, outline = case.link.between, case.outline
    if other is None or not case.cached or case.link.relation not in ("extends", "repeats"):
        return None
    beside = replace(case.link, head=other, shared=_shared(other, outline), relation="rewinds")
    tokens = interpolate(head.anchors, differences.shared_bytes(beside, other, outline), head.outline)
    if not tokens or abs(case.cached - tokens) > max(_slack(case), tokens // SHARED_ERROR):
        return None
    seen = ("prefix_intact", "call_between", f"shared_with_it={tokens}")
    return Cause("provider_unexplained", ("evicted",), evidence=seen, confidence="inferred")


def _granularity(case: Case, head: Head) -> Cause | None:
    """A provider that keeps state at checkpoints reuses less than the common prefix where no earlier prompt ended, and
    one that counts in blocks nobody documented leaves out a part of the last one."""
    inside = case.link.relation == "rewinds"
    grain = max(LARGEST_BLOCK, int(SIGNIFICANT_SHARE * (case.expected or 0)))
    if not inside and not (case.cached and case.shortfall <= grain):
        return None
    where = Position("message", case.link.shared + case.outline.offset, kind="rewound") if inside else None
    lost = max(case.shortfall, _below_estimate(case)) if inside else case.shortfall
    return Cause("granularity", (), where, ("counters", f"shortfall={lost}"), "inferred")


# A provider's reason → our words for what it covers, the likeliest first (Anthropic's cache diagnostics page, OpenAI's
# prompt cache diagnostics guide, the types of their SDKs of 2026-11). OpenAI's input holds system texts too.
VERDICTS: Mapping[str, tuple[str, ...]] = {
    "model_changed": ("model_changed",),
    "system_changed": ("policy_changed", "volatile_prefix", "client_version_changed"),
    "tools_changed": ("tools_changed", "tools_reordered", "tools_serialization_changed", "volatile_prefix"),
    "messages_changed": ("history_rewritten", "history_compacted"),
    "input_changed": (
        "history_rewritten", "history_compacted", "policy_changed", "volatile_prefix", "client_version_changed",
    ),
    "context_compacted": ("history_compacted", "history_rewritten"),
    "prompt_cache_key_changed": ("cache_key_changed",),
    "reasoning_effort_changed": ("effort_changed",),
    "verbosity_changed": ("settings_changed",),
    "text_format_changed": ("settings_changed",),
    "service_tier_changed": ("settings_changed",),
}  # fmt: skip
# The settings that such a reason speaks of, by their names in a request of any dialect.
_SPOKEN = {
    "verbosity_changed": ("verbosity", "text"),
    "text_format_changed": ("response_format", "text"),
    "service_tier_changed": ("service_tier",),
    "model_changed": ("speed",),
}
_DIVERGENT = frozenset(
    {"model_changed", "policy_changed", "volatile_prefix", "client_version_changed", "tools_changed", "tools_reordered",
     "tools_serialization_changed", "history_rewritten", "history_compacted"}
)  # fmt: skip
NO_DIVERGENCE = "no_divergence"


def _same(cause: Cause, verdict: str, words: tuple[str, ...]) -> bool:
    """Whether a cause is among what a provider's reason covers; it knows no order or clock apart. Of settings it means
    certain ones, and a volatile span is where it stands."""
    if cause.name == "settings_changed":
        return any(name in _SPOKEN.get(verdict, ()) for name in cause.detail)
    if cause.name == "volatile_prefix" and cause.position is not None:
        return cause.name in words and (cause.position.segment == "tool") == (verdict == "tools_changed")
    return cause.name in words


def _confirmed(cause: Cause) -> Cause:
    return replace(cause, evidence=(*cause.evidence, "provider_reported"), confidence="observed")
