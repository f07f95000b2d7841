"""Owns what a panel of ours is, and how it becomes one of Grafana's: the only module that draws with the SDK.

Boards say what is asked and how it is meant; everything that all panels of a kind share is here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from grafana_foundation_sdk.builders import bargauge, stat, table, timeseries
from grafana_foundation_sdk.builders import common as cb
from grafana_foundation_sdk.builders import dashboard as d
from grafana_foundation_sdk.builders import prometheus as pb
from grafana_foundation_sdk.models import common as cm
from grafana_foundation_sdk.models import dashboard as dm
from grafana_foundation_sdk.models import prometheus as pm

from otel_context_ledger import semconv as s

from .palette import COLOURS, LINE, REUSE, RIGHT, WRONG
from .promql import NAMELESS, label
from .thresholds import Threshold
from .variables import DATASOURCE

EMPTY = "No traffic"
# Of a cell in a row with others: not known is not 0.
UNKNOWN = "unknown"
# How a description says that a point of a graph counts more than its own moment.
TRAILING = "Each point counts a time before it that is as long as the chosen time."
# A threshold as Grafana has it: from which value on, in which colour; None is the lowest. What has no value has the
# colour of the lowest, so that is never a judgement.
Steps = Sequence[tuple[float | None, str]]
PLAIN: Steps = ((None, "text"),)
BLUE: Steps = (*PLAIN, (0, REUSE))
# Not one of these is wanted by anybody.
NONE_IS_RIGHT: Steps = (*PLAIN, (0, RIGHT), (1, WRONG))
LOSS: Steps = (*PLAIN, (-1_000_000, WRONG), (0, REUSE))
# Columns that a graph needs to have a legend beside it.
WIDE = 12
VERDICT = "against the floor"
UNDER, OVER = "under the floor", "above the floor"
# Where a name comes with and without an ending, as the collector's own do, it is asked for by pattern.
_METRIC = re.compile(r'([a-z_]+)(?=[{[])|__name__=~"([a-z_]+)')


@dataclass(frozen=True, slots=True)
class Query:
    """A question to Prometheus, and what its answers are called: text, with `{{label}}` for a label's value."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a panel stands, of 24 columns, and its id."""

    id: int
    x: int
    y: int
    w: int
    h: int

    @property
    def grid(self) -> dm.GridPos:
        return dm.GridPos(x=self.x, y=self.y, w=self.w, h=self.h)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """What all kinds share. `about` says what is shown and what normal looks like; the metrics are added to it."""

    title: str
    about: str
    queries: tuple[Query, ...]
    unit: str
    decimals: int | None = None
    empty: str = EMPTY


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat(Panel):
    """One number over the chosen time. With a threshold of the user's (`floor`), a second line says whether the number
    is under it, in words and in colour."""

    steps: Steps = PLAIN
    floor: Threshold | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph(Panel):
    """Lines over time, or areas on each other. The values of the attribute `by` have the colours of the palette.
    `floor` is drawn as a dashed line where there is something to hold against it. A graph that is `traced`
    shows exemplars: points that lead to the trace of one call."""

    stacked: bool = False
    by: str = ""
    floor: Threshold | None = None
    top: float | None = None
    bottom: float | None = 0
    colours: Mapping[str, str] = field(default_factory=dict)
    traced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars(Panel):
    """One bar for each series, the longest first, over the chosen time."""

    by: str = ""
    steps: Steps = BLUE


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its head, its question, its unit. `state` reads 0 as under a threshold and 1 as above it;
    `steps` colours the cells."""

    head: str
    expr: str
    unit: str = "short"
    decimals: int | None = None
    state: bool = False
    steps: Steps = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A row for each combination of the labels `keys` (attributes, with their heads), a column for each question. A
    cell of the agent leads to `links`: titles and uids of boards. The highest of the column `sort` is the first, or the
    lowest, where it is `rising`."""

    title: str
    about: str
    keys: Mapping[str, str]
    columns: tuple[Column, ...]
    links: Mapping[str, str] = field(default_factory=dict)
    sort: str = ""
    rising: bool = False

    @property
    def queries(self) -> tuple[Query, ...]:
        return tuple(Query(column.expr) for column in self.columns)


Shown = Stat | Graph | Bars | Table
# A point for each pixel would be the ratio of a few calls: of a day, each stands for ten minutes.
POINTS = 120
Drawn: TypeAlias = stat.Panel | timeseries.Panel | bargauge.Panel | table.Panel


def metrics(shown: Shown) -> list[str]:
    """The metrics that a panel asks for, as Prometheus spells them."""
    found = (name or spelled for query in shown.queries for name, spelled in _METRIC.findall(query.expr))
    return list(dict.fromkeys(name.removesuffix("_bucket") for name in found if name))


