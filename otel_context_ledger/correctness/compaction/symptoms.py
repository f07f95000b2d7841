"""What is odd about a compaction, each with its numbers. A symptom whose numbers are not known is not told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from otel_context_ledger import spelling
from otel_context_ledger.correctness.compaction.audit import Audit
from otel_context_ledger.correctness.compaction.course import Course, Streak, Thresholds
from otel_context_ledger.correctness.compaction.event import DONE, EMPTY, FAILED, Compaction, Symptom
from otel_context_ledger.correctness.compaction.happenings import Called

MAX_LISTED = 8
HIGH, LOW = "high", "low"
_LOSSES = {"rule": "constraint_lost", "goal": "goal_lost", "todo": "todo_lost"}


def early(event: Compaction, limits: Thresholds) -> Iterator[Symptom]:
    """An automatic compaction far below the share of the window at which it was to come, by the larger of the counts:
    the history may have grown since the provider's."""
    configured, trigger, window = event.limits.ratio, event.limits.trigger, event.limits.window
    if configured is None and trigger is not None and window:
        configured = trigger / window
    tokens = max((count for count in (event.before.reported, event.before.estimate) if count is not None), default=None)
    observed = round(tokens / window, 3) if tokens is not None and window else None
    if event.trigger == "auto" and configured and observed is not None and observed < configured * limits.early:
        yield Symptom("early_trigger", LOW, (f"observed={observed:g}", f"configured={round(configured, 3):g}"))


def diverging(event: Compaction, limits: Thresholds) -> Iterator[Symptom]:
    """The client and the provider count one prompt differently, so that trigger and limit are measured apart."""
    for side, measure in (("before", event.before), ("after", event.after)):
        times = measure.divergence
        if times is not None and not 1 / limits.diverges <= times <= limits.diverges:
            told = (f"{side}={times:g}", f"reported={measure.reported}", f"estimated={measure.estimate}")
            yield Symptom("estimator_divergence", HIGH, told)
            return


def ineffective(event: Compaction, limits: Thresholds) -> Iterator[Symptom]:
    """It freed almost nothing, going by what the provider reported on both sides. Where the prompt is larger than
    before, something new came along, and what was freed is not known."""
    known = event.before.reported is not None and event.after.reported is not None
    freed = event.reduction
    if event.outcome == DONE and known and freed is not None and 0 <= freed < limits.ineffective:
        yield Symptom("ineffective_compaction", LOW, (f"reduction={freed:g}",))


def looping(event: Compaction, streak: Streak, limits: Thresholds) -> Iterator[Symptom]:
    """Compactions follow each other with hardly a call between them, and why, as far as it can be told."""
    if streak.count < limits.loop or streak.told:
        return
    trigger, floor = event.limits.trigger, streak.floor
    numbers = [f"compactions={streak.count}", f"diagnosis={diagnosis(event, streak, limits)}"]
    numbers += [f"floor={floor}"] if floor is not None else []
    numbers += [f"trigger={trigger}"] if trigger is not None else []
    numbers += [f"headroom={trigger - floor}"] if trigger is not None and floor is not None else []
    yield Symptom("compaction_loop", HIGH, tuple(numbers))


def diagnosis(event: Compaction, streak: Streak, limits: Thresholds) -> str:
    """Why compactions repeat: what stays is above the trigger, the summary is empty, it failed, or it frees nothing."""
    if event.outcome == EMPTY:
        return "empty_summary"
    if event.outcome == FAILED:
        return event.reason or "failed"
    trigger = event.limits.trigger
    if trigger is not None and streak.floor is not None and streak.floor > trigger:
        return "floor_above_trigger"
    return "ineffective" if any(ineffective(event, limits)) else "unknown"


def unreused(event: Compaction, called: Called | None, limits: Thresholds) -> Iterator[Symptom]:
    """Tools and system stayed as they were, byte for byte, and were not read from the cache."""
    if called is None or not called.header_same or called.header is None or called.cached is None:
        return
    if event.outcome == DONE and called.header >= limits.stable and called.cached < called.header * limits.reused:
        told = (f"stable_tokens={called.header}", f"cached={called.cached}", *_freed(event))
        yield Symptom("stable_prefix_not_reused", HIGH, told)


def _freed(event: Compaction) -> tuple[str, ...]:
    return () if event.reduction is None else (f"reduction={event.reduction:g}",)


def frequent(course: Course, called: Called | None, limits: Thresholds) -> Iterator[Symptom]:
    """Several compactions in one turn, told once a turn, with the share that was read from the cache."""
    if course.in_turn == limits.in_turn:
        hit = called.cached / called.tokens if called and called.cached is not None and called.tokens else None
        shown = () if hit is None else (f"hit_ratio={round(hit, 3):g}",)
        yield Symptom("frequent_compaction", LOW, (f"in_turn={course.in_turn}", *shown))


def revived(audit: Audit | None) -> Iterator[Symptom]:
    """The summary tells a rule that was superseded and not the one that took its place: the agent will follow it."""
    told = tuple(f"{old}:superseded_by={new}" for old, new in audit.revived[:MAX_LISTED]) if audit else ()
    if told:
        yield Symptom("superseded_revived", HIGH, told)


def losses(audit: Audit | None, fresh: Sequence[str], number: int | None) -> Iterator[Symptom]:
    """What this compaction lost, told once for each item, and what it says wrongly of the work."""
    for kind, name in _LOSSES.items():
        gone = [s for s in (audit.standings if audit else ()) if s.item.constraint.kind == kind and s.item.id in fresh]
        severity = HIGH if any(s.item.constraint.severity == HIGH for s in gone) else LOW
        if gone:
            yield Symptom(name, severity, tuple(f"{s.item.id}:lost_at={number}" for s in gone[:MAX_LISTED]))
    wrong = audit.mismatches[:MAX_LISTED] if audit else ()
    if wrong:
        told = tuple(f"{w.id}:{w.was}->{w.became}:evidence={','.join(w.evidence) or 'none'}" for w in wrong)
        yield Symptom("state_mismatch", HIGH, told)


def reset(events: int) -> Iterator[Symptom]:
    """The prefix was broken more than once between two calls."""
    if events > 1:
        yield Symptom("double_prefix_reset", LOW, (f"count={events}",))


def doubled(earlier: Compaction, event: Compaction) -> Symptom:
    """It runs on a history that was just compacted, with no call between the two."""
    begun = event.begun if event.begun is not None else event.ended
    since = earlier.ended if earlier.ended is not None else earlier.begun
    after = () if begun is None or since is None else (f"interval_seconds={round(begun - since, 3):g}",)
    tokens = () if event.before.tokens is None else (f"before={event.before.tokens}",)
    return Symptom("double_compaction", HIGH, (f"first={earlier.id}", *after, *tokens))


def broken(ids: Iterable[str]) -> Iterator[Symptom]:
    """The history that was left begins between a call and its result."""
    named = tuple(f"result_without_call={spelling.name(name)}" for name in ids)[:MAX_LISTED]
    if named:
        yield Symptom("broken_tool_pair", HIGH, named)


def stuck(event: Compaction) -> Iterator[Symptom]:
    """The history is too long to be summarised, so that nothing can make it shorter."""
    if event.outcome == FAILED and event.reason == "prompt_too_long":
        yield Symptom("session_stuck", HIGH, () if event.usage is None else (f"usage={event.usage:g}",))
