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

# Tokens per word, and per byte of a letter, mark, digit and line break: one compromise for cl100k, o200k and two short
# vocabularies cut from cl100k, on tool schemas, prose, Markdown and code. At an edge inside a first prompt of tools and
# system text it errs by a median of 0.2 to 0.5 % and a most of 3 %, bytes alone by 1.8 to 2.0 % and a most of 9 %.
WORD, LETTER, MARK, DIGIT, LINE = 0.4, 0.17, 0.4, 0.8, 1.0
# A byte beyond ASCII is where vocabularies differ; it is solved for from the reported count, within these bounds.
OTHER_LEAST, OTHER_MOST = 0.15, 0.9
# A count so many times more or less than the text weighs is not that of the text alone: divided by bytes.
FAR_OFF = 2.0
# Longer stretches are divided by bytes: weighing takes about 10 µs per kB.
MAX_STRETCH = 64 * 1024
# What gateways that estimate and simulators report: a quarter of the bytes, give or take the rendering.
ESTIMATED_BYTES, ESTIMATE_SLACK = 4, 0.02

_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_DIGITS, _BLANKS, _OTHERS = b"0123456789", b" \t\r\n", bytes(range(128, 256))
_PLAIN = frozenset(_LETTERS + _DIGITS + _BLANKS + _OTHERS)
_MARKS = bytes(byte for byte in range(256) if byte not in _PLAIN)
_WORDS = bytes(ord("a") if byte in _LETTERS else ord(" ") for byte in range(256))
_ASCII = bytes(range(128))


def weigh(raw: bytes) -> tuple[float, int]:
    """About how many tokens the ASCII part of UTF-8 text has, only good beside another weight, and its other bytes."""
    words = raw.translate(_WORDS)
    own = WORD * words.count(b"a ") + LETTER * words.count(b"a")
    own += MARK * _count(raw, _MARKS) + DIGIT * _count(raw, _DIGITS) + LINE * raw.count(b"\n")
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
    before, total = [0.0, 0.0], [0.0, 0.0]
    for begin, size, kind, value in _segments(outline, start, end):
        whole = weigh(encode(value) if kind == "tool" else "\n".join(_spoken(value)).encode("utf-8", "replace"))
        _add(total, whole, 1.0)
        if begin < at:
            _add(before, whole, 1.0 if begin + size <= at else _part(encode(value), at - begin, kind))
    other = min(OTHER_MOST, max(OTHER_LEAST, (tokens - total[0]) / max(1.0, total[1])))
    weight = total[0] + other * total[1]
    if not weight / FAR_OFF < tokens < weight * FAR_OFF:
        return (at - start) / (end - start)
    return (before[0] + other * before[1]) / weight


def _add(sums: list[float], weights: tuple[float, int], part: float) -> None:
    sums[0] += part * weights[0]
    sums[1] += part * weights[1]


def _part(raw: bytes, size: int, kind: str) -> float:
    """The part (0 to 1) of a segment's weight that lies in its first `size` bytes. The JSON in front of the first text
    of a message is the client's own and weighs nothing."""
    lead = 0 if kind == "tool" else raw.find(b'":"') + 3
    (own, other), (all_own, all_other) = weigh(raw[lead:size]), weigh(raw[lead:])
    return (own + OTHER_LEAST * other) / max(1.0, all_own + OTHER_LEAST * all_other)


def _spoken(value: object) -> Iterator[str]:
    """The texts of a message or system block: its JSON is the client's, a chat template renders what it holds."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _spoken(item)
    elif isinstance(value, list):
        for item in value:
            yield from _spoken(item)


def _segments(outline: Outline, start: int, end: int) -> Iterator[tuple[int, int, str, object]]:
    """Position, size in bytes, kind and value of the segments between two edges."""
    edges, begin = outline.edges(), 0
    if start < edges[0]:
        for segment in outline.header:
            yield begin, segment.size, segment.kind, segment.value
            begin += segment.size
    for at in range(max(0, bisect_right(edges, start) - 1), len(outline.messages)):
        if edges[at] >= end:
            return
        yield edges[at], outline.sizes[at], "message", outline.messages[at]
