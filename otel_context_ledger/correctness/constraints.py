"""Whether declared constraints stand in a text: word for word, in other words, negated, or not at all.

A verdict never rests on a string that merely differs: what may be there in other words is `uncertain`, and how it was
matched and how surely is said. Where the texts come from (live context, rules files, summaries) is left to the callers.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Protocol

from rapidfuzz import fuzz, process

from otel_context_ledger.correctness.sense import (
    FILLERS,
    LIGHT,
    NEGATIONS,
    clause,
    narrowed,
    negative,
    normal,
    revoked,
    unspaced,
)
from otel_context_ledger.model import Check, Findings

MAX_TEXT = 1 << 18
"""Characters of one text that are compared in other words; word for word all of it is looked through."""
MAX_SENTENCES = 1 << 13
MAX_LISTED = 16
# Percent of similarity from where on a sentence may say the same.
ENOUGH = 72
# How the weaker signs are valued: the same words but for fillers, other numbers in them, the same polarity about the
# same rare words, a mere mention of them.
SAME_WORDS, OTHER_NUMBER, SAME_SENSE, MENTIONED = 0.95, 0.8, 0.6, 0.3
# The same words after a negation: "never" before them may still belong to something else, and more so in a clause of
# its own. Words around that take them back may do so too.
SAID_AGAINST, IN_DOUBT = 0.8, 0.5
MAX_PLACES = 16
MAX_AROUND = 60
MAX_ABOVE = 600
MAX_CANDIDATES = 5
MAX_PARTS = 12
# Rare words that stand in neighbouring sentences, as in a list, are one mention.
NEAR = 5
MIN_KIN = 4
# Characters from where on a line may be one that was wrapped.
WRAPPED_AT = 50

_WORD = re.compile(r"[\w./:-]*\w[/]?")
_SAID = re.compile(r"[\w'./-]+")
_BORDER = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+(?=\s*[^\sa-z])")
_ENDING = re.compile(r"[.!?;:]\s|[。！？；：]")
_ENDED = re.compile(r"[.!?;](?:\s|$)|[。！？；]")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d+[.)])\s")
_NUMBER = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Constraint:
    """What must stay in the context: a rule, the goal or a todo (`kind`). `supersedes` is the id of the one that it
    replaces; `terms` are words that no rewording can do without, found in `text` when none are given."""

    id: str
    text: str
    supersedes: str | None = None
    severity: str = "high"
    terms: tuple[str, ...] = ()
    kind: str = "rule"


@dataclass(frozen=True, slots=True)
class Match:
    """How a constraint stands in a text: `held`, `uncertain`, `negated` or `lost`; by which matcher (exact, wording,
    context, number, parts, sense, mention, unseen, none), and how surely, 0 to 1."""

    verdict: str
    matcher: str
    confidence: float


NOWHERE = Match("lost", "none", 1.0)
# It may stand in what was not looked through.
UNSEEN = Match("uncertain", "unseen", 0.0)


class Validator(Protocol):
    """What tells whether a constraint stands in a text. Name and version are written into every entry it judged."""

    @property
    def name(self) -> str:
        """What it is called; no `@`."""

    @property
    def version(self) -> str:
        """Changes whenever its verdicts may."""

    def match(self, constraint: Constraint, text: str) -> Match:
        """How `constraint` stands in `text`; must not keep the text."""


class Text(str):
    """A text that is looked through for many constraints: its normal form and its sentences are made once."""

    @cached_property
    def normal(self) -> str:
        """All of it in normal form."""
        return normal(self)

    @cached_property
    def parts(self) -> list[tuple[str, str]]:
        """Its sentences and lines in normal form, those of the first 2^18 characters and at most 2^13, each with the
        heading above it or the line that its list begins with. A line that goes on with the one before is no new
        sentence."""
        found, heading, introduced = [], "", False
        borders = _BORDER.split(self[:MAX_TEXT], MAX_SENTENCES)[:MAX_SENTENCES]
        for raw in islice(chain.from_iterable(map(_unwrapped, borders)), MAX_SENTENCES):
            told, titled = normal(raw), raw.lstrip().startswith("#")
            if introduced and not _ITEM.match(raw):
                heading, introduced = "", False
            found += [(told, heading)] if told else []
            if titled or told.endswith((":", "：")):
                heading, introduced = told, not titled
        return found

    @property
    def cut(self) -> bool:
        """Whether there may be more of it than is compared in other words."""
        return len(self) > MAX_TEXT or len(self.parts) >= MAX_SENTENCES

    @cached_property
    def sentences(self) -> list[str]:
        """What its sentences and lines say, in normal form."""
        return [told for told, _ in self.parts]

    @cached_property
    def starts(self) -> list[int]:
        """Where in its normal form each of its sentences begins."""
        found, at = [], 0
        for told in self.sentences:
            found.append(at)
            at += len(told)
            at += self.normal.startswith(" ", at)  # none after the full stop of a script without spaces
        return found or [0]

    @cached_property
    def sorted_sentences(self) -> list[str]:
        """What is compared in any order of words: each sentence affirmed, its words sorted."""
        return [_in_order(sentence) for sentence in self.sentences]

    @cached_property
    def words(self) -> list[frozenset[str]]:
        """The words of each sentence."""
        return [frozenset(word.rstrip("/") for word in _WORD.findall(sentence)) for sentence in self.sentences]


@dataclass(frozen=True, slots=True)
class Wording:
    """The validator that ships: words and their order, no model. It knows no synonyms and says so by `uncertain`."""

    name: str = "wording"
    version: str = "1"

    def match(self, constraint: Constraint, text: str) -> Match:
        """Word for word after normalisation; else, of a constraint of several sentences, each of them; else the most
        similar sentence; else the constraint's rare words with the same polarity; else a mention of them."""
        told = text if isinstance(text, Text) else Text(text)
        wanted = normal(constraint.text)
        if not wanted or not told.normal:
            return NOWHERE
        places = [_placed(told, at, len(wanted), constraint.kind) for at in _places(wanted, told.normal)]
        found = max(places, key=rank) if places else _in_other_words(constraint, wanted, told)
        return UNSEEN if found.verdict == "lost" and told.cut else found


