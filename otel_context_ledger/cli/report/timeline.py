"""A session's calls as columns of a timeline: tokens by source, misses, checks, compactions and identity changes.

A column is one call; where there are more than `MAX_COLUMNS`, it is as many consecutive calls as it takes, and says so.
Unknown stays unknown: a call whose input nobody knows adds to no sum and is counted beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from otel_context_ledger.cli import checks
from otel_context_ledger.cli.calls import Call
from otel_context_ledger.cli.show import ending
from otel_context_ledger.model import SOUND

MAX_COLUMNS = 150
SOURCES = ("cache_read", "cache_write", "uncached", "unreported")
RIGHT, WRONG, UNJUDGED, UNASKED = STATES = ("right", "wrong", "unjudged", "not asked")


@dataclass(frozen=True, slots=True)
class Column:
    """Consecutive calls, of which `first` is the number of the first, from 1. `tokens` are sums by source over the
    calls whose input is known, `unsized` counts the others; `cells` counts the calls by state, a pillar each;
    `compactions` are those that ended before the first call, or among these."""

    first: int
    calls: tuple[Call, ...]
    tokens: Mapping[str, int]
    unsized: int
    cells: tuple[Mapping[str, int], ...]
    compactions: tuple[Call, ...] = ()

    @property
    def sized(self) -> int:
        """How many calls the sums are over."""
        return len(self.calls) - self.unsized

    @property
    def mean(self) -> float:
        """Input tokens of a call of known size."""
        return sum(self.tokens.values()) / self.sized if self.sized else 0.0

    @property
    def causes(self) -> Mapping[str, int]:
        """Causes of misses, that of the most avoidable tokens first, each with its calls."""
        weights: Counter[str] = Counter()
        for call in self.calls:
            if (name := call.text("miss_cause")) is not None:
                weights[name] += call.count("avoidable_tokens") or 0
        counted = Counter(call.text("miss_cause") for call in self.calls)
        return {name: counted[name] for name, _ in weights.most_common()}

    @property
    def significant(self) -> bool:
        """Whether one of the misses is significant."""
        return any(call.flag("miss_significant") for call in self.calls)

    @property
    def changes(self) -> Sequence[str]:
        """Parts of the identity that changed."""
        return list(dict.fromkeys(part for call in self.calls for part in call.words("identity_changed") or ()))

    @property
    def sides(self) -> Sequence[str]:
        """What the calls were for that were not the agent's own."""
        kinds = (call.text("request_kind") for call in self.calls)
        return [kind for kind in kinds if kind not in (None, "agent")]

    @property
    def endings(self) -> Sequence[str]:
        """How calls ended that did not run to their end."""
        return [told for call in self.calls if (told := ending(call))]


def columns(calls: Sequence[Call], compactions: Iterable[Call] = ()) -> list[Column]:
    """The calls of a session, in the order in which they began, as columns with the session's compactions."""
    each = -(-len(calls) // MAX_COLUMNS) if calls else 1
    events = _placed(calls, compactions)
    return [_column(at, calls[at : at + each], events) for at in range(0, len(calls), each)]


def _column(at: int, calls: Sequence[Call], events: Mapping[int, Sequence[Call]]) -> Column:
    sizes = [found for call in calls if (found := sources(call)) is not None]
    here = tuple(event for step in range(len(calls)) for event in events.get(at + step, ()))
    return Column(
        at + 1,
        tuple(calls),
        {name: sum(size[name] for size in sizes) for name in SOURCES},
        len(calls) - len(sizes),
        tuple(Counter(state(call.text(field)) for call in calls) for field in checks.CHECKS),
        here,
    )


def sources(call: Call) -> Mapping[str, int] | None:
    """A call's input tokens by source; `None` where nobody knows how many they were. Where the provider did not say
    what was reused, or what it says cannot be, all of them are unreported."""
    whole, read = call.count("input_tokens"), call.count("cached_tokens")
    if whole is None or whole < 0:
        return None
    stored = call.count("cache_write_tokens") or 0
    plain = whole - (read or 0) - stored
    if read is None or min(plain, read, stored) < 0:
        return dict.fromkeys(SOURCES, 0) | {"unreported": whole}
    return {"cache_read": read, "cache_write": stored, "uncached": plain, "unreported": 0}


def state(verdict: str | None) -> str:
    """What a verdict comes to: right, wrong, unjudged, or not asked."""
    if verdict is None:
        return UNASKED
    return RIGHT if verdict in SOUND else UNJUDGED if verdict in checks.UNSURE else WRONG


def _placed(calls: Sequence[Call], compactions: Iterable[Call]) -> Mapping[int, list[Call]]:
    """Compactions by the call that first built on each, else the first that began after it."""
    first: dict[str, int] = {}
    for at, call in enumerate(calls):
        first.setdefault(call.text("compaction_event") or "", at)
    found: dict[int, list[Call]] = {}
    for event in compactions:
        place = first.get(event.text("compaction_event") or "", next(_after(calls, event), None))
        if place is not None:
            found.setdefault(place, []).append(event)
    return found


def _after(calls: Sequence[Call], event: Call) -> Iterator[int]:
    """The first call after a compaction, unless it came before all of them; else the last one."""
    moment = next((at for name in ("ended", "begun") if (at := event.number(f"compaction.{name}")) is not None), None)
    starts = [call.number("started_at") or 0.0 for call in calls]
    if moment is None or not calls or moment < starts[0]:
        return
    yield next((at for at, start in enumerate(starts) if start >= moment), len(calls) - 1)
