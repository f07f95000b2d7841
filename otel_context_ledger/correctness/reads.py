"""Which files a history shows to have been read and written, which lines of them, and when: told from its tool calls
and their results, by names that are data (`reads.toml`).

Folded message by message, so that an append costs its own messages. Nothing is looked up on disk here: whether what was
read is still true is left to `freshness`. Paths are kept inside, made absolute by text alone.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from threading import Lock

import orjson
import xxhash

from otel_context_ledger.correctness.history import Step, ToolCall, ToolResult
from otel_context_ledger.records import quick

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MAX_FILES = 128
MAX_READINGS = 32
MAX_WAITING = 64
MAX_SESSIONS = 256
MAX_PATHS = 16
MAX_PATH = 4096
# Characters at either end of a result in which its notes are looked for.
EDGE = 500
# A result that only stands for an earlier one, or is an error, is short.
LONGEST_NOTE = 1000

READ, WRITE, EDIT, PATCH = "read", "write", "edit", "patch"
_KINDS = (READ, WRITE, EDIT, PATCH)
_LISTS = ("path", "first", "skipped", "count", "last", "range", "content", "patch")
_RESULTS = ("stubs", "truncated", "failed")
_PATCHED = re.compile(r"^(?:\*\*\* (?:Add|Update|Delete) File: |\*\*\* Move to: |\+\+\+ b/)(.+?)\s*$", re.MULTILINE)
_NUMBERED = re.compile(r"(?:^|</system>) *L?(\d{1,7})(?:\t|→|: |\| ?)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The names of `reads.toml` under those of the user. `tools` gives what each does, or that by a command."""

    tools: Mapping[str, str | Mapping[str, str]]
    arguments: Mapping[str, tuple[str, ...]]
    results: Mapping[str, tuple[str, ...]]

    def does(self, call: ToolCall) -> str | Mapping[str, str] | None:
        """What a tool of this name does; most tools are no file tools at all."""
        if not call.name:
            return None
        name = call.name.lower()
        return self.tools.get(name) or self.tools.get(re.split(r"__|\.|/", name)[-1])


def lexicon(given: Mapping[str, object] | None = None) -> tuple[Lexicon, tuple[str, ...]]:
    """The shipped names under the user's table [reads], and a sentence for each thing in it that is not usable."""
    own = given or {}
    shipped = tomllib.loads(resources.files(__package__).joinpath("reads.toml").read_text("utf-8"))
    bad = [f"[reads] {name} is not known; ignored" for name in own if name not in shipped]
    tools = {name.lower(): kind for name, kind in shipped["tools"].items()}
    for name, kind in _members(own, "tools", bad):
        if kind in _KINDS or (isinstance(kind, dict) and all(word in _KINDS for word in kind.values())):
            tools[name.lower()] = kind
        else:
            bad.append(f"[reads.tools] {name} = {kind!r} is not one of {', '.join(_KINDS)}; ignored")
    arguments = {name: (*_texts(own, "arguments", name, bad), *shipped["arguments"][name]) for name in _LISTS}
    results = {
        name: tuple(map(str.lower, (*_texts(own, "results", name, bad), *shipped["results"][name])))
        for name in _RESULTS
    }
    return Lexicon(tools, arguments, results), tuple(bad)


@lru_cache(maxsize=1)
def shipped() -> Lexicon:
    """The names of `reads.toml` alone."""
    return lexicon()[0]


def _members(own: Mapping[str, object], table: str, bad: list[str]) -> Iterator[tuple[str, object]]:
    members = own.get(table, {})
    if isinstance(members, dict):
        yield from members.items()
    else:
        bad.append(f"[reads] {table} is no table; ignored")


def _texts(own: Mapping[str, object], table: str, name: str, bad: list[str]) -> tuple[str, ...]:
    members = own.get(table, {})
    found = members.get(name, ()) if isinstance(members, dict) else ()
    if isinstance(found, (list, tuple)) and all(isinstance(one, str) for one in found):
        return tuple(found)
    bad.append(f"[reads.{table}] {name} is no list of texts; ignored")
    return ()


@dataclass(frozen=True, slots=True)
class Access:
    """A call that touches one file. `first` and `last` are the lines asked for, `None` for the file's own ends; a
    negative `first` counts from the end. `content` is a digest of all that the call makes of the file, if it says so;
    `alone`: the result is about this file only."""

    path: str
    write: bool = False
    first: int | None = None
    last: int | None = None
    content: int | None = None
    alone: bool = True


@quick
@dataclass(frozen=True, slots=True)
class Reading:
    """A read or a write that the history shows. `seen` is when its result was first there (seconds), `dated` whether it
    was made right before; `asked` when the answer that called for it was in. Lines are counted from 1, both ends
    included, `last` is `None` where only the file knows. `size` is in bytes, 0 for a write and where a result is of
    several files; `text` is a digest; `cut`: the result does not hold all that was asked for."""

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


@quick
@dataclass(frozen=True, slots=True)
class Known:
    """What the history shows of one file, oldest first, and how many results only stood for an earlier one."""

    readings: tuple[Reading, ...] = ()
    stubs: int = 0


@quick
@dataclass(frozen=True, slots=True)
class Log:
    """What the messages so far show, by absolute path; `waiting` are calls without a result, by their ids."""

    files: Mapping[str, Known] = field(default_factory=dict)
    waiting: Mapping[str, tuple[Access, ...]] = field(default_factory=dict)


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
    """How reads are recognised here: by which names, where relative paths begin, and who is to look at a file."""

    names: Lexicon = field(default_factory=shipped)
    base: str = ""
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
    files, waiting = dict(log.files), dict(log.waiting)
    touched = False
    for one in shown:
        for result in one.step.results:
            for access in waiting.pop(result.id or "", ()):
                touched = _note(files, access, result, one, names) or touched
        for call in one.step.calls:
            found = accesses(call, names, base) if call.id else ()
            if found and call.id:
                waiting[call.id] = found
    if not touched and waiting == log.waiting:
        return log
    return Log(dict([*files.items()][-MAX_FILES:]), dict([*waiting.items()][-MAX_WAITING:]))


