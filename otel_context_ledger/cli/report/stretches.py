"""The chosen calls session by session: which sessions are shown, and in which order.

The worst come first: by tokens that could have been reused and were not, and tokens of contexts that a check found
wrong. What is left out is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from otel_context_ledger.cli import checks, show
from otel_context_ledger.cli.calls import Call
from otel_context_ledger.cli.symptoms import Case

ORDER = (
    "the worst first: by tokens that could have been reused and were not, and all input tokens of calls with a wrong "
    "context; then the newest"
)


@dataclass(frozen=True, slots=True)
class Stretch:
    """The chosen calls of one session in the order in which they began, and what was told of its compactions;
    `session_id` is `None` for calls that have no session. `weight` is in tokens."""

    session_id: str | None
    calls: Sequence[Call]
    compactions: Sequence[Call]
    weight: int
    sums: show.Totals

    @property
    def name(self) -> str:
        """What it is called."""
        return "no session named" if self.session_id is None else self.session_id

    @property
    def began(self) -> float | None:
        """When its first call with a known time began."""
        return next((at for call in self.calls if (at := call.number("started_at")) is not None), None)

    @property
    def ended(self) -> float | None:
        """When its last call ended, as far as that is known."""
        return max((at for call in self.calls if (at := call.closed) is not None), default=None)

    @property
    def missed(self) -> int | None:
        """Tokens that could have been reused and were not."""
        return avoidable(self.calls)


def stretches(case: Case) -> list[Stretch]:
    """All sessions of a case, the worst first."""
    calls = _by_session(case.calls)
    events = _by_session(case.compactions)
    found = [_stretch(name, some, events.get(name, ())) for name, some in calls.items()]
    return sorted(found, key=lambda one: (-one.weight, -(one.began or 0.0)))


def _stretch(name: str | None, calls: Sequence[Call], compactions: Sequence[Call]) -> Stretch:
    return Stretch(name, calls, compactions, sum(map(_weight, calls)), show.totals(calls))


def _by_session(calls: Iterable[Call]) -> Mapping[str | None, list[Call]]:
    found: dict[str | None, list[Call]] = {}
    for call in calls:
        found.setdefault(call.text("session_id"), []).append(call)
    return found


def wrong(call: Call) -> bool:
    """Whether a check found the context of a call wrong."""
    return not checks.fine(checks.known(call))


def avoidable(calls: Sequence[Call]) -> int | None:
    """Tokens that could have been reused and were not, over the calls of which that is known."""
    known = [number for call in calls if (number := call.count("avoidable_tokens")) is not None]
    return sum(known) if known else None


def avoidable_dollars(calls: Sequence[Call]) -> float | None:
    """What these tokens cost, over the calls of which that is known; quota is never dollars."""
    known = [number for call in calls if (number := dollars_lost(call)) is not None]
    return sum(known) if known else None


def dollars_lost(call: Call) -> float | None:
    """What the avoidable tokens of a call cost in dollars."""
    return None if show.dollars(call) is None else call.number("cost_avoidable")


def _weight(call: Call) -> int:
    return (call.count("input_tokens") or 0) if wrong(call) else (call.count("avoidable_tokens") or 0)
