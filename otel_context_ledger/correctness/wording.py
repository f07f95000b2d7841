"""The validator that ships: whether a constraint stands in a text by its words, in other words, negated, or not at all.

A verdict never rests on a string that merely differs: what may be there in other words is `uncertain`, and how it was
matched and how surely is said. Only its own words are held, for one other word may be the opposite.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from rapidfuzz import fuzz, process

from otel_context_ledger.correctness.constraints import NOWHERE, UNSEEN, Constraint, Match, rank
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
from otel_context_ledger.correctness.text import SAID, WORD, Text, in_order

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
_ENDING = re.compile(r"[.!?;:]\s|[。！？；：]")
_ENDED = re.compile(r"[.!?;](?:\s|$)|[。！？；]")
_NUMBER = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?")


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
        in_order(wanted), told.sorted_sentences, scorer=fuzz.ratio, limit=MAX_CANDIDATES, score_cutoff=1
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
    words = (word.strip("./-'") or word for word in SAID.findall(sentence.replace("-", " ")))
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
    about = [at for at in others if terms and known[at] == terms]
    if any(negative(told.sentences[at]) == negative(wanted) for at in about):
        return Match("uncertain", "sense", SAME_SENSE)
    about = [at for at in about if terms <= told.words[at]]  # of the other polarity, a word's kin is another word
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
    words = [word for word in WORD.findall(wanted) if word not in LIGHT and word not in NEGATIONS]
    names = (word for word in words if re.search(r"[/._\d-]", word.strip(".")) and not _NUMBER.fullmatch(word))
    named = frozenset(word.rstrip("/") for word in names)
    return named or frozenset(sorted((word.rstrip("/") for word in words), key=len)[-1:])
