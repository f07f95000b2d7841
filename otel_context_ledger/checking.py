"""The checks of a call in flight: what the pillars see of it when it is opened, when its answer comes, and afterwards.

A check of ours that fails costs that check, which is then unknown, and never the entry. What is reused, and what the
verdicts are written down as, is the ledger's business. Pure; any thread may call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from otel_context_ledger import model as m
from otel_context_ledger.correctness.advice import NEW, Advisor, Facts, Past
from otel_context_ledger.correctness.compaction.happenings import Happening
from otel_context_ledger.correctness.examination import Answer, Examination, Examiner, Subject
from otel_context_ledger.correctness.history import step
from otel_context_ledger.correctness.manifest import Moved
from otel_context_ledger.correctness.tools.check import Look, Sent, Tools
from otel_context_ledger.correctness.tools.registry import Registry
from otel_context_ledger.courses import Courses, Scene
from otel_context_ledger.records import changed, quick
from otel_context_ledger.reuse.identity import Identity
from otel_context_ledger.reuse.segments import Outline, inner_tools
from otel_context_ledger.reuse.segments import named as titled
from otel_context_ledger.surfaces import Surface
from otel_context_ledger.thresholds import DEFAULTS, Thresholds
from otel_context_ledger.witness import Witness

T = TypeVar("T")
Note = Callable[[str, Exception], None]
Compare = Callable[[str, str], Moved | None]
STAGE = "checks"
# What fails together, as an entry says it: pillars, and what has no verdict of its own.
TOOLS, EXAMINED = ("tools",), ("policy", "repository", "constraints", "state")
COMPACTIONS, ADVICE = ("compactions",), ("advice",)
# What a program tells of both comes in one way.
TOLD = ("compactions", "constraints")
_NOTHING: tuple[str, ...] = ()
_UNLOOKED: tuple[Look | None, bytes | None] = (None, None)
_FAILED = m.Check(m.UNKNOWN, m.Findings(evidence=("reason=ledger_error",)))
# Ends after which nothing is known of the answer.
_UNHEARD = ("cancelled", "abandoned")


@quick
@dataclass(frozen=True, slots=True)
class Sight:
    """A call as a witness of compactions: whose course it goes on, what is carried over from the last one (digest of
    its summary, id, whether it is trusted), whether this is the first call after one, how many todos are open."""

    witness: Witness
    session: str
    carried: tuple[str | None, str | None, bool | None] = (None, None, None)
    compacted: bool = False
    todos: int | None = None


@quick
@dataclass(frozen=True, slots=True)
class Opening:
    """A call that is about to be made, as the lineage placed it; `kind` is agent, compaction or auxiliary."""

    witness: Witness
    surface: Surface
    identity: Identity
    kind: str


@quick
@dataclass(frozen=True, slots=True)
class Checked:
    """What the checks saw of a call so far, and the digest of its tools' contracts; `failed` says which of them came to
    nothing through an error of ours."""

    look: Look | None = None
    contract: bytes | None = None
    examination: Examination | None = None
    past: Past = NEW
    seen: Sight | None = None
    failed: tuple[str, ...] = ()

    @property
    def flaw(self) -> str | None:
        """What an entry says of checks that failed."""
        return f"checks_failed: {', '.join(self.failed)}" if self.failed else None

    def verdicts(self) -> Mapping[str, m.Check]:
        """The checks of all pillars that looked."""
        found = {"tools": self.look.check if self.look else None}
        if self.examination is not None:
            found |= {name: getattr(self.examination, name) for name in EXAMINED}
        found |= {name: _FAILED for name in self.failed if name in m.PILLARS}
        return {name: check for name, check in found.items() if check is not None}


UNSEEN = Checked()


@quick
@dataclass(frozen=True, slots=True)
class Over:
    """How a call ended: its answer and end at `now`, its context's digest as it is exported, why it missed the cache,
    and what it cost in dollars, as far as anybody asks."""

    response: m.Response
    ending: m.Ending
    now: float
    identity: str
    causes: Sequence[m.Cause]
    dollars: Callable[[], float | None]


@quick
@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of tools that are to be judged: those `made` that the history holds anew, of the tools that were sent
    `earlier`, and those that the answer `returned`."""

    earlier: Sent | None
    made: Iterable[m.Called]
    returned: Sequence[m.Called]


@dataclass(frozen=True, slots=True)
class Pillars:
    """What looks into requests for a ledger; each is made anew where it is not given. `moved` says how two
    snapshots of the repository differ."""

    tools: Tools | None = None
    examiner: Examiner | None = None
    courses: Courses | None = None
    moved: Compare | None = None


