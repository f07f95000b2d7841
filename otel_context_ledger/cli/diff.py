"""`context-ledger diff A B`: what two calls were made of, segment by segment.

Segments are compared by the digests of their canonical form, each kind for itself: tools by name, the others in order.
"""

from __future__ import annotations

import difflib
from argparse import Namespace
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby

from otel_context_ledger.cli import calls as c
from otel_context_ledger.cli.calls import Call
from otel_context_ledger.cli.printing import UNKNOWN, Answer, Cell, Column, Lines, Sheet, moment, plural, styled
from otel_context_ledger.cli.trails import HEADER_KINDS, UNKNOWN_KIND, Rendering, Segment, Trails
from otel_context_ledger.config import Config

COLUMNS = (
    Column(""), Column("kind"), Column("index", right=True), Column("name", fold=True), Column("bytes", right=True),
    Column("digest"),
)  # fmt: skip
STATUSES = ("same", "changed", "moved", "added", "removed")
STYLES = {"changed": "yellow", "moved": "cyan", "added": "green", "removed": "red"}
# What stands beside the segments and can differ too.
BESIDE = ("provider_surface", "model_id", "reasoning_effort", "cache_identity", "repo_snapshot")
WIRES = (("tool", "tool_wire_hash", "tools"), ("system", "policy_wire_hash", "system blocks"))
DIGITS = 8
DIGESTS = ("xxh3:", "b2k:")
# Beyond so many pairs the middle is compared place by place: a finer alignment would take minutes.
MAX_PAIRS = 4_000_000


@dataclass(frozen=True, slots=True)
class Place:
    """A segment at its index among what was sent of its kind."""

    segment: Segment
    index: int | None


