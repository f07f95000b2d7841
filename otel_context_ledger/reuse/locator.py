"""The prefix locator: digests at a few boundaries, so that two requests can be aligned by who sees neither of them.

Boundaries are numbered from 0, the header's end. The last eight are kept, then those at multiples of 2, 4, 8, …, three
of each: dense at the end and sparser to the start, on a grid that does not move when messages are appended.
"""

from __future__ import annotations

from functools import lru_cache

from otel_context_ledger.reuse.segments import Outline

MAX_ENTRIES = 24
DENSE = 8
PER_STEP = 3
_DIGITS = 16
# Of a number of bytes; Python refuses to read one of thousands of digits.
_MAX_DIGITS = 18


@lru_cache(maxsize=256)
def boundaries(last: int) -> tuple[int, ...]:
    """The boundaries that the locator of a request with `last` messages holds, descending."""
    chosen = dict.fromkeys(range(last, max(-1, last - DENSE), -1))
    step = 2
    while step <= last and len(chosen) < MAX_ENTRIES - 1:
        below = (last - DENSE) // step * step
        chosen.update(dict.fromkeys(range(below, max(-1, below - PER_STEP * step), -step)))
        step *= 2
    return (*list(chosen)[: MAX_ENTRIES - 1], *(() if 0 in list(chosen)[: MAX_ENTRIES - 1] else (0,)))


def locate(outline: Outline) -> tuple[tuple[int, int, bytes], ...]:
    """(boundary, bytes up to it, digest) for each boundary kept."""
    found: list[tuple[int, int, bytes]] = []
    sizes, prefix = outline.sizes, outline.prefix
    size, above = outline.total, len(outline.messages)
    for at in boundaries(above):
        size -= sum(sizes[at:above]) if above - at > 1 else sizes[at] if above > at else 0
        found.append((at, size, prefix[at - 1] if at else outline.root))
        above = at
    return tuple(found)


def spell(boundary: int, size: int, exported: str) -> str:
    """One entry of the locator as text: boundary, bytes, and the first 16 hex digits of the exported digest."""
    start = exported.find(":") + 1
    return f"{boundary}:{size}:{exported[start : start + _DIGITS]}"


def read(entry: str) -> tuple[int, int, str] | None:
    """A locator entry from its text, or `None` when it is none."""
    parts = entry.split(":")
    if len(parts) != 3 or not all(part.isdecimal() and len(part) <= _MAX_DIGITS for part in parts[:2]):
        return None
    return int(parts[0]), int(parts[1]), parts[2]
