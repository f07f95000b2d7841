"""All checks of one request together: what is new in it is read once, and each pillar gives its verdict.

A request that appends to an examined one costs its own messages. What is known of the outside (rules files, looks at
files) comes as one frozen `World`; how it got there is left to others. The tools pillar keeps its own account. No lock
is held while a validator looks for constraints: it may be the program's own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeVar

from otel_context_ledger.correctness import constraints as c
from otel_context_ledger.correctness import policy, reads, state
from otel_context_ledger.correctness.freshness import Judged, judge
from otel_context_ledger.correctness.history import Step, step, system_texts
from otel_context_ledger.correctness.looks import Shelved
from otel_context_ledger.correctness.policy import RulesFile
from otel_context_ledger.correctness.presence import ELSEWHERE, NOTHING, Presence, Sent, Standing, Texts
from otel_context_ledger.correctness.state import Author
from otel_context_ledger.correctness.wording import Wording
from otel_context_ledger.model import UNKNOWN, Check, Findings
from otel_context_ledger.records import changed, quick

# A request with more new messages is examined later, on another thread: its span does not wait for its verdicts.
MAX_AT_ONCE = 64
MAX_KEPT = 2000
# Of the users' texts in what is kept, each counted in every request that has it.
MAX_CHARACTERS = 1 << 26
MAX_PLACES = 32
# Texts that hold rules files are kept however old they are, so many of them.
MAX_BEARING = 16
# Characters that a program waits for to be looked through in other words.
MAX_LOOKED = 1 << 16
MAX_DATES = 8192
MAX_WRITTEN = 1024
MAX_WRITERS = 8
# Shorter texts hold no rules file.
SHORTEST_RULES = 40


@quick
@dataclass(frozen=True, slots=True)
class World:
    """What is known of the outside when a request is made. `now` is the clock's time in seconds; without `files` nobody
    looks at a repository."""

    now: float = 0.0
    rules: tuple[RulesFile, ...] = ()
    files: Shelved | None = None
    said: Callable[[str | None], Mapping[str, reads.Known]] = lambda session: {}


@quick
@dataclass(frozen=True, slots=True)
class Subject:
    """A request to be examined: the texts of its system part and its messages, each list with the digests of its items.
    `before` names the examined request that it continues, of which it has the first `shared` messages. `whole`: the
    provider keeps no history besides; `replayed`: it wants reasoning back; `offset`: the first message's place.
    `session` is the one it belongs to, `called` what the program calls that; `constraints` are declared for it;
    `model` is asked."""

    name: str
    system: Sequence[object]
    system_digests: Sequence[bytes]
    messages: Sequence[object]
    digests: Sequence[bytes]
    before: str | None = None
    shared: int = 0
    whole: bool = True
    replayed: bool = False
    offset: int = 0
    session: str = ""
    called: str | None = None
    constraints: tuple[c.Constraint, ...] = ()
    model: str | None = None


@quick
@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that came at `at` (seconds): the ids of its calls of tools, and whether reasoning came with them."""

    at: float
    calls: tuple[str, ...] = ()
    thought: bool = False


NONE = Texts()
Spoken = tuple[int, bytes, str]
Key = TypeVar("Key")
Value = TypeVar("Value")


@quick
@dataclass(frozen=True, slots=True)
class Memory:
    """What is kept of an examined request for the next one. `spoken` are the user's texts by the place of their
    message, those with rules files and the last others; `passed` counts those that are not kept. `standing` is that of
    the constraints. `sealed`: a part of the history is a summary that only the provider can read, or items that it
    keeps. `model` was asked, `authors` are those that made turns of the history."""

    length: int = 0
    state: state.State = field(default_factory=state.State)
    spoken: tuple[Spoken, ...] = ()
    standing: Standing = NOTHING
    passed: int = 0
    sealed: bool = False
    model: str | None = None
    authors: tuple[Author, ...] = ()
    log: reads.Log = field(default_factory=reads.Log)
    said: Mapping[str, reads.Known] = field(default_factory=dict)
    files: Mapping[str, reads.Known] = field(default_factory=dict)
    judged: Judged = field(default_factory=Judged)

    @property
    def characters(self) -> int:
        """How much text it keeps alive."""
        return sum(len(text) for _, _, text in self.spoken)


