"""The one reader of usage objects: a table per dialect says where each number stands, nothing else decides.

What the numbers mean (does the input count include cached tokens?) is a property of the dialect, never guessed from the
numbers. `read + write > input` under an inclusive dialect proves that the report is broken or disjoint: it is flagged
and, since no other reading adds up, counted as disjoint. A disjoint report whose input equals read + write on the nose
repeats its parts: it is flagged and counted as inclusive.

Flags say what is odd, with the numbers that contradict each other, the used one first: `cached_tokens_conflict(10,12)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache

from otel_context_ledger.model import Json, Usage
from otel_context_ledger.records import quick

Path = tuple[str, ...]
# What fits a double exactly; no prompt is longer, and views of an entry can write it down.
MAX_AMOUNT = 2**53


@dataclass(frozen=True, slots=True, eq=False)
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

    def counts(self) -> Iterator[Path]:
        """Every place of a token count."""
        for places in (
            self.total, self.cache_read, self.cache_write, self.write_5m, self.write_1h, self.cache_miss, self.output,
            self.reasoning, self.tool_input, self.grand_total,
        ):  # fmt: skip
            yield from places


def paths(*dotted: str) -> tuple[Path, ...]:
    """Dotted names as paths into a usage object."""
    return tuple(tuple(name.split(".")) for name in dotted)


@quick
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
        return Usage() if usage is None else Usage(flags=("usage_unreadable",))
    table = _narrowed(table, _shape(usage))
    flags = [*_conflicts(usage, table), *_impossible(usage, table)]
    counts, torn = _counts(usage, table)
    total, ambiguous = _with_tools(usage, table, counts.total)
    base = Usage(
        output=_first(usage, table.output),
        reasoning=_first(usage, table.reasoning),
        write_5m=counts.write_5m,
        write_1h=counts.write_1h,
        source=source,
        provider_cost=next((cost for path in table.cost if (cost := _amount(_at(usage, path))) is not None), None),
    )
    return _classes(base, replace(counts, total=total), table.disjoint, [*flags, *torn, *ambiguous])


def _counts(usage: Json, table: Table) -> tuple[_Counts, list[str]]:
    """The counts, and what is odd about the writes: lifetimes that do not make up the whole say nothing."""
    write = _first(usage, table.cache_write)
    parts = _first(usage, table.write_5m), _first(usage, table.write_1h)
    known = [part for part in parts if part is not None]
    flags = []
    if write is None and known:
        write = sum(known)
    elif write is not None and (sum(known) > write or (len(known) == len(parts) and sum(known) != write)):
        flags, parts = [f"cache_write_tokens_conflict({write},{sum(known)})"], (None, None)
    total, cached = _first(usage, table.total), _first(usage, table.cache_read)
    return _Counts(total, cached, write, *parts, _first(usage, table.cache_miss)), flags


def _classes(base: Usage, counts: _Counts, disjoint: bool, flags: list[str]) -> Usage:
    total, cached, write = counts.total, counts.read, counts.write
    if total is None and cached is not None and counts.miss is not None:
        total = cached + counts.miss
    if total is None:
        source = base.source if base.output is not None else "missing"
        return replace(base, source=source, flags=(*flags, "input_missing"))
    parts = (cached or 0) + (write or 0)
    if disjoint and cached and write and total == parts:
        disjoint, flags = False, [*flags, "suspicious_equality"]
    elif not disjoint and parts > total:
        disjoint, flags = True, [*flags, "cache_exceeds_input"]
    rest = total if disjoint else total - parts
    if counts.miss is not None and cached is not None and counts.miss + cached != total:
        flags = [*flags, f"miss_conflict({total - cached},{counts.miss})"]
    if cached is None:
        return replace(base, unreported=rest, cache_write=write, flags=tuple(flags))
    return replace(base, uncached=rest, cache_read=cached, cache_write=write, flags=tuple(flags))


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


def _conflicts(usage: Json, table: Table) -> Iterator[str]:
    """Spellings of one class that are both present and differ."""
    for name, places in (("cached_tokens", table.cache_read), ("cache_write_tokens", table.cache_write)):
        given = list(dict.fromkeys(n for path in places if (n := _number(_at(usage, path))) is not None))
        if len(given) > 1:
            yield f"{name}_conflict({','.join(map(str, given))})"


def _impossible(usage: Json, table: Table) -> Iterator[str]:
    """Whether a place of a number holds something that is none."""
    counts = (value for path in table.counts() if (value := _at(usage, path)) is not None and _number(value) is None)
    costs = (value for path in table.cost if (value := _at(usage, path)) is not None and _amount(value) is None)
    if any(True for values in (counts, costs) for _ in values):
        yield "impossible_number"


Shape = tuple[tuple[str, tuple[str, ...] | None], ...]


def _shape(usage: Json) -> Shape:
    """The names in a usage object that hold something, each with those of its details."""
    return tuple(
        (name, tuple(inner for inner, held in value.items() if held is not None) if type(value) is dict else None)
        for name, value in usage.items()
        if value is not None
    )


@lru_cache(maxsize=256)
def _narrowed(table: Table, shape: Shape) -> Table:
    """The table without the places that are not there in a usage object of this shape: one surface's usage objects
    have few shapes, and a table many places."""
    names = dict(shape)

    def there(path: Path) -> bool:
        inner = names.get(path[0], ())
        return path[0] in names and (len(path) == 1 or inner is None or path[1] in inner)

    def kept(places: object) -> object:
        if isinstance(places, Mapping):
            return {name: kept(inner) for name, inner in places.items()}
        return tuple(filter(there, places)) if isinstance(places, tuple) else places

    return Table(**{entry.name: kept(getattr(table, entry.name)) for entry in fields(Table)})  # type: ignore[arg-type]


def _first(usage: Json, places: tuple[Path, ...]) -> int | None:
    return next((n for path in places if (n := _number(_at(usage, path))) is not None), None)


def _number(value: object) -> int | None:
    """A count; a float counts if it is whole (some gateways write them)."""
    amount = _amount(value)
    return int(amount) if amount is not None and amount == int(amount) else None


def _amount(value: object) -> float | None:
    """A number that can be an amount: not negative, not beyond all prompts and prices, no truth value."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if 0 <= value <= MAX_AMOUNT else None


def _at(usage: object, path: Path) -> object:
    for step in path:
        if not isinstance(usage, Mapping):
            return None
        usage = usage.get(step)
    return usage
