"""What a command of a shell prints of files, and what it makes of them: told from its text, where that is plain.

Plain is a list of known programs with words that a shell takes as they stand. A variable, a pattern, a redirection, a
program that is not known: then nothing is told of the whole command, for it may do anything. Which programs are known
is data (`[shell]` in `reads.toml`); whether the command ran, and where, is left to others.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

MAX_COMMAND = 4096
MAX_SEARCHED = 1 << 16
# What a shell hands on as it stands: no variable, pattern, escape, history, tilde, brace or comment.
_WORD = r"""(?:'[^']*'|"[^"$`\\!]*"|[\w./:,+@%^=-])+"""
_TOKEN = re.compile(rf"(?P<gap>[ \t]+|\\\n)|(?P<operator>&&|;|\n|\|(?!\|))|(?P<word>{_WORD})")
_QUOTED = re.compile(r"""'([^']*)'|"([^"]*)\"""")
_LINES = re.compile(r"(\d{1,9})(?:,(\d{1,9}|\$))?p")
_MOVE = re.compile(r"(?<![\w./-])(?:cd|pushd|popd|chdir)(?![\w./-])")
_GOES = rf"\s*(?:cd +(?P<directory>{_WORD}) *&& *)?"
_PATCH = re.compile(rf"{_GOES}(?P<name>\w+)\s")
_HEREDOC = re.compile(
    rf"{_GOES}cat *"
    rf"""(?:> *(?P<file>{_WORD}) *<< *(?P<a>['"])(?P<end>\w+)(?P=a)"""
    rf"""|<< *(?P<b>['"])(?P<end2>\w+)(?P=b) *> *(?P<file2>{_WORD})) *\n"""
)
# What head and tail print if nobody says how much (POSIX).
_FEW = 10
Lines = tuple[int, int | None]
"""The first line, from the end if negative, and the last one, `None` for the end; both are included."""
ALL: Lines = (1, None)


@dataclass(frozen=True, slots=True)
class Program:
    """A program that prints files: its options without a value, with one, with a number of lines, with a script, and
    the one that has it change the files instead; `lines` says which it prints: all, the first, the last, or those that
    its script names, which is the first argument if it stands in no option; or none, for it takes the files away."""

    flags: str = ""
    values: str = ""
    count: str = ""
    script: str = ""
    edits: str = ""
    lines: str = "all"


@dataclass(frozen=True, slots=True)
class Forms:
    """What is known of shells: their names, programs that print files, those that print something else and change
    nothing, and those that apply a patch."""

    shells: tuple[str, ...]
    programs: Mapping[str, Program]
    harmless: tuple[str, ...]
    patches: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A file, as the command names it, and which lines of it are printed; or that it is written, and what it is made to
    hold if that is told."""

    path: str
    lines: Lines = ALL
    write: bool = False
    content: str | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What a command is known to do: the parts that it prints or writes, from which directory if it goes to one, and
    whether it prints nothing else than its only part."""

    parts: tuple[Part, ...]
    directory: str | None = None
    alone: bool = False


def script(command: str | Sequence[str], forms: Forms) -> str | None:
    """The text that a shell is given: a command as a text, or that in `["bash", "-lc", …]`; `None` where there is no
    shell in between."""
    if isinstance(command, str):
        return command
    inner = len(command) == 3 and posixpath.basename(command[0]) in forms.shells and command[1] in ("-c", "-lc")
    return command[2] if inner else None


def moves(command: str | Sequence[str], forms: Forms, home: str) -> bool:
    """Whether a shell that goes on after this command may be in another directory than `home`."""
    text = script(command, forms) or ""
    if len(text) > MAX_SEARCHED:
        return True
    found = [*islice(_MOVE.finditer(text), 2)]
    return bool(found) and not (len(found) == 1 and text.lstrip().startswith(f"cd {home} "))


