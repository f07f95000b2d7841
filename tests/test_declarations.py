"""Constraints declared in files: `[constraints]` of context-ledger.toml and marked lines of rules files."""

from __future__ import annotations

from otel_context_ledger.correctness.compaction.manifest import Item, Manifest
from otel_context_ledger.correctness.constraints import Constraint, Match
from otel_context_ledger.correctness.declarations import in_table, marked
from otel_context_ledger.correctness.wording import Wording

RULES = """# Rules

- Never edit files under `migrations/`. <!-- constraint: C1 -->
1. [ ] Rename the queue. <!-- constraint: T1 kind=todo severity=low -->
<!-- constraint: C2 supersedes=C0 terms=idempotency,key -->

> Reuse the idempotency key.

Not marked. <!-- a comment -->
<!-- constraint: C3 -->
"""


def test_marked_lines_of_a_rules_file() -> None:
    """A mark belongs to the text of its line, else to the next line that says something; without any it is none."""
    assert marked(RULES) == (
        Item(Constraint("C1", "Never edit files under `migrations/`.")),
        Item(Constraint("T1", "Rename the queue.", severity="low", kind="todo"), "active"),
        Item(Constraint("C2", "Reuse the idempotency key.", "C0", terms=("idempotency", "key"))),
    )


WRAPPED = """- Never edit files under
  migrations/, whatever
  anybody says. <!-- constraint: C1 -->
- Ask before <!-- constraint: C2 -->
  each deployment.
- Never touch prod. <!-- constraint: C3 -->
  Not even staging. <!-- constraint: C4 -->
<!-- constraint: C5 -->
Use at most three retries
for each of the requests.

  - Keep it short. <!-- constraint: C6 -->
  - Not this.
Say so first.
Änderungen sind verboten. <!-- constraint: C7 -->
"""


def test_a_line_that_is_wrapped_is_marked_whole() -> None:
    """A rule over several lines is one, wherever on it the mark is; items and lines with marks of their own are not."""
    assert {item.id: item.constraint.text for item in marked(WRAPPED)} == {
        "C1": "Never edit files under migrations/, whatever anybody says.",
        "C2": "Ask before each deployment.",
        "C3": "Never touch prod.",
        "C4": "Not even staging.",
        "C5": "Use at most three retries for each of the requests.",
        "C6": "Keep it short.",
        "C7": "Änderungen sind verboten.",
    }


def test_a_long_text_is_cut_between_words() -> None:
    """What is left of it stands in any text that the whole stands in."""
    long = "never touch prod " * 300
    (found,) = in_table({"C1": long})
    assert len(found.constraint.text) <= 4096
    assert Wording().match(found.constraint, long) == Match("held", "exact", 1.0)


def test_the_table_of_the_configuration() -> None:
    """A constraint is a text, or a table with one; words that are none count as not said."""
    table = {
        "C1": "never touch prod",
        "G": {"text": "migrate billing", "kind": "goal", "severity": "enormous"},
        "C9": {"text": "ask before prod", "supersedes": "C1"},
        "bad": {"kind": "goal"},
    }
    assert in_table(table) == (
        Item(Constraint("C1", "never touch prod")),
        Item(Constraint("G", "migrate billing", kind="goal"), "active"),
        Item(Constraint("C9", "ask before prod", "C1")),
    )


def test_a_later_declaration_of_the_same_id_stands() -> None:
    """What a program says of an id stands over its files, and a word on its state leaves the text as it is."""
    files = Manifest(in_table({"T1": {"text": "rename the queue", "kind": "todo"}, "C1": "never touch prod"}))
    said = [Item(Constraint("T1", ""), "done", ("pytest-41",)), Item(Constraint("C1", "ask before prod"))]
    assert files.joined(said).items == (
        Item(Constraint("T1", "rename the queue", kind="todo"), "done", ("pytest-41",)),
        Item(Constraint("C1", "ask before prod")),
    )
