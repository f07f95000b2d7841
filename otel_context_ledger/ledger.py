"""The pipeline: a request becomes a `Draft`, the draft and its response become an `Entry`.

The two wings meet here, all of the correctness wing behind `checking`. Pure but for its state, which one lock guards;
clocks and ids are arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import starmap
from threading import Lock

from otel_context_ledger import model as m
from otel_context_ledger import spelling
from otel_context_ledger.canonical import digest, scheme
from otel_context_ledger.canonical import written as exported
from otel_context_ledger.checking import UNSEEN, Calls, Checked, Checking, Opening, Over, Pillars, Sight, sent_tools
from otel_context_ledger.correctness.advice import Facts
from otel_context_ledger.cost import Card, Prices, price
from otel_context_ledger.names import named
from otel_context_ledger.records import changed, quick
from otel_context_ledger.reuse import attribution, locator
from otel_context_ledger.reuse.attribution import Case, Judgement, Rules
from otel_context_ledger.reuse.identity import Identity, Policies, identify
from otel_context_ledger.reuse.lineage import MAX_ANCHORS, Anchor, Arrival, Head, Lineage, Link
from otel_context_ledger.reuse.observed import Observations
from otel_context_ledger.reuse.segments import Outline, texts
from otel_context_ledger.reuse.segments import named as titled
from otel_context_ledger.reuse.traces import Found, Traces
from otel_context_ledger.surfaces import MESSAGES, Surface, called
from otel_context_ledger.surfaces.facts import Lore
from otel_context_ledger.thresholds import DEFAULTS, EXPECTED, Thresholds
from otel_context_ledger.witness import Witness

MAX_ROUTES = 8
MAX_EXPORTED = 2048
# Of the messages that a request adds, the last ones whose calls of tools are judged.
MAX_JUDGED = 64
_HASHES = (
    ("policy_hash", "policy"), ("policy_wire_hash", "policy_wire"), ("tool_schema_hash", "tools"),
    ("tool_wire_hash", "tools_wire"),
)  # fmt: skip
COMPACTED = "history_compacted"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much the ledger remembers, sessions and bytes, and from where on it advises."""

    sessions: int = 1000
    bytes: int = 64 * 2**20
    advice: Thresholds = DEFAULTS


@quick
@dataclass(frozen=True, slots=True)
class Draft:
    """A ledger line before the answer. `head` is what the lineage remembers of it while the call is in flight; `asked`
    says who asked the provider for its own verdict (the program, or the ledger for its user), `against` which response
    it was to compare the request with."""

    surface: Surface
    endpoint: str
    request: m.Request
    outline: Outline
    identity: Identity
    link: Link
    found: Found | None
    kind: str
    around: m.Surroundings
    rules: Rules
    reusable: int | None
    head: Head | None
    asked: str | None = None
    against: str | None = None
    checked: Checked = UNSEEN

    @property
    def previous_response(self) -> str | None:
        """The id of the comparable call's response, if the provider that this call goes to gave it in this dialect."""
        head = self.link.head
        here = self.identity.parts["provider_surface"], self.endpoint, self.surface.api
        there = (head.identity.parts["provider_surface"], head.endpoint, head.api) if head else None
        return head.response_id if head and there == here else None


