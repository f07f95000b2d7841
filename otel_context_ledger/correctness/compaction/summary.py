"""Where a summary stands in a history: the provider's own item, or a message with the fixed opening of a known client.

Openings are data (`facts.toml`, [compaction]); what became of the history is lineage's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from otel_context_ledger.correctness.history import Step

# A history of which at most this many messages stay at one end was compacted as a whole: clients keep the last few.
KEPT_OF_WHOLE = 4


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary in a history: the index of its message, its text (`None`: it cannot be read), whether the provider
    made it."""

    index: int
    text: str | None
    provider: bool = False


def find(steps: Sequence[Step], openings: tuple[str, ...]) -> Summary | None:
    """The last summary of a history. Clients put it first, last or after the kept user messages, always as a user."""
    for index in range(len(steps) - 1, -1, -1):
        step = steps[index]
        if step.compaction:
            return Summary(index, step.text or None, True)
        if step.role == "user" and openings and (text := step.text.lstrip()).startswith(openings):
            return Summary(index, text)
    return None


def extent(length: int, kept_before: int, kept_after: int) -> str:
    """What was compacted of `length` messages, of which so many stay unchanged before and after: full, partial_from
    (everything from a message on) or partial_up_to."""
    if length and kept_before > max(KEPT_OF_WHOLE, kept_after):
        return "partial_from"
    return "partial_up_to" if length and kept_after > KEPT_OF_WHOLE else "full"


def replaced(offset: int, length: int, kept_before: int, kept_after: int) -> str | None:
    """First and last index of the messages that were replaced, in the list that was sent before."""
    first, last = offset + kept_before, offset + length - kept_after - 1
    return f"{first}-{last}" if last >= first else None
