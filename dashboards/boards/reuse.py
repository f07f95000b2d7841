"""The first board: is the reuse real, and is the context right?"""

from __future__ import annotations

from otel_context_ledger import semconv as s

from .. import quantities as q
from .. import uids
from ..annotations import ALERTS, COMPACTIONS, IDENTITY
from ..layout import Board, Line, Pair, Section
from ..panels import Column, Graph, Query, Table
from ..promql import label
from ..thresholds import COVERAGE, RECALL, RIGHT, SUCCESS
from ..variables import AGENTS, MODELS, RANGE, RATE, Floor, Source

ROWS = RANGE.per(s.GEN_AI_AGENT_NAME)
INPUT = Graph(
    title="Input tokens by class",
    about="Prompt tokens a second in classes that exclude each other. `unreported` is input of which the provider did "
    "not tell what was reused: unknown, not uncached.\n\nNormal: mostly cache_read, a thin layer of the others.",
    queries=(
        Query(
            RATE.per(s.CONTEXT_LEDGER_TOKEN_SOURCE).total(s.METRIC_INPUT_TOKENS),
            f"{{{{{label(s.CONTEXT_LEDGER_TOKEN_SOURCE)}}}}}",
        ),
    ),
    unit="short",
    stacked=True,
    by=s.CONTEXT_LEDGER_TOKEN_SOURCE,
)
VERDICTS = Graph(
    title="Checks by verdict",
    about="Verdicts a second, of all pillars. Grey ones could not be judged.\n\nNormal: green, with little grey; red "
    "says which kind of wrong.",
    queries=(
        Query(RATE.per(s.CONTEXT_LEDGER_VERDICT).total(s.METRIC_CHECKS), f"{{{{{label(s.CONTEXT_LEDGER_VERDICT)}}}}}"),
    ),
    unit="short",
    stacked=True,
    by=s.CONTEXT_LEDGER_VERDICT,
)
WHO = Table(
    title="Agents",
    about="Which agent is cheap but wrong? A click on an agent opens the other boards for it.\n\nNormal: every state "
    "above its floor. A row with high reuse and a state under its floor comes first.",
    keys=q.AGENTS_HEADS,
    columns=(
        q.column(q.READ, ROWS),
        q.column(q.CAPTURED, ROWS),
        q.column(q.RECALLED, ROWS),
        q.state(q.RECALLED, ROWS, "Recall state"),
        q.column(q.SOUND, ROWS),
        q.state(q.SOUND, ROWS, "Checks state"),
        q.column(q.SUCCEEDED, ROWS),
        q.column(q.COST, ROWS),
        Column("Calls", ROWS.total(s.METRIC_CALLS), decimals=0),
    ),
    links={"Why not reused": uids.MISSES, "Compaction and constraints": uids.COMPACTION, "Cost": uids.COST},
    sort="Calls",
)
BOARD = Board(
    uid=uids.REUSE,
    title="Reuse and correctness",
    about="Is the reuse real, and was the context right? Every figure of reuse (left, blue) has a figure of "
    "correctness to its right.",
    variables=(Source(), AGENTS, MODELS, Floor(RECALL), Floor(RIGHT), Floor(SUCCESS), Floor(COVERAGE)),
    annotations=(ALERTS, COMPACTIONS, IDENTITY),
    sections=(
        Section(
            "In the chosen time: reuse, and whether it was right",
            (
                Line(
                    4,
                    (
                        Pair(q.number(q.READ), q.number(q.RECALLED)),
                        Pair(q.number(q.CAPTURED), q.number(q.SOUND)),
                        Pair(q.number(q.SAVED), q.number(q.SUCCEEDED)),
                    ),
                ),
            ),
        ),
        Section(
            "By agent: reuse to the left, correctness to the right",
            (
                Line(9, (Pair(q.by_agent(q.READ), q.by_agent(q.RECALLED)),)),
                Line(9, (Pair(q.by_agent(q.CAPTURED), q.by_agent(q.SOUND)),)),
                Line(9, (Pair(q.by_agent(q.SAVED), q.by_agent(q.SUCCEEDED)),)),
            ),
        ),
        Section("Who to look at", (Line(8, (WHO,)),)),
        Section("What the input was, and what the checks said", (Line(9, (Pair(INPUT, VERDICTS),)),)),
        Section(
            "How much of it is known",
            (Line(8, (Pair(q.by_agent(q.REPORTED), q.by_agent(q.JUDGED)),)),),
        ),
    ),
)
