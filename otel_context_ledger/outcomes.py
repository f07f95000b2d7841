"""How a task ended, as far as anybody said: what follows from what was told, and what stands when more was told later.

Pure. Who tells, and where it is kept, is `telling`'s business; what it cost is `accounts`'.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from otel_context_ledger.model import UNKNOWN, Outcome
from otel_context_ledger.names import real

SUCCESS, FAILURE = "success", "failure"
# What can be said of an end. `success` is the word of whoever tells; the others are what it would follow from.
EVIDENCE = ("success", "tests", "constraints", "accepted", "rolled_back")
WORDS = {
    True: frozenset({"true", "yes", "1", "on", "ok", "pass", "passed", "kept", "held", "accepted", "success"}),
    False: frozenset({"false", "no", "0", "off", "fail", "failed", "violated", "lost", "rejected", "failure"}),
}


@dataclass(frozen=True, slots=True)
class Said:
    """An earlier word that no longer stands."""

    word: str
    told_at: float
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Joined:
    """What stands of everything that was told of a task or an attempt. `lines` counts it, `repeated` of them said
    nothing new; `superseded` are the words that no longer stand, oldest first."""

    word: str = UNKNOWN
    told_at: float | None = None
    attempt_id: str | None = None
    evidence: Mapping[str, bool] = field(default_factory=dict)
    reason: str | None = None
    superseded: tuple[Said, ...] = ()
    lines: int = 0
    repeated: int = 0


NOTHING = Joined()


def flag(value: object) -> bool | None:
    """Whether a value says yes or no: a truth value, 1 or 0, or a word such as `passed` and `failed`; else unknown."""
    if real(value, bool):
        return value
    # No other number says anything, and one of thousands of digits has no text.
    number = str(value) if type(value) is int and value in (0, 1) else ""
    text = str.__str__(value) if real(value, str) else number
    word = text.strip().lower()
    return next((truth for truth, words in WORDS.items() if word in words), None)


def decide(evidence: Mapping[str, bool | None]) -> str:
    """What follows from one telling: rolled back is a failure; else the teller's own word; else one `no` is a failure,
    and passed tests or an accepted result are a success. Kept constraints alone say nothing."""
    known = {name: value for name in EVIDENCE if (value := evidence.get(name)) is not None}
    if known.get("rolled_back"):
        return FAILURE
    if "success" in known:
        return SUCCESS if known["success"] else FAILURE
    signs = [known[name] for name in ("tests", "constraints", "accepted") if name in known]
    if not all(signs):
        return FAILURE
    return SUCCESS if known.get("tests") or known.get("accepted") else UNKNOWN


def join(told: Iterable[Outcome], tried: Collection[str | None] = ()) -> tuple[Joined, dict[str, Joined]]:
    """What stands of a task, of which `told` is everything said in the order of the file, and of each attempt of which
    something was said. `tried` are the attempts that made calls.

    Within an attempt, and within the task as a whole, the latest word that decides stands. A task succeeded if an
    attempt did, and failed if each attempt that was tried did; what was said of the whole stands against that if it
    was said later.
    """
    scopes: dict[str | None, list[Outcome]] = {}
    for line in sorted(_once(told), key=lambda line: line.told_at):
        scopes.setdefault(line.attempt_id, []).append(line)
    stands = {attempt: _standing(lines) for attempt, lines in scopes.items()}
    whole = stands.pop(None, NOTHING)
    attempts = {attempt: joined for attempt, joined in stands.items() if attempt is not None}
    return _whole(whole, attempts, [attempt for attempt in tried if attempt is not None]), attempts


def _once(told: Iterable[Outcome]) -> Iterable[Outcome]:
    """Each id once, as it came first: a message that is delivered again is the same message."""
    return {line.outcome_id: line for line in reversed(list(told))}.values()


def _standing(lines: Sequence[Outcome]) -> Joined:
    """What stands of the lines of one scope, oldest first."""
    deciding = [line for line in lines if line.word != UNKNOWN]
    last = deciding[-1] if deciding else lines[-1]
    evidence = {name: value for line in lines for name in EVIDENCE if (value := getattr(line, name)) is not None}
    gone = tuple(Said(line.word, line.told_at, line.reason) for line in deciding if line.word != last.word)
    repeated = sum(_same(a, b) for a, b in pairwise(lines))
    return Joined(last.word, last.told_at, last.attempt_id, evidence, last.reason, gone, len(lines), repeated)


def _same(a: Outcome, b: Outcome) -> bool:
    return replace(b, outcome_id=a.outcome_id, told_at=a.told_at) == a


def _whole(whole: Joined, attempts: Mapping[str, Joined], tried: Sequence[str]) -> Joined:
    told_of = [attempts.get(attempt, NOTHING) for attempt in tried] or list(attempts.values())
    won = [joined for joined in attempts.values() if joined.word == SUCCESS]
    failed = bool(told_of) and all(joined.word == FAILURE for joined in told_of)
    ends = won or ([joined for joined in attempts.values() if joined.word == FAILURE] if failed else [])
    by_attempt = max(ends, key=lambda joined: joined.told_at or 0.0, default=NOTHING)
    known = [joined for joined in (by_attempt, whole) if joined.word != UNKNOWN]
    stands = max(known, key=lambda joined: joined.told_at or 0.0, default=whole)
    gone = [Said(joined.word, joined.told_at or 0.0, joined.reason) for joined in known if joined.word != stands.word]
    every = [*attempts.values(), *([whole] if whole.lines else [])]
    return replace(
        stands,
        superseded=(*stands.superseded, *gone),
        lines=sum(joined.lines for joined in every),
        repeated=sum(joined.repeated for joined in every),
    )
