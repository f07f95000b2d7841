"""How constraints are declared outside a program: `[constraints]` of context-ledger.toml, marked lines of rules files.

A line of a rules file is marked by an HTML comment, which no reader of the rendered page sees:
`- Never edit migrations/. <!-- constraint: C1 severity=low -->`. Alone on its line it marks the next line that says
something. A line that is wrapped belongs to the one before. Reading the files is left to others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from otel_context_ledger.correctness.compaction.manifest import ACTIVE, DONE, KINDS, Item
from otel_context_ledger.correctness.constraints import Constraint
from otel_context_ledger.names import named, real

MAX_TEXT = 4096
MAX_TERMS, MAX_TERM = 64, 256
MAX_EVIDENCE = 16
SEVERITIES = ("high", "low")
STATUSES = (ACTIVE, DONE)
_MARK = re.compile(r"<!--\s*constraint:\s*(?P<id>[^\s=]+)(?P<more>(?:\s+\w+=[^\s>]+)*)\s*-->")
_NEW = re.compile(r"\s*(?:[-*+>#]|\d+[.)]|<!--|$)")
_LEAD = re.compile(r"^[\s>#*+-]*(?:\d+[.)]\s+)?(?:\[[ xX]\]\s+)?")


def item(name: object, text: object, more: Mapping[str, object]) -> Item | None:
    """An item from what somebody wrote; `None` where it has no name. A word that is not known counts as not said.
    Without a text it says only how far a piece of work is."""
    own = named(name)
    if not own:
        return None
    evidence = more.get("evidence")
    shown = evidence if real(evidence, list) or real(evidence, tuple) else (evidence,)
    status = _one_of(STATUSES, more.get("status"))
    kind = _one_of(KINDS, more.get("kind")) or KINDS[0]
    constraint = Constraint(
        own,
        _bounded(_text(text).strip()),
        named(more.get("supersedes")) or None,
        _one_of(SEVERITIES, more.get("severity")) or SEVERITIES[0],
        _terms(more.get("terms")),
        kind,
    )
    return Item(
        constraint,
        status or (ACTIVE if kind != KINDS[0] and constraint.text else None),
        tuple(word for one in shown[:MAX_EVIDENCE] if (word := named(one))),
    )


def _bounded(text: str) -> str:
    """A text of at most 4,096 characters, cut between two words so that the rest is found as it stands."""
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT].rsplit(None, 1)[0]


def in_table(table: Mapping[str, object]) -> tuple[Item, ...]:
    """The items of `[constraints]`: by id a text, or a table with `text` and what else is said of it."""
    found: list[Item | None] = []
    for name, told in table.items():
        more = told if isinstance(told, Mapping) else {}
        found.append(item(name, more.get("text") if more else told, more))
    return tuple(one for one in found if one is not None and one.constraint.text)


def marked(text: str) -> tuple[Item, ...]:
    """The items that a rules file marks, in its order."""
    return tuple(_in_lines(text.splitlines()))


def _in_lines(lines: Sequence[str]) -> Iterator[Item]:
    for at, line in enumerate(lines):
        for mark in _MARK.finditer(line):
            begins = at if _said(line) else next((n for n in range(at + 1, len(lines)) if _said(lines[n])), None)
            said = "" if begins is None else " ".join(_whole(lines, begins))
            more = dict(pair.split("=", 1) for pair in mark["more"].split())
            found = item(mark["id"], said, {**more, "terms": more.get("terms", "").split(",")})
            if found is not None and said:
                yield found


def _whole(lines: Sequence[str], at: int) -> Iterator[str]:
    """What a line says, with those that it goes on and that go on with it, but for lines with a mark of their own."""
    first = at
    while first > 0 and _goes_on(lines[first]) and _said(lines[first - 1]) and not _MARK.search(lines[first - 1]):
        first -= 1
    end = at + 1
    while end < len(lines) and _goes_on(lines[end]) and not _MARK.search(lines[end]):
        end += 1
    return map(_said, lines[first:end])


def _goes_on(line: str) -> bool:
    """Whether a line is wrapped: set in, or beginning with a small letter, and no item of a list."""
    return (line.startswith(("  ", "\t")) or line[:1].islower()) and not _NEW.match(line)


def _said(line: str) -> str:
    return _LEAD.sub("", _MARK.sub("", line)).strip()


def _one_of(words: tuple[str, ...], value: object) -> str | None:
    said = _text(value).strip().lower()
    return said if said in words else None


def _terms(value: object) -> tuple[str, ...]:
    given = value if real(value, list) or real(value, tuple) else ()
    return tuple(term for one in given[:MAX_TERMS] if (term := _text(one)[:MAX_TERM].strip()))


def _text(value: object) -> str:
    return str.__str__(value) if real(value, str) else ""
