"""Whether the rules files on disk are what the prompt says: the current text, an older one, or nothing of it.

Exact after normalisation, line by line, because clients wrap, cut and indent what they inject. Reading the files is
left to `files`; where in a request rules may stand, to the caller.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from otel_context_ledger.correctness.sense import normal
from otel_context_ledger.model import UNKNOWN, Check, Findings

MAX_LISTED = 8
MAX_VERSIONS = 8
MEMO_TEXTS, MEMO_SECTIONS = 256, 4096
MAX_SHARES = 64
# The share of a version's lines from which on a text holds the file, in this version or another.
STALE_AT = 0.5
SHORT_LINE = 4
SHORT_SECTION = 20
_SECTION = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]+|<)"
    r"(?:(?P<mcp_instructions>mcp[ _-]?(?:server[ _-]?)?instructions)|(?P<memory>memor(?:y|ies)))\b[^\n]{0,80}?(?:>|$)",
    re.IGNORECASE | re.MULTILINE,
)
_HEADING = re.compile(r"^[ \t]*#{1,6}[ \t]|</?[A-Za-z_][\w-]*>", re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
# A line that names another file: clients put that file in its place, or beside it.
_IMPORT = re.compile(r"@\S+")


@dataclass(frozen=True, slots=True)
class Version:
    """One state of a rules file: its lines after normalisation, and when it was first seen and replaced (seconds)."""

    lines: tuple[str, ...]
    since: float
    until: float | None = None

    def takes_in(self, other: Version) -> bool:
        """Whether it says all that the other one does, and more: some of it was taken out of the file."""
        return len(self.lines) > len(other.lines) and set(self.lines) > set(other.lines)


@dataclass(frozen=True, slots=True)
class RulesFile:
    """A rules file with the states that it was seen in, the current one last. `name` is relative to the project.
    `wanted`: the user named it; of those that were only found, clients send the ones they know. `text` is what it says
    now."""

    name: str
    versions: tuple[Version, ...] = field(default=())
    wanted: bool = False
    text: str = field(default="", compare=False, repr=False)

    @property
    def current(self) -> Version:
        """The state on disk now."""
        return self.versions[-1]

    def changed(self, text: str, now: float) -> RulesFile:
        """The file with what it says now, if that is anything new."""
        told = lines(text)
        if self.versions and self.current.lines == told:
            return self
        old = [*self.versions[:-1], Version(self.current.lines, self.current.since, now)] if self.versions else []
        return RulesFile(self.name, (*old[1 - MAX_VERSIONS :], Version(told, now)), self.wanted, text)


def lines(text: str) -> tuple[str, ...]:
    """The lines of a text that say something, without markup, case, spacing, a byte order mark, the comments that some
    clients drop and the imports that some resolve."""
    said = _COMMENT.sub("", text) if "<!--" in text else text
    told = (normal(raw).lstrip("\ufeff#-> ") for raw in said.splitlines())
    return tuple(line for line in told if len(line) >= SHORT_LINE and not _IMPORT.fullmatch(line))


@dataclass(frozen=True, slots=True)
class Standing:
    """How one rules file stands in what was sent: consistent, stale, missing, or cut (its beginning alone, which may be
    an older version too); `since` is when it became stale (seconds), `copies` how often it was sent, in any version."""

    name: str
    verdict: str
    since: float | None = None
    copies: int = 0


def sections(text: str) -> Iterator[tuple[str, int]]:
    """What a text injects under a known heading or tag: its name (`mcp_instructions`, `memory`), and a hash of what it
    says in normal form."""
    for begin in _SECTION.finditer(text):
        end = _HEADING.search(text, begin.end())
        said = normal(text[begin.end() : end.start() if end else len(text)])
        if len(said) >= SHORT_SECTION:
            yield begin.lastgroup or "", hash(said)


class _Read:
    """A sent text as the lines that it says, how often each, with the share that it holds of each version it was asked
    for."""

    __slots__ = ("_lines", "_shares")

    def __init__(self, text: str) -> None:
        self._lines = Counter(lines(text))
        self._shares: dict[int, tuple[Version, float]] = {}

    def share(self, version: Version) -> float:
        """The share of a version's lines that it holds, weighed by their length."""
        known = self._shares.get(id(version))
        if known is not None and known[0] is version:
            return known[1]
        if len(self._shares) >= MAX_SHARES:
            self._shares.clear()
        total = sum(map(len, version.lines))
        found = sum(len(line) for line in version.lines if line in self._lines) / total if total else 0.0
        self._shares[id(version)] = version, found
        return found

    def times(self, version: Version) -> int:
        """How often it holds a version: as often as the rarest of its lines that are there."""
        if self.share(version) < STALE_AT:
            return 0
        return min(self._lines[line] for line in version.lines if line in self._lines)

    def begins(self, version: Version) -> bool:
        """Whether of the version's lines it holds the first ones, half of it or more, and none after them."""
        if self.share(version) < STALE_AT:
            return False
        there = [line in self._lines for line in version.lines]
        return there == sorted(there, reverse=True)


