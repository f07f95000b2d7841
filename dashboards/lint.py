"""Owns the rules that every board keeps, and the exceptions from them with their reasons.

A rule looks at a board as JSON, so that what is found is true of the file that people import. Which panels belong
together is told by the layout.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import promql_parser

from otel_context_ledger import semconv as s

from . import expressions, uids
from .collectors import LABELS as COLLECTORS_LABELS
from .collectors import OTELCOL
from .panels import TRAILING, WIDE
from .promql import AGENT, FLAG, SERIES, label, name
from .rules import PREFIX

UNITS = {"percentunit", "short", "s", "bytes", "Bps", "currencyUSD", "suffix:USD/h", "none"}
# What our own viewer draws as well: a board must not use more.
TYPES = {"row", "stat", "timeseries", "bargauge", "table"}
TRANSFORMATIONS = {"merge", "organize"}
PROPERTIES = {
    "color", "unit", "decimals", "mappings", "thresholds", "links", "noValue",
    "custom.lineStyle", "custom.fillOpacity", "custom.minWidth", "custom.cellOptions",
}  # fmt: skip
COLUMNS = 24
# Characters of a title that a column has room for, and those of the margin that is never there (seen in Chromium).
ROOM, MARGIN = 4.6, 3
LEGEND_HEIGHT = 9
NEUTRAL = {"blue", "text", "transparent"}
# What Prometheus tells of itself, and the labels that it gives; an alert has those of its expression too.
PROMETHEUS = {"up", "ALERTS"}
GIVEN = {"job", "instance", "le", "alertname", "alertstate", AGENT}
REUSE = {name(metric) for metric in (s.METRIC_REUSABLE_TOKENS, s.METRIC_MISS_TOKENS, s.METRIC_COST_WITHOUT_CACHE)}
CORRECTNESS = {name(s.METRIC_CHECKS), name(s.METRIC_PROVIDER_VERDICTS)}

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Target:
    """A query of a panel."""

    ref: str
    expr: str
    legend: str
    instant: bool

    @cached_property
    def parsed(self) -> promql_parser.Expr | None:
        """What it asks; None where it is no PromQL, which has a rule of its own."""
        try:
            return expressions.parsed(self.expr)
        except ValueError:
            return None

    @property
    def selectors(self) -> list[expressions.Selector]:
        return expressions.selectors(self.parsed) if self.parsed is not None else []


@dataclass(frozen=True)
class Sheet:
    """A board as JSON, with the titles of the panels that belong together, the one about reuse first."""

    document: Json
    pairs: Sequence[tuple[str, str]]

    @cached_property
    def panels(self) -> list[Json]:
        """All panels but headings of sections."""
        return [panel for panel in self.document["panels"] if panel["type"] != "row"]

    def titled(self, title: str) -> Json | None:
        return next((panel for panel in self.panels if panel["title"] == title), None)

    @cached_property
    def targets(self) -> list[tuple[Json, Target]]:
        return [(panel, target) for panel in self.panels for target in targets(panel)]

    @cached_property
    def questions(self) -> list[tuple[str, Target]]:
        """Everything that is asked, of panels and of marks, with who asks."""
        marks = [(note["name"], Target("", note["expr"], "", False)) for note in self.document["annotations"]["list"]]
        return [(panel["title"], target) for panel, target in self.targets] + marks


@dataclass(frozen=True, slots=True)
class Finding:
    """A place at which a board breaks a rule."""

    rule: str
    where: str
    what: str


Broken = Iterator[tuple[str, str]]
BOARD = "the board"


def targets(panel: Json) -> list[Target]:
    """The queries of a panel."""
    return [
        Target(one["refId"], one["expr"], one.get("legendFormat", ""), bool(one.get("instant")))
        for one in panel.get("targets", ())
    ]


def defaults(panel: Json) -> Json:
    """What holds for every field of a panel."""
    found: Json = panel.get("fieldConfig", {}).get("defaults", {})
    return found


def properties(panel: Json) -> Iterator[Json]:
    """What a panel says of single fields."""
    for override in overrides(panel):
        yield from override["properties"]


def overrides(panel: Json) -> Sequence[Json]:
    """Of which fields a panel says something."""
    found: Sequence[Json] = panel.get("fieldConfig", {}).get("overrides", ())
    return found


def identity(sheet: Sheet) -> Broken:
    """A board has one of the fixed uids, our tag, and links to all boards with the tag that keep time and choices."""
    if sheet.document.get("uid") not in {value for key, value in vars(uids).items() if key.isupper()}:
        yield BOARD, f"uid {sheet.document.get('uid')}"
    if "context-ledger" not in sheet.document.get("tags", ()):
        yield BOARD, "has not our tag"
    found = [link for link in sheet.document.get("links", ()) if link.get("tags") == ["context-ledger"]]
    if not any(link.get("keepTime") and link.get("includeVars") for link in found):
        yield BOARD, "has no link to the others that keeps time and choices"


def sources(sheet: Sheet) -> Broken:
    """Everything is asked of the data source that the user chose."""
    listed = sheet.document["templating"]["list"]
    asking = [variable for variable in listed if variable["type"] == "query"]
    for one in [*sheet.panels, *asking, *sheet.document["annotations"]["list"]]:
        if one.get("datasource", {}).get("uid") != "${datasource}":
            yield one.get("title") or one["name"], "asks another data source"
    if not any(variable["name"] == "datasource" and variable["type"] == "datasource" for variable in listed):
        yield BOARD, "has no variable datasource"


def choices(sheet: Sheet) -> Broken:
    """A variable of labels offers several values and all of them, and is read anew with the time."""
    for variable in sheet.document["templating"]["list"]:
        wanted = {"multi": True, "includeAll": True, "allValue": ".*", "refresh": 2}
        missing = {key for key, value in wanted.items() if variable.get(key) != value}
        if variable["type"] == "query" and missing:
            yield f"${variable['name']}", f"{', '.join(sorted(missing))} are others"


def unused(sheet: Sheet) -> Broken:
    """Every variable that is named exists, and every one that exists is named."""
    known = {variable["name"] for variable in sheet.document["templating"]["list"]}
    named = {found for _, target in sheet.questions for found in expressions.variables(target.expr)}
    for variable in sorted(named - known):
        yield BOARD, f"${variable} does not exist"
    for variable in sorted(known - named - {"datasource"}):
        yield f"${variable}", "is used nowhere"


def unique(sheet: Sheet) -> Broken:
    """No two panels have one id or title, no two queries of a panel one letter."""
    ids = [panel["id"] for panel in sheet.document["panels"]]
    titles = [panel["title"] for panel in sheet.panels]
    for listed in (ids, titles):
        yield from ((str(one), "is there twice") for one in sorted({str(x) for x in listed if listed.count(x) > 1}))
    for panel in sheet.panels:
        letters = [target.ref for target in targets(panel)]
        if len(set(letters)) < len(letters):
            yield panel["title"], "has two queries with one letter"


def places(sheet: Sheet) -> Broken:
    """Panels lie within the 24 columns, none on another, and a graph is high enough for its legend."""
    taken: dict[tuple[int, int], str] = {}
    for panel in sheet.document["panels"]:
        at = panel["gridPos"]
        if at["x"] + at["w"] > COLUMNS:
            yield panel["title"], "reaches beyond the right edge"
        cells = [(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])]
        if over := {taken[cell] for cell in cells if cell in taken}:
            yield panel["title"], f"lies on {', '.join(sorted(over))}"
        taken |= dict.fromkeys(cells, panel["title"])
        if panel["type"] == "timeseries" and at["h"] < LEGEND_HEIGHT:
            yield panel["title"], "is too low for its legend"


def titles(sheet: Sheet) -> Broken:
    """A title fits into its panel."""
    for panel in sheet.panels:
        if not panel["title"] or len(panel["title"]) > ROOM * panel["gridPos"]["w"] + MARGIN:
            yield panel["title"], "does not fit"


def descriptions(sheet: Sheet) -> Broken:
    """A description says what normal looks like, and names the metrics that are asked for, and no others."""
    for panel in sheet.panels:
        told = panel.get("description", "")
        if not re.search(r"Normal: \w", told):
            yield panel["title"], "does not say what is normal"
        _, _, listed = told.partition("Metrics: ")
        asked = {one.metric.removesuffix("_bucket") for target in targets(panel) for one in target.selectors}
        if set(re.findall(r"`(\w+)`", listed)) != asked:
            yield panel["title"], f"asks for {', '.join(sorted(asked))}"


def units(sheet: Sheet) -> Broken:
    """Numbers have a unit that Grafana and our viewer know."""
    for panel in sheet.panels:
        found = [one["value"] for one in properties(panel) if one["id"] == "unit"]
        if panel["type"] != "table":
            found.append(defaults(panel).get("unit"))
        if not found or strange(found, UNITS):
            yield panel["title"], f"has the units {found}"


def strange(found: Sequence[Any], known: set[str]) -> list[Any]:
    """What is not known."""
    return [one for one in found if one not in known]


def empty(sheet: Sheet) -> Broken:
    """A panel without data says so in words: nothing is not 0."""
    for panel in sheet.panels:
        if not defaults(panel).get("noValue"):
            yield panel["title"], "says nothing where there is nothing"


def axes(sheet: Sheet) -> Broken:
    """A graph and bars begin at 0."""
    for panel in sheet.panels:
        if panel["type"] in ("timeseries", "bargauge") and defaults(panel).get("min") != 0:
            yield panel["title"], "does not begin at 0"


def promql(sheet: Sheet) -> Broken:
    """Every query is PromQL."""
    for where, target in sheet.questions:
        if refused := _refused(target.expr):
            yield where, f"{refused}: {target.expr}"


def _refused(expr: str) -> str:
    try:
        expressions.parsed(expr)
    except ValueError as refused:
        return str(refused)
    return ""


def windows(sheet: Sheet) -> Broken:
    """A number is asked over the chosen time, a graph over its own resolution, or, where it says so, over the chosen
    time before each point; nothing over a fixed time."""
    for panel, target in sheet.targets:
        trailing = TRAILING in panel.get("description", "")
        wanted = expressions.RANGE if target.instant or trailing else expressions.RATE
        if target.parsed is not None and set(expressions.windows(target.parsed)) - {wanted}:
            yield panel["title"], f"{target.ref} asks over another time"
        if target.instant != (panel["type"] != "timeseries"):
            yield panel["title"], f"{target.ref} asks for a moment in a graph, or for a graph in a number"


def divisions(sheet: Sheet) -> Broken:
    """Nothing is divided by what may be 0: no traffic is no number."""
    for panel, target in sheet.targets:
        found = expressions.unguarded(target.parsed) if target.parsed is not None else []
        yield from ((panel["title"], f"{target.ref} divides by {by}") for by in found)


def metrics(sheet: Sheet) -> Broken:
    """Only metrics of the registry, of our collector's components and of the collector are asked for."""
    for where, target in sheet.questions:
        for one in target.selectors:
            if one.metric not in SERIES and one.metric not in OTELCOL and one.metric not in PROMETHEUS:
                yield where, f"{target.ref} asks for {one.metric}"


