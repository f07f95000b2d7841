"""Whether declared constraints stand in a text: word for word, in other words, negated, or not at all.

A verdict never rests on a string that merely differs: what may be there in other words is `uncertain`, and how it was
matched and how surely is said. Where the texts come from (live context, rules files, summaries) is left to the callers.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Protocol

from rapidfuzz import fuzz, process

from otel_context_ledger.model import Check, Findings

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MAX_TEXT = 1 << 18
"""Characters of one text that are compared in other words; word for word all of it is looked through."""
MAX_LISTED = 16
HELD_AT = 0.94
UNCERTAIN_AT = 0.72
# How the weaker signs are valued: the same polarity about the same rare words, and a mere mention of them.
SAME_SENSE, MENTIONED = 0.6, 0.3
# The same words after a negation: "never" before them may still belong to something else.
SAID_AGAINST = 0.8
MAX_PLACES = 16
MAX_LEAD = 60

_WORD = re.compile(r"[\w./:-]*\w[/]?")
_SAID = re.compile(r"[\w'./-]+")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_BORDER = re.compile(r"(?<=[.!?;])\s+|\n+(?=\s*[^\sa-z])")
_MARKUP = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "`": "", "*": "", "_": " ", "–": "-", "—": "-"})
_WORDS = tomllib.loads(resources.files(__package__).joinpath("words.toml").read_text("utf-8"))
_NEGATIONS, _LIGHT = frozenset(_WORDS["negations"]), frozenset(_WORDS["light"])


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
    sense, mention, none), and how surely, 0 to 1."""

    verdict: str
    matcher: str
    confidence: float


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
    def sentences(self) -> list[str]:
        """Its sentences and lines in normal form, those of the first 2^18 characters."""
        return [found for sentence in _SENTENCE.split(self[:MAX_TEXT]) if (found := normal(sentence))]

    @cached_property
    def starts(self) -> list[int]:
        """Where in its normal form something new may begin: after the end of a sentence, and at a line that does not go
        on with the one before, such as an item of a list."""
        found, at = [0], 0
        for part in _BORDER.split(self[:MAX_TEXT]):
            if told := normal(part):
                found.append(at)
                at += len(told) + 1
        return found

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
        """Exact after normalisation, else the most similar sentence, else the constraint's rare words with the same
        polarity, else a mention of them."""
        told = text if isinstance(text, Text) else Text(text)
        wanted, found = normal(constraint.text), told.normal
        if wanted and (places := list(_places(wanted, found))):
            negated = all(negative(_lead(found, at)) and negative(_lead(found, at, told.starts)) for at in places)
            return Match("negated", "exact", SAID_AGAINST) if negated else Match("held", "exact", 1.0)
        return _reworded(wanted, _terms(constraint, wanted), told)


def stands(constraint: Constraint, text: str) -> bool:
    """Whether a constraint stands in a text as it is written and nothing before it may turn it round, at the cost of
    looking for it."""
    at = text.find(constraint.text) if constraint.text else -1
    end = at + len(constraint.text)
    if at < 0 or text[at - 1 : at].isalnum() or text[end : end + 1].isalnum():
        return False
    return not negative(normal(text[max(0, at - MAX_LEAD) : at].rpartition("\n")[2]))


def normal(text: str) -> str:
    """A text without markup, case and differences of spacing; what two spellings of the same words have in common."""
    return " ".join(text.translate(_MARKUP).casefold().split())


def vocabulary(table: str) -> Mapping[str, Sequence[str]]:
    """A table of `words.toml`: lists of words by what they say."""
    return {name: tuple(words) for name, words in _WORDS[table].items()}


def _places(wanted: str, found: str) -> Iterator[int]:
    """Where a text stands in another, whole words only."""
    at = found.find(wanted)
    for _ in range(MAX_PLACES):
        if at < 0:
            return
        if not (found[at - 1 : at].isalnum() or found[at + len(wanted) :][:1].isalnum()):
            yield at
        at = found.find(wanted, at + 1)


def _lead(found: str, at: int, starts: Sequence[int] = (0,)) -> str:
    """What stands before a place in the same sentence."""
    begun = starts[bisect_right(starts, at) - 1]
    return re.split(r"[.!?;:]\s", found[max(begun, at - MAX_LEAD) : at])[-1]


