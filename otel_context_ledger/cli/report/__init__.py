"""`context-ledger report`: what a ledger file says of reuse and correctness, on one page of HTML or in text.

Which calls are meant, and where the page goes; what it says and how it looks are the modules' beside.
"""

from __future__ import annotations

import os
import stat
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from otel_context_ledger.cli import calls as c
from otel_context_ledger.cli import checks, diagnose, explain, show, tasks
from otel_context_ledger.cli.calls import Call
from otel_context_ledger.cli.printing import Answer, Cell, Labels, Lines, Sheet, plural, size, styled
from otel_context_ledger.cli.report import sheets
from otel_context_ledger.cli.report.contents import Cause, Contents, contents
from otel_context_ledger.cli.report.page import Heading, page
from otel_context_ledger.cli.report.pairs import Figure, Pair
from otel_context_ledger.cli.report.stretches import Stretch
from otel_context_ledger.config import Config

SESSIONS = 12
STDOUT = "-"
OPTIONS = ("session", "task", "since")


def answer(arguments: Namespace, settings: Config) -> Answer:
    """The report of the calls that the options choose; with `html` the page is written. Raises `Unusable`."""
    if arguments.html == STDOUT and arguments.json:
        raise c.Unusable("--html - and --json both want the output: say one of them.")
    book, now = _opened(arguments, settings), time.time()
    case = diagnose.gathered(book, diagnose.chosen(book, arguments, now), tasks.failed(settings), settings.advice)
    found = contents(book, case, arguments.limit_sessions)
    if arguments.html is None:
        return Answer(document(found), _parts(found))
    text = page(found, Heading(now, asked(arguments)))
    if arguments.html == STDOUT:
        return Answer(None, (), page=text)
    raw = text.encode("utf-8", "replace")
    _write(Path(arguments.html), raw, book)
    told = f"{plural(len(case.calls), 'call')} in {plural(len(found.sessions), 'session')}"
    return Answer(
        {"written": arguments.html, **document(found)},
        [Lines([f"The report of {told} is in {arguments.html} ({size(len(raw))}); open it in a browser."])],
    )


def _opened(arguments: Namespace, settings: Config) -> c.Book:
    """The ledgers that are meant, as one. Raises `Unusable` if one of them is none, or none has a call."""
    if arguments.ledger and arguments.file is not None:
        raise c.Unusable("The ledger file is named twice: say it once, with or without --file.")
    if not arguments.ledger:
        return c.opened(arguments, settings)
    books = [c.read(path, "") for path in dict.fromkeys(arguments.ledger)]
    strange = next((told for book in books if (told := c.alien(book))), None)
    if strange:
        raise c.Unusable(strange)
    return c.with_calls(c.joined(books))


def asked(arguments: Namespace) -> str:
    """Which calls were asked for, in words; nothing where all were."""
    words = [f"{name} {value}" for name in OPTIONS if (value := getattr(arguments, name)) is not None]
    return f", only {', '.join(words)}" if words else ""


def _write(path: Path, raw: bytes, book: c.Book) -> None:
    """Writes a page as a whole or not at all, readable by its owner, as the ledger file is. Raises `Unusable`."""
    try:
        if any(path.exists() and path.samefile(file) for file in book.files if file.exists()):
            raise c.Unusable(f"{path} is the ledger file itself: name another file for the page.")
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            # A pipe or a device is written to, never replaced.
            path.write_bytes(raw)
        else:
            _replace(path.resolve(), raw)
    except OSError as error:
        raise c.Unusable(f"{path} cannot be written: {error.strerror or type(error).__name__}.") from None


def _replace(path: Path, raw: bytes) -> None:
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(raw)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def document(found: Contents) -> dict[str, object]:
    """The report for programs; `null` is unknown."""
    return {
        "files": list(map(str, found.book.files)),
        "verdict": found.verdict,
        "totals": asdict(found.sums),
        "pairs": [asdict(pair) for pair in found.pairs],
        "tasks": tasks.document(found.case.books),
        "sessions": [_session(one) for one in found.sessions],
        "causes": [_cause(one) for one in found.causes],
        "wrong": [
            {"pillar": one.pillar, "verdict": one.verdict, "calls": [call.entry_id for call in one.calls]}
            for one in found.faults
        ],
        "worst": [_call(call, found) for call in found.worst],
        "symptoms": [symptom.id for symptom, _ in found.found],
        "unknown": list(found.unknown),
    }


def _cause(one: Cause) -> dict[str, object]:
    figures = {"calls": len(one.calls), "avoidable_tokens": one.missed, "cost_avoidable": one.dollars}
    return {"cause": one.name, **figures, "checks": checks.spread(checks.of_all(one.calls))}


def _call(call: Call, found: Contents) -> dict[str, object]:
    told = [{"label": label, "text": text} for label, text in explain.explanation(call, found.book)]
    return {**show.record(call), "avoidable_tokens": call.count("avoidable_tokens"), "explanation": told}


def _session(one: Stretch) -> dict[str, object]:
    return {"session_id": one.session_id, "avoidable_tokens": one.missed, **asdict(one.sums)}


def _parts(found: Contents) -> list[Sheet | Labels | Lines]:
    """The report in text: the same figures and tables, without the timelines."""
    table, left = sheets.accounts(found.case.books)
    sessions = found.sessions[: found.shown]
    return [
        Lines([styled(found.verdict, "bold"), ""]),
        Labels([row for pair in found.pairs for row in _pair(pair)]),
        *([Lines(_symptoms(found))] if found.found else []),
        *_titled("Tasks", table),
        Lines([*left, *tasks.findings(found.case.books)]),
        *_titled("Was the context right?", sheets.states(found)),
        *(_titled("Wrong contexts", sheets.faults(found)) if found.faults else []),
        *(_titled("Why was it not reused?", sheets.causes(found)) if found.causes else []),
        *_titled("Sessions, the worst first", sheets.sessions(sessions)),
        *(_titled("The dearest misses", sheets.worst(found.worst)) if found.worst else []),
        Lines(["", styled("What could not be known", "bold"), *found.unknown, "", *_closing(found)]),
    ]


def _symptoms(found: Contents) -> list[Cell]:
    told = [f"{symptom.question} {symptom.reply(finding)} ({symptom.id})" for symptom, finding in found.found]
    return ["", styled("Symptoms that were found; `diagnose` has their evidence", "bold"), *told]


def _pair(pair: Pair) -> Iterator[tuple[str, str]]:
    """A figure and its partner in one line: none stands alone."""
    yield pair.figure.name, f"{_figure(pair.figure)} | {pair.partner.name}: {_figure(pair.partner)}"


def _figure(told: Figure) -> str:
    return f"{told.value} ({told.over})"


def _titled(title: str, sheet: Sheet) -> list[Sheet | Lines]:
    return [Lines(["", styled(title, "bold")]), sheet]


def _closing(found: Contents) -> Iterator[str]:
    left = len(found.sessions) - found.shown
    if left > 0:
        yield f"left out: {plural(left, 'session')}; --limit-sessions N shows more, --session ID one of them"
    yield "--html FILE draws all of this on one page, with a timeline for each session; `explain ID` tells of a call"
