"""Owns the screen that ends the second act: each reuse figure with the verdicts beside it, and what success cost.

It reads the ledger file as anybody could; money comes from `context-ledger tasks --json`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Column, Table
from verdict import Entry, find

CHECKS = {"policy": "policy_check", "files": "repo_check", "tools": "tools_check", "constraints": "constraints_check"}
SOUND = ("consistent", "fresh", "held", "compatible")


@dataclass(frozen=True, slots=True)
class Planted:
    """What was done to a call of the agent, counted from 1, and the verdict that it must have; the gravest advice."""

    call: int
    told: str
    pillar: str
    verdict: str
    advice: str


PLANTED = (
    Planted(3, "nothing", "files", "fresh", "keep"),
    Planted(4, "a file changed under the agent", "files", "stale", "rebuild_context"),
    Planted(6, "a tool's side effect flipped", "tools", "contract_changed", "rebuild_context"),
    Planted(7, "a compaction dropped the rule", "constraints", "lost", "new_session"),
    Planted(8, "nobody put it back", "constraints", "lost", "rebuild_context"),
    Planted(10, "a new session has it again", "constraints", "held", "keep"),
)
CALLS = 10


@dataclass(frozen=True, slots=True)
class Pair:
    """One planted thing beside what the ledger said of that call."""

    planted: Planted
    entry: Entry

    @property
    def named(self) -> bool:
        return (self.verdict(self.planted.pillar), self.advice) == (self.planted.verdict, self.planted.advice)

    @property
    def advice(self) -> str:
        words = [text.partition(":")[0] for text in find(self.entry, "advice") or ()]
        return words[0] if words else "?"

    def verdict(self, pillar: str) -> str:
        return find(self.entry, CHECKS[pillar]) or "?"

    @property
    def reused(self) -> str:
        whole, cached = find(self.entry, "input_tokens"), find(self.entry, "cached_tokens")
        return f"{100 * cached / whole:.1f} %" if whole and cached is not None else "?"

    @property
    def correctness(self) -> str:
        """What is wrong, else what is known to be right."""
        known = {name: word for name in CHECKS if (word := self.verdict(name)) not in ("unknown", "?")}
        wrong = {name: word for name, word in known.items() if word not in SOUND}
        told = ", ".join(f"{name} {word}" for name, word in wrong.items())
        return told or (f"in order: {', '.join(known)}" if known else "?")


def judge(entries: Sequence[Entry]) -> list[Pair]:
    """The agent's calls, side calls left out, beside what was planted in them."""
    own = dict(enumerate((entry for entry in entries if find(entry, "request_kind") == "agent"), 1))
    return [Pair(planted, own.get(planted.call, {})) for planted in PLANTED]


def show(pairs: Sequence[Pair], books: Mapping[str, Any], console: Console) -> bool:
    """Prints the table and what the success cost; whether everything was named."""
    right, advice = (Column(title, overflow="fold") for title in ("and was it right?", "advice"))
    table = Table("call", "what happened", "reused", right, advice, "", title="A hit is no proof")
    for pair in pairs:
        head = (str(pair.planted.call), pair.planted.told, pair.reused, pair.correctness, pair.advice)
        table.add_row(*head, "named" if pair.named else "NOT NAMED")
    console.print(table)
    console.print(success(books))
    return all(pair.named for pair in pairs)


def success(books: Mapping[str, Any]) -> str:
    """What a success cost, the failed attempt counted in, beside what one attempt costs, which hides it."""
    spent = [each["cost"] for one in books["tasks"] for each in one["attempts"] if each["cost"] is not None]
    cost = books["totals"]["cost_per_success"]
    if cost is None or not spent:
        return "Cost per successful task: ?"
    told = ", ".join(f"${amount:.4f}" for amount in spent)
    return f"Cost per successful task: ${cost:.4f}, the failed attempt counted in (attempts: {told})."
