"""What a request is made of: tools one by one, the system part, then each message, in the order of rendering.

An `Outline` shares the caller's strings and copies only the containers around them, so that comparing two of them is a
comparison of pointers and no change of the caller's objects can be missed. A message whose leaves are not all strings is
digested at every call, because Python holds `1`, `1.0` and `True` to be equal.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, compress, count
from operator import ne

from otel_context_ledger.canonical import canonical, digest, exact, flaw, normal, schema_form, tagged, wire
from otel_context_ledger.model import Request

MARKERS = ("cache_control", "prompt_cache_breakpoint")
_MARKER_BYTES = tuple(f'"{name}"'.encode() for name in MARKERS)
MEMO_ENTRIES = 256
MAX_NAME = 64


@dataclass(frozen=True, slots=True)
class Segment:
    """One addressable piece of what was sent. `size` is the length of its canonical form in bytes."""

    kind: str
    index: int
    name: str
    size: int
    digest: bytes
    wire: bytes
    value: object
    flaw: str | None = None


@dataclass(frozen=True, slots=True)
class Outline:
    """A request as segments. `digests`, `sizes` and `prefix` run along `messages`; `prefix[i]` covers everything up to
    and including message `i`; `root` covers the header alone."""

    header: tuple[Segment, ...]
    root: bytes
    messages: list[object]
    digests: list[bytes]
    sizes: list[int]
    prefix: list[bytes]
    loose: frozenset[int]
    offset: int = 0
    flaw: str | None = None

    @property
    def header_size(self) -> int:
        """Bytes of tools and system part."""
        return sum(segment.size for segment in self.header)

    def size(self, messages: int | None = None) -> int:
        """Bytes of the header and the first `messages` messages."""
        return self.header_size + sum(self.sizes[:messages])

    def edges(self) -> list[int]:
        """Cumulated bytes after the header and after each message."""
        return list(accumulate(self.sizes, initial=self.header_size))

    def of(self, kind: str) -> tuple[Segment, ...]:
        """The header's segments of one kind."""
        return tuple(segment for segment in self.header if segment.kind == kind)

    def message(self, at: int) -> Segment:
        """Message `at` as a segment; its index is its place in the list that was sent."""
        value = self.messages[at]
        return Segment(
            "message", at + self.offset, named(value), self.sizes[at], self.digests[at], digest(wire(value)), value
        )


class Memo:
    """Header segments by the digest of their bytes as sent: an unchanged header is digested once, not cut again."""

    def __init__(self, entries: int = MEMO_ENTRIES) -> None:
        self._entries = entries
        self._known: OrderedDict[bytes, tuple[Segment, ...]] = OrderedDict()

    def segments(self, kind: str, values: Sequence[object]) -> tuple[Segment, ...]:
        """The segments of a list of tools or system blocks."""
        if not values:
            return ()
        key = digest(kind.encode() + wire(list(values)))
        found = self._known.pop(key, None)
        if found is None:
            found = tuple(_header_segment(kind, index, value) for index, value in enumerate(values))
        self._known[key] = found
        while len(self._known) > self._entries:
            self._known.popitem(last=False)
        return found


def cut(request: Request, unrendered: frozenset[str], memo: Memo, previous: Outline | None = None) -> Outline:
    """The outline of a request. `previous` only saves work: the result is the same with any outline or none."""
    header = (*memo.segments("tool", request.tools), *memo.segments("system", request.system))
    root = digest(b"".join(segment.digest for segment in header))
    messages = request.messages if isinstance(request.messages, list) else list(request.messages)
    stamps = _Stamps(messages, unrendered, previous)
    start = stamps.kept if previous is not None and previous.root == root else 0
    prefix = previous.prefix[:start] if previous is not None else []
    link = prefix[-1] if prefix else root
    for item in stamps.digests[start:]:
        link = digest(link + item)
        prefix.append(link)
    found = stamps.flaw or next((segment.flaw for segment in header if segment.flaw), None)
    return Outline(
        header,
        root,
        stamps.frozen,
        stamps.digests,
        stamps.sizes,
        prefix,
        frozenset(stamps.loose),
        request.offset,
        found,
    )


def shared(messages: Sequence[object], previous: Outline, unrendered: frozenset[str]) -> int:
    """How many leading messages are those of `previous`, whatever became of their cache markers and unrendered ids."""
    size = min(len(messages), len(previous.messages))
    if previous.messages[:size] == messages[:size]:
        return _first_loose_change(messages, previous, size, unrendered)
    at = 0
    while at < size:
        step = next(compress(count(at), map(ne, previous.messages[at:size], messages[at:size])), size)
        if step == size or stamp(freeze(messages[step], []), unrendered, loose=True)[0] != previous.digests[step]:
            return _first_loose_change(messages, previous, step, unrendered)
        at = step + 1
    return _first_loose_change(messages, previous, size, unrendered)


