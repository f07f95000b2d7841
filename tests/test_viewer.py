"""The page of `context-ledger dashboard` in a real browser over a real Prometheus: what is drawn, read aloud, reached
by keyboard, and asked for."""

from __future__ import annotations

import re
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dashboards import history as history_of_a_day
from otel_context_ledger.cli.viewer import boards
from tests import prometheus as p
from tests.browser import Tab, browsing, needs_browser, tab
from tests.test_day import held
from tests.viewer import FROM, NOBODY, SCRAPE, TO, board, override, panel, saying, serving, standing, target

pytestmark = needs_browser
SCRIPT = '<img src=x onerror="document.title=1">'
QUOTES = 'a"} or vector(1) or t{a="\\'
LONG = "n" * 300
AGENTS = {"coder": 600, "research": 300, SCRIPT: 60, QUOTES: 60, LONG: 60}
RATE = "sum by (agent) (rate(t_total[$__rate_interval]))"
AGENT = {
    "name": "agent",
    "type": "query",
    "label": "Agent",
    "multi": True,
    "includeAll": True,
    "allValue": ".*",
    "query": {"query": "label_values(t_total, agent)"},
    "current": {"text": "All", "value": "$__all"},
}
FLOOR = {
    "name": "floor",
    "type": "custom",
    "label": "Floor",
    "query": "0.8,0.9",
    "current": {"text": "0.9", "value": "0.9"},
}


def history() -> str:
    """An hour at one sample a minute: tokens of five agents, some of bad names; shares of which one is no number."""
    lines = ["# TYPE t counter"]
    for agent, step in AGENTS.items():
        named = agent.replace("\\", "\\\\").replace('"', '\\"')
        lines += [f't_total{{agent="{named}"}} {at * step} {FROM + at * 60}' for at in range(61)]
    lines.append("# TYPE share gauge")
    for at in range(61):
        lines.append(f'share{{agent="coder"}} {0.25 + at / 120:.4f} {FROM + at * 60}')
        lines.append(f'share{{agent="broken"}} NaN {FROM + at * 60}')
    return "\n".join([*lines, "# EOF", ""])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[p.Prometheus]:
    """A Prometheus that holds the hour."""
    p.need("prometheus", "promtool")
    folder = tmp_path_factory.mktemp("prometheus")
    (folder / "history.om").write_text(history())
    p.backfill(folder / "history.om", folder / "blocks")
    with p.running(folder, folder / "blocks") as running:
        yield running


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """One browser for all."""
    with browsing() as browser:
        yield browser


@contextmanager
def shown(
    browser: Any, url: str, *many: dict[str, Any], query: str = "", scrape: float = SCRAPE, **more: Any
) -> Iterator[Tab]:
    """The page of these boards once everything was asked, at an address that goes on with `query`."""
    with serving(url, *many, scrape=scrape) as viewer, tab(browser, **more) as opened:
        opened.open(f"{viewer.address}{query}")
        settled(opened)
        yield opened
        assert opened.outside(viewer.address) == []


def settled(opened: Tab, times: int = 1) -> None:
    """Waits until so many rounds of questions are over."""
    until(opened, lambda: rounds(opened) >= times)


def until(opened: Tab, holds: Callable[[], bool], seconds: float = 60) -> None:
    """Waits until something holds; from outside, for the page's policy forbids that anything is evaluated in it."""
    last = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < last, opened.spoken()
        opened.page.wait_for_timeout(20)


def rounds(opened: Tab) -> int:
    return int(opened.page.evaluate("Number(document.documentElement.dataset.ready ?? 0)"))


def words(opened: Tab, title: str) -> list[str]:
    """What a panel says, line by line."""
    text: str = opened.page.locator(f".panel:has(h3:text-is('{title}')) .body").inner_text()
    return [line.strip() for line in re.split(r"[\n\t]", text) if line.strip()]


def states(opened: Tab) -> list[str]:
    found: list[str] = opened.page.eval_on_selector_all(".panel", "all => all.map((one) => one.dataset.state)")
    return found


def questions(opened: Tab, path: str) -> list[dict[str, str]]:
    """The parameters of what was asked of an endpoint."""
    split = [urllib.parse.urlsplit(address) for address in opened.requests]
    return [dict(urllib.parse.parse_qsl(one.query)) for one in split if one.path == f"/api/v1/{path}"]