def labels(sheet: Sheet) -> Broken:
    """Only labels that the registry gives a metric are asked for, and only values that it lists."""
    for where, target in sheet.questions:
        for one in target.selectors:
            yield from ((where, f"{target.ref}: {what}") for what in _strange_labels(one))
        known = {_key for one in target.selectors for _key in _known(one.metric)}
        grouped = expressions.grouped(target.parsed) if target.parsed is not None else set()
        yield from ((where, f"{target.ref} tells apart by {one}") for one in sorted(grouped - known))


def _known(metric: str) -> set[str]:
    if metric in SERIES:
        return {label(key) for key in s.METRICS[SERIES[metric]].attributes} | {"le"}
    return GIVEN | COLLECTORS_LABELS


def _strange_labels(one: expressions.Selector) -> Iterator[str]:
    for matcher in one.matchers:
        if matcher.label not in _known(one.metric):
            yield f"{one.metric} has no label {matcher.label}"
        members = _MEMBERS.get(matcher.label)
        if members and strange([value for value in matcher.values if not value.startswith("$")], members):
            yield f"{matcher.label} is never {'|'.join(matcher.values)}"


_MEMBERS = {label(key): set(members) for key, members in s.MEMBERS.items()} | {
    label(key): set(FLAG) for key, kind in s.TYPES.items() if kind == "boolean"
}


