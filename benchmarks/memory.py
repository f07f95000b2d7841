"""Measures memory: sessions of ten calls fill what the ledger remembers, as many more must not need more. In the
long form each declares a constraint and a todo, says what it read, and is compacted half way: what is remembered of
these, of all sessions together, takes thousands of calls to fill.

`python -m benchmarks.memory SESSIONS [told]` is the process that is measured; it prints two sizes in bytes.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.corpus import SIZES, Corpus, Message, rebuilt
from benchmarks.table import Bar, Row
from otel_context_ledger import compaction, constraint, read, session

CALLS = 10
OPENING = "This session is being continued from a previous conversation."
SESSIONS = 1_000
# After the first the ledger is full, after the next two the allocator and the tables of all sessions have settled, the
# last is measured.
PHASES = 4
# What the allocator sways by; two hundred bytes kept of each call would be more.
BAR = Bar(bytes=2 * 2**20)
_STATM = Path("/proc/self/statm")


def measure(quick: bool) -> Iterator[Row]:
    """One row, where the system says how much memory a process has."""
    if not _STATM.exists():
        return
    sessions = SESSIONS // 10 if quick else SESSIONS
    bounded = {**os.environ, "CONTEXT_LEDGER_MAX_SESSIONS": str(sessions)}
    command = [sys.executable, "-m", "benchmarks.memory", str(sessions), *([] if quick else ["told"])]
    shown = subprocess.run(command, env=bounded, check=True, capture_output=True, text=True).stdout
    full, later = map(int, shown.split())
    what = f"resident after {(PHASES - 1) * sessions * CALLS:,} calls, growth over {sessions * CALLS:,} more"
    yield Row(what, full, later - full, BAR, "bytes")


def main() -> None:
    from benchmarks.seam import instrumented

    sessions, corpus = int(sys.argv[1]), Corpus(replace(SIZES[0], messages=4))
    histories = _told if sys.argv[2:] else _plain
    with instrumented() as seam:
        for number in range(PHASES * sessions):
            with session(f"session-{number}"):
                for history in histories(corpus.history(number, 2 * CALLS), number):
                    seam.call(rebuilt(history), rebuilt(corpus.tools), max(0, len(history) - 2))
            seam.settle()
            if number + 1 in ((PHASES - 1) * sessions, PHASES * sessions):
                gc.collect()
                print(_resident())


def _plain(every: list[Message], number: int) -> Iterator[list[Message]]:
    """What the calls of one session send."""
    return (every[:length] for length in range(4, 4 + 2 * CALLS, 2))


def _told(every: list[Message], number: int) -> Iterator[list[Message]]:
    """The same of a session that is compacted, with what its program declares and tells between them."""
    constraint(f"C{number}", f"Never edit files of part {number} without a test that shows why.")
    constraint(f"T{number}", f"rename queue {number}", kind="todo")
    half = 4 + CALLS
    for length in range(4, half, 2):
        read(f"part{number}/file{length}.py")
        yield every[:length]
    with compaction(trigger="auto", tokens_before=half * 100) as told:
        told.done(summary := f"{OPENING} Never edit files of part {number} without a test. Open: T{number}.")
    for length in range(half, half + CALLS, 2):
        yield [every[0], {"role": "user", "content": summary}, *every[half:length]]


def _resident() -> int:
    return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
