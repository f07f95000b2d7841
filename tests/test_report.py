"""`context-ledger report`: its numbers are those of the other commands, what is unknown is shown as unknown, no figure
of reuse stands without its correctness, and nothing of a ledger file acts on the page."""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import openai
import orjson
import pytest

from otel_context_ledger import attempt, outcome, session, task
from otel_context_ledger import model as m
from otel_context_ledger.cli import checks
from otel_context_ledger.cli.report.figure import PLOT
from tests.browser import browsing, needs_browser, tab
from tests.conftest import Ledger
from tests.markup import classed, tables, text, tree
from tests.provider import Provider
from tests.test_cli import CLOCK, FAILED, FIRST, NOON, QUOTA, UNREPORTED, Run, place, run, written
from tests.test_cli_tasks import TRY_1, TRY_2, told
from tests.ways import ASK, RULES, TOOLS

__all__ = ["place", "run"]

OUT = "out.html"
CALM: dict[str, Any] = {
    **CLOCK, "input_tokens": 60_000, "cached_tokens": 59_000, "cache_miss_tokens": 1_000, "avoidable_tokens": 0,
    "cache_outcome": "hit", "miss_cause": None, "miss_detail": (), "miss_secondary": (), "miss_position": None,
    "miss_evidence": (), "miss_confidence": None, "miss_significant": None, "identity_changed": (),
    "cost_avoidable": 0.0,
}  # fmt: skip
RIGHT = {"policy_check": "consistent", "repo_check": "fresh", "tools_check": "consistent", "state_check": "compatible"}
HELD = {**CALM, **RIGHT, "constraints_check": "held"}
LOST = {**HELD, "constraints_check": "lost", "constraints": m.Findings(evidence=("lost=C1:none:0.40",))}


def page(run: Run, *options: str, out: str = OUT) -> Element:
    """The page of the ledger in this directory."""
    assert run("report", *options, "--html", out)[0] == 0
    return tree(Path(out).read_text("utf-8"))


def numbered(*calls: dict[str, Any], first: int = 1) -> list[dict[str, Any]]:
    """Calls with ids and times of their own, a minute apart."""
    return [
        {**call, "entry_id": f"{at:04x}", "started_at": NOON + 60 * at} for at, call in enumerate(calls, first)
    ]  # fmt: skip


def ledger_of(*calls: dict[str, Any]) -> Path:
    return written(Path("ledger.jsonl"), *numbered(*calls))


def boxes(root: Element, *names: str) -> list[tuple[float, float, float, float]]:
    """The boxes (x, y, width, height) that are drawn with these classes."""
    form = re.compile(r"M([\d.-]+) ([\d.-]+)h([\d.-]+)v([\d.-]+)h-[\d.]+z")
    shapes = [one.get("d", "") for svg in classed(root, "timeline") for one in classed(svg, *names)]
    return [tuple(map(float, found)) for shape in shapes for found in form.findall(shape)]  # type: ignore[misc]


# Numbers


@pytest.fixture
def real(ledger: Ledger, provider: Provider) -> Path:
    """A ledger as the SDK and a provider made it: a task with two attempts, a clock in the system part, an answer that
    was not read to its end."""
    client = openai.OpenAI(base_url=f"{provider.url}/kimi/v1", api_key="test-key", max_retries=0)

    def ask(rules: str, turns: int, **more: Any) -> Any:
        messages: Any = [{"role": "system", "content": rules}, *[ASK] * turns]
        return client.chat.completions.create(model="kimi-k3", messages=messages, tools=TOOLS, **more)  # type: ignore[call-overload]

    with task("T-1"):
        with attempt("1"), session("one"):
            for second, turns in enumerate((30, 40, 41)):
                ask(f"It is 2026-11-30 12:00:0{second}.\n{RULES}", turns)
            outcome(tests="failed")
        with attempt("2"), session("two"):
            ask(RULES, 5)
            ask(RULES, 6, stream=True).close()
            ask(RULES, 7)
            outcome(tests="passed")
    ledger.lines()
    return ledger.file


def asked(run: Run, *options: str) -> Any:
    """What another command says, for programs."""
    return orjson.loads(run(*options, "--json")[1])


