"""Reading the ledger file, and finding a call in it by what a person types.

A field is looked up by its group and name; where another tool has regrouped the lines, by its name at any depth. A
value of the wrong type is unknown here; that it is wrong is what `verify` says.
"""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from otel_context_ledger import store
from otel_context_ledger.cli.printing import plural
from otel_context_ledger.config import Config
from otel_context_ledger.line import COMPACTION, KIND, OUTCOME
from otel_context_ledger.semconv import ENTRY_FIELDS

DEFAULT_FILE = Path("ledger.jsonl")
GROUPS = {field.split(".")[0]: group for _, group, field in ENTRY_FIELDS}
MISSING = object()
MAX_DEPTH = 8
# Python's own floats and divisions end a little above.
MAX_NUMBER, MAX_COUNT = 1e300, 1e30
MAX_NAMED = 5
_FROM_THE_END = re.compile(r"LAST(?:-(\d{1,9}))?", re.IGNORECASE)


class Unusable(Exception):
    """What was asked for cannot be answered; the message is the sentence that says why."""


@dataclass(frozen=True, slots=True)
class Call:
    """One ledger line; `place` is its file and line number."""

    raw: Mapping[str, object]
    place: str = ""

    @property
    def entry_id(self) -> str:
        """The line's id; every line that is read has one."""
        return str(self.value("entry_id"))

    @property
    def closed(self) -> float | None:
        """When the call ended, in seconds since the epoch."""
        started = self.number("started_at")
        return None if started is None else started + (self.number("duration") or 0.0)

    def value(self, name: str) -> object:
        """The field of this dotted name as it stands in the line, or `MISSING`."""
        head, *rest = name.split(".")
        found = _placed(self.raw, GROUPS.get(head), head)
        for step in rest:
            if found is None or found is MISSING:
                return found
            found = found.get(step, MISSING) if isinstance(found, Mapping) else MISSING
        return found

    def text(self, name: str) -> str | None:
        """A field that is a text."""
        found = self.value(name)
        return found if isinstance(found, str) else None

    def number(self, name: str) -> float | None:
        """A field that is a finite number."""
        found = self.value(name)
        if isinstance(found, bool) or not isinstance(found, (int, float)) or not -MAX_NUMBER <= found <= MAX_NUMBER:
            return None
        return float(found)

    def count(self, name: str) -> int | None:
        """A field that is a whole number; one beyond all tokens and bytes that there are is none."""
        found, figure = self.value(name), self.number(name)
        if figure is None or abs(figure) > MAX_COUNT:
            return None
        return found if isinstance(found, int) else int(figure) if figure.is_integer() else None

    def flag(self, name: str) -> bool | None:
        """A field that is true or false."""
        found = self.value(name)
        return found if isinstance(found, bool) else None

    def words(self, name: str) -> tuple[str, ...] | None:
        """A field that is a list of texts."""
        found = self.value(name)
        if not isinstance(found, (list, tuple)):
            return None
        return tuple(item for item in found if isinstance(item, str))


@dataclass(frozen=True, slots=True)
class Book:
    """The calls of a ledger file in the order in which they ended, its files, and its other lines: `outcomes`,
    `compactions`, how many are of kinds that this version does not know, and the places of those that are none of ours:
    cut off at the end of a file, no JSON object, or somebody else's. `others` are the paths of ledgers joined to it."""

    path: Path
    calls: tuple[Call, ...]
    files: tuple[Path, ...] = ()
    torn: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    outcomes: tuple[Call, ...] = ()
    other_kinds: int = 0
    compactions: tuple[Call, ...] = ()
    others: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        """What it is called in a sentence."""
        return f"{self.path} and {plural(len(self.others), 'ledger')} more" if self.others else str(self.path)

    @property
    def strange(self) -> int:
        """How many lines are no calls."""
        return len(self.torn) + len(self.unreadable) + len(self.foreign)

    def by_id(self) -> dict[str, Call]:
        """The calls by their ids; of two with one id, the later."""
        return {call.entry_id: call for call in self.calls}


def path_of(arguments: Namespace, settings: Config) -> Path:
    """The ledger file that is meant: the option, else the environment, else the one in the working directory."""
    given: Path | None = arguments.file
    return given or settings.file or DEFAULT_FILE


def opened(arguments: Namespace, settings: Config) -> Book:
    """The ledger that is meant, with at least one call. Raises `Unusable`."""
    return with_calls(read(path_of(arguments, settings)))


def with_calls(book: Book) -> Book:
    """A ledger that has at least one call. Raises `Unusable` for any other."""
    if not book.calls:
        raise Unusable(alien(book) or _callless(book))
    return book


def joined(books: Sequence[Book]) -> Book:
    """Several ledgers as one, in their order."""
    return Book(
        books[0].path,
        tuple(call for book in books for call in book.calls),
        tuple(file for book in books for file in book.files),
        tuple(place for book in books for place in book.torn),
        tuple(place for book in books for place in book.unreadable),
        tuple(place for book in books for place in book.foreign),
        tuple(told for book in books for told in book.outcomes),
        sum(book.other_kinds for book in books),
        tuple(event for book in books for event in book.compactions),
        tuple(book.path for book in books[1:]),
    )


