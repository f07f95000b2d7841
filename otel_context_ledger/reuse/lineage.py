"""Where a request comes from: the only state of the reuse wing, bounded by sessions and bytes.

A session holds *heads*: the last request of each of its branches (forks, subagents, other models). A request belongs to
the head that it extends, else to the one that it rewrites or rewinds; a head is replaced only by a request that extends
it with the same cache identity, so interleaved sessions and forks never stand in each other's way.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from otel_context_ledger.model import Request
from otel_context_ledger.records import quick
from otel_context_ledger.reuse.identity import Identity
from otel_context_ledger.reuse.segments import Memo, Outline, cut, freeze, named, stamp, texts

MAX_HEADS = 64
MAX_CANDIDATES = 16
MAX_ANCHORS = 64
MAX_PLACES = 64
MAX_SCOPES = 64
# Without the program's word, another model with another header continues a session only on this much shared history.
LOOSE_OVERLAP = 8
HEAD_OVERHEAD = 4096
MESSAGE_OVERHEAD = 320


@quick
@dataclass(frozen=True, slots=True)
class Anchor:
    """A prompt size that the provider reported: everything up to `size` bytes of the outline is `tokens` tokens."""

    size: int
    tokens: int


@quick
@dataclass(frozen=True, slots=True)
class Head:
    """The last request of one branch. `tokens` is `None` until the provider reported its prompt size; `closed` is
    `None` while the call is in flight. Of the request it keeps everything but the caller's lists. `stored` are the
    tokens that the provider said it read from its cache or wrote to it, `routes` the last prompt size each host saw,
    `turn_ended` says that the answer called no tool, `wakes` how often this fork was woken after such an answer."""

    entry_id: str
    session: str
    endpoint: str
    api: str
    outline: Outline
    identity: Identity
    request: Request
    opened: float
    closed: float | None = None
    tokens: int | None = None
    cached: int | None = None
    stored: int | None = None
    served: str | None = None
    route: str | None = None
    routes: tuple[tuple[str, int], ...] = ()
    response_id: str | None = None
    written: str | None = None
    first: bool = False
    anchors: tuple[Anchor, ...] = ()
    plateau: int = 0
    forked: bool = False
    fork_of: str | None = None
    turn_ended: bool = False
    wakes: int = 0

    @property
    def scope(self) -> tuple[object, object, str]:
        """What a provider's cache is kept apart by, as far as a client can see."""
        return self.identity.parts["provider_surface"], self.identity.parts["model"], self.endpoint


@quick
@dataclass(frozen=True, slots=True)
class Link:
    """A request's place: its session and how that was found, the comparable head, how many leading messages they share,
    and the relation (first, repeats, extends, rewrites, rewinds, continues on the server, departs). The head's last
    `tail` messages stand in the request from its message `tail_at` on. Of a request that continues nothing, `beside` is
    the last head of the session that was named for it, and `sibling` the last one anywhere with the same header.
    `between` is another call that went to the same place after the head, the last one."""

    session: str
    source: str
    relation: str = "first"
    head: Head | None = None
    shared: int = 0
    tail: int = 0
    tail_at: int = 0
    parent: str | None = None
    sibling: Head | None = None
    beside: Head | None = None
    between: Head | None = None
    concurrent: bool = False
    lost_track: bool = False


@quick
@dataclass(frozen=True, slots=True)
class Arrival:
    """What comes with a request from outside: the id that its session gets if it is a new one, the endpoint that it
    goes to, and the time before which a prefix must not have been used last if the provider is to hold it still; `None`
    is unknown."""

    session: str
    endpoint: str = ""
    alive_since: float | None = None


@dataclass(slots=True)
class _Session:
    heads: list[Head] = field(default_factory=list)
    reorders: list[float] = field(default_factory=list)


@quick
@dataclass(frozen=True, slots=True)
class _Match:
    head: Head
    relation: str
    shared: int
    tail: int
    tail_at: int = 0


