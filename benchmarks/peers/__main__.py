"""`python -m benchmarks.peers`: measures all contestants and prints one table; what it says stands in the package."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import loopback, peers
from benchmarks.__main__ import cpu
from benchmarks.peers import environments
from benchmarks.peers.contestants import CONTESTANTS

ROUNDS, QUICK = 9, 3
EVENTS = 1_000
# Messages, calls a round.
SIZES = ((10, 24), (200, 8), (2_000, 4))
_HEAD = ("", "content", *(f"{size:,}: added ms, with threads, share" for size, _ in SIZES), "event, share")


class Process:
    """A worker: one contestant in its environment."""

    def __init__(self, name: str, content: bool, python: Path, *provider: str) -> None:
        self.name, self.content = name, content
        command = [str(python), "-m", "benchmarks.peers.worker", name, "on" if content else "off", *provider]
        surroundings = {**os.environ, "PYTHONPATH": str(environments.ROOT)}
        # What peers say about spans that overflow is theirs to say, not ours to show.
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=surroundings, cwd=environments.ROOT,
        )  # fmt: skip
        self.version = str(self._read()["version"])

    def ask(self, **command: int) -> Mapping[str, Any]:
        """The answer to a command; raises EOFError if the worker died."""
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(command) + "\n")
        self._child.stdin.flush()
        return self._read()

    def close(self) -> None:
        self._child.kill()
        self._child.wait()

    def _read(self) -> Mapping[str, Any]:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        while line and not line.startswith("{"):
            line = self._child.stdout.readline()
        if not line:
            raise EOFError(f"the worker of {self.name} died")
        found: Mapping[str, Any] = json.loads(line)
        return found


@dataclass(slots=True)
class Row:
    """What was measured of one contestant, round by round: seconds by what they are of."""

    title: str
    version: str
    content: str
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def note(self, what: str, found: Mapping[str, float]) -> None:
        for clock, seconds in found.items():
            self.seconds.setdefault(f"{what} {clock}", []).append(seconds)

    def of(self, what: str) -> float:
        """The median over the rounds."""
        return median(self.seconds[what])


def measured(names: Iterable[str], rounds: int, here: bool) -> tuple[Row, list[Row]]:
    """The bare SDK's own time, and every contestant's."""
    with ExitStack() as stack:
        url = stack.enter_context(loopback.running())
        sdk = Process("bare", False, _python("bare", here), url)
        stack.callback(sdk.close)
        workers = [
            Process(name, content, _python(CONTESTANTS[name].environment, here))
            for name in names
            for content in CONTESTANTS[name].contents
        ]
        for worker in workers:
            stack.callback(worker.close)
        alone = Row("the SDK itself", sdk.version, "")
        rows = [_row(worker) for worker in workers]
        for number in range(rounds):
            order = list(zip(workers, rows, strict=True))
            for what, calls in _tasks():
                alone.note(what, _alone(sdk, what))
                for worker, row in order if number % 2 else reversed(order):
                    row.note(what, worker.ask(**calls))
    return alone, rows


def _tasks() -> Iterator[tuple[str, dict[str, int]]]:
    yield from ((f"{size}", {"size": at, "calls": calls}) for at, (size, calls) in enumerate(SIZES))
    yield "event", {"events": EVENTS}


def _alone(sdk: Process, what: str) -> Mapping[str, float]:
    if what == "event":
        return sdk.ask(stream=1)
    at = [str(size) for size, _ in SIZES].index(what)
    return sdk.ask(size=at, create=1 if at else 4)


def _python(environment: str, here: bool) -> Path:
    return Path(sys.executable) if here else environments.interpreter(environment)


def _row(worker: Process) -> Row:
    contestant = CONTESTANTS[worker.name]
    only = len(contestant.contents) == 1
    content = ("always" if worker.content else "never") if only else ("on" if worker.content else "off")
    return Row(contestant.title, worker.version, "" if worker.name in ("bare", "manual") else content)


def table(alone: Row, rows: Iterable[Row]) -> str:
    """Markdown, for people and the README."""
    lines = [_HEAD, ("---",) * len(_HEAD), _alone_cells(alone), *(_cells(row, alone) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _alone_cells(alone: Row) -> tuple[str, ...]:
    calls = (f"{alone.of(f'{size} thread') * 1e3:.3g} ms" for size, _ in SIZES)
    return (f"*the SDK itself* {alone.version}", "", *calls, f"{alone.of('event thread') * 1e6:.3g} µs")


def _cells(row: Row, alone: Row) -> tuple[str, ...]:
    found = []
    for size, _ in SIZES:
        thread, whole = row.of(f"{size} thread"), row.of(f"{size} process")
        found.append(f"{thread * 1e3:.2f}, {whole * 1e3:.2f}, {thread / alone.of(f'{size} thread'):.1%}")
    event = row.of("event thread")
    return (
        f"{row.title} {row.version}",
        row.content,
        *found,
        f"{event * 1e6:.1f} µs, {event / alone.of('event thread'):.0%}",
    )


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.peers", description=peers.__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--rounds", type=int, help=f"{ROUNDS} if not said")
    parser.add_argument("--only", default=",".join(CONTESTANTS), help="names, separated by commas")
    parser.add_argument("--here", action="store_true", help="run all in this interpreter's environment")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every number to FILE")
    options = parser.parse_args()
    rounds = options.rounds or (QUICK if options.quick else ROUNDS)
    alone, rows = measured(options.only.split(","), rounds, options.here)
    print(table(alone, rows))
    print(
        f"\nPython {platform.python_version()}, {', '.join(environments.SDK)}, {cpu()} x {os.cpu_count()}, "
        f"median of {rounds} rounds, {date.today().isoformat()}"
    )
    if options.json:
        found = {f"{row.title} {row.content}".strip(): row.seconds for row in (alone, *rows)}
        options.json.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