RELATIVE = "?refresh=1s&from=now-5m&to=now"
UNITS = [
    ("percentunit", None, "0.8213", "82.1%"),
    ("percentunit", 1, "1", "100.0%"),
    ("percent", None, "12.5", "12.5%"),
    ("short", None, "12345", "12.3K"),
    ("short", None, "0.00042", "0.00042"),
    ("short", None, "999999", "1M"),
    ("none", None, "1234567", "1234567"),
    ("locale", None, "1234567", "1,234,567"),
    ("s", None, "0.0123", "12.3 ms"),
    ("s", None, "90", "1.5 min"),
    ("ms", None, "1500", "1.5 s"),
    ("bytes", None, "1536", "1.5 KiB"),
    ("decbytes", None, "1500", "1.5 kB"),
    ("currencyUSD", None, "0.1234", "$0.12"),
    ("currencyUSD", None, "0.0012", "$0.0012"),
    ("currencyUSD", 2, "-1234.5", "-$1.23K"),
    ("suffix:tok/s", None, "12", "12 tok/s"),
    ("reqps", None, "0", "0 req/s"),
]
STAT = panel("stat", "Sum", target("sum(increase(t_total[$__range]))", instant=True), options={"textMode": "value"})
GRAPH = panel(
    "timeseries",
    "Lines",
    target(f't_total{{agent=~"coder|research"}} / (time() - {FROM})', legend="{{agent}}"),
    options={"legend": {"displayMode": "table", "showLegend": True, "calcs": ["mean", "lastNotNull"]}},
)
BARS = panel(
    "bargauge",
    "Bars",
    target('sort_desc(rate(t_total{agent=~"coder|research"}[10m]))', legend="{{agent}}", instant=True),
)
TABLE = panel(
    "table",
    "Rows",
    target('sum by (agent) (rate(t_total{agent=~"coder|research"}[10m]))', instant=True, format="table"),
    target("sum by (agent) (share)", "B", instant=True, format="table"),
    overrides=[
        override("Rate", unit="suffix:tok/s"),
        override("Share", unit="percentunit", custom_cellOptions={"type": "color-text"}, noValue="not known"),
        override(
            "Agent",
            links=[{"title": "Other", "url": '/d/other?${__url_time_range}&var-agent=${__data.fields["Agent"]}'}],
        ),
    ],
    transformations=[
        {"id": "merge", "options": {}},
        {
            "id": "organize",
            "options": {
                "excludeByName": {"Time": True},
                "renameByName": {"agent": "Agent", "Value #A": "Rate", "Value #B": "Share"},
            },
        },
    ],
    options={"sortBy": [{"displayName": "Rate", "desc": True}]},
)
TEXT = panel(
    "text", "Words", options={"content": "**Floor** is `$floor`.\n\n- one\n- <b>two</b>\n\n[away](javascript:alert(1))"}
)
KINDS = board(STAT, GRAPH, BARS, TABLE, TEXT, templating={"list": [AGENT, FLOOR]})


def test_every_kind_of_panel_draws(chromium: Any, server: p.Prometheus) -> None:
    """A number, lines with their legend, bars, a merged table and words, of one Prometheus."""
    with shown(chromium, server.url, KINDS) as opened:
        assert words(opened, "Sum") == ["64.8K"]
        assert words(opened, "Lines") == ["Name", "Mean", "Last", "coder", "10", "10", "research", "5", "5"]
        assert words(opened, "Bars") == ["coder", "10", "research", "5"]
        rows = ["Agent", "Rate▼", "Share", "coder", "10 tok/s", "75%", "research", "5 tok/s", "not known"]
        assert words(opened, "Rows") == [*rows, "broken", "No data", "not known"]
        assert words(opened, "Words") == ["Floor is 0.9.", "one", "<b>two</b>", "[away](javascript:alert(1))"]
        assert opened.page.locator(".plot canvas").count() == 1
        assert (states(opened), opened.errors) == (["ok"] * 5, [])


def test_labels_of_others_are_text(chromium: Any, server: p.Prometheus) -> None:
    """A label that is markup, a query or very long is shown as it is, everywhere, and does nothing."""
    names = panel("bargauge", "Names", target("rate(t_total[10m])", legend="{{agent}}", instant=True))
    lines = panel("timeseries", "Lines", target(RATE, legend="{{agent}}"))
    rows = panel("table", "Rows", target("t_total", instant=True, format="table"))
    mark = {
        "name": SCRIPT,
        "enable": True,
        "expr": "t_total > 0",
        "titleFormat": "{{agent}}",
        "textFormat": "{{agent}}",
    }
    hostile = board(names, lines, rows, title=SCRIPT, templating={"list": [AGENT]}, annotations={"list": [mark]})
    with shown(chromium, server.url, hostile) as opened:
        assert {*AGENTS} <= {*words(opened, "Names")} & {*words(opened, "Lines")} & {*words(opened, "Rows")}
        assert opened.page.title() == f"{SCRIPT} – context-ledger"
        assert opened.page.locator("img").count() == 0
        assert (states(opened), opened.errors) == (["ok"] * 3, [])
        overflow = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        assert opened.page.evaluate(overflow) is False


