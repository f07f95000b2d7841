"""What must survive a compaction: the declared rules in force, the goal, open todos, and how far each piece of work is.

Matching a text with a constraint is `constraints`' business, what follows from it the audit's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from otel_context_ledger.correctness.constraints import Constraint, Match, Text, Validator, normal, vocabulary

KINDS = ("rule", "goal", "todo")
ACTIVE, DONE = "active", "done"
MAX_ITEMS = 256
# Ids shorter than this, or without a letter, stand in any text.
SHORT_ID = 2
_PROGRESS = {state: "|".join(map(re.escape, words)) for state, words in vocabulary("progress").items()}
_ACTIVE, _DONE = (re.compile(rf"(?<!\w)(?:{_PROGRESS[state]})(?!\w)") for state in (ACTIVE, DONE))
_DENIED = re.compile(rf"(?:\bnot|n't|\bnever)\s(?:\S+\s){{0,2}}(?:{_PROGRESS[DONE]})(?!\w)")


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
        replaced = {item.constraint.supersedes for item in self.items}
        return tuple(item for item in self.items if item.id not in replaced and item.status != DONE)

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


def status(item: Item, text: Text, validator: Validator) -> str | None:
    """How far a text says that a piece of work is: active, done, or `None` where it says nothing or both."""
    telling = ((state, sentence) for sentence in text.sentences if (state := _state(sentence)) is not None)
    said = {state for state, sentence in telling if _is_about(item, sentence, validator)}
    return said.pop() if len(said) == 1 else None


def _is_about(item: Item, spoken: str, validator: Validator) -> bool:
    if _names(item, spoken) or normal(item.constraint.text) in spoken:
        return True
    found = validator.match(item.constraint, spoken)
    return found.verdict == "held" or (found.verdict == "uncertain" and found.matcher == "wording")


def _names(item: Item, spoken: str) -> bool:
    name = normal(item.id)
    if len(name) < SHORT_ID or not re.search(r"[^\W\d_]", name) or name not in spoken:
        return False
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", spoken) is not None


def _state(spoken: str) -> str | None:
    active, done = _ACTIVE.search(spoken) is not None, _DONE.search(spoken) is not None
    if done and _DENIED.search(spoken):
        return ACTIVE
    return None if active == done else ACTIVE if active else DONE