def legends(sheet: Sheet) -> Broken:
    """A legend names the labels that tell the lines apart, and no others."""
    for panel, target in sheet.targets:
        found = expressions.labels(target.parsed) if target.parsed is not None else None
        if panel["type"] == "table" or found is None:
            continue
        missing = expressions.legend_labels(target.legend) - found
        if missing or (found - {"job", "le"} - expressions.legend_labels(target.legend)):
            yield panel["title"], f"{target.ref} is told apart by {sorted(found)}, its legend is {target.legend!r}"


def about_reuse(panel: Json) -> bool:
    """Whether a panel tells how much was reused, saved, missed or kept."""
    return any(_about_reuse(one, target) for target in targets(panel) for one in target.selectors)


def _about_reuse(one: expressions.Selector, target: Target) -> bool:
    by = expressions.grouped(target.parsed) if target.parsed is not None else set()
    source, outcome = label(s.CONTEXT_LEDGER_TOKEN_SOURCE), label(s.CONTEXT_LEDGER_CACHE_OUTCOME)
    kept = label(s.CONTEXT_LEDGER_SIDE)
    return (
        one.metric in REUSE
        or one.picks(source, "cache_read")
        or one.picks(kept, "after")
        or bool({source, outcome} & by)
    )


def about_correctness(panel: Json) -> bool:
    """Whether a panel tells whether contexts or results were right."""
    success, result = label(s.CONTEXT_LEDGER_TASK_OUTCOME), label(s.CONTEXT_LEDGER_COMPACTION_VALIDATOR_RESULT)
    return any(
        one.metric in CORRECTNESS
        or any(matcher.label in (success, result) for matcher in one.matchers)
        or (target.parsed is not None and {success, result} & expressions.grouped(target.parsed))
        for target in targets(panel)
        for one in target.selectors
    )