class Checking:
    """The pillars of a process, and the one guard around them: `note` is told the stage and the error of each that
    fails, and must not raise."""

    def __init__(self, pillars: Pillars | None = None, advice: Thresholds = DEFAULTS, sessions: int = 1000) -> None:
        given = pillars or Pillars()
        self._advisor = Advisor(advice, sessions)
        self._tools = given.tools or Tools(Registry(), sessions=sessions)
        self._examiner = given.examiner or Examiner()
        self.courses = given.courses or Courses(most=sessions)
        self._moved = given.moved or _unknown
        self.note: Note = _unheard

    def renew_lock(self) -> None:
        """Free locks for a forked child, whose parent may have held the old ones."""
        for pillar in (self._tools, self._examiner, self._advisor, self.courses):
            pillar.renew_lock()

    def summary(self, session: str, last: object, spell: Callable[[str | None], object]) -> object:
        """The summary that a session builds on, as `spell` makes it of the digest that is exported; where that fails,
        the `last` one that was known."""
        return self._or(last, COMPACTIONS, [], lambda: spell(self.courses.course(session).carried[0]))

    def asked_last(self, messages: Sequence[object]) -> tuple[str, ...]:
        """What the user says in the last message, by which a summarising call is known."""
        last = self._or(None, COMPACTIONS, [], lambda: step(messages[-1])) if messages else None
        return last.texts if last is not None and last.role == "user" else ()

    def told(self) -> list[m.Compacted]:
        """What is to be told of compactions, each once."""
        return self._or([], COMPACTIONS, [], self.courses.told)

    def begin(self, call: Opening) -> Checked:
        """What there is to see of a call before it is made."""
        failed: list[str] = []
        seen = self._or(None, TOLD, failed, lambda: self._seen(call))
        look, contract = self._or(_UNLOOKED, TOOLS, failed, lambda: self._looked(call))
        examination = self._or(None, EXAMINED, failed, lambda: self._examined(call)) if call.kind == "agent" else None
        past = self._or(NEW, ADVICE, failed, lambda: self._advisor.past(call.witness.link.session))
        return Checked(look, contract, examination, past, seen, tuple(failed))

    def answered(self, checked: Checked, name: str, response: m.Response, now: float) -> None:
        """The answer to the call with the id `name` came: what its tools do is done later."""
        if checked.examination is not None:
            answer = Answer(now, response.called, response.thought)
            self._or(None, (), [], lambda: self._examiner.answered(name, answer))

    def renewed(self, checked: Checked, name: str, session: str) -> Checked:
        """With what was seen on disk meanwhile. Where that fails, the checks stand as they were until `settled`."""
        begun = checked.examination
        if begun is None:
            return checked
        return self._with(checked, (), lambda: self._examiner.renewed(begun, name, session))

    def ended(self, checked: Checked, kind: str, over: Over) -> tuple[Checked, tuple[str, ...]]:
        """Lets a call that ended show what it knows of compactions, and what was odd about those that it settled."""
        seen = checked.seen
        if seen is None or over.ending.how in _UNHEARD or kind not in _SHOWS:
            return checked, ()
        failed: list[str] = []
        odd = self._or(_NOTHING, COMPACTIONS, failed, lambda: self._shown(seen, _SHOWS[kind](seen.witness, over)))
        return _failing(checked, failed), odd if kind == "agent" else ()

    def keep(self, checked: Checked, session: str, facts: Facts) -> Checked:
        """What the session's calls to come are to know of this one."""
        failed: list[str] = []
        self._or(None, ADVICE, failed, lambda: self._advisor.keep(session, self._advisor.after(checked.past, facts)))
        return _failing(checked, failed)

    def advise(self, checked: Checked, facts: Facts) -> tuple[Checked, tuple[str, ...]]:
        """What to do next with an agent's context."""
        failed: list[str] = []
        advised = self._or(_NOTHING, ADVICE, failed, lambda: self._advised(facts, checked.past))
        return _failing(checked, failed), advised

    def settled(self, checked: Checked, name: str, session: str, calls: Calls) -> Checked:
        """With what takes too long to be looked at while the program waits: much that is new in a request, and whether
        calls of tools are right."""
        look, begun = checked.look, checked.examination
        if begun is not None:
            checked = self._with(checked, EXAMINED, lambda: self._finished(begun, name, session))
        if look is None:
            return checked
        failed: list[str] = []
        judged = partial(self._tools.judged, look, calls.earlier, calls.made, calls.returned)
        check = self._or(look.check, TOOLS, failed, judged)
        same = check is look.check
        return _failing(checked if same else changed(checked, look=changed(look, check=check)), failed)

    def moved(self, before: object, now: object) -> Moved | None:
        """What differs between two snapshots of the repository, as far as it is known."""
        if not isinstance(before, str) or not isinstance(now, str):
            return None
        return self._or(None, (), [], lambda: self._moved(before, now))

    def _finished(self, begun: Examination, name: str, session: str) -> Examination:
        return self._examiner.renewed(self._examiner.finish(begun), name, session)

    def _with(self, checked: Checked, what: tuple[str, ...], work: Callable[[], Examination]) -> Checked:
        failed: list[str] = []
        begun = checked.examination
        done = self._or(begun, what, failed, work)
        return _failing(checked if done is begun else changed(checked, examination=done), failed)

    def _or(self, otherwise: T, what: tuple[str, ...], failed: list[str], work: Callable[[], T]) -> T:
        """The guard around one step."""
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - reuse is right without it
            failed.extend(what)
            self.heard(STAGE, error)
            return otherwise

    def heard(self, stage: str, error: Exception) -> None:
        """An error of ours, to be counted."""
        self.note(stage, error)

    def _advised(self, facts: Facts, past: Past) -> tuple[str, ...]:
        return self._advisor.advise(facts, self._advisor.after(past, facts))

    def _seen(self, call: Opening) -> Sight:
        """What a call shows of compactions before it is made. A summarising call that no session is named for, and that
        holds no history of one, belongs to the agent that made the call before it here."""
        witness, kind = call.witness, call.kind
        around, link, request = witness.around, witness.link, witness.request
        nameless = link.source == "lineage" and link.head is None
        latest = around.latest if kind == "compaction" and nameless else None
        session = latest or link.session
        scene = Scene(around.task, call.surface.provider, call.surface.name, request.model, around.agent)
        course = self.courses.arrive(session, scene, around.now)
        if kind == "agent":
            self.courses.fold(session, witness.opened(course.waiting))
            course = self.courses.course(session)
        compacted = kind == "agent" and any(p.seen == around.entry_id and p.event.whole for p in course.pending)
        lean = changed(witness, request=changed(request, tools=(), system=(), messages=()))
        carried = course.carried_by(around.entry_id)
        return Sight(lean, session, carried, compacted, self.courses.asked(session).todos)

    def _looked(self, call: Opening) -> tuple[Look | None, bytes | None]:
        witness, sent = call.witness, sent_tools(call.witness.outline, call.identity)
        if sent is None:
            return None, None
        look = self._tools.look(sent, witness.link.session, witness.around.now)
        return look, look.contract

    def _examined(self, call: Opening) -> Examination:
        subject = _subject(call)
        rules = self.courses.asked(subject.session).rules
        return self._examiner.begin(changed(subject, constraints=rules) if rules else subject)

    def _shown(self, seen: Sight, happening: Happening) -> tuple[str, ...]:
        told = self.courses.fold(seen.session, happening)
        return tuple(
            f"{odd.name}:{word}" for event in told if event.settled for odd in event.symptoms for word in odd.evidence
        )


