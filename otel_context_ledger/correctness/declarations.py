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
from otel_context_ledger.names import named

MAX_TEXT = 4096
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
    shown = evidence if isinstance(evidence, (list, tuple)) else (evidence,)
    status = _one_of(STATUSES, more.get("status"))
    kind = _one_of(KINDS, more.get("kind")) or KINDS[0]
    constraint = Constraint(
        own,
        str.__str__(text)[:MAX_TEXT].strip() if isinstance(text, str) else "",
        named(more.get("supersedes")) or None,
        _one_of(SEVERITIES, more.get("severity")) or SEVERITIES[0],
        _terms(more.get("terms")),
        kind,
    )
    return Item(
        constraint,
        status or (ACTIVE if kind != KINDS[0] and constraint.text else None),
        tuple(word for one in shown if (word := named(one))),
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
    return next((word for word in words if isinstance(value, str) and value.strip().lower() == word), None)


def _terms(value: object) -> tuple[str, ...]:
    given = value if isinstance(value, (list, tuple)) else ()
    return tuple(term for term in given if isinstance(term, str) and term.strip())
