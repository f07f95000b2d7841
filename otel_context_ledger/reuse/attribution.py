"""Who is to blame for tokens that were not reused: one primary cause, the others secondary.

The order of decision (spec/README.md, "Causes"): nothing reported, nothing to compare with, no shortfall, then whatever
explains the earliest loss. A difference in content explains everything after its place; if the provider reused less than
up to that place, a difference outside the content (model, effort, settings, key, route, age) explains more and leads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from otel_context_ledger.model import Cause, Position, Request, Response
from otel_context_ledger.reuse import differences
from otel_context_ledger.reuse.lineage import Anchor, Head, Link
from otel_context_ledger.reuse.segments import Outline

SIGNIFICANT_TOKENS = 2000
SIGNIFICANT_SHARE = 0.05
# A miss near the documented minimum is put down to it until a prompt of that size was seen to hit (case CM29).
NEAR_MINIMUM = 2
PLATEAU = 3


@dataclass(frozen=True, slots=True)
class Rules:
    """What is held to be true of a provider's cache when a call is judged; tokens and seconds, `None` is unknown."""

    block: int = 1
    minimum: int | None = None
    minimum_previous: bool = False
    minimum_note: str | None = None
    smallest_hit: int | None = None
    lifetime: float | None = None
    write_lag: float = 5.0
    markers: bool = False
    windows: Mapping[str, int] | None = None
    summaries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """One finished call beside its comparable call. `expected` are the tokens that could have been reused had nothing
    changed, `reusable` those of the unchanged prefix."""

    link: Link
    outline: Outline
    request: Request
    response: Response
    rules: Rules
    now: float
    expected: int | None = None
    reusable: int | None = None

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
    def shortfall(self) -> int:
        return max(0, (self.expected or 0) - self.cached)


def estimate(link: Link, outline: Outline, block: int = 1) -> int | None:
    """Reusable tokens: the comparable call's own count on append, bytes between known counts otherwise, in whole
    blocks. `None` when nothing was reported to measure by."""
    head = link.head or link.sibling
    if head is None:
        return None
    if link.relation in ("extends", "repeats", "continues") and head.outline.root == outline.root:
        exact = head.tokens
        if exact is not None:
            return exact - exact % block
    own = link if link.head is not None else replace(link, shared=_shared(head, outline), relation="rewinds")
    tokens = interpolate(head.anchors, differences.shared_bytes(own, head, outline))
    return None if tokens is None else tokens - tokens % block


def _shared(head: Head, outline: Outline) -> int:
    pairs = zip(head.outline.prefix, outline.prefix, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(head.outline.prefix), len(outline.prefix)))


def interpolate(anchors: tuple[Anchor, ...], size: int) -> int | None:
    """Tokens up to a byte position, by bytes between the two reported counts around it."""
    if not anchors:
        return None
    below = max((a for a in anchors if a.size <= size), key=lambda a: a.size, default=Anchor(0, 0))
    above = min((a for a in anchors if a.size >= size), key=lambda a: a.size, default=None)
    if above is None or above.size == below.size:
        return below.tokens
    share = (size - below.size) / (above.size - below.size)
    return below.tokens + int(share * (above.tokens - below.tokens))


@dataclass(frozen=True, slots=True)
class Judgement:
    """The causes of a miss, the primary one first, and whether the provider's own reason contradicts what we saw."""

    causes: tuple[Cause, ...] = ()
    conflict: bool | None = None


def judge(case: Case) -> Judgement:
    """The verdict on one call; no cause when everything that could be was reused."""
    seen = causes(case)
    verdict = case.response.verdict
    if verdict == "cache_hit":
        return Judgement(seen, bool(seen) and seen[0].name != "not_reported")
    word = VERDICTS.get(verdict or "")
    if word is None:
        return Judgement(seen)
    confirmed = tuple(_confirmed(cause) if _same(cause.name, word) else cause for cause in seen)
    if confirmed != seen:
        return Judgement(confirmed, False)
    if seen and seen[0].name == "provider_unexplained":
        return Judgement((Cause(word, evidence=("provider_reported",)), *seen[1:]), True)
    return Judgement(seen, True)