@quick
@dataclass(frozen=True, slots=True)
class Examination:
    """The verdicts on one request, `None` for a pillar that was not asked; `repeated` counts the bytes of files that it
    holds more than once; `subject` is still to be examined. `sent` and `rules` are what the policy was judged by,
    `texts` what the constraints are judged by;
    `whole` says that nothing else reaches the model."""

    policy: Check | None = None
    constraints: Check | None = None
    state: Check | None = None
    subject: Subject | None = None
    repository: Check | None = None
    repeated: int | None = None
    sent: Sequence[Sent] = field(default=(), compare=False, repr=False)
    rules: tuple[RulesFile, ...] = field(default=(), compare=False, repr=False)
    texts: Texts = field(default=NONE, compare=False, repr=False)
    whole: bool = field(default=True, compare=False, repr=False)


class Examiner:
    """The pillars of a process that look into the messages. `world` gives what is known of the outside now, `reader`
    recognises reads. Every method may be called from any thread."""

    def __init__(
        self,
        world: Callable[[], World] = World,
        validator: c.Validator | None = None,
        reader: reads.Reader | None = None,
    ) -> None:
        self._world, self._presence = world, Presence(validator or Wording())
        self._reader = reader or reads.Reader()
        self._dates: OrderedDict[tuple[str, bytes], reads.Date] = OrderedDict()
        self._answered: OrderedDict[str, Answer] = OrderedDict()
        self._written: OrderedDict[str, tuple[tuple[str, float], ...]] = OrderedDict()
        self._policy = policy.Policy()
        self._kept: OrderedDict[str, Memory] = OrderedDict()
        self._characters = 0
        self.renew_lock()

    def renew_lock(self) -> None:
        """A free lock for a forked child, whose parent may have held the old one."""
        self._lock = Lock()
        self._presence.renew_lock()

    def begin(self, subject: Subject) -> Examination:
        """The examination of a request that is about to be sent: done, or left to `finish` if much of it is new."""
        with self._lock:
            known = self._known(subject)
            if len(subject.messages) - known.length > MAX_AT_ONCE:
                return Examination(subject=subject)
            done, memory = self._examine(subject, known)
        if self._presence.unread(memory.standing, done.texts) > MAX_LOOKED:
            with self._lock:
                self._keep(subject.name, changed(memory, standing=memory.standing.unlooked()))
            return Examination(subject=subject)
        return self._constrained(done, subject, memory)

    def answered(self, name: str, answer: Answer) -> None:
        """The answer to a request came: its calls ran later, and reasoning belongs to them if it came too."""
        with self._lock:
            _put(self._answered, name, answer, MAX_KEPT)

    def renewed(self, begun: Examination, name: str, session: str) -> Examination:
        """The examination of a request with what was seen on disk since it began."""
        with self._lock:
            memory = self._kept.get(name)
            if begun.subject is not None or memory is None:
                return begun
            world = self._world()
            judged = self._freshness(memory, world, session)
            if judged is not memory.judged:
                self._keep(name, changed(memory, judged=judged))
            if world.rules is not begun.rules:
                rules = self._on_policy(world, begun.sent, begun.whole)
                begun = changed(begun, policy=rules, rules=world.rules)
            if judged.check is begun.repository and judged.repeated == begun.repeated:
                return begun
            return changed(begun, repository=judged.check, repeated=judged.repeated)

    def finish(self, begun: Examination) -> Examination:
        """The examination, done."""
        if begun.subject is None:
            return begun
        with self._lock:
            done, memory = self._examine(begun.subject, self._known(begun.subject))
        return self._constrained(done, begun.subject, memory)

    def _known(self, subject: Subject) -> Memory:
        """What was kept of the request that this one continues; nothing if it shares less than that had."""
        found = self._kept.get(subject.before) if subject.before else None
        return found if found is not None and found.length <= subject.shared else Memory()

    def _examine(self, subject: Subject, known: Memory) -> tuple[Examination, Memory]:
        """All verdicts but that on the constraints, for which texts may have to be looked through."""
        world = self._world()
        new = [step(message) for message in subject.messages[known.length :]]
        live, begin = _live(known, new)
        told = tuple(_spoken(new[begin:], subject.digests, known.length + begin))
        every = (*live.spoken, *told)
        spoken = every if len(every) <= MAX_PLACES else self._lasting(every, world)
        system = tuple(zip(subject.system_digests, system_texts(subject.system), strict=False))
        sealed = live.sealed or any(one.kept or (one.compaction and one.summary is None) for one in new[begin:])
        whole = subject.whole and not sealed
        memory = Memory(
            len(subject.messages), state.fold(known.state, new, self._seen(subject)), spoken, sealed=sealed,
            model=subject.model, authors=state.credited(known.authors, known.model, new),
            passed=live.passed + len(every) - len(spoken),
        )  # fmt: skip
        fresh = told if live.standing.declared == subject.constraints else every
        memory = changed(memory, standing=self._presence.placed(subject.constraints, live.standing, system, fresh))
        memory = self._reading(subject, known, memory, new, world)
        self._keep(subject.name, memory)
        texts = (*system, *((key, text) for _, key, text in spoken))
        examined = Examination(
            self._on_policy(world, texts, whole),
            state=state.judge(memory.state, _ends(subject, memory, whole)),
            sent=texts,
            rules=world.rules,
            whole=whole,
            texts=Texts(system, _said(told), _said(every), live.passed > 0, whole) if subject.constraints else NONE,
        )
        return examined, memory

    def _lasting(self, every: tuple[Spoken, ...], world: World) -> tuple[Spoken, ...]:
        """Of too many texts those that are kept: the last ones, and older ones that hold rules files."""
        older, last = every[:-MAX_PLACES], every[-MAX_PLACES:]
        bearing = (
            one for one in older if len(one[2]) >= SHORTEST_RULES and self._policy.bears(world.rules, one[1], one[2])
        )
        return (*tuple(bearing)[-MAX_BEARING:], *last)

    def _seen(self, subject: Subject) -> state.Seen:
        """What is known of calls that stand among the new messages: the answer to the request before brought some, and
        others were sent before, where the history was changed."""
        answer = self._answered.get(subject.before) if subject.before else None
        came = frozenset(answer.calls) if answer is not None else state.NOBODY
        found = self._kept.get(subject.before) if subject.before else None
        sent = state.seen_before(found.state) if found is not None and found.length > subject.shared else state.UNSEEN
        if answer is None or not came:
            return sent
        return state.Seen(sent.owed | came, sent.free) if answer.thought else state.Seen(sent.owed, sent.free | came)

    def _keep(self, name: str, memory: Memory) -> None:
        former = self._kept.get(name)
        self._characters += memory.characters - (former.characters if former is not None else 0)
        self._kept[name] = memory
        while len(self._kept) > MAX_KEPT or self._characters > MAX_CHARACTERS:
            self._characters -= self._kept.popitem(last=False)[1].characters

    def _reading(self, subject: Subject, known: Memory, memory: Memory, new: Sequence[Step], world: World) -> Memory:
        """What is kept, with the files that new messages and the program itself speak of. They are looked at meanwhile,
        so that the verdict on them comes with the answer."""
        log = known.log
        if any(one.calls or one.results for one in new):
            shown = self._shown(subject, known, new, world.now)
            base = self._reader.base() if any(one.calls for one in new) else ""
            log = reads.fold(log, shown, self._reader.names, base)
        said = world.said(subject.called)
        same = log.files is known.log.files and said is known.said
        files = known.files if same else reads.merged(log, said)
        if files is not known.files:
            for path in [path for path, one in files.items() if known.files.get(path) is not one]:
                self._noticed(path, files[path], subject.session)
        return changed(memory, log=log, said=said, files=files, judged=known.judged)

    def _shown(self, subject: Subject, known: Memory, new: Sequence[Step], now: float) -> Iterator[reads.Shown]:
        """New messages with their dates: what the last answer led to was done right now; of what stands before it, the
        time is known if this process saw it then."""
        last = max((at for at, one in enumerate(new) if one.role == "assistant"), default=-1)
        asked = self._answered.get(subject.before) if known.length and subject.before else None
        for at, one in enumerate(new):
            if not one.results:
                yield reads.Shown(one, now)
                continue
            place = known.length + at
            key = subject.session, subject.digests[place]
            date = self._dates.get(key)
            if at > last and (date is None or date.place != place):
                date = reads.Date(now, place, asked.at if asked is not None else None)
                _put(self._dates, key, date, MAX_DATES)
            yield reads.Shown(one, now, False) if date is None else reads.Shown(one, date.at, True, date.asked)

    def _noticed(self, path: str, known: reads.Known, session: str) -> None:
        """A file that is new in a history, or was touched again: to be looked at, and who wrote it."""
        self._reader.want(path)
        last = known.readings[-1] if known.readings else None
        if last is not None and last.write and last.dated:
            told = (*self._written.get(path, ()), (session, last.seen))[-MAX_WRITERS:]
            _put(self._written, path, told, MAX_WRITTEN)

    def _freshness(self, memory: Memory, world: World, session: str) -> Judged:
        def writers(path: str, since: float) -> Iterator[str]:
            return (who for who, at in self._written.get(path, ()) if at > since and who != session)

        return judge(memory.files, world.files, memory.judged, writers, memory.log.left_out)

    def _on_policy(self, world: World, texts: Sequence[Sent], whole: bool) -> Check | None:
        """The verdict on rules files, and on what is injected beside them; `None` where there is neither."""
        sent = [(key, text) for key, text in texts if len(text) >= SHORTEST_RULES]
        repeated = self._policy.repeated(sent)
        if not world.rules and not repeated:
            return None
        check = policy.judge(self._policy.stand(world.rules, sent), world.now, repeated)
        return check if whole or check.verdict != "missing" else Check(UNKNOWN, Findings(evidence=(ELSEWHERE,)))

    def _constrained(self, done: Examination, subject: Subject, memory: Memory) -> Examination:
        if not subject.constraints:
            return done
        check, standing = self._presence.judged(memory.standing, done.texts)
        with self._lock:
            self._keep(subject.name, changed(self._kept.get(subject.name, memory), standing=standing))
        return changed(done, constraints=check)


