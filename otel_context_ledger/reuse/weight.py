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

# Tokens per word, and per byte of a letter, mark, digit, line break or character beyond ASCII, as fitted to cl100k,
# o200k and two short vocabularies cut from cl100k over tool schemas, prose, Markdown and code. At any edge inside a
# header of tools and system text it errs by a median of 0.5 to 0.8 % of the header, bytes alone by 1.7 to 2.0 %.
WORD, LETTER, MARK, DIGIT, LINE, OTHER = 0.7, 0.12, 0.4, 0.75, 0.5, 0.25
# Longer stretches are divided by bytes: weighing takes 8 µs per kB.
MAX_STRETCH = 64 * 1024
# What gateways that estimate and simulators report: a quarter of the bytes, give or take the rendering.
ESTIMATED_BYTES, ESTIMATE_SLACK = 4, 0.02

_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_DIGITS, _LINES, _BLANKS = b"0123456789", b"\n\r", b" \t"
_OTHERS = bytes(range(128, 256))
_PLAIN = frozenset(_LETTERS + _DIGITS + _LINES + _BLANKS + _OTHERS)
_MARKS = bytes(byte for byte in range(256) if byte not in _PLAIN)
_WORDS = bytes(ord("a") if byte in _LETTERS else ord(" ") for byte in range(256))
_PER_BYTE = ((_MARKS, MARK), (_DIGITS, DIGIT), (_LINES, LINE), (_OTHERS, OTHER))


def weigh(raw: bytes) -> float:
    """About how many tokens UTF-8 text has; only good beside another weight."""
    words = raw.translate(_WORDS)
    own = WORD * words.count(b"a ") + LETTER * words.count(b"a")
    return own + sum(each * (len(raw) - len(raw.translate(None, kind))) for kind, each in _PER_BYTE)


def estimated(anchors: Sequence[Anchor]) -> bool:
    """Whether the reported counts follow the bytes from one to the next, as no tokenizer's do."""
    steps = [(b.size - a.size, b.tokens - a.tokens) for a, b in pairwise((Anchor(0, 0), *anchors))]
    off = sum(abs(tokens - size / ESTIMATED_BYTES) for size, tokens in steps)
    return off <= ESTIMATE_SLACK * sum(tokens for _, tokens in steps)


def share(outline: Outline, start: int, end: int, at: int) -> float:
    """The part (0 to 1) of the tokens between two byte positions of an outline that lies before a third one between
    them. `start` and `end` are edges of segments."""
    before = total = 0.0
    for begin, size, value in _segments(outline, start, end):
        raw = encode(value)
        whole = weigh(raw)
        total += whole
        if begin < at:
            before += whole if begin + size <= at else weigh(raw[: at - begin])
    return before / total if total else (at - start) / (end - start)


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