def causes(case: Case) -> tuple[Cause, ...]:
    """The causes as the client sees them, without the provider's word."""
    usage = case.response.usage
    if usage.cache_read is None:
        return (Cause("not_reported", evidence=("counters",)),)
    if not usage.missed:
        return ()
    head = case.link.head
    if head is None:
        return (_without_comparison(case),)
    if case.expected is None or case.shortfall <= max(0, case.rules.block - 1):
        return ()
    found = _ordered(case, _content(case, head), [*_model(case, head), *_candidates(case, head)])
    return found or (_intact(case, head),)


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
        differences.system(old.of("system"), new.of("system")),
        history,
        beside,
    )
    return [_with_expectation(case, cause) for cause in found if cause is not None]


def _with_expectation(case: Case, cause: Cause) -> Cause:
    """Marks a memory block that the agent itself edited as expected (case CM52)."""
    position = cause.position
    if cause.name != "policy_changed" or position is None or position.name != "memory":
        return cause
    if any("memory" in name for name in differences.called(case.outline.messages[-6:])):
        return replace(cause, detail=("expected",), evidence=(*cause.evidence, "initiated_by=tool_call"))
    return cause


def _model(case: Case, head: Head) -> Iterator[Cause]:
    asked, before = case.request.model, head.identity.parts["model"]
    served, served_before = case.response.model, head.served
    if asked != before:
        windows = case.rules.windows or {}
        sizes = windows.get(str(before)), windows.get(str(asked))
        both = sizes[0] is not None and sizes[1] is not None and sizes[0] != sizes[1]
        detail = (("window_downshift" if (sizes[1] or 0) < (sizes[0] or 0) else "window_upshift"),) if both else ()
        yield Cause("model_changed", detail, Position("settings", name="model"), ("local_diff",))
    elif served and served_before and served != served_before:
        yield Cause("model_changed", ("served",), Position("settings", name="model"), ("provider_reported",))


def _candidates(case: Case, head: Head) -> Iterator[Cause]:
    """Differences outside the content, each a possible reason and none a certain one."""
    request, before = case.request, head.request
    if head.route and case.response.route and head.route != case.response.route:
        yield Cause(
            "route_changed", evidence=(f"idle_seconds={case.idle:.0f}", "provider_reported"), confidence="observed"
        )
    if request.effort != before.effort:
        yield Cause(
            "effort_changed",
            position=Position("settings", name="effort"),
            evidence=("local_diff",),
            confidence="inferred",
        )
    changed = differences.settings(before.settings, request.settings)
    if changed:
        where = Position("settings", name=changed[0])
        yield Cause("settings_changed", changed, where, ("local_diff",), "inferred")
    if request.cache_key != before.cache_key:
        yield Cause(
            "cache_key_changed",
            position=Position("settings", name="cache_key"),
            evidence=("local_diff",),
            confidence="inferred",
        )
    yield from _retention(case, head)


def _retention(case: Case, head: Head) -> Iterator[Cause]:
    lifetime, idle = case.rules.lifetime, case.idle
    if lifetime is not None and idle is not None and idle > lifetime:
        evidence = (f"idle_seconds={idle:.0f}", f"retention_seconds={lifetime:.0f}")
        yield Cause("retention_expired", evidence=evidence, confidence="inferred")
    elif head.written and written(case.response, case.request) not in (None, head.written):
        now = written(case.response, case.request)
        evidence = (f"retention={head.written}>{now}", f"rewritten_tokens={case.response.usage.cache_write or 0}")
        yield Cause("retention_changed", evidence=evidence)


def written(response: Response, request: Request) -> str | None:
    """The lifetime that a call's cache writes got, as reported, else as asked for."""
    usage = response.usage
    if usage.write_1h:
        return "1h"
    return "5m" if usage.write_5m else request.retention


def _ordered(case: Case, content: list[Cause], others: list[Cause]) -> tuple[Cause, ...]:
    if content and others and others[0].name == "model_changed" and others[0].detail[:1] == ("window_downshift",):
        content = [replace(c, detail=("window_downshift",)) if c.name == "history_compacted" else c for c in content]
    if not content:
        return tuple(others)
    reached = case.reusable is None or case.cached + _slack(case) >= case.reusable
    if others and (others[0].name == "model_changed" or not reached):
        return (*others, *content, *_client(case))
    late = () if reached else (Cause("granularity", evidence=("counters",), confidence="inferred"),)
    return (*content, *others, *late, *_client(case))


def _client(case: Case) -> Iterator[Cause]:
    before, now = case.link.head.request.client_version if case.link.head else None, case.request.client_version
    if before and now and before != now:
        yield Cause("client_version_changed", evidence=(f"client={before}>{now}",))


