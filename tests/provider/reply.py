"""Owns one answer about to be sent, and the two things that every dialect needs: its usage and an event's frame."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.provider.behaviour import Behaviour
from tests.provider.script import Answer
from tests.provider.usage import JSON, REPORTS, Counts

CREATED = 1_780_000_000


@dataclass(frozen=True, slots=True)
class Reply:
    """Everything a dialect needs to write an answer; `number` makes its ids unique."""

    number: int
    vendor: str
    body: JSON
    counts: Counts
    answer: Answer
    behaviour: Behaviour

    @property
    def model(self) -> str:
        return self.behaviour.served or str(self.body.get("model", ""))

    def usage(self, shapes: dict[str, Callable[[Counts], JSON]]) -> JSON:
        """`{"usage": …}`, or `{}` where the behaviour leaves it out. Unknown vendors speak the table's first shape."""
        shape = shapes.get(self.vendor, next(iter(shapes.values())))
        return REPORTS[self.behaviour.report](shape(self.counts))

    def listed(self, items: list[Any]) -> list[Any] | None:
        """The content list of the answer, null if the behaviour says so."""
        return None if self.behaviour.null_choices else items


def frame(payload: Any, event: str | None = None) -> bytes:
    """One server-sent event."""
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {json.dumps(payload)}\n\n".encode()
