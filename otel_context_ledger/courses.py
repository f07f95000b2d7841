"""The compactions of all sessions of a process: each session's course, what is declared for it, what is to be told.

What happens comes from the `mailbox` and from what calls show; folding it is `correctness.compaction`'s business. No
lock is held while a text is looked through: a program's own validator may do there what it likes.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from itertools import islice
from threading import Lock
from typing import Any

from otel_context_ledger import model as m
from otel_context_ledger.correctness import declarations
from otel_context_ledger.correctness.compaction.course import Course, Rules, Thresholds
from otel_context_ledger.correctness.compaction.event import Compaction, Limits
from otel_context_ledger.correctness.compaction.fold import fold
from otel_context_ledger.correctness.compaction.happenings import Closed, Declared, Happening, Resumed
from otel_context_ledger.correctness.compaction.manifest import DONE, MAX_ITEMS, NOTHING, Item, Manifest, updated
from otel_context_ledger.correctness.compaction.restored import restored, row
from otel_context_ledger.correctness.constraints import Constraint
from otel_context_ledger.correctness.policy import RulesFile
from otel_context_ledger.mailbox import Letter
from otel_context_ledger.records import changed, quick

MAX_TOLD = 1024
# Seconds after which a compaction that another process began is over, even if that cannot be asked: the SDKs wait 10
# minutes for an answer and try three times.
MAX_UNDER_WAY = 3600.0
# Two calls of one session may fold at the same time; after so many tries what is last stands.
MAX_TRIES = 8


@quick
@dataclass(frozen=True, slots=True)
class Scene:
    """Whose call it is and where it goes, as its entry says it."""

    task: str | None = None
    provider: str | None = None
    surface: str | None = None
    model: str | None = None
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What was declared for a session: its rules, how many todos are open (`None`: there never was one), and the
    manifests that this was made from."""

    rules: tuple[Constraint, ...] = ()
    todos: int | None = None
    declared: Manifest = NOTHING
    own: Manifest = NOTHING


@quick
@dataclass(frozen=True, slots=True)
class _Session:
    course: Course
    scene: Scene
    asked: Asked = Asked()


_NOBODY = Scene()


def _never_known(_: str) -> bool | None:
    return None


_LIMITS = ("window", "ratio", "tokens")


def configured(table: Mapping[str, float]) -> tuple[Limits, Thresholds, tuple[str, ...]]:
    """What `[compaction]` says: what the client goes by, from when on something is odd, and names that are neither."""
    kinds = {one.name: one.default for one in fields(Thresholds)}
    ours: dict[str, Any] = {
        name: table[name] if type(kind) is float else int(table[name]) for name, kind in kinds.items() if name in table
    }
    window, ratio, tokens = (table.get(name) for name in _LIMITS)
    limits = Limits(None if window is None else int(window), ratio, None if tokens is None else int(tokens))
    return limits, Thresholds(**ours), tuple(sorted(table.keys() - kinds.keys() - set(_LIMITS)))


