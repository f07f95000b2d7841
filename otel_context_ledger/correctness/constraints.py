"""What must stay in the context, how it stands in a text, and what follows for all of it together.

Where the texts come from (live context, rules files, summaries) is left to the callers, how they are compared to a
`Validator`, of which one ships in `wording`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from otel_context_ledger.model import Check, Findings

MAX_LISTED = 16


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


@dataclass(frozen=True, slots=True)
class Recall:
    """How each declared constraint stands in one text or context: matches by id, and who judged."""

    matches: Mapping[str, Match]
    validator: str


VERDICTS = ("lost", "negated", "uncertain", "held")


def rank(match: Match) -> tuple[int, float]:
    """How good a match is, to be compared with others: of two of which nothing was found the less sure one."""
    nothing = match.verdict == "lost" and match.matcher == "none"
    return VERDICTS.index(match.verdict), -match.confidence if nothing else match.confidence


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
