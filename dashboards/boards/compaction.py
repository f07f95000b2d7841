"""The third board: what did compactions leave, what did they lose, and do constraints hold?"""

from __future__ import annotations

from otel_context_ledger import semconv as s

from .. import measures as m
from .. import quantities as q
from .. import uids
from ..annotations import ALERTS, COMPACTIONS, IDENTITY
from ..layout import Board, Pair, line, section
from ..panels import BLUE, TRAILING, Column, Graph, Query, Stat, Table
from ..promql import whole
from ..thresholds import RECALL, RIGHT
from ..variables import AGENTS, MODELS, RANGE, Floor, Source

AFTER = {s.CONTEXT_LEDGER_MISS_CAUSE: ("history_compacted",)}
ROWS = RANGE.per(s.GEN_AI_AGENT_NAME)
HOW_MANY = Stat(
    title="Compactions",
    about="How often a history was replaced by something shorter, or should have been.\n\nNormal: a few in a long "
    "session. Many in a row are a loop: the summary is already too long.",
    queries=(Query(whole(RANGE.total(s.METRIC_COMPACTIONS))),),
    unit="short",
    steps=BLUE,
)
BROKEN = Graph(
    title="Missed after compaction",
    about="Tokens that had to be computed again because the history had been compacted, by agent.\n\nNormal: what is "
    f"left of a prompt, once for each compaction: the price of it. {TRAILING}",
    queries=(q.agents(lambda view: view.total(s.METRIC_MISS_TOKENS, AFTER), RANGE),),
    unit="short",
)
AGAIN = Graph(
    title="Read again by agent",
    about="Bytes of files per second that histories held more than once. After a compaction agents read again what "
    "they lost.\n\nNormal: low and flat; a rise after each compaction says that the summary keeps too little. Empty "
    "where no file was read twice.",
    queries=(q.agents(lambda view: view.total(s.METRIC_REPEATED_READ)),),
    unit="Bps",
    empty="None",
)
FRESH = Graph(
    title="Files fresh by agent",
    about="Checks that found the files that a history holds as they are on disk, of those that could be judged.\n\n"
    "Normal: above 90 %; lower where other people work in the same files.",
    queries=(q.agents(lambda view: m.checked_right(view, "repository")),),
    unit="percentunit",
    top=1,
    floor=RIGHT,
)
WHO = Table(
    title="Agents",
    about="Which agent loses what? A click on an agent opens the other boards for it.\n\nNormal: every state above its "
    "floor, nothing lost.",
    keys=q.AGENTS_HEADS,
    columns=(
        Column("Compactions", whole(ROWS.total(s.METRIC_COMPACTIONS))),
        q.column(q.COMPACTED, ROWS),
        q.column(q.PASSED, ROWS),
        q.state(q.PASSED, ROWS, "Passed state"),
        q.column(q.RECALLED, ROWS),
        q.state(q.RECALLED, ROWS, "Recall state"),
        q.column(q.LOST, ROWS),
        Column("Files fresh", m.checked_right(ROWS, "repository"), "percentunit", 1),
    ),
    links={"Reuse and correctness": uids.REUSE, "Why not reused": uids.MISSES, "Cost": uids.COST},
    sort="Lost",
)
TRIGGERS = q.stacked(
    "Compactions by trigger",
    "Compactions per second by what made them.\n\nNormal: auto and manual. reactive comes after an error of the "
    "provider, window_downshift after a change to a smaller model.",
    s.METRIC_COMPACTIONS,
    s.CONTEXT_LEDGER_COMPACTION_TRIGGER,
)
OUTCOMES = q.stacked(
    "Compactions by outcome",
    "Compactions per second by how they ended.\n\nNormal: done. empty has lost everything, orphaned was paid for and "
    "never used.",
    s.METRIC_COMPACTIONS,
    s.CONTEXT_LEDGER_COMPACTION_OUTCOME,
)
RESULTS = q.stacked(
    "Compactions by result",
    "Compactions per second by what the validator said of them; grey ones could not be judged, and have not passed.\n\n"
    "Normal: pass.",
    s.METRIC_COMPACTIONS,
    s.CONTEXT_LEDGER_COMPACTION_VALIDATOR_RESULT,
)
VERDICTS = q.stacked(
    "Constraints by verdict",
    "Checks of constraints per second by verdict; grey ones could not be told.\n\nNormal: held.",
    s.METRIC_CHECKS,
    s.CONTEXT_LEDGER_VERDICT,
    {s.CONTEXT_LEDGER_PILLAR: ("constraints",)},
)
BOARD = Board(
    uid=uids.COMPACTION,
    title="Compaction and constraints",
    about="What compactions left, what they lost, and whether constraints hold.",
    variables=(Source(), AGENTS, MODELS, Floor(RECALL), Floor(RIGHT)),
    annotations=(ALERTS, COMPACTIONS, IDENTITY.hidden()),
    sections=(
        section(
            "In the chosen time: compression, and what survived it",
            line(
                4,
                Pair(HOW_MANY, q.number(q.PASSED)),
                Pair(q.number(q.COMPACTED), q.number(q.RECALLED)),
                Pair(q.number(q.READ), q.number(q.LOST)),
            ),
        ),
        section(
            "By agent: compression to the left, survival to the right",
            line(9, Pair(q.by_agent(q.COMPACTED), q.by_agent(q.PASSED))),
            line(9, Pair(q.by_agent(q.READ), q.by_agent(q.RECALLED))),
        ),
        section("Who to look at", line(10, WHO)),
        section("Why they were made, and how they ended", line(9, TRIGGERS, OUTCOMES, RESULTS)),
        section("What follows from them", line(9, Pair(BROKEN, VERDICTS)), line(9, Pair(AGAIN, FRESH))),
    ),
)