class Ledger:
    """Opens and closes entries; `version` is written into each."""

    def __init__(
        self,
        lore: Lore,
        version: str = "",
        limits: Limits | None = None,
        prices: Mapping[str, Mapping[str, float]] | None = None,
        digest_key: bytes | None = None,
        pillars: Pillars | None = None,
    ) -> None:
        bounds = limits or Limits()
        self.checking = Checking(pillars, bounds.advice, bounds.sessions)
        self._lore, self._version, self._prices = lore, version, Prices(prices)
        self._lineage = Lineage(bounds.sessions, bounds.bytes, lore.forms.summary_openings)
        self._policies, self._observed, self._traces = Policies(), Observations(), Traces()
        # Most of what a call exports its comparable call has exported before.
        self._write: Callable[[bytes], str] = partial(exported, key=digest_key)
        self._export: Callable[[bytes], str] = lru_cache(MAX_EXPORTED)(self._write)
        self._spell = lru_cache(MAX_EXPORTED)(self._spelled)
        self._scheme = scheme(digest_key)
        self._lock = Lock()

    @property
    def sessions(self) -> int:
        """How many sessions are remembered."""
        return self._lineage.sessions

    def renew_lock(self) -> None:
        """A free lock for a forked child, whose parent may have held the old one."""
        self._lock = Lock()
        self.checking.renew_lock()

    def restore(self, lines: Iterable[Mapping[str, object]]) -> None:
        """Lets the calls of earlier processes be continued, from their ledger lines, oldest first. Lines whose digests
        were made in another way tell nothing."""
        known = list(lines)
        self._traces = Traces(known, self._scheme)
        self.checking.courses.restore(known, self._scheme)

    def open(self, surface: Surface, endpoint: str, request: m.Request, around: m.Surroundings) -> Draft:
        """The draft of a call that is about to be made."""
        names = _names(request, around, self._export)
        rules = self._rules(surface, request, endpoint)
        with self._lock:
            outline = self._lineage.outline(request, surface.unrendered, [name for name, _ in names])
            identity = identify(
                request, outline, surface.name, around.repo_snapshot, self._policies, self._lineage.memo
            )
            alive = None if rules.lifetime is None else around.now - rules.lifetime
            link = self._lineage.link(
                names, outline, identity, request, Arrival(f"s-{around.entry_id}", endpoint, alive)
            )
            found = None if link.head else self._resumed(names, outline)
            if found and link.source == "lineage":
                link = changed(link, session=found.trace.session)
            kind = "compaction" if surface.compacts else self._kind(request, identity, link)
            if kind == "agent":
                last = link.head.identity.parts["summary"] if link.head else None
                identity = identity.carrying(self.checking.summary(link.session, last, self._summary))
            lean = changed(request, tools=(), system=(), messages=())
            head = Head(
                around.entry_id, link.session, endpoint, surface.api, outline, identity, lean, around.now,
                first=link.head is None and found is None, anchors=_inherited(link, outline),
            )  # fmt: skip
            if kind == "agent":
                self._lineage.put(head, None)
        witness = Witness(around, link, outline, request, self._lore.forms.summary_openings, surface.facts.window)
        checked = self.checking.begin(Opening(witness, surface, identity, kind))
        if kind == "agent":
            head = self._on_summary(head, checked.seen)
            identity = head.identity
        reusable = attribution.estimate(link, outline, rules.block) if _same_cache(link, identity) else 0
        if found is not None:
            reusable = found.trace.tokens if found.whole else None
        return Draft(
            surface, endpoint, lean, outline, identity, link, found, kind, around, rules, reusable,
            head if kind == "agent" else None, "program" if request.diagnostics_asked else None,
            request.diagnostics_against, checked,
        )  # fmt: skip

    def _on_summary(self, head: Head, seen: Sight | None) -> Head:
        """The head in flight with the summary that its call builds on, if that came to be known only now."""
        if seen is None:
            return head
        identity = head.identity.carrying(self._summary(seen.carried[0]))
        if identity is head.identity:
            return head
        settled = changed(head, identity=identity)
        with self._lock:
            self._lineage.settle(head, settled, None)
        return settled

    def _summary(self, exported: str | None) -> bytes | None:
        return None if exported is None else digest(exported.encode())

    def close(
        self,
        draft: Draft,
        response: m.Response,
        ending: m.Ending,
        timing: m.Timing,
        now: float,
        flaw: str | None = None,
    ) -> m.Entry:
        """The entry of a call that ended at `now`, however it ended."""
        return self.end(draft, response, ending, timing, now, flaw)()

    def end(
        self,
        draft: Draft,
        response: m.Response,
        ending: m.Ending,
        timing: m.Timing,
        now: float,
        flaw: str | None = None,
    ) -> Callable[[], m.Entry]:
        """As `close`, in two steps: this one lets the calls to come know the call, what it gives makes the entry."""
        link = self._current(draft.link)
        draft = draft if link is draft.link else changed(draft, link=link)
        self.checking.answered(draft.checked, draft.around.entry_id, response, now)
        judgement, case = self._judge(draft, response, ending, now)
        with self._lock:
            evidence = self._settle(draft, response, ending, case, judgement, now)
        over = self._over(draft, response, ending, judgement, now)
        checked, odd = self.checking.ended(draft.checked, draft.kind, over)
        draft = draft if checked is draft.checked else changed(draft, checked=checked)
        draft = self._noted(draft, response, ending, judgement)

        def entry() -> m.Entry:
            card = self._card(draft, response, now)
            verdict = _Verdict(case, judgement, evidence, card, odd)
            checked = self.checking.renewed(draft.checked, draft.around.entry_id, draft.link.session)
            return self._entry(changed(draft, checked=checked), response, ending, timing, verdict, flaw)

        return entry

    def _over(self, draft: Draft, response: m.Response, ending: m.Ending, judgement: Judgement, now: float) -> Over:
        def dollars() -> float | None:
            cost = price(response.usage, self._card(draft, response, now), None, draft.surface.facts.unit)
            return cost.amount if cost.unit == "usd" else None

        return Over(response, ending, now, self._export(draft.identity.context), judgement.causes, dollars)

    def _card(self, draft: Draft, response: m.Response, now: float) -> Card | None:
        return self._prices.card(draft.surface.facts.price, response.model or draft.request.model, now)

    def _noted(self, draft: Draft, response: m.Response, ending: m.Ending, judgement: Judgement) -> Draft:
        """Lets the session's calls to come know how it went."""
        if draft.kind != "agent" or ending.how == "failed":
            return draft
        compacted = _is_compacted(draft) or any(cause.name == COMPACTED for cause in judgement.causes)
        facts = Facts(input=response.usage.input, head=draft.around.repo_head, compacted=compacted)
        checked = self.checking.keep(draft.checked, draft.link.session, facts)
        return draft if checked is draft.checked else changed(draft, checked=checked)

    def settled(self, entry: m.Entry, draft: Draft, returned: Sequence[m.Called]) -> m.Entry:
        """The entry with the checks that nobody waits for. To be asked once."""
        head, now = draft.link.head, draft.identity.parts["repository"]
        moved = self.checking.moved(head.identity.parts["repository"], now) if head else None
        entry = self._checked(entry, draft, returned)
        if moved is None:
            return entry
        return changed(entry, checks=changed(entry.checks, repo_changes=moved.counts, repo_paths=moved.paths))

    def _checked(self, entry: m.Entry, draft: Draft, returned: Sequence[m.Called]) -> m.Entry:
        head = draft.link.head
        new = draft.outline.messages[draft.link.shared :][-MAX_JUDGED:]
        made = (one for message in new for one in called.calls(message))
        calls = Calls(sent_tools(head.outline, head.identity) if head else None, made, returned)
        done = self.checking.settled(draft.checked, draft.around.entry_id, draft.link.session, calls)
        if done is draft.checked:
            return entry
        groups = _Groups(entry.model, entry.context, entry.cache, entry.odd)
        done, checks = self._checks(changed(draft, checked=done), groups)
        own = changed(entry.self, ledger_error=entry.self.ledger_error or done.flaw)
        request = changed(entry.request, repeated_read_bytes=_repeated(done))
        return changed(entry, self=own, request=request, checks=checks)

    def _checks(self, draft: Draft, groups: _Groups) -> tuple[Checked, m.ChecksGroup]:
        """The verdicts of all pillars that looked, and what to do next with an agent's context; a side call has none of
        its own."""
        looked = draft.checked.verdicts()
        if draft.kind != "agent":
            return draft.checked, _written(looked, ())
        checked, advised = self.checking.advise(draft.checked, _facts(draft, looked, groups))
        return checked, _written(looked, advised)

    def _resumed(self, names: Sequence[tuple[str, str]], outline: Outline) -> Found | None:
        if not len(self._traces):
            return None
        return self._traces.find([name for name, _ in names], outline, self._export)

    def _current(self, link: Link) -> Link:
        """The link with its heads as they are now: they may have been in flight when the call was opened."""
        head, sibling = self._now(link.head), self._now(link.sibling)
        same = head is link.head and sibling is link.sibling
        return link if same else changed(link, head=head, sibling=sibling)

    def _now(self, head: Head | None) -> Head | None:
        if head is None or head.closed is not None:
            return head
        with self._lock:
            return next((now for now in self._lineage.heads() if now.entry_id == head.entry_id), head)

    def _kind(self, request: m.Request, identity: Identity, link: Link) -> str:
        """agent, compaction (a summarising call of a known form) or auxiliary (in a named session that has tools, a
        call without any and with another system part or history)."""
        forms = self._lore.forms
        if forms.ask(map(texts, request.system), self.checking.asked_last(request.messages)):
            return "compaction"
        other = link.head or link.beside
        if link.source == "lineage" or other is None or request.tools or not other.outline.of("tool"):
            return "agent"
        told = other.identity.parts["policy"] != identity.parts["policy"]
        return "auxiliary" if told or link.relation in ("first", "departs") else "agent"

    def _rules(self, surface: Surface, request: m.Request, endpoint: str) -> Rules:
        facts = surface.facts
        seen = self._observed.of((surface.name, request.model, endpoint))
        return Rules(
            block=seen.block(facts.block),
            minimum=facts.minimum,
            minimum_previous=facts.minimum_previous,
            minimum_note=facts.origins.get("minimum"),
            smallest_hit=seen.smallest_hit,
            lifetime=facts.lifetime(request.retention, request.model),
            retentions=facts.retentions,
            write_lag=facts.write_lag,
            markers=facts.markers,
            windows=facts.windows,
            summaries=self._lore.forms.summary_openings,
        )

    def _judge(self, draft: Draft, response: m.Response, ending: m.Ending, now: float) -> tuple[Judgement, Case]:
        head = draft.link.head
        expected = _expected(draft, response)
        case = Case(
            draft.link, draft.outline, draft.request, response, draft.rules, draft.around.now, expected, draft.reusable,
            response.verdict or _silence(draft, response), ending.how,
        )  # fmt: skip
        if ending.how == "failed" or draft.kind != "agent":
            return Judgement(), case
        if head is None and draft.found is not None:
            return _judge_resumed(draft, case, self._fields(draft)), case
        return attribution.judge(case), case

    def _settle(
        self, draft: Draft, response: m.Response, ending: m.Ending, case: Case, judgement: Judgement, now: float
    ) -> tuple[str, ...]:
        """Brings the lineage up to date; returns what the session's past adds to the evidence."""
        head, earlier, usage = draft.head, draft.link.head, response.usage
        if head is None:
            return ()
        if ending.how == "failed":
            self._lineage.drop(head)
            return ()
        scope = (draft.surface.name, draft.request.model, draft.endpoint)
        self._observed.note(scope, usage.cache_read, earlier.tokens if earlier else None)
        extends = draft.link.relation in ("extends", "repeats", "continues")
        replaces = earlier if earlier and extends and earlier.identity.cache == draft.identity.cache else None
        settled = _settled(head, response, draft, case, extends, now)
        self._lineage.settle(head, settled, replaces if replaces and replaces.session == head.session else None)
        if judgement.causes and judgement.causes[0].name == "tools_reordered":
            times, gap = self._lineage.reordered(head.session, draft.around.now)
            return (f"recurrence={times}", *([f"interval_seconds={gap:.0f}"] if gap is not None else []))
        return ()

    def _fields(self, draft: Draft) -> dict[str, object]:
        """The exported parts of a request that an earlier line has too, by the names that they have there."""
        named_so = {
            "model_id": spelling.model(draft.request.model),
            "reasoning_effort": spelling.word(_effort(draft.request)),
        }
        return {**named_so, **self._hashes(draft)}

    def _hashes(self, draft: Draft) -> dict[str, str | None]:
        parts = draft.identity.parts
        return {field: self._digest(parts[part]) for field, part in _HASHES}

    def _repository(self, snapshot: str | None) -> str | None:
        """The snapshot as it is exported: its digest is keyed like every other."""
        kind, _, digits = (snapshot or "").partition(":")
        if kind != "git" or len(digits) != 32:
            return snapshot
        return f"git:{self._export(bytes.fromhex(digits)).split(':')[1]}"

    def _digest(self, value: object) -> str | None:
        return self._export(value) if isinstance(value, bytes) else None

    def _entry(
        self,
        draft: Draft,
        response: m.Response,
        ending: m.Ending,
        timing: m.Timing,
        verdict: _Verdict,
        flaw: str | None,
    ) -> m.Entry:
        around = draft.around
        names = m.TaskGroup(
            spelling.optional(around.task),
            spelling.optional(around.attempt),
            draft.link.session,
            draft.link.source,
            _parent(draft),
            draft.kind,
            spelling.optional(around.agent),
            _origin(draft),
        )
        money = price(response.usage, verdict.card, verdict.avoidable(draft), draft.surface.facts.unit)
        groups = _Groups(
            _model(draft, response, verdict.card), self._context(draft), _cache(draft, response, ending, verdict),
            verdict.odd,
        )  # fmt: skip
        checked, checks = self._checks(draft, groups)
        return m.Entry(
            self=self._own(draft, response, ending, flaw or checked.flaw),
            task=names,
            model=groups.model,
            context=groups.context,
            cache=groups.cache,
            request=_request(draft, response, ending, timing),
            money=_money(money),
            checks=checks,
            sampling=draft.request.sampling,
            usage=response.usage,
            cost_components=money.components,
            repo_head=around.repo_head,
            service_tier=spelling.word(response.service_tier),
            system_fingerprint=spelling.optional(response.system_fingerprint),
            compacted=_is_compacted(draft),
            odd=verdict.odd,
        )

    def _own(self, draft: Draft, response: m.Response, ending: m.Ending, flaw: str | None) -> m.SelfGroup:
        found = flaw or draft.outline.flaw
        return m.SelfGroup(
            draft.around.entry_id,
            draft.around.now,
            self._version,
            f"unencodable:{spelling.word(found)}" if found and not flaw else found,
            truncated=ending.truncated or len(response.finish_reasons) > spelling.MAX_WORDS,
            counted_by=ending.counted_by,
            digest_scheme=self._scheme,
        )

    def _context(self, draft: Draft) -> m.ContextGroup:
        head, around, outline = draft.link.head, draft.around, draft.outline
        hashes = self._hashes(draft)
        trace = draft.found.trace.entry_id if draft.found else None
        seen = draft.checked.seen
        summary, event, trusted = seen.carried if seen and draft.kind == "agent" else (None, None, None)
        return m.ContextGroup(
            **hashes,
            tool_contract_hash=self._digest(draft.checked.contract),
            repo_snapshot=self._repository(around.repo_snapshot),
            repo_age=around.repo_age,
            history_range=f"{outline.offset}-{outline.offset + len(outline.messages)}",
            history_length=len(outline.messages),
            context_identity=self._export(draft.identity.context),
            cache_identity=self._export(draft.identity.cache),
            identity_changed=draft.identity.changed(head.identity) if head else None,
            comparable_id=head.entry_id if head else trace,
            prefix_locator=tuple(starmap(self._spell, locator.locate(outline))),
            summary_hash=summary,
            summary_trusted=trusted,
            compaction_event=event,
        )

    def _spelled(self, boundary: int, size: int, link: bytes) -> str:
        return locator.spell(boundary, size, self._export(link))

    def trail(self, draft: Draft) -> m.Trail:
        """The segments that a call added to its comparable call; digested off the hot path."""
        head, outline = draft.link.head, draft.outline
        same_header = head is not None and head.outline.root == outline.root
        shared = draft.link.shared if same_header else 0
        keep = len(outline.header) + shared if same_header else 0
        header = () if same_header else outline.header
        rows = [(s.kind, s.name, s.size, self._write(s.digest)) for s in header]
        ends = range(shared, len(outline.messages))
        rows += [
            ("message", titled(outline.messages[at]), outline.sizes[at], self._write(outline.digests[at]))
            for at in ends[: m.MAX_TRAIL]
        ]
        return m.Trail(head.entry_id if head and same_header else None, keep, tuple(rows))


