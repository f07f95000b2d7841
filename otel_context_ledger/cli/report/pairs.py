"""The headline pairs: each figure of reuse or money with what it is worth nothing without."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from otel_context_ledger.accounts import Books, Yield
from otel_context_ledger.cli import checks, show, tasks
from otel_context_ledger.cli.calls import Call
from otel_context_ledger.cli.printing import UNKNOWN, count, money, plural, share
from otel_context_ledger.cli.report.stretches import avoidable, avoidable_dollars, dollars_lost, wrong
from otel_context_ledger.cli.symptoms import Case
from otel_context_ledger.model import SOUND


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its name and what it is over; `bad` where it is bad for everybody."""

    name: str
    value: str
    over: str
    bad: bool = False


@dataclass(frozen=True, slots=True)
class Pair:
    """A figure, and its partner."""

    figure: Figure
    partner: Figure


def pairs(case: Case, sums: show.Totals) -> tuple[Pair, ...]:
    """The pairs of some calls."""
    return (
        Pair(_read(sums), _recall(sums)),
        Pair(_missed(case.calls), _wrong(case.calls)),
        Pair(_cost(case.books), _per_success(case.books.result)),
    )


def verdict(calls: Sequence[Call]) -> str:
    """What matters most of some calls in a sentence: what was avoidable, and how many had a wrong context."""
    return f"{_avoidable(calls)}; {_wrongly(calls)}."


def _avoidable(calls: Sequence[Call]) -> str:
    priced = [call for call in calls if show.dollars(call) is not None]
    paid, saved = sum(show.dollars(call) or 0.0 for call in priced), avoidable_dollars(priced)
    if paid and saved is not None:
        least = "At least " if any(dollars_lost(call) is None for call in priced) else ""
        known = "" if len(priced) == len(calls) else "known "
        return f"{least}{share(saved, paid)} of the {known}cost was avoidable"
    lost = avoidable(calls)
    return "What was avoidable is unknown" if lost is None else f"Avoidable: {plural(lost, 'token')} not reused"


def _wrongly(calls: Sequence[Call]) -> str:
    judged = list(filter(_judged, calls))
    bad = sum(map(wrong, judged))
    if not judged:
        return "no check could judge whether a context was right"
    if bad:
        return f"{plural(bad, 'call')} had a wrong context"
    return f"no wrong context was found in the {plural(len(judged), 'call')} that a check could judge"


def _judged(call: Call) -> bool:
    return any(verdict not in checks.UNSURE for _, verdict in checks.known(call))


def _read(sums: show.Totals) -> Figure:
    over = f"{count(sums.cached)} of {count(sums.input_measured)} input tokens, {plural(sums.measured, 'call')}"
    value = share(sums.cached, sums.input_measured)
    return Figure("Cache read share", value, over + _unknown(sums.cached_unknown))


def _recall(sums: show.Totals) -> Figure:
    counted = sums.checks.get("constraints", {})
    judged = sum(number for verdict, number in counted.items() if verdict not in checks.UNSURE)
    held = sum(number for verdict, number in counted.items() if verdict in SOUND)
    if not judged:
        told = f"unknown in {plural(sum(counted.values()), 'call')}" if counted else "no constraint was declared"
        return Figure("Constraint recall", UNKNOWN, f"{told}; {checks.NO_PROOF}")
    over = f"held in {held:,} of the {plural(judged, 'call')} whose verdict is known"
    return Figure(
        "Constraint recall", share(held, judged), over + _unknown(sum(counted.values()) - judged), held < judged
    )


def _missed(calls: Sequence[Call]) -> Figure:
    known = [call for call in calls if call.count("avoidable_tokens") is not None]
    paid = avoidable_dollars(calls)
    price = f", {money(paid)} of the cost" if paid is not None else ""
    over = f"tokens could have been read{price}; {plural(len(known), 'call')}{_unknown(len(calls) - len(known))}"
    return Figure("Missed, avoidable", count(avoidable(calls)), over)


def _wrong(calls: Sequence[Call]) -> Figure:
    judged = list(filter(_judged, calls))
    if not judged:
        return Figure("Wrong context", UNKNOWN, f"no check could judge a call; {checks.NO_PROOF}")
    found = [call for call in judged if wrong(call)]
    over = f"of {plural(len(judged), 'call')} that a check could judge{_unknown(len(calls) - len(judged))}"
    told = f"{checks.tally(checks.of_all(found))}; {over}" if found else over
    return Figure("Wrong context", plural(len(found), "call"), told, bool(found))


def _cost(books: Books) -> Figure:
    sums = books.sums
    quota = f", {plural(sums.quota, 'call')} by quota" if sums.quota else ""
    over = f"{plural(sums.priced, 'call')}{quota}{_unknown(sums.unpriced)}"
    return Figure("Cost", tasks.cost(sums) or UNKNOWN, over)


def _per_success(result: Yield) -> Figure:
    return Figure("Cost per success", tasks.per_success(result), "; ".join(_yielded(result)))


def _yielded(result: Yield) -> Iterator[str]:
    decided = result.success + result.failure
    if not decided:
        yield "nobody told how a task ended"
    else:
        yield f"successful: {result.success:,} of {plural(decided, 'task')}, with all that failed counted in"
    if result.tokens_per_success is not None and result.spent.quota:
        yield f"{result.tokens_per_success:,.0f} tokens per success"
    if result.unknown:
        yield f"{plural(result.unknown, 'task')} unknown, left out"


def _unknown(number: int) -> str:
    return f"; {number:,} unknown" if number else ""
