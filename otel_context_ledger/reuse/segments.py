"""What a request is made of: tools one by one, the system part, then each message, in the order of rendering.

An `Outline` shares the caller's strings and copies only the containers around them, so that comparing two of them is a
comparison of pointers and no change of the caller's objects can be missed. A message whose leaves are not all strings
is digested at every call, because Python holds `1`, `1.0` and `True` to be equal.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, compress, count
from math import isfinite
from operator import ne

from otel_context_ledger.canonical import canonical, digest, encode, exact, flaw, normal, schema_form, tagged, wire
from otel_context_ledger.model import Request
from otel_context_ledger.records import quick
from otel_context_ledger.spelling import OTHER
from otel_context_ledger.spelling import name as spelled

MARKERS = frozenset({"cache_control", "prompt_cache_breakpoint"})
MEMO_ENTRIES = 256
MAX_NAME = 64
MAX_PARTS_DEPTH = 8
# The roles of the dialects, and those that templates of local models know.
ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function", "model", "ipython", "critic"})
# What `freeze` notes beside leaves: the value was cut where it went too deep; there is a cache marker in it, noticed on
# the way, because looking through its bytes afterwards takes longer than digesting them.
_CUT = object()
_MARKED = object()
_DEEP = "depth"


@quick
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
    and including message `i`; `root` covers the header alone. `loose` are messages with leaves that are no strings,
    `carriers` those that bring tools of their own, `flaws` those that JSON has no form for, each with the reason."""

    header: tuple[Segment, ...]
    root: bytes
    messages: list[object]
    digests: list[bytes]
    sizes: list[int]
    prefix: list[bytes]
    loose: frozenset[int]
    carriers: tuple[int, ...] = ()
    offset: int = 0
    flaws: tuple[tuple[int, str], ...] = ()
    header_size: int = field(init=False)
    total: int = field(init=False)

    def __post_init__(self) -> None:
        """Adds up, once, the bytes of the header and those of the whole."""
        object.__setattr__(self, "header_size", sum(segment.size for segment in self.header))
        object.__setattr__(self, "total", self.header_size + sum(self.sizes))

    @property
    def flaw(self) -> str | None:
        """Why JSON has no form for a part of the request, or `None` when it has one for all of it."""
        header = (segment.flaw for segment in self.header if segment.flaw)
        return next(header, self.flaws[0][1] if self.flaws else None)

    def size(self, messages: int | None = None) -> int:
        """Bytes of the header and the first `messages` messages."""
        return self.total if messages is None else self.total - sum(self.sizes[messages:])

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


def cut(
    request: Request, unrendered: frozenset[str], memo: Memo, previous: Outline | None = None, begins: bool = False
) -> Outline:
    """The outline of a request. `previous` only saves work: the result is the same with any outline or none. With
    `begins` the request's messages are known to begin with those of `previous`."""
    header = (*memo.segments("tool", request.tools), *memo.segments("system", request.system))
    root = digest(b"".join(segment.digest for segment in header))
    messages = request.messages if isinstance(request.messages, list) else list(request.messages)
    stamps = _Stamps(messages, unrendered, previous, begins)
    start = stamps.kept if previous is not None and previous.root == root else 0
    prefix = previous.prefix[:start] if previous is not None else []
    link = prefix[-1] if prefix else root
    for item in stamps.digests[start:]:
        link = digest(link + item)
        prefix.append(link)
    return Outline(
        header, root, stamps.frozen, stamps.digests, stamps.sizes, prefix, frozenset(stamps.loose),
        tuple(stamps.carriers), request.offset, tuple(stamps.flaws.items()),
    )  # fmt: skip


def shared(messages: Sequence[object], previous: Outline, unrendered: frozenset[str], begins: bool = False) -> int:
    """How many leading messages are those of `previous`, whatever became of their cache markers and unrendered ids."""
    size = min(len(messages), len(previous.messages))
    if begins or previous.messages[:size] == messages[:size]:
        return _first_loose_change(messages, previous, size, unrendered)
    at = 0
    while at < size:
        step = next(compress(count(at), map(ne, previous.messages[at:size], messages[at:size])), size)
        if step == size or _stamped(messages[step], unrendered) != previous.digests[step]:
            return _first_loose_change(messages, previous, step, unrendered)
        at = step + 1
    return _first_loose_change(messages, previous, size, unrendered)


def _first_loose_change(messages: Sequence[object], previous: Outline, end: int, unrendered: frozenset[str]) -> int:
    for at in sorted(previous.loose) if previous.loose else ():
        if at < end and _stamped(messages[at], unrendered) != previous.digests[at]:
            return at
    return end


def _stamped(message: object, unrendered: frozenset[str]) -> bytes:
    strange: list[object] = []
    frozen = freeze(message, strange)
    return stamp(frozen, unrendered, strange)[0]