def test_the_headline_is_that_of_show_and_tasks(run: Run, real: Path) -> None:
    """Share, counts and cost per success on the page are the totals of `show` and `tasks`."""
    head = classed(page(run, str(real)), "pair")
    sums, books = asked(run, "show", "--file", str(real))["totals"], asked(run, "tasks", "--file", str(real))["totals"]
    read, cost = text(head[0]), text(head[2])
    assert f"{sums['cached']:,} of {sums['input_measured']:,} input tokens, 5 calls; 1 unknown" in read
    assert f"{100 * sums['cached_share']:.0f} %" in read
    assert f"≥ ${sums['dollars']:.4f}" in cost
    assert f"≥ ${books['cost_per_success']:.4f}successful: 1 of 1 task" in cost


def test_sessions_and_tasks_are_those_of_the_other_commands(run: Run, real: Path) -> None:
    """The row of a session has the totals of `show --session`, the table of tasks is the one that `tasks` prints."""
    found = tables(page(run, str(real)))
    for name, _, calls, input_, read, _, _, cost in found["Sessions"][1:]:
        sums = asked(run, "show", "--file", str(real), "--session", name)["totals"]
        shown = (f"{sums['calls']}", f"{sums['input']:,}", f"{100 * sums['cached_share']:.0f} %")
        assert (calls, input_, read) == shown
        assert cost.removeprefix("≥ ") == f"${sums['dollars']:.4f}"
    printed = run("tasks", "--file", str(real))[1].split("\n\n")[0].splitlines()[1:]
    rows = found["What tasks cost, with their attempts; failed ones are counted in"][1:]
    assert [" ".join(" ".join(row).split()) for row in rows] == [" ".join(row.split()) for row in printed]


def test_a_timeline_has_the_calls_of_show(run: Run, real: Path) -> None:
    """The table beside a timeline has for each call the numbers, cause and verdicts of its row in `show`."""
    found = tables(page(run, str(real)))
    for name in ("one", "two"):
        head, *rows = found[f"The timeline of session {name} as a table; tokens are sums"]
        calls = asked(run, "show", "--file", str(real), "--session", name)["calls"]
        assert [dict(zip(head, row, strict=True))["id"] for row in rows] == [call["entry_id"] for call in calls]
        for row, call in zip(rows, calls, strict=True):
            cells = dict(zip(head, row, strict=True))
            assert cells["cache read"] == ("?" if call["cached_tokens"] is None else f"{call['cached_tokens']:,}")
            assert cells["cause"].startswith(call["miss_cause"] or "")
            assert [cells[pillar].rpartition(": ")[2] for pillar in checks.ORDER] == [
                call[field] or "not asked" for field in checks.CHECKS
            ]


def test_the_worst_calls_are_explained_as_explain_does(run: Run, real: Path) -> None:
    """Each of the calls with the most avoidable tokens has every sentence of `explain`, and its checks."""
    root = page(run, str(real))
    document = asked(run, "report", str(real))
    assert [call["miss_cause"] for call in document["worst"]] == ["volatile_prefix", "volatile_prefix"]
    for call, shown in zip(document["worst"], classed(root, "call"), strict=True):
        told_ = asked(run, "explain", call["entry_id"], "--file", str(real))["explanation"]
        assert call["explanation"] == told_
        assert [one["text"] for one in told_ if one["text"] not in text(shown)] == []


def test_the_order_of_the_worst(run: Run) -> None:
    """The ten with the most avoidable tokens, the most first; a call that missed nothing avoidable is none of them."""
    ledger_of(*({**CLOCK, "avoidable_tokens": 100 * at} for at in (3, 0, 12, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11)))
    assert [call["avoidable_tokens"] for call in asked(run, "report")["worst"]] == [
        1200, 1100, 1000, 900, 800, 700, 600, 500, 400, 300,
    ]  # fmt: skip


def test_several_ledgers_on_one_page(run: Run) -> None:
    """Calls of several files are added up as if they stood in one; a call that is in both counts once."""
    one, two = (
        written(Path("one.jsonl"), *numbered(CLOCK, HELD)),
        written(Path("two.jsonl"), *numbered(HELD, LOST, first=2)),
    )
    document = asked(run, "report", str(one), str(two))
    assert (document["files"], document["totals"]["calls"]) == (["one.jsonl", "two.jsonl"], 3)
    assert "3 calls in 1 session" in text(page(run, str(one), str(two)))


