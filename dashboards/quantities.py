"""Owns how each quantity is called, described and shown: as a number, by agent over time, and as a column.

How it is asked is in measures.py. `normal` says what a reader may expect, and is part of every description.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from otel_context_ledger import semconv as s

from . import measures as m
from .palette import UNTOLD
from .panels import BLUE, LOSS, NONE_IS_RIGHT, PLAIN, TRAILING, Bars, Column, Graph, Query, Stat, Steps
from .promql import AGENT, Picks, View, label, named, whole
from .thresholds import COVERAGE, RECALL, RIGHT, SUCCESS, Threshold
from .variables import RANGE, RATE

BY_AGENT = f"{{{{{AGENT}}}}}"
# What is not told of everything that is counted.
OPTIONAL = (s.CONTEXT_LEDGER_COMPACTION_TRIGGER, s.CONTEXT_LEDGER_COMPACTION_VALIDATOR_RESULT)
# Counters cannot tell which cost belongs to a task.
ALL_COST = (
    "All cost is counted: that of failed tasks, and that of calls outside of tasks too, which `context-ledger tasks` "
    "and `report` leave out. The cost of calls whose price is not known is missing."
)
IN_A_TABLE = f"*Cost per success*: {ALL_COST}"
AGENTS_HEADS = {s.GEN_AI_AGENT_NAME: "Agent"}


@dataclass(frozen=True, slots=True)
class Quantity:
    """Something that is measured: a question for a view, its title, what it is and what is normal. What is `rare`
    (a task ends, a compaction happens now and then) is told over time for as long as the chosen time. A number
    of `things` is a whole one."""

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
    rare: bool = False
    things: bool = False

    @property
    def about(self) -> str:
        under = f" The floor is the variable {self.floor.label}." if self.floor else ""
        return f"{self.what}\n\nNormal: {self.normal}{under}"


def number(of: Quantity) -> Stat:
    """The quantity over the chosen time."""
    return Stat(
        title=of.title,
        about=of.about,
        queries=(Query(exact(of, RANGE)),),
        unit=of.unit,
        decimals=None if of.things else of.decimals,
        steps=of.steps,
        floor=of.floor,
    )


def agents(ask: Callable[[View], str], view: View = RATE) -> Query:
    """A question over time, a line for each agent."""
    return Query(named(ask(view.per(s.GEN_AI_AGENT_NAME)), s.GEN_AI_AGENT_NAME), BY_AGENT)


def stacked(title: str, about: str, metric: str, by: str, picks: Picks | None = None, *, traced: bool = False) -> Graph:
    """What a counter went up by a second, an area for each value of an attribute."""
    told = RATE.per(by).total(metric, picks)
    asked = Query(named(told, by, UNTOLD) if by in OPTIONAL else told, f"{{{{{label(by)}}}}}")
    return Graph(title=title, about=about, queries=(asked,), unit="short", stacked=True, by=by, traced=traced)


def bars(title: str, about: str, metric: str, by: str, picks: Picks | None = None) -> Bars:
    """What a counter went up by in the chosen time, a bar for each value of an attribute that has any."""
    expr = f"sort_desc({whole(RANGE.per(by).total(metric, picks))} > 0)"
    return Bars(
        title=title,
        about=about,
        queries=(Query(expr, f"{{{{{label(by)}}}}}"),),
        unit="short",
        by=by,
        empty="None, or no traffic",
    )


def by_agent(of: Quantity, view: View = RATE) -> Graph:
    """The quantity over time, a line for each agent: a total hides the one that fell."""
    return Graph(
        title=f"{of.title} by agent",
        about=f"{of.about} {TRAILING}" if of.rare else of.about,
        queries=(agents(of.ask, RANGE if of.rare else view),),
        unit=of.unit,
        floor=of.floor,
        bottom=of.limits["bottom"],
        top=of.limits["top"],
    )


def column(of: Quantity, view: View) -> Column:
    """The quantity for each row of a table."""
    return Column(of.short or of.title, exact(of, view), of.unit, None if of.things else of.decimals)


def exact(of: Quantity, view: View) -> str:
    """The question for a headline or a cell."""
    return whole(of.ask(view)) if of.things else of.ask(view)


def state(of: Quantity, view: View, head: str) -> Column:
    """Whether the quantity is under its floor. Raises ValueError for one without a floor."""
    if of.floor is None:
        raise ValueError(f"{of.title} has no floor")
    return Column(head, of.floor.met(of.ask(view)), "none", state=True)


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
    "The share of the price without a cache that was not paid; premiums for writing to it are counted in. Calls whose "
    "price is not known are left out.",
    "50 to 80 % in long sessions. Below 0 (red) the cache costs more than it saves.",
    steps=LOSS,
    short="Saved",
    limits={"bottom": None, "top": 1},
)
RECALLED = Quantity(
    "Constraint recall",
    lambda view: m.checked_right(view, "constraints"),
    "Checks that found the declared constraints still in the context, of those that could tell.",
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
    rare=True,
)
REPORTED = Quantity(
    "Reuse reported",
    m.reported,
    "Of the calls that were answered, those whose reuse the provider told.",
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
    f"What calls cost in this time, divided by the tasks that succeeded in it. {ALL_COST}",
    "what it was last week. It rises when the cache is missed and when tasks fail.",
    unit="currencyUSD",
    decimals=2,
    short="Cost per success",
    limits={"bottom": 0, "top": None},
    rare=True,
)
MISSED = Quantity(
    "Tokens missed",
    m.missed,
    "Tokens that were in the cache since the call before, were sent again, and were not read from it.",
    "a few percent of the input. Why they were missed is below.",
    unit="short",
    steps=BLUE,
    short="Missed",
    limits={"bottom": 0, "top": None},
)
UNCHANGED = Quantity(
    "Kept by the provider",
    m.kept_share,
    "Of the reusable tokens of calls whose model, settings, rules and tools were those of the call before, how many "
    "the provider did not lose. Tokens that were missed because of the program or a pause are not held against it: so "
    "this may be 100 % while tokens were missed.",
    "above 95 %. A fall is the provider's own: another route, an eviction. The first alert of the runbook holds this "
    "against the day before.",
    steps=BLUE,
    short="Kept",
)
EXPLAINED = Quantity(
    "Misses explained",
    m.explained,
    "Of the missed tokens, those with a known cause. The others are `provider_unexplained`, `previous_unknown` and "
    "`not_reported`.",
    "above 90 % some minutes after a restart.",
    floor=COVERAGE,
    short="Explained",
)
WRONG = Quantity(
    "Wrong contexts",
    m.found_wrong,
    "Checks that found the context wrong: stale rules or files, drifted tools, lost constraints, a broken history.",
    "0, or a few right after files changed.",
    unit="short",
    things=True,
    steps=NONE_IS_RIGHT,
    short="Wrong",
    limits={"bottom": 0, "top": None},
)
LOST = Quantity(
    "Constraints lost",
    m.lost,
    "Checks that found a declared constraint gone from the context.",
    "0. Each one is an agent that works without a rule that it was given.",
    unit="short",
    things=True,
    steps=NONE_IS_RIGHT,
    short="Lost",
    limits={"bottom": 0, "top": None},
)
COMPACTED = Quantity(
    "Kept by compactions",
    m.compacted_to,
    "How much of a prompt its compactions left, in tokens.",
    "10 to 40 %. Less saves more and loses more: read it with its partner to the right.",
    steps=BLUE,
    short="Kept",
    limits={"bottom": 0, "top": None},
    rare=True,
)
PASSED = Quantity(
    "Compactions passed",
    m.compactions_passed,
    "Compactions after which all that had to survive was still there, of those that a validator could judge.",
    "100 %. Those that could not be judged are in the graphs below, grey.",
    floor=RECALL,
    short="Passed",
    rare=True,
)
DECIDED = Quantity(
    "Tasks decided",
    m.ends_known,
    "Tasks of which somebody told the end, of all that were told of.",
    "above 90 %; else cost per success counts too few successes. Unknown is not failed.",
    floor=COVERAGE,
    short="Decided",
    rare=True,
)
CALLS = Quantity(
    "Calls per success",
    m.calls_per_success,
    "Model calls, those outside of tasks too, divided by the tasks that succeeded in the same time.",
    "what it was last week. It rises when agents wander, as after a bad compaction.",
    unit="short",
    short="Calls per success",
    limits={"bottom": 0, "top": None},
    rare=True,
)