def partners(sheet: Sheet) -> Broken:
    """No figure of reuse without one of correctness: in the same panel, or as its declared partner."""
    of = dict(sheet.pairs)
    for panel in sheet.panels:
        if about_reuse(panel) and not about_correctness(panel):
            partner = sheet.titled(of.get(panel["title"], ""))
            if partner is None or not about_correctness(partner):
                yield panel["title"], "has no partner that tells whether it was right"


def side_by_side(sheet: Sheet) -> Broken:
    """Partners stand side by side at the same height and in the same size, reuse to the left."""
    for left, right in sheet.pairs:
        one, other = sheet.titled(left), sheet.titled(right)
        if one is None or other is None:
            yield left, f"and {right} are not both there"
            continue
        at, beside = one["gridPos"], other["gridPos"]
        if {**at, "x": at["x"] + at["w"]} != beside:
            yield left, f"does not stand to the left of {right}, at its height and in its size"


def colours(sheet: Sheet) -> Broken:
    """How much was reused is neither praised nor blamed: it is blue."""
    for panel in sheet.panels:
        steps = defaults(panel).get("thresholds", {}).get("steps", ())
        if panel["type"] != "stat" or about_correctness(panel) or not about_reuse(panel):
            continue
        if strange([step["color"] for step in steps], NEUTRAL):
            yield panel["title"], "is coloured"


def unjudged(sheet: Sheet) -> Broken:
    """What has no value has the colour of the lowest threshold, so that is no judgement; a coloured cell that sets none
    would have Grafana's, which is green."""
    for panel in sheet.panels:
        for settings in ({one["id"]: one["value"] for one in rule["properties"]} for rule in overrides(panel)):
            if "custom.cellOptions" in settings and "thresholds" not in settings:
                yield panel["title"], "has a coloured cell without thresholds"
            if lowest(settings.get("thresholds")) not in NEUTRAL:
                yield panel["title"], "judges what has no value"
        if lowest(defaults(panel).get("thresholds")) not in NEUTRAL:
            yield panel["title"], "judges what has no value"


def lowest(thresholds: Json | None) -> str:
    """The colour below all thresholds; that of text where there are none."""
    return str(thresholds["steps"][0]["color"]) if thresholds else "text"


