"""How a compaction waits and comes to its end: what it did to the session's course, and everything odd about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from otel_context_ledger.correctness.compaction import symptoms
from otel_context_ledger.correctness.compaction.course import MAX_OPEN, Course, Pending, Rules, Streak, fared
from otel_context_ledger.correctness.compaction.event import DONE, SKIPPED, Compaction, Measure, Symptom, noted
from otel_context_ledger.correctness.compaction.happenings import Called

Told: TypeAlias = tuple[Course, tuple[Compaction, ...]]
"""A course, and the compactions that are to be told."""
# A compaction that no call shows is settled as it is after so many.
MAX_WAITS = 8


def settle(
    course: Course, event: Compaction, rules: Rules, called: Called | None = None, together: int = 1
) -> tuple[Course, Compaction]:
    """The course after a compaction, and its event for the last time. `called` is the call that showed what it did,
    `together` how many compactions that call followed."""
    course, event = _done(course, event, called) if event.outcome == DONE else (course, event)
    attempted = event.whole and event.outcome != SKIPPED
    streak = _streak(course, event, rules) if attempted else course.streak
    fates, fresh = fared(course.fates, event.audit if event.outcome == DONE else None, event.number)
    noticed = [
        *_odd(event, streak, called, rules),
        *(symptoms.frequent(course, called, rules.thresholds) if event.outcome == DONE and event.whole else ()),
        *symptoms.losses(event.audit, fresh, event.number),
        *symptoms.revived(event.audit),
        *symptoms.reset(together),
    ]
    event = replace(event, symptoms=noted(event.symptoms, noticed), settled=True)
    course = replace(
        course, fates=fates, streak=replace(streak, told=streak.told or event.has("compaction_loop")),
        since=0 if attempted else course.since,
    )  # fmt: skip
    return course.remembers((event.id,)), event


def _done(course: Course, event: Compaction, called: Called | None) -> tuple[Course, Compaction]:
    """A compaction that was done becomes the latest of its session."""
    if called is not None:
        event = replace(
            event, after=Measure(called.tokens, event.after.estimate), identity_after=called.identity,
            rebuilt=None if called.tokens is None or called.cached is None else max(0, called.tokens - called.cached),
        )  # fmt: skip
    if not event.whole:
        return course, event
    event = replace(event, number=course.count + 1, in_turn=course.in_turn + 1, parent_hash=course.summary_hash)
    course = replace(
        course, count=course.count + 1, in_turn=course.in_turn + 1, summary_hash=event.summary_hash, event=event.id,
        trusted=event.trusted, cleared=0,
    )  # fmt: skip
    return course, event


def _streak(course: Course, event: Compaction, rules: Rules) -> Streak:
    goes_on = course.streak.count > 0 and course.since < rules.thresholds.loop_calls
    before = course.streak if goes_on else Streak()
    sizes = [size for size in (before.floor, event.after.reported) if size is not None]
    return Streak(before.count + 1, min(sizes, default=None), before.told)


def _odd(event: Compaction, streak: Streak, called: Called | None, rules: Rules) -> Iterator[Symptom]:
    limits = rules.thresholds
    yield from symptoms.early(event, limits)
    yield from symptoms.diverging(event, limits)
    yield from symptoms.ineffective(event, limits)
    if event.whole and event.outcome != SKIPPED:
        yield from symptoms.looping(event, streak, limits)
    yield from symptoms.unreused(event, called, limits)
    yield from symptoms.stuck(event)


def settle_all(
    course: Course, events: Sequence[Compaction], rules: Rules, called: Called | None = None
) -> tuple[Course, tuple[Compaction, ...]]:
    """Several that one call followed: what it shows is put down to the last of them."""
    told: list[Compaction] = []
    for event in events:
        last = event is events[-1]
        course, settled = settle(course, event, rules, called if last else None, len(events) if last else 1)
        told.append(settled)
    return course, tuple(told)


def wait(course: Course, event: Compaction, rules: Rules, seen: str | None = None) -> Told:
    """One that was done waits for the call that shows it; a whole one takes the place of another that waits."""
    gone = [p.event for p in course.pending if p.event.whole and event.whole]
    kept = tuple(p for p in course.pending if p.event not in gone)
    course, told = settle_all(replace(course, pending=kept), gone, rules)
    course, more = queue(course, Pending(event, seen), rules)
    return course, (*told, *more)


def queue(course: Course, waiting: Pending, rules: Rules) -> Told:
    """One more that waits; of too many the oldest is settled as it is."""
    every = (*course.pending, waiting)
    oldest = [p.event for p in every[:-MAX_OPEN]]
    course, told = settle_all(replace(course, pending=every[-MAX_OPEN:]), oldest, rules)
    return course, (*told, waiting.event)


def over(course: Course, event: Compaction, rules: Rules) -> Told:
    """One of which no call will show anything."""
    course, event = settle(course, event, rules)
    return course, (event,)
