"""The report as one page of HTML that needs nothing else: no script, no request, styles inside.

What it says is in `contents` and the tables; here is where it stands.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources

from otel_context_ledger import __version__
from otel_context_ledger.cli import checks, explain, tasks
from otel_context_ledger.cli.calls import Call
from otel_context_ledger.cli.printing import moment, plural, share
from otel_context_ledger.cli.report import figure, sheets, tables
from otel_context_ledger.cli.report import timeline as t
from otel_context_ledger.cli.report.contents import Contents
from otel_context_ledger.cli.report.markup import Markup, element, trusted
from otel_context_ledger.cli.report.pairs import Figure, Pair
from otel_context_ledger.cli.report.stretches import ORDER, Stretch

STYLE = resources.files(__package__).joinpath("page.css").read_text("utf-8")
DIGEST = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
# Nothing is loaded, sent or run; of styles only the one inside holds.
POLICY = f"default-src 'none'; style-src 'sha256-{DIGEST}'; img-src data:; base-uri 'none'; form-action 'none'"
EXPLAINED, LISTED, COMPACTIONS = 10, 200, 4
TITLE = "Reuse and correctness"
SHORT = ("reused", "correctness", "broke", "cause", "cost", "to do")
PATTERNS = element(
    "svg",
    element(
        "defs",
        element(
            "pattern", element("path", d="M-1 7L7 -1M-1 1L1 -1M5 7L7 5", class_="hatch"), id="unknown", width="6",
            height="6", patternUnits="userSpaceOnUse",
        ),
        element(
            "pattern", element("path", d="M0 1.5H6", class_="stripe"), id="write", width="6", height="5",
            patternUnits="userSpaceOnUse",
        ),
    ),
    class_="defs", aria_hidden="true",
)  # fmt: skip
BOX = "M1 1h12v12h-12z"
KEY = (
    ("cache_read", BOX, "read from the cache"),
    ("cache_write", BOX, "written to it"),
    ("uncached", BOX, "neither (writes too, where they are not told apart)"),
    ("unreported", BOX, "what was reused is unknown; up to the top: the input is unknown"),
    ("miss", "M2 3h10l-5 8z", "significant miss, with its cause's letter where there is room"),
    ("slight", "M2 3h10l-5 8z", "slight or expected miss"),
    ("ended", "M3 3l8 8M3 11l8 -8", "not run to its end"),
    ("side", "M3 7a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", "side call (a summary, a title), with a context of its own"),
    ("compaction", "M7 1l5.5 5.5l-5.5 5.5l-5.5 -5.5z", "compaction"),
    ("lossy", "M7 1l5.5 5.5l-5.5 5.5l-5.5 -5.5z", "compaction that lost something or failed"),
    ("changed", "M3 3h8v8h-8z", "identity changed"),
    ("check right", "M1 7h12v6h-12z", "check: right"),
    ("check wrong", BOX, "wrong"),
    ("check unjudged", BOX, "unjudged"),
    ("check unasked", "M6 6h2v2h-2z", "not asked"),
)


@dataclass(frozen=True, slots=True)
class Heading:
    """When a page was made, in seconds since the epoch, and which calls were asked for."""

    made: float
    asked: str


def page(found: Contents, heading: Heading) -> str:
    """The whole document."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="generator", content=f"context-ledger {__version__}"),
        element("link", rel="icon", href="data:,"),
        element("title", f"{TITLE}: {found.book.path.name}"),
        element("style", trusted(STYLE)),
    )
    parts = [(name, title, list(told(found))) for name, title, told in SECTIONS]
    there = [(name, title, content) for name, title, content in parts if content]
    main = element("main", *(_section(*part) for part in there))
    body = element("body", PATTERNS, _header(found, heading, [(name, title) for name, title, _ in there]), main)
    return f"<!doctype html>\n{element('html', head, body, lang='en').text}\n"


def _section(name: str, title: str, content: Sequence[Markup]) -> Markup:
    return element("section", element("h2", title, id=name), *content, aria_labelledby=name)


