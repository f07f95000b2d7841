"""What must survive a compaction: the declared rules in force, the goal, open todos, and how far each piece of work is.

Matching a text with a constraint is `constraints`' business, what follows from it the audit's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from otel_context_ledger.correctness.constraints import Constraint, Match, Validator, successors
from otel_context_ledger.correctness.sense import normal, vocabulary
from otel_context_ledger.correctness.text import Text
from otel_context_ledger.correctness.wording import Wording

KINDS = ("rule", "goal", "todo")
ACTIVE, DONE = "active", "done"
MAX_ITEMS = 256
# Ids shorter than this, or without a letter, stand in any text.
SHORT_ID = 2
_PROGRESS = {state: "|".join(map(re.escape, words)) for state, words in vocabulary("progress").items()}
_ACTIVE, _DONE = (re.compile(rf"(?<!\w)(?:{_PROGRESS[state]})(?!\w)") for state in (ACTIVE, DONE))
_OPEN = re.compile(rf"\b(?:{_PROGRESS['open']})\b|[%?]")
_PAST = re.compile(rf"\b(?:{_PROGRESS['past']})\b")
_DENIED = re.compile(rf"(?:\bnot|n't|\bnever|\bcannot)\s(?:\S+\s){{0,2}}(?:{_PROGRESS[DONE]})(?!\w)")
_ITSELF = "\0"
_WORDING = Wording()
# What is said of one thing, and not of the next.
_CLAUSE = re.compile(r"[,;]\s|\s(?:and|but|while|so)\s")
# A box at the start of an item is its own, whatever its text speaks of.
_BOXES = ("[", "- [", "☐", "✅", "✓", "✔")


@dataclass(frozen=True, slots=True)
class Item:
    """A constraint with its state: `active` or `done`, `None` for a rule or where nobody said; `evidence` names what
    shows it, such as a test run or a commit."""

    constraint: Constraint
    status: str | None = None
    evidence: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The constraint's own."""
        return self.constraint.id

    @property
    def work(self) -> bool:
        """Whether it is something to be done, and not a rule."""
        return self.constraint.kind != "rule"


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything declared, in the order of its declaration."""

    items: tuple[Item, ...] = ()

    @property
    def asked(self) -> tuple[Item, ...]:
        """What a summary must hold: nothing that was superseded, and no work that is done."""
        replaced = successors(item.constraint for item in self.items)
        return tuple(item for item in self.items if item.id not in replaced and item.status != DONE)

    @property
    def superseded(self) -> tuple[tuple[Item, str], ...]:
        """What no longer holds, each with the id of what took its place."""
        by = successors(item.constraint for item in self.items)
        return tuple((item, by[item.id]) for item in self.items if item.id in by)

    @property
    def text(self) -> str:
        """What its digest is made of; empty without items."""
        return "\n".join(f"{i.constraint.kind} {i.id} {normal(i.constraint.text)} {i.status or ''}" for i in self.asked)

    def joined(self, more: Iterable[Item]) -> Manifest:
        """The manifest with items that are new, or known under the same id; one without a text changes only what it
        says."""
        found = {item.id: item for item in self.items}
        for item in more:
            found[item.id] = updated(found.get(item.id), item)
        return Manifest(tuple(item for item in found.values() if item.constraint.text)[-MAX_ITEMS:])


NOTHING = Manifest()


def updated(known: Item | None, item: Item) -> Item:
    """An item after one more word on it."""
    if known is None or (item.constraint.text and item.status is not None):
        return item
    constraint = item.constraint if item.constraint.text else known.constraint
    return Item(constraint, item.status or known.status, item.evidence or known.evidence)


def match(item: Item, text: Text, validator: Validator) -> Match:
    """How an item stands in a text. Work may be named by its id alone, because its text is often left out."""
    found = validator.match(item.constraint, text)
    named = item.work and found.verdict != "held" and any(_names(item, said) for said in text.sentences)
    return replace(found, verdict="held", matcher="id", confidence=1.0) if named else found


def telling(text: Text) -> list[str]:
    """The sentences of a text that have a word on how far something is."""
    return [sentence for sentence in text.sentences if _ACTIVE.search(sentence) or _DONE.search(sentence)]


def status(item: Item, sentences: Iterable[str]) -> str | None:
    """How far sentences say that a piece of work is: active, done, or `None` where they say nothing or both."""
    found = {state for sentence in sentences for state in _told(item, sentence)}
    return found.pop() if len(found) == 1 else None


def _told(item: Item, sentence: str) -> Iterator[str]:
    """What the clauses on a piece of work say, its own text left out, which may hold any word."""
    wanted = normal(item.constraint.text)
    for clause in _CLAUSE.split(sentence.replace(wanted, _ITSELF) if wanted else sentence):
        state = _state(clause)
        if state is not None and (_ITSELF in clause or _is_about(item, clause)):
            yield state


def _is_about(item: Item, clause: str) -> bool:
    """By its id, else by its words. A program's own validator is not asked of each clause: it may ask a model."""
    if _names(item, clause):
        return True
    found = _WORDING.match(item.constraint, clause)
    return found.verdict == "held" or (found.verdict == "uncertain" and found.matcher == "wording")


def _names(item: Item, spoken: str) -> bool:
    name = normal(item.id)
    if len(name) < SHORT_ID or not re.search(r"[^\W\d_]", name) or name not in spoken:
        return False
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", spoken) is not None


def _state(clause: str) -> str | None:
    active, done = _ACTIVE.search(clause) is not None, _DONE.search(clause) is not None
    if active == done or (_OPEN.search(clause) and not clause.startswith(_BOXES)):
        return None
    if active and _PAST.search(clause):
        return None
    return ACTIVE if active or _DENIED.search(clause) else DONE
