"""The course of a session after one more happening, and the compactions that are new by it or known better.

An event may be given several times under its id, the last time `settled`: that is when it is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from otel_context_ledger.correctness.compaction import audit as audits
from otel_context_ledger.correctness.compaction import happenings as h
from otel_context_ledger.correctness.compaction import symptoms
from otel_context_ledger.correctness.compaction.course import MAX_OPEN, Course, Last, Pending, Rules
from otel_context_ledger.correctness.compaction.event import (
    DONE,
    EMPTY,
    FAILED,
    ORPHANED,
    SKIPPED,
    Compaction,
    Limits,
    Measure,
    noted,
)
from otel_context_ledger.correctness.compaction.failures import PROMPT_TOO_LONG, Failure
from otel_context_ledger.correctness.compaction.manifest import Manifest
from otel_context_ledger.correctness.compaction.settlement import settle, settle_all
from otel_context_ledger.records import changed

Told: TypeAlias = tuple[Course, tuple[Compaction, ...]]
# A compaction that no call shows is settled as it is after so many.
MAX_WAITS = 8


def fold(course: Course, happening: h.Happening, rules: Rules) -> Told:
    """The course after a happening, and what is to be told."""
    return _FOLDS[type(happening)](course, happening, rules)


def fold_all(course: Course, happened: Iterable[h.Happening], rules: Rules) -> Told:
    """The course after several, in their order."""
    told: list[Compaction] = []
    for happening in happened:
        course, more = fold(course, happening, rules)
        told += more
    return course, tuple(told)


def manifest(course: Course, rules: Rules) -> Manifest:
    """What must survive a compaction of this session now."""
    return rules.declared.joined(course.manifest.items)


def _declared(course: Course, told: h.Declared, rules: Rules) -> Told:
    return replace(course, manifest=course.manifest.joined((told.item,))), ()


def _begun(course: Course, told: h.Begun, rules: Rules) -> Told:
    if course.knows(told.id) or any(event.id == told.id for event in course.begun):
        return course, ()
    event = _started(course, told, rules)
    dropped, begun = course.begun[: 1 - MAX_OPEN], course.begun[1 - MAX_OPEN :]
    course, given_up = _orphaned(course, dropped, rules, "displaced")
    return replace(course, begun=(*begun, event)), (*given_up, event)


def _started(course: Course, told: h.Begun, rules: Rules) -> Compaction:
    wanted = manifest(course, rules).text
    event = Compaction(
        told.id, begun=told.at, kind=told.kind, trigger=told.trigger or ("reactive" if course.overflowed else None),
        before=Measure(None if course.pending else course.last.tokens, told.tokens),
        limits=_limits(course, told, rules),
        source_range=told.source_range, manifest_hash=rules.digest(wanted) if wanted else None,
        identity_before=course.last.identity,
    )  # fmt: skip
    return _reentrant(course, event)


def _limits(course: Course, told: h.Begun, rules: Rules) -> Limits:
    given, usual = told.limits, rules.limits
    return Limits(
        given.window or course.last.window or usual.window,
        usual.ratio if given.ratio is None and given.tokens is None else given.ratio,
        usual.tokens if given.ratio is None and given.tokens is None else given.tokens,
    )


def _reentrant(course: Course, event: Compaction) -> Compaction:
    under_way = next((earlier for earlier in (course.in_force, *course.begun) if earlier and earlier.whole), None)
    if not event.whole or under_way is None:
        return event
    return replace(event, symptoms=(symptoms.doubled(under_way, event),))


def _ended(course: Course, told: h.Ended, rules: Rules) -> Told:
    if course.knows(told.id):
        return course, ()
    event = next((begun for begun in course.begun if begun.id == told.id), None)
    if event is None:
        event = replace(_started(course, h.Begun(told.at, told.id), rules), begun=None)
    course = replace(course, begun=tuple(begun for begun in course.begun if begun.id != told.id))
    event, (course, dropped) = _refused(_tried(course, event), told.failure), _dropped(course, rules)
    blank = told.summary is not None and not told.summary.strip() and event.whole
    outcome = EMPTY if told.outcome == DONE and blank else told.outcome
    reason = told.reason or event.reason or (f"{EMPTY}_summary" if outcome == EMPTY else None)
    event = replace(
        event, ended=told.at, outcome=outcome, reason=None if outcome == DONE else reason,
        after=Measure(None, told.tokens),
    )  # fmt: skip
    event = _audited(course, event, told.summary, rules) if outcome in (DONE, EMPTY) else event
    course, told_of = _waiting(course, event, rules) if outcome == DONE else _over(course, event, rules)
    return course, (*dropped, *told_of)


def _tried(course: Course, event: Compaction) -> Compaction:
    """With the summarising calls that were made for it."""
    tried = course.trying
    if tried is None:
        return event
    reason = tried.reason if event.reason is None and tried.outcome in (FAILED, EMPTY) else event.reason
    return replace(
        event, attempts=tried.attempts, cost=tried.cost, reason=reason, begun=event.begun or tried.begun,
        before=event.before if event.before.tokens is not None else tried.before,
    )  # fmt: skip


def _refused(event: Compaction, failure: Failure | None) -> Compaction:
    """With what an error said of lengths."""
    if failure is None:
        return event
    window = failure.tokens.get("limit") if failure.prompt is not None else None
    return replace(
        event, reason=failure.reason,
        before=event.before if event.before.tokens is not None else Measure(failure.prompt),
        limits=replace(event.limits, window=event.limits.window or window),
    )  # fmt: skip


def _audited(course: Course, event: Compaction, summary: str | None, rules: Rules) -> Compaction:
    if not event.whole:
        return event
    found = audits.check(manifest(course, rules), summary, rules.validator)
    return replace(event, audit=found, summary_hash=rules.digest(summary) if summary and summary.strip() else None)


def _waiting(course: Course, event: Compaction, rules: Rules) -> Told:
    """A whole one takes the place of another that no call has shown."""
    gone = [p.event for p in course.pending if p.event.whole and event.whole]
    kept = tuple(p for p in course.pending if p.event not in gone)
    course, told = settle_all(replace(course, pending=kept), gone, rules)
    course, more = _queued(course, Pending(event), rules)
    return course, (*told, *more)


def _queued(course: Course, waiting: Pending, rules: Rules) -> Told:
    """One more that waits; of too many the oldest is settled as it is."""
    every = (*course.pending, waiting)
    oldest = [p.event for p in every[:-MAX_OPEN]]
    course, told = settle_all(replace(course, pending=every[-MAX_OPEN:]), oldest, rules)
    return course, (*told, waiting.event)


def _over(course: Course, event: Compaction, rules: Rules) -> Told:
    course, event = settle(course, event, rules)
    return course, (event,)


def _summarised(course: Course, told: h.Summarised, rules: Rules) -> Told:
    tried = course.trying
    if tried is None and course.knows(f"c-{told.id}"):
        return course, ()
    if tried is None:
        first = h.Begun(told.at, f"c-{told.id}")
        tried = replace(_started(course, first, rules), symptoms=())
    priced = told.cost is not None
    tried = replace(
        tried, ended=told.at, outcome=told.outcome, attempts=tried.attempts + 1,
        reason=told.reason or (f"{EMPTY}_summary" if told.outcome == EMPTY else None),
        cost=(tried.cost or 0.0) + (told.cost or 0.0) if priced or tried.cost is not None else None,
    )  # fmt: skip
    tried = _refused(tried, told.failure)
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


def _opened(course: Course, told: h.Opened, rules: Rules) -> Told:
    smaller = bool(told.window and course.last.window and told.window < course.last.window)
    if course.turn_over:
        course = changed(course, in_turn=0, turn_over=False)
    if told.window not in (None, course.last.window):
        course = changed(course, last=changed(course.last, window=told.window))
    if told.rewrite is None or _replayed(course, told, told.rewrite, rules):
        return _watched(course, told, rules)
    course, found = _rewritten(course, told, told.rewrite, "window_downshift" if smaller else None, rules)
    course, more = _watched(course, told, rules)
    return course, (*found, *more)


def _replayed(course: Course, told: h.Opened, rewrite: h.Rewrite, rules: Rules) -> bool:
    """A summary that was noted before, and is only sent again."""
    return any(course.knows(mark) for mark in (f"c-{told.id}", *_marks(rewrite, rules)))


def _marks(rewrite: h.Rewrite, rules: Rules) -> tuple[str, ...]:
    digest = rules.digest(rewrite.summary) if rewrite.summary else None
    return tuple(mark for mark in (rewrite.id, digest) if mark)


def _rewritten(course: Course, told: h.Opened, rewrite: h.Rewrite, trigger: str | None, rules: Rules) -> Told:
    """What the ledger saw belongs to the compaction that waits to be seen, or else is one that nobody told."""
    course = course.remembers(_marks(rewrite, rules))
    micro = rewrite.kind == "micro"
    waiting = next((p for p in course.pending if p.event.whole != micro), None)
    if waiting is not None:
        event = _completed(course, waiting.event, rewrite, rules)
        pending = tuple(replace(p, event=event, seen=True) if p is waiting else p for p in course.pending)
        return replace(course, pending=pending), (event,)
    course, dropped, event = _unwaited(course, told, rewrite, trigger, rules)
    event = replace(event, ended=told.at, outcome=DONE, reason=None)
    event = _audited(course, event, rewrite.summary if rewrite.readable else None, rules)
    course, more = _queued(course, Pending(event, True), rules)
    return course, (*dropped, *more)


def _unwaited(
    course: Course, told: h.Opened, rewrite: h.Rewrite, trigger: str | None, rules: Rules
) -> tuple[Course, tuple[Compaction, ...], Compaction]:
    """The compaction of a history of which no end was told: one that the program began, or one that nobody told."""
    micro = rewrite.kind == "micro"
    begun = next((event for event in course.begun if event.whole != micro), None)
    tried, course = course, replace(course, begun=tuple(event for event in course.begun if event is not begun))
    if begun is None:
        first = course.trying.id if course.trying and not micro else f"c-{told.id}"
        known = h.Begun(told.at, rewrite.id or first, rewrite.kind, trigger, None, rewrite.source_range)
        begun = _started(replace(course, begun=()), known, rules)
    if micro:
        return course, (), begun
    course, dropped = _dropped(course, rules, begun.id)
    event = _tried(tried, begun)
    return course, dropped, replace(event, source_range=event.source_range or rewrite.source_range)


def _completed(course: Course, event: Compaction, rewrite: h.Rewrite, rules: Rules) -> Compaction:
    if event.whole and rewrite.readable and rewrite.summary and (event.audit is None or not event.audit.readable):
        event = _audited(course, event, rewrite.summary, rules)
    return replace(event, source_range=event.source_range or rewrite.source_range)


def _watched(course: Course, told: h.Opened, rules: Rules) -> Told:
    """What the call that was opened shows of the compactions that wait for it. One that continues nothing, while others
    of its session did, is another agent's."""
    if not course.pending:
        return course, ()
    waits, over = list[Pending](), list[Compaction]()
    shows = told.extends is False or (told.extends is None and course.last.tokens is None)
    for waiting in course.pending:
        if waiting.seen or shows or waiting.event.kind == "provider":
            event = _measured(waiting.event, told) if len(course.pending) == 1 else waiting.event
            waits.append(Pending(_shown(event, told, rules), True))
        elif waiting.event.summary_hash is None and _is_unchanged(course, told):
            over.append(replace(waiting.event, outcome=SKIPPED, reason="history_unchanged"))
        elif waiting.waits + 1 >= MAX_WAITS:
            over.append(waiting.event)
        else:
            waits.append(Pending(waiting.event, False, waiting.waits + 1))
    return settle_all(replace(course, pending=tuple(waits)), over, rules)


