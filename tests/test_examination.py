"""All checks of one request together, and what a request that continues another one costs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from otel_context_ledger.canonical import canonical, digest
from otel_context_ledger.correctness.constraints import Constraint, Match
from otel_context_ledger.correctness.examination import (
    MAX_AT_ONCE,
    MAX_CHARACTERS,
    Answer,
    Examination,
    Examiner,
    Subject,
    World,
)
from otel_context_ledger.correctness.policy import RulesFile
from otel_context_ledger.model import Check, Findings

RULE = "Never edit files under migrations/"
DECLARED = (Constraint("C1", RULE),)
RULES = RulesFile("AGENTS.md").changed(f"# Rules\n- {RULE}\n- Reuse the idempotency key\n", 0.0)
TURNS = Check("compatible", Findings((), ("turns=0",)))
HELD = Check("held", Findings((), ("declared=1", "lost=0", "uncertain=0"), ("validator=wording@1",)))
LOST = Check(
    "lost", Findings((), ("declared=1", "lost=1", "uncertain=0"), ("validator=wording@1", "lost=C1:none:0.61"))
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
    look, said = examiner(), [user(f"Fix the bug. {RULE}."), user("go on")]
    cut = [user("Goal: billing."), user("and the tests")]
    verdicts = [
        look.begin(subject("1", said, constraints=DECLARED)).constraints,
        look.begin(subject("2", [*said, cut[1]], before="1", shared=2, constraints=DECLARED)).constraints,
        look.begin(subject("3", cut, before="2", shared=0, constraints=DECLARED)).constraints,
    ]
    assert verdicts == [HELD, HELD, LOST]


def test_a_constraint_declared_later_is_looked_for_in_what_was_said_before() -> None:
    """Declaring a rule in mid-session does not make it lost."""
    look, said = examiner(), [user(f"Fix the bug. {RULE}.")]
    first = look.begin(subject("1", said)).constraints
    then = look.begin(subject("2", [*said, user("go on")], before="1", shared=1, constraints=DECLARED)).constraints
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
    look, long = examiner(), [user(RULE), *(user(f"turn {n}") for n in range(MAX_AT_ONCE))]
    begun = look.begin(subject("1", long, constraints=DECLARED))
    assert (begun.constraints, begun.state) == (None, None)
    assert look.finish(begun) == Examination(None, HELD, TURNS)


def test_what_the_next_request_appends_is_all_that_is_read() -> None:
    """After a long history was examined, an append is examined at once."""
    look, long = examiner(), [user(RULE), *(user(f"turn {n}") for n in range(MAX_AT_ONCE))]
    look.finish(look.begin(subject("1", long, constraints=DECLARED)))
    more = subject("2", [*long, user("more")], before="1", shared=len(long), constraints=DECLARED)
    assert look.begin(more) == Examination(None, HELD, TURNS)


def test_what_the_provider_keeps_cannot_be_looked_through() -> None:
    """A rule said in a history that the provider keeps, or that it has sealed in a summary, is not lost; nor is a rules
    file missing. What is sent again is held."""
    sealed = {"type": "compaction", "encrypted_content": "gAAAA"}
    told = [
        examiner(rules=(RULES,)).begin(subject("1", [user("go on")], whole=False, constraints=DECLARED)),
        examiner(rules=(RULES,)).begin(subject("1", [sealed, user("go on")], constraints=DECLARED)),
        examiner().begin(subject("1", [user(RULE)], whole=False, constraints=DECLARED)),
    ]
    unseen = Check(
        "not_verifiable", Findings((), ("declared=1",), ("validator=wording@1", "reason=history_at_provider"))
    )
    missing = Check("unknown", Findings(evidence=("reason=history_at_provider",)))
    assert [(one.policy, one.constraints) for one in told] == [(missing, unseen), (missing, unseen), (None, HELD)]


REWORDED = "Leave the migrations folder untouched, please."
ONE_UNSURE = ("declared=1", "lost=0", "uncertain=1")
UNSURE = Check("uncertain", Findings((), ONE_UNSURE, ("validator=wording@1", "uncertain=C1:sense:0.60")))


def grown(look: Examiner, first: str, turns: int = 50, **more: Any) -> list[Examination]:
    """A session whose user says `first`, and then something of their own in each of many requests."""
    said: list[Any] = []
    found = []
    for turn in range(turns):
        said = [*said, user(first if turn == 0 else f"and now look at part {turn} of the billing module")]
        asked = subject(str(turn), said, before=str(turn - 1), shared=turn, **more)
        found.append(look.begin(asked))
    return found


def test_rules_in_the_first_message_stay_known_in_a_long_session() -> None:
    """Clients put rules files into the first message: many messages later they are still there, and not missing."""
    text = f"<system-reminder>\n# Rules\n- {RULE}\n- Reuse the idempotency key\n</system-reminder>"
    verdicts = {one.policy for one in grown(examiner(rules=(RULES,)), text)}
    assert verdicts == {Check("consistent", Findings((), ("files=1",)))}


@pytest.mark.parametrize(("first", "want"), [(REWORDED, UNSURE), ("Fix the bug.", None)])
def test_a_constraint_keeps_its_verdict_in_a_long_session(first: str, want: Check | None) -> None:
    """What was said in other words long ago does not become lost by the messages after it, nor what is lost unsure."""
    verdicts = [one.constraints for one in grown(examiner(), first, constraints=DECLARED)]
    assert {check.verdict for check in verdicts if check} == {want.verdict if want else "lost"}
    assert want is None or set(verdicts) == {want}


def test_a_constraint_declared_late_may_stand_in_what_is_not_kept() -> None:
    """Nobody looked for it in messages that are long gone by: that is not lost."""
    look = examiner()
    grown(look, REWORDED)
    said = [user(REWORDED), *(user(f"and now look at part {turn} of the billing module") for turn in range(1, 51))]
    check = look.begin(subject("late", said, before="49", shared=50, constraints=DECLARED)).constraints
    assert check == Check(
        "uncertain",
        Findings((), ONE_UNSURE, ("validator=wording@1", "uncertain=C1:unseen:0.00")),
    )


def test_a_long_text_is_looked_through_later() -> None:
    """The program does not wait while a constraint is looked for in a long text in other words; one that stands there
    word for word is found at once."""
    long = "and " * 20000
    look = examiner()
    begun = look.begin(subject("1", [user(f"{long}. {REWORDED}")], constraints=DECLARED))
    held = look.begin(subject("2", [user(f"{long}. {RULE}")], constraints=DECLARED))
    assert (begun.constraints, look.finish(begun).constraints, held.constraints) == (None, UNSURE, HELD)


def test_a_text_that_waits_to_be_looked_through_is_not_forgotten() -> None:
    """A call that is made before that was done looks through it itself, or later as well."""
    look, said = examiner(), [user("and " * 20000 + f". {REWORDED}")]
    look.begin(subject("1", said, constraints=DECLARED))
    more = look.begin(subject("2", [*said, user("go on")], before="1", shared=1, constraints=DECLARED))
    assert (more.constraints, look.finish(more).constraints) == (None, UNSURE)


def test_a_summary_of_the_provider_is_all_that_is_left_of_what_stands_before_it() -> None:
    """Anthropic passes over the messages before its own summary: what they said does not reach the model any more, what
    the summary says does."""
    look, said = examiner(), [user(f"Fix the bug. {RULE}."), {"role": "assistant", "content": "done"}]
    block = {"type": "compaction", "content": f"The user wants: {RULE.lower()}."}
    kept = {"role": "assistant", "content": [block]}
    lost = {"role": "assistant", "content": [{**block, "content": "Goal: billing."}]}
    sealed = {"role": "assistant", "content": [{"type": "compaction", "encrypted_content": "gAAAA"}]}
    look.begin(subject("1", said, constraints=DECLARED))
    told = [
        look.begin(subject(name, [*said, one, user("go on")], before="1", shared=2, constraints=DECLARED)).constraints
        for name, one in (("kept", kept), ("lost", lost), ("sealed", sealed))
    ]
    assert [check.verdict for check in told if check] == ["held", "lost", "not_verifiable"]


class Calling:
    """A validator that looks at another request meanwhile, as one does that asks a model that the ledger sees."""

    name, version = "calling", "1"

    def __init__(self, look: list[Examiner]) -> None:
        self._look = look

    def match(self, constraint: Constraint, text: str) -> Match:
        self._look[0].begin(subject("beside", [user("is it there?")]))
        return Match("held", "model", 0.9)


def test_a_validator_may_make_calls_itself() -> None:
    """No lock is held while a program's own validator tells."""
    look: list[Examiner] = []
    look.append(Examiner(lambda: World(10.0), Calling(look)))
    found = look[0].begin(subject("1", [user("Fix the bug.")], constraints=DECLARED)).constraints
    assert found == Check("held", Findings((), ("declared=1", "lost=0", "uncertain=0"), ("validator=calling@1",)))


