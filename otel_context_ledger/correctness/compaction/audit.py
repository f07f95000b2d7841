"""Whether what had to survive a compaction did: first in the summary, then in whatever else the next call sends.

A summary that nobody can read is `not_verifiable`, never good. Where nothing was declared there is nothing to find.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from otel_context_ledger.correctness.compaction import manifest as m
from otel_context_ledger.correctness.constraints import Match, Validator, rank
from otel_context_ledger.correctness.text import MAX_TEXT, Text

PASS, UNCERTAIN, FAIL, NOT_VERIFIABLE = "pass", "uncertain", "fail", "not_verifiable"
_LOST = ("lost", "negated")
NOWHERE = Match("lost", "none", 1.0)
# It may stand in what was not looked through.
UNSEEN = Match("uncertain", "unseen", 0.0)
MAX_LOOKED = 1 << 20


@dataclass(frozen=True, slots=True)
class Standing:
    """How one item stands after a compaction, and where: in the summary, the policy or the history that was kept."""

    item: m.Item
    match: Match = NOWHERE
    via: str | None = None

    @property
    def lost(self) -> bool:
        """Whether it is gone, or turned into its opposite."""
        return self.match.verdict in _LOST


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A piece of work of which the summary says something else than what is known of it."""

    id: str
    was: str
    became: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Audit:
    """What the validator found. `readable` says that there was a summary to read, `empty` that it held nothing; of
    `judged` pieces of work it is known how far they were before. `outdated` are ids of what the summary holds although
    it was superseded, each with that of what took its place."""

    validator: str
    standings: tuple[Standing, ...] = ()
    mismatches: tuple[Mismatch, ...] = ()
    readable: bool = False
    empty: bool = False
    judged: int = 0
    outdated: tuple[tuple[str, str], ...] = ()

    @property
    def result(self) -> str | None:
        """pass, uncertain, fail or not_verifiable; `None` where nothing was declared."""
        if self.empty or self.mismatches or self.revived:
            return FAIL
        if not self.standings:
            return None
        open_ = [s for s in self.standings if s.match.verdict != "held"]
        if not open_:
            return PASS
        if not self.readable:
            return NOT_VERIFIABLE
        return FAIL if any(s.lost for s in open_) else UNCERTAIN

    @property
    def lost(self) -> tuple[str, ...]:
        """Ids of what is gone; of an unreadable summary nothing is known to be."""
        return tuple(s.item.id for s in self.standings if s.lost) if self.readable or self.empty else ()

    @property
    def revived(self) -> tuple[tuple[str, str], ...]:
        """What was superseded and will be followed, since what took its place is not there."""
        held = {s.item.id for s in self.standings if s.match.verdict == "held"}
        return tuple((old, new) for old, new in self.outdated if new not in held)

    @property
    def unsure(self) -> tuple[str, ...]:
        """Ids of what may be there in other words."""
        return tuple(s.item.id for s in self.standings if s.match.verdict == "uncertain")

    def recall(self, kind: str | None = None) -> tuple[int, int]:
        """How many are held, of how many; all kinds together, or one of rule, goal and todo."""
        of = [s for s in self.standings if kind is None or s.item.constraint.kind == kind]
        return sum(s.match.verdict == "held" for s in of), len(of)


def check(declared: m.Manifest, summary: str | None, validator: Validator) -> Audit:
    """The audit of a summary alone; `None` is one that cannot be read."""
    text = Text(summary or "")
    found = tuple(_stand(item, text, validator) for item in declared.asked)
    wrong = tuple(_mismatches(declared, text))
    name = f"{validator.name}@{validator.version}"
    judged = sum(item.status is not None for item in declared.items) if text.strip() else 0
    kept = ((item, new) for item, new in declared.superseded if _stand(item, text, validator).match.verdict == "held")
    old = tuple((item.id, new) for item, new in kept)
    return Audit(name, found, wrong, summary is not None, summary is not None and not text.strip(), judged, old)


def elsewhere(audit: Audit, via: str, texts: Sequence[str], validator: Validator) -> Audit:
    """The audit with what is not held in the summary looked for in other texts of the next call, the last ones first
    and of all of them at most 2^20 characters. What may stand in the rest is uncertain, not lost."""
    missing = [s for s in audit.standings if s.match.verdict != "held"]
    if not missing:
        return audit
    looked = list(_within(texts, MAX_LOOKED))
    # One text, each part of it a sentence of its own: a history has thousands.
    whole = Text(".\n".join(looked))
    floor = UNSEEN if len(looked) < sum(map(bool, texts)) or len(whole) > MAX_TEXT else NOWHERE
    better = {s.item.id: _better(s, via, whole, floor, validator) for s in missing}
    return replace(audit, standings=tuple(better.get(s.item.id, s) for s in audit.standings))


def _within(texts: Sequence[str], most: int) -> Iterator[str]:
    for text in filter(None, reversed(texts)):
        most -= len(text)
        if most < 0:
            return
        yield text


def _stand(item: m.Item, text: Text, validator: Validator) -> Standing:
    found = m.match(item, text, validator) if text.strip() else NOWHERE
    return Standing(item, found, None if found.verdict == "lost" else "summary")


def _better(standing: Standing, via: str, text: Text, floor: Match, validator: Validator) -> Standing:
    found = validator.match(standing.item.constraint, text) if text else NOWHERE
    best = max(found, floor, key=rank)
    better = best.verdict != "lost" and rank(best) > rank(standing.match)
    return Standing(standing.item, best, via) if better else standing


def _mismatches(declared: m.Manifest, text: Text) -> Iterable[Mismatch]:
    """Work that was done and is told as open, or open and told as done with nothing to show for it."""
    said = m.telling(text)
    for item in declared.items if said else ():
        told = m.status(item, said) if item.status is not None else None
        if told is not None and told != item.status and not (told == m.DONE and item.evidence):
            yield Mismatch(item.id, item.status or "", told, item.evidence)
