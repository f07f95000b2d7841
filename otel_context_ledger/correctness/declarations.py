"""How constraints are declared outside a program: `[constraints]` of context-ledger.toml, marked lines of rules files.

A line of a rules file is marked by an HTML comment, which no reader of the rendered page sees:
`- Never edit migrations/. <!-- constraint: C1 severity=low -->`. Alone on its line it marks the next line that says
something. Reading the files is left to others.
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
        _text(text)[:MAX_TEXT].strip(),
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
            said = _said(line) or next((told for later in lines[at + 1 :] if (told := _said(later))), "")
            more = dict(pair.split("=", 1) for pair in mark["more"].split())
            found = item(mark["id"], said, {**more, "terms": more.get("terms", "").split(",")})
            if found is not None and said:
                yield found


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