def asked(name: str, thought: bool = False) -> dict[str, Any]:
    calls = [{"id": name, "function": {"name": "read", "arguments": "{}"}}]
    return {"role": "assistant", "tool_calls": calls, **({"reasoning_content": "because"} if thought else {})}


def told(name: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "content": "text"}


DROPPED = Check("reasoning_dropped", Findings((), ("turns=1", "bare=1"), ("message=1",)))


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        (Answer(9.0, ("a",), thought=True), DROPPED),
        (Answer(9.0, ("a",)), Check("compatible", Findings((), ("turns=1",)))),
        (Answer(9.0, ("z",), thought=True), Check("compatible", Findings((), ("turns=1",)))),
    ],
)
def test_reasoning_that_came_with_a_call_must_go_back_with_it(answer: Answer, want: Check) -> None:
    """A client that leaves out the reasoning of the answer that it got is told so at the next call, whatever came
    before; one whose model did not reason is not."""
    look, first = examiner(), [user("fix it")]
    look.begin(subject("1", first, replayed=True))
    look.answered("1", answer)
    then = [*first, asked("a"), told("a")]
    assert look.begin(subject("2", then, before="1", shared=1, replayed=True)).state == want


def test_reasoning_that_was_sent_before_must_not_be_left_out_later() -> None:
    """A history that is sent again without the reasoning that it had lacks it from that message on."""
    look, first = examiner(), [user("fix it"), asked("a", thought=True), told("a")]
    before = look.begin(subject("1", first, replayed=True)).state
    bare = [first[0], asked("a"), told("a"), user("go on")]
    after = look.begin(subject("2", bare, before="1", shared=1, replayed=True)).state
    assert (before, after) == (Check("compatible", Findings((), ("turns=1",))), DROPPED)


