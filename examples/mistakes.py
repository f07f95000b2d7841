"""Owns when the example agent makes which mistake. How it is made is in `agent`, what it must be called in `verdict`.

Turns are counted from 1. Between two mistakes lie turns that only append, so that each stands alone.
"""

from __future__ import annotations

TOOLS_RELOADED = range(5, 6)
CLOCK_IN_PROMPT = range(8, 11)
HISTORY_PRUNED = range(13, 14)

SCHEDULE: dict[str, range] = {"tools": TOOLS_RELOADED, "clock": CLOCK_IN_PROMPT, "prune": HISTORY_PRUNED}


def chosen(text: str) -> frozenset[str]:
    """`none`, or names of mistakes separated by commas. Raises ValueError with the accepted names."""
    names = frozenset() if text == "none" else frozenset(text.split(","))
    if not names <= SCHEDULE.keys():
        raise ValueError(f"{text!r}: give none, or some of {','.join(SCHEDULE)}")
    return names


def due(name: str, turn: int, made: frozenset[str]) -> bool:
    """Whether this mistake is made in this turn."""
    return name in made and turn in SCHEDULE[name]
