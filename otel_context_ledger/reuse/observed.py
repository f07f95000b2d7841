"""What a provider's answers show of its cache: the step of its counts and the sizes that hit; it corrects the facts."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from math import gcd

from otel_context_ledger.records import quick

# A step that nobody documented is believed after so many different counts, and only if it is no accident.
SAMPLES = 4
SMALLEST_STEP = 16
MAX_SCOPES = 512


@quick
@dataclass(frozen=True, slots=True)
class Observed:
    """Of one scope: the common divisor of the cached counts, the different counts, the smallest prompt that hit."""

    step: int = 0
    counts: frozenset[int] = frozenset()
    smallest_hit: int | None = None

    def block(self, documented: int | None) -> int:
        """The block size to reckon with: the documented one until a count contradicts it."""
        if documented is not None and self.step % documented == 0:
            return documented
        believed = len(self.counts) >= SAMPLES and self.step >= SMALLEST_STEP
        return self.step if believed else 1


class Observations:
    """What was observed per scope, the least recently used forgotten first."""

    def __init__(self, scopes: int = MAX_SCOPES) -> None:
        self._scopes = scopes
        self._known: OrderedDict[Hashable, Observed] = OrderedDict()

    def of(self, scope: Hashable) -> Observed:
        """What is known of a scope."""
        return self._known.get(scope) or Observed()

    def note(self, scope: Hashable, cached: int | None, previous: int | None) -> None:
        """Note a reported count and the size of the prompt that it was read from."""
        if not cached:
            return
        known = self._known.get(scope) or Observed()
        self._known[scope] = _with(known, cached, previous)
        self._known.move_to_end(scope)
        while len(self._known) > self._scopes:
            self._known.popitem(last=False)


def _with(known: Observed, cached: int, previous: int | None) -> Observed:
    counts = known.counts if len(known.counts) >= 2 * SAMPLES else known.counts | {cached}
    sizes = [size for size in (known.smallest_hit, previous) if size is not None]
    step, smallest = gcd(known.step, cached), min(sizes, default=None)
    same = counts is known.counts and step == known.step and smallest == known.smallest_hit
    return known if same else Observed(step, counts, smallest)
