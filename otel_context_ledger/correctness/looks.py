"""What was seen of a file on disk, look by look, and what is known of the repository around it.

Contents come as bytes and are kept as digests. Who looks is `files`, what it means `freshness`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import xxhash

from otel_context_ledger.correctness.accesses import loose
from otel_context_ledger.correctness.policy import RulesFile
from otel_context_ledger.records import changed, quick

MAX_SPANS = 16
MISSING = -1
# Where a file lies: in the repository's work tree, in another one, or in none.
INSIDE, OTHER, OUTSIDE = "inside", "other", "outside"
_LINE_BREAK = 10


@quick
@dataclass(frozen=True, slots=True)
class Span:
    """The looks at a file, one after the other, that found the same: digests of its content (`None`: not readable or
    not remembered, `MISSING`: not there) and of that without line ends, its number of lines, the first and the last of
    these looks (seconds), its size in bytes, and whether it is that of the span before with lines added at the end."""

    digest: int | None
    loose: int
    lines: int
    first: float
    last: float
    size: int = 0
    grown: bool = False


@dataclass(frozen=True, slots=True)
class Looks:
    """Where a file lies, what was found there, oldest first and at least once, and its path without links, if known:
    one file may be read by several paths."""

    place: str
    spans: tuple[Span, ...] = ()
    real: str | None = None

    def after(self, content: bytes | None, there: bool, now: float) -> Looks:
        """The same with one more look, that found this content or could not read what is there."""
        digest = (None if there else MISSING) if content is None else xxhash.xxh3_64_intdigest(content)
        last = self.spans[-1] if self.spans else None
        if last is not None and last.digest == digest:
            return self.still(now)
        text = content or b""
        lines = text.count(b"\n") + (not text.endswith(b"\n") and bool(text))
        grown = last is not None and _grown(last, text)
        spans = _bounded((*self.spans, Span(digest, loose(text), lines, now, now, len(text), grown)))
        return Looks(self.place, spans, self.real)

    def still(self, now: float) -> Looks:
        """The same with one more look, that found what was there before."""
        return Looks(self.place, (*self.spans[:-1], changed(self.spans[-1], last=now)), self.real)

    def since(self, seen: float) -> Span | None:
        """What was found at the first look at or after a time."""
        return next((span for span in self.spans if span.last >= seen), None)


def together(every: Sequence[Looks]) -> Looks:
    """The looks at one file by several paths: the oldest ones, and what was found last."""
    seen = [looks for looks in every if looks.spans]
    if not seen:
        return every[0]
    oldest, latest = min(seen, key=lambda one: one.spans[0].first), max(seen, key=lambda one: one.spans[-1].last)
    end, found = oldest.spans[-1], latest.spans[-1]
    if end.digest == found.digest:
        return oldest.still(found.last)
    return Looks(oldest.place, _bounded((*oldest.spans, found)), oldest.real)


def _grown(before: Span, text: bytes) -> bool:
    if before.digest in (None, MISSING) or not 0 < before.size < len(text) or text[before.size - 1] != _LINE_BREAK:
        return False
    return xxhash.xxh3_64_intdigest(memoryview(text)[: before.size]) == before.digest


def _bounded(spans: tuple[Span, ...]) -> tuple[Span, ...]:
    """The first and the latest spans; of those between it is not remembered what was found."""
    if len(spans) <= MAX_SPANS:
        return spans
    grown = spans[1].grown and spans[2].grown
    return (spans[0], Span(None, 0, 0, spans[1].first, spans[2].last, grown=grown), *spans[3:])


@dataclass(frozen=True, slots=True)
class Shelved:
    """What is known of the files of a repository. `rooted` says whether there is one, `None` before the first look;
    `shared_git_dir`, that its git directory is that of another work tree, as in a copied one."""

    rooted: bool | None = None
    shared_git_dir: bool = False
    files: Mapping[str, Looks] = field(default_factory=dict)
    rules: tuple[RulesFile, ...] = ()