@pytest.mark.parametrize("agent", [SCRIPT, QUOTES, LONG, "coder"])
def test_a_chosen_value_stays_a_value(agent: str, chromium: Any, server: p.Prometheus) -> None:
    """Whatever is chosen is what the query asks for, and nothing else."""
    one = panel("stat", "One", target('count(t_total{agent=~"$agent"}) + 0 * $floor', instant=True))
    query = f"?{urllib.parse.urlencode({'var-agent': agent})}"
    with shown(chromium, server.url, board(one, templating={"list": [AGENT, FLOOR]}), query=query) as opened:
        assert words(opened, "One") == ["1"]


def test_what_is_no_number_is_not_shown_as_one(chromium: Any, server: p.Prometheus) -> None:
    """NaN is what the board says for nothing, and a gap in a line."""
    empty = {"noValue": "No traffic"}
    many = board(
        panel("stat", "NaN", target('share{agent="broken"}', instant=True), defaults=empty),
        panel("stat", "Division", target("vector(0) / 0", instant=True), defaults=empty),
        panel("stat", "Infinite", target("vector(1) / 0", instant=True), defaults=empty),
        panel("stat", "Nothing", target("none", instant=True), defaults=empty),
        panel("timeseries", "Line", target('share{agent="broken"}', legend="broken"), defaults=empty),
    )
    with shown(chromium, server.url, many) as opened:
        found = {title: words(opened, title) for title in ("NaN", "Division", "Infinite", "Nothing")}
        assert found == {title: ["No traffic"] for title in found}
        assert "NaN" not in opened.page.locator("main").inner_text().replace("NaN\n", "", 1)
        assert opened.errors == []


def test_a_number_is_written_in_its_unit(chromium: Any, server: p.Prometheus) -> None:
    """As Grafana writes it, with three digits that say something unless the board says how many decimals."""
    many = [
        panel("stat", f"{unit} {value}", target(f"vector({value})", instant=True), defaults=defaults(unit, decimals))
        for unit, decimals, value, _ in UNITS
    ]
    with shown(chromium, server.url, board(*many)) as opened:
        found = [words(opened, f"{unit} {value}") for unit, _, value, _ in UNITS]
    assert found == [[written] for *_, written in UNITS]


def defaults(unit: str, decimals: int | None) -> dict[str, Any]:
    return {"unit": unit} | ({} if decimals is None else {"decimals": decimals})


def test_thresholds_and_mappings_speak_and_colour(chromium: Any, server: p.Prometheus) -> None:
    """A value gets the colour of the step that it reaches, a mapped one its word and colour."""
    steps = [{"value": None, "color": "#ff0000"}, {"value": 0.5, "color": "#00ff00"}]
    words_of = [{"type": "value", "options": {"0": {"text": "under", "color": "#0000ff"}}}]
    coloured = {"thresholds": {"mode": "absolute", "steps": steps}}
    many = board(
        panel("stat", "Low", target("vector(0.4)", instant=True), defaults=coloured),
        panel("stat", "High", target("vector(0.5)", instant=True), defaults=coloured),
        panel("stat", "Word", target("vector(0)", instant=True), defaults={**coloured, "mappings": words_of}),
    )
    with shown(chromium, server.url, many) as opened:
        values = opened.page.locator(".value")
        found = [
            (values.nth(at).inner_text(), values.nth(at).evaluate("one => getComputedStyle(one).color"))
            for at in range(3)
        ]
    assert found == [("0.4", "rgb(255, 0, 0)"), ("0.5", "rgb(0, 255, 0)"), ("under", "rgb(0, 0, 255)")]


def test_questions_are_as_fine_as_grafanas(chromium: Any, server: p.Prometheus) -> None:
    """Step, `$__interval`, `$__rate_interval` and `$__range` of an hour in a panel of some 770 pixels, scraped every
    60 s; times are whole steps."""
    one = panel(
        "timeseries", "Line", target("rate(t_total[$__rate_interval]) + 0 * count_over_time(t_total[$__interval])")
    )
    two = panel("stat", "Range", target("increase(t_total[$__range])", instant=True))
    with shown(chromium, server.url, board(one, two)) as opened:
        asked = [*questions(opened, "query_range"), *questions(opened, "query")]
    assert asked == [
        {
            "query": "rate(t_total[240s]) + 0 * count_over_time(t_total[60s])",
            "start": str(FROM),
            "end": str(TO),
            "step": "60",
        },
        {"query": "increase(t_total[3600s])", "time": str(TO)},
    ]


