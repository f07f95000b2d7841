"""Where a summary stands in a history: the provider's own item, or a message with the fixed opening of a known client.

Openings are data (`facts.toml`, [compaction]); what became of the history is lineage's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from otel_context_ledger.correctness.compaction.happenings import Rewrite
from otel_context_ledger.correctness.history import Step

# A history of which at most this many messages stay at one end was compacted as a whole: clients keep the last few.
KEPT_OF_WHOLE = 4
COMPACTED, PRUNED = "history_compacted", "history_rewritten(pruned)"


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary in a history: the index of its message, its text (`None`: it cannot be read), whether the provider
    made it, and the provider's id for it."""

    index: int
    text: str | None
    provider: bool = False
    id: str | None = None


def find(steps: Sequence[Step], openings: tuple[str, ...]) -> Summary | None:
    """The last summary of a history. Clients put it first, last or after the kept user messages, always as a user; in
    one message with what they remind of, it begins a part of its own."""
    for index in range(len(steps) - 1, -1, -1):
        step = steps[index]
        if step.compaction:
            return Summary(index, step.summary, True, step.id)
        if step.role == "user" and (text := _opened(step.texts, openings)):
            return Summary(index, text)
    return None


def _opened(texts: Sequence[str], openings: tuple[str, ...]) -> str | None:
    at = next((n for n, text in enumerate(texts) if text.lstrip().startswith(openings)), None)
    return None if at is None else "\n".join(texts[at:]).lstrip()


@dataclass(frozen=True, slots=True)
class Extent:
    """How much of a history of `length` messages, the first of them at index `offset` of what was sent, stands
    unchanged in the one that follows: so many before and after what was replaced."""

    length: int
    before: int = 0
    after: int = 0
    offset: int = 0

    @property
    def kind(self) -> str:
        """full, partial_from (everything from a message on) or partial_up_to."""
        if self.length and self.before > max(KEPT_OF_WHOLE, self.after):
            return "partial_from"
        return "partial_up_to" if self.length and self.after > KEPT_OF_WHOLE else "full"

    @property
    def gone(self) -> int:
        """Messages that were replaced."""
        return self.length - self.before - self.after

    @property
    def replaced(self) -> str | None:
        """First and last index of the messages that were replaced."""
        first, last = self.offset + self.before, self.offset + self.length - self.after - 1
        return f"{first}-{last}" if last >= first else None


def seen(new: Sequence[Step], extent: Extent, openings: tuple[str, ...], cause: str | None) -> Rewrite | None:
    """What a history shows of a compaction. `new` are the messages that the one before did not have, `cause` is why
    nothing else was reused: history_compacted, history_rewritten(pruned), or any other. A text that opens like a
    summary is one only where messages gave way to it; where messages are gone, or none stayed, contents were not only
    cut. Which of the new texts is a summary of no known form, if any is, nobody can tell."""
    found = find(new, openings)
    if found is not None and found.provider:
        return Rewrite("provider", extent.replaced, found.text, found.text is not None, found.id)
    if cause == PRUNED and extent.gone < extent.length and len(new) >= extent.gone:
        return Rewrite("micro", extent.replaced)
    if extent.replaced is None or (found is None and cause != COMPACTED):
        return None
    text = found.text if found is not None else None
    return Rewrite(extent.kind, extent.replaced, text, text is not None)
