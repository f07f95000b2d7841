"""The boards as people import them: generated, in Grafana's shape, and by our own rules of reading."""

from __future__ import annotations

import copy
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

if sys.version_info < (3, 11):
    pytest.skip("the boards' generator needs Python 3.11, what it writes does not", allow_module_level=True)

from dashboards import __main__ as program
from dashboards import collectors, expressions, lint, promql, shape, uids
from dashboards.boards import BOARDS
from dashboards.documents import document
from dashboards.layout import pairs
from dashboards.panels import TRAILING
from dashboards.promql import AllBut
from dashboards.variables import RANGE
from otel_context_ledger import semconv as s
from tests import prometheus

ROOT = Path(__file__).resolve().parents[1]
SHEETS = {board.uid: lint.Sheet(document(board), pairs(board)) for board in BOARDS}
Document = dict[str, Any]
each_board = pytest.mark.parametrize("uid", SHEETS)


def test_there_are_five_boards_with_uids_that_never_change() -> None:
    """Links and bookmarks hold a uid, and the titles are those of the README."""
    assert {uid: sheet.document["title"] for uid, sheet in SHEETS.items()} == {
        "context-ledger-reuse": "Context ledger / Reuse and correctness",
        "context-ledger-misses": "Context ledger / Why not reused",
        "context-ledger-compaction": "Context ledger / Compaction and constraints",
        "context-ledger-cost": "Context ledger / Cost per successful task",
        "context-ledger-fleet": "Context ledger / Fleet and collector",
    }


@each_board
def test_a_board_keeps_all_rules(uid: str) -> None:
    """No rule is broken but those that an exception with a reason names."""
    assert lint.check(SHEETS[uid].document, SHEETS[uid].pairs) == []


@each_board
def test_a_board_has_the_shape_that_grafana_reads(uid: str) -> None:
    """Frame, options and single fields are as Grafana's own types have them."""
    assert shape.faults(SHEETS[uid].document) == []


def test_every_exception_is_needed() -> None:
    """An exception that no board makes use of any more is to go."""
    assert lint.outdated(list(SHEETS.values())) == []


