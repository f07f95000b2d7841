"""What a symptom is looked for in, and what comes of looking. What no line holds is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from otel_context_ledger.accounts import Books, Sums
from otel_context_ledger.cli import checks
from otel_context_ledger.cli.calls import MISSING, Call
from otel_context_ledger.cli.printing import plural, share
from otel_context_ledger.outcomes import Joined
from otel_context_ledger.thresholds import DEFAULTS, Thresholds

FOUND, NOT_FOUND, CANNOT_TELL = "found", "not_found", "cannot_tell"
MAX_LISTED = 5
LOST = frozenset({"lost", "superseded_revived"})
_OPEN = frozenset({None, "unknown", "not_verifiable", "unavailable"})
NO_SESSIONS = "sessions: no call names one"


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of looking for a symptom: `evidence` in sentences with the entries that it is from, `missing` what it
    would take to tell. Of `of` things `looked` could be looked at."""

    verdict: str
    evidence: tuple[str, ...] = ()
    missing: str | None = None
    entries: tuple[str, ...] = ()
    looked: int | None = None
    of: int | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """A task, or one attempt at it, of which somebody told how it ended; what it took, and the word that stands."""

    task_id: str | None
    attempt_id: str | None
    outcome: Joined
    sums: Sums

    @property
    def name(self) -> str:
        """What it is called in evidence."""
        return f"task {self.task_id}" + (f", attempt {self.attempt_id}" if self.attempt_id else "")

    def has(self, call: Call) -> bool:
        """Whether a call was made for it."""
        return call.text("task_id") == self.task_id and self.attempt_id in (None, call.text("attempt_id"))


@dataclass(frozen=True, slots=True)
class Case:
    """Calls, each once and in the order in which they began; the books over them; the compactions that were told of,
    each once; the thresholds; and which `cut` tasks and sessions have more calls than were chosen."""

    calls: Sequence[Call]
    books: Books
    compactions: Sequence[Call] = ()
    limits: Thresholds = DEFAULTS
    cut: frozenset[str | None] = frozenset()

    @property
    def own(self) -> list[Call]:
        """The calls of the agents themselves, without summaries and side calls."""
        return [call for call in self.calls if call.text("request_kind") in (None, "agent")]

    def told(self) -> list[Work]:
        """Everything of which an end was told: attempts by their own words, tasks by what was said of the whole. An
        attempt without a call is told of only if it may have made those that name none."""
        works: list[Work] = []
        for account in self.books.accounts:
            named = [one for one in account.attempts if one.attempt_id is not None and one.outcome.lines]
            some = any(one.attempt_id is None for one in account.attempts)
            tried = [Work(account.task_id, one.attempt_id, one.outcome, one.sums) for one in named]
            works += [work for work in tried if some or work.sums.calls]
            if account.outcome.lines and account.outcome.attempt_id is None:
                works.append(Work(account.task_id, None, account.outcome, account.sums))
        return works

    def sessions(self) -> dict[str, list[Call]]:
        """The agents' calls by session."""
        found: dict[str, list[Call]] = {}
        for call in self.own:
            name = call.text("session_id")
            if name is not None:
                found.setdefault(name, []).append(call)
        return found


def found(evidence: Iterable[str], entries: Iterable[Call] = ()) -> Finding:
    """The symptom is there. Of much evidence the first is told, and how much more there is."""
    told = list(evidence)
    more = [f"and {len(told) - MAX_LISTED:,} more like these"] if len(told) > MAX_LISTED else []
    return Finding(FOUND, (*told[:MAX_LISTED], *more), entries=tuple(dict.fromkeys(c.entry_id for c in entries)))


def clear(looked: int, of: int, noun: str = "call", evidence: Iterable[str] = ()) -> Finding:
    """The symptom is in none of what could be looked at."""
    return Finding(NOT_FOUND, (f"looked at {looked:,} of {plural(of, noun)}", *evidence), looked=looked, of=of)


def open_(missing: str, evidence: Iterable[str] = ()) -> Finding:
    """Whether it is there cannot be told."""
    return Finding(CANNOT_TELL, tuple(evidence), missing)


def verdict(call: Call, field: str) -> str | None:
    """A check's verdict, where it is one."""
    word = call.text(field)
    return None if word in _OPEN else word


def sure(call: Call, field: str) -> str | None:
    """A check's verdict, where it leaves nothing open."""
    word = verdict(call, field)
    return None if word in checks.UNSURE else word


def hit(call: Call) -> float | None:
    """The share of a prompt that was read from the cache."""
    whole, cached = call.count("input_tokens"), call.count("cached_tokens")
    return cached / whole if whole and cached is not None else None


def reused(call: Call) -> str:
    """The share in words."""
    whole, cached = call.count("input_tokens"), call.count("cached_tokens")
    return "reuse unknown" if whole is None or cached is None else f"{share(cached, whole)} of {whole:,} tokens reused"


def outside(noun: str, name: str | None) -> Finding:
    """It cannot be told of a task or session, because some of its calls were not chosen."""
    return open_(f"all calls of {noun} {name}: some are outside of what was asked for")


def paired(call: Call) -> str:
    """The share in words with the verdicts beside it, for evidence that names none itself."""
    return f"{reused(call)}; {checks.beside([call])}"


def causes(call: Call) -> list[str]:
    """The causes of a miss, the primary one first, without their details."""
    first = call.text("miss_cause")
    words = [*([first] if first else []), *(call.words("miss_secondary") or ())]
    return [word.partition("(")[0] for word in words]


def named(call: Call, field: str, *kinds: str) -> list[str]:
    """What a check's evidence names under these words."""
    pairs = (word.partition("=") for word in call.words(field) or ())
    return [value.split(":")[0] for kind, _, value in pairs if kind in kinds]


def number(call: Call, field: str, *names: str) -> int | None:
    """The first of these numbers that a check counted."""
    pairs = dict(word.partition("=")[::2] for word in call.words(field) or ())
    found = next((pairs[name] for name in names if name in pairs), "")
    return int(found) if found.isdecimal() and len(found) < 16 else None


def rounds(calls: Iterable[Call]) -> list[int]:
    """How often a session was compacted before each of its calls: each event and each summary is one, and a miss that a
    compaction explains."""
    count, last, told = 0, None, []
    for call in calls:
        mark = call.text("compaction_event") or call.text("summary_hash")
        count += mark != last if mark is not None else "history_compacted" in causes(call)
        last = mark or last
        told.append(count)
    return told


def tells_of_compactions(case: Case) -> bool:
    """Whether the ledger would say that there was one: it has a field for it, or a line of one."""
    fields = ("compaction_event", "summary_hash", "summary_trusted")
    return bool(case.compactions) or any(call.value(name) is not MISSING for call in case.calls for name in fields)
