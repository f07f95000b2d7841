"""A compaction at its beginning: what is known of it then, and what had to survive it; why it was refused.

Whether what had to survive did is the audit's, what becomes of it the settlement's.
"""

from __future__ import annotations

from dataclasses import replace

from otel_context_ledger.correctness.compaction import audit as audits
from otel_context_ledger.correctness.compaction import happenings as h
from otel_context_ledger.correctness.compaction import symptoms
from otel_context_ledger.correctness.compaction.course import Course, Rules
from otel_context_ledger.correctness.compaction.event import Compaction, Limits, Measure
from otel_context_ledger.correctness.compaction.failures import Failure
from otel_context_ledger.correctness.compaction.manifest import Manifest


def started(course: Course, told: h.Begun, rules: Rules) -> Compaction:
    """A compaction that begins, with what the session knows of it."""
    wanted = _wanted(course, rules).text
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


def refused(event: Compaction, failure: Failure | None) -> Compaction:
    """With what an error said of lengths."""
    if failure is None:
        return event
    window = failure.tokens.get("limit") if failure.prompt is not None else None
    return replace(
        event, reason=failure.reason,
        before=event.before if event.before.tokens is not None else Measure(failure.prompt),
        limits=replace(event.limits, window=event.limits.window or window),
    )  # fmt: skip


def audited(course: Course, event: Compaction, summary: str | None, rules: Rules) -> Compaction:
    """With what its summary holds of what had to survive; `None` is a summary that cannot be read."""
    if not event.whole:
        return event
    found = audits.check(_wanted(course, rules), summary, rules.validator)
    return replace(event, audit=found, summary_hash=rules.digest(summary) if summary and summary.strip() else None)


def _wanted(course: Course, rules: Rules) -> Manifest:
    return rules.declared.joined(course.manifest.items)