def test_turns_of_the_model_before_are_another_models() -> None:
    """What a model was asked for is its own; after a switch the history says whose turns it holds."""
    look, first = examiner(), [user("fix it")]
    look.begin(subject("1", first, model="k3"))
    then = [*first, asked("a", thought=True), told("a")]
    same = look.begin(subject("2", then, before="1", shared=1, model="k3")).state
    other = look.begin(subject("3", [*then, user("go on")], before="2", shared=3, model="k3-256k")).state
    assert same == Check("compatible", Findings((), ("turns=1",)))
    assert other == Check(
        "unknown", Findings(("other_model",), ("turns=1", "other_model=1"), ("reason=reasoning_of_another_model",))
    )


def test_a_result_whose_call_is_sent_by_reference_is_unknown() -> None:
    """Items that the provider keeps and the request only names may hold the call."""
    messages = [user("fix it"), {"type": "item_reference", "id": "fc_1"}, told("a")]
    assert examiner().begin(subject("1", messages)).state == Check(
        "unknown", Findings((), ("turns=0",), ("reason=history_at_provider",))
    )


def test_the_texts_that_are_kept_are_bounded() -> None:
    """What users said is kept for the next request, the latest of it, and no more than fits: a request that continues a
    forgotten one is looked through again."""
    look = examiner()
    for number in range(6):
        look.begin(subject(str(number), [user("x" * (MAX_CHARACTERS // 4))]))
    assert list(look._kept) == ["2", "3", "4", "5"]
    again = [look.begin(subject("next", [user("y")] * 2, before=before, shared=1)) for before in ("0", "5")]
    assert [one.state for one in again] == [TURNS, TURNS]
