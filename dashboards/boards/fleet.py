"""The fifth board: are the collectors well, and how far are the other boards to be trusted?"""

from __future__ import annotations

from otel_context_ledger import semconv as s

from .. import quantities as q
from .. import uids
from ..annotations import alerts
from ..collectors import CONNECTOR, PROCESSOR, SIGNALS, counted, held
from ..layout import Board, Pair, line, section
from ..panels import BLUE, EMPTY, NONE_IS_RIGHT, Graph, Query, Stat, Steps
from ..promql import View, label, whole
from ..thresholds import COVERAGE, QUEUE
from ..variables import COLLECTORS, Choice, Floor, Source

RATE, RANGE = "$__rate_interval", "$__range"
ALIVE = '{__name__=~"otelcol_process_uptime(_seconds)?(_total)?"}'
JOBS = Choice("job", "Job", ALIVE, "job")
INSTANCES = Choice("instance", "Instance", f'{ALIVE[:-1]},job=~"$job"}}', "instance")
EVERYBODY = View("rate", RATE)


def _speed(metric: str, *by: str) -> str:
    return counted(metric, RATE, *by, where=COLLECTORS, over="rate")


def _sum(metric: str) -> str:
    return f"sum ({counted(metric, RANGE, where=COLLECTORS)})"


def _signals(title: str, what: str, normal: str, metric: str) -> Graph:
    """What receivers did with spans, log records and metric points, each by instance."""
    return Graph(
        title=title,
        about=f"Spans, log records and metric points that collectors {what}, per second. Points only where agents send "
        f"metrics.\n\nNormal: {normal}",
        queries=tuple(Query(_speed(f"{metric}_{signal}"), f"{signal} {{{{instance}}}}") for signal in SIGNALS),
        unit="short",
    )


def _number(title: str, about: str, expr: str, steps: Steps = NONE_IS_RIGHT) -> Stat:
    return Stat(title=title, about=about, queries=(Query(whole(expr)),), unit="short", steps=steps)


def _graph(title: str, about: str, expr: str, legend: str, unit: str = "short", empty: str = EMPTY) -> Graph:
    return Graph(title=title, about=about, queries=(Query(expr, legend),), unit=unit, empty=empty)