@pytest.mark.parametrize(
    ("options", "calls", "told_"),
    [
        (("--session", "s-tw"), 1, "only session s-tw"),
        (("--task", "TASK-8421"), 2, "only task TASK-8421"),
        (("--since", "2026-11-03T12:00:30"), 2, "only since 2026-11-03T12:00:30"),
    ],
)
def test_some_calls_alone(run: Run, options: tuple[str, ...], calls: int, told_: str) -> None:
    """A session, a task or the calls since some time; the page says which were asked for."""
    written(Path("ledger.jsonl"), TRY_1, TRY_2, UNREPORTED, QUOTA)
    root = page(run, *options)
    assert (asked(run, "report", *options)["totals"]["calls"], told_ in text(root)) == (calls, True)


def test_what_was_cut_is_said(run: Run) -> None:
    """Where only some calls of a task were chosen, its sums are said to leave some out."""
    written(Path("ledger.jsonl"), TRY_1, TRY_2)
    (cut,) = [told_ for told_ in asked(run, "report", "--session", "s-1")["unknown"] if "were chosen" in told_]
    assert cut.startswith("tasks and sessions: 1 have more calls than were chosen here")


# Pairs


def test_no_figure_of_reuse_stands_alone(run: Run) -> None:
    """Each table with a share that was read, or with cached tokens, has the checks in the same row; each headline has
    its partner, each timeline its strip."""
    ledger_of(CLOCK, HELD, LOST, UNREPORTED)
    root = page(run)
    heads = [head for head, *_ in tables(root).values()]
    reuse = [head for head in heads if not {"read", "cached", "cache read"}.isdisjoint(head)]
    assert len(reuse) >= 4
    assert [head for head in reuse if not {"checks", "check", *checks.ORDER} & set(head)] == []
    assert [len(list(pair)) for pair in classed(root, "pair")] == [2, 2, 2]
    pictures = classed(root, "timeline")
    assert pictures and all(classed(picture, "check") for picture in pictures)


def test_the_strip_stands_under_its_calls(run: Run) -> None:
    """Bars and cells of one call begin at the same x and are as wide, in every row of the strip."""
    ledger_of(HELD, LOST, {**HELD, "repo_check": "unknown"}, {**HELD, "tools_check": "drift"})
    root = page(run)
    bars = [box[::2] for box in boxes(root, "cache_read")]
    cells = boxes(root, "check")
    rows = sorted({round(y + height) for _, y, _, height in cells})
    assert (len(bars), len(cells), len(rows)) == (4, 20, 5)
    assert [sorted(box[::2] for box in cells if round(box[1] + box[3]) == row) for row in rows] == [bars] * 5


def test_right_wrong_and_unjudged_differ_in_shape(run: Run) -> None:
    """Colour is never alone: right is a low bar, wrong a whole cell with a cross, unjudged a frame, not asked a dot."""
    ledger_of(HELD, LOST, {**HELD, "constraints_check": "uncertain"}, {**HELD, "constraints_check": None})
    root = page(run)
    high = {name: {box[3] for box in boxes(root, "check", name)} for name in ("right", "wrong", "unjudged", "unasked")}
    assert high == {"right": {6.0}, "wrong": {12.0}, "unjudged": {12.0}, "unasked": {1.6}}
    assert len(classed(root, "crossed")) == 1


# What is unknown


def test_unknown_is_hatched_and_never_zero(run: Run) -> None:
    """Input of which nobody said what was reused is one hatched bar; a call of unknown input is hatched up to the top,
    and neither is a number in the table."""
    ledger_of(*({**call, "session_id": "s"} for call in (CALM, UNREPORTED, FAILED)))
    root = page(run)
    assert (len(boxes(root, "cache_read")), len(boxes(root, "unreported"))) == (1, 1)
    assert [box[3] for box in boxes(root, "unsized")] == [PLOT]
    head, _, unreported, failed = tables(root)["The timeline of session s as a table; tokens are sums"]
    at = head.index("cache read")
    assert unreported[at : at + 6] == ["?", "?", "?", "1,000", "", "?"]
    assert failed[at : at + 6] == ["?", "?", "?", "?", "yes", "?"]


@pytest.mark.parametrize(
    ("calls", "ticks"),
    [
        ([FAILED], ["0"]),
        ([{**CALM, "input_tokens": 3, "cached_tokens": 3}], ["0", "1.5", "3"]),
        ([CALM], ["0", "30k", "60k"]),
        ([{**CALM, "input_tokens": 1_200_000}], ["0", "750k", "1.5M"]),
    ],
)
def test_the_scale(run: Run, calls: list[dict[str, Any]], ticks: list[str]) -> None:
    """The lines of the scale are said as what they are; where no input is known, there is none but zero."""
    ledger_of(*calls)
    (picture,) = classed(page(run), "timeline")
    left = [text(one) for one in picture.iter("text") if one.get("text-anchor") == "end"]
    assert left[: len(left) - 8] == ticks


