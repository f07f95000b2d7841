"""How much of a file a history holds, and how much of that twice: lines of readings, counted.

Pure arithmetic over what `reads` folded and `looks` keeps; whether the lines are still true is left to `freshness`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from otel_context_ledger.correctness.looks import MISSING, Looks
from otel_context_ledger.correctness.reads import Known, Reading

Part = tuple[int, int]
"""The first and the last of some lines, both included."""


def within(reading: Reading, lines: int) -> Part:
    """The lines that were asked for, of a file that has so many."""
    first = reading.first if reading.first > 0 else max(1, lines + reading.first + 1)
    return first, lines if reading.last is None else reading.last


def held_lines(readings: Sequence[Reading], lines: int | None) -> int | None:
    """How many of a file's lines the history holds; `None` where a result does not say."""
    if lines is None or any(one.cut and not one.size for one in readings):
        return None
    parts = {
        _told(one, lines)
        for one in readings
        if (not one.write and not (one.cut and one.last is None)) or one.content is not None
    }
    return overlap((1, lines), parts)


def _told(reading: Reading, lines: int) -> Part:
    """The lines of a file that a result holds: those asked for, and no more than the result has."""
    first, last = within(reading, lines)
    return first, min(last, lines, first + reading.length - 1) if reading.length else min(last, lines)


def repeated_bytes(known: Known, looks: Looks | None) -> int:
    """Bytes of reads whose lines an earlier read of the same content holds already. Whether the content was the same is
    told by looks; without them only of equal results to equal questions."""
    told: set[tuple[int, int | None, int]] = set()
    parts: dict[int | None, set[Part]] = {}
    total = 0
    for one in known.readings:
        if one.write:
            told.clear()
            parts.clear()
        elif one.size:
            total += _again_read(one, told, parts, looks)
    return total


def _again_read(
    one: Reading,
    told: set[tuple[int, int | None, int]],
    parts: dict[int | None, set[tuple[int, int]]],
    looks: Looks | None,
) -> int:
    """Bytes of one read that earlier ones hold: `told` are their results, `parts` their lines by the content that they
    were of. The read joins them."""
    same, held = (one.first, one.last, one.text), looks.since(one.seen) if looks is not None else None
    known, size = same in told, 0
    told.add(same)
    if held is not None and held.digest not in (None, MISSING):
        part = _told(one, held.lines)
        earlier, length = parts.setdefault(held.digest, set()), part[1] - part[0] + 1
        size = round(one.size * overlap(part, earlier) / length) if length > 0 else 0
        earlier.add(part)
    return one.size if known else size


def overlap(part: Part, others: Iterable[Part]) -> int:
    """How many lines of a part lie in any of the others; ends are included."""
    reached, total = part[0] - 1, 0
    for first, last in sorted(others):
        start, end = max(first, reached + 1), min(last, part[1])
        if end >= start:
            total += end - start + 1
            reached = end
    return total
