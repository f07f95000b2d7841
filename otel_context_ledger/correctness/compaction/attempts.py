"""Summarising calls of a session, as long as it is not known what becomes of what they gave.

They belong to a compaction that the program told of, or to one that a call of the agent shows; or they were in vain.
"""

from __future__ import annotations

from dataclasses import replace

from otel_context_ledger.correctness.compaction import beginning, settlement, symptoms
from otel_context_ledger.correctness.compaction import happenings as h
from otel_context_ledger.correctness.compaction.course import Course, Rules
from otel_context_ledger.correctness.compaction.event import DONE, EMPTY, FAILED, SKIPPED, Compaction, noted
from otel_context_ledger.correctness.compaction.settlement import MAX_WAITS, Told


def summarised(course: Course, told: h.Summarised, rules: Rules) -> Told:
    """One more summarising call."""
    tried = course.trying
    if tried is None and course.knows(f"c-{told.id}"):
        return course, ()
    if tried is None:
        first = h.Begun(told.at, f"c-{told.id}")
        tried = replace(beginning.started(course, first, rules), symptoms=())
    priced = told.cost is not None
    tried = replace(
        tried, ended=told.at, outcome=told.outcome, attempts=tried.attempts + 1,
        reason=told.reason or (f"{EMPTY}_summary" if told.outcome == EMPTY else None),
        cost=(tried.cost or 0.0) + (told.cost or 0.0) if priced or tried.cost is not None else None,
    )  # fmt: skip
    tried = beginning.refused(tried, told.failure)
    course = replace(course, trying=tried, tried_for=0)
    return _vain(course, tried, rules) if not course.begun else (course, ())


def _vain(course: Course, tried: Compaction, rules: Rules) -> Told:
    """Attempts in a row that came to nothing are told as a loop once, before it is known how they end."""
    limits = rules.thresholds
    if tried.outcome == DONE or tried.attempts < limits.loop or tried.has("compaction_loop"):
        return course, ()
    streak = replace(course.streak, count=max(tried.attempts, course.streak.count))
    tried = replace(tried, symptoms=noted(tried.symptoms, symptoms.looping(tried, streak, limits)))
    if not tried.has("compaction_loop"):  # it was told already in this row
        return course, ()
    return replace(course, trying=tried, streak=replace(course.streak, told=True)), (tried,)


def joined(course: Course, event: Compaction) -> Compaction:
    """With the summarising calls that were made for it."""
    tried = course.trying
    if tried is None:
        return event
    reason = tried.reason if event.reason is None and tried.outcome in (FAILED, EMPTY) else event.reason
    return replace(
        event, attempts=tried.attempts, cost=tried.cost, reason=reason, begun=event.begun or tried.begun,
        before=event.before if event.before.tokens is not None else tried.before,
    )  # fmt: skip


def abandoned(course: Course, rules: Rules) -> Told:
    """Summarising calls after which the agent went on as before: in vain if they failed. A summary may be used later,
    or be none of the agent's."""
    tried = course.trying
    if tried is None or course.begun:
        return course, ()
    if tried.outcome in (FAILED, EMPTY):
        event = beginning.audited(course, tried, "", rules) if tried.outcome == EMPTY else tried
        return settlement.over(replace(course, trying=None), event, rules)
    waits = course.tried_for + 1
    return dropped(course, rules) if waits >= MAX_WAITS else (replace(course, tried_for=waits), ())


def dropped(course: Course, rules: Rules, taken: str | None = None) -> Told:
    """Summarising calls that are not waited for any longer. If they were told of, under an id that was not `taken` for
    what became of them, it is told how they ended."""
    tried, course = course.trying, replace(course, trying=None)
    if tried is None or tried.id == taken or not tried.has("compaction_loop"):
        return course, ()
    vain = tried.outcome in (FAILED, EMPTY)
    return settlement.over(course, tried if vain else replace(tried, outcome=SKIPPED, reason="summary_unused"), rules)
