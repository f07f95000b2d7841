"""What tasks cost: calls grouped by task, attempt, session and surface, joined with outcomes, per successful task.

Pure: calls and outcomes are given. Sums are over the calls whose figure is known, with the number of the others beside
them; unknown is never 0, and quota is never dollars.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeVar

from otel_context_ledger.model import Outcome
from otel_context_ledger.outcomes import FAILURE, NOTHING, SUCCESS, Joined, join

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Expense:
    """One call as accounts see it. `dollars` is `None` where nobody knows; `error` says why it is no success: an
    error's type, or the finish reason of an answer that only looks complete; `checks` are its pillars' verdicts."""

    entry_id: str
    started_at: float | None = None
    task_id: str | None = None
    attempt_id: str | None = None
    session_id: str | None = None
    parent_session_id: str | None = None
    fork_of: str | None = None
    provider_surface: str = "unknown"
    model_id: str | None = None
    input: int | None = None
    cached: int | None = None
    output: int | None = None
    dollars: float | None = None
    quota: bool = False
    error: str | None = None
    checks: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over calls. Of each kind of tokens, `unknown` counts the calls that are left out; `dollars` is over the
    `priced` calls; `quota` are the calls that a plan pays for; `checks` counts the calls by pillar and verdict. A sum
    over no call at all is `None`."""

    calls: int = 0
    failed: int = 0
    input: int | None = None
    cached: int | None = None
    output: int | None = None
    input_unknown: int = 0
    cached_unknown: int = 0
    output_unknown: int = 0
    dollars: float | None = None
    priced: int = 0
    unpriced: int = 0
    unpriced_failed: int = 0
    quota: int = 0
    checks: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def partial(self) -> bool:
        """Whether the dollars leave calls out whose cost nobody knows."""
        return self.unpriced > 0


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a task; `error` is that of its last call that failed."""

    attempt_id: str | None
    sums: Sums
    outcome: Joined
    sessions: tuple[str, ...]
    error: str | None


@dataclass(frozen=True, slots=True)
class Account:
    """What one task cost, over all of its attempts. `error` is that of its last call that failed, and `ends_in_error`
    says whether that was its last call. Without `task_id`: the calls that nobody attributed."""

    task_id: str | None
    sums: Sums
    outcome: Joined
    attempts: tuple[Attempt, ...]
    sessions: tuple[str, ...]
    surfaces: Mapping[str, Sums]
    error: str | None
    ends_in_error: bool

    @property
    def per_session(self) -> float | None:
        """Dollars for each session; it hides failed ones behind cheap retries, so that it is never the main figure."""
        return None if self.sums.dollars is None or not self.sessions else self.sums.dollars / len(self.sessions)


@dataclass(frozen=True, slots=True)
class Session:
    """One session: its own calls, and those of all the sessions below it, each once."""

    session_id: str
    parent_session_id: str | None
    fork_of: str | None
    own: Sums
    whole: Sums


@dataclass(frozen=True, slots=True)
class Yield:
    """What came of some tasks: `success` and `failure` count the tasks that were decided, whose calls are `spent`;
    `unknown` the others, which stay out of the rate."""

    success: int
    failure: int
    unknown: int
    spent: Sums

    @property
    def rate(self) -> float | None:
        """Successful tasks among the decided ones."""
        decided = self.success + self.failure
        return self.success / decided if decided else None

    @property
    def tokens_per_success(self) -> float | None:
        """Input and output tokens of the decided tasks for each that succeeded: the measure where a plan pays."""
        known = [number for number in (self.spent.input, self.spent.output) if number is not None]
        return sum(known) / self.success if self.success and known else None

    @property
    def per_success(self) -> float | None:
        """Dollars spent on all decided tasks, failed ones and failed attempts included, for each that succeeded."""
        return self.spent.dollars / self.success if self.success and self.spent.dollars is not None else None


@dataclass(frozen=True, slots=True)
class Group:
    """One model on one surface: all of its calls, and what came of the tasks that used it."""

    provider_surface: str
    model_id: str | None
    sums: Sums
    result: Yield


@dataclass(frozen=True, slots=True)
class Books:
    """Everything: tasks by their first call, what nobody attributed, sessions, surfaces and models. `untried` are the
    tasks that have an outcome and no call here: they count nowhere."""

    accounts: tuple[Account, ...]
    unattributed: Account | None
    untried: Mapping[str, Joined]
    sessions: tuple[Session, ...]
    groups: tuple[Group, ...]
    result: Yield
    sums: Sums


def settle(calls: Iterable[Expense], told: Iterable[Outcome]) -> Books:
    """The books of these calls and of what was told of their tasks, each call once, the earliest first."""
    every = sorted({call.entry_id: call for call in calls}.values(), key=lambda call: call.started_at or 0.0)
    said = _by(told, lambda line: line.task_id)
    by_task = _by(every, lambda call: call.task_id)
    alone = by_task.pop(None, [])
    accounts = tuple(_account(name, found, said.get(name or "", ())) for name, found in by_task.items())
    return Books(
        accounts,
        _account(None, alone, ()) if alone else None,
        {name: join(lines)[0] for name, lines in said.items() if name not in by_task},
        tuple(_sessions(every)),
        tuple(_groups(every, accounts)),
        _yielded(accounts, every),
        total(every),
    )


def total(calls: Sequence[Expense]) -> Sums:
    """The sums of calls."""
    input_, input_unknown = _added(call.input for call in calls)
    cached, cached_unknown = _added(call.cached for call in calls)
    output, output_unknown = _added(call.output for call in calls)
    paid = [call.dollars for call in calls if not call.quota]
    dollars = [amount for amount in paid if amount is not None]
    return Sums(
        len(calls),
        sum(call.error is not None for call in calls),
        input_,
        cached,
        output,
        input_unknown,
        cached_unknown,
        output_unknown,
        sum(dollars) if dollars else None,
        priced=len(dollars),
        unpriced=len(paid) - len(dollars),
        unpriced_failed=sum(call.error is not None and call.dollars is None and not call.quota for call in calls),
        quota=len(calls) - len(paid),
        checks=dict(Counter(pair for call in calls for pair in call.checks)),
    )


def _added(numbers: Iterable[int | None]) -> tuple[int | None, int]:
    """The sum of the known numbers, `None` if there are none, and how many are unknown."""
    every = list(numbers)
    known = [number for number in every if number is not None]
    return sum(known) if known else None, len(every) - len(known)


def _by(items: Iterable[_Item], key: Callable[[_Item], Key]) -> dict[Key, list[_Item]]:
    found: defaultdict[Key, list[_Item]] = defaultdict(list)
    for item in items:
        found[key(item)].append(item)
    return dict(found)


_Item = TypeVar("_Item")


def _account(name: str | None, calls: Sequence[Expense], told: Sequence[Outcome]) -> Account:
    tries = _by(calls, lambda call: call.attempt_id)
    whole, by_attempt = join(told, tries) if told else (NOTHING, {})
    tries |= {attempt: [] for attempt in by_attempt if attempt not in tries}
    attempts = (_attempt(attempt, found, by_attempt.get(attempt or "", NOTHING)) for attempt, found in tries.items())
    return Account(
        name,
        total(calls),
        whole,
        tuple(attempts),
        _named_sessions(calls),
        {surface: total(found) for surface, found in _by(calls, lambda call: call.provider_surface).items()},
        _last_error(calls),
        bool(calls) and calls[-1].error is not None,
    )


def _attempt(name: str | None, calls: Sequence[Expense], outcome: Joined) -> Attempt:
    return Attempt(name, total(calls), outcome, _named_sessions(calls), _last_error(calls))


def _named_sessions(calls: Iterable[Expense]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(call.session_id for call in calls if call.session_id is not None))


def _last_error(calls: Sequence[Expense]) -> str | None:
    return next((call.error for call in reversed(calls) if call.error is not None), None)


def _sessions(calls: Iterable[Expense]) -> Iterable[Session]:
    by_session = {name: found for name, found in _by(calls, lambda call: call.session_id).items() if name is not None}
    parents = {name: _first(call.parent_session_id for call in found) for name, found in by_session.items()}
    children = _by((name for name in by_session if parents[name] is not None), lambda name: parents[name])
    for name, found in by_session.items():
        below = chain.from_iterable(by_session.get(one, ()) for one in _below(name, children))
        fork_of = _first(call.fork_of for call in found)
        yield Session(name, parents[name], fork_of, total(found), total([*found, *below]))


def _below(name: str, children: Mapping[str | None, Sequence[str]]) -> list[str]:
    """Every session below one, once, also where parents are named in a circle."""
    met, waiting = {name: None}, [name]
    while waiting:
        fresh = [child for child in children.get(waiting.pop(), ()) if child not in met]
        met |= dict.fromkeys(fresh)
        waiting += fresh
    return [one for one in met if one != name]


def _first(values: Iterable[str | None]) -> str | None:
    return next((value for value in values if value is not None), None)


def _groups(calls: Iterable[Expense], accounts: Sequence[Account]) -> Iterable[Group]:
    for (surface, model), found in _by(calls, lambda call: (call.provider_surface, call.model_id)).items():
        users = {call.task_id for call in found}
        yield Group(surface, model, total(found), _yielded([one for one in accounts if one.task_id in users], found))


def _yielded(accounts: Sequence[Account], calls: Iterable[Expense]) -> Yield:
    """What came of these tasks, and what of these calls they cost."""
    words = [account.outcome.word for account in accounts]
    decided = {account.task_id for account in accounts if account.outcome.word in (SUCCESS, FAILURE)}
    success, failure = words.count(SUCCESS), words.count(FAILURE)
    spent = total([call for call in calls if call.task_id in decided])
    return Yield(success, failure, len(words) - success - failure, spent)
