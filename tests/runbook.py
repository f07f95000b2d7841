"""What the runbook says, by alert, and the queries in it."""

from __future__ import annotations

import re
from pathlib import Path

PATH = Path(__file__).resolve().parents[1] / "dashboards" / "runbook.md"
# Where a reader puts in whom the alert names.
BLANK = '="…"'


def sections() -> dict[str, str]:
    """What stands under the heading of each alert."""
    parts = re.split(r"^## (\w+)\n", PATH.read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def queries() -> list[str]:
    """Every query, with its blanks."""
    return [query for text in sections().values() for query in re.findall(r"```promql\n(.+?)\n```", text, re.DOTALL)]
