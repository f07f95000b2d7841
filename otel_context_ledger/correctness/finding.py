"""What a check found: a verdict in the words of the registry, how many of how many, and what it was derived from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """`found` of `looked` (files, tools, constraints, turns) are not as they should be; `None` is unknown. `evidence`
    holds names, counts and positions, never content."""

    verdict: str = "unknown"
    found: int | None = None
    looked: int | None = None
    evidence: tuple[str, ...] = ()