def test_the_committed_boards_are_what_the_program_writes(capsys: pytest.CaptureFixture[str]) -> None:
    """Who imports a file from dashboards/dist gets what is in dashboards/."""
    assert program.main(["--check"]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_board_that_was_edited_by_hand_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """--check names what differs, what is missing and what nobody writes any more; without it all three are mended."""
    shutil.copytree(program.DIST, tmp_path / "dist")
    monkeypatch.setattr(program, "DIST", tmp_path / "dist")
    edited, missing, old = (tmp_path / "dist" / f"{uid}.json" for uid in (uids.COST, uids.MISSES, "gone"))
    edited.write_text("{}", encoding="utf-8")
    missing.unlink()
    old.write_text("{}", encoding="utf-8")
    assert program.main(["--check"]) == 1
    told = [line.split(" ")[0] for line in capsys.readouterr().err.splitlines()]
    assert sorted(told) == sorted(f"dashboards/dist/{path.name}" for path in (edited, missing, old))
    assert program.main([]) == 0
    assert program.main(["--check"]) == 0


def panel(board: Document, title: str) -> Document:
    """The panel of a board with this title."""
    found: Document = next(one for one in board["panels"] if one["title"] == title)
    return found


def query(title: str, expr: str, **more: Any) -> Callable[[Document], None]:
    """Puts another first query into a panel."""

    def plant(board: Document) -> None:
        panel(board, title)["targets"][0].update(expr=expr, **more)

    return plant


def both(one: Callable[[Document], None], other: Callable[[Document], None]) -> Callable[[Document], None]:
    """Plants two things."""

    def plant(board: Document) -> None:
        one(board)
        other(board)

    return plant


def put(title: str, *path: str | int, value: Any) -> Callable[[Document], None]:
    """Puts a value to a place in a panel."""

    def plant(board: Document) -> None:
        at: Any = panel(board, title)
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value

    return plant


def at(*path: str | int, value: Any) -> Callable[[Document], None]:
    """Puts a value to a place in a board."""

    def plant(board: Document) -> None:
        here: Any = board
        for step in path[:-1]:
            here = here[step]
        here[path[-1]] = value

    return plant


READ, RECALL, TASKS = "Cache read share", "Constraint recall", "Tasks succeeded"
GRAPH, BESIDE, TABLE = "Input tokens by class", "Checks by verdict", "Agents"
INPUT = "context_ledger_input_tokens_total"
CHECKS = 'context_ledger_checks_total{context_ledger_pillar="%s"}'
# A fault of each rule, planted into the first board, and all that is found then: (rule, where).
PLANTED: Mapping[str, tuple[Callable[[Document], None], list[tuple[str, str]]]] = {
    "identity": (at("uid", value="context-ledger-other"), [("identity", "the board")]),
    "sources": (put(READ, "datasource", "uid", value="prometheus"), [("sources", READ)]),
    "choices": (at("templating", "list", 1, "refresh", value=1), [("choices", "$agent")]),
    "unused": (at("templating", "list", 3, "name", value="recall"), [
        ("unused", "the board"), ("unused", "$recall"),
    ]),
    "unique": (put(READ, "id", value=3), [("unique", "3")]),
    "places": (put(TABLE, "gridPos", "w", value=25), [("places", TABLE)]),
    "titles": (put(TABLE, "title", value="Agents " * 20), [("titles", "Agents " * 20)]),
    "descriptions": (put(TABLE, "description", value="Who? Metrics: `up`."), [
        ("descriptions", TABLE), ("descriptions", TABLE),
    ]),
    "units": (put(GRAPH, "fieldConfig", "defaults", "unit", value="tok"), [("units", GRAPH)]),
    "empty": (put(GRAPH, "fieldConfig", "defaults", "noValue", value=""), [("empty", GRAPH)]),
    "axes": (put(GRAPH, "fieldConfig", "defaults", "min", value=None), [("axes", GRAPH)]),
    "promql": (at("annotations", "list", 1, "expr", value="sum("), [("promql", "Identity changes")]),
    "windows": (
        query(BESIDE, "sum by (context_ledger_verdict) (rate(context_ledger_checks_total[1h]))"),
        [("windows", BESIDE)],
    ),
    "divisions": (
        query(BESIDE, "sum by (context_ledger_verdict) (rate(context_ledger_checks_total[$__rate_interval]))"
              " / sum by (context_ledger_verdict) (rate(context_ledger_checks_total[$__rate_interval]))"),
        [("divisions", BESIDE)],
    ),
    "metrics": (
        both(
            put(BESIDE, "description", value="Normal: none.\n\nMetrics: `gen_ai_calls_total`."),
            query(BESIDE, "sum(rate(gen_ai_calls_total[$__rate_interval]))", legendFormat=""),
        ),
        [("metrics", BESIDE), ("partners", GRAPH)],
    ),
    "labels": (
        query(BESIDE, f"sum(rate({CHECKS % 'memory'}[$__rate_interval]))", legendFormat=""),
        [("labels", BESIDE)],
    ),
    "legends": (put(BESIDE, "targets", 0, "legendFormat", value="{{context_ledger_pillar}}"), [("legends", BESIDE)]),
    "partners": (
        both(
            put(BESIDE, "description", value=f"Normal: none.\n\nMetrics: `{INPUT}`."),
            query(BESIDE, f"sum(rate({INPUT}[$__rate_interval]))", legendFormat=""),
        ),
        [("partners", GRAPH)],
    ),
    "side_by_side": (put(RECALL, "gridPos", "h", value=3), [("side_by_side", READ)]),
    "colours": (
        put(READ, "fieldConfig", "defaults", "thresholds", "steps", 1, "color", value="green"),
        [("colours", READ)],
    ),
    "unjudged": (
        both(
            put(TASKS, "fieldConfig", "defaults", "thresholds", "steps", value=[{"value": None, "color": "red"}]),
            put(TABLE, "fieldConfig", "overrides", value=[
                {"matcher": {"id": "byName", "options": "Recall"}, "properties": [
                    {"id": "unit", "value": "percentunit"},
                    {"id": "custom.cellOptions", "value": {"type": "color-text"}},
                ]},
            ]),
        ),
        [("unjudged", TASKS), ("unjudged", TABLE)],
    ),
    "listed": (
        both(
            put(GRAPH, "options", "legend", "placement", value="bottom"),
            both(put(GRAPH, "gridPos", "w", value=8), put(BESIDE, "gridPos", value={"x": 8, "y": 45, "w": 8, "h": 9})),
        ),
        [("listed", GRAPH), ("listed", BESIDE)],
    ),
    "marks": (at("annotations", "list", 0, "enable", value=False), [("marks", "the board")]),
    "totals": (
        both(
            put(READ, "description", value="Normal: any.\n\nMetrics: `context_ledger_output_tokens_total`."),
            query(READ, "sum(increase(context_ledger_output_tokens_total[$__range]))"),
        ),
        [("totals", READ)],
    ),
    "subset": (put(GRAPH, "transformations", value=[{"id": "joinByField", "options": {}}]), [("subset", GRAPH)]),
    "ways": (
        put(TABLE, "fieldConfig", "overrides", value=[
            {"matcher": {"id": "byName", "options": "Agent"}, "properties": [
                {"id": "unit", "value": "short"},
                {"id": "links", "value": [{"title": "Cost", "url": "/d/context-ledger-cost"}]},
            ]},
        ]),
        [("ways", TABLE)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("rule", lint.RULES)
def test_each_rule_finds_the_fault_that_is_planted_for_it(rule: str) -> None:
    """A rule that never finds anything is none: of every one a fault is planted, and that alone is found."""
    plant, expected = PLANTED[rule]
    sheet = SHEETS[uids.REUSE]
    board = copy.deepcopy(dict(sheet.document))
    plant(board)
    assert [(one.rule, one.where) for one in lint.check(board, sheet.pairs)] == expected


def test_a_figure_of_reuse_without_any_partner_is_found() -> None:
    """A board whose layout declares no pair breaks the first law, at every figure of reuse that stands alone."""
    board = SHEETS[uids.REUSE].document
    assert [(one.rule, one.where) for one in lint.check(board, [])] == [
        ("partners", title)
        for title in (
            READ, "Reuse captured", "Saved by the cache", "Cache read share by agent", "Reuse captured by agent",
            "Saved by the cache by agent", GRAPH,
        )
    ]  # fmt: skip


# A mistake in the JSON, and what is said of it.
MISTAKES: Mapping[str, tuple[Callable[[Document], None], str]] = {
    "a word that is none of Grafana's": (
        put(READ, "options", "colorMode", value="loud"),
        "panel 2 options colorMode: 'loud' is not one of ['background', 'background_solid', 'none', 'value']",
    ),
    "an option that does not exist": (
        put(GRAPH, "options", "colours", value=True),
        "panel 18 options : Additional properties are not allowed ('colours' was unexpected)",
    ),
    "a misspelt setting of a field": (
        put(GRAPH, "fieldConfig", "defaults", "custom", "lineStile", value={}),
        "panel 18 custom : Additional properties are not allowed ('lineStile' was unexpected)",
    ),
    "a number as text": (
        put(READ, "gridPos", "h", value="4"),
        "board panels/1/gridPos/h: '4' is not of type 'number'",
    ),
    "a variable of another type": (
        at("templating", "list", 1, "type", value="list"),
        "board templating/list/1/type: 'list' is not one of ['query', 'adhoc', 'groupby', 'constant', 'datasource', "
        "'interval', 'textbox', 'custom', 'system', 'snapshot', 'switch']",
    ),
    "a query's key that Prometheus' data source does not know": (
        put(READ, "targets", 0, "expression", value="up"),
        "panel 2: query A: expression is 'up'",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_shape_finds_a_mistake(mistake: str) -> None:
    """What Grafana would ignore or choke on is named with its place."""
    plant, expected = MISTAKES[mistake]
    board = copy.deepcopy(dict(SHEETS[uids.REUSE].document))
    plant(board)
    assert shape.faults(board) == [expected]


def test_a_threshold_is_the_users() -> None:
    """DB06: a floor is a variable. A number says whether it is under it in a second line, a graph has it as a line."""
    board = dict(SHEETS[uids.REUSE].document)
    floors = {one["name"]: one["current"]["value"] for one in board["templating"]["list"] if one["type"] == "custom"}
    assert floors == {"recall_floor": "0.95", "right_floor": "0.95", "success_floor": "0.8", "coverage_floor": "0.9"}
    number, graph = panel(board, RECALL), panel(board, f"{RECALL} by agent")
    assert [one["expr"].endswith(">= bool $recall_floor - 0.0005") for one in number["targets"]] == [False, True]
    assert [one["expr"].endswith("* 0 + $recall_floor") for one in graph["targets"]] == [False, True]


def test_only_values_of_the_registry_are_asked_for_or_left_out() -> None:
    """One value or several, or all but some; a word that the registry lacks is an error in either way of asking."""
    verdict = s.CONTEXT_LEDGER_VERDICT
    asked = (("held",), ("held", "lost"), AllBut(("unknown",)), AllBut(("unknown", "uncertain")))
    assert [promql.picked(s.METRIC_CHECKS, {verdict: one}) for one in asked] == [
        '{context_ledger_verdict="held"}',
        '{context_ledger_verdict=~"held|lost"}',
        '{context_ledger_verdict!="unknown"}',
        '{context_ledger_verdict!~"unknown|uncertain"}',
    ]
    for wrong in (("gone",), AllBut(("gone",))):
        with pytest.raises(ValueError, match=r"context_ledger\.verdict is never gone"):
            promql.picked(s.METRIC_CHECKS, {verdict: wrong})


def test_a_value_that_is_left_out_is_not_asked_for() -> None:
    """What is read from the cache is a figure of reuse, everything else is none."""
    found = [expressions.selectors(expressions.parsed(f'x{{source{how}"read"}}'))[0] for how in ("=", "!=")]
    assert [one.picks("source", "read") for one in found] == [True, False]


def test_tasks_are_not_narrowed_by_a_model() -> None:
    """Nobody says of which model a task is: with a model chosen, the tasks of the chosen agents are all there."""
    assert (RANGE.matching(s.METRIC_TASKS, {}), RANGE.matching(s.METRIC_CALLS, {})) == (
        '{gen_ai_agent_name=~"$agent"}',
        '{gen_ai_agent_name=~"$agent",gen_ai_request_model=~"$model"}',
    )


def test_our_collectors_metrics_are_those_that_the_components_declare() -> None:
    """A metric that a component does not have leaves a panel empty for ever."""
    declared = {
        f"otelcol_{name}"
        for path in (ROOT / "collector").glob("contextledger*/metadata.yaml")
        for name in yaml.safe_load(path.read_text("utf-8"))["telemetry"]["metrics"]
    }
    assert {name for name in collectors.OTELCOL if "context_ledger" in name} == declared


def test_nothing_is_not_zero(tmp_path: Path) -> None:
    """DB05: a share or count is 0 where there was traffic and none of it counts, and nothing where there was none."""
    prometheus.need("promtool")
    part, whole, nothing = 'sum(up{of="part"})', 'sum(up{of="whole"})', 'sum(up{of="nothing"})'
    rows = {
        promql.share(part, whole): 0.25,
        promql.share(nothing, whole): 0,
        promql.share(part, nothing): None,
        promql.counted(part, whole): 1,
        promql.counted(nothing, whole): 0,
        promql.counted(part, nothing): None,
        promql.either(part, whole): 5,
        promql.either(nothing, whole): 4,
        promql.either(part, nothing): 1,
        promql.either(nothing, nothing): None,
    }
    tests = [
        {"expr": expr, "eval_time": "1m", "exp_samples": [] if value is None else [{"labels": "{}", "value": value}]}
        for expr, value in rows.items()
    ]
    series = [{"series": f'up{{of="{of}"}}', "values": f"{value}x5"} for of, value in (("part", 1), ("whole", 4))]
    prometheus.tested(tmp_path, {"input_series": series, "promql_expr_test": tests})


def test_a_legend_has_no_mean_of_what_a_headline_tells_otherwise() -> None:
    """The mean of the points of a share is not the share of the whole time, which the headline has: only what goes up
    by so much a second, and what is held, has a mean."""
    for sheet in SHEETS.values():
        for one in sheet.panels:
            if one["type"] == "timeseries" and "mean" in one["options"]["legend"]["calcs"]:
                assert one["fieldConfig"]["defaults"]["unit"] not in ("percentunit", "s"), one["title"]
                assert TRAILING not in one["description"], one["title"]
    board = dict(SHEETS[uids.REUSE].document)
    found = [panel(board, title)["options"]["legend"]["calcs"] for title in (f"{RECALL} by agent", "Checks by verdict")]
    assert found == [["lastNotNull"], ["mean", "lastNotNull"]]


def test_the_agent_whose_context_was_least_often_right_is_the_first() -> None:
    """Who to look at: not who makes most calls."""
    table = panel(dict(SHEETS[uids.REUSE].document), "Agents")
    assert table["options"]["sortBy"] == [{"displayName": "Checks right", "desc": False}]
