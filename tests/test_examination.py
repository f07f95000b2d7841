"""All checks of one request together, and what a request that continues another one costs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from otel_context_ledger.canonical import canonical, digest
from otel_context_ledger.correctness.constraints import Constraint
from otel_context_ledger.correctness.examination import MAX_AT_ONCE, Examination, Examiner, Subject, World
from otel_context_ledger.correctness.policy import RulesFile
from otel_context_ledger.model import Check, Findings

RULE = "Never edit files under migrations/"
RULES = RulesFile("AGENTS.md").changed(f"# Rules\n- {RULE}\n- Reuse the idempotency key\n", 0.0)
TURNS = Check("compatible", Findings((), ("turns=0",)))
HELD = Check("held", Findings((), ("declared=1", "lost=0", "uncertain=0"), ("validator=wording@1",)))
LOST = Check(
    "lost", Findings((), ("declared=1", "lost=1", "uncertain=0"), ("validator=wording@1", "lost=C1:none:0.76"))
)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def subject(name: str, messages: Sequence[Any], system: str = "You are an agent.", **more: Any) -> Subject:
    return Subject(
        name, [system], [digest(system.encode())], messages, [digest(canonical(one)) for one in messages], **more
    )


def examiner(**world: Any) -> Examiner:
    return Examiner(lambda: World(10.0, **world))


def test_a_constraint_said_in_the_history_is_held_until_it_is_cut_off() -> None:
    """What stood in a message is held while the message is sent, and lost with it."""
    look = examiner(constraints=(Constraint("C1", RULE),))
    said = [user(f"Fix the bug. {RULE}."), user("go on")]
    verdicts = [
        look.begin(subject("1", said)).constraints,
        look.begin(subject("2", [*said, user("and the tests")], before="1", shared=2)).constraints,
        look.begin(subject("3", [user("Goal: billing."), user("and the tests")], before="2", shared=0)).constraints,
    ]
    assert verdicts == [HELD, HELD, LOST]


def test_a_constraint_declared_later_is_looked_for_in_what_was_said_before() -> None:
    """Declaring a rule in mid-session does not make it lost."""
    declared: list[Constraint] = []
    look = Examiner(lambda: World(10.0, constraints=tuple(declared)))
    said = [user(f"Fix the bug. {RULE}.")]
    first = look.begin(subject("1", said)).constraints
    declared.append(Constraint("C1", RULE))
    then = look.begin(subject("2", [*said, user("go on")], before="1", shared=1)).constraints
    assert (first, then) == (None, HELD)


def test_rules_are_looked_for_in_the_system_part_and_in_reminders() -> None:
    """A rules file is consistent wherever the client put it, and a pillar without anything to compare is not asked."""
    text = f"# Rules\n- {RULE}\n- Reuse the idempotency key\n"
    sent = [
        examiner(rules=(RULES,)).begin(subject("1", [user("hi")], system=f"You are an agent.\n{text}")),
        examiner(rules=(RULES,)).begin(
            subject("1", [user(f"<system-reminder>\n{text}</system-reminder>"), user("hi")])
        ),
    ]
    consistent = Examination(Check("consistent", Findings((), ("files=1",))), None, TURNS)
    assert sent == [consistent, consistent]


def test_a_request_with_much_that_is_new_is_examined_later() -> None:
    """The program does not wait for a long history that nobody has seen; asked again, the verdicts are there."""
    look = examiner(constraints=(Constraint("C1", RULE),))
    begun = look.begin(subject("1", [user(RULE), *(user(f"turn {n}") for n in range(MAX_AT_ONCE))]))
    assert (begun.constraints, begun.state) == (None, None)
    assert look.finish(begun) == Examination(None, HELD, TURNS)


def test_what_the_next_request_appends_is_all_that_is_read() -> None:
    """After a long history was examined, an append is examined at once."""
    look = examiner(constraints=(Constraint("C1", RULE),))
    long = [user(RULE), *(user(f"turn {n}") for n in range(MAX_AT_ONCE))]
    look.finish(look.begin(subject("1", long)))
    assert look.begin(subject("2", [*long, user("more")], before="1", shared=len(long))) == Examination(
        None, HELD, TURNS
    )
