"""Which files a history shows to have been read and written, which lines of them, and when: told from its tool calls
and their results.

Folded message by message, so that an append costs its own messages. Which files a call touches is left to `accesses`,
whether what was read is still true to `freshness`.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock

import xxhash

from otel_context_ledger.correctness.accesses import Access, Lexicon, shipped, touch
from otel_context_ledger.correctness.history import Step, ToolResult
from otel_context_ledger.records import quick

MAX_FILES = 128
MAX_READINGS = 32
MAX_WAITING = 64
MAX_SESSIONS = 256
# Characters at either end of a result in which its notes are looked for.
EDGE = 500
# A result that only stands for an earlier one, or is an error, is short.
LONGEST_NOTE = 1000

_NUMBERED = re.compile(r"(?:^|</system>) *L?(\d{1,7})(?:\t|→|: |\| ?)", re.MULTILINE)


@quick
@dataclass(frozen=True, slots=True)
class Reading:
    """A read or a write that the history shows. `seen` is when its result was first there (seconds), `dated` whether it
    was made right before; `asked` when the answer that called for it was in. Lines are counted from 1, both ends
    included, `last` is `None` where only the file knows, a negative `first` counts from its end. `size` is in bytes, 0
    for a write and where a result is of several files; `length` are the lines of a result without numbers, which holds
    no more than that; `text` is a digest; `cut`: the result does not hold all that was asked for."""

    write: bool
    seen: float
    dated: bool
    asked: float | None
    first: int
    last: int | None
    size: int
    text: int
    content: int | None
    cut: bool
    length: int = 0


@quick
@dataclass(frozen=True, slots=True)
class Known:
    """What the history shows of one file, oldest first, and how many results only stood for an earlier one."""

    readings: tuple[Reading, ...] = ()
    stubs: int = 0


@quick
@dataclass(frozen=True, slots=True)
class Log:
    """What the messages so far show, by absolute path; `waiting` are calls without a result, by their ids; `moved`: a
    command may have left the shell in another directory; `left_out` counts files that gave way to others."""

    files: Mapping[str, Known] = field(default_factory=dict)
    waiting: Mapping[str, tuple[Access, ...]] = field(default_factory=dict)
    moved: bool = False
    left_out: int = 0


@quick
@dataclass(frozen=True, slots=True)
class Shown:
    """One message, when it was first there (seconds), whether that was right after it was made, and when the answer
    that it belongs to was in."""

    step: Step
    at: float
    dated: bool = True
    asked: float | None = None


@dataclass(frozen=True, slots=True)
class Date:
    """When a result was first seen (seconds), at which place of its history, and when the answer before it was in."""

    at: float
    place: int
    asked: float | None


def unwanted(path: str) -> None:
    """Where nobody looks at files."""


@dataclass(frozen=True, slots=True)
class Reader:
    """How reads are recognised here: by which names, where relative paths begin now (empty: nobody knows), and who is
    to look at a file."""

    names: Lexicon = field(default_factory=shipped)
    base: Callable[[], str] = str
    want: Callable[[str], None] = unwanted


class Declared:
    """What programs say that they have read, by session (`None`: where none is named). `want` has a file looked at.
    Every method may be called from any thread."""

    def __init__(self) -> None:
        self.want: Callable[[str], None] = unwanted
        self._said: OrderedDict[str | None, Mapping[str, Known]] = OrderedDict()
        self.renew_lock()

    def renew_lock(self) -> None:
        """A free lock for a forked child, whose parent may have held the old one."""
        self._lock = Lock()

    def say(self, session: str | None, path: str, at: float) -> None:
        """A file, by its absolute path, was read whole."""
        read = Known((Reading(False, at, True, None, 1, None, 0, 0, None, False),))
        with self._lock:
            files = {**self._said.pop(session, {}), path: read}
            self._said[session] = dict([*files.items()][-MAX_FILES:])
            while len(self._said) > MAX_SESSIONS:
                self._said.popitem(last=False)
        self.want(path)

    def of(self, session: str | None) -> Mapping[str, Known]:
        """What was said in a session; the same object until more is."""
        return self._said.get(session, _NOTHING)


_NOTHING: Mapping[str, Known] = {}
SAID = Declared()
"""What the programs of this process say."""


def merged(log: Log, said: Mapping[str, Known]) -> Mapping[str, Known]:
    """The files that a history shows and those that its program speaks of."""
    if not said:
        return log.files
    both = {path: _together(known, log.files.get(path)) for path, known in said.items()}
    return {**log.files, **both}


def _together(said: Known, shown: Known | None) -> Known:
    if shown is None:
        return said
    readings = sorted((*shown.readings, *said.readings), key=lambda reading: reading.seen)
    return Known(tuple(readings[-MAX_READINGS:]), shown.stubs)


def fold(log: Log, shown: Iterable[Shown], names: Lexicon, base: str) -> Log:
    """The log after more messages; the same one if they touch no file. Relative paths begin at `base`."""
    files, waiting, moved = dict(log.files), dict(log.waiting), log.moved
    touched = False
    for one in shown:
        for result in one.step.results:
            for access in waiting.pop(result.id or "", ()):
                touched = _note(files, access, result, one, names) or touched
        for call in one.step.calls:
            if call.id:
                found = touch(call, names, base, moved)
                moved = moved or found.moves
                if found.accesses:
                    waiting[call.id] = found.accesses
    if not touched and moved == log.moved and waiting == log.waiting:
        return log
    left_out = log.left_out + max(0, len(files) - MAX_FILES)
    return Log(dict([*files.items()][-MAX_FILES:]), dict([*waiting.items()][-MAX_WAITING:]), moved, left_out)


def _note(files: dict[str, Known], access: Access, result: ToolResult, shown: Shown, names: Lexicon) -> bool:
    """Adds a result to what is known of its file, and says whether it did."""
    ends = _ends(result)
    short = result.size <= LONGEST_NOTE
    if result.error or (short and ends.lstrip().startswith(names.results["failed"])):
        return False
    if access.shell and _unsuccessful(access, ends, short, names):
        return False
    before = files.pop(access.path, Known())
    if short and not access.write and any(phrase in ends for phrase in names.results["stubs"]):
        files[access.path] = Known(before.readings, before.stubs + 1)
        return True
    cut = not access.write and any(phrase in ends for phrase in names.results["truncated"])
    made = _written(access, shown) if access.write else _read(access, result, shown, cut)
    files[access.path] = Known((*before.readings, made)[-MAX_READINGS:], before.stubs)
    return True


def _ends(result: ToolResult) -> str:
    """The first and the last characters of a result, in lower case."""
    if not result.texts:
        return ""
    head, tail = result.texts[0], result.texts[-1]
    return f"{head[:EDGE]}\n{tail[-EDGE:]}".lower()


def _unsuccessful(access: Access, ends: str, short: bool, names: Lexicon) -> bool:
    """Whether a shell's command failed, was not run, is not over, or printed nothing. Said too often rather than too
    seldom: then nothing is known."""
    if any(int(code) for code in names.exit_code.findall(ends)):
        return True
    words = names.results["running"] + (names.results["refused"] if short else ())
    return any(word in ends for word in words) or (not access.write and not ends.strip())


def _written(access: Access, shown: Shown) -> Reading:
    return Reading(True, shown.at, shown.dated, shown.asked, 1, None, 0, 0, access.content, False)


def _read(access: Access, result: ToolResult, shown: Shown, cut: bool) -> Reading:
    if not access.alone:
        return Reading(False, shown.at, shown.dated, shown.asked, 1, None, 0, 0, None, True)
    whole = "\n".join(result.texts)
    raw = whole.encode("utf-8", "surrogatepass")
    numbered = None if access.shell else _numbered(access, whole)
    first, last = numbered or (access.first or 1, access.last)
    text, length = xxhash.xxh3_64_intdigest(raw), 0 if numbered else whole.rstrip("\n").count("\n") + 1
    return Reading(False, shown.at, shown.dated, shown.asked, first, last, len(raw), text, None, cut, length)


def _numbered(access: Access, whole: str) -> tuple[int, int] | None:
    """The lines that a result holds by the numbers that stand before them; `None` where none do."""
    first = access.first or 1
    numbers = [int(found) for found in _NUMBERED.findall(whole[:EDGE])]
    follow = numbers[1] == numbers[0] + 1 if len(numbers) > 1 else bool(numbers) and (first < 1 or numbers[0] == first)
    if not follow:
        return None
    ends = [int(found) for found in _NUMBERED.findall(whole[-EDGE:])]
    return numbers[0], max(numbers[0], ends[-1] if ends else numbers[-1])