def _header(found: Contents, heading: Heading, sections: Sequence[tuple[str, str]]) -> Markup:
    calls = found.case.calls
    times = [at for call in calls if (at := call.number("started_at")) is not None]
    period = f", {moment(min(times))} to {moment(max(times))}" if times else ""
    sessions = plural(len(found.sessions), "session")
    named = ", ".join(path.name for path in (found.book.path, *found.book.others))
    told = f"{plural(len(calls), 'call')} in {sessions}{period}; {named}{heading.asked}."
    links = [element("li", element("a", title, href=f"#{name}")) for name, title in sections]
    return element(
        "header",
        element("h1", TITLE),
        element("p", told),
        element("p", f"Made {moment(heading.made)} by context-ledger {__version__}; times are local.", class_="soft"),
        element("p", found.verdict, class_="verdict"),
        element("div", *map(_pair, found.pairs), class_="pairs"),
        element("nav", element("ul", *links), aria_label="Parts of this page"),
    )


def _pair(pair: Pair) -> Markup:
    return element("dl", _figure(pair.figure, "figure"), _figure(pair.partner, "partner"), class_="pair")


def _figure(told: Figure, side: str) -> Markup:
    value = element("dd", told.value, class_="value")
    name, over = element("dt", told.name), element("dd", told.over, class_="over")
    return element("div", name, value, over, class_=f"{side} bad" if told.bad else side)


def _tasks(found: Contents) -> Iterator[Markup]:
    sheet, left = sheets.accounts(found.case.books)
    yield tables.table(sheet, "What tasks cost, with their attempts; failed ones are counted in")
    yield _sentences([*left, *tasks.findings(found.case.books)])


def _sentences(lines: Sequence[str]) -> Markup:
    return element("ul", *(element("li", line) for line in lines))


def _causes(found: Contents) -> Iterator[Markup]:
    if found.causes:
        yield tables.table(sheets.causes(found), "Causes of misses; the letters are those of the timelines")


def _checks(found: Contents) -> Iterator[Markup]:
    yield tables.table(sheets.states(found), "Calls by what each check says of their context")
    if not found.faults:
        told = "No check found a context wrong" if found.sums.checks else "No check was made"
        yield element("p", f"{told}; {checks.NO_PROOF}")
        return
    yield tables.table(sheets.faults(found), "Wrong contexts; a high share read from the cache made none of them right")
    for fault in found.faults[:EXPLAINED]:
        first = fault.calls[0]
        name = f"The first call with {fault.pillar} {fault.verdict.replace('_', ' ')}, explained"
        yield element("details", element("summary", f"{name}: {first.entry_id}"), _explained(first, found))


def _worst(found: Contents) -> Iterator[Markup]:
    if not found.worst:
        return
    yield tables.table(sheets.worst(found.worst), "Calls with the most tokens that could have been reused and were not")
    yield from (_call(call, found) for call in found.worst)


def _call(call: Call, found: Contents) -> Markup:
    rows = explain.explanation(call, found.book)
    short = [(label, text) for label, text in rows if label in SHORT]
    rest = [row for row in rows if row not in short]
    more = element("details", element("summary", "what else is known of it"), tables.described(rest))
    title = explain.title(call)
    return element("article", element("h3", title[0].upper() + title[1:]), tables.described(short), more, class_="call")


def _explained(call: Call, found: Contents) -> Markup:
    return tables.described([("call", explain.title(call)), *explain.explanation(call, found.book)])


def _sessions(found: Contents) -> Iterator[Markup]:
    shown, others = found.sessions[: found.shown], found.sessions[found.shown :]
    yield element("p", f"In this order: {ORDER}.")
    yield tables.table(sheets.sessions(shown), "Sessions", [_place(at) for at in range(len(shown))])
    if others:
        yield from _left(others)
    yield _key()
    for at, stretch in enumerate(shown):
        yield from _session(stretch, _place(at), found)


def _left(others: Sequence[Stretch]) -> Iterator[Markup]:
    """Sessions without a timeline: how many, which, and how to see them."""
    one, more = element("code", "context-ledger report --session ID"), element("code", "--limit-sessions N")
    told = f"{plural(len(others), 'session')} more, without a timeline here"
    yield element("p", f"Left out: {told}. To see one of them: ", one, "; to see more of them: ", more, ".")
    listed = others[:LISTED]
    first = f", the first {len(listed):,} of them" if len(listed) < len(others) else ""
    table = tables.table(sheets.sessions(listed), "Sessions without a timeline here")
    yield element("details", element("summary", f"{told}{first}"), table)


