"""Which files a tool call reads or writes: told from its name and arguments, by names that are data (`reads.toml`).

Nothing is looked up on disk, and no result is seen: whether the call did it is left to `reads`. Paths are made absolute
by their text alone.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from itertools import islice

import orjson
import xxhash

from otel_context_ledger.correctness import commands
from otel_context_ledger.correctness.commands import Forms, Program
from otel_context_ledger.correctness.history import ToolCall

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MAX_PATHS = 16
MAX_PATH = 4096
MAX_PATCHED = 64

READ, WRITE, EDIT, PATCH, MOVE, SHELL = "read", "write", "edit", "patch", "move", "shell"
_KINDS = (READ, WRITE, EDIT, PATCH, MOVE, SHELL)
_DRIVE = re.compile(r"[A-Za-z]:/")
_PATCHED = re.compile(r"^(?:\*\*\* (?:Add|Update|Delete) File: |\*\*\* Move to: |\+\+\+ b/)(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The names of `reads.toml` under those of the user. `tools` gives what each does, or that by a command; names of
    tools and arguments are plain ones."""

    tools: Mapping[str, str | Mapping[str, str]]
    arguments: Mapping[str, tuple[str, ...]]
    results: Mapping[str, tuple[str, ...]]
    exit_code: re.Pattern[str]
    forms: Forms

    def does(self, call: ToolCall) -> str | Mapping[str, str] | None:
        """What a tool of this name does; most tools are no file tools at all."""
        if not call.name:
            return None
        return self.tools.get(plain(call.name)) or self.tools.get(plain(re.split(r"__|\.|/", call.name)[-1]))


def plain(name: str) -> str:
    """A name without what spellings differ in."""
    return name.lower().replace("_", "").replace("-", "")


def lexicon(given: Mapping[str, object] | None = None) -> tuple[Lexicon, tuple[str, ...]]:
    """The shipped names under the user's table [reads], and a sentence for each thing in it that is not usable."""
    own = given or {}
    shipped = tomllib.loads(resources.files(__package__).joinpath("reads.toml").read_text("utf-8"))
    bad = [f"[reads] {name} is not known; ignored" for name in own if name not in shipped]
    tools = {plain(name): kind for name, kind in shipped["tools"].items()}
    for name, kind in _table(own, "tools", bad).items():
        if kind in _KINDS or (isinstance(kind, dict) and all(word in _KINDS for word in kind.values())):
            tools[plain(name)] = kind
        else:
            bad.append(f"[reads.tools] {name} = {kind!r} is not one of {', '.join(_KINDS)}; ignored")
    arguments = {name: tuple(map(plain, texts)) for name, texts in _lists(shipped, own, "arguments", bad)}
    results = {name: tuple(map(str.lower, texts)) for name, texts in _lists(shipped, own, "results", bad)}
    exits = re.compile(rf"(?:{'|'.join(map(re.escape, results['exits']))})\W{{0,4}}(-?\d{{1,9}})")
    return Lexicon(tools, arguments, results, exits, _forms(shipped["shell"], own, bad)), tuple(bad)


@lru_cache(maxsize=1)
def shipped() -> Lexicon:
    """The names of `reads.toml` alone."""
    return lexicon()[0]


def _table(own: Mapping[str, object], name: str, bad: list[str]) -> Mapping[str, object]:
    found = own.get(name, {})
    if isinstance(found, dict):
        return found
    bad.append(f"[reads] {name} is no table; ignored")
    return {}