def listed(sheet: Sheet) -> Broken:
    """A legend shows every line: below a graph Grafana gives it a third of the height, three rows of a table. Beside a
    narrow graph it leaves none of it."""
    for panel in sheet.panels:
        legend = panel.get("options", {}).get("legend", {})
        if panel["type"] == "timeseries" and legend["placement"] == "bottom" and legend["displayMode"] == "table":
            yield panel["title"], "has room for three rows of its legend"
        if panel["type"] == "timeseries" and legend["placement"] == "right" and panel["gridPos"]["w"] < WIDE:
            yield panel["title"], "is too narrow for a legend beside it"


def marks(sheet: Sheet) -> Broken:
    """Alerts of ours that fire are marked on every board, from the start."""
    firing = f'ALERTS{{alertstate="firing",alertname=~"{PREFIX}.+"'
    notes = sheet.document["annotations"]["list"]
    if not any(note["expr"].startswith(firing) and note["enable"] for note in notes):
        yield BOARD, "does not mark alerts"


def totals(sheet: Sheet) -> Broken:
    """What a number says of all agents together is told by agent on the same board: a total hides the one that fell."""
    apart = {
        one.metric
        for _, target in sheet.targets
        if target.parsed is not None and AGENT in expressions.grouped(target.parsed)
        for one in target.selectors
    }
    for panel, target in sheet.targets:
        found = {one.metric for one in target.selectors if one.metric in SERIES}
        if panel["type"] == "stat" and found - apart:
            yield panel["title"], f"{', '.join(sorted(found - apart))} is told by agent nowhere"


def subset(sheet: Sheet) -> Broken:
    """A board uses only what our viewer draws as Grafana does."""
    for panel in sheet.document["panels"]:
        used = strange([panel["type"]], TYPES) + strange([one["id"] for one in properties(panel)], PROPERTIES)
        used += strange([one["id"] for one in panel.get("transformations", ())], TRANSFORMATIONS)
        matchers = [one["matcher"]["id"] for one in panel.get("fieldConfig", {}).get("overrides", ())]
        if found := used + strange(matchers, {"byName"}):
            yield panel["title"], f"uses {', '.join(found)}"


def ways(sheet: Sheet) -> Broken:
    """A link of a cell leads to one of our boards, with the time, the data source and the agent of its row."""
    known = {value for key, value in vars(uids).items() if key.isupper()}
    kept = ("${__url_time_range}", "${datasource:queryparam}", "var-agent=${__value.raw")
    for panel in sheet.panels:
        for one in properties(panel):
            for link in one["value"] if one["id"] == "links" else ():
                uid = link["url"].removeprefix("/d/").partition("?")[0]
                if uid not in known or not all(part in link["url"] for part in kept):
                    yield panel["title"], f"leads to {link['url']}"


RULES: Mapping[str, Callable[[Sheet], Broken]] = {
    rule.__name__: rule
    for rule in (
        identity, sources, choices, unused, unique, places, titles, descriptions, units, empty, axes, promql, windows,
        divisions, metrics, labels, legends, partners, side_by_side, colours, unjudged, listed,
        marks, totals, subset, ways,
    )
}  # fmt: skip
# (rule, panel): why it is right as it is.
EXCEPTIONS: Mapping[tuple[str, str], str] = {
    ("colours", "Saved by the cache"): "below 0 the cache costs more than it saves: bad for everyone",
    ("axes", "Saved by the cache by agent"): "a loss is below 0, and is to be seen",
}


def check(document: Json, pairs: Sequence[tuple[str, str]]) -> list[Finding]:
    """Where a board breaks a rule, exceptions left out."""
    sheet = Sheet(document, pairs)
    found = (Finding(rule, where, what) for rule, broken in RULES.items() for where, what in broken(sheet))
    return [one for one in found if (one.rule, one.where) not in EXCEPTIONS]


def outdated(sheets: Sequence[Sheet]) -> list[tuple[str, str]]:
    """Exceptions that no board needs any more."""
    needed = {(rule, where) for sheet in sheets for rule, broken in RULES.items() for where, _ in broken(sheet)}
    return [key for key in EXCEPTIONS if key not in needed]
