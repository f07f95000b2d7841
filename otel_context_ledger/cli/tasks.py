"""`context-ledger tasks`: what each task cost and how it ended, and what a successful one costs.

Failed attempts and failed tasks are counted in; a task of which nobody told the outcome is `unknown` and stays out of
the rate; what no task was named for is `unattributed`; quota is never dollars.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

from otel_context_ledger.accounts import Account, Attempt, Books, Expense, Session, Sums, Yield, settle
from otel_context_ledger.cli import calls as c
from otel_context_ledger.cli import checks
from otel_context_ledger.cli import outcome as o
from otel_context_ledger.cli.calls import Book, Call
from otel_context_ledger.cli.printing import UNKNOWN, Answer, Cell, Column, Lines, Sheet, count, money, plural, styled
from otel_context_ledger.cli.show import dollars, is_quota, once
from otel_context_ledger.config import Config
from otel_context_ledger.outcomes import FAILURE, SUCCESS, Joined
from otel_context_ledger.surfaces import facts

UNATTRIBUTED = "unattributed"
SUMS = (
    Column("calls", right=True), Column("input", right=True), Column("cached", right=True),
    Column("checks", fold=True), Column("output", right=True, spare=1), Column("cost", right=True),
)  # fmt: skip
TASKS = (
    Column("task", most=40), Column("outcome", fold=True), Column("attempts", right=True, spare=2),
    Column("sessions", right=True, spare=3), *SUMS, Column("last error", fold=True, spare=4),
)  # fmt: skip
SURFACES = (
    Column("surface", fold=True), Column("model", fold=True), *SUMS, Column("successes", right=True, spare=3),
    Column("failures", right=True, spare=2), Column("per success", right=True),
)  # fmt: skip
STYLES = {SUCCESS: "green", FAILURE: "red"}


def answer(arguments: Namespace, settings: Config) -> Answer:
    """The accounts of all tasks, or of those that the options choose. Raises `Unusable`."""
    book = c.opened(arguments, settings)
    books = opened(book, failed(settings), arguments.task)
    if arguments.task is not None and not books.accounts:
        raise c.Unusable(f"There is no task {arguments.task!r} in {book.path}.")
    found = {"files": list(map(str, book.files)), **document(books)}
    accounts = [*books.accounts, *([books.unattributed] if books.unattributed else [])]
    parts: list[Sheet | Lines] = [
        sheet(accounts, books.sums),
        Lines(["", *findings(books), *_correctness(book, books), *c.left_out(book), ""]),
        Sheet(SURFACES, list(_surfaces(books))),
    ]
    return Answer(found, parts)


def sheet(accounts: Iterable[Account], total: Sums) -> Sheet:
    """The table of some tasks, each with its attempts where it had several."""
    rows = [row for account in accounts for row in _rows(account)]
    return Sheet(TASKS, rows, ("total", "", "", "", *_sums(total), ""))


def _correctness(book: Book, books: Books) -> list[str]:
    """What is known of the contexts that were reused: a cached token is no proof that it was right."""
    names = {account.task_id for account in books.accounts} | ({None} if books.unattributed else set())
    return checks.summary(once([call for call in book.calls if call.text("task_id") in names]))


def opened(book: Book, failed: frozenset[str], wanted: str | None = None) -> Books:
    """The books of a ledger file, or of its tasks with one id, else with ids that begin so. `failed` are the finish
    reasons of answers that are no success."""
    calls, told = [expense(call, failed) for call in book.calls], list(o.of(book))
    if wanted is not None:
        ids = {call.task_id for call in calls if call.task_id}
        chosen = {wanted} if wanted in ids else {name for name in ids if wanted and name.startswith(wanted)}
        calls = [call for call in calls if call.task_id in chosen]
        told = [one for one in told if one.task_id in chosen]
    return settle(calls, told)


def booked(book: Book, chosen: Sequence[Call], failed: frozenset[str]) -> Books:
    """The books over some of a ledger's calls, with what was told of their tasks."""
    ids = {call.text("task_id") for call in chosen}
    return settle([expense(call, failed) for call in chosen], [one for one in o.of(book) if one.task_id in ids])