def sent_tools(outline: Outline, identity: Identity) -> Sent | None:
    """The tools of a request, those in messages included."""
    wire, schema = identity.parts["tools_wire"], identity.parts["tools"]
    if not isinstance(wire, bytes) or not isinstance(schema, bytes):
        return None
    return Sent(wire, schema, partial(_tool_names, outline), partial(_tool_values, outline))


def _tool_names(outline: Outline) -> tuple[str, ...]:
    return (*(tool.name for tool in outline.of("tool")), *map(titled, inner_tools(outline)))


def _tool_values(outline: Outline) -> list[object]:
    return [*(tool.value for tool in outline.of("tool")), *inner_tools(outline)]


def _subject(call: Opening) -> Subject:
    witness = call.witness
    around, outline, link = witness.around, witness.outline, witness.link
    system, head = outline.of("system"), link.head
    return Subject(
        around.entry_id, [block.value for block in system], [block.digest for block in system], outline.messages,
        outline.digests, head.entry_id if head else None, link.shared, witness.request.whole,
        call.surface.facts.reasoning_replayed, outline.offset, link.session, around.session,
        model=witness.request.model,
    )  # fmt: skip


def _called(witness: Witness, over: Over) -> Happening:
    if over.ending.how == "failed":
        return witness.failed(over.now, over.ending.said, over.ending.error_type)
    return witness.called(over.response, over.now, over.identity, over.causes)


def _summarised(witness: Witness, over: Over) -> Happening:
    if over.ending.how == "failed":
        return witness.refused(over.now, over.ending.said, over.ending.error_type)
    return witness.summarised(over.response, over.now, over.dollars())


_SHOWS: Mapping[str, Callable[[Witness, Over], Happening]] = {"agent": _called, "compaction": _summarised}


def _failing(checked: Checked, failed: Sequence[str]) -> Checked:
    return changed(checked, failed=tuple(dict.fromkeys((*checked.failed, *failed)))) if failed else checked


def _unknown(before: str, now: str) -> Moved | None:
    """Nobody looks at a repository."""
    return None


def _unheard(stage: str, error: Exception) -> None:
    """Nobody counts."""