def test_what_could_not_be_known_is_said(run: Run) -> None:
    """How many calls, of what, and why."""
    unread = {**HELD, "repo_check": "unknown", "repository": m.Findings(evidence=("reason=nothing_read",))}
    ledger_of(HELD, UNREPORTED, FAILED, QUOTA, unread)
    Path("ledger.jsonl").write_bytes(Path("ledger.jsonl").read_bytes() + b"{torn")
    said = asked(run, "report")["unknown"]
    assert said == [
        "input tokens: unknown in 1 call: failed: APIConnectionError (1)",
        "what was reused: unknown in 2 calls: the provider did not report it (1), failed: APIConnectionError (1)",
        "what could have been reused: unknown in 1 call: no cause recorded (1)",
        "cost: unknown in 2 calls: no price is known for this model; set one in [prices] of context-ledger.toml (1), "
        "no usage was reported (1)",
        "repository check: unknown in 1 call: no read of a file was recognised in the history ([reads] in "
        "context-ledger.toml names other tools; read(path) says it from the program) (1)",
        "not checked: policy, repository, tools, constraints, state of 3 calls",
        "task: 5 calls for which none was named",
        "left out: 1 line that cannot be read; `context-ledger verify` says which",
    ]
    assert [line_ for line_ in said if line_ not in text(page(run))] == []


def test_counts_that_contradict_each_other_are_not_divided(run: Run) -> None:
    """More read than sent: the whole input is unreported, and nothing is clamped."""
    ledger_of({**CALM, "input_tokens": 100, "cached_tokens": 400})
    head, row = tables(page(run))["The timeline of session s-one as a table; tokens are sums"]
    assert dict(zip(head, row, strict=True))["unreported"] == "100"
    assert (boxes(page(run), "cache_read"), len(boxes(page(run), "unreported"))) == ([], 1)


def test_no_check_is_no_proof(run: Run) -> None:
    """Where nothing was checked, the partners of reuse are unknown and say so."""
    ledger_of(CLOCK)
    root = page(run)
    partners = [text(one) for one in classed(root, "partner")]
    assert partners[:2] == [
        "Constraint recall?no constraint was declared; reuse does not show that the context was right.",
        "Wrong context?no check could judge a call; reuse does not show that the context was right.",
    ]


# Marks


def test_misses_compactions_and_identity_changes_are_marked(run: Run) -> None:
    """A miss has its cause's letter, the second of two alike as well, a significant one is filled; a compaction stands
    before the first call that built on it, one that lost something is filled; a change of identity is marked."""
    event = {"compaction_event": "c-1", "outcome": "done", "kind": "full", "validator_result": "fail", "lost": ["C1"]}
    path = ledger_of(FIRST, {**HELD, "identity_changed": ("summary",), "compaction_event": "c-1"}, CLOCK, CLOCK)
    more = {"kind": "compaction", "task": {"session_id": "s-one"}, "compaction": event}
    path.write_bytes(path.read_bytes() + orjson.dumps(more) + b"\n")
    root = page(run)
    (picture,) = classed(root, "timeline")
    counted = {name: len(classed(picture, name)) for name in ("miss", "slight", "lossy", "compaction", "changed")}
    assert counted == {"miss": 2, "slight": 1, "lossy": 1, "compaction": 0, "changed": 3}
    letters = [text(one) for one in picture.iter("text") if one.get("text-anchor") == "middle"]
    assert [letter for letter in letters if not letter.isdigit()] == ["B", "A", "A"]
    assert "Misses: A volatile_prefix, B cold_start. Compaction c-1 (full, done): ? to ? tokens, lost C1." in text(root)


def test_side_calls_are_told_apart(run: Run) -> None:
    """A call that summarises has a context of its own: a ring and its kind, so that it is not taken for a miss."""
    ledger_of(HELD, {**CALM, "request_kind": "compaction", "cached_tokens": 0})
    root = page(run)
    head, *rows = tables(root)["The timeline of session s-one as a table; tokens are sums"]
    assert [row[head.index("side call")] for row in rows] == ["", "compaction"]
    assert len([one for svg in classed(root, "timeline") for one in classed(svg, "side")]) == 1