@pytest.mark.parametrize(("hours", "step", "rate"), [(6, 60, 240), (24, 120, 240), (24 * 7, 900, 960)])
def test_longer_ranges_are_asked_more_coarsely(
    hours: int, step: int, rate: int, chromium: Any, server: p.Prometheus
) -> None:
    """The steps of Grafana's own table; a rate looks at one step and one scrape, and four scrapes at least."""
    one = panel("timeseries", "Line", target("rate(t_total[$__rate_interval])"))
    query = f"?from={(TO - hours * 3600) * 1000}&to={TO * 1000}"
    with shown(chromium, server.url, board(one), query=query) as opened:
        asked = questions(opened, "query_range")[0]
    assert (asked["step"], asked["query"]) == (str(step), f"rate(t_total[{rate}s])")


def test_a_wrong_query_leaves_the_others_alone(chromium: Any, server: p.Prometheus) -> None:
    """The panel says what Prometheus says; what else is there is drawn."""
    bad = panel("stat", "Bad", target("sum(", instant=True))
    with shown(chromium, server.url, board(bad, STAT)) as opened:
        assert words(opened, "Bad")[-1].startswith("invalid parameter")
        assert (states(opened), words(opened, "Sum")) == (["error", "ok"], ["64.8K"])
        assert opened.page.locator("#status").inner_text().endswith("1 of 2 panels with errors")


def test_an_unknown_kind_is_said_so(chromium: Any, server: p.Prometheus) -> None:
    """What the page cannot draw it names, instead of leaving a hole."""
    odd = panel("heatmap", "Odd", target("t_total"))
    change = {**TABLE, "title": "Changed", "transformations": [{"id": "calculateField", "options": {}}]}
    with shown(chromium, server.url, board(odd, change)) as opened:
        assert words(opened, "Odd")[-1] == "This page does not draw panels of the kind heatmap."
        assert words(opened, "Changed")[-1] == "This page does not know the transformation calculateField."


def test_without_a_prometheus_the_page_says_what_to_do(chromium: Any) -> None:
    """Nothing is drawn, and the page says why and how to go on."""
    with shown(chromium, NOBODY, KINDS) as opened:
        banner = opened.page.get_by_role("alert").first.inner_text()
        assert banner == (
            f"No Prometheus answers at {NOBODY}: start one (`prometheus --config.file=prometheus.yml`), or name "
            "another with --prometheus URL."
        )
        assert states(opened) == ["error"] * 4 + ["ok"]
        assert [words(opened, name)[-1] for name in ("Sum", "Lines", "Bars", "Rows")] == ["No answer"] * 4


def test_an_empty_prometheus_is_no_error(chromium: Any, server: p.Prometheus) -> None:
    """A range without data says so, once for all and in each panel."""
    query = f"?from={(FROM - 9000) * 1000}&to={(FROM - 6000) * 1000}"
    with shown(chromium, server.url, board(STAT, GRAPH), query=query) as opened:
        assert states(opened) == ["empty", "empty"]
        assert opened.page.get_by_role("alert").first.inner_text().startswith("No panel has anything in this range.")
        assert opened.errors == []


def test_what_a_reader_of_screens_gets(chromium: Any, server: p.Prometheus) -> None:
    """Landmarks and headings lead through the page; every panel has its name, every graph its lines in words and its
    values as a table."""
    row = {
        "type": "row",
        "title": "Lines and rows",
        "gridPos": {"x": 0, "y": 9, "w": 24, "h": 1},
        "id": 90,
        "panels": [],
    }
    lines = {**GRAPH, "gridPos": {"x": 0, "y": 10, "w": 12, "h": 8}}
    top = {**STAT, "gridPos": {"x": 0, "y": 0, "w": 12, "h": 8}, "description": "All tokens."}
    with shown(chromium, server.url, board(top, row, lines, templating={"list": [AGENT]})) as opened:
        heads = opened.page.get_by_role("heading")
        found = [
            (heads.nth(at).evaluate("one => one.tagName"), heads.nth(at).inner_text()) for at in range(heads.count())
        ]
        assert found == [("H1", "Board"), ("H3", "Sum"), ("H2", "Lines and rows"), ("H3", "Lines")]
        assert opened.page.get_by_role("region", name="Sum").inner_text().split() == ["Sum", "i", "64.8K"]
        graph = opened.page.get_by_role("group", name="2 lines.")
        assert graph.get_attribute("aria-label") == (
            "2 lines. coder: mean 10, last 10; research: mean 5, last 5. Arrow keys read values."
        )
        assert "navigation" in opened.spoken() and "main" in opened.spoken()
        opened.page.get_by_role("button", name="Values of Lines as a table").click()
        values = opened.page.get_by_role("group", name="Lines, values").get_by_role("row")
        assert values.nth(0).inner_text().split("\t") == ["Time", "coder", "research"]
        assert values.nth(1).inner_text().split("\t") == ["2026-01-01 10:00:00", "10", "5"]


