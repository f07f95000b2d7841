"""What the README says of the code is what the code says of itself."""

from __future__ import annotations

from pathlib import Path

from otel_context_ledger.cli import coverage

README = Path(__file__).parent.parent / "README.md"


def test_the_coverage_tables() -> None:
    """The README's tables of what is covered are those that `context-ledger doctor` speaks from."""
    assert "\n".join(coverage.table()) in README.read_text("utf-8")