# Sizes


def test_a_long_session_is_binned_and_says_so(run: Run) -> None:
    """Of 1,000 calls each column stands for seven; sums of its rows are those of the session, and one wrong call among
    seven is seen."""
    ledger_of(*[HELD] * 700, LOST, *[HELD] * 299)
    root = page(run)
    head, *rows = tables(root)["The timeline of session s-one as a table; tokens are sums"]
    assert (len(rows), rows[0][0], rows[-1][0]) == (143, "1 to 7", "995 to 1000")
    assert sum(int(row[head.index("cache read")].replace(",", "")) for row in rows) == 1000 * 59_000
    assert "Each column stands for 7 consecutive calls: heights are tokens of a call on average" in text(root)
    assert [box[3] for box in boxes(root, "check", "wrong")] == [3.0]
    assert len({round(box[3], 1) for box in boxes(root, "cache_read")}) == 1


def test_many_sessions_are_left_out_with_a_sentence(run: Run) -> None:
    """Of 300 sessions those with the most at stake are shown; the page says how many are not, lists 200 of them, and
    says how to see them."""
    calls = [{**(LOST if at == 250 else HELD), "session_id": f"s-{at}"} for at in range(300)]
    ledger_of(*calls, {**CLOCK, "session_id": "s-40"})
    root = page(run)
    assert len(classed(root, "timeline")) == 12
    shown = [row[0] for row in tables(root)["Sessions"][1:]]
    assert shown == ["s-250", "s-40", *(f"s-{at}" for at in range(299, 289, -1))]
    assert "Left out: 288 sessions more, without a timeline here. To see one of them: " in text(root)
    assert len(tables(root)["Sessions without a timeline here"]) == 201
    assert len(classed(page(run, "--limit-sessions", "2"), "timeline")) == 2
    assert len(Path(OUT).read_bytes()) < 2**20


def test_words_without_end(run: Run) -> None:
    """A file with any number of tasks, causes and verdicts gives tables of bounded length."""
    ledger_of(
        *({**HELD, "miss_cause": f"cause-{at}", "state_check": f"odd-{at}", "task_id": f"T-{at}"} for at in range(300))
    )
    found = tables(page(run))
    assert max(len(rows) for name, rows in found.items() if "timeline" not in name) <= 62
    assert "left out: 288 tasks; the dearest tasks are shown" in Path(OUT).read_text("utf-8")


# What a ledger line cannot do


HOSTILE = "</title><script>alert(1)</script>\"'><img src=http://x.example onerror=a>&amp;"


def test_everything_is_escaped(run: Run) -> None:
    """Ids, names of tools, models, tasks and errors that hold markup are text and nothing else."""
    call = {
        **CLOCK, "session_id": HOSTILE, "task_id": HOSTILE, "attempt_id": HOSTILE, "model_id": HOSTILE,
        "miss_position": m.Position("tool", 0, HOSTILE, 1, "text"), "miss_cause": HOSTILE, "constraints_check": HOSTILE,
        "error_type": HOSTILE, "provider_verdict": HOSTILE, "identity_changed": (HOSTILE,), "advice": (HOSTILE,),
        "miss_evidence": (HOSTILE,), "compaction_event": HOSTILE,
    }  # fmt: skip
    ledger_of(CLOCK)
    calm = {one.tag for one in page(run).iter()}
    ledger_of(call, {**call, "constraints_check": "held"})
    root = page(run, "--session", HOSTILE)
    assert {one.tag for one in root.iter()} - calm - {"details", "summary", "article", "a"} == set()
    assert {name for one in root.iter() for name in one.keys() if name.startswith("on")} == set()  # noqa: SIM118
    assert HOSTILE in [row[0] for row in tables(root)["Sessions"]]


def test_characters_that_turn_text_are_replaced(run: Run) -> None:
    """Control and direction characters of a value act on no page."""
    ledger_of({**CLOCK, "session_id": "a\u202eb\u0007c"})
    assert "Session a\ufffdb\ufffdc" in text(page(run))
    assert not {*"\u202e\u0007"} & {*Path(OUT).read_text("utf-8")}


