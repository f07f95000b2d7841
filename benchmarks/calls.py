"""Measures calls: the SDK's own `create()` beside what each kind of call adds to it, size by size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from time import process_time, thread_time
from typing import Any

from benchmarks.corpus import SIZES, Corpus, Message, Size, edited, rebuilt
from benchmarks.seam import MODEL, Seam, Unwatched
from benchmarks.table import Bar, Row

APPENDS = 4
# A conversation that has grown by one part in so many is too long for its size: another one goes on.
GROWTH = 10
# Our limits: shares of `create()` at 2,000 messages, seconds below.
BARS = {
    (2_000, "append"): Bar(share=0.005),
    (2_000, "edit first"): Bar(share=0.02),
    (2_000, "edit middle"): Bar(share=0.02),
    (2_000, "first sight"): Bar(share=0.035),
    **{(200, kind): Bar(seconds=0.6e-3) for kind in ("append", "edit first", "edit middle", "first sight")},
    **{(10, kind): Bar(seconds=0.3e-3) for kind in ("append", "edit first", "edit middle", "first sight")},
}


def measure(seam: Seam, url: str, quick: bool) -> Iterator[Row]:
    """The rows of every size."""
    client = Unwatched(api_key="none", base_url=f"{url}/kimi/v1", max_retries=0)
    for size in SIZES:
        found: dict[str, list[float]] = {}
        for kind, seconds in _rounds(seam, client, Corpus(size), max(3, size.rounds // 4) if quick else size.rounds):
            found.setdefault(kind, []).append(seconds)
        yield from _rows(size, found)


def _rounds(seam: Seam, client: Any, corpus: Corpus, rounds: int) -> Iterator[tuple[str, float]]:
    """What was measured in all rounds but the first: the first call of a process imports and connects."""
    size = corpus.size.messages
    laps = max(1, size // GROWTH // (2 * APPENDS))
    for number in range(rounds + 1):
        lap = number % laps
        if lap == 0:
            talk = corpus.history(-number, 2 * APPENDS * laps)
            _added(seam, talk[:size], corpus.tools, 0)
        start = size + 2 * APPENDS * lap
        measured = list(_round(seam, client, corpus, talk[: start + 2 * APPENDS], corpus.history(number + 1)))
        yield from measured if number else ()


def _round(
    seam: Seam, client: Any, corpus: Corpus, talk: list[Message], other: list[Message]
) -> Iterator[tuple[str, float]]:
    """Appends to a conversation that goes on; first sight of another, edits of that, and the SDK's own call of it."""
    tools, length = corpus.tools, len(talk)
    seam.settle()
    began, idle = process_time(), 0.0
    for end in range(length - 2 * APPENDS + 2, length + 1, 2):
        paused = thread_time()
        request = rebuilt(talk[:end]), rebuilt(tools)
        idle += thread_time() - paused
        yield "append", seam.call(*request, end - 2)
    seam.settle()
    yield "append with threads", (process_time() - began - idle) / APPENDS
    yield "first sight", _added(seam, other, tools, 0)
    for kind, place in (("edit first", 1), ("edit middle", len(other) // 2)):
        yield kind, _added(seam, edited(other, place, kind), tools, place)
    began, whole = thread_time(), process_time()
    client.chat.completions.create(model=MODEL, messages=other, tools=tools)
    yield "create", thread_time() - began
    yield "create with threads", process_time() - whole


def _added(seam: Seam, messages: list[Message], tools: list[Any], cached: int) -> float:
    return seam.call(rebuilt(messages), rebuilt(tools), cached)


def _rows(size: Size, found: Mapping[str, list[float]]) -> Iterator[Row]:
    middle = {kind: median(values) for kind, values in found.items()}
    for kind in ("append", "edit first", "edit middle", "first sight"):
        bar = BARS[size.messages, kind]
        yield Row(f"{size.messages:,} messages, {kind}", middle["create"], middle[kind], bar)
    yield Row(
        f"{size.messages:,} messages, append, with threads",
        middle["create with threads"],
        middle["append with threads"],
    )