def _reworded(wanted: str, terms: frozenset[str], told: Text) -> Match:
    if not wanted or not told.sentences:
        return Match("lost", "none", 1.0)
    against = negative(wanted)
    best = process.extractOne(_in_order(wanted), told.sorted_sentences, scorer=fuzz.ratio)
    score = round(best[1] / 100, 4) if best else 0.0
    if best is not None and score >= UNCERTAIN_AT:
        if negative(told.sentences[best[2]]) != against:
            return Match("negated" if score >= HELD_AT else "uncertain", "wording", round(score, 2))
        return Match("held" if score >= HELD_AT else "uncertain", "wording", round(score, 2))
    about = [told.sentences[at] for at, words in enumerate(told.words) if terms and terms <= words]
    if any(negative(sentence) == against for sentence in about):
        return Match("uncertain", "sense", SAME_SENSE)
    return Match("uncertain", "mention", MENTIONED) if about else Match("lost", "none", round(1 - score, 2))


def _terms(constraint: Constraint, wanted: str) -> frozenset[str]:
    """Words that a rewording would have to keep: those given, else paths and identifiers, else the longest rare one."""
    if constraint.terms:
        return frozenset(word.rstrip("/") for term in constraint.terms for word in normal(term).split())
    words = [word for word in _WORD.findall(wanted) if word not in _LIGHT and word not in _NEGATIONS]
    named = frozenset(word.rstrip("/") for word in words if re.search(r"[/._\d-]", word.strip(".")))
    return named or frozenset(sorted((word.rstrip("/") for word in words), key=len)[-1:])


def negative(sentence: str) -> bool:
    """An odd number of negating words."""
    return sum(word in _NEGATIONS for word in re.findall(r"[\w'-]+", sentence)) % 2 == 1


def _in_order(sentence: str) -> str:
    """The words of a sentence in their alphabet, without negating words and the auxiliary `do`, so that neither its
    order nor its sense makes it another one."""
    return " ".join(sorted(word for word in _SAID.findall(sentence) if word not in _NEGATIONS and word != "do"))


@dataclass(frozen=True, slots=True)
class Recall:
    """How each declared constraint stands in one text or context: matches by id, and who judged."""

    matches: Mapping[str, Match]
    validator: str

    @property
    def kept(self) -> int:
        """Constraints that are held; what is uncertain is not counted as kept."""
        return sum(match.verdict == "held" for match in self.matches.values())


def recall(constraints: Sequence[Constraint], texts: Iterable[str], validator: Validator) -> Recall:
    """How each constraint stands in a context of several texts: the best match among them."""
    looked = [Text(text) for text in texts if text]
    found = {c.id: max((validator.match(c, text) for text in looked), key=rank, default=NOWHERE) for c in constraints}
    return Recall(found, f"{validator.name}@{validator.version}")


NOWHERE = Match("lost", "none", 1.0)
VERDICTS = ("lost", "negated", "uncertain", "held")


def rank(match: Match) -> tuple[int, float]:
    """How good a match is, to be compared with others."""
    return VERDICTS.index(match.verdict), match.confidence


def judge(constraints: Sequence[Constraint], found: Recall) -> Check:
    """The verdict on all constraints together. One that was superseded need not be there; that it stands there while
    its successor does not is the worst of all, because the model will follow it."""
    replaced = {c.supersedes: c.id for c in constraints if c.supersedes}
    live = [c for c in constraints if c.id not in replaced]
    revived = [
        old for old, new in replaced.items() if _stands(found.matches.get(old)) and not _stands(found.matches.get(new))
    ]
    gone = [c.id for c in live if found.matches[c.id].verdict in ("lost", "negated")]
    unsure = [c.id for c in live if found.matches[c.id].verdict == "uncertain"]
    told = [f"revived={name}" for name in revived] + [_said(name, found.matches[name]) for name in (*gone, *unsure)]
    verdict = "superseded_revived" if revived else "lost" if gone else "uncertain" if unsure else "held"
    counts = (f"declared={len(live)}", f"lost={len(gone)}", f"uncertain={len(unsure)}")
    detail = ("negated",) if any(found.matches[name].verdict == "negated" for name in gone) else ()
    return Check(verdict, Findings(detail, counts, (f"validator={found.validator}", *told[:MAX_LISTED])))


def _stands(match: Match | None) -> bool:
    return match is not None and match.verdict == "held"


def _said(name: str, match: Match) -> str:
    return f"{match.verdict}={name}:{match.matcher}:{match.confidence:.2f}"