def test_the_page_needs_and_runs_nothing(run: Run) -> None:
    """No script, no address, no style but the one inside, which the policy names by its digest."""
    ledger_of(CLOCK, LOST)
    root = page(run)
    raw = Path(OUT).read_text("utf-8")
    (style,) = root.iter("style")
    digest = base64.b64encode(hashlib.sha256(text(style).encode()).digest()).decode()
    (policy,) = [one.get("content") for one in root.iter("meta") if one.get("http-equiv")]
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    assert (re.findall(r"https?:|<script|style=|javascript:|url\((?!#)", raw), [*root.iter("script")]) == ([], [])
    leads = {one.get("href") for one in root.iter("a")}
    assert leads - {f"#{one.get('id')}" for one in root.iter() if one.get("id")} == set()


def test_every_timeline_has_a_table_and_a_name(run: Run) -> None:
    """For who does not see the picture: a title, a caption, and the same as a table; headings in order."""
    ledger_of(CLOCK, HELD, {**LOST, "session_id": None})
    root = page(run)
    figures = list(root.iter("figure"))
    assert len(figures) == 2
    for one in figures:
        (picture,) = classed(one, "timeline")
        assert picture.get("role") == "img"
        assert picture.get("aria-labelledby") in {title.get("id") for title in picture.iter("title")}
        assert [len(list(one.iter(tag))) for tag in ("figcaption", "table", "caption")] == [1, 1, 1]
    levels = [int(one.tag[1]) for one in root.iter() if re.fullmatch("h[1-6]", one.tag)]
    assert (levels[0], max(after - before for before, after in pairwise(levels))) == (1, 1)


def _luminance(colour: str) -> float:
    long = "".join(2 * digit for digit in colour) if len(colour) == 3 else colour
    parts = [int(long[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_text_can_be_read(run: Run, theme: str) -> None:
    """WCAG's contrast of 4.5 for text, and of 3 for what is drawn, on both backgrounds of each theme."""
    ledger_of(CLOCK)
    (style,) = page(run).iter("style")
    blocks = re.findall(r":root \{(.*?)\}", text(style), re.S)
    colours = dict(re.findall(r"--(\w+): #(\w+)", blocks[["light", "dark", "print"].index(theme)]))
    light = {name: _luminance(colour) for name, colour in colours.items()}

    def contrast(name: str) -> float:
        pairs = [sorted((light[name], light[ground])) for ground in ("page", "panel")]
        return min((high + 0.05) / (low + 0.05) for low, high in pairs)

    texts, drawn = ("text", "soft", "read", "wrong", "miss", "right"), ("unknown", "event")
    assert {name: contrast(name) for name in texts if contrast(name) < 4.5} == {}
    assert {name: contrast(name) for name in drawn if contrast(name) < 3} == {}


# Where it goes


def test_the_page_says_where_it_is(run: Run) -> None:
    """One line on stdout; for programs the document, with the file."""
    ledger_of(CLOCK)
    code, out, err = run("report", "--html", OUT)
    assert (code, err) == (0, "")
    assert re.fullmatch(
        r"The report of 1 call in 1 session is in out\.html \([\d.]+ KB\); open it in a browser\.\n", out
    )
    assert (asked(run, "report", "--html", OUT)["written"], Path(OUT).stat().st_mode & 0o777) == (OUT, 0o600)


def test_the_page_on_stdout(run: Run) -> None:
    """`--html -` prints the page that a file would hold, but for the time at which it was made, and nothing else."""

    def timeless(root: Element) -> str:
        return re.sub(r"Made [\d: -]+", "", text(root))

    ledger_of(CLOCK)
    code, out, err = run("report", "--html", "-")
    assert (code, err, [path.name for path in Path().iterdir()]) == (0, "", ["ledger.jsonl"])
    assert out.startswith('<!doctype html>\n<html lang="en">')
    assert timeless(tree(out)) == timeless(page(run))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("x.jsonl",), "There is no ledger file x.jsonl."),
        (("--file", "x.jsonl"), "There is no ledger file x.jsonl; name one with --file or CONTEXT_LEDGER_FILE."),
        (("empty.jsonl",), "empty.jsonl is empty: no call has been recorded yet."),
        (("notes.txt",), "notes.txt is no ledger file: 1 line, and none of them is a ledger line."),
        (("ledger.jsonl", "notes.txt"), "notes.txt is no ledger file: 1 line, and none of them is a ledger line."),
        (("ledger.jsonl", "--file", "y"), "The ledger file is named twice: say it once, with or without --file."),
        (("--html", "-", "--json"), "--html - and --json both want the output: say one of them."),
        (("--html", "folder"), "folder cannot be written: Is a directory."),
        (("--html", "no/out.html"), "no/out.html cannot be written: No such file or directory."),
        (("--html", "./ledger.jsonl"), "ledger.jsonl is the ledger file itself: name another file for the page."),
        (("--html", "/dev/full"), "/dev/full cannot be written: No space left on device."),
        (("--session", "x"), "There is no session 'x' in ledger.jsonl."),
        (("--task", "x"), "There is no task 'x' in ledger.jsonl."),
        (("--since", "soon"), "'soon' is no time: say 2h, 7d, 2026-11-30 or 2026-11-30T14:00."),
    ],
)
def test_what_cannot_be_done_is_a_sentence(run: Run, options: tuple[str, ...], sentence: str) -> None:
    """Exit code 2 and one line on stderr; the ledger is as it was, and nothing new is there."""
    before = ledger_of(CLOCK).read_bytes()
    Path("empty.jsonl").touch()
    Path("notes.txt").write_text("hello\n")
    Path("folder").mkdir()
    assert run("report", *options) == (2, "", f"context-ledger: {sentence}\n")
    assert Path("ledger.jsonl").read_bytes() == before
    assert {path.name for path in Path().iterdir()} == {"empty.jsonl", "folder", "ledger.jsonl", "notes.txt"}


