"""One compaction as the ledger tells it: what was compacted and why, how it ended, what it left, what was odd about it.

Words are those of `context_ledger.compaction.*` in the registry. What is not known is `None`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from otel_context_ledger.correctness.compaction.audit import Audit

KINDS = ("full", "micro", "partial_from", "partial_up_to", "provider")
TRIGGERS = ("auto", "manual", "reactive", "window_downshift")
DONE, FAILED, SKIPPED, EMPTY, ORPHANED = OUTCOMES = ("done", "failed", "skipped", "empty", "orphaned")


@dataclass(frozen=True, slots=True)
class Measure:
    """Prompt tokens on one side of a compaction: what the provider reported, what the client estimated. Both stay."""

    reported: int | None = None
    estimate: int | None = None

    @property
    def tokens(self) -> int | None:
        """The provider's figure, else the estimate."""
        return self.estimate if self.reported is None else self.reported

    @property
    def estimated(self) -> bool:
        """Whether `tokens` is an estimate only."""
        return self.reported is None and self.estimate is not None

    @property
    def divergence(self) -> float | None:
        """How many times what was reported the estimate is."""
        return round(self.estimate / self.reported, 3) if self.estimate is not None and self.reported else None


@dataclass(frozen=True, slots=True)
class Symptom:
    """Something odd about a compaction: a word, how bad it is (high, low), and numbers, names and positions."""

    name: str
    severity: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """What the compacting client goes by: the window, and the share of it or the tokens at which it compacts."""

    window: int | None = None
    ratio: float | None = None
    tokens: int | None = None

    @property
    def trigger(self) -> int | None:
        """The tokens at which it compacts."""
        if self.tokens is not None or self.ratio is None or self.window is None:
            return self.tokens
        return int(self.ratio * self.window)


UNKNOWN_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Compaction:
    """A compaction, as far as it is known. The same id may come again with more; `settled` says that it is the last
    time, which is when it is counted. `number` counts the session's compactions that were done, `in_turn` those of this
    turn; `attempts` are summarising calls, `cost` (USD) is theirs; `rebuilt` are the prompt tokens of the call after it
    that no cache held. Times are seconds since the Unix epoch."""

    id: str
    begun: float | None = None
    ended: float | None = None
    kind: str = "full"
    trigger: str | None = None
    outcome: str | None = None
    reason: str | None = None
    before: Measure = Measure()
    after: Measure = Measure()
    limits: Limits = UNKNOWN_LIMITS
    source_range: str | None = None
    summary_hash: str | None = None
    parent_hash: str | None = None
    manifest_hash: str | None = None
    audit: Audit | None = None
    identity_before: str | None = None
    identity_after: str | None = None
    number: int | None = None
    in_turn: int | None = None
    attempts: int = 0
    cost: float | None = None
    rebuilt: int | None = None
    symptoms: tuple[Symptom, ...] = ()
    settled: bool = False

    @property
    def whole(self) -> bool:
        """Whether it puts a summary in the place of messages, and does not only shorten some of them."""
        return self.kind != "micro"

    @property
    def reduction(self) -> float | None:
        """The share of the prompt that it freed."""
        before, after = self.before.tokens, self.after.tokens
        return round(1 - after / before, 3) if before and after is not None else None

    @property
    def usage(self) -> float | None:
        """The share of the window that was full when it began."""
        tokens, window = self.before.tokens, self.limits.window
        return round(tokens / window, 3) if tokens is not None and window else None

    @property
    def trusted(self) -> bool | None:
        """Whether its summary may be built on; `None` where nothing was declared or it cannot be told."""
        return {"pass": True, "fail": False}.get(self.audit.result or "") if self.audit else None

    def has(self, name: str) -> bool:
        """Whether a symptom was noted."""
        return any(symptom.name == name for symptom in self.symptoms)


def noted(symptoms: Iterable[Symptom], more: Iterable[Symptom]) -> tuple[Symptom, ...]:
    """Symptoms with more of them, each name once: what was noted first stands."""
    found: dict[str, Symptom] = {}
    for symptom in (*symptoms, *more):
        found.setdefault(symptom.name, symptom)
    return tuple(found.values())
