"""Owns from where on something is called bad, where a user may disagree: a board has each as a variable."""

from __future__ import annotations

from dataclasses import dataclass


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


RECALL = Threshold("recall_floor", "Recall floor", 0.95, (0.8, 0.9, 0.99, 1))
RIGHT = Threshold("right_floor", "Checks floor", 0.95, (0.8, 0.9, 0.99, 1))
SUCCESS = Threshold("success_floor", "Success floor", 0.8, (0.5, 0.7, 0.9, 0.95))
QUEUE = Threshold("queue_ceiling", "Queue ceiling", 0.8, (0.5, 0.9))
COVERAGE = Threshold("coverage_floor", "Coverage floor", 0.9, (0.5, 0.8, 0.95, 0.99))