def patch(command: str | Sequence[str], forms: Forms) -> tuple[str, str | None] | None:
    """The patch that a command applies, with what stands around it, and from which directory if it goes to one."""
    if not isinstance(command, str) and command and command[0] in forms.patches:
        return "\n".join(command[1:]), None
    text = script(command, forms) or ""
    found = _PATCH.match(text, 0, MAX_COMMAND)
    if found is None or found["name"] not in forms.patches or "*** Begin Patch" not in text:
        return None
    return text, _plain(found["directory"]) if found["directory"] else None


def written(command: str | Sequence[str], forms: Forms) -> Told | None:
    """The file that a command writes from a text of its own, and does nothing else: `cat > file <<'END'`."""
    text = (script(command, forms) or "").rstrip(" \n")
    found = _HEREDOC.match(text, 0, MAX_COMMAND)
    if found is None:
        return None
    end = f"\n{found['end'] or found['end2']}"
    body = text[found.end() - 1 :]
    if not body.endswith(end) or body.find(f"{end}\n") >= 0:
        return None
    part = Part(_plain(found["file"] or found["file2"]), ALL, True, body[1 : -len(end) + 1])
    return Told((part,), _plain(found["directory"]) if found["directory"] else None, True)


def told(command: str | Sequence[str], forms: Forms) -> Told | None:
    """What a command does to files; `None` if that is not plain."""
    return written(command, forms) or _printed(command, forms)


def _printed(command: str | Sequence[str], forms: Forms) -> Told | None:
    """What a command prints of files or changes in them, if it does nothing else than that."""
    text = script(command, forms)
    if len(command if text is None else text) > MAX_COMMAND:
        return None
    if text is None:
        return _told([([command], "")], forms)
    pipelines = _pipelines(text)
    words = pipelines[0][0][0] if pipelines else []
    if len(pipelines) == 1 and len(pipelines[0][0]) == 1 and script(words, forms) is not None:
        return _printed(words, forms)
    return _told(pipelines, forms)


Pipelines = Sequence[tuple[Sequence[Sequence[str]], str]]
"""The commands of each pipeline, as words, and the operator behind it."""


def _pipelines(text: str) -> Pipelines:
    """The pipelines of a script; none if anything in it is not plain."""
    found: list[tuple[Sequence[Sequence[str]], str]] = []
    stages: list[Sequence[str]] = []
    words: list[str] = []
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return ()
        at = token.end()
        if token["word"]:
            words.append(_plain(token["word"]))
        elif (operator := token["operator"]) and words:
            stages, words = [*stages, words], []
            if operator != "|":
                found.append((stages, operator))
                stages = []
        elif operator and operator != "\n":
            return ()
    if words:
        found.append(([*stages, words], ""))
    return found if words or not stages else ()


def _plain(word: str) -> str:
    return _QUOTED.sub(lambda quoted: quoted[1] or quoted[2] or "", word)


def _told(pipelines: Pipelines, forms: Forms) -> Told | None:
    directory = None
    if len(pipelines) > 1 and pipelines[0][1] == "&&" and _goes(pipelines[0][0]):
        directory, pipelines = pipelines[0][0][0][1], pipelines[1:]
    parts: list[Part] = []
    for stages, _ in pipelines:
        found = _of_pipeline(stages, forms)
        if found is None:
            return None
        parts += found
    return Told(tuple(parts), directory, len(parts) == len(pipelines) == 1) if parts else None


def _goes(stages: Sequence[Sequence[str]]) -> bool:
    return len(stages) == 1 and len(stages[0]) == 2 and stages[0][0] == "cd" and not stages[0][1].startswith("-")


def _of_pipeline(stages: Sequence[Sequence[str]], forms: Forms) -> Sequence[Part] | None:
    """What a pipeline prints of files; each command behind the first one chooses lines of what comes."""
    first, later = stages[0], [_asked(stage, forms) for stage in stages[1:]]
    chosen = [one.lines for one in later if one is not None and not one.paths and not one.write]
    if len(chosen) < len(later):
        return None
    if posixpath.basename(first[0]) in forms.harmless:
        return ()
    asked = _asked(first, forms)
    if asked is None or not asked.paths or (later and (len(asked.paths) > 1 or asked.write)):
        return None
    lines: Lines | None = asked.lines
    for one in chosen:
        lines = _within(lines, one) if lines is not None else None
    return [Part(path, lines, asked.write) for path in asked.paths] if lines is not None else None


