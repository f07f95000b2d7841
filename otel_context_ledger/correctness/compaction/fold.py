"""The course of a session after one more happening, and the compactions that are new by it or known better.

An event may be given several times under its id, the last time `settled`: that is when it is counted. What a program
tells is folded here, what its calls show in `attempts` and `sightings`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from otel_context_ledger.correctness.compaction import attempts, beginning, settlement, sightings
from otel_context_ledger.correctness.compaction import happenings as h
from otel_context_ledger.correctness.compaction.course import MAX_OPEN, Course, Rules
from otel_context_ledger.correctness.compaction.event import DONE, EMPTY, ORPHANED, Compaction, Measure
from otel_context_ledger.correctness.compaction.settlement import Told, settle_all


def fold(course: Course, happening: h.Happening, rules: Rules) -> Told:
    """The course after a happening, and what is to be told."""
    return _FOLDS[type(happening)](course, happening, rules)


def _declared(course: Course, told: h.Declared, rules: Rules) -> Told:
    return replace(course, manifest=course.manifest.joined((told.item,))), ()


def _begun(course: Course, told: h.Begun, rules: Rules) -> Told:
    if course.knows(told.id) or any(event.id == told.id for event in course.begun):
        return course, ()
    event = beginning.started(course, told, rules)
    dropped, begun = course.begun[: 1 - MAX_OPEN], course.begun[1 - MAX_OPEN :]
    course, given_up = _orphaned(course, dropped, rules, "displaced")
    return replace(course, begun=(*begun, event)), (*given_up, event)


def _ended(course: Course, told: h.Ended, rules: Rules) -> Told:
    if course.knows(told.id):
        return course, ()
    event = next((begun for begun in course.begun if begun.id == told.id), None)
    if event is None:
        event = replace(beginning.started(course, h.Begun(told.at, told.id), rules), begun=None)
    course = replace(course, begun=tuple(begun for begun in course.begun if begun.id != told.id))
    event = _as_told(beginning.refused(attempts.joined(course, event), told.failure), told)
    course, dropped = attempts.dropped(course, rules)
    if event.outcome in (DONE, EMPTY):
        event = beginning.audited(course, event, told.summary, rules)
    course, told_of = (settlement.wait if event.outcome == DONE else settlement.over)(course, event, rules)
    return course, (*dropped, *told_of)


def _as_told(event: Compaction, told: h.Ended) -> Compaction:
    """An empty text is no summary, whatever the program thinks of it."""
    blank = told.summary is not None and not told.summary.strip() and event.whole
    outcome = EMPTY if told.outcome == DONE and blank else told.outcome
    reason = told.reason or event.reason or (f"{EMPTY}_summary" if outcome == EMPTY else None)
    return replace(
        event, ended=told.at, outcome=outcome, reason=None if outcome == DONE else reason,
        after=Measure(None, told.tokens),
    )  # fmt: skip


def _orphaned(course: Course, events: Iterable[Compaction], rules: Rules, reason: str) -> Told:
    return settle_all(course, [replace(event, outcome=ORPHANED, reason=reason) for event in events], rules)


def _resumed(course: Course, told: h.Resumed, rules: Rules) -> Told:
    course, dropped = attempts.dropped(course, rules)
    ended = [event for event in course.begun if event.id not in told.running]
    begun = tuple(event for event in course.begun if event.id in told.running)
    course, orphans = _orphaned(replace(course, begun=begun), ended, rules, "process_ended")
    return course, (*dropped, *orphans)


def _closed(course: Course, told: h.Closed, rules: Rules) -> Told:
    """What is under way stays so: the process that resumes the session tells how it ended."""
    course, vain = attempts.abandoned(course, rules)
    course, dropped = attempts.dropped(course, rules)
    waiting = [p.event for p in course.pending]
    course, told_of = settle_all(replace(course, pending=()), waiting, rules)
    return course, (*vain, *dropped, *told_of)


_FOLDS: Mapping[type, Callable[[Course, Any, Rules], Told]] = {
    h.Declared: _declared,
    h.Begun: _begun,
    h.Ended: _ended,
    h.Summarised: attempts.summarised,
    h.Opened: sightings.opened,
    h.Called: sightings.called,
    h.Resumed: _resumed,
    h.Closed: _closed,
}