@quick
@dataclass(frozen=True, slots=True)
class _Verdict:
    case: Case
    judgement: Judgement
    evidence: tuple[str, ...]
    card: Card | None
    odd: tuple[str, ...] = ()

    @property
    def cause(self) -> m.Cause | None:
        return self.judgement.causes[0] if self.judgement.causes else None

    def avoidable(self, draft: Draft) -> int | None:
        """Tokens that the comparable call had in the cache and this one did not read from it."""
        known = self.case.response.usage.cache_read is not None and self.case.expected is not None
        return self.case.shortfall if known and draft.kind == "agent" else None


def _of_key(key: str, export: Callable[[bytes], str]) -> str:
    return f"key-{export(digest(key.encode('utf-8', 'surrogatepass'))).split(':')[1][:16]}"


def _names(request: m.Request, around: m.Surroundings, export: Callable[[bytes], str]) -> list[tuple[str, str]]:
    """The sessions that the program or the request names, the most explicit first. A cache key may hold anything, so
    its digest stands for it."""
    key = _of_key(request.cache_key, export) if request.cache_key else None
    given = (
        (around.session, "explicit"), (named(around.conversation), "conversation_id"),
        (named(request.conversation), "conversation_id"), (key, "cache_key"),
    )  # fmt: skip
    return [(spelling.session(name, export), source) for name, source in given if name]