def _put(kept: OrderedDict[Key, Value], key: Key, value: Value, most: int) -> None:
    kept[key] = value
    while len(kept) > most:
        kept.popitem(last=False)


def _live(known: Memory, new: Sequence[Step]) -> tuple[Memory, int]:
    """What is kept of messages that still reach the model, and from which of the new ones on they do: a provider passes
    over what stands before the last summary of its own (anthropic SDK 2.14, `BetaCompactionBlock`)."""
    begin = max((at for at, one in enumerate(new) if one.compaction), default=None)
    if begin is None:
        return known, 0
    return changed(known, spoken=(), passed=0, standing=NOTHING, sealed=False), begin


def _spoken(steps: Sequence[Step], digests: Sequence[bytes], start: int) -> Iterator[Spoken]:
    """The texts that rules and constraints may stand in: what was said to the model, not what tools brought."""
    for at, shown in enumerate(steps, start):
        if shown.texts and (shown.compaction or shown.role in ("user", "system", "developer")):
            yield at, digests[at], shown.text


def _said(spoken: Sequence[Spoken]) -> list[Sent]:
    return [(key, text) for _, key, text in spoken]


def _ends(subject: Subject, memory: Memory, whole: bool) -> state.Ends:
    others = tuple(one for one in memory.authors if subject.model is not None and one.model != subject.model)
    return state.Ends(whole, subject.replayed, subject.offset, others)
