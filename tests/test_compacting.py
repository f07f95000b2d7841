"""Telling of a compaction and declaring constraints: what reaches the ledger, and that nothing is raised."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from otel_context_ledger import compacting, compaction, constraint, declaring, session, validate_with
from otel_context_ledger.correctness.compaction.course import Course, Rules
from otel_context_ledger.correctness.compaction.event import Limits
from otel_context_ledger.correctness.compaction.happenings import Begun, Declared, Ended
from otel_context_ledger.correctness.compaction.manifest import Item
from otel_context_ledger.correctness.constraints import Constraint, Match
from otel_context_ledger.mailbox import MAX_DECLARED, MAX_TEXTS, MAX_WAITING, Letter, Mailbox, mailbox
from tests import hostile
from tests.compaction_vectors import fold_all

LENGTHY = "prompt is too long: 212230 tokens > 200000 maximum"


@pytest.fixture(autouse=True)
def ledger() -> Iterator[None]:
    """A ledger that runs, as far as the mailbox knows."""
    mailbox.open()
    mailbox.take()
    yield
    mailbox.take()
    mailbox.close()


def told() -> list[Any]:
    """What the ledger would take now, with the clock stopped and ids by number."""
    names: dict[str, str] = {}
    found: list[Any] = []
    for letter in mailbox.take():
        happening: Any = replace(letter.happening, at=0.0)
        if isinstance(happening, (Begun, Ended)):
            named = names.setdefault(happening.id, f"c{len(names) + 1}")
            happening = replace(happening, id=named)
        found.append(happening)
    return found


def test_a_block_tells_when_it_begins_and_ends() -> None:
    """Around a block: what was known before, and the summary that came of it."""
    with compaction(trigger="auto", tokens_before=212_039, source_range=(1, 119), threshold=0.85, window=262_144) as c:
        c.done("Goal: billing.", tokens_after=36_000)
    limits = Limits(262_144, 0.85)
    assert told() == [
        Begun(0.0, "c1", "full", "auto", 212_039, "1-119", limits),
        Ended(0.0, "c1", "done", None, "Goal: billing.", 36_000),
    ]


def test_a_block_that_says_nothing_is_done_without_a_summary() -> None:
    """Whether anything was removed is left to the next call to show."""
    with compaction():
        pass
    assert told() == [Begun(0.0, "c1"), Ended(0.0, "c1")]


def test_an_error_leaves_the_block_and_is_told() -> None:
    """The program sees its own error; the ledger keeps what it says of lengths, and no text."""
    with pytest.raises(ValueError, match="too long"), compaction(kind="micro"):
        raise ValueError(LENGTHY)
    _, ended = told()
    assert (ended.outcome, ended.reason, dict(ended.failure.tokens)) == (
        "failed",
        "prompt_too_long",
        {"prompt": 212230, "limit": 200000},
    )


def test_calls_in_place_of_a_block() -> None:
    """Begun in one place and ended in another; what is told after the end is not heard."""
    c = compaction("c-7", trigger="manual").start()
    c.skip("Nothing to remove")
    c.done("late")
    c.fail("late")
    assert told() == [Begun(0.0, "c1", "full", "manual"), Ended(0.0, "c1", "skipped", "nothing_to_remove")]


def test_an_end_without_a_beginning_tells_both() -> None:
    """What is known of the compaction comes with its end, if it was not told before."""
    compaction("c-7", trigger="manual").fail(RuntimeError("no route"))
    assert told() == [Begun(0.0, "c1", "full", "manual"), Ended(0.0, "c1", "failed", "RuntimeError")]


@pytest.mark.parametrize(
    ("reason", "want"),
    [
        ("no_route", "no_route"),
        ("Acme's key is invalid", "other"),
        ("the account of Acme is gone", "other"),
        ("", None),
    ],
)
def test_of_an_errors_text_nothing_is_kept(reason: str, want: str | None) -> None:
    """A word is the program's own; a text of several may quote anything."""
    compaction().fail(reason)
    _, ended = told()
    assert (ended.outcome, ended.reason or None) == ("failed", want)


