"""What a course is folded over: what programs tell of their compactions, and what the ledger sees of calls.

Every record has its time `at` (seconds since the Unix epoch). Texts in them are looked at once and not kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from otel_context_ledger.correctness.compaction.event import UNKNOWN_LIMITS, Limits
from otel_context_ledger.correctness.compaction.failures import Failure
from otel_context_ledger.correctness.compaction.manifest import Item
from otel_context_ledger.records import quick


@dataclass(frozen=True, slots=True)
class Declared:
    """The program declares a constraint, or says how far a piece of work is."""

    at: float
    item: Item


@dataclass(frozen=True, slots=True)
class Begun:
    """A compaction begins, by the program's word. `tokens` is what the client counts before it; `limits` what it goes
    by."""

    at: float
    id: str
    kind: str = "full"
    trigger: str | None = None
    tokens: int | None = None
    source_range: str | None = None
    limits: Limits = UNKNOWN_LIMITS


@dataclass(frozen=True, slots=True)
class Ended:
    """It ended: done, failed or skipped. Of one that was done, `summary` is its text, `None` where the program does not
    show it; `tokens` is what the client counts now. `failure` is what an error said, if that was about length. Without
    a `Begun` of that id this is all that is told of it."""

    at: float
    id: str
    outcome: str = "done"
    reason: str | None = None
    summary: str | None = None
    tokens: int | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Summarised:
    """A recognised summarising call ended: done, failed or empty (nothing was generated). Tokens are the provider's;
    `cost` is in USD. `failure` is what its error said, if that was about length."""

    at: float
    id: str
    outcome: str = "done"
    reason: str | None = None
    input: int | None = None
    output: int | None = None
    cost: float | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What the ledger saw of a history that was compacted: the kind, the replaced messages, the summary. `id` is the
    provider's for its item; `readable` is false for a summary that it encrypted."""

    kind: str = "full"
    source_range: str | None = None
    summary: str | None = None
    readable: bool = True
    id: str | None = None


@quick
@dataclass(frozen=True, slots=True)
class Opened:
    """A call of the agent is about to be made. `extends` says that its history only grew (`None`: unknown). `policy`
    and `kept` are the texts of its rules and of its other messages, wanted while `Course.waiting`; `broken` the ids of
    results without their calls; `continues` is the id of the call that it goes on from, `before` the prompt tokens of
    that one and `window_before` its window."""

    at: float
    id: str
    extends: bool | None = None
    rewrite: Rewrite | None = None
    policy: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    window: int | None = None
    before: int | None = None
    continues: str | None = None
    window_before: int | None = None


@quick
@dataclass(frozen=True, slots=True)
class Called:
    """It ended. `header` are the tokens of its tools and system, `header_same` says that their bytes are those of the
    call before. `reason` says why it failed, `turn_ended` that the agent was done afterwards. `item` is the provider's
    id of a summary that it made meanwhile and keeps; `cleared` are tokens that it took out of the prompt, of which
    `tokens` are what was left."""

    at: float
    tokens: int | None = None
    cached: int | None = None
    identity: str | None = None
    header: int | None = None
    header_same: bool | None = None
    reason: str | None = None
    turn_ended: bool = False
    id: str | None = None
    item: str | None = None
    cleared: int | None = None


@dataclass(frozen=True, slots=True)
class Resumed:
    """Another process goes on with the session: what had begun elsewhere will not end, but for the compactions of these
    ids, which may be `running` still."""

    at: float
    running: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Closed:
    """The process ends; what waits for a next call is told as it is."""

    at: float


Happening: TypeAlias = Declared | Begun | Ended | Summarised | Opened | Called | Resumed | Closed
