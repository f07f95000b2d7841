"""The first board: is the reuse real, and is the context right?"""

from __future__ import annotations

from otel_context_ledger import semconv as s

from .. import quantities as q
from .. import uids
from ..annotations import ALERTS, COMPACTIONS, IDENTITY
from ..layout import Board, Pair, line, section
from ..panels import Column, Table
from ..promql import whole
from ..thresholds import COVERAGE, RECALL, RIGHT, SUCCESS
from ..variables import AGENTS, MODELS, RANGE, Floor, Source

ROWS = RANGE.per(s.GEN_AI_AGENT_NAME)
INPUT = q.stacked(
    "Input tokens by class",
    "Prompt tokens per second in classes that exclude each other. `unreported` is input of which the provider did not "
    "tell what was reused: unknown, not uncached.\n\nNormal: mostly cache_read, a thin layer of the others.",
    s.METRIC_INPUT_TOKENS,
    s.CONTEXT_LEDGER_TOKEN_SOURCE,
)
VERDICTS = q.stacked(
    "Checks by verdict",
    "Verdicts per second, of all pillars. Grey ones could not be judged.\n\nNormal: green, with little grey; red says "
    "which kind of wrong.",
    s.METRIC_CHECKS,
    s.CONTEXT_LEDGER_VERDICT,
)
WHO = Table(
    title="Agents",
    about="Which agent is cheap but wrong? The one whose context was least often right is the first. A click on an "
    f"agent opens the other boards for it. {q.IN_A_TABLE}\n\nNormal: every state "
    "above its floor. Look first at a row with high reuse and a state under its floor.",
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
        Column("Calls", whole(ROWS.total(s.METRIC_CALLS))),
    ),
    links={"Why not reused": uids.MISSES, "Compaction and constraints": uids.COMPACTION, "Cost": uids.COST},
    sort=q.SOUND.title,
    rising=True,
)
BOARD = Board(
    uid=uids.REUSE,
    title="Reuse and correctness",
    about="Is the reuse real, and was the context right? Every figure of reuse (left, blue) has a figure of "
    "correctness to its right.",
    variables=(Source(), AGENTS, MODELS, Floor(RECALL), Floor(RIGHT), Floor(SUCCESS), Floor(COVERAGE)),
    annotations=(ALERTS, IDENTITY, COMPACTIONS.hidden()),
    sections=(
        section(
            "In the chosen time: reuse, and whether it was right",
            line(
                4,
                Pair(q.number(q.READ), q.number(q.RECALLED)),
                Pair(q.number(q.CAPTURED), q.number(q.SOUND)),
                Pair(q.number(q.SAVED), q.number(q.SUCCEEDED)),
            ),
        ),
        section(
            "By agent: reuse to the left, correctness to the right",
            line(9, Pair(q.by_agent(q.READ), q.by_agent(q.RECALLED))),
            line(9, Pair(q.by_agent(q.CAPTURED), q.by_agent(q.SOUND))),
            line(9, Pair(q.by_agent(q.SAVED), q.by_agent(q.SUCCEEDED))),
        ),
        section("Who to look at", line(10, WHO)),
        section("What the input was, and what the checks said", line(9, Pair(INPUT, VERDICTS))),
        section("How much of it is known", line(9, Pair(q.by_agent(q.REPORTED), q.by_agent(q.JUDGED)))),
    ),
)