class Lineage:
    """The sessions of this process. Not locked: `ledger` serialises access."""

    def __init__(self, max_sessions: int = 1000, max_bytes: int = 64 * 2**20, summaries: tuple[str, ...] = ()) -> None:
        self._max_sessions, self._max_bytes, self._summaries = max_sessions, max_bytes, summaries
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._openings: dict[bytes, dict[str, None]] = {}
        self._tails: dict[bytes, dict[str, None]] = {}
        self._roots: OrderedDict[bytes, str] = OrderedDict()
        self._latest: OrderedDict[object, tuple[str, str]] = OrderedDict()
        self._bytes = 0
        self.memo = Memo()

    @property
    def sessions(self) -> int:
        """How many sessions are known."""
        return len(self._sessions)

    def outline(self, request: Request, unrendered: frozenset[str], names: Sequence[str]) -> Outline:
        """The request's outline, cut against the head that it most probably extends."""
        guess, begins = self._guess(request, unrendered, names)
        return cut(request, unrendered, self.memo, guess.outline if guess else None, begins)

    def link(
        self, names: Sequence[tuple[str, str]], outline: Outline, identity: Identity, request: Request, arrival: Arrival
    ) -> Link:
        """The request's place. `names` are (session, source) in order of preference."""
        name, source = names[0] if names else (arrival.session, "lineage")
        known = self._sessions.get(name) if names else None
        by_id = self._by_response(request.previous_response)
        if by_id is not None:
            session = name if names else by_id.session
            return Link(session, source, "continues", by_id, parent=self._parent(session, by_id))
        if request.previous_response:
            return Link(name, source, lost_track=True)
        heads = known.heads if known else self._candidates(outline)
        admitted = self._admitted(heads, outline, identity, explicit=bool(known))
        match = max(admitted, key=lambda found: _rank(found, outline, identity, arrival.alive_since), default=None)
        if match is None:
            sibling = self._sibling(outline, identity)
            beside = known.heads[-1] if known and known.heads else None
            waits = sibling is not None and sibling.closed is None
            return Link(name, source, sibling=sibling, beside=beside, concurrent=waits)
        session = name if names else match.head.session
        return Link(
            session, source, match.relation, match.head, match.shared, match.tail, match.tail_at,
            self._parent(session, match.head), between=self._between(match.head, identity, arrival.endpoint),
            concurrent=match.head.closed is None,
        )  # fmt: skip

    def put(self, head: Head, replaces: Head | None) -> None:
        """Remember a head; `replaces` is the one that it extends with the same cache identity, if there is one."""
        session = self._sessions.setdefault(head.session, _Session())
        self._sessions.move_to_end(head.session)
        if replaces is not None:
            self._forget(session, replaces)
        session.heads.append(head)
        self._index(head)
        self._note(head)
        self._bytes += weight(head)
        while len(session.heads) > MAX_HEADS:
            self._forget(session, session.heads[0])
        self._evict()

    def settle(self, head: Head, settled: Head, replaces: Head | None) -> None:
        """A call was answered: `settled`, which has the outline of `head`, takes its place; `replaces` as in `put`."""
        session = self._sessions.get(head.session)
        rest = [held for held in session.heads if held is not head] if session else []
        if session is None or len(rest) == len(session.heads):  # pushed out while the call was in flight
            self.put(settled, replaces)
            return
        self._sessions.move_to_end(head.session)
        session.heads[:] = (*rest, settled)
        self._note(settled)
        if replaces is not None:
            self._forget(session, replaces)

    def drop(self, head: Head) -> None:
        """Forget a head whose call failed: the provider cannot be held to have cached it."""
        session = self._sessions.get(head.session)
        if session is not None:
            self._forget(session, head)
            if not session.heads:
                del self._sessions[head.session]

    def reordered(self, session: str, now: float) -> tuple[int, float | None]:
        """Note a reordering of tools: how many this session has seen, and the median seconds between them."""
        times = self._sessions.setdefault(session, _Session()).reorders
        times.append(now)
        del times[:-MAX_HEADS]
        gaps = sorted(later - earlier for earlier, later in pairwise(times))
        return len(times), gaps[len(gaps) // 2] if gaps else None

    def heads(self) -> Iterator[Head]:
        """Every head, the least recently used session first."""
        return (head for session in self._sessions.values() for head in session.heads)

    def _guess(self, request: Request, unrendered: frozenset[str], names: Sequence[str]) -> tuple[Head | None, bool]:
        """The head that a request most probably extends, and whether it begins with that head's messages."""
        known = next((self._sessions[name] for name in names if name in self._sessions), None)
        latest = next(reversed(self._sessions.values()), None)
        near = known or latest
        extended = _extended(near.heads, request.messages) if near else None
        if extended or known:
            return extended or next(reversed(known.heads if known else ()), None), extended is not None
        alike = self._opened_alike(request, unrendered)
        extended = _extended(alike, request.messages)
        heads = alike or (latest.heads if latest else [])
        return extended or next(reversed(heads), None), extended is not None

    def _opened_alike(self, request: Request, unrendered: frozenset[str]) -> list[Head]:
        if not request.messages:
            return []
        strange: list[object] = []
        frozen = freeze(request.messages[0], strange)
        opening = stamp(frozen, unrendered, strange)[0]
        return [head for name in self._openings.get(opening, ()) for head in self._sessions[name].heads]

    def _candidates(self, outline: Outline) -> list[Head]:
        names: dict[str, None] = {}
        if outline.digests:
            names |= self._openings.get(outline.digests[0], {})
        for sessions in filter(None, map(self._tails.get, reversed(outline.digests[-256:]))):
            names |= sessions
        return [head for name in names for head in self._sessions[name].heads]

    def _admitted(
        self, heads: Iterable[Head], outline: Outline, identity: Identity, *, explicit: bool
    ) -> Iterator[_Match]:
        matches = (match for head in heads if (match := relate(head, outline)))
        return (match for match in matches if self._admits(match, outline, identity, explicit))

    def _admits(self, match: _Match, outline: Outline, identity: Identity, explicit: bool) -> bool:
        """Whether a match is a continuation. The program's word makes it one; else the evidence must be strong."""
        head = match.head
        same_header = head.outline.root == outline.root
        if explicit:
            return match.relation != "departs" or same_header or len(outline.messages) > 1
        if head.identity.parts["provider_surface"] != identity.parts["provider_surface"] or match.relation == "departs":
            return False
        same_model = head.identity.parts["model"] == identity.parts["model"]
        if match.relation == "repeats":
            return same_model and (same_header or begun(outline))
        started = begun(outline) or self._summarised(outline)
        return started and self._convinces(match, outline, same_model, same_header)

    def _summarised(self, outline: Outline) -> bool:
        return bool(self._summaries) and texts(outline.messages[0]).lstrip().startswith(self._summaries)

    def _convinces(self, match: _Match, outline: Outline, same_model: bool, same_header: bool) -> bool:
        kept = match.shared + match.tail
        if match.shared == 0:
            return kept >= LOOSE_OVERLAP or self._summarised(outline)
        if same_model:
            return match.relation != "rewinds" or 2 * match.shared >= len(outline.messages)
        return match.relation in ("extends", "rewrites") and (same_header or kept >= LOOSE_OVERLAP)

    def _by_response(self, response: str | None) -> Head | None:
        return next((h for h in self.heads() if h.response_id == response), None) if response else None

    def _note(self, head: Head) -> None:
        """Remembers a head as the latest call of its place, by name alone: it must not outlive its session."""
        self._latest[head.scope] = (head.session, head.entry_id)
        self._latest.move_to_end(head.scope)
        while len(self._latest) > MAX_SCOPES:
            self._latest.popitem(last=False)

    def _between(self, head: Head, identity: Identity, endpoint: str) -> Head | None:
        """The latest call of a place, if it is another one than `head` and came after it."""
        scope = identity.parts["provider_surface"], identity.parts["model"], endpoint
        name, entry = self._latest.get(scope, ("", ""))
        session = self._sessions.get(name) if entry != head.entry_id else None
        found = next((h for h in reversed(session.heads) if h.entry_id == entry), None) if session else None
        return found if found is not None and found.opened >= head.opened else None

    def _parent(self, session: str, head: Head) -> str | None:
        return head.session if head.session != session else None

    def _sibling(self, outline: Outline, identity: Identity) -> Head | None:
        """The latest head of any session that shares the whole header, model and surface."""
        session = self._sessions.get(self._roots.get(outline.root, ""))
        alike = ("provider_surface", "model")
        found = (h for h in reversed(session.heads) if h.outline.root == outline.root) if session else iter(())
        return next((h for h in found if all(h.identity.parts[p] == identity.parts[p] for p in alike)), None)

    def _index(self, head: Head) -> None:
        if head.outline.digests:
            self._openings.setdefault(head.outline.digests[0], {})[head.session] = None
            self._tails.setdefault(head.outline.digests[-1], {})[head.session] = None
        self._roots[head.outline.root] = head.session
        self._roots.move_to_end(head.outline.root)
        while len(self._roots) > 4 * self._max_sessions:
            self._roots.popitem(last=False)

    def _forget(self, session: _Session, head: Head) -> None:
        rest = [other for other in session.heads if other.entry_id != head.entry_id]
        if len(rest) == len(session.heads):
            return
        session.heads[:] = rest
        self._bytes -= weight(head)
        if head.outline.digests:
            opening, tail = head.outline.digests[0], head.outline.digests[-1]
            others = [h.outline.digests for h in rest if h.outline.digests]
            _unindex(self._openings, opening, head.session, opening in [digests[0] for digests in others])
            _unindex(self._tails, tail, head.session, tail in [digests[-1] for digests in others])

    def _evict(self) -> None:
        while len(self._sessions) > 1 and (len(self._sessions) > self._max_sessions or self._bytes > self._max_bytes):
            session = self._sessions[next(iter(self._sessions))]
            for head in list(session.heads):
                self._forget(session, head)
            self._sessions.popitem(last=False)
        session = next(iter(self._sessions.values()))
        while self._bytes > self._max_bytes and len(session.heads) > 1:
            self._forget(session, session.heads[0])


def _extended(heads: Sequence[Head], messages: Sequence[object]) -> Head | None:
    """The longest of the latest heads with whose messages these begin."""
    for head in sorted(heads[: -MAX_CANDIDATES - 1 : -1], key=lambda h: -len(h.outline.messages)):
        size = len(head.outline.messages)
        if size <= len(messages) and head.outline.messages == messages[:size]:
            return head
    return None


def weight(head: Head) -> int:
    """About how many bytes a head holds, the caller's strings that it keeps alive included."""
    return HEAD_OVERHEAD + head.outline.size() + MESSAGE_OVERHEAD * len(head.outline.messages)


def _unindex(index: dict[bytes, dict[str, None]], key: bytes, session: str, still: bool) -> None:
    if still or key not in index:
        return
    index[key].pop(session, None)
    if not index[key]:
        del index[key]


def relate(head: Head, outline: Outline) -> _Match | None:
    """How a request stands to a head, by their message digests alone."""
    old, new = head.outline.digests, outline.digests
    if not old or not new:
        return _Match(head, "repeats", 0, 0) if old == new else None
    size = common(old, new)
    if size == len(old):
        return _Match(head, "repeats" if size == len(new) else "extends", size, 0)
    tail, at = kept_tail(old, new, size)
    if tail:
        return _Match(head, "rewrites", size, tail, at)
    if not size:
        return _Match(head, "departs", 0, 0)
    return _Match(head, "rewrites" if len(new) > len(old) else "rewinds", size, 0)


def common(old: Sequence[bytes], new: Sequence[bytes]) -> int:
    """The number of leading items that two sequences share."""
    size = min(len(old), len(new))
    if old[:size] == new[:size]:
        return size
    return next(n for n in range(size) if old[n] != new[n])


def kept_tail(old: Sequence[bytes], new: Sequence[bytes], start: int) -> tuple[int, int]:
    """How many of the last items of `old` stand together in `new` after `start`, and from where on. Where the last item
    occurs more than once ("go on"), the longest run counts, and of equal ones the one that moved least."""
    places = [at for at in range(start, len(new)) if new[at] == old[-1]]
    runs = [(_run_back(old, new, at, start), -abs(at - len(old) + 1), at) for at in places[-MAX_PLACES:]]
    kept, _, at = max(runs, default=(0, 0, 0))
    return kept, at - kept + 1 if kept else 0


def _run_back(old: Sequence[bytes], new: Sequence[bytes], at: int, start: int) -> int:
    kept = 0
    while kept < len(old) - start and at - kept >= start and old[-1 - kept] == new[at - kept]:
        kept += 1
    return kept


def begun(outline: Outline) -> bool:
    """Whether a conversation has an answer in it already."""
    return any(named_role(message) not in ("user", "system", "developer") for message in outline.messages[:16])


def named_role(message: object) -> str:
    """The role of a message, or the type of an item that has none."""
    role = message.get("role") if isinstance(message, dict) else None
    return role if isinstance(role, str) else named(message)


_ORDER = {"repeats": 4, "extends": 4, "rewrites": 3, "rewinds": 2, "departs": 1}


def _same_cache(known: Identity, new: Identity) -> bool:
    """Whether two cache identities are the same; which summary a new request builds on is known once it has a place."""
    return known.cache == new.carrying(known.parts["summary"]).cache


def _rank(match: _Match, outline: Outline, identity: Identity, alive_since: float | None) -> tuple[object, ...]:
    head = match.head
    same_model = head.identity.parts["model"] == identity.parts["model"]
    order = _ORDER[match.relation]
    alive = alive_since is None or (head.closed or head.opened) >= alive_since
    return (
        order == _ORDER["extends"] and alive and _same_cache(head.identity, identity),
        same_model,
        order,
        head.outline.root == outline.root and alive,
        match.shared + match.tail,
        head.opened,
    )
