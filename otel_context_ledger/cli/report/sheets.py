"""The tables of a report: sessions, causes, checks, the worst calls, and a timeline as a table.

A table with a figure of reuse has the checks beside it, as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from otel_context_ledger.accounts import Account, Books
from otel_context_ledger.cli import checks, show, tasks, verdicts
from otel_context_ledger.cli.calls import Call
from otel_context_ledger.cli.printing import (
    UNKNOWN,
    Cell,
    Column,
    Sheet,
    count,
    moment,
    money,
    plural,
    share,
    styled,
)
from otel_context_ledger.cli.report import timeline as t
from otel_context_ledger.cli.report.contents import Contents, Fault
from otel_context_ledger.cli.report.stretches import Stretch, avoidable, dollars_lost

MAX_TASKS, MAX_ROWS = 12, 60
# Words of a ledger file are a few; of a file that somebody else wrote they may be any number.
MAX_WORDS = 40
CHECKS, READ = Column("checks", fold=True), Column("read", right=True)
SESSIONS = (
    Column("session", most=24), Column("began", skip=5, spare=1), Column("calls", right=True),
    Column("input", right=True), READ, CHECKS, Column("avoidable", right=True, spare=3),
    Column("cost", right=True, spare=2),
)  # fmt: skip
CAUSES = (
    Column("", right=True), Column("cause"), Column("calls", right=True), Column("avoidable", right=True),
    Column("cost of it", right=True), CHECKS, Column("what it means", fold=True), Column("to do", fold=True, spare=1),
)  # fmt: skip
STATES = (
    Column("check"), *(Column(state, right=True) for state in t.STATES), Column("share right", right=True),
)  # fmt: skip
FAULTS = (
    Column("check"), Column("verdict"), Column("calls", right=True), READ, Column("first call"),
    Column("session", most=24), Column("to do", fold=True),
)  # fmt: skip
WORST = (
    Column("call"), Column("session", most=24, spare=1), Column("input", right=True, spare=2), READ,
    Column("avoidable", right=True), Column("cost of it", right=True), CHECKS, Column("cause", fold=True),
)  # fmt: skip
CALLS = (
    Column("call"), Column("began"), Column("id"), Column("side call"),
    *(Column(name.replace("_", " "), right=True) for name in t.SOURCES),
    Column("input unknown", right=True), READ, Column("cause"), Column("avoidable", right=True),
    *(Column(name) for name in checks.ORDER), Column("identity changed"), Column("compaction"),
    Column("cost", right=True),
)  # fmt: skip


def sessions(chosen: Sequence[Stretch]) -> Sheet:
    """Sessions, a row each."""
    return Sheet(SESSIONS, [_session(one) for one in chosen])


def _session(one: Stretch) -> tuple[Cell, ...]:
    return (
        one.name, moment(one.began), f"{len(one.calls):,}", count(one.sums.input),
        share(one.sums.cached, one.sums.input_measured), checked(one.calls), count(one.missed), paid(one.sums),
    )  # fmt: skip


def paid(sums: show.Totals) -> str:
    """What calls cost; `≥` where the cost of some is not known, and quota beside it, never in it."""
    known = [f"{'≥ ' if sums.unpriced else ''}{money(sums.dollars)}"] if sums.dollars is not None else []
    unknown = [UNKNOWN] if sums.unpriced and sums.dollars is None else []
    return " + ".join([*known, *unknown, *(["quota"] if sums.quota_calls else [])])


def checked(calls: Sequence[Call]) -> Cell:
    """The verdicts of calls in a few words."""
    counted = checks.of_all(calls)
    return styled(checks.tally(counted), "" if checks.fine(counted) else "yellow")


def causes(found: Contents) -> Sheet:
    """Causes of misses, the one with the most avoidable tokens first."""
    rows = [
        (
            cause.mark, cause.name, f"{len(cause.calls):,}", count(cause.missed), money(cause.dollars),
            checked(cause.calls), cause.reason.meaning if cause.reason else UNKNOWN,
            cause.reason.remedy if cause.reason else UNKNOWN,
        )
        for cause in found.causes[:MAX_WORDS]
    ]  # fmt: skip
    return Sheet(CAUSES, rows)


def states(found: Contents) -> Sheet:
    """How many calls were right, wrong or unjudged by each check."""
    rows: list[tuple[Cell, ...]] = []
    for pillar, counted in found.states.items():
        judged = counted[t.RIGHT] + counted[t.WRONG]
        wrong = styled(f"{counted[t.WRONG]:,}", "red" if counted[t.WRONG] else "")
        others = (f"{counted[state]:,}" for state in (t.UNJUDGED, t.UNASKED))
        rows.append((pillar, f"{counted[t.RIGHT]:,}", wrong, *others, share(counted[t.RIGHT], judged)))
    return Sheet(STATES, rows)


def faults(found: Contents) -> Sheet:
    """What was wrong, by check and verdict, with the share of these calls that was read from the cache."""
    return Sheet(FAULTS, [_fault(fault) for fault in found.faults[:MAX_WORDS]])


def _fault(fault: Fault) -> tuple[Cell, ...]:
    sums, first = show.totals(fault.calls), fault.calls[0]
    told = [*filter(None, [checks.remedy(first) if fault.pillar == "tools" else None]), *_remedies(fault)]
    return (
        fault.pillar, styled(fault.verdict, "red"), f"{len(fault.calls):,}", share(sums.cached, sums.input_measured),
        first.entry_id, first.text("session_id") or UNKNOWN, " ".join(told),
    )  # fmt: skip


def _remedies(fault: Fault) -> list[str]:
    """What to do about this verdict alone."""
    field = next(field for field, pillar in checks.CHECKS.items() if pillar == fault.pillar)
    if fault.pillar == "repository":
        others = {sentence for (name, _), sentence in verdicts.REMEDIES.items() if name != field}
        return [sentence for sentence in verdicts.remedies(fault.calls[0]) if sentence not in others]
    return [sentence for pair, sentence in verdicts.REMEDIES.items() if pair == (field, fault.verdict)]


def worst(calls: Sequence[Call]) -> Sheet:
    """The calls with the most avoidable tokens."""
    rows = [
        (
            call.entry_id, call.text("session_id") or UNKNOWN, count(call.count("input_tokens")),
            share(call.count("cached_tokens"), call.count("input_tokens")), count(call.count("avoidable_tokens")),
            money(dollars_lost(call)), checked([call]), show.cause(call) or "",
        )
        for call in calls
    ]  # fmt: skip
    return Sheet(WORST, rows)


def accounts(books: Books) -> tuple[Sheet, list[str]]:
    """The table of the tasks that there is room for, the dearest, and what is left out."""
    shown, left = _dearest(books)
    sheet = tasks.sheet(shown, books.sums)
    rows = len(sheet.rows) - MAX_ROWS
    gone = [plural(number, noun) for number, noun in ((left, "task"), (rows, "row")) if number > 0]
    told = f"left out: {' and '.join(gone)}; the dearest tasks are shown, `context-ledger tasks` lists all"
    return replace(sheet, rows=sheet.rows[:MAX_ROWS]), [told] if gone else []


def _dearest(books: Books) -> tuple[list[Account], int]:
    every = [*books.accounts, *([books.unattributed] if books.unattributed else [])]
    dearest = sorted(every, key=lambda one: one.sums.dollars or 0.0, reverse=True)[:MAX_TASKS]
    kept = {id(one) for one in dearest}
    return [one for one in every if id(one) in kept], len(every) - len(dearest)


def calls(columns: Sequence[t.Column]) -> Sheet:
    """A timeline as a table: a row for each of its columns."""
    return Sheet(CALLS, [_column(column) for column in columns])


def _column(column: t.Column) -> tuple[Cell, ...]:
    first, several = column.calls[0], len(column.calls) > 1
    last = column.first + len(column.calls) - 1
    sums = show.totals(column.calls)
    unknown = (f"{column.unsized:,}" if several else "yes") if column.unsized else ""
    named = [f"{name} ×{number}" if number > 1 else name for name, number in column.causes.items()]
    return (
        f"{column.first} to {last}" if several else str(column.first),
        moment(first.number("started_at")),
        first.entry_id,
        ", ".join(dict.fromkeys(column.sides)),
        *(_tokens(column, name) for name in t.SOURCES),
        unknown,
        share(sums.cached, sums.input_measured),
        ", ".join(named) if several else (show.cause(first) or ""),
        count(avoidable(column.calls)),
        *(_state(column, row) for row in range(len(checks.ORDER))),
        ", ".join(column.changes),
        ", ".join(event.text("compaction_event") or UNKNOWN for event in column.compactions),
        show.cost(first) if not several else paid(sums),
    )


def _tokens(column: t.Column, source: str) -> str:
    """Tokens of a source; unknown where no call's provider told them."""
    told = {"cache_write": "cache_write_tokens", "unreported": "input_tokens"}.get(source, "cached_tokens")
    known = column.sized and any(call.count(told) is not None for call in column.calls)
    return f"{column.tokens[source]:,}" if known else UNKNOWN


def _state(column: t.Column, row: int) -> Cell:
    """A pillar's verdict on a call; of several calls how many are in which state."""
    cell: Mapping[str, int] = column.cells[row]
    style = "red" if cell.get(t.WRONG) else ""
    if len(column.calls) == 1:
        verdict = checks.verdicts(column.calls[0])[row][1]
        return styled(f"{next(iter(cell))}: {verdict}" if verdict else t.UNASKED, style)
    return styled(", ".join(f"{cell[state]} {state}" for state in t.STATES if cell.get(state)), style)
