"""The one reader of usage objects: a table per dialect says where each number stands, nothing else decides.

What the numbers mean (does the input count include cached tokens?) is a property of the dialect, never guessed from the
numbers. `read + write > input` under an inclusive dialect proves that the report is broken or disjoint: it is flagged
and, since no other reading adds up, counted as disjoint. A disjoint report whose input equals read + write on the nose
repeats its parts: it is flagged and counted as inclusive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from otel_context_ledger.model import Json, Usage

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Where a dialect keeps its counts: for each class the paths to try, the first that holds a number wins."""

    total: tuple[Path, ...]
    cache_read: tuple[Path, ...] = ()
    cache_write: tuple[Path, ...] = ()
    write_5m: tuple[Path, ...] = ()
    write_1h: tuple[Path, ...] = ()
    cache_miss: tuple[Path, ...] = ()
    output: tuple[Path, ...] = ()
    reasoning: tuple[Path, ...] = ()
    tool_input: tuple[Path, ...] = ()
    grand_total: tuple[Path, ...] = ()
    cost: tuple[Path, ...] = ()
    disjoint: bool = False


def paths(*dotted: str) -> tuple[Path, ...]:
    """Dotted names as paths into a usage object."""
    return tuple(tuple(name.split(".")) for name in dotted)


@dataclass(frozen=True, slots=True)
class _Counts:
    total: int | None
    read: int | None
    write: int | None
    write_5m: int | None
    write_1h: int | None
    miss: int | None


def read(usage: object, table: Table, source: str = "response") -> Usage:
    """A provider's usage object in exclusive classes; anything that is no object is `missing`."""
    if not isinstance(usage, Mapping):
        return Usage()
    flags = list(_flags(usage, table))
    counts = _counts(usage, table)
    total, more = _with_tools(usage, table, counts.total)
    base = Usage(
        output=_first(usage, table.output),
        reasoning=_first(usage, table.reasoning),
        write_5m=counts.write_5m,
        write_1h=counts.write_1h,
        source=source,
        provider_cost=_amount(usage, table.cost),
    )
    return _classes(base, replace(counts, total=total), table.disjoint, [*flags, *more])


def _counts(usage: Json, table: Table) -> _Counts:
    write_5m, write_1h = _first(usage, table.write_5m), _first(usage, table.write_1h)
    write = _first(usage, table.cache_write)
    if write is None and (write_5m is not None or write_1h is not None):
        write = (write_5m or 0) + (write_1h or 0)
    return _Counts(
        _first(usage, table.total),
        _first(usage, table.cache_read),
        write,
        write_5m,
        write_1h,
        _first(usage, table.cache_miss),
    )


def _classes(base: Usage, counts: _Counts, disjoint: bool, flags: list[str]) -> Usage:
    total, read_, write = counts.total, counts.read, counts.write
    if total is None and read_ is not None and counts.miss is not None:
        total = read_ + counts.miss
    if total is None:
        return replace(base, flags=(*flags, "input_missing"))
    if read_ is None and write is None:
        return replace(base, unreported=total, flags=tuple(flags))
    parts = (read_ or 0) + (write or 0)
    if disjoint and read_ and write and total == parts:
        disjoint, flags = False, [*flags, "suspicious_equality"]
    elif not disjoint and parts > total:
        disjoint, flags = True, [*flags, "cache_exceeds_input"]
    rest = total if disjoint else total - parts
    if counts.miss is not None and read_ is not None and counts.miss + read_ != total:
        flags = [*flags, "miss_conflict"]
    if read_ is None:
        return replace(base, unreported=rest, cache_write=write, flags=tuple(flags))
    return replace(base, uncached=rest, cache_read=read_, cache_write=write, flags=tuple(flags))


def _with_tools(usage: Json, table: Table, total: int | None) -> tuple[int | None, list[str]]:
    """The prompt total with tool-use tokens added where the grand total proves that they stand outside it."""
    extra, grand = _first(usage, table.tool_input), _first(usage, table.grand_total)
    output = _first(usage, table.output)
    if total is None or not extra or output is None:
        return total, []
    if grand == total + output:
        return total, []
    if grand == total + extra + output:
        return total + extra, []
    return total, ["ambiguous_total"]


def _flags(usage: Json, table: Table) -> Iterator[str]:
    """Spellings of one class that are both present and differ, and numbers that cannot be."""
    for name, options in (("cached_tokens", table.cache_read), ("cache_write_tokens", table.cache_write)):
        if len({n for path in options if (n := _number(usage, path)) is not None}) > 1:
            yield f"{name}_conflict"
    every: list[tuple[Path, ...]] = [table.total, table.cache_read, table.cache_write, table.output, table.reasoning]
    if any(_impossible(_at(usage, path)) for options in every for path in options):
        yield "impossible_number"


def _impossible(value: object) -> bool:
    if value is None:
        return False
    return isinstance(value, (bool, str, list, Mapping)) or not _whole(value)


def _whole(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0 and value == value // 1


def _first(usage: Json, options: tuple[Path, ...]) -> int | None:
    return next((n for path in options if (n := _number(usage, path)) is not None), None)


def _number(usage: Json, path: Path) -> int | None:
    value = _at(usage, path)
    return int(value) if isinstance(value, (int, float)) and _whole(value) else None


def _amount(usage: Json, options: tuple[Path, ...]) -> float | None:
    found: Callable[[Path], object] = lambda path: _at(usage, path)  # noqa: E731
    return next(
        (float(v) for v in map(found, options) if isinstance(v, (int, float)) and not isinstance(v, bool)), None
    )


def _at(usage: object, path: Path) -> object:
    for step in path:
        if not isinstance(usage, Mapping):
            return None
        usage = usage.get(step)
    return usage
