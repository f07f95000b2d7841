"""Measures what all checks together add to an append: each pillar has something to compare, and every call is asked.

The steps are timed from outside, on the caller's thread and on the ledger's own; a step within a step counts once.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import local
from time import thread_time
from typing import Any

from benchmarks.corpus import SIZES, Corpus, Message, rebuilt
from benchmarks.seam import MODEL, Seam, Unwatched
from benchmarks.table import Bar, Row
from otel_context_ledger import constraint, tool_registry
from otel_context_ledger.correctness.advice import Advisor
from otel_context_ledger.correctness.examination import Examiner
from otel_context_ledger.correctness.tools.check import Tools
from otel_context_ledger.courses import Courses
from otel_context_ledger.witness import Witness

BAR = Bar(share=0.003)
APPENDS = 8
READS = 16
STEPS: tuple[tuple[type, tuple[str, ...]], ...] = (
    (Examiner, ("begin", "answered", "renewed", "finish")),
    (Courses, ("arrive", "fold", "asked", "told")),
    (Witness, ("opened", "called")),
    (Tools, ("look", "judged")),
    (Advisor, ("past", "after", "keep", "advise")),
)
RULES = [f"Never edit files under part{number}/ without a test that shows why." for number in range(20)]


class Stopwatch:
    """CPU seconds spent in the steps, by the thread that makes calls and by the others."""

    def __init__(self) -> None:
        self.here = self.elsewhere = 0.0
        self._depth, self._caller = local(), local()
        self._caller.own = True

    def around(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """The step, timed unless it is part of another one."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            if getattr(self._depth, "inside", False):
                return step(*args, **kwargs)
            self._depth.inside, begun = True, thread_time()
            try:
                return step(*args, **kwargs)
            finally:
                self._add(thread_time() - begun)
                self._depth.inside = False

        return timed

    def _add(self, seconds: float) -> None:
        if getattr(self._caller, "own", False):
            self.here += seconds
        else:
            self.elsewhere += seconds


@contextmanager
def timed() -> Iterator[Stopwatch]:
    """All steps of the checks, timed as long as the block."""
    watch = Stopwatch()
    known = [(owner, name, owner.__dict__[name]) for owner, names in STEPS for name in names]
    for owner, name, step in known:
        setattr(owner, name, watch.around(step))
    try:
        yield watch
    finally:
        for owner, name, step in known:
            setattr(owner, name, step)


@contextmanager
def workspace() -> Iterator[Path]:
    """A repository with rules and the files that the history reads, which the ledger is told to watch."""
    with TemporaryDirectory() as directory:
        root = Path(directory)
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        (root / "AGENTS.md").write_text("\n".join(f"- {rule}" for rule in RULES), "utf-8")
        for number in range(READS):
            (root / f"part{number}.py").write_text(f"x = {number}\n" * 50, "utf-8")
        os.environ["CONTEXT_LEDGER_REPOSITORY"] = str(root)
        try:
            yield root
        finally:
            del os.environ["CONTEXT_LEDGER_REPOSITORY"]


def measure(seam: Seam, url: str, quick: bool) -> Iterator[Row]:
    """The largest size, inside `workspace()`."""
    corpus = Corpus(SIZES[-1])
    client = Unwatched(api_key="none", base_url=f"{url}/kimi/v1", max_retries=0)
    tool_registry({"tools": [_listed(tool) for tool in corpus.tools]}, server="corpus")
    for number, rule in enumerate(RULES[:5]):
        constraint(f"C{number}", rule)
    rounds = 2 if quick else 4
    found = [_round(seam, client, corpus, number) for number in range(rounds + 1)][1:]
    alone, here, all_ = (median(values) for values in zip(*found, strict=True))
    yield Row(f"{corpus.size.messages:,} messages, append, all checks", alone, here, BAR)
    yield Row(f"{corpus.size.messages:,} messages, append, all checks, with threads", alone, all_)


def _round(seam: Seam, client: Any, corpus: Corpus, number: int) -> tuple[float, float, float]:
    """CPU seconds of `create()`, and what the checks took of the caller's thread and of all for one append."""
    talk = _talk(corpus, number)
    first = len(talk) - 2 * APPENDS
    seam.call(rebuilt(talk[:first]), rebuilt(corpus.tools), 0)
    seam.settle()
    with timed() as watch:
        for end in range(first + 2, len(talk) + 1, 2):
            seam.call(rebuilt(talk[:end]), rebuilt(corpus.tools), end - 2)
        seam.settle()
    begun = thread_time()
    client.chat.completions.create(model=MODEL, messages=talk, tools=corpus.tools)
    return thread_time() - begun, watch.here / APPENDS, (watch.here + watch.elsewhere) / APPENDS


def _talk(corpus: Corpus, number: int) -> list[Message]:
    """A history whose system part holds the rules and whose calls of tools read files, some of them in what is new."""
    system, *rest = corpus.history(number, 2 * APPENDS)
    rules = "\n".join(f"- {rule}" for rule in RULES)
    talk = [{**system, "content": f"{system['content']}\n{rules}"}, *rest]
    for message in talk:
        for call in message.get("tool_calls") or ():
            at = int(call["id"].removeprefix("call_")) % READS
            call["function"] = {"name": "read_file", "arguments": f'{{"path": "part{at}.py"}}'}
    return talk


def _listed(tool: dict[str, Any]) -> dict[str, Any]:
    own = tool["function"]
    return {"name": own["name"], "description": own["description"], "inputSchema": own["parameters"]}
