"""Owns how each quantity is called, described and shown: as a number, by agent over time, and as a column.

How it is asked is in measures.py. `normal` says what a reader may expect, and is part of every description.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from otel_context_ledger import semconv as s

from . import measures as m
from .panels import BLUE, LOSS, PLAIN, Column, Graph, Query, Stat, Steps
from .promql import AGENT, View
from .thresholds import COVERAGE, RECALL, RIGHT, SUCCESS, Threshold
from .variables import RANGE, RATE

BY_AGENT = f"{{{{{AGENT}}}}}"
AGENTS_HEADS = {s.GEN_AI_AGENT_NAME: "Agent"}


@dataclass(frozen=True, slots=True)
class Quantity:
    """Something that is measured: a question for a view, its title, what it is and what is normal."""

    title: str
    ask: Callable[[View], str]
    what: str
    normal: str
    unit: str = "percentunit"
    decimals: int = 1
    floor: Threshold | None = None
    steps: Steps = PLAIN
    short: str = ""
    limits: Mapping[str, float | None] = field(default_factory=lambda: {"bottom": 0, "top": 1})

    @property
    def about(self) -> str:
        under = f" The floor is the variable {self.floor.label}." if self.floor else ""
        return f"{self.what}\n\nNormal: {self.normal}{under}"


def number(of: Quantity) -> Stat:
    """The quantity over the chosen time."""
    return Stat(
        title=of.title,
        about=of.about,
        queries=(Query(of.ask(RANGE)),),
        unit=of.unit,
        decimals=of.decimals,
        steps=of.steps,
        floor=of.floor.variable if of.floor else "",
    )


def by_agent(of: Quantity) -> Graph:
    """The quantity over time, a line for each agent: a total hides the one that fell."""
    return Graph(
        title=f"{of.title} by agent",
        about=of.about,
        queries=(Query(of.ask(RATE.per(s.GEN_AI_AGENT_NAME)), BY_AGENT),),
        unit=of.unit,
        floor=of.floor.variable if of.floor else "",
        bottom=of.limits["bottom"],
        top=of.limits["top"],
    )


def column(of: Quantity, view: View) -> Column:
    """The quantity for each row of a table."""
    return Column(of.short or of.title, of.ask(view), of.unit, of.decimals)


def state(of: Quantity, view: View, head: str) -> Column:
    """Whether the quantity is under its floor. Raises ValueError for one without a floor."""
    if of.floor is None:
        raise ValueError(f"{of.title} has no floor")
    return Column(head, f"({of.ask(view)}) >= bool {of.floor.variable}", "none", state=True)


READ = Quantity(
    "Cache read share",
    m.read_share,
    "How much of the input the provider read from its cache, of the input whose reuse was reported.",
    "above 80 % where an agent appends to its history; the good value depends on the work. High is not good by itself: "
    "read it with its partner to the right.",
    steps=BLUE,
    short="Cache read",
)
CAPTURED = Quantity(
    "Reuse captured",
    m.captured,
    "Of the tokens that were in the cache and were sent again, how many were read from it.",
    "above 95 %. The rest is on the board *Why not reused*, by cause.",
    steps=BLUE,
    short="Captured",
)
SAVED = Quantity(
    "Saved by the cache",
    m.saved,
    "What was not paid of the price without a cache, premiums for writing included. Calls whose price is not known are "
    "left out.",
    "50 to 80 % in long sessions. Below 0 (red) the cache costs more than it saves.",
    steps=LOSS,
    short="Saved",
    limits={"bottom": None, "top": 1},
)
RECALLED = Quantity(
    "Constraint recall",
    lambda view: m.checked_right(view, "constraints"),
    "Declared constraints that still stood in the context, of the checks that could tell.",
    "100 %. Less means that the agent works without a rule that it was given.",
    floor=RECALL,
    short="Recall",
)
SOUND = Quantity(
    "Checks right",
    m.checked_right,
    "Checks of policy, repository, tools, constraints and state that found the context right, of those that could be "
    "judged.",
    "close to 100 %. It falls where rules, tools or files changed and the context was not told.",
    floor=RIGHT,
)
SUCCEEDED = Quantity(
    "Tasks succeeded",
    m.succeeded,
    "Tasks that succeeded, of those whose end was told. Tasks of which nobody told the end are in neither number.",
    "what your tasks had last week; a fall while reuse rises is the sign of a wrong context.",
    floor=SUCCESS,
    short="Succeeded",
)
REPORTED = Quantity(
    "Reuse reported",
    m.reported,
    "Calls of which the provider told how much it reused.",
    "100 % with providers that report; else every figure of reuse speaks of this part of the calls alone. Unknown is "
    "not zero.",
    floor=COVERAGE,
    short="Reported",
)
JUDGED = Quantity(
    "Checks judged",
    m.judged,
    "Checks that came to a verdict: rules, files and tools were known, constraints could be told.",
    "above 90 %; else every figure of correctness speaks of this part of the checks alone. Unknown is not right.",
    floor=COVERAGE,
    short="Judged",
)
COST = Quantity(
    "Cost per success",
    m.cost_per_success,
    "All that calls cost in this time, failed tasks included, by the tasks that succeeded in it. Calls whose price is "
    "not known are left out.",
    "what it was last week. It rises when the cache is missed and when tasks fail.",
    unit="currencyUSD",
    decimals=2,
    short="Cost per success",
    limits={"bottom": 0, "top": None},
)