def stands(constraint: Constraint, text: str) -> bool:
    """Whether a constraint stands in a text as it is written and nothing around it may turn it round or take it back,
    at the cost of looking for it."""
    at = text.find(constraint.text) if constraint.text else -1
    for _ in range(MAX_PLACES):
        if at < 0:
            return False
        end = at + len(constraint.text)
        above = text.rfind("\n", 0, max(0, at - MAX_ABOVE)) + 1
        found = Wording().match(constraint, text[max(above, at - 2 * MAX_ABOVE) : end + 2 * MAX_AROUND])
        if (found.verdict, found.matcher) == ("held", "exact"):
            return True
        at = text.find(constraint.text, end)
    return False


def _unwrapped(raw: str) -> Iterator[str]:
    """The lines of what has no full stop: one goes on with a line before it that was long, or that cannot end there."""
    lines: list[str] = []
    for line in raw.split("\n"):
        last = normal(lines[-1]) if lines else ""
        if lines and len(last) < WRAPPED_AT and not last.endswith(",") and not negative(last.rpartition(" ")[2]):
            yield "\n".join(lines)
            lines = []
        lines.append(line)
    yield "\n".join(lines)


def _places(wanted: str, found: str) -> Iterator[int]:
    """Where a text stands in another, whole words only where the script sets spaces between them."""
    at = found.find(wanted)
    for _ in range(MAX_PLACES):
        if at < 0:
            return
        end = at + len(wanted)
        if not (_joins(found[at - 1 : at], wanted[0]) or _joins(found[end : end + 1], wanted[-1])):
            yield at
        at = found.find(wanted, at + 1)


def _joins(beside: str, letter: str) -> bool:
    return beside.isalnum() and letter.isalnum() and not (unspaced(beside) and unspaced(letter))


def _placed(told: Text, at: int, length: int, kind: str) -> Match:
    """How a constraint stands where its words are, by what is said around them in the same sentence and above it. How
    far work is says nothing against it."""
    found, number = told.normal, bisect_right(told.starts, at) - 1
    before = found[max(told.starts[number], at - MAX_AROUND) : at]
    rest = _ENDED.split(found[at + length : at + length + MAX_AROUND])[0]
    asked = found[at + length + len(rest) :].startswith(("?", "？"))
    rest = rest[: max(0, told.starts[number + 1] - at - length)] if number + 1 < len(told.starts) else rest
    lead = _ENDING.split(before)[-1]
    against = kind == "rule" and any(map(revoked, (before, rest, told.parts[number][1])))
    if against or before.endswith("~~") or narrowed(rest) or asked or negative(lead) != negative(clause(lead)):
        return Match("uncertain", "context", IN_DOUBT)
    return Match("negated", "exact", SAID_AGAINST) if negative(lead) else Match("held", "exact", 1.0)