def _is_unchanged(course: Course, told: h.Opened) -> bool:
    """Whether the history of the session's last call only grew: that of another agent's call tells nothing."""
    known = told.continues is not None and course.last.id is not None
    return told.extends is True and not (known and told.continues != course.last.id)


def _measured(event: Compaction, told: h.Opened) -> Compaction:
    """With the prompt that was compacted, which need not be the session's last: agents may share a session."""
    if told.before is None or told.extends is not False or event.has("double_compaction"):
        return event
    return replace(event, before=Measure(told.before, event.before.estimate))


def _shown(event: Compaction, told: h.Opened, rules: Rules) -> Compaction:
    if event.audit is not None:
        found = audits.elsewhere(event.audit, "policy", told.policy, rules.validator)
        event = replace(event, audit=audits.elsewhere(found, "history", told.kept, rules.validator))
    return replace(event, symptoms=noted(event.symptoms, symptoms.broken(told.broken)))


def _called(course: Course, told: h.Called, rules: Rules) -> Told:
    if told.reason is not None:
        return replace(course, overflowed=told.reason == PROMPT_TOO_LONG), ()
    seen = [p.event for p in course.pending if p.seen]
    course, told_of = _abandoned(course, rules)
    if seen:
        course = replace(course, pending=tuple(p for p in course.pending if not p.seen))
        course, more = settle_all(course, seen, rules, told)
        told_of = (*told_of, *more)
    if told.item is not None or told.cleared is not None:
        course, more = _provided(course, told, rules)
        told_of = (*told_of, *more)
    course = changed(
        course, since=course.since + 1, overflowed=False, turn_over=told.turn_ended,
        last=Last(told.tokens, told.identity, course.last.window, told.id),
    )  # fmt: skip
    return course, told_of


