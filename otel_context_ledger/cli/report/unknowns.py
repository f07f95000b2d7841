"""What a ledger cannot tell about some of its calls, in sentences: how many, and why, as far as that is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from otel_context_ledger.cli import calls as c
from otel_context_ledger.cli import checks, explain, show, verdicts
from otel_context_ledger.cli.calls import Book, Call
from otel_context_ledger.cli.printing import plural
from otel_context_ledger.cli.symptoms import Case

MAX_REASONS = 3
WHY: Mapping[str, Mapping[str, str]] = {
    "policy": verdicts.REASONS, "repository": verdicts.NOTHING_KNOWN, "tools": checks.REASONS,
    "constraints": verdicts.REASONS, "state": verdicts.REASONS,
}  # fmt: skip
UNREPORTED = {
    "unsupported": "the surface cannot report it",
    "not_reported": "the provider did not report it",
}


def unknowns(book: Book, case: Case) -> list[str]:
    """Everything that could not be known of the calls of a case."""
    tellers = (_input, _reuse, _avoidable, _cost, _checks, _tasks, _sessions, _cut)
    return [line for tell in tellers for line in tell(case)] + c.left_out(book) + _others(book)


def _input(case: Case) -> Iterator[str]:
    without = [call for call in case.calls if call.count("input_tokens") is None]
    yield from _counted("input tokens", without, lambda call: show.ending(call) or "no usage was reported")


def _reuse(case: Case) -> Iterator[str]:
    without = [call for call in case.calls if call.count("cached_tokens") is None]
    yield from _counted("what was reused", without, _unreported)


def _unreported(call: Call) -> str:
    told = UNREPORTED.get(call.text("cache_report") or "", "nobody knows why")
    return show.ending(call) or told


def _avoidable(case: Case) -> Iterator[str]:
    without = [call for call in case.calls if call.count("avoidable_tokens") is None]
    measured = [call for call in without if call.count("cached_tokens") is not None]
    yield from _counted("what could have been reused", measured, lambda call: show.cause(call) or "no cause recorded")


def _cost(case: Case) -> Iterator[str]:
    without = [call for call in case.calls if show.dollars(call) is None and not show.is_quota(call)]
    yield from _counted("cost", without, lambda call: explain.no_price(call.text("cost_missing")))


def _checks(case: Case) -> Iterator[str]:
    unasked: dict[int, list[str]] = {}
    for field, pillar in checks.CHECKS.items():
        unsure = [call for call in case.calls if call.text(field) in checks.UNSURE]
        yield from _counted(f"{pillar} check", unsure, partial(_why, pillar))
        unasked.setdefault(sum(call.text(field) is None for call in case.calls), []).append(pillar)
    yield from (f"not checked: {', '.join(names)} of {plural(n, 'call')}" for n, names in unasked.items() if n)


def _why(pillar: str, call: Call) -> str:
    """Why a pillar could not judge a call, else its verdict."""
    words = (word.partition("=") for word in call.words(f"{pillar}.evidence") or ())
    reason = next((value for name, _, value in words if name == "reason"), None)
    verdict = dict(checks.known(call)).get(pillar, "")
    return WHY[pillar].get(reason, reason).rstrip(".") if reason else verdict.replace("_", " ")


def _tasks(case: Case) -> Iterator[str]:
    if case.books.result.unknown:
        yield f"outcome: nobody told how {plural(case.books.result.unknown, 'task')} ended"
    if case.books.unattributed is not None:
        yield f"task: {plural(case.books.unattributed.sums.calls, 'call')} for which none was named"


def _sessions(case: Case) -> Iterator[str]:
    for field, noun in (("session_id", "session"), ("started_at", "time")):
        without = sum(call.value(field) in (None, c.MISSING) for call in case.calls)
        if without:
            yield f"{noun}: not known of {plural(without, 'call')}"
    open_ = sum(event.text("compaction.outcome") is None for event in case.compactions if event.text("compaction.kind"))
    if open_:
        yield f"compactions: nobody told how {plural(open_, 'compaction')} ended"


def _cut(case: Case) -> Iterator[str]:
    if case.cut:
        yield (
            f"tasks and sessions: {len(case.cut):,} have more calls than were chosen here, so that their sums and "
            "costs leave some out"
        )


def _others(book: Book) -> list[str]:
    other = book.other_kinds
    return [f"left out: {plural(other, 'line')} of a kind that this version does not know"] if other else []


def _counted(what: str, calls: Iterable[Call], why: Callable[[Call], str]) -> Iterator[str]:
    """That something is unknown of calls, with the most frequent reasons."""
    reasons = Counter(map(why, calls))
    if not reasons:
        return
    told = [f"{reason} ({number:,})" for reason, number in reasons.most_common(MAX_REASONS)]
    rest = len(reasons) - len(told)
    more = [f"{rest:,} more reasons"] if rest else []
    yield f"{what}: unknown in {plural(reasons.total(), 'call')}: {', '.join([*told, *more])}"
