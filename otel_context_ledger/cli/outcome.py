"""`context-ledger outcome`: says how a task ended, now or hours later; and reads what was said before.

A line is appended to the ledger file, which must be there: an outcome in a file of its own would join nothing.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from otel_context_ledger import telling
from otel_context_ledger.cli import calls as c
from otel_context_ledger.cli.calls import Book, Call
from otel_context_ledger.cli.printing import Answer, Lines, moment, plural
from otel_context_ledger.config import Config
from otel_context_ledger.model import UNKNOWN, Outcome
from otel_context_ledger.outcomes import EVIDENCE, FAILURE, NOTHING, Joined, join

# Options that say yes or no by themselves: (yes, no).
OPTIONS = {
    "success": ("--success", "--failed"), "accepted": ("--accepted", "--rejected"),
    "rolled_back": ("--rolled-back", ""),
}  # fmt: skip
WORDS = {
    "tests": ("tests passed", "tests failed"),
    "constraints": ("constraints kept", "constraints violated"), "accepted": ("accepted", "not accepted"),
    "rolled_back": ("rolled back", "not rolled back"),
}  # fmt: skip


def answer(arguments: Namespace, settings: Config) -> Answer:
    """Keeps the outcome that the options tell, and says what it joins. Raises `Unusable`."""
    evidence = {name: getattr(arguments, name) for name in EVIDENCE}
    told = telling.record(arguments.task, arguments.attempt or "", arguments.reason, arguments.id, evidence)
    if told is None:
        raise c.Unusable(f"{arguments.task!r} is no name of a task.")
    path = c.path_of(arguments, settings)
    book = c.read(path)
    if (book.torn or book.foreign) and not (book.calls or book.outcomes):
        raise c.Unusable(f"{path} is no ledger file.")
    if not telling.keep(told, path, settings):
        raise c.Unusable(f"{path} cannot be written.")
    telling.outlet.tell(told, keep=False)
    calls = [call for call in book.calls if call.text("task_id") == told.task_id]
    earlier = standing(book, told.task_id)
    document = {"outcome": asdict(told), "file": str(path), "calls": len(calls), "earlier": earlier.word}
    return Answer(document, [Lines(list(_lines(told, path.name, calls, earlier)))])


def _lines(told: Outcome, file: str, calls: Sequence[Call], earlier: Joined) -> Iterator[str]:
    scope = f"attempt {told.attempt_id} at {told.task_id}" if told.attempt_id else told.task_id
    yield f"{scope}: {told.word}{spelled(told_of(told), told.reason)}; kept in {file}."
    if told.word == UNKNOWN:
        yield "This decides nothing yet: say --success, --failed, --tests, --accepted, --rejected or --rolled-back."
    if calls:
        attempts = {call.text("attempt_id") for call in calls} - {None}
        of_attempts = f" in {plural(len(attempts), 'attempt')}" if attempts else ""
        yield f"It joins {plural(len(calls), 'call')}{of_attempts}."
    else:
        yield "No call of this task is in the file so far; calls that come later are joined as well."
    if earlier.word not in (UNKNOWN, told.word):
        yield f"Until now the task was a {earlier.word}, told {moment(earlier.told_at)}."


def told_of(told: Outcome) -> dict[str, bool]:
    """What an outcome says, without what it leaves open."""
    return {name: value for name in EVIDENCE if (value := getattr(told, name)) is not None}


def spelled(evidence: Mapping[str, bool], reason: str | None) -> str:
    """Evidence and reason in words, in brackets; nothing where there are none. The teller's own word is the outcome's
    already."""
    words = [WORDS[name][not value] for name, value in evidence.items() if name in WORDS]
    words += [reason] if reason else []
    return f" ({', '.join(words)})" if words else ""


def failed(said: Joined) -> str:
    """What speaks against something that failed, in words; nothing where it did not fail or nobody told why."""
    if said.word != FAILURE:
        return ""
    known = {name: value for name, value in said.evidence.items() if name in WORDS}
    return ", ".join(WORDS[name][not value] for name, value in known.items() if value == (name == "rolled_back"))


def of(book: Book) -> Iterator[Outcome]:
    """The outcomes of a ledger file in its order. What a line of a wrong form says is unknown."""
    for line in book.outcomes:
        task_id, told_at = line.text("task_id"), line.number("told_at")
        if not task_id:
            continue
        flags = {name: line.flag(name) for name in EVIDENCE}
        yield Outcome(
            line.text("outcome_id") or line.place,
            told_at if told_at is not None else 0.0,
            task_id,
            line.text("attempt_id"),
            line.text("task_outcome") or UNKNOWN,
            reason=line.text("reason"),
            **flags,
        )


def standing(book: Book, task_id: str, attempt_id: str | None = None) -> Joined:
    """What stands of everything that was told of a task, or of one attempt at it."""
    told = [one for one in of(book) if one.task_id == task_id]
    tried = {call.text("attempt_id"): None for call in book.calls if call.text("task_id") == task_id}
    whole, attempts = join(told, tried) if told else (NOTHING, {})
    return whole if attempt_id is None else attempts.get(attempt_id, NOTHING)