def drawn(shown: Shown, at: Place) -> Drawn:
    """The panel at its place."""
    panel = _DRAWN[type(shown)](shown).id(at.id).title(shown.title).grid_pos(at.grid)
    return panel.legend(_legend(shown, at.w)) if isinstance(shown, Graph) else panel


def _told(shown: Shown) -> str:
    return f"{shown.about}\n\nMetrics: {', '.join(f'`{name}`' for name in metrics(shown))}."


def _questions(shown: Stat | Graph | Bars, *, instant: bool) -> list[pb.Dataquery]:
    asked = [_question(query, "ABCDEFGH"[n], instant=instant) for n, query in enumerate(shown.queries)]
    return [one.exemplar(True) for one in asked] if isinstance(shown, Graph) and shown.traced else asked


def _question(query: Query, ref: str, *, instant: bool) -> pb.Dataquery:
    asked = pb.Dataquery().expr(query.expr).legend_format(query.legend).ref_id(ref)
    return asked.instant() if instant else asked.range()


def _steps(steps: Steps) -> d.ThresholdsConfig:
    listed = [dm.Threshold(value=value, color=colour) for value, colour in steps]
    return d.ThresholdsConfig().mode(dm.ThresholdsMode.ABSOLUTE).steps(listed)


def _value(id_val: str, value: Any) -> dm.DynamicConfigValue:
    return dm.DynamicConfigValue(id_val=id_val, value=value)


def _fixed(colour: str) -> dm.DynamicConfigValue:
    return _value("color", {"mode": "fixed", "fixedColor": colour})


def _states() -> list[dict[str, Any]]:
    words = ((0, UNDER, WRONG), (1, OVER, RIGHT))
    options = {str(value): {"index": value, "text": word, "color": colour} for value, word, colour in words}
    return [{"type": "value", "options": options}]


def _dressed(panel: Any, shown: Stat | Graph | Bars, *, instant: bool) -> Any:
    panel = panel.description(_told(shown)).datasource(DATASOURCE).unit(shown.unit).no_value(shown.empty)
    panel = panel.targets(_questions(shown, instant=instant))
    return panel if shown.decimals is None else panel.decimals(shown.decimals)


def _last() -> cb.ReduceDataOptions:
    return cb.ReduceDataOptions().calcs(["lastNotNull"])


def _stat(shown: Stat) -> stat.Panel:
    panel = _dressed(stat.Panel(), shown, instant=True)
    panel = panel.thresholds(_steps(shown.steps)).reduce_options(_last()).color_mode(cm.BigValueColorMode.VALUE)
    panel = panel.graph_mode(cm.BigValueGraphMode.NONE).text_mode(cm.BigValueTextMode.VALUE)
    panel = panel.orientation(cm.VizOrientation.HORIZONTAL)
    if shown.floor:
        held = Query(shown.floor.met(shown.queries[0].expr), VERDICT)
        panel = panel.with_target(_question(held, "Z", instant=True))
        panel = panel.override_by_name(VERDICT, [_value("unit", "none"), _value("mappings", _states())])
    return panel


def _graph(shown: Graph) -> timeseries.Panel:
    panel = _dressed(timeseries.Panel(), shown, instant=False).line_width(1).fill_opacity(30 if shown.stacked else 0)
    panel = panel.show_points(cm.VisibilityMode.NEVER).tooltip(_tooltip()).max_data_points(POINTS)
    if shown.stacked:
        panel = panel.stacking(cb.StackingConfig().mode(cm.StackingMode.NORMAL).group("A"))
    panel = panel if shown.bottom is None else panel.min(shown.bottom)
    panel = panel if shown.top is None else panel.max(shown.top)
    for named, colour in {**COLOURS.get(shown.by, {}), **shown.colours}.items():
        panel = panel.override_by_name(named, [_fixed(colour)])
    return _lined(panel, shown.queries[0], shown.floor) if shown.floor else panel


def _lined(panel: timeseries.Panel, held: Query, floor: Threshold) -> timeseries.Panel:
    where = Query(f"max({held.expr}) * 0 + {floor.variable}", floor.label)
    dashed = [
        _fixed(LINE),
        _value("custom.lineStyle", {"fill": "dash", "dash": [8, 8]}),
        _value("custom.fillOpacity", 0),
    ]
    return panel.with_target(_question(where, "Z", instant=False)).override_by_name(floor.label, dashed)


