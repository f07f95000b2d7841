"""All checks of one request together: what is new in it is read once, and each pillar gives its verdict.

A request that appends to an examined one costs its own messages. What is known of the outside (rules files, declared
constraints) comes as one frozen `World`; how it got there is left to others. The tools pillar keeps its own account.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

from otel_context_ledger.correctness import constraints as c
from otel_context_ledger.correctness import policy, state
from otel_context_ledger.correctness.history import Step, step, system_texts
from otel_context_ledger.model import Check
from otel_context_ledger.records import changed, quick

# A request with more new messages is examined later, on another thread: its span does not wait for its verdicts.
MAX_AT_ONCE = 64
MAX_KEPT = 2000
MAX_PLACES = 32
MAX_MATCHES = 4096
# Shorter texts hold no rules file.
SHORTEST_RULES = 40
SYSTEM = -1


@dataclass(frozen=True, slots=True)
class World:
    """What is known of the outside when a request is made. `now` is the clock's time in seconds."""

    now: float = 0.0
    rules: tuple[policy.RulesFile, ...] = ()
    constraints: tuple[c.Constraint, ...] = ()


@quick
@dataclass(frozen=True, slots=True)
class Subject:
    """A request to be examined: the texts of its system part and its messages, each list with the digests of its items.
    `before` names the examined request that it continues, of which it has the first `shared` messages. `whole`: the
    provider keeps no history besides; `replayed`: it wants reasoning back; `offset`: the first message's place."""

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


Text = tuple[bytes, str]


@quick
@dataclass(frozen=True, slots=True)
class Memory:
    """What is kept of an examined request for the next one. `spoken` are the user's texts by the place of their
    message, `held` the first place at which each constraint stands word for word (-1 is the system part)."""

    length: int = 0
    state: state.State = field(default_factory=state.State)
    spoken: tuple[tuple[int, bytes, str], ...] = ()
    held: Mapping[str, int] = field(default_factory=dict)
    declared: tuple[c.Constraint, ...] = ()


@dataclass(frozen=True, slots=True)
class Examination:
    """The verdicts on one request, `None` for a pillar that was not asked; `subject` is still to be examined."""

    policy: Check | None = None
    constraints: Check | None = None
    state: Check | None = None
    subject: Subject | None = None


class Examiner:
    """The pillars of a process that look into the messages. `world` gives what is known of the outside now. Every
    method may be called from any thread."""

    def __init__(self, world: Callable[[], World] = World, validator: c.Validator | None = None) -> None:
        self._world, self._validator = world, validator or c.Wording()
        self._policy = policy.Policy()
        self._kept: OrderedDict[str, Memory] = OrderedDict()
        self._matches: OrderedDict[tuple[c.Constraint, bytes], c.Match] = OrderedDict()
        self.renew_lock()

    def renew_lock(self) -> None:
        """A free lock for a forked child, whose parent may have held the old one."""
        self._lock = Lock()

    def begin(self, subject: Subject) -> Examination:
        """The examination of a request that is about to be sent: done, or left to `finish` if much of it is new."""
        with self._lock:
            known = self._known(subject)
            if len(subject.messages) - known.length > MAX_AT_ONCE:
                return Examination(subject=subject)
            return self._examine(subject, known)

    def finish(self, begun: Examination) -> Examination:
        """The examination, done."""
        if begun.subject is None:
            return begun
        with self._lock:
            return self._examine(begun.subject, self._known(begun.subject))

    def _known(self, subject: Subject) -> Memory:
        """What was kept of the request that this one continues; nothing if it shares less than that had."""
        found = self._kept.get(subject.before) if subject.before else None
        return found if found is not None and found.length <= subject.shared else Memory()

    def _examine(self, subject: Subject, known: Memory) -> Examination:
        world = self._world()
        new = [step(message) for message in subject.messages[known.length :]]
        told = tuple(_spoken(new, subject.digests, known.length))
        spoken = (*known.spoken, *told)[-MAX_PLACES:]
        system = tuple(zip(subject.system_digests, system_texts(subject.system), strict=False))
        memory = Memory(len(subject.messages), state.fold(known.state, new), spoken)
        unread = told if known.declared == world.constraints else (*known.spoken, *told)
        memory = changed(memory, held=_held(world, known, system, unread), declared=world.constraints)
        self._keep(subject.name, memory)
        texts = (*system, *((key, text) for _, key, text in spoken))
        return Examination(
            self._on_policy(world, texts) if world.rules else None,
            self._on_constraints(world, memory, texts) if world.constraints else None,
            state.judge(memory.state, subject.whole, subject.replayed, subject.offset),
        )

    def _keep(self, name: str, memory: Memory) -> None:
        self._kept[name] = memory
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)

    def _on_policy(self, world: World, texts: Sequence[Text]) -> Check:
        sent = [(key, text) for key, text in texts if len(text) >= SHORTEST_RULES]
        return policy.judge(self._policy.stand(world.rules, sent), world.now)

    def _on_constraints(self, world: World, memory: Memory, texts: Sequence[Text]) -> Check:
        held = c.Match("held", "exact", 1.0)
        found = {
            one.id: held if one.id in memory.held else max((self._match(one, *text) for text in texts), key=c.rank)
            for one in world.constraints
            if texts
        }
        missing = {one.id: c.NOWHERE for one in world.constraints if one.id not in found}
        told = c.Recall({**missing, **found}, f"{self._validator.name}@{self._validator.version}")
        return c.judge(world.constraints, told)

    def _match(self, constraint: c.Constraint, key: bytes, text: str) -> c.Match:
        known = self._matches.get((constraint, key))
        if known is None:
            known = self._matches[constraint, key] = self._validator.match(constraint, text)
            while len(self._matches) > MAX_MATCHES:
                self._matches.popitem(last=False)
        return known


def _spoken(steps: Sequence[Step], digests: Sequence[bytes], start: int) -> Iterator[tuple[int, bytes, str]]:
    """The texts that rules and constraints may stand in: what was said to the model, not what tools brought."""
    for at, shown in enumerate(steps, start):
        if shown.role in ("user", "system", "developer") and shown.texts:
            yield at, digests[at], shown.text


def _held(
    world: World, known: Memory, system: Sequence[Text], told: Sequence[tuple[int, bytes, str]]
) -> Mapping[str, int]:
    """Where each constraint stands word for word: as before, in the system part, or in what is new."""
    if not world.constraints:
        return {}
    before = known.held if known.declared == world.constraints else {}
    found = {name: at for name, at in before.items() if at != SYSTEM}
    missing = [one for one in world.constraints if one.id not in found]
    found |= {one.id: SYSTEM for one in missing if any(c.stands(one, text) for _, text in system)}
    for at, _, text in told:
        found |= {one.id: at for one in missing if one.id not in found and c.stands(one, text)}
    return found
