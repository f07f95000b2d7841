"""The verdict on a request's tools: what was sent against what is live, and each session's past.

The comparison of a list of tools with a view of the registry is made once and kept; a call with the tools and the
registry of the call before it pays for looking that up. Calls are judged later, on another thread.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from threading import Lock

from otel_context_ledger.canonical import canonical, digest
from otel_context_ledger.correctness.tools import contracts
from otel_context_ledger.correctness.tools.calls import Judge, Opinion
from otel_context_ledger.correctness.tools.contracts import Contract
from otel_context_ledger.correctness.tools.definitions import Definition, every
from otel_context_ledger.correctness.tools.registry import Live, Registry, View, passed_on
from otel_context_ledger.correctness.tools.schemas import (
    ADDITIVE,
    BREAKING,
    COSMETIC,
    LEVELS,
    Budget,
    Change,
    TooLarge,
    compare,
    strict,
    worst,
)
from otel_context_ledger.model import UNKNOWN, Called, Check, Findings
from otel_context_ledger.records import quick
from otel_context_ledger.spelling import name as spelt

MAX_SENT = 512
MAX_NAMED = 8
MAX_NAME = 64
MAX_KEPT = 16
MAX_ORDERS = 16
MAX_TIMES = 64
# Calls remembered as judged, of all sessions together: an answer's calls come back in the next request's history.
MAX_SEEN = 8192
CONSISTENT, DRIFT, CONTRACT_CHANGED, INVALID_CALL = "consistent", "drift", "contract_changed", "invalid_call"
ADVICE = "stable_tool_order"
_UNKNOWN = Check(UNKNOWN, Findings(evidence=("reason=no_registry",)))


@quick
@dataclass(frozen=True, slots=True)
class Sent:
    """The tools of a request: digests of their bytes in order (`wire`) and of their canonical forms as a set
    (`schema`), and what gives their names and definitions when something of these is new."""

    wire: bytes
    schema: bytes
    names: Callable[[], tuple[str, ...]]
    values: Callable[[], Sequence[object]]


@dataclass(frozen=True, slots=True)
class Drift:
    """How one tool as sent differs from the live one."""

    tool: str
    level: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A list of tools beside a view. `unlisted` counts tools that the registry says nothing of, `since` is when the
    first of the drifted tools changed, `conflicts` are the words in which the manifest and the registry differ."""

    sent: Mapping[str, Definition] = field(default_factory=dict)
    live: Mapping[str, Definition] = field(default_factory=dict)
    drifts: tuple[Drift, ...] = ()
    contracts: Mapping[str, Contract] = field(default_factory=dict)
    conflicts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    digest: bytes | None = None
    unlisted: int = 0
    since: float | None = None
    flaw: str | None = None

    @property
    def compared(self) -> int:
        """How many of the tools were held against something."""
        return len(self.live) + sum(drift.changes[0].kind == "tool_removed" for drift in self.drifts)


@quick
@dataclass(frozen=True, slots=True)
class Look:
    """What was seen of a request's tools when it was sent: the check, and what judging its calls will need."""

    check: Check
    session: str
    sent: Sent
    comparison: Comparison | None = None

    @property
    def contract(self) -> bytes | None:
        """The digest of the contracts of the tools that were sent."""
        return self.comparison.digest if self.comparison else None


@dataclass(slots=True)
class _Track:
    """What a session's calls sent so far."""

    wire: bytes = b""
    schema: bytes = b""
    names: tuple[str, ...] = ()
    order: bytes = b""
    orders: dict[bytes, int] = field(default_factory=dict)
    ordered: int = 0
    moved: list[float] = field(default_factory=list)
    by_use: bool = True
    contracts: dict[str, Contract] = field(default_factory=dict)
    judged: tuple[Comparison, str, Findings] | None = None
    revision: int = -1
    calls: int = 0
    steady: int = 0


