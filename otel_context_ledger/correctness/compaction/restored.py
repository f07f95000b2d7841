"""A session's course in the ledger file: compactions as rows, and the course that a later process goes on with.

Rows hold what leaves the process anyway. Texts of constraints do not, so they are declared anew there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from otel_context_ledger.correctness.compaction.course import MAX_OPEN, Course, Fate
from otel_context_ledger.correctness.compaction.event import DONE, KINDS, TRIGGERS, Compaction, Measure
from otel_context_ledger.correctness.compaction.report import fields

Row = Mapping[str, object]


def row(event: Compaction) -> dict[str, object]:
    """A compaction as it is kept: the registry's fields with its id, its times and whether it is settled."""
    times = {name: at for name, at in (("begun", event.begun), ("ended", event.ended)) if at is not None}
    return {"compaction_event": event.id, **times, "settled": event.settled, **fields(event)}


def restored(rows: Iterable[Row]) -> Course:
    """The course of a session after its rows, oldest first; of one id the last row holds. What is no such row tells
    nothing. What had begun is under way still: fold `Resumed` over the course to tell that it will not end."""
    latest: dict[str, Row] = {}
    for one in rows:
        name = one.get("compaction_event")
        if isinstance(name, str):
            latest.pop(name, None)
            latest[name] = one
    course = Course()
    for name, one in latest.items():
        course = _after(course, name, one)
    return course


def _after(course: Course, name: str, one: Row) -> Course:
    if one.get("settled") is not True:
        begun = () if one.get("outcome") else (_begun(name, one),)
        return replace(course, begun=(*course.begun, *begun)[-MAX_OPEN:])
    known = course.remembers((name,))
    if one.get("outcome") != DONE or one.get("kind") == "micro":
        return known
    digest, result = one.get("summary_hash"), one.get("validator_result")
    return replace(
        known,
        count=course.count + 1,
        summary_hash=digest if isinstance(digest, str) else None,
        event=name,
        trusted={"pass": True, "fail": False}.get(result) if isinstance(result, str) else None,
        fates=_fates(course.fates, one.get("lost"), course.count + 1),
    )


def _begun(name: str, one: Row) -> Compaction:
    kind, trigger, tokens, at = (one.get(key) for key in ("kind", "trigger", "tokens_before", "begun"))
    return Compaction(
        name,
        begun=float(at) if isinstance(at, (int, float)) else None,
        kind=kind if isinstance(kind, str) and kind in KINDS else KINDS[0],
        trigger=trigger if isinstance(trigger, str) and trigger in TRIGGERS else None,
        before=Measure(None, tokens) if isinstance(tokens, int) else Measure(),
    )


def _fates(fates: tuple[Fate, ...], lost: object, number: int) -> tuple[Fate, ...]:
    """What this one lost, or an earlier one had lost already; what is not among it is back."""
    named = [name for name in lost if isinstance(name, str)] if isinstance(lost, (list, tuple)) else []
    before = {fate.id: fate for fate in fates}
    return tuple(before.get(name, Fate(name, number)) for name in named)
