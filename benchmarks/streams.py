"""Measures streams: what the SDK spends on one event beside what we add to it."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from time import thread_time
from typing import Any

from benchmarks.loopback import EVENTS
from benchmarks.replay import Replay
from benchmarks.seam import MODEL, Seam, Unwatched
from benchmarks.table import Bar, Row

BAR = Bar(seconds=5e-6)
ROUNDS = 15


def measure(seam: Seam, url: str, quick: bool) -> Iterator[Row]:
    """One row: an event of a stream of text."""
    client = Unwatched(api_key="none", base_url=f"{url}/kimi/v1", max_retries=0)
    ask: Any = {"model": MODEL, "messages": [{"role": "user", "content": "Go on."}], "stream": True}
    Replay.events = tuple(client.chat.completions.create(**ask))
    alone, watched, plain = [], [], []
    for _ in range(ROUNDS // 3 if quick else ROUNDS):
        alone.append(_read(client.chat.completions.create(**ask)))
        watched.append(_read(seam.stream(Replay)))
        plain.append(_read(Replay()))
    seam.settle()
    yield Row("one event of a stream", median(alone), median(watched) - median(plain), BAR)


def _read(stream: Any) -> float:
    """Thread CPU seconds per event of a stream read to its end."""
    began = thread_time()
    for _ in stream:
        pass
    return (thread_time() - began) / EVENTS