class Tools:
    """The tools pillar of a process. `declared` are the contracts of context-ledger.toml; `names` says that property
    names may be told. Every method may be called from any thread."""

    def __init__(
        self, registry: Registry, declared: Mapping[str, Contract] | None = None, names: bool = False,
        sessions: int = 1000,
    ) -> None:  # fmt: skip
        self._registry, self._declared, self._names, self._most = registry, dict(declared or {}), names, sessions
        self._compared: OrderedDict[tuple[bytes, int], Comparison] = OrderedDict()
        self._tracks: OrderedDict[str, _Track] = OrderedDict()
        self._seen: OrderedDict[bytes, None] = OrderedDict()
        self._judge = Judge()
        self.renew_lock()

    def renew_lock(self) -> None:
        """Free locks for a forked child, whose parent may have held the old ones."""
        self._lock, self._judging = Lock(), Lock()
        self._registry.renew_lock()

    def look(self, sent: Sent, session: str, now: float) -> Look:
        """What there is to say of the tools of a request that is being sent."""
        view = self._registry.view
        known = bool(view.known or self._declared)
        comparison = self._comparison(sent, view) if known else None
        with self._lock:
            track = self._track(session)
            order, advice = _order(track, sent, now)
            if comparison is None:
                reason = _UNKNOWN.findings.evidence
                check = Check(UNKNOWN, Findings(evidence=(*reason, *order)), advice) if order else _UNKNOWN
                return Look(check, session, sent)
            if track.judged is None or track.judged[0] is not comparison:
                changed = _since_first(track, comparison.contracts)
                track.judged = (comparison, *_verdict(comparison, changed, self._names))
            _, verdict, findings = track.judged
            steady = _steady(track, view.revision, verdict)
        stale = (f"stale_seconds={max(0.0, now - comparison.since):.0f}",) if comparison.since is not None else ()
        found = Findings(findings.detail, (*findings.counts, *steady), (*findings.evidence, *stale, *order))
        return Look(Check(verdict, found, advice), session, sent, comparison)

    def judged(self, look: Look, earlier: Sent | None, made: Iterable[Called], returned: Iterable[Called]) -> Check:
        """The check with the calls judged: those that the history holds anew, `made` of the tools of the call before
        it, and those that the answer returned whole. A call is judged once."""
        calls = [[one for one in group if self._new(look.session, one)] for group in (made, returned)]
        if not any(calls):
            return look.check
        with self._judging:
            view = self._registry.view
            shown = look.comparison or self._comparison(look.sent, view)
            then = self._comparison(earlier, view) if earlier and earlier.wire != look.sent.wire else shown
            found = [
                self._judge.opinion(
                    called, sent.sent.get(called.name[:MAX_NAME]), shown.live.get(called.name[:MAX_NAME])
                )
                for group, sent in zip(calls, (then, shown), strict=True)
                for called in group
            ]
        return _with_calls(look.check, found)

    def _new(self, session: str, called: Called) -> bool:
        key = digest(canonical([session, called.call_id, called.name, called.arguments]))
        with self._lock:
            if key in self._seen:
                return False
            self._seen[key] = None
            while len(self._seen) > MAX_SEEN:
                self._seen.popitem(last=False)
        return True

    def _track(self, session: str) -> _Track:
        track = self._tracks.get(session)
        if track is None:
            track = self._tracks[session] = _Track()
            while len(self._tracks) > self._most:
                self._tracks.popitem(last=False)
        else:
            self._tracks.move_to_end(session)
        return track

    def _comparison(self, sent: Sent, view: View) -> Comparison:
        key = (sent.wire, view.revision)
        found = self._compared.get(key)
        if found is None:
            found = _compared(sent.values(), view, self._declared)
            with self._lock:
                self._compared[key] = found
                while len(self._compared) > MAX_KEPT:
                    self._compared.popitem(last=False)
        return found


def _by_name(values: Sequence[object]) -> dict[str, Definition]:
    return {tool.name[:MAX_NAME]: tool for tool in every(values[:MAX_SENT])}


def _compared(values: Sequence[object], view: View, declared: Mapping[str, Contract]) -> Comparison:
    if len(values) > MAX_SENT:
        return Comparison(flaw="too_many_tools")
    sent = _by_name(values)
    live = {name: tool for name in sent if (tool := _offered(name, view, declared)) is not None}
    agreed, conflicts = _contracts(sent, live, view, declared)
    stated = contracts.digest(agreed)
    try:
        drifts = [*_drifts(sent, live), *_late(sent, live, view)]
    except TooLarge:
        return Comparison(sent, contracts=agreed, digest=stated, flaw="schema_too_large")
    drifted = (live.get(drift.tool) or view.find(drift.tool) for drift in drifts)
    return Comparison(
        sent, {name: tool.definition for name, tool in live.items() if tool.definition}, tuple(drifts),
        agreed, conflicts, stated, len(sent) - len(live),
        min((tool.since for tool in drifted if tool is not None), default=None),
    )  # fmt: skip


def _offered(name: str, view: View, declared: Mapping[str, Contract]) -> Live | None:
    """The live tool behind a name; where two servers offer it, that of the server that a contract names."""
    found = view.find(name)
    if found is None:
        server = view.contracts.get(name, Contract()).over(declared.get(name, Contract())).server
        return view.find(name, server) if server else None
    return found