class Policy:
    """Holds rules files against sent texts. A text is taken apart once, whatever the number of files and calls."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, _Read] = OrderedDict()
        self._sections: OrderedDict[bytes, tuple[tuple[str, int], ...]] = OrderedDict()

    def stand(self, files: Sequence[RulesFile], sent: Sequence[tuple[bytes, str]]) -> tuple[Standing, ...]:
        """How each file stands in the texts that were sent, each given with a digest that names it. One that was only
        found and is missing beside another that is there is left out: it is for another client."""
        told = [self._read(key, text) for key, text in sent]
        found = [(file, _standing(file, told)) for file in files if file.versions and file.current.lines]
        some = any(standing.verdict != "missing" for _, standing in found)
        return tuple(one for file, one in found if one.verdict != "missing" or file.wanted or not some)

    def repeated(self, sent: Sequence[tuple[bytes, str]]) -> Mapping[str, int]:
        """How often sections that say the same were injected, by name; those that were injected once are left out."""
        told = Counter(section for key, text in sent for section in self._injected(key, text))
        found: dict[str, int] = {}
        for (name, _), times in told.items():
            if times > 1:
                found[name] = max(times, found.get(name, 0))
        return found

    def _injected(self, key: bytes, text: str) -> tuple[tuple[str, int], ...]:
        found = self._sections.get(key)
        if found is None:
            found = self._sections[key] = tuple(sections(text))
            while len(self._sections) > MEMO_SECTIONS:
                self._sections.popitem(last=False)
        return found

    def bears(self, files: Sequence[RulesFile], key: bytes, text: str) -> bool:
        """Whether a text holds one of the files, in any version."""
        read = self._read(key, text)
        return any(read.share(version) >= STALE_AT for file in files for version in file.versions)

    def _read(self, key: bytes, text: str) -> _Read:
        found = self._known.pop(key, None)
        if found is None:
            found = _Read(text)
        self._known[key] = found
        while len(self._known) > MEMO_TEXTS:
            self._known.popitem(last=False)
        return found


def _standing(file: RulesFile, sent: Sequence[_Read]) -> Standing:
    now = file.current
    copies = sum(max(map(text.times, file.versions)) for text in sent)
    if not copies:
        return Standing(file.name, "missing")
    longer = [version for version in file.versions if version.takes_in(now)]
    whole = (text for text in sent if text.share(now) == 1.0)
    if any(all(text.share(version) < 1.0 for version in longer) for text in whole):
        return Standing(file.name, "consistent", copies=copies)
    seen = any(text.share(version) == 1.0 for text in sent for version in file.versions)
    cut = not seen and any(text.begins(now) for text in sent)
    return Standing(file.name, "cut", copies=copies) if cut else Standing(file.name, "stale", now.since, copies)


_NONE: Mapping[str, int] = {}
_VERDICTS = (("stale", "stale"), ("missing", "missing"), ("cut", UNKNOWN))


def judge(standings: Sequence[Standing], now: float, repeated: Mapping[str, int] = _NONE) -> Check:
    """The verdict on all rules files together; without any it is unknown. `repeated` are other injections, by name."""
    copies = [f"copies={s.name}:{s.copies}" for s in standings if s.copies > 1]
    copies += [f"copies={name}:{times}" for name, times in repeated.items()]
    detail = ("duplicated",) if copies else ()
    if not standings:
        return Check(UNKNOWN, Findings(detail, (), ("reason=no_rules_files", *copies)))
    told_of = {s.verdict for s in standings}
    verdict = next((said for word, said in _VERDICTS if word in told_of), "consistent")
    wrong = [s for s in standings if s.verdict != "consistent"]
    told = [f"{s.verdict}={s.name}{'' if s.since is None else f':{max(0.0, now - s.since):.0f}s'}" for s in wrong]
    counts = [f"files={len(standings)}"]
    counts += [f"{word}={n}" for word, _ in _VERDICTS if (n := sum(s.verdict == word for s in wrong))]
    return Check(verdict, Findings(detail, tuple(counts), tuple((*told, *copies)[:MAX_LISTED])))