def _first_loose_change(messages: Sequence[object], previous: Outline, end: int, unrendered: frozenset[str]) -> int:
    for at in sorted(previous.loose):
        if at < end and stamp(freeze(messages[at], []), unrendered, loose=True)[0] != previous.digests[at]:
            return at
    return end


class _Stamps:
    """Frozen messages with their digests and sizes, taken from `previous` wherever it has the same message."""

    def __init__(self, messages: list[object], unrendered: frozenset[str], previous: Outline | None) -> None:
        self.kept = shared(messages, previous, unrendered) if previous is not None else 0
        known = previous.messages if previous is not None else []
        self.frozen: list[object] = known[: self.kept]
        self.digests = previous.digests[: self.kept] if previous is not None else []
        self.sizes = previous.sizes[: self.kept] if previous is not None else []
        self.loose = [at for at in previous.loose if at < self.kept] if previous is not None else []
        self.flaw: str | None = None
        for at in range(self.kept, len(messages)):
            same = previous is not None and at < len(known) and at not in previous.loose and known[at] == messages[at]
            if previous is not None and same:
                self._put(known[at], previous.digests[at], previous.sizes[at])
            else:
                self._add(at, messages[at], unrendered)

    def _put(self, frozen: object, stamped: bytes, size: int) -> None:
        self.frozen.append(frozen)
        self.digests.append(stamped)
        self.sizes.append(size)

    def _add(self, at: int, message: object, unrendered: frozenset[str]) -> None:
        strange: list[object] = []
        frozen = freeze(message, strange)
        if strange:
            self.loose.append(at)
        stamped, size, whole = stamp(frozen, unrendered, loose=bool(strange))
        if strange or not whole:
            self.flaw = self.flaw or flaw(frozen)
        self._put(frozen, stamped, size)


def freeze(value: object, strange: list[object]) -> object:
    """A copy of the containers around the caller's own strings; other leaves are gathered in `strange`."""
    try:
        return _freeze(value, strange)
    except RecursionError:
        strange.append(None)
        return tagged(value, set())


def _freeze(value: object, strange: list[object]) -> object:
    kind = type(value)
    if kind is str or value is None:
        return value
    if isinstance(value, dict):
        return {key: _freeze(item, strange) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_freeze(item, strange) for item in value]
    strange.append(value)
    return value


def stamp(message: object, unrendered: frozenset[str], *, loose: bool) -> tuple[bytes, int, bool]:
    """Digest and size of a message's canonical form without cache markers and members that are never rendered, and
    whether JSON had a form for all of it."""
    value = message
    if unrendered and isinstance(message, dict):
        value = {key: item for key, item in message.items() if key not in unrendered}
    given = normal(value, set()) if loose else value
    raw = exact(given)
    whole = raw is not None
    if raw is None:
        raw = canonical(value)
    if any(marker in raw for marker in _MARKER_BYTES):
        raw = canonical(unmarked(value))
    return digest(raw), len(raw), whole


def unmarked(value: object) -> object:
    """A value without the cache markers in it."""
    if isinstance(value, Mapping):
        return {key: unmarked(item) for key, item in value.items() if key not in MARKERS}
    if isinstance(value, (list, tuple)):
        return [unmarked(item) for item in value]
    return value


def _header_segment(kind: str, index: int, value: object) -> Segment:
    kept = unmarked(freeze(value, []))
    found = flaw(kept)
    rendered: object = kept
    if kind == "tool":
        rendered = {"name": named(kept)} if named(kept).startswith("$") else schema_form(kept)
    raw = canonical(rendered)
    return Segment(kind, index, named(kept), len(raw), digest(raw), digest(wire(kept)), kept, found)


def named(value: object) -> str:
    """The name of a tool, else the role or type of a message or block."""
    if isinstance(value, str):
        return "text"
    if not isinstance(value, Mapping):
        return type(value).__name__
    function = value.get("function")
    places = (function.get("name") if isinstance(function, Mapping) else None, value.get("name"))
    found = (*places, value.get("role"), value.get("type"))
    return next((name[:MAX_NAME] for name in found if isinstance(name, str) and name), "object")


def texts(value: object) -> str:
    """The text of a system block or message, its parts joined."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return texts(value.get("content", value.get("text", "")))
    if isinstance(value, (list, tuple)):
        return "\n".join(texts(part) for part in value)
    return ""


def inner_tools(messages: Sequence[object]) -> list[object]:
    """Tools that messages carry themselves (Kimi loads tools on demand by a `system` message in mid-history)."""
    carriers = (m for m in messages if isinstance(m, Mapping) and "tools" in m)
    return [tool for carrier in carriers if isinstance(carrier["tools"], (list, tuple)) for tool in carrier["tools"]]