def _drifts(sent: Mapping[str, Definition], live: Mapping[str, Live]) -> Iterator[Drift]:
    budget = Budget()
    for name, tool in live.items():
        if tool.definition is None:
            yield Drift(name, BREAKING, (Change("tool_removed", BREAKING),))
        elif tool.definition.wire != sent[name].wire or tool.definition.description != sent[name].description:
            changes = _changes(sent[name], tool.definition, budget)
            if changes:
                yield Drift(name, worst([change.level for change in changes]) or COSMETIC, changes)


def _changes(sent: Definition, live: Definition, budget: Budget) -> tuple[Change, ...]:
    """What changed of a tool. Clients that send it in OpenAI's strict mode rewrite its schema: the rewritten live one
    that is closest to it counts."""
    words = (Change("description", COSMETIC),) if sent.description != live.description else ()
    if sent.wire == live.wire:
        return words
    ways = [live.schema]
    if sent.strict and not live.strict:
        ways = [_schema(strict(live.schema, nullable)) for nullable in (True, False)] + ways
    found = min((compare(sent.schema, way, budget) for way in ways), key=_gravity)
    return (*words, *found)


def _schema(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _gravity(changes: Sequence[Change]) -> tuple[int, int]:
    level = worst([change.level for change in changes])
    return (len(LEVELS) - LEVELS.index(level) if level else 0, len(changes))


def _late(sent: Mapping[str, Definition], live: Mapping[str, Live], view: View) -> Iterator[Drift]:
    """Tools that a server whose tools are sent offers since it was asked again, and that are not sent."""
    for server in {tool.server for tool in live.values()}:
        for name, tool in view.servers[server].tools.items():
            if tool.late and tool.definition is not None and sent.keys().isdisjoint(passed_on(name, server)):
                yield Drift(name[:MAX_NAME], ADDITIVE, (Change("tool_added", ADDITIVE),))


def _contracts(
    sent: Mapping[str, Definition], live: Mapping[str, Live], view: View, declared: Mapping[str, Contract]
) -> tuple[dict[str, Contract], tuple[tuple[str, tuple[str, ...]], ...]]:
    """The contracts in force by tool, and the words in which what is live differs from the manifest."""
    agreed, conflicts = {}, []
    for name in sent:
        own = declared.get(name, contracts.NONE)
        found = view.contract(name, live.get(name)).over(own)
        if found.stated:
            agreed[name] = found
        words = () if own is contracts.NONE else found.changed(own)
        if words:
            conflicts.append((name, words))
    return agreed, tuple(conflicts)


def _since_first(track: _Track, agreed: Mapping[str, Contract]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The words in which contracts differ from those under which the session first sent the tools: its history holds
    calls that were made under these."""
    changed = []
    for name, contract in agreed.items():
        first = track.contracts.setdefault(name, contract)
        if first is not contract and (words := contract.changed(first)):
            changed.append((name, words))
    return tuple(changed)


def _verdict(seen: Comparison, changed: Sequence[tuple[str, tuple[str, ...]]], names: bool) -> tuple[str, Findings]:
    contract = {word for _, words in (*seen.conflicts, *changed) for word in words}
    grave = tuple(word for word in contracts.GRAVE if word in contract)
    level = worst([drift.level for drift in seen.drifts])
    evidence = [
        *_told("contract", seen.conflicts, "manifest"), *_told("contract", changed, "session"),
        *(f"drift={_titled(drift.tool)}:{drift.level}({_spelled(drift, names)})" for drift in seen.drifts[:MAX_NAMED]),
    ]  # fmt: skip
    findings = Findings((*grave, *([level] if level else [])), _counts(seen), tuple(evidence))
    if grave:
        return CONTRACT_CHANGED, findings
    if level:
        return DRIFT, findings
    if seen.flaw or not (seen.compared or seen.contracts):
        reason = seen.flaw or "nothing_listed"
        return UNKNOWN, replace(findings, evidence=(f"reason={reason}", *findings.evidence))
    return CONSISTENT, findings


def _told(word: str, rows: Sequence[tuple[str, tuple[str, ...]]], against: str) -> Iterator[str]:
    yield from (f"{word}={_titled(tool)}:{','.join(words)}({against})" for tool, words in rows[:MAX_NAMED])


def _titled(tool: str) -> str:
    return spelt(tool, MAX_NAME)


def _spelled(drift: Drift, names: bool) -> str:
    """The kinds of a drift's changes, each with how often; with `names` those of the properties too."""
    kinds = {change.kind: 0 for change in drift.changes}
    for change in drift.changes:
        kinds[change.kind] += 1
    words = [kind if number == 1 else f"{kind}*{number}" for kind, number in kinds.items()]
    if names:
        words += [_signed(change) for change in drift.changes[:MAX_NAMED] if change.path]
    return " ".join(words)


_SIGNS = {"property_removed": "-", "property_renamed": "-", "property_added": "+", "required_property_added": "+"}


def _signed(change: Change) -> str:
    path = spelt(".".join(change.path), MAX_NAME)
    renamed = f" +{spelt(change.renamed, MAX_NAME)}" if change.renamed else ""
    return f"{_SIGNS.get(change.kind, '~')}{path}{renamed}"


def _counts(seen: Comparison) -> tuple[str, ...]:
    levels = [drift.level for drift in seen.drifts]
    numbers = {
        "compared": seen.compared, "not_listed": seen.unlisted, "contracts": len(seen.contracts),
        **{level: levels.count(level) for level in LEVELS},
    }  # fmt: skip
    return tuple(f"{name}={number}" for name, number in numbers.items() if number or name == "compared")


def _steady(track: _Track, revision: int, verdict: str) -> tuple[str, ...]:
    """How many of the session's calls were consistent since the registry last changed."""
    if track.revision != revision:
        track.revision, track.calls, track.steady = revision, 0, 0
    if verdict == UNKNOWN:
        return ()
    track.calls += 1
    track.steady += verdict == CONSISTENT
    return (f"calls_consistent={track.steady}/{track.calls}",)


def _order(track: _Track, sent: Sent, now: float) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What there is to say of the order of the session's tools, which one set of tools should have only one of; and
    the advice, which is given once: the tenth change of order is no news."""
    first = False
    if sent.schema != track.schema:
        track.schema, track.orders, track.ordered, track.moved, track.by_use = sent.schema, {}, 0, [], True
        track.names = sent.names()
        track.order = _key(track.names)
    elif sent.wire != track.wire:
        first = _moved(track, sent.names(), now)
    track.wire = sent.wire
    track.ordered += 1
    track.orders[track.order] = track.orders.get(track.order, 0) + 1
    if len(track.orders) == 1:
        return (), ()
    other = track.ordered - max(track.orders.values())
    gaps = sorted(later - earlier for earlier, later in pairwise(track.moved))
    told = (
        f"other_order={other}/{track.ordered}", f"orders={len(track.orders)}",
        *([f"order_interval_seconds={gaps[len(gaps) // 2]:.0f}"] if gaps else []),
        *(["order_by_use"] if track.by_use and len(track.orders) > 2 else []),
    )  # fmt: skip
    advice = f"{ADVICE}: the same tools came in another order; send them in one order, sorted by name"
    return told, (advice,) if first else ()


def _key(names: tuple[str, ...]) -> bytes:
    return digest(canonical(names))


def _moved(track: _Track, names: tuple[str, ...], now: float) -> bool:
    """Notes another order; whether it is the first time. Going back to the usual one is no new disorder."""
    if names == track.names:
        return False
    usual = max(track.orders, key=lambda order: track.orders[order])
    track.by_use = track.by_use and names[1:] == tuple(name for name in track.names if name != names[0])
    track.names, track.order = names, _key(names)
    if track.order == usual:
        return False
    track.moved.append(now)
    del track.moved[:-MAX_TIMES]
    while len(track.orders) >= MAX_ORDERS:
        del track.orders[min(track.orders, key=lambda order: track.orders[order])]
    return len(track.moved) == 1


def _with_calls(check: Check, opinions: Sequence[Opinion]) -> Check:
    """The check with what is said of calls: a call that is wrong by what is live leads over everything else."""
    wrong = [opinion for opinion in opinions if opinion.blame]
    explained = [opinion for opinion in opinions if opinion.tags]
    judged = sum(opinion.judged for opinion in opinions)
    blames = tuple(dict.fromkeys(str(opinion.blame) for opinion in wrong))
    tags = tuple(dict.fromkeys(tag for opinion in explained for tag in opinion.tags))
    numbers = {"calls_judged": judged, "calls_invalid": len(wrong), "calls_explained_by_drift": len(explained)}
    told = [f"call={_titled(opinion.tool)}:{','.join((*blamed(opinion), *opinion.tags))}"
            for opinion in (*wrong, *explained)[:MAX_NAMED]]  # fmt: skip
    found = check.findings
    findings = Findings(
        (*blames, *found.detail, *tags),
        (*found.counts, *(f"{name}={number}" for name, number in numbers.items() if number or name == "calls_judged")),
        (*told, *found.evidence),
    )
    return replace(check, verdict=INVALID_CALL if wrong else check.verdict, findings=findings)


def blamed(opinion: Opinion) -> tuple[str, ...]:
    """Who is to blame for a call that is wrong."""
    return (opinion.blame,) if opinion.blame else ()