@dataclass(frozen=True, slots=True)
class Difference:
    """What became of one segment: `old` in the first call, `new` in the second."""

    status: str
    old: Place | None = None
    new: Place | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two calls, with what is known of its segments."""

    call: Call
    rendering: Rendering

    def places(self, kind: str, start: int) -> list[Place]:
        """The segments of a kind from position `start` of the rendering on."""
        found = [(at, s) for at, s in enumerate(self.rendering.segments) if s.kind == kind]
        first = self._first(len(found)) if kind not in HEADER_KINDS else 0
        return [Place(segment, first + number) for number, (at, segment) in enumerate(found) if at >= start]

    def _first(self, messages: int) -> int:
        """The index of the first known message in the list that was sent, counted from its end if need be."""
        bounds = (self.call.text("history_range") or "").split("-")
        if len(bounds) != 2 or not all(bound.isdecimal() for bound in bounds):
            return 0
        start, end = map(int, bounds)
        return max(start, end - messages) if self.rendering.unknown else start


def answer(arguments: Namespace, settings: Config) -> Answer:
    """The differences between the two calls that the options name. Raises `Unusable`."""
    book = c.opened(arguments, settings)
    trails = Trails(book.by_id())
    old, new = (_side(c.find(book, wanted), trails) for wanted in (arguments.a, arguments.b))
    found, unknown = compare(old, new)
    document = {
        "a": old.call.entry_id,
        "b": new.call.entry_id,
        "segments": [_record(item) for item in found],
        "not_known": unknown,
        "summary": {status: sum(item.status == status for item in found) for status in STATUSES},
        "beside": {name: [before, after] for name, before, after in _beside(old.call, new.call)},
    }
    head = [f"{letter}  {_title(side.call)}" for letter, side in (("A", old), ("B", new))]
    sheet = [Sheet(COLUMNS, list(_collapsed(found)))] if found else []
    return Answer(document, [Lines([*head, ""]), *sheet, Lines(["", *_notes(old, new, found, unknown)])])


def compare(old: Side, new: Side) -> tuple[list[Difference], int]:
    """The differences in the order of rendering, and how many leading segments cannot be compared, because the calls
    that told them are no longer in the file."""
    a, b = old.rendering, new.rendering
    unknown = max(a.unknown, b.unknown)
    pairs = list(zip(a.segments[: a.unknown], b.segments[: b.unknown], strict=False))
    alike = next((at for at, (x, y) in enumerate(pairs) if x != y), len(pairs))
    found = [Difference("same", Place(x, None), Place(y, None)) for x, y in pairs[:alike]]
    kinds = dict.fromkeys((*HEADER_KINDS, *(segment.kind for segment in (*a.segments, *b.segments))))
    for kind in kinds:
        if kind != UNKNOWN_KIND:
            found += aligned(old.places(kind, unknown), new.places(kind, unknown))
    return found, unknown - alike


def aligned(old: Sequence[Place], new: Sequence[Place]) -> list[Difference]:
    """What became of the segments of one kind."""
    blocks = list(_blocks([place.segment.digest for place in old], [place.segment.digest for place in new]))
    gone = [place for same, a, _ in blocks if not same for place in old[a]]
    come = [place for same, _, b in blocks if not same for place in new[b]]
    moved = _paired(gone, come, lambda segment: segment.digest)
    origins = set(moved.values())
    found: list[Difference] = []
    for same, a, b in blocks:
        if same:
            found += [Difference("same", x, y) for x, y in zip(old[a], new[b], strict=True)]
        else:
            found += _replaced([place for place in old[a] if place not in origins], new[b], moved)
    return found


def _replaced(gone: Sequence[Place], come: Sequence[Place], moved: Mapping[Place, Place]) -> Iterator[Difference]:
    """One run of segments that gave way to another; those with one name are one segment that changed."""
    changed = _paired(gone, [place for place in come if place not in moved], lambda segment: segment.name)
    origins = set(changed.values())
    yield from (Difference("removed", place) for place in gone if place not in origins)
    for place in come:
        origin = moved.get(place) or changed.get(place)
        status = "added" if origin is None else ("moved" if place in moved else "changed")
        yield Difference(status, origin, place)


def _paired(old: Sequence[Place], new: Sequence[Place], key: Callable[[Segment], str]) -> dict[Place, Place]:
    """New places with the first old one of the same key that is still free."""
    free: dict[str, list[Place]] = defaultdict(list)
    for place in reversed(old):
        free[key(place.segment)].append(place)
    return {place: free[key(place.segment)].pop() for place in new if free.get(key(place.segment))}


def _blocks(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[bool, slice, slice]]:
    """Runs of two sequences: whether they are the same in both, and where they stand."""
    size = min(len(old), len(new))
    head = next((at for at in range(size) if old[at] != new[at]), size)
    tail = next((at for at in range(size - head) if old[-1 - at] != new[-1 - at]), size - head)
    ends = len(old) - tail, len(new) - tail
    yield True, slice(0, head), slice(0, head)
    if (ends[0] - head) * (ends[1] - head) > MAX_PAIRS:
        yield False, slice(head, ends[0]), slice(head, ends[1])
    else:
        matcher = difflib.SequenceMatcher(None, old[head : ends[0]], new[head : ends[1]], autojunk=False)
        for tag, a, z, b, y in matcher.get_opcodes():
            yield tag == "equal", slice(head + a, head + z), slice(head + b, head + y)
    yield True, slice(ends[0], len(old)), slice(ends[1], len(new))


def _side(call: Call, trails: Trails) -> Side:
    rendering = trails.of(call)
    if rendering is None:
        raise c.Unusable(f"The line of call {call.entry_id} ({call.place}) holds no segments to compare.")
    return Side(call, rendering)


def _title(call: Call) -> str:
    return f"{call.entry_id}  {moment(call.number('started_at'))}  {call.text('model_id') or UNKNOWN}"


def _collapsed(found: Sequence[Difference]) -> Iterator[Sequence[Cell]]:
    """The rows of a sheet, a run of segments that are the same as one row."""
    for same, run in groupby(found, lambda item: item.status == "same"):
        items = list(run)
        if same and len(items) > 1:
            yield ("same", f"{len(items):,} segments the same", "", "", f"{_bytes(items)}", "")
        else:
            yield from map(_row, items)


def _bytes(items: Sequence[Difference]) -> str:
    sizes = [item.new.segment.size for item in items if item.new is not None]
    known = [size for size in sizes if size is not None]
    return f"{sum(known):,}" if len(known) == len(sizes) else UNKNOWN


def _row(item: Difference) -> Sequence[Cell]:
    places = [place for place in (item.old, item.new) if place is not None]
    kind, name = (getattr(places[-1].segment, field) for field in ("kind", "name"))
    facts = [(_count(p.index), _count(p.segment.size), _short(p.segment.digest)) for p in places]
    status = styled(item.status, STYLES.get(item.status, ""))
    index, size, digest = (" → ".join(dict.fromkeys(values)) for values in zip(*facts, strict=True))
    return status, kind, index, name, size, digest


def _count(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number:,}"


def _brief(text: str | None) -> str:
    return UNKNOWN if text is None else (_short(text) if text.startswith(DIGESTS) else text)


def _short(digest: str) -> str:
    return digest.split(":", 1)[-1][:DIGITS]


def _record(item: Difference) -> dict[str, object]:
    sides = {"old": item.old, "new": item.new}
    return {
        "status": item.status,
        **{
            name: {"index": place.index, **asdict(place.segment)} if place is not None else None
            for name, place in sides.items()
        },
    }


def _beside(old: Call, new: Call) -> Iterator[tuple[str, str | None, str | None]]:
    pairs = ((name, old.text(name), new.text(name)) for name in BESIDE)
    return ((name, before, after) for name, before, after in pairs if before != after)


def _notes(old: Side, new: Side, found: Sequence[Difference], unknown: int) -> list[str]:
    numbers = {status: sum(item.status == status for item in found) for status in STATUSES}
    summary = ", ".join(f"{number:,} {status}" for status, number in numbers.items() if number or status == "same")
    lost = dict.fromkeys(side.rendering.missing for side in (old, new) if side.rendering.missing)
    return [
        f"{summary}. {'' if unknown else _verdict(found)}".rstrip(),
        *(f"not known: what call {name} told of its segments is no longer in the file" for name in lost),
        *([f"not compared: the first {plural(unknown, 'segment')}"] if unknown else []),
        *_wires(old, new, found),
        *(f"{name}: {_brief(before)} → {_brief(after)}" for name, before, after in _beside(old.call, new.call)),
    ]


def _verdict(found: Sequence[Difference]) -> str:
    """Where the common prefix ends; appended messages end none."""
    at = next((n for n, item in enumerate(found) if item.status != "same"), None)
    if at is None:
        return "Both calls are made of the same segments."
    if all(item.status == "added" and _kind(item) not in HEADER_KINDS for item in found[at:]):
        return "B extends A."
    place = found[at].new or found[at].old
    return (
        f"The common prefix ends at {place.segment.kind} {_count(place.index)} ({place.segment.name})." if place else ""
    )


def _wires(old: Side, new: Side, found: Sequence[Difference]) -> Iterator[str]:
    """Segments that are the same as values and still went out as other bytes."""
    for kind, field, noun in WIRES:
        mine = [item for item in found if (item.new or item.old) and _kind(item) == kind]
        hashes = old.call.text(field), new.call.text(field)
        if mine and all(item.status == "same" for item in mine) and hashes[0] != hashes[1]:
            yield f"{noun}: the same values, sent as other bytes ({field} differs)"


def _kind(item: Difference) -> str | None:
    place = item.new or item.old
    return place.segment.kind if place else None