def _provided(course: Course, told: h.Called, rules: Rules) -> Told:
    """What the provider did to the history while it answered. A summary that it keeps is never sent, so that no later
    call shows it; contents that it clears are sent again each time, and are news where they are more than before."""
    if told.item is not None and not course.knows(told.item):
        event = _started(course, h.Begun(told.at, told.item, "provider", "auto"), rules)
        event = replace(event, ended=told.at, outcome=DONE, reason=None)
        return _waiting(course, _audited(course, event, None, rules), rules)
    name, cleared = f"c-{told.id}-cleared", told.cleared or 0
    if cleared <= course.cleared or course.knows(name):
        return course, ()
    sent = None if told.tokens is None else told.tokens + cleared
    event = Compaction(
        name, told.at, told.at, "micro", "auto", DONE, before=Measure(sent), after=Measure(told.tokens),
        identity_before=course.last.identity, identity_after=told.identity,
    )  # fmt: skip
    return _over(replace(course, cleared=cleared), event, rules)


def _abandoned(course: Course, rules: Rules) -> Told:
    """Summarising calls after which the agent went on as before: in vain if they failed. A summary may be used later,
    or be none of the agent's."""
    tried = course.trying
    if tried is None or course.begun:
        return course, ()
    if tried.outcome in (FAILED, EMPTY):
        event = _audited(course, tried, "", rules) if tried.outcome == EMPTY else tried
        return _over(replace(course, trying=None), event, rules)
    waits = course.tried_for + 1
    return _dropped(course, rules) if waits >= MAX_WAITS else (replace(course, tried_for=waits), ())


