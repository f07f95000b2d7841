"""How text divides a known number of tokens: owns what a byte weighs in tokens beside another, without a tokenizer.

A list of tools and prose have different numbers of bytes per token. A provider's tokenizer is not known, but all of
them cut text at about the same places: words, marks, digits, lines. Only the ratio of two weights is ever used; how
many tokens there are is the provider's word (`attribution.interpolate`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

from otel_context_ledger.canonical import encode
from otel_context_ledger.reuse.lineage import Anchor
from otel_context_ledger.reuse.segments import Outline

# Tokens per word, and per byte of a letter, mark and digit: least squares over cl100k, o200k and two short vocabularies
# cut from cl100k, whose weights hardly differ, on tool schemas, prose, Markdown and code. At any edge inside a header of
# tools and system text they err by a median of 0.1 to 0.4 % of the header, bytes alone by 1.7 to 2.0 %.
WORD, LETTER, MARK, DIGIT = 0.24, 0.21, 0.35, 0.65
# A byte beyond ASCII is where vocabularies differ; it is solved for from the reported count, within these bounds.
OTHER_LEAST, OTHER_MOST = 0.15, 0.9
# Longer stretches are divided by bytes: weighing takes 8 µs per kB.
MAX_STRETCH = 64 * 1024
# What gateways that estimate and simulators report: a quarter of the bytes, give or take the rendering.
ESTIMATED_BYTES, ESTIMATE_SLACK = 4, 0.02

_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_DIGITS, _BLANKS, _OTHERS = b"0123456789", b" \t\n\r", bytes(range(128, 256))
_PLAIN = frozenset(_LETTERS + _DIGITS + _BLANKS + _OTHERS)
_MARKS = bytes(byte for byte in range(256) if byte not in _PLAIN)
_WORDS = bytes(ord("a") if byte in _LETTERS else ord(" ") for byte in range(256))
_ASCII = bytes(range(128))


def weigh(raw: bytes) -> tuple[float, int]:
    """About how many tokens the ASCII part of UTF-8 text has, only good beside another weight, and its other bytes."""
    words = raw.translate(_WORDS)
    own = WORD * words.count(b"a ") + LETTER * words.count(b"a")
    own += MARK * _count(raw, _MARKS) + DIGIT * _count(raw, _DIGITS)
    return own, len(raw.translate(None, _ASCII))


def _count(raw: bytes, kind: bytes) -> int:
    return len(raw) - len(raw.translate(None, kind))


def estimated(anchors: Sequence[Anchor]) -> bool:
    """Whether the reported counts follow the bytes from one to the next, as no tokenizer's do."""
    steps = [(b.size - a.size, b.tokens - a.tokens) for a, b in pairwise((Anchor(0, 0), *anchors))]
    off = sum(abs(tokens - size / ESTIMATED_BYTES) for size, tokens in steps)
    return off <= ESTIMATE_SLACK * sum(tokens for _, tokens in steps)


def share(outline: Outline, start: int, end: int, at: int, tokens: int) -> float:
    """The part (0 to 1) of the `tokens` between two byte positions of an outline that lies before a third one between
    them. `start` and `end` are edges of segments."""
    before, total = [0.0, 0], [0.0, 0]
    for begin, size, value in _segments(outline, start, end):
        raw = encode(value)
        whole = weigh(raw)
        _add(total, whole)
        if begin < at:
            _add(before, whole if begin + size <= at else weigh(raw[: at - begin]))
    other = min(OTHER_MOST, max(OTHER_LEAST, (tokens - total[0]) / max(1, total[1])))
    weight = total[0] + other * total[1]
    return (before[0] + other * before[1]) / weight if weight else (at - start) / (end - start)


def _add(sums: list[float], weights: tuple[float, int]) -> None:
    sums[0] += weights[0]
    sums[1] += weights[1]


def _segments(outline: Outline, start: int, end: int) -> Iterator[tuple[int, int, object]]:
    """Position, size in bytes and value of the segments between two edges."""
    edges, begin = outline.edges(), 0
    if start < edges[0]:
        for segment in outline.header:
            yield begin, segment.size, segment.value
            begin += segment.size
    for at in range(max(0, bisect_right(edges, start) - 1), len(outline.messages)):
        if edges[at] >= end:
            return
        yield edges[at], outline.sizes[at], outline.messages[at]