def _lists(
    shipped: Mapping[str, Mapping[str, list[str]]], own: Mapping[str, object], name: str, bad: list[str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each list of texts in a shipped table, the user's own texts first."""
    given = _table(own, name, bad)
    bad += [f"[reads.{name}] {key} is not known; ignored" for key in given if key not in shipped[name]]
    for key, texts in shipped[name].items():
        found = given.get(key, ())
        usable = isinstance(found, (list, tuple)) and all(isinstance(one, str) for one in found)
        if not usable:
            bad.append(f"[reads.{name}] {key} is no list of texts; ignored")
        yield key, (*(found if usable and isinstance(found, (list, tuple)) else ()), *texts)


def _forms(shipped: Mapping[str, object], own: Mapping[str, object], bad: list[str]) -> Forms:
    """What is known of shells; a program of the user's own is named like a known one: `bat = "cat"`."""
    table = shipped["programs"]
    assert isinstance(table, dict)
    programs = {name: Program(**told) for name, told in table.items()}
    given = _table(own, "shell", bad)
    bad += [f"[reads.shell] {key} is not known; ignored" for key in given if key != "programs"]
    for name, like in _table(given, "programs", bad).items():
        if isinstance(like, str) and like in table:
            programs[name] = programs[like]
        else:
            bad.append(f"[reads.shell.programs] {name} = {like!r} is not one of {', '.join(table)}; ignored")
    lists = {name: tuple(texts) for name, texts in shipped.items() if isinstance(texts, list)}
    return Forms(programs=programs, **lists)


@dataclass(frozen=True, slots=True)
class Access:
    """A call that touches one file. `first` and `last` are the lines asked for, `None` for the file's own ends; a
    negative `first` counts from the end. `content` is a digest of all that the call makes of the file, if it says so;
    `alone`: the result is about this file only; `shell`: it is a shell's, and has those lines as they are."""

    path: str
    write: bool = False
    first: int | None = None
    last: int | None = None
    content: int | None = None
    alone: bool = True
    shell: bool = False


@dataclass(frozen=True, slots=True)
class Touch:
    """What a call does: the files that it touches, and whether the shell that it ran in may go on elsewhere."""

    accesses: tuple[Access, ...] = ()
    moves: bool = False


NOTHING = Touch()


def touch(call: ToolCall, names: Lexicon, base: str, moved: bool = False) -> Touch:
    """What a call does to files. Relative paths begin at `base`; those of a shell that may have `moved` say nothing."""
    does = names.does(call)
    if does is None:
        return NOTHING
    given = _given(call.arguments)
    kind = does if isinstance(does, str) else does.get(str(given.get("command")))
    if kind is None or any(given.get(key) is True for key in names.arguments["unsettled"]):
        return NOTHING
    if any(given.get(key) is not None for key in names.arguments["elsewhere"]):
        return NOTHING
    if kind == SHELL:
        return _run(given, names, base, moved)
    return Touch(tuple(_ACCESSES[kind](call, given, names, base))[:MAX_PATHS])


def absolute(path: str, base: str) -> str | None:
    """A path as it is held: absolute, without dots, by its text alone; `None` for what can be none, and for a relative
    one if `base` is empty."""
    plain = path.removeprefix("file://")
    if not plain or len(path) > MAX_PATH or "\0" in plain or "://" in plain:
        return None
    if "\\" in base:
        plain, base = plain.replace("\\", "/"), base.replace("\\", "/")
    if not base and not plain.startswith("/"):
        return None
    whole = plain if _DRIVE.match(plain) and _DRIVE.match(base) else posixpath.join(base, plain)
    return posixpath.normpath(whole)


def loose(content: bytes) -> int:
    """A digest of a file's content that line ends and the last line break are no part of: writers choose them."""
    plain = content.replace(b"\r\n", b"\n") if b"\r" in content else content
    return xxhash.xxh3_64_intdigest(plain.rstrip())


def _given(arguments: object) -> Mapping[str, object]:
    """The arguments of a call by their plain names."""
    if isinstance(arguments, str):
        try:
            arguments = orjson.loads(arguments)
        except ValueError:
            return {}
    if not isinstance(arguments, Mapping):
        return {}
    return {plain(key): value for key, value in arguments.items() if isinstance(key, str)}


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


def _wanted(given: Mapping[str, object], names: Lexicon, base: str) -> Sequence[str]:
    told = _paths(_first(given, names.arguments["path"]))
    return [path for one in told if (path := absolute(one, base)) is not None]


def _read(call: ToolCall, given: Mapping[str, object], names: Lexicon, base: str) -> Iterator[Access]:
    wanted, (first, last) = _wanted(given, names, base), _asked(given, names)
    return (Access(path, False, first, last, alone=len(wanted) == 1) for path in wanted)


def _write(call: ToolCall, given: Mapping[str, object], names: Lexicon, base: str) -> Iterator[Access]:
    """Of a call that adds to a file it is not said what the whole is."""
    text = _first(given, names.arguments["content"])
    whole = isinstance(text, str) and given.get("mode") != "append" and given.get("append") is not True
    content = loose(text.encode("utf-8", "surrogatepass")) if whole and isinstance(text, str) else None
    return (Access(path, True, content=content) for path in _wanted(given, names, base))


def _edit(call: ToolCall, given: Mapping[str, object], names: Lexicon, base: str) -> Iterator[Access]:
    return (Access(path, True) for path in _wanted(given, names, base))


def _patch(call: ToolCall, given: Mapping[str, object], names: Lexicon, base: str) -> Iterator[Access]:
    """The paths that stand in the patch, and that of an argument."""
    text = _first(given, names.arguments["patch"]) or call.arguments
    yield from _patched(text if isinstance(text, str) else "", base)
    yield from _edit(call, given, names, base)


def _patched(text: str, base: str) -> Iterator[Access]:
    paths = dict.fromkeys(found[1].strip() for found in islice(_PATCHED.finditer(text), MAX_PATCHED))
    return (Access(path, True) for one in paths if (path := absolute(one, base)) is not None)


def _move(call: ToolCall, given: Mapping[str, object], names: Lexicon, base: str) -> Iterator[Access]:
    told = (given.get(key) for key in names.arguments["moved"])
    return (Access(path, True) for one in told if isinstance(one, str) and (path := absolute(one, base)) is not None)


_ACCESSES: Mapping[str, Callable[[ToolCall, Mapping[str, object], Lexicon, str], Iterator[Access]]] = {
    READ: _read, WRITE: _write, EDIT: _edit, PATCH: _patch, MOVE: _move,
}  # fmt: skip


def _asked(given: Mapping[str, object], names: Lexicon) -> tuple[int | None, int | None]:
    if len(given) < 2:
        return None, None
    both = _first(given, names.arguments["range"])
    if isinstance(both, (list, tuple)) and len(both) == 2:
        first, last = _number(both[0]), _number(both[1])
        return first, last if last is not None and last > 0 else None
    skipped, first, tail, last, count = (
        _number(_first(given, names.arguments[name])) for name in ("skipped", "first", "tail", "last", "count")
    )
    if tail is not None:
        return -abs(tail) or None, None
    first = skipped + 1 if skipped is not None else first
    if last is None and count is not None and (first is None or first >= 0):
        last = max(first or 1, 1) + count - 1
    return first, last if last is not None and last > 0 else None


def _number(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.lstrip("-").isdecimal() and len(value) < 10:
        return int(value)
    return int(value) if isinstance(value, (int, float)) and abs(value) < 1e9 else None


def _run(given: Mapping[str, object], names: Lexicon, base: str, moved: bool) -> Touch:
    """What a shell's commands do. Each call that says where it runs has a shell of its own."""
    own = _first(given, names.arguments["directory"])
    here = absolute(own, base) if isinstance(own, str) else "" if moved else base
    told = _commands(given, names)
    found = [access for command in told for access in _of_command(command, names.forms, here or "")]
    moves = own is None and any(commands.moves(command, names.forms, base) for command in told)
    return Touch(tuple(found if len(told) == 1 else (replace(one, alone=False) for one in found))[:MAX_PATHS], moves)


def _commands(given: Mapping[str, object], names: Lexicon) -> Sequence[str | Sequence[str]]:
    """The commands of a call: a text, a list of words, or several texts."""
    one, several = (_first(given, names.arguments[name]) for name in ("command", "commands"))
    if isinstance(one, str):
        return (one,)
    found = several if one is None else one
    if not isinstance(found, (list, tuple)) or not all(isinstance(word, str) for word in found) or not found:
        return ()
    return tuple(found[:MAX_PATHS]) if one is None else (tuple(found),)


def _of_command(command: str | Sequence[str], forms: Forms, here: str) -> Iterator[Access]:
    """What a command does to files; `here` is where it runs, empty if that is not known."""
    patch = commands.patch(command, forms)
    if patch is not None:
        base = absolute(patch[1], here) if patch[1] else here
        yield from (replace(access, shell=True) for access in _patched(patch[0], base or ""))
        return
    told = commands.told(command, forms)
    if told is None:
        return
    base = absolute(told.directory, here) if told.directory else here
    for part in told.parts:
        path = absolute(part.path, base or "")
        if path is not None:
            content = loose(part.content.encode("utf-8", "surrogatepass")) if part.content is not None else None
            yield Access(path, part.write, *part.lines, content, told.alone, True)
