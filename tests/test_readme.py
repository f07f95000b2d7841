"""What the README says of the code is what the code says of itself."""

from __future__ import annotations

import re
from pathlib import Path

from otel_context_ledger.cli import coverage

README = Path(__file__).parent.parent / "README.md"


def test_the_coverage_tables() -> None:
    """The README's tables of what is covered are those that `context-ledger doctor` speaks from."""
    assert "\n".join(coverage.table()) in README.read_text("utf-8")


def test_samples_name_their_ledger() -> None:
    """A reader who types a sample's command asks the ledger that it is of, wherever they stand."""
    commands = re.findall(r"^\$ context-ledger ((?:explain|tasks|diagnose) .*)$", README.read_text("utf-8"), re.M)
    assert [command for command in commands if not re.search(r"--file \S+\.jsonl", command)] == []