def _origin(draft: Draft) -> str | None:
    """The session whose history this one began with: of its first call the one that it was compared with, then what
    is remembered of that."""
    link, head, found = draft.link, draft.link.head, draft.found
    if link.parent is not None:
        return link.parent
    if head is not None and head.session == link.session:
        return head.fork_of
    said = found.trace.fields.get("fork_of") if found and found.trace.session == link.session else None
    return said if isinstance(said, str) else None


def _parent(draft: Draft) -> str | None:
    """The session that opened this one, by the program's word; else the one that it was forked from."""
    said, found = draft.around.parent, draft.found
    if said is None and found is not None and found.trace.session == draft.link.session:
        then = found.trace.fields.get("parent_session_id")
        said = then if isinstance(then, str) else None
    parent = said or _origin(draft)
    return parent if parent != draft.link.session else None


_UNCHECKED = m.ChecksGroup()


def _written(looked: Mapping[str, m.Check], advised: tuple[str, ...]) -> m.ChecksGroup:
    """The verdicts of all pillars that looked, each with its findings; what they advise themselves, and what follows
    from all of them."""
    if not looked and not advised:
        return _UNCHECKED
    verdicts = {m.PILLARS[pillar]: check.verdict for pillar, check in looked.items()}
    findings = {pillar: check.findings for pillar, check in looked.items()}
    advice = (*(word for check in looked.values() for word in check.advice), *advised)
    return m.ChecksGroup(**verdicts, **findings, advice=advice)  # type: ignore[arg-type]


