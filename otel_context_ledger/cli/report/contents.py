"""What a report holds, in text and as a page alike: figures, tables and the calls to look at first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from otel_context_ledger.cli import checks, reasons, show
from otel_context_ledger.cli.calls import Book, Call
from otel_context_ledger.cli.report.pairs import Pair, pairs, verdict
from otel_context_ledger.cli.report.stretches import Stretch, avoidable, avoidable_dollars, stretches
from otel_context_ledger.cli.report.timeline import state
from otel_context_ledger.cli.report.unknowns import unknowns
from otel_context_ledger.cli.symptoms import FOUND, SYMPTOMS, Case, Finding, Symptom

WORST = 10


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause with its calls; `mark` is what stands for it in timelines."""

    mark: str
    name: str
    calls: Sequence[Call]

    @property
    def missed(self) -> int | None:
        """Tokens that could have been reused and were not."""
        return avoidable(self.calls)

    @property
    def dollars(self) -> float | None:
        """What these tokens cost."""
        return avoidable_dollars(self.calls)

    @property
    def reason(self) -> reasons.Reason | None:
        """What it means and what to do: of its details where all calls have the same one."""
        details = {call.words("miss_detail") or () for call in self.calls}
        return reasons.reason(self.name, details.pop() if len(details) == 1 else ())


@dataclass(frozen=True, slots=True)
class Fault:
    """A verdict that says that something is wrong, with its calls, the earliest first."""

    pillar: str
    verdict: str
    calls: Sequence[Call]


@dataclass(frozen=True, slots=True)
class Contents:
    """Everything that is said of the chosen calls, the `verdict` first. `sessions` are the worst first, of which the
    first `shown` get a timeline; `worst` calls are those with the most avoidable tokens; `states` count the calls of
    each pillar."""

    book: Book
    case: Case
    verdict: str
    sums: show.Totals
    pairs: tuple[Pair, ...]
    sessions: Sequence[Stretch]
    shown: int
    causes: Sequence[Cause]
    faults: Sequence[Fault]
    worst: Sequence[Call]
    states: dict[str, Counter[str]]
    found: Sequence[tuple[Symptom, Finding]]
    unknown: Sequence[str]

    @property
    def marks(self) -> dict[str, str]:
        """What stands for each cause that has a row in the table."""
        return {cause.name: cause.mark for cause in self.causes}


def contents(book: Book, case: Case, shown: int) -> Contents:
    """What is to be said of a case of a ledger."""
    sums = show.totals(case.calls)
    findings = [(symptom, symptom.test(case)) for symptom in SYMPTOMS]
    return Contents(
        book,
        case,
        verdict(case.calls),
        sums,
        pairs(case, sums),
        stretches(case),
        shown,
        _causes(case.calls),
        _faults(case.calls),
        worst(case.calls),
        {name: Counter(state(call.text(field)) for call in case.calls) for field, name in checks.CHECKS.items()},
        [(symptom, finding) for symptom, finding in findings if finding.verdict == FOUND],
        unknowns(book, case),
    )


def worst(calls: Sequence[Call]) -> list[Call]:
    """The calls with the most avoidable tokens, and of equal ones the dearest."""
    lost = [call for call in calls if (call.count("avoidable_tokens") or 0) > 0]
    return sorted(lost, key=_lost, reverse=True)[:WORST]


def _lost(call: Call) -> tuple[int, float]:
    return call.count("avoidable_tokens") or 0, call.number("cost_avoidable") or 0.0


def _causes(calls: Sequence[Call]) -> list[Cause]:
    """Causes by avoidable tokens, each with a letter, or two."""
    by_name: dict[str, list[Call]] = {}
    for call in calls:
        if (name := call.text("miss_cause")) is not None:
            by_name.setdefault(name, []).append(call)
    order = sorted(by_name.items(), key=lambda item: (-(avoidable(item[1]) or 0), -len(item[1])))
    return [Cause(_mark(at), name, some) for at, (name, some) in enumerate(order)]


def _mark(at: int) -> str:
    first, second = divmod(at, 26)
    return (chr(ord("A") + first - 1) if first else "") + chr(ord("A") + second)


def _faults(calls: Sequence[Call]) -> list[Fault]:
    found: dict[tuple[str, str], list[Call]] = {}
    for call in calls:
        for pair in checks.known(call):
            if not checks.fine([pair]):
                found.setdefault(pair, []).append(call)
    return [Fault(*pair, some) for pair, some in sorted(found.items(), key=lambda item: -len(item[1]))]
