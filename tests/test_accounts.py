"""What holds of accounts and outcomes whatever the calls and tellings are."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from otel_context_ledger.accounts import Expense, settle
from otel_context_ledger.model import Outcome
from otel_context_ledger.outcomes import EVIDENCE, decide, join

NAMES = st.sampled_from([None, "a", "b", "c"])
COUNTS = st.one_of(st.none(), st.integers(0, 10**6))
CALLS = st.lists(
    st.builds(
        Expense,
        entry_id=st.sampled_from([f"e{n}" for n in range(12)]),
        started_at=st.floats(0, 1e9),
        task_id=NAMES, attempt_id=NAMES, session_id=NAMES, parent_session_id=NAMES,
        provider_surface=st.sampled_from(["x", "y"]), model_id=NAMES,
        input=COUNTS, cached=COUNTS, output=COUNTS,
        dollars=st.one_of(st.none(), st.floats(0, 100)), quota=st.booleans(),
    ),
    max_size=12,
)  # fmt: skip
SAID = st.fixed_dictionaries({name: st.sampled_from([None, True, False]) for name in EVIDENCE})


@st.composite
def tellings(draw: st.DrawFn) -> list[Outcome]:
    """Tellings of three tasks and their attempts, each at its own time."""
    said = draw(st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), NAMES, SAID), max_size=12))
    return [
        Outcome(f"o{n}", float(n), task, attempt, decide(flags), **flags)
        for n, (task, attempt, flags) in enumerate(said)
    ]


@given(CALLS, tellings())
def test_every_call_is_in_one_account(calls: list[Expense], told: list[Outcome]) -> None:
    """Tasks and the unattributed calls add up to everything, attempts and surfaces to their task, groups to all."""
    books = settle(calls, told)
    every = [*books.accounts, *([books.unattributed] if books.unattributed else [])]
    for parts in (
        [one.sums for one in every],
        [one.sums for account in every for one in account.attempts],
        [sums for account in every for sums in account.surfaces.values()],
        [group.sums for group in books.groups],
    ):
        for name in ("calls", "input", "cached", "output", "priced", "unpriced", "quota"):
            assert sum(getattr(part, name) or 0 for part in parts) == (getattr(books.sums, name) or 0)
        assert math.isclose(sum(part.dollars or 0.0 for part in parts), books.sums.dollars or 0.0, abs_tol=1e-6)


@given(CALLS, tellings())
def test_tasks_are_decided_or_counted_as_unknown(calls: list[Expense], told: list[Outcome]) -> None:
    """Successes, failures and unknown ones are all tasks that made calls; without success no price of one."""
    books = settle(calls, told)
    result = books.result
    assert result.success + result.failure + result.unknown == len(books.accounts)
    assert result.per_success is None or result.success > 0


@given(CALLS)
def test_a_session_with_those_below_it_is_at_least_its_own(calls: list[Expense]) -> None:
    """However parents are named, in circles too, nothing is counted twice: no session has more than there is."""
    books = settle(calls, [])
    assert all(one.own.calls <= one.whole.calls <= books.sums.calls for one in books.sessions)


@given(tellings(), st.randoms())
def test_the_order_of_lines_decides_nothing(told: list[Outcome], random: object) -> None:
    """What was told at which time decides, not where its line stands; copies of lines change no word."""
    shuffled = [*told, *(replace(line) for line in told)]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for task in ("a", "b", "c"):
        lines, others = ([one for one in every if one.task_id == task] for every in (told, shuffled))
        if lines:
            assert join(lines)[0] == join(others)[0]


@given(tellings())
def test_telling_the_last_again_changes_no_word(told: list[Outcome]) -> None:
    """Who repeats himself is heard once."""
    if told:
        again = replace(told[-1], outcome_id="again", told_at=told[-1].told_at + 1)
        mine = [line for line in told if line.task_id == again.task_id]
        assert join([*mine, again])[0].word == join(mine)[0].word
