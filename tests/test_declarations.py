"""Constraints declared in files: `[constraints]` of context-ledger.toml and marked lines of rules files."""

from __future__ import annotations

from otel_context_ledger.correctness.compaction.manifest import Item, Manifest
from otel_context_ledger.correctness.constraints import Constraint
from otel_context_ledger.correctness.declarations import in_table, marked

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
