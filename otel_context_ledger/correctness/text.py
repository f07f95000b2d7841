"""A text that constraints are looked for in: its normal form, and its sentences with what stands above them.

What its sentences say is `sense`'s to tell, whether a constraint is among them a validator's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from itertools import chain, islice

from otel_context_ledger.correctness.sense import NEGATIONS, negative, normal

MAX_TEXT = 1 << 18
"""Characters of one text that are compared in other words; word for word all of it is looked through."""
MAX_SENTENCES = 1 << 13
# Characters from where on a line may be one that was wrapped.
WRAPPED_AT = 50
WORD = re.compile(r"[\w./:-]*\w[/]?")
SAID = re.compile(r"[\w'./-]+")
_BORDER = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+(?=\s*[^\sa-z])")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d+[.)])\s")


class Text(str):
    """A text that is looked through for many constraints: its normal form and its sentences are made once."""

    @cached_property
    def normal(self) -> str:
        """All of it in normal form."""
        return normal(self)

    @cached_property
    def parts(self) -> list[tuple[str, str]]:
        """Its sentences and lines in normal form, those of the first 2^18 characters and at most 2^13, each with the
        heading above it or the line that its list begins with. A line that goes on with the one before is no new
        sentence."""
        found, heading, introduced = [], "", False
        borders = _BORDER.split(self[:MAX_TEXT], MAX_SENTENCES)[:MAX_SENTENCES]
        for raw in islice(chain.from_iterable(map(_unwrapped, borders)), MAX_SENTENCES):
            told, titled = normal(raw), raw.lstrip().startswith("#")
            if introduced and not _ITEM.match(raw):
                heading, introduced = "", False
            found += [(told, heading)] if told else []
            if titled or told.endswith((":", "：")):
                heading, introduced = told, not titled
        return found

    @property
    def cut(self) -> bool:
        """Whether there may be more of it than is compared in other words."""
        return len(self) > MAX_TEXT or len(self.parts) >= MAX_SENTENCES

    @cached_property
    def sentences(self) -> list[str]:
        """What its sentences and lines say, in normal form."""
        return [told for told, _ in self.parts]

    @cached_property
    def starts(self) -> list[int]:
        """Where in its normal form each of its sentences begins."""
        found, at = [], 0
        for told in self.sentences:
            found.append(at)
            at += len(told)
            at += self.normal.startswith(" ", at)  # none after the full stop of a script without spaces
        return found or [0]

    @cached_property
    def sorted_sentences(self) -> list[str]:
        """What is compared in any order of words: each sentence affirmed, its words sorted."""
        return [in_order(sentence) for sentence in self.sentences]

    @cached_property
    def words(self) -> list[frozenset[str]]:
        """The words of each sentence."""
        return [frozenset(word.rstrip("/") for word in WORD.findall(sentence)) for sentence in self.sentences]


def _unwrapped(raw: str) -> Iterator[str]:
    """The lines of what has no full stop: one goes on with a line before it that was long, or that cannot end there."""
    lines: list[str] = []
    for line in raw.split("\n"):
        last = normal(lines[-1]) if lines else ""
        if lines and len(last) < WRAPPED_AT and not last.endswith(",") and not negative(last.rpartition(" ")[2]):
            yield "\n".join(lines)
            lines = []
        lines.append(line)
    yield "\n".join(lines)


def in_order(sentence: str) -> str:
    """The words of a sentence in their alphabet, without negating words and the auxiliary `do`, so that neither its
    order nor its sense makes it another one."""
    return " ".join(sorted(word for word in SAID.findall(sentence) if word not in NEGATIONS and word != "do"))
