"""The course of a session's compactions, whatever happens in whatever order. Single cases are vectors."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_context_ledger.correctness.compaction import happenings as h
from otel_context_ledger.correctness.compaction.audit import check, elsewhere
from otel_context_ledger.correctness.compaction.course import MAX_KNOWN, MAX_OPEN, Course, Fate, Rules
from otel_context_ledger.correctness.compaction.event import KINDS, OUTCOMES, TRIGGERS
from otel_context_ledger.correctness.compaction.failures import read
from otel_context_ledger.correctness.compaction.happenings import Rewrite
from otel_context_ledger.correctness.compaction.manifest import Item, Manifest, status, telling
from otel_context_ledger.correctness.compaction.report import fields
from otel_context_ledger.correctness.compaction.restored import restored, row
from otel_context_ledger.correctness.compaction.summary import COMPACTED, PRUNED, Extent, seen
from otel_context_ledger.correctness.constraints import Constraint
from otel_context_ledger.correctness.history import Step
from otel_context_ledger.correctness.text import Text
from otel_context_ledger.correctness.wording import Wording
from otel_context_ledger.semconv import (
    CONTEXT_LEDGER_COMPACTION_KIND,
    CONTEXT_LEDGER_COMPACTION_OUTCOME,
    CONTEXT_LEDGER_COMPACTION_TRIGGER,
    MEMBERS,
    TYPES,
)
from tests.compaction_vectors import fold_all

RULES = Rules(declared=Manifest((Item(Constraint("C1", "never touch prod")),)))
TEXTS = st.sampled_from(["", "never touch prod", "Goal: billing.", "touch prod"])
IDS = st.sampled_from(["c1", "c2", "c3"])
# A call has an id of its own; one that is told twice is told again.
SUMMARISERS, CALLS = st.sampled_from(["s1", "s2", "s3"]), st.sampled_from(["e1", "e2", "e3"])
TOKENS = st.none() | st.integers(0, 300_000)
ITEMS = st.none() | st.sampled_from(["p1", "p2", "p3"])
REWRITES = st.builds(h.Rewrite, st.sampled_from(KINDS), st.none(), st.none() | TEXTS, st.booleans(), ITEMS)
MADE: list[Any] = [
    st.builds(h.Begun, st.just(1.0), IDS, st.sampled_from(KINDS), st.none() | st.sampled_from(TRIGGERS), TOKENS),
    st.builds(h.Ended, st.just(2.0), IDS, st.sampled_from(OUTCOMES[:3]), st.none(), st.none() | TEXTS, TOKENS),
    st.builds(h.Summarised, st.just(3.0), SUMMARISERS, st.sampled_from(["done", "failed", "empty"]), input=TOKENS),
    st.builds(
        h.Opened,
        st.just(4.0),
        CALLS,
        st.none() | st.booleans(),
        st.none() | REWRITES,
        st.tuples(TEXTS),
        continues=CALLS,
    ),
    st.builds(
        h.Called,
        st.just(5.0),
        TOKENS,
        TOKENS,
        header=TOKENS,
        header_same=st.booleans(),
        id=CALLS,
        item=ITEMS,
        cleared=TOKENS,
    ),
    st.builds(h.Resumed, st.just(6.0), st.lists(IDS).map(tuple)),
]
HAPPENED = st.lists(st.one_of(MADE), max_size=40)


@given(HAPPENED, st.integers(0, 40))
def test_a_session_that_goes_on_elsewhere_is_the_same_session(happened: list[h.Happening], at: int) -> None:
    """Folding what happened in two pieces gives the course, and tells the compactions, of folding it at once."""
    course, first = fold_all(Course(), happened[:at], RULES)
    course, second = fold_all(course, happened[at:], RULES)
    assert (course, (*first, *second)) == fold_all(Course(), happened, RULES)


@given(HAPPENED)
def test_every_compaction_is_told_for_the_last_time_once(happened: list[h.Happening]) -> None:
    """Whatever happens, each id that was told is settled once when the process ends, unless it is still under way."""
    course, told = fold_all(Course(), [*happened, h.Closed(9.0)], RULES)
    settled = Counter(event.id for event in told if event.settled)
    under_way = {event.id for event in course.begun}
    assert set(settled) | under_way >= {event.id for event in told}
    assert set(settled.values()) <= {1}
    assert all(event.outcome in OUTCOMES for event in told if event.settled)


@given(HAPPENED)
def test_a_summary_is_in_force_only_if_its_compaction_was_done(happened: list[h.Happening]) -> None:
    """The summary that later calls carry is that of the last one settled as done."""
    course, told = fold_all(Course(), [*happened, h.Closed(9.0)], RULES)
    done = [event for event in told if event.settled and event.outcome == "done" and event.whole]
    assert course.count == len(done)
    assert course.carried == ((done[-1].summary_hash, done[-1].id, done[-1].trusted) if done else (None, None, None))


def test_what_is_remembered_is_bounded() -> None:
    """Compactions that begin and never end, and ids that were told, do not pile up."""
    begun = [h.Begun(float(n), f"c{n}") for n in range(500)]
    course, told = fold_all(Course(), begun, RULES)
    assert (len(course.begun), len(course.known)) == (MAX_OPEN, MAX_KNOWN)
    assert sum(event.outcome == "orphaned" for event in told) == 500 - MAX_OPEN


def test_of_too_many_that_wait_the_oldest_is_told_as_it_is() -> None:
    """Compactions of single contents that no call follows are bounded too, and none is forgotten untold."""
    ended = [h.Ended(float(n), f"m{n}") for n in range(20)]
    happened = [part for end in ended for part in (h.Begun(end.at, end.id, "micro"), end)]
    course, told = fold_all(Course(), happened, RULES)
    assert (len(course.pending), [event.id for event in told if event.settled]) == (
        MAX_OPEN,
        [f"m{n}" for n in range(20 - MAX_OPEN)],
    )


def test_another_agent_of_the_session_shows_nothing() -> None:
    """A call that continues nothing, made while a compaction of its session waits, is a subagent's: the compaction goes
    on waiting for its own agent."""
    happened = [
        h.Opened(1.0, "e1"),
        h.Called(2.0, 90_000),
        h.Opened(3.0, "e2"),
        h.Called(4.0, 500),
        h.Ended(5.0, "c1", summary="never touch prod"),
        h.Opened(5.5, "e3"),
        h.Called(5.7, 600),
        h.Opened(6.0, "e4", extends=False, before=90_000),
        h.Called(7.0, 9_000),
    ]
    (event,) = (event for event in fold_all(Course(), happened, RULES)[1] if event.settled)
    assert (event.before.tokens, event.after.tokens) == (90_000, 9_000)


def test_a_course_goes_on_in_another_process() -> None:
    """From the rows of the ledger file: the chain, what was lost before and is not told again, and what never ended."""
    lost = [h.Ended(1.0, "c1", summary="Goal."), h.Opened(2.0, "e1"), h.Called(3.0, 9_000), h.Begun(4.0, "c2")]
    rows = [row(event) for event in fold_all(Course(), lost, RULES)[1]]
    again = [h.Resumed(5.0), h.Ended(6.0, "c3", summary="Still."), h.Opened(7.0, "e2"), h.Called(8.0, 9_000)]
    course, told = fold_all(restored(json.loads(json.dumps(rows))), again, RULES)
    settled = [event for event in told if event.settled]
    assert [(e.id, e.outcome, e.number, e.parent_hash, [s.name for s in e.symptoms]) for e in settled] == [
        ("c2", "orphaned", None, None, []),
        ("c3", "done", 2, RULES.digest("Goal."), []),
    ]
    assert course.fates == (Fate("C1", 1),)


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["compaction_event", "settled", "kind", "lost", "begun"]), st.none() | st.text()
        )
    )
)
def test_rows_of_any_form_can_be_read(rows: list[dict[str, object]]) -> None:
    """A torn or foreign row tells nothing and breaks nothing."""
    assert restored(rows).count == 0


def test_the_words_are_those_of_the_registry() -> None:
    """Kinds, triggers and outcomes are spelled as in the registry."""
    assert (
        MEMBERS[CONTEXT_LEDGER_COMPACTION_KIND],
        MEMBERS[CONTEXT_LEDGER_COMPACTION_TRIGGER],
        MEMBERS[CONTEXT_LEDGER_COMPACTION_OUTCOME],
    ) == (KINDS, TRIGGERS, OUTCOMES)


@given(HAPPENED)
def test_a_compaction_is_told_in_the_words_of_the_registry(happened: list[h.Happening]) -> None:
    """Every field that is told has its attribute, with the type and the words of it."""
    types = {"string": str, "string[]": list, "int": int, "double": float}
    for event in fold_all(Course(), [*happened, h.Closed(9.0)], RULES)[1]:
        for name, value in fields(event).items():
            key = f"context_ledger.compaction.{name}"
            assert isinstance(value, types[TYPES[key]])
            assert value in MEMBERS.get(key, (value,))


def test_what_was_too_long_to_look_through_is_not_lost() -> None:
    """A history of megabytes is looked through from its end; what may stand further up is uncertain."""
    declared = Manifest((Item(Constraint("C1", "never touch prod")), Item(Constraint("C2", "ask before a deployment"))))
    kept = ["never touch prod", "x " * 2**19, "ask before a deployment"]
    found = elsewhere(check(declared, "Goal: billing.", Wording()), "history", kept, Wording())
    assert [(s.match.verdict, s.match.matcher, s.via) for s in found.standings] == [
        ("uncertain", "unseen", "history"),
        ("held", "exact", "history"),
    ]


STATES = {
    "- [x] T1 rename the queue": "done",
    "- [ ] T1 rename the queue": "active",
    "Rename the queue: completed without errors.": "done",
    "T1 isn't finished.": "active",
    "T1 was pending and is done now.": None,
    "T10 completed.": None,
    "T1 will be completed next.": None,
    "T1 needs to be finished first.": None,
    "Once T1 is done, deploy.": None,
    "T1 is almost done.": None,
    "T1: 80% implemented.": None,
    "Is T1 done?": None,
    "Complete T1.": None,
    "T0 done, T1 next": None,
    "T0 is done and T1 is in progress.": "active",
    "T1 cannot be completed.": "active",
    "- [x] T1, before T2": "done",
    "We talked about T1.": None,
}


@pytest.mark.parametrize(("text", "want"), STATES.items())
def test_how_far_a_text_says_that_work_is(text: str, want: str | None) -> None:
    """Only a clear word about this piece of work counts; both words, or none, say nothing, and neither does what is
    planned, asked or true of a part."""
    assert status(Item(Constraint("T1", "rename the queue", kind="todo"), "active"), telling(Text(text))) == want


def test_words_of_the_work_itself_say_nothing_of_it() -> None:
    """Its text may hold any of the words; only what stands beside it counts."""
    work = Item(
        Constraint("", "Mark merged requests as done, and close what is pending before Friday", kind="todo"), "active"
    )
    said = [f"Goal: {work.constraint.text}.", f"{work.constraint.text}: completed."]
    assert [status(work, telling(Text(text))) for text in said] == [None, "done"]


EXTENTS = {
    "all": (Extent(40, offset=1), ("full", "1-40")),
    "all but the last two": (Extent(40, after=2, offset=1), ("full", "1-38")),
    "from a message on": (Extent(40, before=30, offset=1), ("partial_from", "31-40")),
    "up to a message": (Extent(40, after=20), ("partial_up_to", "0-19")),
    "nothing": (Extent(40, before=40), ("partial_from", None)),
}


@pytest.mark.parametrize(("extent", "want"), EXTENTS.values(), ids=EXTENTS.keys())
def test_which_messages_were_compacted(extent: Extent, want: tuple[str, str | None]) -> None:
    """The kind and the range follow from how much of the history stayed, before and after."""
    assert (extent.kind, extent.replaced) == want


USER = Step("user", ("fix it",))
SUMMARY = Step("user", ("Another language model started to solve this problem. Goal: billing.",))
OPENINGS = ("Another language model started to solve this problem",)
SEEN = {
    "a known opening": ((USER, SUMMARY), Extent(40), None, Rewrite("full", "0-39", SUMMARY.text)),
    "a summary of nobody's form": ((USER,), Extent(40), COMPACTED, Rewrite("full", "0-39", None, False)),
    "a summary beside reminders": (
        (Step("user", ("<system-reminder>rules</system-reminder>", *SUMMARY.texts)),),
        Extent(40),
        None,
        Rewrite("full", "0-39", SUMMARY.text),
    ),
    "contents that were cut": ((USER,) * 7, Extent(40, 3, 30), PRUNED, Rewrite("micro", "3-9")),
    "another agent's history": ((USER,) * 5, Extent(2), PRUNED, None),
    "messages that are gone, in nobody's form": ((USER,), Extent(40, 3, 30), PRUNED, None),
    "the provider's item": (
        (Step("user", compaction=True, id="cmp_1"),),
        Extent(40, 40),
        None,
        Rewrite("provider", None, None, False, "cmp_1"),
    ),
    "a user who writes like a summary": ((SUMMARY,), Extent(40, 40), None, None),
    "another change": ((USER,), Extent(40, 10), "history_rewritten(edited)", None),
}


@pytest.mark.parametrize(("new", "extent", "cause", "want"), SEEN.values(), ids=SEEN.keys())
def test_what_a_history_shows_of_a_compaction(
    new: Any, extent: Extent, cause: str | None, want: Rewrite | None
) -> None:
    """A summary is one where messages gave way to it and it opens like one; what else a user wrote there is none."""
    assert seen(new, extent, OPENINGS, cause) == want


@given(st.text(max_size=300))
def test_any_error_can_be_read(text: str) -> None:
    """A text is a failure of a known reason, or of none."""
    found = read(text)
    assert found is None or found.reason in ("prompt_too_long", "invalid_max_tokens", "request_too_large")