def test_a_page_is_written_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    """Where the disk ends in the middle of it, the page of before stays, and nothing is left beside it."""
    ledger_of(CLOCK)
    Path(OUT).write_text("the page of before")
    program = (
        "import resource, sys; from otel_context_ledger.cli import main; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); sys.exit(main(['report', '--html', 'out.html']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "context-ledger: out.html cannot be written: File too large.\n")
    assert Path(OUT).read_text() == "the page of before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger.jsonl", OUT]


def test_a_link_stays_a_link(run: Run) -> None:
    """A page is written to what a link leads to."""
    ledger_of(CLOCK)
    Path("real.html").touch()
    Path(OUT).symlink_to("real.html")
    page(run)
    assert (Path(OUT).is_symlink(), Path("real.html").read_text("utf-8")[:9]) == (True, "<!doctype")


@pytest.mark.parametrize(
    ("calls", "sentence"),
    [
        ([HELD], "0 % of the cost was avoidable; no wrong context was found in the 1 call that a check could judge."),
        ([CLOCK, LOST], "{share} of the cost was avoidable; 1 call had a wrong context."),
        ([{**HELD, "cost_avoidable": None}, CLOCK], "At least {share} of the cost was avoidable; no wrong context was "
         "found in the 1 call that a check could judge."),
        ([{**QUOTA, "avoidable_tokens": 12}], "Avoidable: {missed} not reused; no check could judge whether a context "
         "was right."),
        ([FAILED], "What was avoidable is unknown; no check could judge whether a context was right."),
    ],
)  # fmt: skip
def test_it_begins_with_a_verdict(run: Run, calls: list[dict[str, Any]], sentence: str) -> None:
    """The first sentence, on the page and in text, is what was avoidable and how many contexts were wrong; a part that
    is not known makes it the least that it can be, and without dollars it is tokens."""
    ledger_of(*calls)
    sums = asked(run, "report")
    paid, lost = sums["totals"]["dollars"], [cause["cost_avoidable"] for cause in sums["causes"]]
    told_ = sentence.format(
        share=f"{100 * sum(filter(None, lost)) / paid:.0f} %" if paid else "",
        missed=f"{sums['sessions'][0]['avoidable_tokens'] or 0:,} tokens",
    )
    assert (run("report")[1].splitlines()[0], sums["verdict"]) == (told_, told_)
    assert [text(one) for one in classed(page(run), "verdict")] == [told_]


def test_symptoms_stand_first_and_open(run: Run) -> None:
    """What was found wrong comes before all tables, with its evidence; a question that asks which is answered so."""
    ledger_of(FIRST, CLOCK, LOST)
    root = page(run)
    first = next(one for one in root.iter("section"))
    assert [text(one) for one in first.iter("h2")] == ["Symptoms that were found"]
    shut = [text(one) for one in first.iter("details") if one.get("open") is None]
    asked_ = [text(one) for one in first.iter("summary") if text(one).startswith("Which")]
    told_ = "Which switch caused a prompt to be read anew? volatile_prefix. (switch_prefill)"
    assert (shut, asked_) == ([], [told_])