def test_each_call_of_a_function_is_a_compaction_of_its_own() -> None:
    """A decorator tells of every call, also of a coroutine."""

    @compaction(trigger="auto")
    def plain() -> int:
        return 1

    @compaction(trigger="auto")
    async def coroutine() -> int:
        return 2

    assert (plain(), plain(), asyncio.run(coroutine())) == (1, 1, 2)
    assert [happening.id for happening in told()] == ["c1", "c1", "c2", "c2", "c3", "c3"]


def test_the_session_around_it_comes_along() -> None:
    """A compaction belongs to the session and task in which it is told."""
    with session("s-1"), compaction():
        pass
    assert {letter.session for letter in mailbox.take()} == {"s-1"}


class Hostile(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize("value", [object(), -1, True, b"x", float("nan"), [1], {"a": 1}, "no", Hostile()])
def test_no_value_raises(value: Any) -> None:
    """Whatever is given, the program goes on and the value says nothing."""
    c = compaction(
        value,
        kind=value,
        trigger=value,
        tokens_before=value,
        source_range=value,
        threshold=value,
        window=value,
    )
    c.start().fail(value)
    compaction().done(value, tokens_after=value)
    constraint(value, value, supersedes=value, kind=value, severity=value, terms=value, status=value, evidence=value)
    begun = next(happening for happening in told() if isinstance(happening, Begun))
    assert (begun.kind, begun.trigger, begun.tokens, begun.source_range, begun.limits) == (
        "full",
        None,
        None,
        None,
        Limits(),
    )


@pytest.mark.parametrize("kind", sorted(hostile.MAKERS))
def test_no_object_raises(kind: str) -> None:
    """Whatever an object does when it is looked at, a proxy that says what it is not, say, nothing is raised."""
    value = hostile.make(hostile.Made(kind))
    given: dict[str, Any] = dict.fromkeys(("kind", "trigger", "tokens_before", "threshold", "window"), value)
    compaction(value, source_range=(value, value), **given).start().skip(value)
    compaction(source_range=value).fail(value)
    compaction().done(value, tokens_after=value)
    constraint(
        value, value, supersedes=value, kind=value, severity=value, terms=[value], status=value, evidence=[value]
    )
    assert [type(happening) for happening in told()][:6] == [Begun, Ended] * 3


def test_an_unknown_keyword_is_an_error() -> None:
    """A misspelt keyword is the programmer's to correct."""
    with pytest.raises(TypeError, match=r"compaction\(\) got an unexpected keyword argument 'tokens'"):
        compaction(tokens=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"constraint\(\) got an unexpected keyword argument 'sort'"):
        constraint("C1", "x", sort=1)  # type: ignore[call-arg]


def test_a_constraint_is_declared_and_its_work_told_done() -> None:
    """A todo is active from its declaration until its program says else, with what shows it."""
    constraint("T1", "rename the queue", kind="todo", terms=["queue"])
    constraint("T1", status="done", evidence=["pytest-41", "commit-aaa"])
    assert told() == [
        Declared(0.0, Item(Constraint("T1", "rename the queue", terms=("queue",), kind="todo"), "active")),
        Declared(0.0, Item(Constraint("T1", ""), "done", ("pytest-41", "commit-aaa"))),
    ]


def test_what_says_nothing_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """A word that is none, and a constraint without an id, are one warning each that holds no value."""
    compacting._warned.clear()
    declaring._warned.clear()
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            compaction(trigger="sometimes")
            constraint("", "text")
    assert [record.getMessage() for record in caplog.records] == [
        "context ledger: compaction: the trigger is none of auto, manual, reactive, window_downshift; it says nothing",
        "context ledger: constraint: it has no id, or neither text nor status; it is not kept",
    ]


def test_without_a_ledger_only_declarations_wait() -> None:
    """Constraints may be declared before the ledger starts; compactions before it are nobody's."""
    mailbox.close()
    constraint("C1", "never touch prod")
    compaction().done("Goal.")
    assert told() == [Declared(0.0, Item(Constraint("C1", "never touch prod")))]


def test_the_mailbox_is_bounded() -> None:
    """Of too many letters the oldest are lost, and counted."""
    box = Mailbox()
    box.open()
    for number in range(MAX_WAITING + 3):
        box.put(Letter(None, None, Ended(float(number), "c")))
    assert (len(box.take()), box.lost, box.take()) == (MAX_WAITING, 3, ())


def test_a_ledger_that_starts_is_told_what_was_declared() -> None:
    """To it or to one before it, each with the last that was said of it, and of too many the latest."""
    box = Mailbox()
    todo = Item(Constraint("T1", "rename the queue", kind="todo"), "active")
    for item in (todo, Item(Constraint("T1", ""), "done", ("pytest-41",))):
        box.put(Letter("s1", None, Declared(0.0, item)))
    box.take()
    box.open()
    merged = Item(todo.constraint, "done", ("pytest-41",))
    assert box.take() == (Letter("s1", None, Declared(0.0, merged)),)
    for number in range(MAX_DECLARED + 1):
        box.put(Letter(None, None, Declared(0.0, Item(Constraint(f"C{number}", "never touch prod")))))
    box.take()
    box.open()
    assert (len(box.take()), box.take()) == (MAX_DECLARED, ())


def test_texts_that_nobody_takes_are_bounded() -> None:
    """A program may compact for hours without a call: beyond a few, summaries wait without their texts."""
    box = Mailbox()
    box.open()
    for number in range(MAX_TEXTS + 3):
        box.put(Letter(None, None, Ended(float(number), "c", summary="Goal.")))
    texts = [letter.happening.summary for letter in box.take() if isinstance(letter.happening, Ended)]
    assert texts == ["Goal."] * MAX_TEXTS + [None] * 3


def test_a_forked_child_tells_nothing_of_its_parents() -> None:
    """What was declared holds in the child too; compactions are the parent's to tell."""
    box = Mailbox()
    box.open()
    declared = Letter(None, None, Declared(0.0, Item(Constraint("C1", "never touch prod"))))
    box.put(declared)
    box.put(Letter(None, None, Ended(0.0, "c")))
    box.renew()
    assert box.take() == (declared,)


def test_what_a_program_tells_is_a_compaction_of_its_session() -> None:
    """From the program's calls to the audited event."""
    constraint("C1", "never touch prod")
    with compaction("c-1", trigger="auto") as c:
        c.done("Goal: billing.")
    _, events = fold_all(Course(), [letter.happening for letter in mailbox.take()], Rules())
    last = events[-1]
    assert last.audit is not None
    assert (last.id, last.trigger, last.outcome, last.audit.result, last.audit.lost) == (
        "c-1",
        "auto",
        "done",
        "fail",
        ("C1",),
    )


class Wrong:
    """A validator that answers the same to everything."""

    name, version = "wrong", "7"

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def match(self, _: Constraint, text: str) -> Any:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


ANSWERS = {
    "a match": (Match("held", "model", 0.7), Match("held", "model", 0.7)),
    "a match that tells what it read": (Match("lost", "it says: touch prod", 1), Match("lost", "other", 1.0)),
    "an error": (RuntimeError(), Match("uncertain", "failed", 0.0)),
    "nothing": (None, Match("uncertain", "failed", 0.0)),
    "a word that is none": (Match("maybe", "model", 0.7), Match("uncertain", "failed", 0.0)),
}


@pytest.mark.parametrize(("answer", "want"), ANSWERS.values(), ids=ANSWERS.keys())
def test_another_validator(monkeypatch: pytest.MonkeyPatch, answer: Any, want: Match) -> None:
    """A program's own validator tells under its own name; whatever it does wrong makes the constraint uncertain."""
    monkeypatch.setattr(declaring, "chosen", declaring.Chosen())
    validate_with(Wrong(answer))
    told = declaring.chosen
    assert (told.name, told.version, told.match(Constraint("C1", "x"), "text")) == ("wrong", "7", want)
