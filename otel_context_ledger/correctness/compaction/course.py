"""What a session remembers of its compactions: the summary in force, what is under way, how each item fared.

Bounded, and kept between calls; a text never is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from otel_context_ledger.canonical import digest, written
from otel_context_ledger.correctness.compaction.audit import Audit
from otel_context_ledger.correctness.compaction.event import UNKNOWN_LIMITS, Compaction, Limits
from otel_context_ledger.correctness.compaction.manifest import NOTHING, Manifest
from otel_context_ledger.correctness.constraints import Validator
from otel_context_ledger.correctness.wording import Wording
from otel_context_ledger.records import quick

MAX_OPEN = 8
MAX_KNOWN = 64


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When something is odd; a user may set each. `loop` compactions with fewer than `loop_calls` calls between them
    are a loop; `early` is the share of the configured trigger below which an automatic one comes early; `ineffective`
    the share that one must free; `diverges` by how many times two counts of one prompt may differ; `in_turn` how many
    belong to one turn; `reused` the share of an unchanged header of `stable` tokens or more that must be read from the
    cache."""

    loop: int = 3
    loop_calls: int = 2
    early: float = 0.8
    ineffective: float = 0.05
    diverges: float = 1.5
    in_turn: int = 3
    reused: float = 0.5
    stable: int = 1024


def _hashed(text: str) -> str:
    return written(digest(text.encode("utf-8", "surrogatepass")))


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for every session: who validates, how a text is digested for export, what the process declares and
    what the clients go by."""

    validator: Validator = field(default_factory=Wording)
    digest: Callable[[str], str] = _hashed
    declared: Manifest = NOTHING
    limits: Limits = UNKNOWN_LIMITS
    thresholds: Thresholds = Thresholds()


@dataclass(frozen=True, slots=True)
class Pending:
    """A compaction that was done and waits for the call that shows what it did: `seen` is the id of that call once it
    was opened, `waits` counts calls that did not show it."""

    event: Compaction
    seen: str | None = None
    waits: int = 0


@dataclass(frozen=True, slots=True)
class Fate:
    """How an item fared: at which of the session's compactions it was lost (`None`: at none), and where it stands."""

    id: str
    lost_at: int | None = None
    via: str | None = None


@dataclass(frozen=True, slots=True)
class Streak:
    """Compactions that followed each other at once: how many, the smallest prompt after one of them, and whether the
    loop was told."""

    count: int = 0
    floor: int | None = None
    told: bool = False


@quick
@dataclass(frozen=True, slots=True)
class Last:
    """What the last call of the session's agents showed, and its id."""

    tokens: int | None = None
    identity: str | None = None
    window: int | None = None
    id: str | None = None


@quick
@dataclass(frozen=True, slots=True)
class Course:
    """A session's compactions. `begun` by the program's word and not ended; `trying` is what summarising calls came to
    since the last call of the agent; `pending` wait for the next. `count` are those that were done, `in_turn` those of
    this turn, `since` the calls of the agent after the last attempt; `cleared` is the most that the provider took out
    of a prompt, in tokens. `carriers` are the last calls that build on the summary in force. `overflowed`: the last
    call was too long."""

    manifest: Manifest = NOTHING
    begun: tuple[Compaction, ...] = ()
    trying: Compaction | None = None
    pending: tuple[Pending, ...] = ()
    known: tuple[str, ...] = ()
    carriers: tuple[str, ...] = ()
    summary_hash: str | None = None
    event: str | None = None
    trusted: bool | None = None
    count: int = 0
    in_turn: int = 0
    turn_over: bool = False
    since: int = 0
    cleared: int = 0
    tried_for: int = 0
    streak: Streak = Streak()
    fates: tuple[Fate, ...] = ()
    last: Last = Last()
    overflowed: bool = False

    @property
    def waiting(self) -> bool:
        """Whether a compaction waits for what the next call sends."""
        return bool(self.pending)

    @property
    def in_force(self) -> Compaction | None:
        """The compaction whose summary the next call carries, as far as it was not settled yet."""
        return next((p.event for p in reversed(self.pending) if p.event.whole), None)

    @property
    def carried(self) -> tuple[str | None, str | None, bool | None]:
        """What an entry says of the summary it builds on: its digest, the event that made it, whether it is trusted."""
        event = self.in_force
        if event is None:
            return self.summary_hash, self.event, self.trusted
        return event.summary_hash, event.id, event.trusted

    def carried_by(self, call: str) -> tuple[str | None, str | None, bool | None]:
        """The same of one call: not every agent of a session builds on its summary."""
        return self.carried if call in self.carriers else (None, None, None)

    def knows(self, name: str) -> bool:
        """Whether a compaction of this id ended here, or waits."""
        return name in self.known or any(p.event.id == name for p in self.pending)

    def remembers(self, names: Iterable[str]) -> Course:
        """The course with the ids of compactions, or of what identifies them, that are not to be told again."""
        return replace(self, known=(*self.known, *names)[-MAX_KNOWN:])


def fared(fates: tuple[Fate, ...], audit: Audit | None, number: int | None) -> tuple[tuple[Fate, ...], tuple[str, ...]]:
    """The fates after one more compaction, and the ids of what was lost by this one. What cannot be told stays as it
    was; what is back is no longer lost."""
    known = {fate.id: fate for fate in fates}
    fresh: list[str] = []
    for standing in audit.standings if audit else ():
        name, before = standing.item.id, known.get(standing.item.id, Fate(standing.item.id))
        if audit is not None and name in audit.lost:
            fresh += [] if before.lost_at is not None else [name]
            known[name] = Fate(name, before.lost_at if before.lost_at is not None else number)
        elif standing.match.verdict == "held":
            known[name] = Fate(name, None, standing.via)
    return tuple(known.values()), tuple(fresh)