def _slack(case: Case) -> int:
    """How far a prediction may be off: a block, or one percent of the prompt."""
    return max(case.rules.block, 64, (case.response.usage.input or 0) // 100)


def _intact(case: Case, head: Head) -> Cause:
    """Why an unchanged prefix was not reused."""
    checks: tuple[Callable[[Case, Head], Cause | None], ...] = (_minimum, _lag, _markers, _granularity)
    found = next((cause for check in checks if (cause := check(case, head))), None)
    if found is not None:
        return found
    stays = head.cached is not None and case.cached == head.cached and head.plateau + 1 >= PLATEAU - 1
    detail = ("hit_plateau",) if stays and case.cached else ()
    return Cause(
        "provider_unexplained",
        detail,
        evidence=("prefix_intact", f"idle_seconds={case.idle or 0:.0f}"),
        confidence="inferred",
    )


def _minimum(case: Case, head: Head) -> Cause | None:
    rules, size = case.rules, case.expected or 0
    if rules.minimum is None or case.cached:
        return None
    short = size <= rules.minimum if rules.minimum_previous else size < rules.minimum
    unseen = rules.smallest_hit is None or rules.smallest_hit > size
    if not short and not (unseen and size <= NEAR_MINIMUM * rules.minimum):
        return None
    note = (f"minimum={rules.minimum}", *([f"origin={rules.minimum_note}"] if rules.minimum_note else ()))
    seen = () if short else (f"observed>{size}",)
    return Cause("below_minimum", evidence=(*note, *seen), confidence="observed" if short else "inferred")


def _lag(case: Case, head: Head) -> Cause | None:
    if head.closed is None or case.link.concurrent:
        return Cause("cold_start", ("concurrent",), evidence=("in_flight",), confidence="inferred")
    if head.first and not case.cached and (case.idle or 0) <= case.rules.write_lag:
        return Cause(
            "cold_start", ("write_not_visible",), evidence=(f"idle_seconds={case.idle:.0f}",), confidence="inferred"
        )
    return None


def _markers(case: Case, head: Head) -> Cause | None:
    marks, before = case.request.breakpoints, head.request.breakpoints
    used = case.rules.markers or marks or before
    if not used or marks.get("automatic") or marks.get("message"):
        return None
    last = case.outline.messages[-1] if case.outline.messages else None
    content = last.get("content") if isinstance(last, Mapping) else None
    part = content[-1] if isinstance(content, (list, tuple)) and content else None
    kind = part.get("type") if isinstance(part, Mapping) else "text"
    where = Position("message", len(case.outline.messages) - 1 + case.outline.offset, kind=f"last_block_{kind}")
    return Cause("cache_breakpoint_missing", ("messages",), where, ("local_diff", f"markers={sum(marks.values())}"))


def _granularity(case: Case, head: Head) -> Cause | None:
    """A provider that keeps state at checkpoints reuses less than the common prefix where no earlier prompt ended."""
    inside = case.link.relation == "rewinds"
    if inside or (case.cached and not significant(case)):
        return Cause("granularity", evidence=("counters", f"shortfall={case.shortfall}"), confidence="inferred")
    return None


# A provider's reason → our word for the same thing (research: Anthropic and OpenAI cache diagnostics).
VERDICTS: Mapping[str, str] = {
    "model_changed": "model_changed",
    "system_changed": "policy_changed",
    "tools_changed": "tools_changed",
    "messages_changed": "history_rewritten",
    "input_changed": "history_rewritten",
    "context_compacted": "history_compacted",
    "prompt_cache_key_changed": "cache_key_changed",
    "reasoning_effort_changed": "effort_changed",
    "verbosity_changed": "settings_changed",
    "text_format_changed": "settings_changed",
    "service_tier_changed": "settings_changed",
}
_FAMILIES = (
    frozenset({"tools_changed", "tools_reordered", "tools_serialization_changed"}),
    frozenset({"policy_changed", "volatile_prefix"}),
    frozenset({"history_rewritten", "history_compacted"}),
)


def _same(cause: str, word: str) -> bool:
    """Whether two words name the same thing to a provider, which knows no order or clock apart."""
    return word == cause or any({word, cause} <= family for family in _FAMILIES)


def _confirmed(cause: Cause) -> Cause:
    return replace(cause, evidence=(*cause.evidence, "provider_reported"), confidence="observed")
