"""Whether declared constraints stand in a text."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_context_ledger.correctness.constraints import (
    Constraint,
    Match,
    Recall,
    judge,
    rank,
    successors,
)
from otel_context_ledger.correctness.wording import Wording, stands
from otel_context_ledger.model import Check, Findings

MIGRATIONS = Constraint("C1", "Do not modify files under migrations/")
KEY = Constraint("C2", "Reuse the idempotency key")
PROD = Constraint("C3", "never touch prod")
GENERATED = Constraint("C4", "Never edit generated files by hand")

MATCHES = {
    "word for word": (MIGRATIONS, "Rules: do not modify files under migrations/. Go on.", Match("held", "exact", 1.0)),
    "markup and case": (MIGRATIONS, "- **Do NOT modify** files\n  under `migrations/`", Match("held", "exact", 1.0)),
    "CP02: in other words": (MIGRATIONS, "leave the migrations folder untouched", Match("uncertain", "sense", 0.6)),
    "in another order": (
        GENERATED,
        "Generated files must never be edited by hand.",
        Match("uncertain", "wording", 0.84),
    ),
    "a mere mention": (MIGRATIONS, "We looked at migrations/ first.", Match("uncertain", "mention", 0.3)),
    "CP01: not there": (MIGRATIONS, "Goal: split the billing module.", Match("lost", "none", 0.60)),
    "the opposite": (KEY, "never reuse the idempotency key", Match("negated", "exact", 0.8)),
    "an item of a list": (KEY, "- Do not push\n- Reuse the idempotency key\n", Match("held", "exact", 1.0)),
    "a line of its own": (KEY, "Do not push\nReuse the idempotency key", Match("held", "exact", 1.0)),
    "a line that goes on": (KEY, "Whatever you do, never\nreuse the idempotency key", Match("negated", "exact", 0.8)),
    "two negations": (KEY, "Do not forget to reuse the idempotency key.", Match("held", "exact", 1.0)),
    "a negation of something else": (KEY, "Never guess. Reuse the idempotency key.", Match("held", "exact", 1.0)),
    "part of a longer word": (PROD, "never touch products", Match("uncertain", "wording", 0.83)),
    "words that no rewording can do without": (
        Constraint("C5", "Pay in euros only", terms=("EUR",)),
        "All amounts are in EUR.",
        Match("uncertain", "sense", 0.6),
    ),
    "an empty text": (PROD, "", Match("lost", "none", 1.0)),
}


@pytest.mark.parametrize(("constraint", "text", "want"), MATCHES.values(), ids=MATCHES.keys())
def test_how_a_constraint_stands_in_a_text(constraint: Constraint, text: str, want: Match) -> None:
    """A match is exact, in other words, or absent, and a difference of wording alone never makes it lost."""
    assert Wording().match(constraint, text) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("- Do not push\n- Reuse the idempotency key", True),
        ("never Reuse the idempotency key", False),
        ("Reuse the idempotency keys", False),
        ("reuse the idempotency key", False),
        ("", False),
        ("Reuse the idempotency key unless it failed", False),
        ("Superseded: Reuse the idempotency key", False),
        ("Do not Reuse the idempotency key.\n\nReuse the idempotency key", True),
        ("## Rules that no longer apply\n\n- Do not push\n- Reuse the idempotency key", False),
    ],
)
def test_what_stands_as_it_is_written(text: str, want: bool) -> None:
    """The quick look finds whole words that nothing turns round or takes back; what it does not find is looked for
    closely."""
    assert stands(KEY, text) is want


def found_in(constraints: Sequence[Constraint], *texts: str) -> Recall:
    """The best match of each constraint among the texts."""
    best = {c.id: max((Wording().match(c, text) for text in texts), key=rank) for c in constraints}
    return Recall(best, "wording@1")


def test_the_best_place_counts() -> None:
    """CP23: a rule that the summary lost and the rules file brings back is held."""
    found = found_in([MIGRATIONS, KEY], "Goal: billing.", "do not modify files under migrations/")
    assert judge([MIGRATIONS, KEY], found) == Check(
        "lost", Findings((), ("declared=2", "lost=1", "uncertain=0"), ("validator=wording@1", "lost=C2:none:0.64"))
    )


def test_a_superseded_constraint_need_not_be_there() -> None:
    """Only what is in force is asked for."""
    rules = [PROD, Constraint("C9", "Touch prod only after approval", supersedes="C3")]
    found = found_in(rules, "touch prod only after approval")
    assert judge(rules, found) == Check(
        "held", Findings((), ("declared=1", "lost=0", "uncertain=0"), ("validator=wording@1",))
    )


def test_a_superseded_constraint_that_comes_back_alone_is_told() -> None:
    """A summary that revives the old rule and drops the new one is the worst of both."""
    rules = [PROD, Constraint("C9", "Ask before each deployment", supersedes="C3")]
    found = found_in(rules, "never touch prod")
    assert judge(rules, found) == Check(
        "superseded_revived",
        Findings(
            (), ("declared=1", "lost=1", "uncertain=0"), ("validator=wording@1", "revived=C3", "lost=C9:none:0.72")
        ),
    )


CHAIN = [PROD, Constraint("C8", "Ask before each deployment", "C3"), Constraint("C9", "Deploy on Mondays alone", "C8")]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("Never touch prod. Deploy on Mondays alone.", "held"),
        ("Never touch prod. Ask before each deployment.", "superseded_revived"),
        ("Never touch prod. Deploys happen on Mondays.", "uncertain"),
        ("Nothing is said of it.", "lost"),
    ],
)
def test_the_last_of_a_line_of_successors_is_in_force(text: str, want: str) -> None:
    """An old rule beside the last successor is history; alone it is revived; where the successor may be there in other
    words, neither is known."""
    assert judge(CHAIN, found_in(CHAIN, text)).verdict == want


def test_constraints_that_supersede_each_other() -> None:
    """Whatever is declared, something stays in force: the last one of a circle, and one that supersedes itself."""
    own, first = Constraint("C1", "a", supersedes="C1"), Constraint("C2", "b", supersedes="C3")
    circle = [own, first, Constraint("C3", "c", supersedes="C4"), Constraint("C4", "d", supersedes="C2")]
    assert successors(circle) == {"C3": "C4", "C2": "C4"}
    assert judge(circle, found_in(circle, "nothing")).findings.counts == ("declared=2", "lost=2", "uncertain=0")


def test_what_is_too_long_to_be_looked_through_is_not_lost() -> None:
    """A rule in other words may stand behind the characters or sentences that are compared; word for word it is
    found wherever it stands."""
    long = [f"{'word ' * 60000} x", "- item\n" * 9000]
    assert [Wording().match(PROD, text) for text in long] == [Match("uncertain", "unseen", 0.0)] * 2
    assert [Wording().match(PROD, f"{text}\nNever touch prod") for text in long] == [Match("held", "exact", 1.0)] * 2


@given(st.text(max_size=200), st.text(max_size=400))
def test_any_texts_can_be_compared(rule: str, text: str) -> None:
    """Whatever the texts, the answer is one of the four verdicts with a confidence between 0 and 1."""
    match = Wording().match(Constraint("C", rule), text)
    assert match.verdict in ("held", "uncertain", "negated", "lost")
    assert 0 <= match.confidence <= 1