@quick
@dataclass(frozen=True, slots=True)
class _Groups:
    model: m.ModelGroup
    context: m.ContextGroup
    cache: m.CacheGroup
    odd: tuple[str, ...] = ()


def _facts(draft: Draft, looked: Mapping[str, m.Check], groups: _Groups) -> Facts:
    """What advice goes by. What differs from another session's call is no change of this one's."""
    model, context, cache = groups.model, groups.context, groups.cache
    head, seen = draft.link.head, draft.checked.seen
    own = head is not None and head.session == draft.link.session
    parts = (context.identity_changed or ()) if own else ()
    if cache.miss_cause == "policy_changed" and "expected" in cache.miss_detail:
        parts = tuple(part for part in parts if part != "policy")
    return Facts(
        looked, cache.input_tokens, cache.cached_tokens, model.context_window, model.model_id, model.reasoning_effort,
        draft.surface.facts.windows, parts, draft.around.repo_head,
        compacted=_is_compacted(draft) or _compacted(cache), trusted=context.summary_trusted,
        event=context.compaction_event, todos=seen.todos if seen is not None else None, odd=groups.odd,
        hashes={name: getattr(context, name) for name in EXPECTED}, wasted=bool(cache.miss_significant),
    )  # fmt: skip


def _is_compacted(draft: Draft) -> bool:
    return draft.checked.seen is not None and draft.checked.seen.compacted


