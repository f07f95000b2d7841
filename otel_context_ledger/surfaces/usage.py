"""The one reader of usage objects: a table per dialect says where each number stands, nothing else decides.

What the numbers mean (does the input count include cached tokens?) is a property of the dialect, never guessed from the
numbers. `read + write > input` under an inclusive dialect proves that the report is broken or disjoint: it is flagged
and, since no other reading adds up, counted as disjoint. A disjoint report whose input equals read + write on the nose
repeats its parts: it is flagged and counted as inclusive. Where a dialect does not say, the grand total decides or,
if it cannot, nothing is counted and the numbers stand in a flag.

Flags say what is odd, with the numbers that contradict each other, the used one first: `cached_tokens_conflict(10,12)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache

from otel_context_ledger.model import Json, Usage
from otel_context_ledger.records import changed, quick
from otel_context_ledger.surfaces.events import MAX_COUNT

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Where a dialect keeps its counts: for each class the paths to try, the first that holds a number wins.

    `lifetimes` are the writes by how long they are kept, `aliases` names of the cached count that no documentation
    knows. `disjoint` says whether the input leaves out what was read and written; `None` is not known. `apart` says
    that tool-use prompt and reasoning may stand beside prompt and output, which the grand total then tells.
    """

    total: tuple[Path, ...]
    cache_read: tuple[Path, ...] = ()
    cache_write: tuple[Path, ...] = ()
    lifetimes: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    cache_miss: tuple[Path, ...] = ()
    aliases: tuple[Path, ...] = ()
    output: tuple[Path, ...] = ()
    reasoning: tuple[Path, ...] = ()
    tool_input: tuple[Path, ...] = ()
    grand_total: tuple[Path, ...] = ()
    cost: tuple[Path, ...] = ()
    disjoint: bool | None = False
    apart: bool = False

    def counts(self) -> Iterator[Path]:
        """Every place of a token count."""
        for places in (
            self.total, self.cache_read, self.cache_write, *self.lifetimes.values(), self.cache_miss, self.aliases,
            self.output, self.reasoning, self.tool_input, self.grand_total,
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
    lifetimes: Mapping[str, int]
    miss: int | None
    output: int | None
    reasoning: int | None
    grand: int | None


def read(usage: object, table: Table, source: str = "response") -> Usage:
    """A provider's usage object in exclusive classes; anything that is no object is `missing`."""
    if not isinstance(usage, Mapping):
        return Usage() if usage is None else Usage(flags=("usage_unreadable",))
    table = _narrowed(table, _shape(usage))
    flags = [*_conflicts(usage, table), *_impossible(usage, table), *_unparsed(usage, table)]
    counts, torn = _counts(usage, table)
    counts, apart = _with_extras(counts, _first(usage, table.tool_input) or 0) if table.apart else (counts, [])
    base = Usage(
        output=counts.output,
        reasoning=counts.reasoning,
        source=source,
        provider_cost=next((cost for path in table.cost if (cost := _amount(_at(usage, path))) is not None), None),
        **{f"write_{name}": count for name, count in counts.lifetimes.items()},  # type: ignore[arg-type]
    )
    return _classes(base, counts, table.disjoint, [*flags, *torn, *apart])


def _counts(usage: Json, table: Table) -> tuple[_Counts, list[str]]:
    """The counts, and what is odd about them: lifetimes that do not make up the whole say nothing, and a cached count
    under a name that nobody documents is named."""
    write = _first(usage, table.cache_write)
    known = {name: n for name, places in table.lifetimes.items() if (n := _first(usage, places)) is not None}
    whole, flags = sum(known.values()), []
    if write is None and known:
        write = whole
    elif write is not None and (whole > write or (known and len(known) == len(table.lifetimes) and whole != write)):
        flags, known = [f"cache_write_tokens_conflict({write},{whole})"], {}
    cached = _first(usage, table.cache_read)
    alias = next((p for p in table.aliases if _number(_at(usage, p)) is not None), None) if cached is None else None
    if alias is not None:
        cached, flags = _number(_at(usage, alias)), [*flags, f"cached_tokens_alias({'.'.join(alias)})"]
    counts = _Counts(
        _first(usage, table.total), cached, write, known, _first(usage, table.cache_miss), _first(usage, table.output),
        _first(usage, table.reasoning), _first(usage, table.grand_total),
    )  # fmt: skip
    return counts, flags


def _classes(base: Usage, counts: _Counts, disjoint: bool | None, flags: list[str]) -> Usage:
    total, cached, write = counts.total, counts.read, counts.write
    if total is None and cached is not None and counts.miss is not None:
        total = cached + counts.miss
    if total is None:
        source = base.source if base.output is not None else "missing"
        return changed(base, source=source, flags=(*flags, "input_missing"))
    parts = (cached or 0) + (write or 0)
    if disjoint is None:
        disjoint = _proven(counts, total, parts)
    if disjoint is None:
        return changed(base, flags=(*flags, f"inclusivity_unknown({total},{parts})"))
    if disjoint and cached and write and total == parts:
        disjoint, flags = False, [*flags, "suspicious_equality"]
    elif not disjoint and parts > total:
        disjoint, flags = True, [*flags, "cache_exceeds_input"]
    rest = total if disjoint else total - parts
    if counts.miss is not None and cached is not None and counts.miss + cached != total:
        flags = [*flags, f"miss_conflict({total - cached},{counts.miss})"]
    flags = [*flags, *_grand(counts, rest + parts)]
    if cached is None:
        return changed(base, unreported=rest, cache_write=write, flags=tuple(flags))
    return changed(base, uncached=rest, cache_read=cached, cache_write=write, flags=tuple(flags))


def _proven(counts: _Counts, total: int, parts: int) -> bool | None:
    """Whether the input leaves out its cached part, where only the grand total can tell."""
    if not parts:
        return False
    if counts.grand is None or counts.output is None:
        return None
    return {total + counts.output: False, total + parts + counts.output: True}.get(counts.grand)


def _grand(counts: _Counts, prompt: int) -> Iterator[str]:
    """A grand total that is not the sum of prompt and output: something was counted that is not told apart."""
    whole = None if counts.output is None else prompt + counts.output
    if whole is not None and counts.grand not in (None, whole):
        yield f"total_conflict({whole},{counts.grand})"


def _with_extras(counts: _Counts, tool_input: int) -> tuple[_Counts, list[str]]:
    """The counts with tool-use prompt and reasoning added where the grand total proves that they stand beside the
    prompt and the output (Gemini counts both apart)."""
    total, output, grand, reasoning = counts.total, counts.output, counts.grand, counts.reasoning or 0
    if total is None or output is None or not (tool_input or reasoning):
        return counts, []
    fits = [
        (tool, thought)
        for tool in dict.fromkeys((0, tool_input))
        for thought in dict.fromkeys((0, reasoning))
        if grand == total + output + tool + thought
    ]
    if len(fits) != 1:
        return changed(counts, grand=None), ["ambiguous_total"]
    return changed(counts, total=total + fits[0][0], output=output + fits[0][1]), []


def _conflicts(usage: Json, table: Table) -> Iterator[str]:
    """Spellings of one class that are both present and differ."""
    for name, places in (("cached_tokens", table.cache_read), ("cache_write_tokens", table.cache_write)):
        if len(places) < 2:
            continue
        given = list(dict.fromkeys(n for path in places if (n := _number(_at(usage, path))) is not None))
        if len(given) > 1:
            yield f"{name}_conflict({','.join(map(str, given))})"


def _impossible(usage: Json, table: Table) -> Iterator[str]:
    """Whether a place of a number holds something that is none."""
    for places, fits in ((_places(table), _number), (table.cost, _amount)):
        for path in places:
            value = _at(usage, path)
            if value is not None and fits(value) is None:
                yield "impossible_number"
                return


def _unparsed(usage: Json, table: Table) -> Iterator[str]:
    """Whether what should be an object of details is something else, such as its text (case AC33)."""
    for path in _places(table):
        held = usage.get(path[0]) if len(path) > 1 else None
        if held is not None and not isinstance(held, Mapping):
            yield "details_unparsed"
            return


@lru_cache(maxsize=256)
def _places(table: Table) -> tuple[Path, ...]:
    return tuple(table.counts())


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
    for path in places:
        number = _number(_at(usage, path))
        if number is not None:
            return number
    return None


def _number(value: object) -> int | None:
    """A count; a float counts if it is whole (some gateways write them)."""
    if type(value) is int:
        return value if 0 <= value <= MAX_COUNT else None
    amount = _amount(value)
    return int(amount) if amount is not None and amount == int(amount) else None


def _amount(value: object) -> float | None:
    """A number that can be an amount: not negative, not beyond all prompts and prices, no truth value."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if 0 <= value <= MAX_COUNT else None


def _at(usage: object, path: Path) -> object:
    for step in path:
        if type(usage) is not dict and not isinstance(usage, Mapping):
            return None
        usage = usage.get(step)
    return usage