def _place(at: int) -> str:
    return f"session-{at + 1}"


def _key() -> Markup:
    items = [element("li", _sample(class_, shape), " ", told) for class_, shape, told in KEY]
    return element("ul", *items, class_="key", aria_label="What the signs in the timelines mean")


def _sample(class_: str, shape: str) -> Markup:
    return element(
        "svg", element("path", d=shape, class_=class_), class_="key", width="14", height="14", aria_hidden="true"
    )


def _session(stretch: Stretch, place: str, found: Contents) -> Iterator[Markup]:
    columns = t.columns(stretch.calls, stretch.compactions)
    told = _told(stretch, columns)
    picture = figure.drawn(columns, found.marks, place, f"Timeline of session {stretch.name}: {told}")
    table = tables.table(sheets.calls(columns), f"The timeline of session {stretch.name} as a table; tokens are sums")
    yield element("h3", f"Session {stretch.name}", id=place)
    yield element(
        "figure",
        element("figcaption", told, *_letters(columns, found)),
        tables.scrolled(picture, f"Timeline of session {stretch.name}"),
        element("details", element("summary", "The same as a table"), table),
    )


def _told(stretch: Stretch, columns: Sequence[t.Column]) -> str:
    sums = stretch.sums
    read = f"{share(sums.cached, sums.input_measured)} read from the cache, {checks.beside(stretch.calls)}"
    period = f"{moment(stretch.began)} to {moment(stretch.ended)}"
    each = len(columns[0].calls)
    binned = (
        f" Each column stands for {each:,} consecutive calls: heights are tokens of a call on average, checks are "
        "divided as the calls are, and the letter is that of the cause with the most avoidable tokens."
    )
    unknown = f"; of {plural(sums.cached_unknown, 'call')} that is unknown" if sums.cached_unknown else ""
    known = f"{plural(len(stretch.calls), 'call')}, {period}; {read}{unknown}; {sheets.paid(sums)}."
    return known + (binned if each > 1 else "")


def _letters(columns: Sequence[t.Column], found: Contents) -> Iterator[str]:
    """Which causes the letters of this timeline stand for, and the first compactions in words."""
    here = {name for column in columns for name in column.causes}
    named = [f"{cause.mark} {cause.name}" for cause in found.causes[: sheets.MAX_WORDS] if cause.name in here]
    if named:
        yield f" Misses: {', '.join(named)}."
    events = [event for column in columns for event in column.compactions]
    told = [figure.compacted(event) for event in events[:COMPACTIONS]]
    more = [f"{plural(len(events) - len(told), 'compaction')} more"] if len(events) > len(told) else []
    yield from (f" {text[0].upper()}{text[1:]}." for text in [*told, *more])


def _found(found: Contents) -> Iterator[Markup]:
    for symptom, finding in found.found:
        rows = [*(("evidence", text) for text in finding.evidence), ("cause", symptom.cause), ("to do", symptom.fix)]
        summary = element("summary", f"{symptom.question} {symptom.reply(finding)} ({symptom.id})")
        yield element("details", summary, tables.described(rows), open="open")
    if found.found:
        yield element(
            "p",
            element("code", "context-ledger diagnose"),
            " says what was looked for besides, and what it cannot tell.",
            class_="soft",
        )


def _unknown(found: Contents) -> Iterator[Markup]:
    if found.unknown:
        yield element("p", "Unknown is never counted as zero.")
        yield _sentences(found.unknown)


SECTIONS = (
    ("symptoms", "Symptoms that were found", _found),
    ("tasks", "Tasks", _tasks),
    ("checks", "Was the context right?", _checks),
    ("causes", "Why was it not reused?", _causes),
    ("sessions", "Sessions", _sessions),
    ("worst", "The dearest misses", _worst),
    ("unknown", "What could not be known", _unknown),
)