def _compacted(cache: m.CacheGroup) -> bool:
    return cache.miss_cause == COMPACTED or any(word.startswith(COMPACTED) for word in cache.miss_secondary)


def _same_cache(link: Link, identity: Identity) -> bool:
    head = link.head or link.sibling
    return head is None or head.identity.parts["model"] == identity.parts["model"]


def _inherited(link: Link, outline: Outline) -> tuple[Anchor, ...]:
    """The comparable call's known counts that hold for this request's prefix too."""
    head = link.head or link.sibling
    if head is None or head.outline.root != outline.root:
        return ()
    edge = outline.size(link.shared)
    return tuple(anchor for anchor in head.anchors if anchor.size <= edge)


def _anchored(head: Head, tokens: int | None) -> tuple[Anchor, ...]:
    if tokens is None:
        return head.anchors
    size = head.outline.size()
    kept = [anchor for anchor in head.anchors if anchor.size < size and anchor.tokens <= tokens]
    return (*kept[1 - MAX_ANCHORS :], Anchor(size, tokens))


def _settled(head: Head, response: m.Response, draft: Draft, case: Case, extends: bool, now: float) -> Head:
    """What is remembered of a call once its answer is known."""
    earlier, usage = draft.link.head, response.usage
    stuck = earlier is not None and case.shortfall > 0 and earlier.cached == usage.cache_read
    woken = earlier is not None and attribution.woken(earlier)
    known = dict(earlier.routes) if earlier and extends else {}
    seen = {response.route: usage.input} if response.route and usage.input is not None else {}
    stored = None if usage.cache_read is None else usage.cache_read + (usage.cache_write or 0)
    return changed(
        head, closed=now, tokens=usage.input, cached=usage.cache_read, served=response.model, route=response.route,
        response_id=response.response_id, written=attribution.written(response, draft.request), stored=stored,
        anchors=_anchored(head, usage.input), plateau=(earlier.plateau + 1 if earlier and stuck else 0),
        routes=tuple((known | seen).items())[-MAX_ROUTES:], wakes=(earlier.wakes if earlier else 0) + woken,
        forked=draft.link.parent is not None or (earlier is not None and earlier.forked), fork_of=_origin(draft),
        turn_ended=response.turn_ended,
    )  # fmt: skip


