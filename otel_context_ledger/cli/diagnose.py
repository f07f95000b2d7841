"""`context-ledger diagnose`: sixteen symptoms, each found, not found or not to be told, from the ledger file alone.

Which calls are looked at, and how the answer reads. What a symptom is, is `symptoms`' business.
"""

from __future__ import annotations

import re
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime

from otel_context_ledger.cli import calls as c
from otel_context_ledger.cli import tasks
from otel_context_ledger.cli.calls import Book, Call
from otel_context_ledger.cli.printing import Answer, Labels, Lines, moment, plural, styled
from otel_context_ledger.cli.show import once
from otel_context_ledger.cli.symptoms import CANNOT_TELL, FOUND, NOT_FOUND, SYMPTOMS, Case, Finding, Symptom
from otel_context_ledger.config import Config
from otel_context_ledger.thresholds import Thresholds

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
WORDS = {FOUND: "found", NOT_FOUND: "not found", CANNOT_TELL: "cannot tell"}
STYLES = {FOUND: "red", NOT_FOUND: "green", CANNOT_TELL: "yellow"}
_AGO = re.compile(r"(\d{1,9})([smhdw])")


def answer(arguments: Namespace, settings: Config) -> Answer:
    """Each symptom in the calls that the options choose. Raises `Unusable`."""
    book = c.opened(arguments, settings)
    case = gathered(book, chosen(book, arguments, time.time()), tasks.failed(settings), settings.advice)
    findings = [(symptom, symptom.test(case)) for symptom in SYMPTOMS]
    found = any(finding.verdict == FOUND for _, finding in findings)
    parts = [*_parts(case, findings), *([Lines(["", *lost])] if (lost := c.left_out(book)) else [])]
    return Answer(_document(book, case, findings), parts, found)


def gathered(book: Book, some: Sequence[Call], failed: frozenset[str], limits: Thresholds) -> Case:
    """The case of some of a ledger's calls, with what was told of their tasks and of their sessions' compactions."""
    calls = sorted(once(some), key=lambda call: call.number("started_at") or 0.0)
    sessions = {call.text("session_id") for call in calls}
    events = [call for call in calls if call.text("compaction_event")]
    events += [event for event in book.compactions if event.text("session_id") in sessions]
    known = {event.text("compaction_event") or event.place: event for event in events}
    return Case(calls, tasks.booked(book, calls, failed), tuple(known.values()), limits, _cut(book, calls))


def _cut(book: Book, some: Sequence[Call]) -> frozenset[str | None]:
    """The tasks and sessions of which some calls were chosen and some were not."""
    ids = {call.entry_id for call in some}
    others = [call for call in book.calls if call.entry_id not in ids]
    names = ("task_id", "session_id")
    here, there = ({call.text(name) for call in calls for name in names} for calls in (some, others))
    return frozenset(here & there) - {None}


def chosen(book: Book, arguments: Namespace, now: float) -> Sequence[Call]:
    """The calls that the options `session`, `task` and `since` leave of a ledger. Raises `Unusable` if none."""
    found: Sequence[Call] = book.calls
    if arguments.session is not None:
        found = c.of_session(found, arguments.session)
        if not found:
            raise c.Unusable(f"There is no session {arguments.session!r} in {book.name}.")
    if arguments.task is not None:
        found = c.of_task(found, arguments.task)
        if not found:
            raise c.Unusable(f"There is no task {arguments.task!r} in {book.name}.")
    if arguments.since is not None:
        start = since(arguments.since, now)
        found = [call for call in found if (at := call.number("started_at")) is not None and at >= start]
        if not found:
            raise c.Unusable(f"There is no call since {moment(start)} in {book.name}.")
    return found


def since(raw: str, now: float) -> float:
    """The time that a person means, in seconds since the epoch: `90m`, `2h`, `7d` ago, or an ISO date with or without
    a time, local unless it says otherwise. Raises `Unusable`."""
    ago = _AGO.fullmatch(raw)
    if ago:
        return now - int(ago[1]) * UNITS[ago[2]]
    try:
        return datetime.fromisoformat(raw.replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError, OSError):
        raise c.Unusable(f"{raw!r} is no time: say 2h, 7d, 2026-11-30 or 2026-11-30T14:00.") from None


def _document(book: Book, case: Case, findings: Sequence[tuple[Symptom, Finding]]) -> dict[str, object]:
    return {
        "files": list(map(str, book.files)),
        "calls": len(case.calls),
        "symptoms": [{"id": symptom.id, "question": symptom.question, **asdict(finding),
                      **({"cause": symptom.cause, "fix": symptom.fix} if finding.verdict == FOUND else {})}
                     for symptom, finding in findings],
        "totals": _totals(findings),
        "not_calls": book.strange,
    }  # fmt: skip


def _totals(findings: Sequence[tuple[Symptom, Finding]]) -> dict[str, int]:
    verdicts = [finding.verdict for _, finding in findings]
    return {word: verdicts.count(word) for word in WORDS}


def _parts(case: Case, findings: Sequence[tuple[Symptom, Finding]]) -> list[Lines | Labels]:
    """What was found first, with all there is to say; then what was not, and what cannot be told, a line each."""
    totals = _totals(findings)
    counted = ", ".join(f"{totals[word]} {text}" for word, text in WORDS.items())
    parts: list[Lines | Labels] = [Lines([f"{len(findings)} symptoms in {plural(len(case.calls), 'call')}: {counted}"])]
    for symptom, finding in findings:
        if finding.verdict == FOUND:
            title = styled(f"FOUND  {symptom.question}  [{symptom.id}]", STYLES[FOUND])
            parts += [Lines(["", title]), Labels(list(_told(symptom, finding)))]
    for word in (CANNOT_TELL, NOT_FOUND):
        some = [(symptom, finding) for symptom, finding in findings if finding.verdict == word]
        if some:
            parts += [Lines(["", styled(WORDS[word], STYLES[word])]), Labels([_brief(*pair) for pair in some])]
    return parts


def _told(symptom: Symptom, finding: Finding) -> Iterator[tuple[str, str]]:
    yield from (("  evidence", text) for text in finding.evidence)
    yield "  cause", symptom.cause
    yield "  to do", symptom.fix


def _brief(symptom: Symptom, finding: Finding) -> tuple[str, str]:
    missing = f"missing: {finding.missing}" if finding.missing else ""
    return f"  {symptom.id}", "; ".join(text for text in (*finding.evidence, missing) if text)