# Of all that a Prometheus scrapes, what has been a collector within the chosen time.
TARGETS = f"up{{{COLLECTORS}}} and on (job, instance) present_over_time({ALIVE}[{RANGE}])"
UP = _number(
    "Collectors up",
    "Collectors that Prometheus could scrape just now.\n\nNormal: as many as you run.",
    f"count(({TARGETS}) == 1)",
    BLUE,
)
DOWN = _number(
    "Collectors down",
    "Collectors that Prometheus could scrape within the chosen time, but not just now.\n\nNormal: 0.",
    f"count(({TARGETS}) == 0) or count({TARGETS}) * 0",
)
CALLS = _number(
    "Call records found",
    "Spans and log records about a model call that the processor found in what arrived: two for a call of which both "
    "are sent.\n\nNormal: as many as your agents make calls, or twice as many.",
    _sum(f"{PROCESSOR}_calls"),
    BLUE,
)
REFUSED = _number(
    "Spans refused",
    "Spans that a collector did not accept, mostly because it was short of memory. Agents may send them again."
    "\n\nNormal: 0.",
    _sum("otelcol_receiver_refused_spans"),
)
BROKEN = _number(
    "Ledger errors",
    "Steps of the processor and the connector that broke; what they were about went on as it was.\n\nNormal: 0.",
    f"{_sum(f'{PROCESSOR}_errors')} + {_sum(f'{CONNECTOR}_errors')}",
)
DOUBTFUL = _number(
    "Broken counts",
    "Call records that say that more was cached than sent: an instrumentation tells wrong numbers.\n\nNormal: 0.",
    _sum(f"{PROCESSOR}_invariant_violations"),
)
RECEIVED = _signals("Received per second", "took", "follows the work of your agents.", "otelcol_receiver_accepted")
TURNED_AWAY = _signals(
    "Refused per second",
    "did not take",
    "0. A rise says that a collector is short of memory, or that an exporter blocks it.",
    "otelcol_receiver_refused",
)
SENT = Graph(
    title="Sent per second",
    about="Spans that exporters delivered, per second.\n\nNormal: as many as were received, some seconds later.",
    queries=(Query(_speed("otelcol_exporter_sent_spans", "exporter"), "{{exporter}} {{instance}}"),),
    unit="short",
)
UNSENT = Graph(
    title="Not sent per second",
    about="Spans that an exporter could not deliver, or could not even put into its queue, per second.\n\nNormal: 0.",
    queries=tuple(
        Query(
            f"{_speed(f'otelcol_exporter_{what}_failed_spans', 'exporter')} or "
            f"{_speed('otelcol_exporter_sent_spans', 'exporter')} * 0",
            f"{what} {{{{exporter}}}} {{{{instance}}}}",
        )
        for what in ("send", "enqueue")
    ),
    unit="short",
)
QUEUED = Graph(
    title="Export queue used",
    about="How full the queues of exporters are. Empty where no exporter has a queue.\n\nNormal: near 0. A full one "
    f"loses spans; from {QUEUE.label} on it is time to act.",
    queries=(
        Query(
            f"{held('otelcol_exporter_queue_size', 'exporter', 'data_type', where=COLLECTORS)} / "
            f"({held('otelcol_exporter_queue_capacity', 'exporter', 'data_type', where=COLLECTORS)} > 0)",
            "{{exporter}} {{data_type}} {{instance}}",
        ),
    ),
    unit="percentunit",
    top=1,
    floor=QUEUE,
    empty="No exporter has a queue",
)
MEMORY = _graph(
    "Memory",
    "Memory of a collector's process.\n\nNormal: flat after it warmed up; the ledger's own share is *State*.",
    held("otelcol_process_memory_rss", where=COLLECTORS),
    "{{instance}}",
    "bytes",
)
CPU = _graph(
    "CPU",
    "CPU seconds per second of a collector's process.\n\nNormal: far below the cores that it may use.",
    _speed("otelcol_process_cpu_seconds"),
    "{{instance}}",
)
DIALECTS = _graph(
    "Call records by dialect",
    "Spans and log records about calls, per second, by how they were told: by this ledger, or by another "
    "instrumentation. A call has two where both are sent.\n\nNormal: the dialects of "
    "the instrumentations that you use.",
    _speed(f"{PROCESSOR}_calls", "dialect"),
    "{{dialect}} {{instance}}",
)
ENTRIES = _graph(
    "Entries by result",
    "Entries per second that the connector read, by what became of them: `counted_elsewhere` where the SDK counts, "
    "`duplicate` where a span and a log record tell one call.\n\nNormal: counted, and as many duplicates where both "
    "signals are sent.",
    _speed(f"{CONNECTOR}_entries", "result"),
    "{{result}} {{instance}}",
)
JUDGES = _graph(
    "Verdicts by judge",
    "Call records judged per second, by who found the cause: `none` where the process that made the call had said it "
    "already.\n\nNormal: none for this ledger's own entries, collector for all others.",
    _speed(f"{PROCESSOR}_verdicts", "by"),
    "{{by}} {{instance}}",
)
OVERFLOW = _graph(
    "Gathered by a bound",
    "Measurements per second that the connector no longer tells apart, because one of its bounds was reached.\n\n"
    "Normal: 0. Else there are too many names of agents or models, and boards show `_OTHER`.",
    _speed(f"{CONNECTOR}_overflow", "bound"),
    "{{bound}} {{instance}}",
)
SESSIONS = _graph(
    "Sessions known",
    "Sessions that a collector remembers.\n\nNormal: follows the work. Flat while sessions are forgotten for room: "
    "the limit is too small.",
    held(f"{PROCESSOR}_sessions", where=COLLECTORS),
    "{{instance}}",
)
EVICTED = _graph(
    "Sessions forgotten",
    "Sessions per second that were forgotten, by why. The next call of one that was forgotten for room is "
    "`previous_unknown`.\n\nNormal: idle only.",
    _speed(f"{PROCESSOR}_evictions", "reason"),
    "{{reason}} {{instance}}",
)
STATE = _graph(
    "State",
    "Bytes of what a collector knows of sessions.\n\nNormal: flat after it warmed up.",
    held(f"{PROCESSOR}_state_size", "of", where=COLLECTORS),
    "{{of}} {{instance}}",
    "bytes",
)
SNAPSHOTS = _graph(
    "Snapshot failures",
    "Times per second that a collector could not load or save what it knows. After the next restart it knows less."
    "\n\nNormal: 0.",
    _speed(f"{PROCESSOR}_snapshot_failures", "step"),
    "{{step}} {{instance}}",
)
STEPS = _graph(
    "Ledger errors by stage",
    "Steps of the processor that broke, per second, by the stage.\n\nNormal: 0.",
    _speed(f"{PROCESSOR}_errors", "stage"),
    "{{stage}} {{instance}}",
)
SDK = _graph(
    "SDK errors by stage",
    "Errors of the ledger inside agents' processes, per second; the calls were not touched. Empty where none has "
    "happened.\n\nNormal: empty.",
    EVERYBODY.per(s.CONTEXT_LEDGER_STAGE).total(s.METRIC_INTERNAL_ERRORS),
    f"{{{{{label(s.CONTEXT_LEDGER_STAGE)}}}}}",
    empty="None",
)
PARTS = (
    section("Just now, and in the chosen time", line(4, UP, DOWN, CALLS, REFUSED, BROKEN, DOUBTFUL)),
    section(
        "How far the other boards are to be trusted: all agents",
        line(9, Pair(q.by_agent(q.REPORTED, EVERYBODY), q.by_agent(q.JUDGED, EVERYBODY))),
        line(9, DIALECTS, ENTRIES, JUDGES),
    ),
    section("What comes in and goes out", line(9, RECEIVED, TURNED_AWAY), line(9, SENT, UNSENT, QUEUED)),
    section("What the collectors remember", line(9, SESSIONS, EVICTED), line(9, STATE, SNAPSHOTS)),
    section("Errors and bounds of the ledger", line(9, STEPS, SDK, OVERFLOW)),
    section("Resources", line(9, MEMORY, CPU)),
)
BOARD = Board(
    uid=uids.FLEET,
    title="Fleet and collector",
    about="Whether the collectors are well, and how far the other boards are to be trusted.",
    variables=(Source(), JOBS, INSTANCES, Floor(COVERAGE), Floor(QUEUE)),
    annotations=(alerts(""),),
    sections=PARTS,
)