def test_a_graph_is_read_by_arrow_keys(chromium: Any, server: p.Prometheus) -> None:
    """Each step is told: the time and the value of each line."""
    with shown(chromium, server.url, board(GRAPH)) as opened:
        opened.page.get_by_role("group", name="2 lines.").focus()
        told = opened.page.get_by_role("status")
        found = [(opened.page.keyboard.press(key), told.inner_text())[1] for key in ("End", "ArrowLeft", "Home")]
    assert found[:2] == [
        "2026-01-01 10:00:00; coder 10; research 5",
        "2026-01-01 09:59:00; coder 10; research 5",
    ]
    assert found[2].startswith("2026-01-01 09:00:00; coder")


def test_everything_is_reached_by_tab(chromium: Any, server: p.Prometheus) -> None:
    """Past everything to the panels, boards, variables, time, refresh, then each panel; always visibly."""
    reached = []
    with shown(chromium, server.url, KINDS, board(uid="other", title="Other")) as opened:
        opened.page.evaluate("document.activeElement.blur()")
        for _ in range(30):
            opened.page.keyboard.press("Tab")
            if opened.page.evaluate("document.activeElement === document.body"):
                break
            reached.append(
                opened.page.evaluate(
                    """() => { const one = document.activeElement;
                    const seen = getComputedStyle(one).outlineStyle !== 'none';
                    return [one.getAttribute('aria-label') || one.textContent.trim() || one.value, seen]; }"""
                )
            )
    names = [name for name, _ in reached]
    first = ["Skip to the panels", "Board", "Other", "Agent: All"]
    assert names[:4] == first
    wanted = [
        "2026-01-01 09:00 to 10:00",
        "Zoom out (z)",
        "Refresh (r)",
        "Refresh every",
        "Light theme (d)",
        "Keyboard (?)",
    ]
    assert names[5:11] == wanted
    assert {"Values of Lines as a table", "Bars, bars", "Rows, table", "Agent", "Rate▼", "coder", "Words"} <= {*names}
    assert [name for name, seen in reached if not seen] == []


def test_the_skip_link_leads_to_the_panels(chromium: Any, server: p.Prometheus) -> None:
    """One key press is enough to pass the tools."""
    with shown(chromium, server.url, board(STAT)) as opened:
        opened.page.keyboard.press("Tab")
        opened.page.keyboard.press("Enter")
        assert opened.page.evaluate("document.activeElement.id") == "panels"


def test_shortcuts_act_and_can_be_switched_off(chromium: Any, server: p.Prometheus) -> None:
    """The list is the help's; with the box off, a key is only a key."""
    with shown(chromium, server.url, board(STAT), board(STAT, uid="other", title="Other")) as opened:
        opened.page.keyboard.press("2")
        settled(opened, 2)
        assert opened.page.get_by_role("heading", level=1).inner_text() == "Other"
        opened.page.keyboard.press("z")
        settled(opened, 3)
        assert f"from={(FROM - 1800) * 1000}&to={(TO + 1800) * 1000}" in opened.page.url
        opened.page.keyboard.press("?")
        opened.page.get_by_label("Shortcuts of a single key").uncheck()
        opened.page.get_by_role("button", name="Close").click()
        opened.page.keyboard.press("1")
        opened.page.wait_for_timeout(200)
        assert opened.page.get_by_role("heading", level=1).inner_text() == "Other"


def test_the_address_is_the_page(chromium: Any, server: p.Prometheus) -> None:
    """Choosing goes into the address, going back undoes it, and the address alone brings the same page."""
    one = panel("stat", "One", target('count(t_total{agent=~"$agent"}) * $floor', instant=True))
    many = board(one, templating={"list": [AGENT, FLOOR]})
    with shown(chromium, server.url, many) as opened:
        opened.page.get_by_text("Agent: All").click()
        opened.page.get_by_label("coder").check()
        settled(opened, 2)
        assert words(opened, "One") == ["0.9"]
        opened.page.get_by_label("research").check()
        settled(opened, 3)
        opened.page.keyboard.press("Escape")
        opened.page.get_by_label("Floor").select_option("0.8")
        settled(opened, 4)
        assert words(opened, "One") == ["1.6"]
        chosen = urllib.parse.parse_qsl(urllib.parse.urlsplit(opened.page.url).query)
        assert [pair for pair in chosen if pair[0].startswith("var-")] == [
            ("var-agent", "coder"),
            ("var-agent", "research"),
            ("var-floor", "0.8"),
        ]
        opened.page.reload()
        settled(opened)
        assert words(opened, "One") == ["1.6"]
        opened.page.go_back()
        settled(opened, 2)
        assert words(opened, "One") == ["1.8"]