def _expected(draft: Draft, response: m.Response) -> int | None:
    """What could have been reused had nothing changed: the comparable prompt, no more than this one, in whole blocks.
    Where the end of the history was taken back, what was taken back was not asked for again; of calls that were sent
    together, all but one could have waited for the first."""
    link, usage = draft.link, response.usage
    head, trace = link.head, draft.found.trace if draft.found else None
    if link.concurrent and head is None:
        return attribution.estimate(link, draft.outline, draft.rules.block)
    known = attribution.held(head, response.route) if head else (trace.tokens if trace else None)
    if known is None:
        return draft.reusable if head else None
    whole = min(known, usage.input) if usage.input is not None else known
    if head is not None and link.relation == "rewinds":
        whole = min(whole, attribution.intact(link, head, draft.outline) or whole)
    return whole - whole % draft.rules.block


def _judge_resumed(draft: Draft, case: Case, fields: Mapping[str, object]) -> Judgement:
    found, usage = draft.found, case.response.usage
    if usage.cache_read is None:
        return Judgement((attribution.unreported(case),))
    if found is None or case.expected is None or case.shortfall < case.rules.block:
        return Judgement()
    causes = found.causes(fields)
    idle, lifetime = draft.around.now - found.trace.closed, case.rules.lifetime
    if lifetime is not None and idle > lifetime:
        evidence = (f"idle_seconds={idle:.0f}", f"retention_seconds={lifetime:.0f}")
        causes = (*causes, m.Cause("retention_expired", ("resume",), evidence=evidence, confidence="inferred"))
    unexplained = m.Cause("provider_unexplained", ("resume",), evidence=("prefix_intact",), confidence="inferred")
    return attribution.combined(causes or (unexplained,), case.verdict)


def _effort(request: m.Request) -> str | None:
    return request.effort_in_band or request.effort