def test_in_text_it_says_the_same(run: Run) -> None:
    """Without --html the figures, tables and what is unknown are printed."""
    ledger_of(HELD, LOST, UNREPORTED, CLOCK)
    told(Path("ledger.jsonl"), m.Outcome("o1", NOON, "T-9", None, "success", tests=True))
    out = run("report")[1].splitlines()
    assert out[:5] == [
        "28 % of the known cost was avoidable; 1 call had a wrong context.",
        "",
        "Cache read share   74 % (130,288 of 175,000 input tokens, 3 calls; 1 unknown) | Constraint recall: 50 % (held in 1 of the 2 calls whose verdict is known)",  # noqa: E501
        "Missed, avoidable  37,712 (tokens could have been read, $0.0103 of the cost; 3 calls; 1 unknown) | Wrong context: 1 call (constraints lost; of 2 calls that a check could judge; 2 unknown)",  # noqa: E501
        "Cost               ≥ $0.0369 (3 calls; 1 unknown) | Cost per success: ? (nobody told how a task ended)",
    ]
    titles = [
        "Symptoms that were found; `diagnose` has their evidence",
        "Tasks",
        "Was the context right?",
        "Wrong contexts",
        "Why was it not reused?",
        "Sessions, the worst first",
    ]
    assert [one for one in out if one in titles] == titles
    assert out[-1].startswith("--html FILE draws all of this on one page")


# In a browser


@needs_browser
@pytest.mark.parametrize("theme", ["dark", "light"])
def test_in_a_browser(run: Run, theme: str) -> None:
    """Nothing is asked for but the page, nothing complained about; each part is there for who hears it read; on a
    narrow screen only tables and timelines scroll sideways."""
    ledger_of(FIRST, CLOCK, HELD, LOST, UNREPORTED, FAILED)
    page(run)
    with browsing() as browser, tab(browser, 500, 800, theme) as shown:
        shown.open(Path(OUT).resolve())
        spoken = shown.spoken()
        wide = shown.page.evaluate("document.documentElement.scrollWidth")
        ground = shown.page.evaluate("getComputedStyle(document.body).backgroundColor")
        drawn = shown.page.evaluate("getComputedStyle(document.querySelector('svg .cache_read')).fill")
    assert (shown.outside(Path(OUT).resolve().as_uri()), shown.errors, wide) == ([], [], 500)
    assert (ground, drawn) == {
        "dark": ("rgb(20, 23, 28)", "rgb(91, 149, 236)"),
        "light": ("rgb(251, 251, 250)", "rgb(47, 111, 208)"),
    }[theme]
    parts = ('heading "Reuse and correctness" [level=1]', 'heading "Sessions" [level=2]', 'img "Timeline of session')
    assert [part for part in parts if part not in spoken] == []


@needs_browser
@pytest.mark.parametrize(("width", "hidden"), [(1280, False), (500, True)])
def test_what_tasks_cost_can_be_read(run: Run, width: int, hidden: bool) -> None:
    """On a screen of 1280 px the table of tasks is seen whole, with why an attempt failed; on a narrow one it scrolls
    in a box of its own, with a shadow where there is more, up to what stands at its right."""
    path = ledger_of({**LOST, "task_id": "T-1", "attempt_id": "1"}, {**HELD, "task_id": "T-1", "attempt_id": "2"})
    told(path, m.Outcome("o1", NOON, "T-1", "1", "failure", tests=False, constraints=False))
    page(run)
    with browsing() as browser, tab(browser, width, 900) as shown:
        shown.open(Path(OUT).resolve())
        box = shown.page.locator(".scroll").filter(has_text="last error")
        more = box.evaluate("box => box.scrollWidth > box.clientWidth")
        box.evaluate("box => { box.scrollLeft = box.scrollWidth }")
        last = box.locator("tbody tr td:last-child").first.evaluate("cell => cell.getBoundingClientRect().right")
        shadows = box.evaluate("box => getComputedStyle(box).backgroundAttachment")
    assert (more, last <= width, shadows) == (hidden, True, "local, local, scroll, scroll")


@needs_browser
def test_a_closed_table_opens_by_keyboard(run: Run) -> None:
    """The table beside a timeline is reached and opened without a pointer."""
    ledger_of(CLOCK)
    page(run)
    with browsing() as browser, tab(browser) as shown:
        shown.open(Path(OUT).resolve())
        shown.page.locator("figure summary").focus()
        shown.page.keyboard.press("Enter")
        assert shown.page.locator("figure table").is_visible()