def test_a_threshold_of_ones_own(chromium: Any, server: p.Prometheus) -> None:
    """A variable takes a value that its list lacks."""
    one = panel("stat", "One", target("vector($floor)", instant=True))
    with shown(chromium, server.url, board(one, templating={"list": [FLOOR]})) as opened:
        opened.page.get_by_label("Floor").select_option("Other …")
        opened.page.get_by_label("Floor").fill("0.42")
        opened.page.keyboard.press("Enter")
        settled(opened, 2)
        assert words(opened, "One") == ["0.42"]


def test_links_to_boards_keep_time_and_variables(chromium: Any, server: p.Prometheus) -> None:
    """By the list of boards as well as from a cell of a table."""
    other = board(STAT, uid="other", title="Other", templating={"list": [AGENT]})
    with shown(chromium, server.url, KINDS, other, query="?var-agent=coder&from=now-2h&to=now-1h&refresh=") as opened:
        opened.page.get_by_role("link", name="Other").click()
        settled(opened, 2)
        assert "board=other&from=now-2h&to=now-1h" in opened.page.url
        assert opened.page.url.endswith("&var-agent=coder")
    with shown(chromium, server.url, KINDS, other) as opened:
        opened.page.get_by_role("link", name="research").click()
        settled(opened)
        assert f"board=other&from={FROM * 1000}&to={TO * 1000}" in opened.page.url
        assert opened.page.url.endswith("&var-agent=research")


def test_a_time_of_ones_own(chromium: Any, server: p.Prometheus) -> None:
    """From and to are dates or relative; what cannot be read is said beside the fields."""
    with shown(chromium, server.url, board(STAT)) as opened:
        opened.page.keyboard.press("t")
        opened.page.keyboard.press("Enter")
        opened.page.get_by_text("2026-01-01 09:00 to 10:00").first.click()
        opened.page.get_by_label("From").fill("yesterday")
        opened.page.get_by_role("button", name="Apply").click()
        assert opened.page.locator(".wrong").first.inner_text().startswith("From lies before To, each as now-90m")
        opened.page.get_by_label("From").fill("2026-01-01 09:30")
        opened.page.get_by_role("button", name="Apply").click()
        settled(opened, 2)
        assert f"from={(FROM + 1800) * 1000}&to={TO * 1000}" in opened.page.url


def test_a_range_is_drawn_out_of_a_graph(chromium: Any, server: p.Prometheus) -> None:
    """Pulling over a graph zooms into what was pulled over."""
    with shown(chromium, server.url, board(GRAPH)) as opened:
        box = opened.page.locator(".u-over").bounding_box()
        opened.page.mouse.move(box["x"] + box["width"] / 4, box["y"] + 20)
        opened.page.mouse.down()
        opened.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20, steps=4)
        opened.page.mouse.up()
        settled(opened, 2)
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(opened.page.url).query))
    assert abs(int(asked["from"]) / 1000 - (FROM + 900)) < 30
    assert abs(int(asked["to"]) / 1000 - (FROM + 1800)) < 30


def test_refresh_asks_again_and_keeps_the_place(chromium: Any, server: p.Prometheus) -> None:
    """Every so often, without taking the focus away; a reader who asks for it is told."""
    row = target('label_replace(vector(1), "agent", "coder", "", "")', instant=True, format="table")
    with shown(
        chromium, server.url, board({**TABLE, "targets": [row, {**row, "refId": "B"}]}), query=RELATIVE
    ) as opened:
        button = opened.page.get_by_role("button", name="Rate")
        button.focus()
        settled(opened, rounds(opened) + 2)
        assert opened.page.evaluate("document.activeElement.textContent").startswith("Rate")
        opened.page.get_by_role("button", name="Refresh (r)").click()
        until(opened, lambda: opened.page.get_by_role("status").inner_text().startswith("Updated"))


def test_a_refresh_leaves_an_open_menu_alone(chromium: Any, server: p.Prometheus) -> None:
    """Who is about to choose a time goes on choosing."""
    with shown(chromium, server.url, board(STAT), query=RELATIVE) as opened:
        opened.page.keyboard.press("t")
        opened.page.keyboard.press("Tab")
        settled(opened, rounds(opened) + 2)
        assert opened.page.evaluate("document.activeElement.textContent") == "Last 5 minutes"


def test_twice_the_time_ends_now_still(chromium: Any, server: p.Prometheus) -> None:
    """Zooming out and going later never ask for the future, and stay relative where the range was."""
    with shown(chromium, server.url, board(STAT), query="?refresh=&from=now-6h&to=now") as opened:
        found = []
        for key in ("z", "]", "["):
            opened.page.keyboard.press(key)
            asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(opened.page.url).query))
            found.append((asked["from"], asked["to"]))
    assert found[:2] == [("now-12h", "now"), ("now-12h", "now")]
    assert int(found[2][1]) - int(found[2][0]) == 12 * 3600 * 1000


