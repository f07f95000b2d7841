"""Owns from where on something is called bad, where a user may disagree: a board has each as a variable; and how a
share is held against a threshold, of a user or of an alert."""

from __future__ import annotations

from dataclasses import dataclass

# Half of the last digit that is shown of a share. `increase` extrapolates: of 38 of 40 it makes 0.9499, which is shown
# as 95.0 % and is not under a floor of 0.95.
TOLERANCE = 0.0005


@dataclass(frozen=True, slots=True)
class Threshold:
    """A share between 0 and 1 that is sound from here on (a floor) or up to here (a ceiling). A board's variable is
    named by it."""

    name: str
    label: str
    value: float
    others: tuple[float, ...]

    @property
    def variable(self) -> str:
        return f"${self.name}"

    def met(self, share: str) -> str:
        """PromQL: 1 where a share is not under this floor, 0 where it is."""
        return f"({share}) >= bool {self.variable} - {TOLERANCE:g}"


def above(share: str, limit: float | str) -> str:
    """PromQL: a share, where it is above a limit by more than it is rounded by when it is shown."""
    return f"{share} > {_number(limit)} + {TOLERANCE:g}"


def below(share: str, limit: float | str) -> str:
    """PromQL: a share, where it is below a limit by more than it is rounded by when it is shown."""
    return f"{share} < {_number(limit)} - {TOLERANCE:g}"


def _number(limit: float | str) -> str:
    return limit if isinstance(limit, str) else f"{limit:g}"


RECALL = Threshold("recall_floor", "Recall floor", 0.95, (0.8, 0.9, 0.99, 1))
RIGHT = Threshold("right_floor", "Checks floor", 0.95, (0.8, 0.9, 0.99, 1))
SUCCESS = Threshold("success_floor", "Success floor", 0.8, (0.5, 0.7, 0.9, 0.95))
QUEUE = Threshold("queue_ceiling", "Queue ceiling", 0.8, (0.5, 0.9))
COVERAGE = Threshold("coverage_floor", "Coverage floor", 0.9, (0.5, 0.8, 0.95, 0.99))