def _model(draft: Draft, response: m.Response, card: Card | None) -> m.ModelGroup:
    request, facts = draft.request, draft.surface.facts
    return m.ModelGroup(
        provider_surface=draft.surface.name,
        provider=draft.surface.provider,
        endpoint=draft.endpoint,
        api=draft.surface.api,
        model_id=spelling.model(request.model),
        model_served=spelling.model(response.model),
        reasoning_effort=spelling.word(_effort(request)),
        reasoning_effort_requested=spelling.word(request.effort),
        client_version=request.client_version,
        context_window=facts.window(request.model) or (card.window if card else None),
        route=spelling.optional(response.route),
    )


def _outcome(draft: Draft, usage: m.Usage, case: Case, cause: m.Cause | None) -> str:
    if usage.cache_read is None:
        return m.UNKNOWN
    if usage.missed == 0:
        return "hit"
    if draft.link.head is None and draft.found is None:
        return "cold"
    if not usage.cache_read:
        return "miss"
    return "partial" if cause is not None else "hit"


def _report(draft: Draft, usage: m.Usage) -> str:
    if usage.cache_read is not None:
        return "reported"
    return "not_reported" if draft.surface.facts.caches else "unsupported"


def _cache(draft: Draft, response: m.Response, ending: m.Ending, verdict: _Verdict) -> m.CacheGroup:
    usage, case, causes, cause = response.usage, verdict.case, verdict.judgement.causes, verdict.cause
    return m.CacheGroup(
        cache_report=_report(draft, usage),
        input_tokens=usage.input,
        cached_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
        cache_write_5m_tokens=usage.write_5m,
        cache_write_1h_tokens=usage.write_1h,
        cache_write_30m_tokens=usage.write_30m,
        cache_write_12h_tokens=usage.write_12h,
        cache_miss_tokens=usage.missed,
        reusable_tokens=draft.reusable,
        avoidable_tokens=verdict.avoidable(draft),
        cache_outcome=_outcome(draft, usage, case, cause),
        miss_cause=cause.name if cause else None,
        miss_detail=cause.detail if cause else (),
        miss_secondary=tuple(_word(c) for c in causes[1:]),
        miss_evidence=(*cause.evidence, *verdict.evidence) if cause else (),
        miss_confidence=cause.confidence if cause else None,
        miss_significant=attribution.significant(case) if cause else None,
        miss_position=cause.position if cause else None,
        idle_seconds=case.idle,
        retention_seconds=case.lifetime,
        provider_verdict=spelling.word(case.verdict),
        verdict_requested_by=draft.asked,
        verdict_missed_tokens=response.verdict_tokens,
        verdict_reusable_tokens=response.verdict_reusable,
        verdict_conflict=verdict.judgement.conflict,
    )


def _repeated(checked: Checked) -> int | None:
    return checked.examination.repeated if checked.examination else None


def _silence(draft: Draft, response: m.Response) -> str:
    """What it means that the answer holds no verdict: nobody asked, or asked without an earlier response; the answer
    did not get so far; or, in Anthropic's dialect alone, that the requests do not part (a null object says so)."""
    if draft.asked is None:
        return "not_requested"
    if draft.surface.api != MESSAGES or not response.finish_reasons:
        return "not_answered"
    return attribution.NO_DIVERGENCE if draft.against else "no_comparison"


def _word(cause: m.Cause) -> str:
    return cause.name + (f"({','.join(cause.detail)})" if cause.detail else "")


def _request(draft: Draft, response: m.Response, ending: m.Ending, timing: m.Timing) -> m.RequestGroup:
    usage = response.usage
    return m.RequestGroup(
        output_tokens=usage.output,
        reasoning_tokens=usage.reasoning,
        time_to_first_token=timing.first_token,
        time_to_first_content=timing.first_content,
        duration=timing.duration,
        finish_reasons=spelling.words(response.finish_reasons),
        response_id=spelling.optional(response.response_id),
        tool_calls=response.tool_calls if ending.how == "complete" else None,
        repeated_read_bytes=_repeated(draft.checked),
        error_type=spelling.word(ending.error_type),
        call_end=ending.how,
        stream=draft.request.stream,
        usage_source=usage.source,
        usage_flags=usage.flags,
    )


def _money(cost: m.Cost) -> m.MoneyGroup:
    whole = m.CostAmount(cost.amount, cost.currency, cost.source, cost.unit, cost.computed)
    return m.MoneyGroup(whole, cost.without_cache, cost.avoidable, cost.missing)
