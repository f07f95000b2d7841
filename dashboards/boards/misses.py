"""The second board: what was not reused, why, and was the context right meanwhile?"""

from __future__ import annotations

from otel_context_ledger import semconv as s

from .. import measures as m
from .. import quantities as q
from .. import uids
from ..annotations import ALERTS, COMPACTIONS, IDENTITY
from ..layout import Board, Pair, line, section
from ..palette import REUSE, WARNING
from ..panels import Column, Graph, Query, Table
from ..promql import label, whole
from ..thresholds import COVERAGE, RIGHT
from ..variables import AGENTS, MODELS, RANGE, RATE, Floor, Source

WRONG = {s.CONTEXT_LEDGER_VERDICT: m.WRONG}
CAUSE = "A cause is what changed in what was sent, or a pause, or else the provider's own."
FOUND = RANGE.per(s.GEN_AI_AGENT_NAME, s.CONTEXT_LEDGER_PILLAR, s.CONTEXT_LEDGER_VERDICT)
FIRST = Graph(
    title="First token, by outcome",
    about="95 % of the streamed calls had their first generated token within this time, by what the cache "
    "did.\n\nNormal: hit below partial below miss. Where a hit takes as long as a miss, what the provider tells of its "
    "cache is in doubt.",
    queries=(
        Query(
            RATE.per(s.CONTEXT_LEDGER_CACHE_OUTCOME).quantile(0.95, s.METRIC_TIME_TO_FIRST_TOKEN),
            f"{{{{{label(s.CONTEXT_LEDGER_CACHE_OUTCOME)}}}}}",
        ),
    ),
    unit="s",
    traced=True,
    by=s.CONTEXT_LEDGER_CACHE_OUTCOME,
)
AGREES, CONTRADICTS = "agrees with the ledger", "contradicts the ledger"
CONFLICTS = Graph(
    title="Provider's own verdict",
    about="Calls per second for which the provider told its own reason of a miss, by whether it agrees with the cause "
    "that was found.\n\nNormal: it always agrees. Most providers tell none, and tell it only when asked "
    "(`CONTEXT_LEDGER_PROVIDER_DIAGNOSTICS`).",
    queries=tuple(
        Query(RATE.total(s.METRIC_PROVIDER_VERDICTS, {s.CONTEXT_LEDGER_VERDICT_CONFLICT: (conflict,)}), legend)
        for conflict, legend in (("false", AGREES), ("true", CONTRADICTS))
    ),
    unit="short",
    stacked=True,
    colours={AGREES: REUSE, CONTRADICTS: WARNING},
)
BY_CAUSE = Table(
    title="Where to start: misses",
    about=f"Missed tokens by agent and cause. {CAUSE} A click on an agent opens the other boards for it.\n\nNormal: "
    "small numbers, spread over causes; one large one is one thing to mend.",
    keys={s.GEN_AI_AGENT_NAME: "Agent", s.CONTEXT_LEDGER_MISS_CAUSE: "Cause"},
    columns=(
        Column(
            "Missed tokens",
            RANGE.per(s.GEN_AI_AGENT_NAME, s.CONTEXT_LEDGER_MISS_CAUSE).total(s.METRIC_MISS_TOKENS) + " > 0",
            decimals=1,
        ),
    ),
    links={"Reuse and correctness": uids.REUSE, "Compaction and constraints": uids.COMPACTION},
    sort="Missed tokens",
)
BY_PILLAR = Table(
    title="Where to start: wrong contexts",
    about="Checks that found the context wrong, by agent, pillar and verdict. A click on an agent opens the other "
    "boards for it.\n\nNormal: empty.",
    keys={s.GEN_AI_AGENT_NAME: "Agent", s.CONTEXT_LEDGER_PILLAR: "Pillar", s.CONTEXT_LEDGER_VERDICT: "Verdict"},
    columns=(Column("Checks", f"{whole(FOUND.total(s.METRIC_CHECKS, WRONG))} > 0"),),
    links={"Reuse and correctness": uids.REUSE, "Compaction and constraints": uids.COMPACTION},
    sort="Checks",
)
CAUSES = q.bars(
    "Missed tokens by cause",
    f"{CAUSE}\n\nNormal: short bars; the longest is what costs most.",
    s.METRIC_MISS_TOKENS,
    s.CONTEXT_LEDGER_MISS_CAUSE,
)
CAUSES_OVER_TIME = q.stacked(
    "Missed tokens per second",
    "When did a cause begin?\n\nNormal: near 0, with peaks at pauses and compactions. A band that begins and stays is "
    "a change that was deployed.",
    s.METRIC_MISS_TOKENS,
    s.CONTEXT_LEDGER_MISS_CAUSE,
    traced=True,
)
VERDICTS = q.bars(
    "Wrong contexts by verdict",
    "Checks that found the context wrong, by what they found.\n\nNormal: no bar.",
    s.METRIC_CHECKS,
    s.CONTEXT_LEDGER_VERDICT,
    WRONG,
)
VERDICTS_OVER_TIME = q.stacked(
    "Wrong contexts per second",
    "When did the context begin to be wrong?\n\nNormal: 0.",
    s.METRIC_CHECKS,
    s.CONTEXT_LEDGER_VERDICT,
    WRONG,
    traced=True,
)
CHANGES = q.stacked(
    "Identity changes by part",
    "Parts of the context that differ from the call before, per second. A changed repository costs no cache; "
    "every other part does.\n\nNormal: repository only.",
    s.METRIC_IDENTITY_CHANGES,
    s.CONTEXT_LEDGER_PART,
)
PILLARS = q.stacked(
    "Wrong contexts by pillar",
    "Which pillar found the context wrong, in checks per second. A part that should have changed and did not shows "
    "here.\n\nNormal: 0.",
    s.METRIC_CHECKS,
    s.CONTEXT_LEDGER_PILLAR,
    WRONG,
)
BOARD = Board(
    uid=uids.MISSES,
    title="Why not reused",
    about="What was not reused, why, and whether the context was right meanwhile.",
    variables=(Source(), AGENTS, MODELS, Floor(RIGHT), Floor(COVERAGE)),
    annotations=(ALERTS, IDENTITY, COMPACTIONS.hidden()),
    sections=(
        section(
            "In the chosen time: what was missed, and whether the context was right",
            line(
                4,
                Pair(q.number(q.UNCHANGED), q.number(q.SOUND)),
                Pair(q.number(q.MISSED), q.number(q.WRONG)),
                Pair(q.number(q.EXPLAINED), q.number(q.JUDGED)),
            ),
        ),
        section(
            "Why: causes to the left, verdicts to the right",
            line(9, Pair(CAUSES, VERDICTS)),
            line(9, Pair(CAUSES_OVER_TIME, VERDICTS_OVER_TIME)),
        ),
        section(
            "Whose doing: the same identity or another",
            line(9, Pair(q.by_agent(q.MISSED), q.by_agent(q.WRONG))),
            line(9, Pair(q.by_agent(q.UNCHANGED), q.by_agent(q.SOUND))),
            line(9, Pair(CHANGES, PILLARS)),
        ),
        section("Is it true: a hit is fast, and the provider agrees", line(9, Pair(FIRST, CONFLICTS))),
        section("Where to start", line(9, Pair(BY_CAUSE, BY_PILLAR))),
    ),
)