def _callless(book: Book) -> str:
    other = len(book.outcomes) + len(book.compactions) + book.other_kinds
    found = f"holds no call, only {plural(other, 'line')} of other kinds" if other else "is empty"
    return f"{book.path} {found}: no call has been recorded yet."


def left_out(book: Book) -> list[str]:
    """That some lines of a file are in no answer, where there are such."""
    number = book.strange
    told = f"left out: {plural(number, 'line')} that cannot be read; `context-ledger verify` says which"
    return [told] if number else []


def alien(book: Book) -> str | None:
    """That a file is no ledger, where it has lines and none of them is a ledger line."""
    if book.calls or not book.strange:
        return None
    return f"{book.path} is no ledger file: {plural(book.strange, 'line')}, and none of them is a ledger line."


def read(path: Path, instead: str = "; name one with --file or CONTEXT_LEDGER_FILE") -> Book:
    """The ledger at a path with its rotated files, oldest first. Raises `Unusable` if it cannot be read; `instead` is
    how to name another one."""
    try:
        lines = list(store.lines(path))
    except FileNotFoundError:
        raise Unusable(f"There is no ledger file {path}{instead}.") from None
    except OSError as error:
        raise Unusable(f"{path} cannot be read: {error.strerror or type(error).__name__}.") from None
    found = [Call(line.entry or {}, _place(line)) for line in lines]
    sorts = [_sort(line, call) for line, call in zip(lines, found, strict=True)]
    of_sort = {name: tuple(call for call, sort in zip(found, sorts, strict=True) if sort == name) for name in SORTS}
    return Book(
        path,
        of_sort["call"],
        tuple(dict.fromkeys(line.file for line in lines)),
        torn=tuple(call.place for call in of_sort["torn"]),
        unreadable=tuple(call.place for call in of_sort["unreadable"]),
        foreign=tuple(call.place for call in of_sort["foreign"]),
        outcomes=of_sort["outcome"],
        other_kinds=len(of_sort["other"]),
        compactions=of_sort["compaction"],
    )


SORTS = ("call", "outcome", "compaction", "other", "foreign", "unreadable", "torn")


def _sort(line: store.Line, call: Call) -> str:
    """What a line is: a call has an id, and any other line of ours a kind."""
    if line.entry is None:
        return "torn" if line.unended else "unreadable"
    if call.text("entry_id"):
        return "call"
    kind = line.entry.get(KIND)
    if not isinstance(kind, str):
        return "foreign"
    return kind if kind in (OUTCOME, COMPACTION) else "other"


def find(book: Book, wanted: str) -> Call:
    """The call that a person means by LAST, LAST-n, an entry id or the beginning of one. Raises `Unusable`."""
    from_the_end = _FROM_THE_END.fullmatch(wanted)
    if from_the_end:
        back = int(from_the_end[1] or 0)
        if back >= len(book.calls):
            raise Unusable(f"{wanted} is before the first of the {plural(len(book.calls), 'call')} in {book.path}.")
        return book.calls[-1 - back]
    calls = book.by_id()
    ids = [wanted] if wanted in calls else [found for found in calls if wanted and found.startswith(wanted)]
    if not ids:
        raise Unusable(f"There is no call {wanted!r} in {book.path}; `context-ledger show` lists them.")
    if len(ids) > 1:
        raise Unusable(f"{wanted!r} is the beginning of {len(ids)} calls ({_some(ids)}): give more of it.")
    return calls[ids[0]]


def of_session(calls: Iterable[Call], wanted: str) -> list[Call]:
    """The calls of the session with this id, else of all sessions whose ids begin so."""
    return _of("session_id", calls, wanted)


def of_task(calls: Iterable[Call], wanted: str) -> list[Call]:
    """The calls of the task with this id, else of all tasks whose ids begin so."""
    return _of("task_id", calls, wanted)


def _of(field: str, calls: Iterable[Call], wanted: str) -> list[Call]:
    known = [(call.text(field) or "", call) for call in calls]
    exact = [call for name, call in known if name == wanted]
    return exact or [call for name, call in known if wanted and name.startswith(wanted)]


def _placed(raw: Mapping[str, object], group: str | None, name: str) -> object:
    home = raw.get(group) if group else None
    if isinstance(home, Mapping) and name in home:
        return home[name]
    level: list[Mapping[str, object]] = [raw]
    for _ in range(MAX_DEPTH):
        found = next((item[name] for item in level if name in item), MISSING)
        if found is not MISSING:
            return found
        level = [inner for item in level for inner in item.values() if isinstance(inner, Mapping)]
    return MISSING


def _place(line: store.Line) -> str:
    return f"{line.file.name}:{line.number}"


def _some(ids: Sequence[str]) -> str:
    return ", ".join([*ids[:MAX_NAMED], *(["…"] if len(ids) > MAX_NAMED else [])])
