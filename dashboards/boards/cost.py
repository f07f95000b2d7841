"""The fourth board: what does a successful task cost, and what of it does the cache save?"""

from __future__ import annotations

from otel_context_ledger import semconv as s

from .. import measures as m
from .. import quantities as q
from .. import uids
from ..annotations import ALERTS, COMPACTIONS, IDENTITY
from ..layout import Board, Pair, line, section
from ..panels import PLAIN, TRAILING, Column, Graph, Query, Stat, Table
from ..promql import label, whole
from ..thresholds import COVERAGE, RIGHT, SUCCESS
from ..variables import AGENTS, MODELS, RANGE, RATE, Floor, Source

# What Grafana writes behind a number that it has no unit for.
HOURLY = "suffix:USD/h"
UNPRICED = "Calls whose price is not known are left out, and those that a quota pays."
ROWS, PARTS = RANGE.per(s.GEN_AI_AGENT_NAME), RANGE.per(s.GEN_AI_AGENT_NAME, s.GEN_AI_REQUEST_MODEL)
SPENT = Stat(
    title="Spent",
    about=f"What calls cost. {UNPRICED}\n\nNormal: what your budget says.",
    queries=(Query(RANGE.total(s.METRIC_COST)),),
    unit="currencyUSD",
    decimals=2,
    steps=PLAIN,
)
BOTH = Graph(
    title="With and without cache",
    about=f"Cost per success, and what it would have been without a cache. {q.ALL_COST}\n\nNormal: the gap is what the "
    "cache saves; where the lines cross it costs more than it saves. "
    f"{TRAILING}",
    queries=(
        Query(m.cost_per_success(RANGE), "with the cache"),
        Query(m.price_per_success(RANGE), "without a cache"),
    ),
    unit="currencyUSD",
    colours={"with the cache": "blue", "without a cache": "#8e8e8e"},
)
ENDED = q.stacked(
    "Tasks by outcome",
    "Tasks that ended, per second. Those whose end nobody knows are grey.\n\nNormal: success.",
    s.METRIC_TASKS,
    s.CONTEXT_LEDGER_TASK_OUTCOME,
)
COMPONENTS = Graph(
    title="Spent per hour by component",
    about=f"US dollars an hour by what was paid for; `total` where the provider told one sum alone. {UNPRICED}\n\n"
    "Normal: output and cache_read. Much input_uncached is money that reuse could save.",
    queries=(
        Query(
            f"{RATE.per(s.CONTEXT_LEDGER_COST_COMPONENT).total(s.METRIC_COST)} * 3600",
            f"{{{{{label(s.CONTEXT_LEDGER_COST_COMPONENT)}}}}}",
        ),
    ),
    unit=HOURLY,
    stacked=True,
    by=s.CONTEXT_LEDGER_COST_COMPONENT,
)
AGENTS_TABLE = Table(
    title="Agents",
    about="Which agent is dear, and which is cheap but wrong? A click on an agent opens the other boards for it. "
    f"{q.IN_A_TABLE}\n\n"
    "Normal: success above its floor. Cheap with a state under its floor is not a saving.",
    keys=q.AGENTS_HEADS,
    columns=(
        q.column(q.COST, ROWS),
        Column("Spent", ROWS.total(s.METRIC_COST), "currencyUSD", 2),
        q.column(q.SAVED, ROWS),
        q.column(q.SUCCEEDED, ROWS),
        q.state(q.SUCCEEDED, ROWS, "Success state"),
        q.column(q.SOUND, ROWS),
        q.state(q.SOUND, ROWS, "Checks state"),
        q.column(q.CALLS, ROWS),
    ),
    links={"Reuse and correctness": uids.REUSE, "Why not reused": uids.MISSES},
    sort="Spent",
)
MODELS_TABLE = Table(
    title="Agents and models",
    about=f"What each agent spends on each model, what the cache saves of it, and whether the context was right. "
    f"{UNPRICED}\n\nNormal: the dearest row is the one that does most work.",
    keys={s.GEN_AI_AGENT_NAME: "Agent", s.GEN_AI_REQUEST_MODEL: "Model"},
    columns=(
        Column("Spent", PARTS.total(s.METRIC_COST), "currencyUSD", 2),
        q.column(q.SAVED, PARTS),
        q.column(q.READ, PARTS),
        q.column(q.SOUND, PARTS),
        Column("Calls", whole(PARTS.total(s.METRIC_CALLS))),
    ),
    links={"Reuse and correctness": uids.REUSE, "Why not reused": uids.MISSES},
    sort="Spent",
)
BOARD = Board(
    uid=uids.COST,
    title="Cost per successful task",
    about="What a successful task costs, with all that was spent, on failed tasks and outside of tasks too, and what "
    "of the saving is real. Tasks have no model: the choice of models narrows calls and costs alone.",
    variables=(Source(), AGENTS, MODELS, Floor(SUCCESS), Floor(RIGHT), Floor(COVERAGE)),
    annotations=(ALERTS, IDENTITY, COMPACTIONS.hidden()),
    sections=(
        section(
            "In the chosen time: price, and what it bought",
            line(
                4,
                Pair(q.number(q.COST), q.number(q.SUCCEEDED)),
                Pair(q.number(q.SAVED), q.number(q.SOUND)),
                SPENT,
                q.number(q.DECIDED),
            ),
        ),
        section(
            "By agent: price to the left, result to the right",
            line(9, Pair(q.by_agent(q.COST), q.by_agent(q.SUCCEEDED))),
            line(9, Pair(q.by_agent(q.SAVED), q.by_agent(q.SOUND))),
        ),
        section("What the cache saves, and how tasks end", line(9, Pair(BOTH, ENDED))),
        section("What is paid for", line(9, Pair(COMPONENTS, q.by_agent(q.CALLS)))),
        section("Who to look at", line(10, AGENTS_TABLE), line(10, MODELS_TABLE)),
    ),
)