class Courses:
    """The courses by session, the least recently used out first. `rules` hold for all, `declared` is what a file of
    settings declares. `take` gives the letters that wait, `files` the rules files on disk, `spell` a session's name as
    it is exported, `runs` whether a process is still there (`None`: unknown). Any thread may call."""

    def __init__(
        self,
        rules: Rules | None = None,
        most: int = 1000,
        take: Callable[[], Sequence[Letter]] = tuple,
        files: Callable[[], tuple[RulesFile, ...]] = tuple,
        spell: Callable[[str], str] = str,
        runs: Callable[[str], bool | None] = _never_known,
    ) -> None:
        self._rules, self._most = rules or Rules(), most
        self._take, self._files, self._spell, self._runs = take, files, spell, runs
        self._table, self._said = self._rules.declared.items, dict[str, Item]()
        self._read: tuple[RulesFile, ...] = ()
        self._marked: tuple[Item, ...] = ()
        self._common = _asked(self._rules.declared, NOTHING)
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._rows: dict[str, list[Mapping[str, object]]] = {}
        self._told: deque[m.Compacted] = deque(maxlen=MAX_TOLD)
        self._latest: str | None = None
        self.renew_lock()

    def renew_lock(self) -> None:
        """A free lock for a forked child, whose parent may have held the old one."""
        self._lock = Lock()

    def disown(self) -> None:
        """In a forked child: compactions that are not over are the parent's to tell."""
        self._told.clear()
        self._rows.clear()
        with self._lock:
            for name, session in list(self._sessions.items()):
                course = replace(session.course, begun=(), pending=(), trying=None)
                self._sessions[name] = changed(session, course=course)

    def restore(self, lines: Iterable[Mapping[str, object]], scheme: str) -> None:
        """Lets sessions of earlier processes go on, from their lines in the ledger file, oldest first. Lines whose
        digests were made in another way tell nothing."""
        for line in lines:
            own, task, event = (line.get(name) for name in ("self", "task", "compaction"))
            if not isinstance(own, Mapping) or not isinstance(task, Mapping) or not isinstance(event, Mapping):
                continue
            session = task.get("session_id")
            if isinstance(session, str) and own.get("digest_scheme") == scheme:
                self._rows.setdefault(session, []).append({**event, "process": own.get("process")})

    def arrive(self, session: str, scene: Scene, now: float) -> Course:
        """Takes what was told until `now` since the last call, for the session that it was told of or else for the one
        of this call; gives the course of this one."""
        if self._files() is not self._read:
            self._look(self._files())
        self._latest = session
        for letter in self._take():
            self._deliver(letter, session)
        known = self._sessions.get(session)
        if known is None:
            self._opened(session, scene, now)
        elif known.scene != scene:
            self._replace(session, known, changed(known, scene=scene))
        return self.course(session)

    def course(self, session: str) -> Course:
        """How far a session is."""
        known = self._sessions.get(session)
        return known.course if known is not None else Course()

    def fold(self, session: str, happening: Happening, task: str | None = None) -> tuple[Compaction, ...]:
        """One more happening of a session, and what is known of compactions by it; `task` outranks the session's."""
        told: tuple[Compaction, ...] = ()
        for last in (*[False] * (MAX_TRIES - 1), True):
            before = self._sessions.get(session) or self._opened(session, _NOBODY, happening.at)
            course, told = fold(before.course, happening, self._rules)
            if self._replace(session, before, changed(before, course=course), anyway=last):
                break
        for event in told:
            self._told.append(_told(event, session, task, before.scene))
        return told

    def asked(self, session: str) -> Asked:
        """What was declared for a session."""
        known, declared = self._sessions.get(session), self._rules.declared
        if known is None or not known.course.manifest.items:
            return self._common
        own = known.course.manifest
        if known.asked.declared is declared and known.asked.own is own:
            return known.asked
        found = _asked(declared, own)
        self._replace(session, known, changed(known, asked=found))
        return found

    def told(self) -> list[m.Compacted]:
        """What is to be told, each once."""
        found: list[m.Compacted] = []
        with suppress(IndexError):  # another thread may take the last one
            while self._told:
                found.append(self._told.popleft())
        return found

    def close(self, now: float) -> None:
        """The process ends: what waits for a next call is told as it is."""
        for letter in self._take():
            self._deliver(letter, self._latest)
        for session in list(self._sessions):
            self.fold(session, Closed(now))

    def _deliver(self, letter: Letter, session: str | None) -> None:
        happening = letter.happening
        name = self._spell(letter.session) if letter.session is not None else session
        if isinstance(happening, Declared) and (letter.session is None or self._known_to_all(happening.item, name)):
            self._declare(happening.item)
        elif name is not None:
            self.fold(name, happening, letter.task)

    def _known_to_all(self, item: Item, session: str | None) -> bool:
        """Whether a word on a piece of work is about one that was declared for the whole process."""
        own = self.course(session).manifest.items if session is not None else ()
        declared = self._rules.declared.items
        return not item.constraint.text and all(i.id != item.id for i in own) and any(i.id == item.id for i in declared)

    def _opened(self, session: str, scene: Scene, now: float) -> _Session:
        """A session that this process did not know yet; another one may have."""
        rows = self._rows.pop(session, ())
        new = _Session(restored(rows), scene)
        with self._lock:
            known = self._sessions.setdefault(session, new)
            oldest = list(islice(self._sessions, max(0, len(self._sessions) - self._most)))
        if rows and known is new:
            running = (event.id for event in new.course.begun if self._may_run(event, rows, now))
            self.fold(session, Resumed(now, tuple(running)))
        for name in oldest:
            self._forget(name)
        return self._sessions.get(session, new)

    def _may_run(self, begun: Compaction, rows: Sequence[Mapping[str, object]], now: float) -> bool:
        """Whether a compaction of the ledger file may be under way still, in the process that wrote of it last."""
        writer = next(row.get("process") for row in reversed(rows) if row.get("compaction_event") == begun.id)
        if isinstance(writer, str) and self._runs(writer) is False:
            return False
        return begun.begun is not None and now - begun.begun < MAX_UNDER_WAY

    def _forget(self, session: str) -> None:
        if session in self._sessions:
            self.fold(session, Closed(0.0))
        with self._lock:
            self._sessions.pop(session, None)

    def _replace(self, session: str, before: _Session, after: _Session, *, anyway: bool = False) -> bool:
        """Whether `after` took the place of `before`, which it does not where that is no longer what is known."""
        with self._lock:
            if not anyway and self._sessions.get(session) is not before:
                return False
            self._sessions[session] = after
            self._sessions.move_to_end(session)
            return True

    def _look(self, files: tuple[RulesFile, ...]) -> None:
        self._read = files
        self._marked = tuple(item for file in files for item in declarations.marked(file.text))
        self._declared()

    def _declare(self, item: Item) -> None:
        self._said[item.id] = updated(self._said.get(item.id), item)
        while len(self._said) > MAX_ITEMS:
            self._said.pop(next(iter(self._said)))
        self._declared()

    def _declared(self) -> None:
        """What the program says outranks marked lines, and these the file of settings."""
        declared = NOTHING.joined((*self._table, *self._marked, *self._said.values()))
        self._rules, self._common = replace(self._rules, declared=declared), _asked(declared, NOTHING)


def _asked(declared: Manifest, own: Manifest) -> Asked:
    items = declared.joined(own.items).items
    todos = [item for item in items if item.constraint.kind == "todo"]
    rules = tuple(item.constraint for item in items if not item.work)
    return Asked(rules, sum(item.status != DONE for item in todos) if todos else None, declared, own)


def _told(event: Compaction, session: str, task: str | None, scene: Scene) -> m.Compacted:
    at = next((at for at in (event.ended, event.begun) if at is not None), 0.0)
    return m.Compacted(
        session, task or scene.task, at, event.settled, row(event), scene.provider, scene.surface, scene.model,
        scene.agent,
    )  # fmt: skip