def _within(lines: Lines, chosen: Lines) -> Lines | None:
    """Which lines of the file are these lines of those; not more than that where the file may be shorter."""
    (first, last), (start, end) = lines, chosen
    if ALL in (lines, chosen):
        return chosen if lines == ALL else lines
    if first < 0 or (start < 0 and last is None):
        return None
    if start < 0:
        return max(first, (last or 0) + start + 1), last
    ends = [one for one in (last, first + end - 1 if end is not None else None) if one is not None]
    return first + start - 1, min(ends, default=None)


@dataclass(frozen=True, slots=True)
class _Asked:
    """Which lines a command prints of which files, without files of its input; or that it changes the files."""

    lines: Lines
    paths: Sequence[str]
    write: bool = False


def _asked(words: Sequence[str], forms: Forms) -> _Asked | None:
    program = forms.programs.get(posixpath.basename(words[0]))
    if program is None:
        return None
    told = [*_options(words[1:], program)]
    options = {name: value for name, value in told if name}
    operands = [value for name, value in told if name == ""]
    if any(name is None for name, _ in told) or "-" in operands or "" in operands:
        return None
    if program.lines == "none":
        return _Asked(ALL, operands, True)
    if program.lines == "script":
        return _by_script(program, options, operands)
    lines = _counted(options.get(program.count), program)
    return _Asked(lines, operands) if lines is not None else None


def _by_script(program: Program, options: Mapping[str, str], operands: Sequence[str]) -> _Asked | None:
    text = options.get(program.script)
    paths = operands if text is not None else operands[1:]
    if program.edits in options:
        return _Asked(ALL, paths, True)
    text = operands[0] if text is None and operands else text
    # Of several files it makes one text, whose lines are counted through.
    lines = _scripted(text) if text is not None and "n" in options and len(paths) < 2 else None
    return _Asked(lines, paths) if lines is not None else None


def _options(words: Sequence[str], program: Program) -> Iterator[tuple[str | None, str]]:
    """Each option with its value, and each operand without a name; no name and no operand for what is not known."""
    left = iter(words)
    for word in left:
        if word == "--":
            yield from (("", one) for one in left)
        elif not word.startswith("-") or word == "-":
            yield "", word
        elif program.count and word[1:].isdecimal():
            yield program.count, word[1:]
        elif program.count and word.startswith("--lines="):
            yield program.count, word.removeprefix("--lines=")
        else:
            known = _cluster(word[1:], program)
            yield from ((name, next(left, "") if value is None else value) for name, value in known)


def _cluster(letters: str, program: Program) -> Iterator[tuple[str | None, str | None]]:
    """Options in one word, the last one with its value, `None` if that is the next word."""
    for at, letter in enumerate(letters):
        if letter in program.flags:
            yield letter, ""
            continue
        rest = letters[at + 1 :]
        if letter == program.edits:
            yield letter, rest
        elif letter in program.values or letter in (program.count, program.script):
            yield letter, rest or None
        else:
            yield None, ""
        return


def _scripted(text: str) -> Lines | None:
    """The lines of `1,50p`."""
    found = _LINES.fullmatch(text)
    if found is None:
        return None
    first, last = int(found[1]), found[2]
    if first < 1 or (last not in (None, "$") and int(last) < first):
        return None
    return first, None if last == "$" else int(last or first)


def _counted(count: str | None, program: Program) -> Lines | None:
    if program.lines == "all":
        return ALL
    if program.lines == "last" and count is not None and count.startswith("+"):
        return (max(1, int(count[1:])), None) if count[1:].isdecimal() else None
    number = int(count) if count is not None and count.isdecimal() and len(count) < 10 else None
    if count is None:
        number = _FEW
    if not number:
        return None
    return (1, number) if program.lines == "first" else (-number, None)