def _in_other_words(constraint: Constraint, wanted: str, told: Text) -> Match:
    """The parts of a constraint, or all of it, in other words: what is better of the two."""
    parts = Text(constraint.text).sentences
    whole = _reworded(wanted, _terms(constraint, wanted), told)
    if not 1 < len(parts) <= MAX_PARTS or whole.verdict == "held":
        return whole
    found = [Wording().match(Constraint(constraint.id, part, kind=constraint.kind), told) for part in parts]
    verdicts = {match.verdict for match in found}
    if len(verdicts) == 1 and verdicts != {"lost"}:
        return Match(verdicts.pop(), "parts", min(match.confidence for match in found))
    there = sum(match.verdict in ("held", "uncertain") for match in found)
    share = Match("uncertain", "parts", round(there / len(found), 2))
    return max(whole, share, key=rank) if there else whole


def _reworded(wanted: str, terms: AbstractSet[str], told: Text) -> Match:
    near = process.extract(
        _in_order(wanted), told.sorted_sentences, scorer=fuzz.ratio, limit=MAX_CANDIDATES, score_cutoff=1
    )
    found = {at: _compared(wanted, told.sentences[at], score / 100) for _, score, at in near if score >= ENOUGH}
    held = next((match for match in found.values() if match.verdict == "held"), None)
    similar = held or next((match for match in found.values() if match.matcher != "number"), None)
    if similar is not None:
        return similar
    best = Match("lost", "none", round(1 - near[0][1] / 100 if near else 1.0, 2))
    return _mentioned(terms, wanted, told, found) or next(iter(found.values()), best)


def _compared(wanted: str, sentence: str, score: float) -> Match:
    """What a similar sentence says: only the very words in their order are held, only other numbers among them or a
    negation are against it."""
    mine, theirs = _loose(wanted), _loose(sentence)
    if mine == theirs:
        asked = sentence.endswith(("?", "？"))
        return Match("uncertain", "wording", IN_DOUBT) if asked else Match("held", "wording", SAME_WORDS)
    if negative(wanted) != negative(sentence):
        same = _affirmed(mine) == _affirmed(theirs)
        return Match("negated" if same else "uncertain", "wording", round(score, 2))
    if _numbers_alone_differ(mine, theirs):
        return Match("lost", "number", OTHER_NUMBER)
    return Match("uncertain", "wording", round(score, 2))


def _loose(sentence: str) -> tuple[str, ...]:
    """The words of a sentence in their order, without what may be there or not."""
    words = (word.strip("./-'") or word for word in _SAID.findall(sentence.replace("-", " ")))
    return tuple(word for word in words if word not in FILLERS)


def _affirmed(words: tuple[str, ...]) -> list[str]:
    return [word for word in words if word not in NEGATIONS and word != "do"]