class _Stamps:
    """Frozen messages with their digests and sizes, taken from `previous` wherever it has the same message."""

    def __init__(
        self, messages: list[object], unrendered: frozenset[str], previous: Outline | None, begins: bool
    ) -> None:
        self.kept = shared(messages, previous, unrendered, begins) if previous is not None else 0
        known = previous.messages if previous is not None else []
        self.frozen: list[object] = known[: self.kept]
        self.digests = previous.digests[: self.kept] if previous is not None else []
        self.sizes = previous.sizes[: self.kept] if previous is not None else []
        self.loose = [at for at in previous.loose if at < self.kept] if previous is not None else []
        self.carriers = [at for at in previous.carriers if at < self.kept] if previous is not None else []
        before = dict(previous.flaws) if previous is not None else {}
        self.flaws = {at: found for at, found in before.items() if at < self.kept} if before else {}
        for at in range(self.kept, len(messages)):
            same = previous is not None and at < len(known) and at not in previous.loose and known[at] == messages[at]
            if previous is not None and same:
                self._put(known[at], previous.digests[at], previous.sizes[at])
                self.flaws |= {at: before[at]} if at in before else {}
            else:
                self._add(at, messages[at], unrendered)

    def _put(self, frozen: object, stamped: bytes, size: int) -> None:
        if type(frozen) is dict and "tools" in frozen:
            self.carriers.append(len(self.frozen))
        self.frozen.append(frozen)
        self.digests.append(stamped)
        self.sizes.append(size)

    def _add(self, at: int, message: object, unrendered: frozenset[str]) -> None:
        strange: list[object] = []
        frozen = freeze(message, strange)
        if any(leaf is not _MARKED for leaf in strange):
            self.loose.append(at)
        stamped, size, whole = stamp(frozen, unrendered, strange)
        if not whole and (found := _flaw(frozen, strange)):
            self.flaws[at] = found
        self._put(frozen, stamped, size)


def freeze(value: object, strange: list[object]) -> object:
    """A copy of the containers around the caller's own strings; other leaves are gathered in `strange`, with a note if
    there is a cache marker in it."""
    try:
        return _freeze(value, strange)
    except RecursionError:
        strange += (_CUT, _MARKED)
        return tagged(value)


def _freeze(value: object, strange: list[object]) -> object:
    kind = type(value)
    if kind is str or value is None:
        return value
    if isinstance(value, dict):
        if not MARKERS.isdisjoint(value):
            strange.append(_MARKED)
        return {key: item if type(item) is str else _freeze(item, strange) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_freeze(item, strange) for item in value]
    strange.append(value)
    return value


def stamp(message: object, unrendered: frozenset[str], strange: Sequence[object]) -> tuple[bytes, int, bool]:
    """Digest and size of a message's canonical form without cache markers and members that are never rendered, and
    whether JSON had a form for all of it. `strange` is what `freeze` gathered of it."""
    value = unmarked(message) if strange and _has_marker(strange) else message
    if unrendered and isinstance(value, dict):
        value = {key: item for key, item in value.items() if key not in unrendered}
    raw = exact(normal(value) if strange and any(type(leaf) is float for leaf in strange) else value)
    whole = raw is not None and not (strange and _unsayable(strange))
    if raw is None:
        raw = canonical(value)
    return digest(raw), len(raw), whole


def _has_marker(strange: Sequence[object]) -> bool:
    return any(leaf is _MARKED for leaf in strange)


def _unsayable(strange: Sequence[object]) -> bool:
    """Whether JSON has no form for one of these leaves, or the value was cut where it went too deep."""
    return any(leaf is _CUT or (type(leaf) is float and not isfinite(leaf)) for leaf in strange)


def _flaw(frozen: object, strange: Sequence[object]) -> str | None:
    """The reason; an integer of any size has a form in JSON, although not in every encoder."""
    return _DEEP if any(leaf is _CUT for leaf in strange) else flaw(frozen)


def unmarked(value: object) -> object:
    """A value without the cache markers in it."""
    if isinstance(value, Mapping):
        return {key: unmarked(item) for key, item in value.items() if key not in MARKERS}
    if isinstance(value, (list, tuple)):
        return [unmarked(item) for item in value]
    return value


def _header_segment(kind: str, index: int, value: object) -> Segment:
    strange: list[object] = []
    frozen = freeze(value, strange)
    kept = unmarked(frozen) if _has_marker(strange) else frozen
    found = None if exact(kept) is not None and not _unsayable(strange) else _flaw(kept, strange)
    rendered: object = kept
    if kind == "tool":
        rendered = {"name": named(kept)} if named(kept).startswith("$") else schema_form(kept)
    floats = any(type(leaf) is float for leaf in strange)
    raw = canonical(rendered) if floats or found else encode(rendered)
    return Segment(kind, index, named(kept), len(raw), digest(raw), digest(wire(kept)), kept, found)


def named(value: object) -> str:
    """The role of a message, the name of a tool, else the type of a block. The `name` of what has a role or content may
    be a person's and is never asked for, and so may a role that no provider knows: it is `other`."""
    if isinstance(value, str):
        return "text"
    if not isinstance(value, Mapping):
        return type(value).__name__
    role = value.get("role")
    if isinstance(role, str) and role:
        return role if role in ROLES else OTHER
    function = value.get("function")
    tool = function.get("name") if isinstance(function, Mapping) else None
    found = (tool, None if "content" in value else value.get("name"), value.get("type"))
    return spelled(next((name for name in found if isinstance(name, str) and name), "object"), MAX_NAME)


def texts(value: object, depth: int = 0) -> str:
    """The text of a system block or message, its parts joined; deeper than content parts lie there is none."""
    if isinstance(value, str):
        return value
    if depth > MAX_PARTS_DEPTH:
        return ""
    if isinstance(value, Mapping):
        return texts(value.get("content", value.get("text", "")), depth + 1)
    if isinstance(value, (list, tuple)):
        return "\n".join(texts(part, depth + 1) for part in value)
    return ""


def inner_tools(outline: Outline) -> list[object]:
    """Tools that messages carry themselves (Kimi loads tools on demand by a `system` message in mid-history)."""
    lists = (message["tools"] for at in outline.carriers if isinstance(message := outline.messages[at], dict))
    return [tool for tools in lists if isinstance(tools, list) for tool in tools]
