"""What calls of the agent show of its session's compactions: that one happened, what it left, what the provider did."""

from __future__ import annotations

from dataclasses import replace

from otel_context_ledger.correctness.compaction import attempts, beginning, settlement, symptoms
from otel_context_ledger.correctness.compaction import audit as audits
from otel_context_ledger.correctness.compaction import happenings as h
from otel_context_ledger.correctness.compaction.course import MAX_KNOWN, Course, Last, Pending, Rules
from otel_context_ledger.correctness.compaction.event import DONE, SKIPPED, Compaction, Measure, noted
from otel_context_ledger.correctness.compaction.failures import OVERFLOWS
from otel_context_ledger.correctness.compaction.settlement import MAX_WAITS, Told, settle_all
from otel_context_ledger.records import changed

_NOTHING = (None, None, None)


def opened(course: Course, told: h.Opened, rules: Rules) -> Told:
    """A call is about to be made."""
    # Agents of one session may ask models of their own.
    before = course.last.window if told.continues is None else told.window_before
    smaller = bool(told.window and before and told.window < before)
    if course.turn_over:
        course = changed(course, in_turn=0, turn_over=False)
    if told.window not in (None, course.last.window):
        course = changed(course, last=changed(course.last, window=told.window))
    found: tuple[Compaction, ...] = ()
    if told.rewrite is not None and not _replayed(course, told, told.rewrite, rules):
        course, found = _rewritten(course, told, told.rewrite, "window_downshift" if smaller else None, rules)
    course, more = _watched(course, told, rules)
    return _carrying(course, told), (*found, *more)


def _carrying(course: Course, told: h.Opened) -> Course:
    """Which calls build on the summary in force: the one that shows it, those that go on from one that does, and the
    first of a process that goes on with the session."""
    if course.carried == _NOTHING:
        return course
    if any(p.event.whole and p.seen == told.id for p in course.pending):
        return changed(course, carriers=(told.id,))
    goes_on = told.continues in course.carriers if told.continues is not None else course.last.id is None
    return changed(course, carriers=(*course.carriers, told.id)[-MAX_KNOWN:]) if goes_on else course


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
        event = replace(event, trigger=event.trigger or trigger)
        pending = tuple(replace(p, event=event, seen=told.id) if p is waiting else p for p in course.pending)
        return replace(course, pending=pending), (event,)
    course, dropped, event = _unwaited(course, told, rewrite, trigger, rules)
    event = replace(event, ended=told.at, outcome=DONE, reason=None)
    event = beginning.audited(course, event, rewrite.summary if rewrite.readable else None, rules)
    course, more = settlement.queue(course, Pending(event, told.id), rules)
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
        begun = beginning.started(replace(course, begun=()), known, rules)
    if micro:
        return course, (), begun
    course, dropped = attempts.dropped(course, rules, begun.id)
    event = attempts.joined(tried, begun)
    return course, dropped, replace(event, source_range=event.source_range or rewrite.source_range)


def _completed(course: Course, event: Compaction, rewrite: h.Rewrite, rules: Rules) -> Compaction:
    if event.whole and rewrite.readable and rewrite.summary and (event.audit is None or not event.audit.readable):
        event = beginning.audited(course, event, rewrite.summary, rules)
    return replace(event, source_range=event.source_range or rewrite.source_range)


def _watched(course: Course, told: h.Opened, rules: Rules) -> Told:
    """What the call that was opened shows of the compactions that wait for it. One that continues nothing, while others
    of its session did, is another agent's, and so is one that is made beside the call that showed it."""
    if not course.pending:
        return course, ()
    waits, over = list[Pending](), list[Compaction]()
    shows = told.extends is False or (told.extends is None and course.last.tokens is None)
    for waiting in course.pending:
        again = waiting.seen is not None and waiting.seen in (told.id, told.continues)
        if again or shows or (waiting.seen is None and waiting.event.kind == "provider"):
            event = _measured(waiting.event, told) if len(course.pending) == 1 else waiting.event
            waits.append(Pending(_shown(event, told, rules), told.id))
        elif waiting.seen is None and waiting.event.summary_hash is None and _is_unchanged(course, told):
            over.append(replace(waiting.event, outcome=SKIPPED, reason="history_unchanged"))
        elif waiting.waits + 1 >= MAX_WAITS:
            over.append(waiting.event)
        else:
            waits.append(replace(waiting, waits=waiting.waits + 1))
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


def called(course: Course, told: h.Called, rules: Rules) -> Told:
    """It ended: what it was the first to show is settled by it."""
    if told.reason is not None:
        return replace(course, overflowed=told.reason in OVERFLOWS), ()
    seen = [p for p in course.pending if p.seen is not None and told.id in (None, p.seen)]
    course, told_of = attempts.abandoned(course, rules)
    if seen:
        course = replace(course, pending=tuple(p for p in course.pending if p not in seen))
        course, more = settle_all(course, [p.event for p in seen], rules, told)
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
        event = beginning.started(course, h.Begun(told.at, told.item, "provider", "auto"), rules)
        event = replace(event, ended=told.at, outcome=DONE, reason=None)
        return settlement.wait(course, beginning.audited(course, event, None, rules), rules, told.id)
    name, cleared = f"c-{told.id}-cleared", told.cleared or 0
    if cleared <= course.cleared or course.knows(name):
        return course, ()
    sent = None if told.tokens is None else told.tokens + cleared
    event = Compaction(
        name, told.at, told.at, "micro", "auto", DONE, before=Measure(sent), after=Measure(told.tokens),
        identity_before=course.last.identity, identity_after=told.identity,
    )  # fmt: skip
    return settlement.over(replace(course, cleared=cleared), event, rules)