def _numbers_alone_differ(mine: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    """Whether two sentences are the same but for numbers of another value."""
    other = [(a, b) for a, b in zip(mine, theirs, strict=False) if a != b]
    if len(mine) != len(theirs) or not all(_NUMBER.fullmatch(word) for pair in other for word in pair):
        return False
    return any(float(a.replace(",", "")) != float(b.replace(",", "")) for a, b in other)


def _mentioned(terms: AbstractSet[str], wanted: str, told: Text, apart: Collection[int]) -> Match | None:
    """Whether all of the rare words stand in one sentence, or in one and its neighbours; sentences that say the same of
    other numbers are set apart, where no other one has the constraint's."""
    numbers = {word for word in _loose(wanted) if _NUMBER.fullmatch(word)} if apart else set()
    known = [{term for term in terms if _has(words, term)} for words in told.words]
    others = [at for at in range(len(known)) if at not in apart]
    about = [told.sentences[at] for at in others if terms and known[at] == terms]
    if any(negative(sentence) == negative(wanted) for sentence in about):
        return Match("uncertain", "sense", SAME_SENSE)
    close = len(terms) > 1 and any(set().union(*known[at : at + NEAR]) == terms for at in others if known[at])
    named = bool(numbers) and any(not numbers.isdisjoint(told.words[at]) for at in others)
    return Match("uncertain", "mention", MENTIONED) if about or close or named else None


def _has(words: frozenset[str], term: str) -> bool:
    """Whether a word is there, or one of its kin (deployment, deploying). A name is there as it is, or as the end of a
    path."""
    if term in words or any(word.endswith(f"/{term}") for word in words):
        return True
    return term.isalpha() and any(word.startswith(term[:MIN_KIN]) and _kin(word, term) for word in words)


def _kin(one: str, other: str) -> bool:
    shared = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return shared >= MIN_KIN and shared >= 0.55 * max(len(one), len(other))


def _terms(constraint: Constraint, wanted: str) -> frozenset[str]:
    """Words that a rewording would have to keep: those given, else paths and identifiers, else the longest rare one."""
    if constraint.terms:
        return frozenset(word.rstrip("/") for term in constraint.terms for word in normal(term).split())
    words = [word for word in _WORD.findall(wanted) if word not in LIGHT and word not in NEGATIONS]
    names = (word for word in words if re.search(r"[/._\d-]", word.strip(".")) and not _NUMBER.fullmatch(word))
    named = frozenset(word.rstrip("/") for word in names)
    return named or frozenset(sorted((word.rstrip("/") for word in words), key=len)[-1:])


def _in_order(sentence: str) -> str:
    """The words of a sentence in their alphabet, without negating words and the auxiliary `do`, so that neither its
    order nor its sense makes it another one."""
    return " ".join(sorted(word for word in _SAID.findall(sentence) if word not in NEGATIONS and word != "do"))


@dataclass(frozen=True, slots=True)
class Recall:
    """How each declared constraint stands in one text or context: matches by id, and who judged."""

    matches: Mapping[str, Match]
    validator: str


VERDICTS = ("lost", "negated", "uncertain", "held")


def rank(match: Match) -> tuple[int, float]:
    """How good a match is, to be compared with others."""
    return VERDICTS.index(match.verdict), match.confidence


def judge(constraints: Sequence[Constraint], found: Recall) -> Check:
    """The verdict on all constraints together. One that was superseded need not be there; that it stands there while
    nothing that may be its successor does is the worst of all, because the model will follow it."""
    after = successors(constraints)
    verdicts = {c.id: found.matches[c.id].verdict for c in constraints}
    live = [c.id for c in constraints if c.id not in after]
    gone = [name for name in live if verdicts[name] in ("lost", "negated")]
    unsure = [name for name in live if verdicts[name] == "uncertain"]
    revived = [old for old, new in after.items() if verdicts[old] == "held" and verdicts[new] in ("lost", "negated")]
    told = [f"revived={name}" for name in revived] + [_said(name, found.matches[name]) for name in (*gone, *unsure)]
    verdict = "superseded_revived" if revived else "lost" if gone else "uncertain" if unsure else "held"
    counts = (f"declared={len(live)}", f"lost={len(gone)}", f"uncertain={len(unsure)}")
    detail = ("negated",) if any(verdicts[name] == "negated" for name in gone) else ()
    return Check(verdict, Findings(detail, counts, (f"validator={found.validator}", *told[:MAX_LISTED])))


def successors(constraints: Iterable[Constraint]) -> Mapping[str, str]:
    """The last successor of each constraint that was superseded, both declared. Of some that supersede each other the
    one that was declared last is in force."""
    told = tuple(constraints)
    declared = {one.id for one in told}
    direct: dict[str, str] = {}
    for one in told:
        if one.supersedes in declared and one.supersedes != one.id:
            if one.supersedes in _line(direct, one.id):
                del direct[one.id]
            direct[one.supersedes] = one.id
    return {old: _line(direct, old)[-1] for old in direct}


def _line(direct: Mapping[str, str], name: str) -> list[str]:
    """A constraint and those that superseded it, one after the other."""
    found = [name]
    while found[-1] in direct:
        found.append(direct[found[-1]])
    return found


def _said(name: str, match: Match) -> str:
    return f"{match.verdict}={name}:{match.matcher}:{match.confidence:.2f}"
