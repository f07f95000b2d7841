"""Owns the last screen of the demo: whether the ledger named every planted mistake, its place and its price, and
blamed nothing else. It reads the ledger file as anybody could, and knows nothing of how the ledger works.

Fields are found by name at any depth of a line; null means unknown and is shown as `?`, never as 0.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mistakes
import script
from rich.console import Console
from rich.table import Column, Table

Entry = dict[str, Any]
# Nobody's fault: the first call of a session has nothing to reuse.
BLAMELESS = frozenset({None, "cold_start"})
# USD per million tokens of kimi-k3, for entries without a price of their own.
MISS_RATE = 3.00
READ_RATE = 0.30
TURNS = len(script.STEPS)


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a planted mistake must be called, and the segment in which it must be found."""

    told: str
    cause: str
    segment: str


# For each mistake, what its turns must be called; the last one holds for all turns after it. A line that appears in
# the system prompt is a changed text. That it is a clock can be seen once it has moved.
EXPECTED: dict[str, tuple[Expectation, ...]] = {
    "tools": (Expectation("a plugin reload moved a tool", "tools_reordered", "tool"),),
    "clock": (
        Expectation("a clock put into the system prompt", "policy_changed", "system"),
        Expectation("the clock has moved", "volatile_prefix", "system"),
    ),
    "prune": (Expectation("an old tool result cleared in place", "history_rewritten", "message"),),
}


def expected(mistake: str, turn: int) -> Expectation:
    """What a mistake must be called in a turn of its schedule."""
    stages = EXPECTED[mistake]
    return stages[min(mistakes.SCHEDULE[mistake].index(turn), len(stages) - 1)]


@dataclass(frozen=True, slots=True)
class Finding:
    """One turn with a planted mistake beside what the ledger said about it."""

    mistake: str
    turn: int
    cause: str | None
    position: Entry
    avoidable: int | None
    price: float | None

    @property
    def named(self) -> bool:
        wanted = expected(self.mistake, self.turn)
        return (self.cause, self.position.get("segment")) == (wanted.cause, wanted.segment)


@dataclass(frozen=True, slots=True)
class Verdict:
    """All findings in order of turns, (turn, cause) of whatever else was blamed, and how many calls there are."""

    findings: tuple[Finding, ...]
    others: tuple[tuple[int, str], ...]
    calls: int

    @property
    def holds(self) -> bool:
        """A ledger that lacks a call proves nothing, however few causes it names."""
        return self.calls == TURNS and not self.others and all(finding.named for finding in self.findings)


def read(path: Path) -> list[Entry]:
    """The calls in a ledger file, in order; lines of other kinds are left out."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [entry for entry in map(json.loads, lines) if _has(entry, "cached_tokens")]


def judge(entries: list[Entry], made: frozenset[str]) -> Verdict:
    """Compare the n-th entry with what was planted in turn n."""
    planted = {turn: name for name in mistakes.SCHEDULE if name in made for turn in mistakes.SCHEDULE[name]}
    missing: Entry = {}
    by_turn = dict(enumerate(entries, 1))
    findings = tuple(_finding(name, turn, by_turn.get(turn, missing)) for turn, name in sorted(planted.items()))
    causes = ((turn, find(entry, "miss_cause")) for turn, entry in by_turn.items() if turn not in planted)
    others = tuple((turn, cause) for turn, cause in causes if cause not in BLAMELESS)
    return Verdict(findings, others, len(entries))


def price(entry: Entry) -> float | None:
    """USD that the avoidable tokens cost: they were billed at the miss rate and could have been reads."""
    own = find(entry, "cost_avoidable")
    if own is not None:
        return float(own)
    avoidable = find(entry, "avoidable_tokens")
    return None if avoidable is None else avoidable * (MISS_RATE - READ_RATE) / 1e6


def find(value: Any, name: str) -> Any:
    """The first field of this name at any depth, None if there is none or if it is null."""
    return next(_fields(value, name), None)


def _has(value: Any, name: str) -> bool:
    return any(True for _ in _fields(value, name))


def _fields(value: Any, name: str) -> Iterator[Any]:
    if not isinstance(value, dict):
        return
    if name in value:
        yield value[name]
    for inner in value.values():
        yield from _fields(inner, name)


def _finding(name: str, turn: int, entry: Entry) -> Finding:
    position = find(entry, "miss_position") or {}
    avoidable = find(entry, "avoidable_tokens")
    return Finding(name, turn, find(entry, "miss_cause"), position, avoidable, price(entry))


def show(verdict: Verdict, console: Console) -> None:
    """Print the table, its sum, and the line about everything else."""
    cause = Column("cause", overflow="fold")
    table = Table("turn", "what was done wrong", cause, "place", "tokens", "USD", "", title="Planted, and found")
    for finding in verdict.findings:
        table.add_row(*_row(finding))
    table.add_section()
    tokens, money = ([getattr(finding, name) for finding in verdict.findings] for name in ("avoidable", "price"))
    table.add_row("", "all of them", "", "", _tokens(_sum(tokens)), _money(_sum(money)), "")
    console.print(table)
    console.print(_rest(verdict))


def _row(finding: Finding) -> tuple[str, ...]:
    cells = (
        str(finding.turn),
        expected(finding.mistake, finding.turn).told,
        finding.cause or "?",
        place(finding.position),
    )
    named = "named" if finding.named else "NOT NAMED"
    return (*cells, _tokens(finding.avoidable), _money(finding.price), named)


def place(position: Entry) -> str:
    """A position in words: `tool 0 list`, `system 0, char 31: datetime`."""
    head = " ".join(str(position[name]) for name in ("segment", "index", "name") if position.get(name) is not None)
    offset = position.get("offset")
    where = head if offset is None else f"{head}, char {offset}"
    return f"{where}: {position['kind']}" if position.get("kind") else where or "?"


def _rest(verdict: Verdict) -> str:
    if verdict.calls != TURNS:
        return f"The ledger has {verdict.calls} calls where the agent made {TURNS}."
    if not verdict.others:
        return f"Nothing else was blamed: {TURNS} calls looked at."
    return "Blamed, but not planted: " + "; ".join(f"turn {turn}: {cause}" for turn, cause in verdict.others) + "."


def _sum(values: Iterable[Any]) -> Any:
    """The sum, unknown if a part of it is unknown."""
    known = list(values)
    return None if None in known else sum(known)


def _tokens(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"


def _money(amount: float | None) -> str:
    return "?" if amount is None else f"{amount:.4f}"