def expense(call: Call, failed: frozenset[str]) -> Expense:
    """A call as accounts see it."""
    reason = next((word for word in call.words("finish_reasons") or () if word in failed), None)
    error = call.text("error_type") or ("failed" if call.text("call_end") == "failed" else reason)
    return Expense(
        call.entry_id,
        call.number("started_at"),
        call.text("task_id"),
        call.text("attempt_id"),
        call.text("session_id"),
        call.text("parent_session_id"),
        call.text("fork_of"),
        call.text("provider_surface") or "unknown",
        call.text("model_id"),
        call.count("input_tokens"),
        call.count("cached_tokens"),
        call.count("output_tokens"),
        dollars(call),
        is_quota(call),
        error,
        checks.known(call),
    )


def document(books: Books) -> dict[str, object]:
    """The books for programs; `null` is unknown, and `partial` says that a cost leaves calls out."""
    return {
        "tasks": [_account(account) for account in books.accounts],
        "unattributed": _account(books.unattributed) if books.unattributed else None,
        "outcomes_without_calls": [{"task_id": name, **_joined(said)} for name, said in books.untried.items()],
        "sessions": [_session(one) for one in books.sessions],
        "surfaces": [
            {"provider_surface": group.provider_surface, "model_id": group.model_id, **_figures(group.sums)}
            | _yielded(group.result)
            for group in books.groups
        ],
        "totals": _figures(books.sums) | _yielded(books.result),
    }


def _account(account: Account) -> dict[str, object]:
    return {
        "task_id": account.task_id,
        **_joined(account.outcome),
        "attempts": [_attempt(one) for one in account.attempts],
        "sessions": list(account.sessions),
        **_figures(account.sums),
        "cost_per_session": account.per_session,
        "surfaces": {name: _figures(sums) for name, sums in account.surfaces.items()},
        "last_error": account.error,
        "ends_in_error": account.ends_in_error,
    }


def _attempt(one: Attempt) -> dict[str, object]:
    said = _joined(one.outcome)
    return {
        "attempt_id": one.attempt_id, **said, "sessions": list(one.sessions), **_figures(one.sums),
        "last_error": one.error,
    }  # fmt: skip


def _joined(said: Joined) -> dict[str, object]:
    return {
        "outcome": said.word,
        "told_at": said.told_at,
        "told_of_attempt": said.attempt_id,
        "evidence": dict(said.evidence),
        "reason": said.reason,
        "superseded": [asdict(one) for one in said.superseded],
        "told": said.lines,
        "repeated": said.repeated,
    }


def _figures(sums: Sums) -> dict[str, object]:
    return {
        "calls": sums.calls,
        "failed_calls": sums.failed,
        "input_tokens": sums.input,
        "cached_tokens": sums.cached,
        "output_tokens": sums.output,
        "input_unknown": sums.input_unknown,
        "cached_unknown": sums.cached_unknown,
        "output_unknown": sums.output_unknown,
        "cost": sums.dollars,
        "cost_unknown": sums.unpriced,
        "cost_unknown_failed": sums.unpriced_failed,
        "partial": sums.partial,
        "quota_calls": sums.quota,
        "checks": checks.spread(sums.checks),
    }


def _yielded(result: Yield) -> dict[str, object]:
    return {
        "success": result.success,
        "failure": result.failure,
        "unknown": result.unknown,
        "success_rate": result.rate,
        "cost_per_success": result.per_success,
        "cost_per_success_partial": result.spent.partial,
        "tokens_per_success": result.tokens_per_success,
    }


def _session(one: Session) -> dict[str, object]:
    return {
        "session_id": one.session_id, "parent_session_id": one.parent_session_id, "fork_of": one.fork_of,
        **_figures(one.own), "with_children": _figures(one.whole),
    }  # fmt: skip


def failed(settings: Config) -> frozenset[str]:
    """The finish reasons of answers that are no success."""
    try:
        return facts.load(settings.facts).failed
    except ValueError:
        return facts.load().failed