def _legend(shown: Graph, width: int) -> cb.VizLegendOptions:
    """Below a graph Grafana gives a legend a third of the height, which is three rows of a table: it stands beside it,
    and where that would leave no graph, it has names alone."""
    made = cb.VizLegendOptions().show_legend(True)
    if width < WIDE:
        return made.display_mode(cm.LegendDisplayMode.LIST).placement(cm.LegendPlacement.BOTTOM).calcs([])
    beside = made.display_mode(cm.LegendDisplayMode.TABLE).placement(cm.LegendPlacement.RIGHT)
    return beside.calcs(["lastNotNull"] if _pooled(shown) else ["mean", "lastNotNull"])


def _pooled(shown: Graph) -> bool:
    """Whether a point is of many calls or few, so that the mean of all points is not what the whole time came to, which
    a headline or a table tells: shares, quantiles, and what trails."""
    return shown.unit in ("percentunit", "s") or TRAILING in shown.about


def _tooltip() -> cb.VizTooltipOptions:
    return cb.VizTooltipOptions().mode(cm.TooltipDisplayMode.MULTI).sort(cm.SortOrder.DESCENDING)


def _bars(shown: Bars) -> bargauge.Panel:
    panel = _dressed(bargauge.Panel(), shown, instant=True).min(0).thresholds(_steps(shown.steps))
    panel = panel.orientation(cm.VizOrientation.HORIZONTAL).display_mode(cm.BarGaugeDisplayMode.BASIC)
    panel = panel.reduce_options(_last()).value_mode(cm.BarGaugeValueMode.TEXT).show_unfilled(False)
    for named, colour in COLOURS.get(shown.by, {}).items():
        panel = panel.override_by_name(named, [_fixed(colour)])
    return panel


def _table(shown: Table) -> table.Panel:
    panel = table.Panel().description(_told(shown)).datasource(DATASOURCE).no_value(EMPTY).show_header(True)
    panel = panel.cell_options(cm.TableAutoCellOptions())
    for ref, column in zip(_refs(shown), shown.columns, strict=True):
        asked = _question(Query(column.expr), ref, instant=True).format(pm.PromQueryFormat.TABLE)
        panel = panel.with_target(asked).override_by_name(column.head, _cells(column))
    for key, head in shown.keys.items():
        panel = panel.override_by_name(head, _named(shown, key))
    if shown.sort:
        panel = panel.sort_by([cb.TableSortByFieldState().display_name(shown.sort).desc(not shown.rising)])
    return panel.with_transformation(dm.DataTransformerConfig(id_val="merge", options={})).with_transformation(
        dm.DataTransformerConfig(id_val="organize", options=_heads(shown))
    )


def _refs(shown: Table) -> Sequence[str]:
    return "ABCDEFGHIJKLMNOP"[: len(shown.columns)]


def _heads(shown: Table) -> dict[str, Any]:
    valued = {f"Value #{ref}": column.head for ref, column in zip(_refs(shown), shown.columns, strict=True)}
    # With one query alone Grafana calls its values just "Value".
    named = {label(key): head for key, head in shown.keys.items()} | valued | {"Value": shown.columns[0].head}
    order = {name: at for at, name in enumerate(named)}
    return {"excludeByName": {"Time": True}, "renameByName": named, "indexByName": order, "includeByName": {}}


def _cells(column: Column) -> list[dm.DynamicConfigValue]:
    found = [_value("unit", column.unit), _value("custom.minWidth", 90), _value("noValue", UNKNOWN)]
    if column.decimals is not None:
        found.append(_value("decimals", column.decimals))
    if column.state:
        found.append(_value("mappings", _states()))
    if column.state or column.steps:
        steps = [{"value": value, "color": colour} for value, colour in column.steps or PLAIN]
        found.append(_value("thresholds", {"mode": "absolute", "steps": steps}))
        found.append(_value("custom.cellOptions", {"type": "color-text"}))
    return found


def _named(shown: Table, key: str) -> list[dm.DynamicConfigValue]:
    absent = {"type": "special", "options": {"match": "empty", "result": {"text": NAMELESS, "index": 0}}}
    found = [_value("mappings", [absent])]
    return [*found, _value("links", _links(shown))] if shown.links and key == s.GEN_AI_AGENT_NAME else found


def _links(shown: Table) -> list[dict[str, Any]]:
    kept = "${__url_time_range}&${datasource:queryparam}&${model:queryparam}"
    # The raw value: nothing where an agent has no name, and with it the board shows the calls without one.
    row = "var-agent=${__value.raw:percentencode}"
    return [{"title": title, "url": f"/d/{uid}?{kept}&{row}"} for title, uid in shown.links.items()]


_DRAWN: dict[type, Callable[[Any], Any]] = {Stat: _stat, Graph: _graph, Bars: _bars, Table: _table}