def _dropped(course: Course, rules: Rules, taken: str | None = None) -> Told:
    """Summarising calls that are not waited for any longer. If they were told of, under an id that was not `taken` for
    what became of them, it is told how they ended."""
    tried, course = course.trying, replace(course, trying=None)
    if tried is None or tried.id == taken or not tried.has("compaction_loop"):
        return course, ()
    vain = tried.outcome in (FAILED, EMPTY)
    return _over(course, tried if vain else replace(tried, outcome=SKIPPED, reason="summary_unused"), rules)


def _orphaned(course: Course, events: Iterable[Compaction], rules: Rules, reason: str) -> Told:
    return settle_all(course, [replace(event, outcome=ORPHANED, reason=reason) for event in events], rules)


def _resumed(course: Course, told: h.Resumed, rules: Rules) -> Told:
    course, dropped = _dropped(course, rules)
    ended = [event for event in course.begun if event.id not in told.running]
    begun = tuple(event for event in course.begun if event.id in told.running)
    course, orphans = _orphaned(replace(course, begun=begun), ended, rules, "process_ended")
    return course, (*dropped, *orphans)


def _closed(course: Course, told: h.Closed, rules: Rules) -> Told:
    """What is under way stays so: the process that resumes the session tells how it ended."""
    course, vain = _abandoned(course, rules)
    course, dropped = _dropped(course, rules)
    waiting = [p.event for p in course.pending]
    course, told_of = settle_all(replace(course, pending=()), waiting, rules)
    return course, (*vain, *dropped, *told_of)


_FOLDS: Mapping[type, Callable[[Course, Any, Rules], Told]] = {
    h.Declared: _declared,
    h.Begun: _begun,
    h.Ended: _ended,
    h.Summarised: _summarised,
    h.Opened: _opened,
    h.Called: _called,
    h.Resumed: _resumed,
    h.Closed: _closed,
}