def _rows(account: Account) -> list[tuple[Cell, ...]]:
    """A task's row and, where it had several attempts, theirs."""
    named = [one for one in account.attempts if one.attempt_id is not None]
    numbers = (str(len(named)) if named else "", str(len(account.sessions)))
    nobody = account.task_id is None
    first = (account.task_id or UNATTRIBUTED, "" if nobody else _word(account.outcome), *numbers)
    rows: list[tuple[Cell, ...]] = [(*first, *_sums(account.sums), account.error or o.failed(account.outcome))]
    if len(account.attempts) > 1:
        rows += [_attempt_row(one) for one in account.attempts]
    return rows


def _attempt_row(one: Attempt) -> tuple[Cell, ...]:
    name = "no attempt named" if one.attempt_id is None else f"attempt {one.attempt_id}"
    word = _word(one.outcome) if one.attempt_id is not None else ""
    return (f"  {name}", word, "", str(len(one.sessions)), *_sums(one.sums), one.error or o.failed(one.outcome))


def _word(said: Joined) -> Cell:
    gone = list(dict.fromkeys(one.word for one in said.superseded))
    before = f", was {gone[-1]}" if gone else ""
    return styled(f"{said.word}{before}", STYLES.get(said.word, ""))


def _sums(sums: Sums) -> tuple[Cell, ...]:
    checked = styled(checks.tally(sums.checks), "" if checks.fine(sums.checks) else "yellow")
    return str(sums.calls), count(sums.input), count(sums.cached), checked, count(sums.output), cost(sums)


def cost(sums: Sums) -> str:
    """The cost of calls; `≥` where some of it is not known, and quota beside it, never in it."""
    if not sums.calls:
        return ""
    known = [f"{'≥ ' if sums.partial else ''}{money(sums.dollars)}"] if sums.dollars is not None else []
    unknown = [UNKNOWN] if sums.partial and sums.dollars is None else []
    return " + ".join([*known, *unknown, *(["quota"] if sums.quota else [])])


def findings(books: Books) -> Iterator[str]:
    """What the books come to, in sentences: successes, what one costs, and what is left out."""
    result, sums = books.result, books.sums
    decided = result.success + result.failure
    left = f"; {plural(result.unknown, 'task')} unknown, left out" if result.unknown else ""
    rate = f" ({100 * result.rate:.0f} %)" if result.rate is not None else ""
    yield f"successful: {result.success} of {plural(decided, 'task')} with an outcome{rate}{left}"
    yield f"cost per successful task: {per_success(result)}, failed attempts and failed tasks counted in"
    paid = [one.own.dollars for one in books.sessions if one.own.dollars is not None]
    if paid:
        each = money(sum(paid) / len(paid))
        yield f"cost per session: {each} over {plural(len(paid), 'session')} with a known cost; it hides what failed"
    if result.tokens_per_success is not None and result.spent.quota:
        yield f"tokens per successful task: {result.tokens_per_success:,.0f} input and output"
    if sums.partial:
        of_them = f" ({sums.unpriced_failed:,} of them failed)" if sums.unpriced_failed else ""
        yield f"partial: the cost of {plural(sums.unpriced, 'call')} is unknown{of_them}, which is not zero"
    if books.unattributed:
        yield f"{UNATTRIBUTED}: {plural(books.unattributed.sums.calls, 'call')} for which no task was named"
    if books.untried:
        yield f"outcomes of tasks without a call here: {plural(len(books.untried), 'task')}, counted nowhere"


def per_success(result: Yield) -> str:
    """Dollars for each success; unknown where nothing succeeded or nothing had a price."""
    least = "≥ " if result.spent.partial and result.per_success is not None else ""
    return least + money(result.per_success)


def _surfaces(books: Books) -> Iterable[tuple[Cell, ...]]:
    for group in books.groups:
        result = group.result
        paid = "quota" if group.sums.quota == group.sums.calls else per_success(result)
        figures = (str(result.success), str(result.failure), paid)
        yield (group.provider_surface, group.model_id or UNKNOWN, *_sums(group.sums), *figures)