def test_a_closed_row_asks_when_it_is_opened(chromium: Any, server: p.Prometheus) -> None:
    """What nobody sees is not asked for."""
    inside = {"id": 7, "gridPos": {"x": 0, "y": 2, "w": 12, "h": 8}} | STAT
    row = {"type": "row", "title": "More", "collapsed": True, "panels": [inside]}
    with shown(chromium, server.url, board(row)) as opened:
        assert questions(opened, "query") == []
        opened.page.get_by_role("button", name="More").click()
        opened.page.wait_for_selector("[data-state=ok]")
        assert words(opened, "Sum") == ["64.8K"]


def test_marks_are_drawn_listed_and_switched_off(chromium: Any, server: p.Prometheus) -> None:
    """What happened stands below the panels in words; steps that follow each other are one mark."""
    mark = {
        "name": "Half",
        "enable": True,
        "expr": 't_total{agent="coder"} > 18000',
        "step": "60s",
        "titleFormat": "Half way",
        "textFormat": "{{agent}}",
    }
    with shown(chromium, server.url, board(GRAPH, annotations={"list": [mark]})) as opened:
        opened.page.get_by_text("List (1)").click()
        row = opened.page.locator(".events tbody tr").inner_text().split("\t")
        assert row == ["2026-01-01 09:31:00", "Half", "Half way", "coder"]
        opened.page.get_by_text("Marks", exact=True).click()
        opened.page.get_by_label("Half").uncheck()
        settled(opened, 2)
        assert opened.page.locator(".events").inner_text().split("\n\n") == ["Marks in this range", "None."]


@pytest.mark.parametrize(("minutes", "step"), [(5, 1), (60, 5), (24 * 60, 120)])
def test_marks_are_asked_for_as_finely_as_graphs(minutes: int, step: int, chromium: Any, server: p.Prometheus) -> None:
    """In a short range a mark stands where it happened, whatever step its board names; a long one is asked coarsely."""
    mark = {"name": "All", "enable": True, "expr": "t_total > 0", "step": "60s"}
    query = f"?from={(TO - minutes * 60) * 1000}&to={TO * 1000}"
    with shown(chromium, server.url, board(annotations={"list": [mark]}), query=query, scrape=1) as opened:
        asked = [one["step"] for one in questions(opened, "query_range") if one["query"] == "t_total > 0"]
    assert asked == [str(step)]


def test_marks_that_a_board_hides_are_switched_on(chromium: Any, server: p.Prometheus) -> None:
    """What would cover a board is not asked for until the reader wants it."""
    mark = {"name": "All", "enable": False, "expr": 't_total{agent="coder"} > 0', "titleFormat": "All the time"}
    with shown(chromium, server.url, board(GRAPH, annotations={"list": [mark]})) as opened:
        assert opened.page.locator(".events").inner_text().split("\n\n") == ["Marks in this range", "None."]
        opened.page.get_by_text("Marks", exact=True).click()
        assert not opened.page.get_by_label("All", exact=True).is_checked()
        opened.page.get_by_label("All", exact=True).check()
        settled(opened, 2)
        assert opened.page.get_by_text("List (1)").count() == 1


def test_what_is_bad_leads_the_legend(chromium: Any, server: p.Prometheus) -> None:
    """A wide graph has its legend beside it, where there is room for more lines, and a line in red is the first."""
    legend = {"displayMode": "table", "placement": "right", "showLegend": True, "calcs": ["lastNotNull"]}
    red = override("research", color={"mode": "fixed", "fixedColor": "semi-dark-red"})
    wide = {**GRAPH, "gridPos": {"x": 0, "y": 0, "w": 24, "h": 9}, "options": {"legend": legend}}
    wide["fieldConfig"] = {"defaults": {}, "overrides": [red]}
    with shown(chromium, server.url, board(wide)) as opened:
        assert words(opened, "Lines")[-6:] == ["Name", "Last", "research", "5", "coder", "10"]
        plot, beside = (opened.page.locator(one).bounding_box() for one in (".plot", ".legend"))
        assert plot["x"] + plot["width"] <= beside["x"]
        graph = opened.page.get_by_role("group", name="2 lines.")
        assert graph.get_attribute("aria-label") == "2 lines. coder: last 10; research: last 5. Arrow keys read values."