def _note(files: dict[str, Known], access: Access, result: ToolResult, shown: Shown, names: Lexicon) -> bool:
    """Adds a result to what is known of its file, and says whether it did."""
    ends = _ends(result)
    short = result.size <= LONGEST_NOTE
    if result.error or (short and ends.lstrip().startswith(names.results["failed"])):
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


def _written(access: Access, shown: Shown) -> Reading:
    return Reading(True, shown.at, shown.dated, shown.asked, 1, None, 0, 0, access.content, False)


def _read(access: Access, result: ToolResult, shown: Shown, cut: bool) -> Reading:
    if not access.alone:
        return Reading(False, shown.at, shown.dated, shown.asked, 1, None, 0, 0, None, True)
    whole = "\n".join(result.texts)
    raw = whole.encode("utf-8", "surrogatepass")
    first, last = _lines(access, whole)
    text = xxhash.xxh3_64_intdigest(raw)
    return Reading(False, shown.at, shown.dated, shown.asked, first, last, len(raw), text, None, cut)


def _lines(access: Access, whole: str) -> tuple[int, int | None]:
    """The lines that a result holds: by the numbers that stand before them, else as asked for. Of a text without
    numbers that was asked for to its end, only the file knows where that is."""
    first = access.first or 1
    numbers = [int(found) for found in _NUMBERED.findall(whole[:EDGE])]
    follow = numbers[1] == numbers[0] + 1 if len(numbers) > 1 else bool(numbers) and (first < 1 or numbers[0] == first)
    if follow:
        ends = [int(found) for found in _NUMBERED.findall(whole[-EDGE:])]
        return numbers[0], max(numbers[0], ends[-1] if ends else numbers[-1])
    return (first, access.last) if first > 0 else (1, None)


def accesses(call: ToolCall, names: Lexicon, base: str) -> tuple[Access, ...]:
    """The files that a call touches."""
    does = names.does(call)
    if does is None:
        return ()
    given = _given(call.arguments)
    kind = does if isinstance(does, str) else does.get(str(given.get("command")))
    if kind == PATCH:
        text = _first(given, names.arguments["patch"]) or call.arguments
        paths = [*dict.fromkeys(_PATCHED.findall(text))] if isinstance(text, str) else []
        return tuple(Access(found, True) for path in paths[:MAX_PATHS] if (found := absolute(path, base)))
    if kind is None:
        return ()
    wanted = [path for one in _paths(_first(given, names.arguments["path"])) if (path := absolute(one, base))]
    first, last = _asked(given, names) if kind == READ else (None, None)
    content = _content(given, names) if kind == WRITE else None
    alone = len(wanted) == 1
    return tuple(Access(path, kind != READ, first, last, content, alone) for path in wanted[:MAX_PATHS])


def absolute(path: str, base: str) -> str | None:
    """A path as it is held: absolute, without dots, by its text alone; `None` for what can be none."""
    if not path or len(path) > MAX_PATH or "\0" in path:
        return None
    plain = path.removeprefix("file://").replace("\\", "/") if "\\" in base else path.removeprefix("file://")
    return posixpath.normpath(posixpath.join(base.replace("\\", "/") if "\\" in base else base, plain))


def loose(content: bytes) -> int:
    """A digest of a file's content that line ends and the last line break are no part of: writers choose them."""
    return xxhash.xxh3_64_intdigest(content.replace(b"\r\n", b"\n").rstrip())


def _given(arguments: object) -> Mapping[str, object]:
    if isinstance(arguments, str):
        try:
            arguments = orjson.loads(arguments)
        except ValueError:
            return {}
    return arguments if isinstance(arguments, Mapping) else {}


def _first(given: Mapping[str, object], keys: Sequence[str]) -> object:
    return next((given[key] for key in keys if given.get(key) is not None), None)


def _paths(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value[:MAX_PATHS]:
            found = one.get("path") if isinstance(one, Mapping) else one
            if isinstance(found, str):
                yield found


def _asked(given: Mapping[str, object], names: Lexicon) -> tuple[int | None, int | None]:
    if len(given) < 2:
        return None, None
    both = _first(given, names.arguments["range"])
    if isinstance(both, (list, tuple)) and len(both) == 2:
        first, last = _number(both[0]), _number(both[1])
        return first, last if last is not None and last > 0 else None
    skipped, first = (_number(_first(given, names.arguments[name])) for name in ("skipped", "first"))
    first = skipped + 1 if skipped is not None else first
    last, count = (_number(_first(given, names.arguments[name])) for name in ("last", "count"))
    if last is None and count is not None and (first is None or first >= 0):
        last = max(first or 1, 1) + count - 1
    return first, last if last is not None and last > 0 else None


def _content(given: Mapping[str, object], names: Lexicon) -> int | None:
    """What a call makes of the whole file, if it does and says it; not of one that adds to it."""
    text = _first(given, names.arguments["content"])
    if not isinstance(text, str) or given.get("mode") == "append":
        return None
    return loose(text.encode("utf-8", "surrogatepass"))


def _number(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.lstrip("-").isdecimal() and len(value) < 10:
        return int(value)
    return int(value) if isinstance(value, (int, float)) and abs(value) < 1e9 else None
