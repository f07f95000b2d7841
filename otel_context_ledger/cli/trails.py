"""The segments of a call, followed from its ledger line back through the calls that it extends.

A line holds what a call added to its comparable call (`segments`: base, keep, add). Where a base is no longer in the
file its segments are stand-ins that equal each other and nothing else, so that what is built on them can still be
compared.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from otel_context_ledger import canonical
from otel_context_ledger.cli.calls import Call
from otel_context_ledger.model import Trail

HEADER_KINDS = ("tool", "system")
UNKNOWN_KIND = "unknown"
BARE = "xxh3:"
MAX_SEGMENTS = 1 << 20
MAX_REMEMBERED = 256
Link = tuple[int, bytes | None]


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment as the ledger file knows it; a size of `None` is that of a stand-in."""

    kind: str
    name: str
    size: int | None
    digest: str


@dataclass(frozen=True, slots=True)
class Rendering:
    """All segments of a call in the order of rendering; the first `unknown` ones are stand-ins, because the line of the
    call `missing` is not in the file. `links` are (bytes, digest) up to the header's end and after each message; a
    digest of `None` cannot be computed, because the segments' digests are keyed."""

    segments: tuple[Segment, ...] = ()
    unknown: int = 0
    missing: str | None = None
    links: tuple[Link, ...] = ()

    def of(self, kind: str) -> tuple[Segment, ...]:
        """The segments of one kind."""
        return tuple(segment for segment in self.segments if segment.kind == kind)


class Trails:
    """The renderings of the calls of one file; the latest are remembered, since later calls extend them."""

    def __init__(self, calls: Mapping[str, Call]) -> None:
        self._calls = calls
        self._known: OrderedDict[str, Rendering] = OrderedDict()

    def of(self, call: Call) -> Rendering | None:
        """The rendering of a call, or `None` when its line has no usable trail."""
        if read(call) is None:
            return None
        chain: dict[str, Trail] = {}
        at: Call | None = call
        while at is not None and at.entry_id not in self._known and (trail := read(at)) is not None:
            if at.entry_id in chain:
                break
            chain[at.entry_id] = trail
            at = self._calls.get(trail.base) if trail.base is not None else None
        found = self._known.get(at.entry_id) if at is not None else None
        for entry_id, trail in reversed(chain.items()):
            found = extended(found, trail)
            self._remember(entry_id, found)
        return found

    def _remember(self, entry_id: str, found: Rendering) -> None:
        self._known[entry_id] = found
        if len(self._known) > MAX_REMEMBERED:
            self._known.popitem(last=False)


def read(call: Call) -> Trail | None:
    """The trail in a call's line, or `None` when there is none of the right form."""
    raw = call.value("segments")
    if not isinstance(raw, Mapping):
        return None
    base, keep, add = raw.get("base"), raw.get("keep"), raw.get("add")
    if not isinstance(base, (str, type(None))) or type(keep) is not int or not isinstance(add, list):
        return None
    rows = tuple(row for item in add if (row := _row(item)))
    whole = len(rows) == len(add) and 0 <= keep <= MAX_SEGMENTS and (base is not None or keep == 0)
    return Trail(base, keep, rows) if whole else None


def extended(base: Rendering | None, trail: Trail) -> Rendering:
    """The rendering of a call whose trail extends a base; a base of `None` is one that is not in the file."""
    added = tuple(Segment(*row) for row in trail.add)
    if trail.base is None:
        return Rendering(added, links=_links(added, ()))
    if base is None or len(base.segments) < trail.keep:
        lost = tuple(Segment(UNKNOWN_KIND, "", None, f"{trail.base}#{at}") for at in range(trail.keep))
        return Rendering((*lost, *added), trail.keep, trail.base if trail.keep else None)
    segments, unknown = (*base.segments[: trail.keep], *added), min(base.unknown, trail.keep)
    if unknown:
        return Rendering(segments, unknown, base.missing)
    header = len(base.segments) - len(base.links) + 1
    return Rendering(segments, links=_links(segments, base.links[: max(0, trail.keep - header + 1)]))


def _links(segments: tuple[Segment, ...], known: tuple[Link, ...]) -> tuple[Link, ...]:
    """The links of whole segments, of which the first ones are known already."""
    header = [segment for segment in segments if segment.kind in HEADER_KINDS]
    links = list(known) or [_root(header)]
    size, link = links[-1]
    for segment in segments[len(header) + len(links) - 1 :]:
        raw = bare(segment.digest)
        link = canonical.digest(link + raw) if link is not None and raw is not None else None
        size += segment.size or 0
        links.append((size, link))
    return tuple(links)


def _root(header: Iterable[Segment]) -> Link:
    raws = [(segment.size or 0, bare(segment.digest)) for segment in header]
    known = [raw for _, raw in raws if raw is not None]
    size = sum(size for size, _ in raws)
    return size, canonical.digest(b"".join(known)) if len(known) == len(raws) else None


def bare(digest: str) -> bytes | None:
    """The bytes of an unkeyed digest."""
    try:
        return bytes.fromhex(digest[len(BARE) :]) if digest.startswith(BARE) else None
    except ValueError:
        return None


def _row(item: object) -> tuple[str, str, int, str] | None:
    if not isinstance(item, (list, tuple)) or len(item) != 4:
        return None
    kind, name, size, digest = item
    texts = isinstance(kind, str) and isinstance(name, str) and isinstance(digest, str)
    return (kind, name, size, digest) if texts and type(size) is int and size >= 0 else None