def test_exemplars_show_their_trace(chromium: Any, tmp_path: Path) -> None:
    """A dot on the graph says the trace that it came from; the table names it too."""
    p.need("prometheus")
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    text = f'# TYPE t counter\nt_total 5 # {{trace_id="{trace}"}} 3\n# EOF\n'
    kind = "application/openmetrics-text; version=1.0.0; charset=utf-8"
    one = panel("timeseries", "Line", target("t_total", legend="t", exemplar=True))
    with (
        standing(saying(200, text.encode(), content_type=kind)) as program,
        p.running(tmp_path, targets={"program": [program.host]}) as scraping,
    ):
        p.waited(lambda: scraping.get("query_exemplars", query="t_total", start=0, end=time.time()))
        scraping.until("count_over_time(t_total[1m]) > 2")
        with shown(chromium, scraping.url, board(one), query="?from=now-1m&to=now&refresh=", scrape=1) as opened:
            assert f"trace {trace}" in pointed(opened, trace).split("\n")
            opened.page.get_by_role("button", name="Values of Line as a table").click()
            assert words(opened, "Line")[-2] == "Exemplars"
            assert words(opened, "Line")[-1].endswith(f": trace {trace}")


def pointed(opened: Tab, wanted: str) -> str:
    """What the graph says under the pointer, which goes over its right end until it says what is wanted."""
    box = opened.page.locator(".u-over").bounding_box()
    for x in range(0, 60, 8):
        for y in range(0, int(box["height"]), 8):
            opened.page.mouse.move(box["x"] + box["width"] - x, box["y"] + y)
            said: str = opened.page.locator(".tip").inner_text()
            if wanted in said:
                return said
    return ""


def test_still_for_those_who_want_it_still(chromium: Any, server: p.Prometheus) -> None:
    """Where the system asks for less motion, nothing moves while it loads."""
    with shown(chromium, server.url, board(STAT), reduced_motion="reduce") as opened:
        opened.page.evaluate("document.querySelector('.panel').setAttribute('aria-busy', 'true')")
        assert (
            opened.page.evaluate("getComputedStyle(document.querySelector('.panel'), '::before').animationName")
            == "none"
        )


@pytest.mark.parametrize(("theme", "page"), [("dark", "rgb(17, 18, 23)"), ("light", "rgb(244, 245, 247)")])
def test_dark_and_light_as_the_system_asks(theme: str, page: str, chromium: Any, server: p.Prometheus) -> None:
    """And the other one at the press of a key, also next time."""
    look = "getComputedStyle(document.body).backgroundColor"
    with shown(chromium, server.url, board(GRAPH), theme=theme) as opened:
        before = opened.page.evaluate(look)
        opened.page.keyboard.press("d")
        after = opened.page.evaluate(look)
        opened.page.reload()
        settled(opened)
        assert (before, after != before, opened.page.evaluate(look)) == (page, True, after)


@pytest.mark.parametrize("width", [1600, 800])
def test_pairs_stand_side_by_side(width: int, chromium: Any, server: p.Prometheus) -> None:
    """On a wide page and on a narrow one, at one height."""
    left = {"gridPos": {"x": 0, "y": 0, "w": 4, "h": 4}}
    right = {"gridPos": {"x": 4, "y": 0, "w": 4, "h": 4}}
    with shown(chromium, server.url, board(STAT | left, STAT | right), width=width) as opened:
        one, other = (opened.page.locator(".panel").nth(at).bounding_box() for at in (0, 1))
    assert (one["y"], one["height"]) == (other["y"], other["height"])
    assert one["x"] + one["width"] < other["x"]


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[p.Prometheus]:
    """A Prometheus that holds the day on which boards and rules are tried."""
    p.need("prometheus", "promtool")
    with held(tmp_path_factory.mktemp("day"), history_of_a_day.INCIDENTS) as running:
        yield running


@pytest.mark.parametrize("uid", boards.ORDER)
def test_the_boards_that_ship_are_drawn(uid: str, chromium: Any, day: p.Prometheus) -> None:
    """Every panel of them has something to show of a day's work, and asks for nothing that the page does not know."""
    start = history_of_a_day.START
    query = f"?board={uid}&from={start * 1000}&to={(start + 16 * 3600) * 1000}&refresh="
    with shown(chromium, day.url, *boards.load(), query=query) as opened:
        empty = opened.page.locator(".panel:not([data-state=ok]) h3").all_inner_texts()
        assert (empty, opened.errors) == ([], [])


def test_a_picture_can_be_taken(chromium: Any, server: p.Prometheus, tmp_path: Path) -> None:
    """The canvas of a graph has ink on it in the colour of each of its lines."""
    with shown(chromium, server.url, board(GRAPH)) as opened:
        assert opened.picture(tmp_path / "page.png").stat().st_size > 10_000
        inked = opened.page.evaluate(
            """() => { const canvas = document.querySelector('.plot canvas');
            const ink = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
            const seen = new Set();
            for (let at = 0; at < ink.length; at += 4) seen.add(ink.slice(at, at + 3).join());
            return ['110,159,255', '230,159,0'].map((colour) => seen.has(colour)); }"""
        )
    assert inked == [True, True]
