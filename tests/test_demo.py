"""The demo as `make demo` runs it: every planted mistake named with its place and price, and nothing else blamed."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from otel_context_ledger.cli import main
from tests.markup import tables, tree
from tests.test_cli import Terminal

ROOT = Path(__file__).resolve().parents[1]
# Turn, what was done wrong, cause, and place; a clock's character depends on when the demo runs.
PLANTED = [
    ("5", "a plugin reload moved a tool", "tools_reordered", "tool 0 read: reordered"),
    ("8", "a clock put into the system prompt", "policy_changed", "system 0, char 0: text"),
    ("9", "the clock has moved", "volatile_prefix", "system 0, char …: datetime"),
    ("10", "the clock has moved", "volatile_prefix", "system 0, char …: datetime"),
    ("13", "an old tool result cleared in place", "history_rewritten", "message 6 tool, char 0: pruned"),
]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The demo's process, after its end."""
    ledger = tmp_path_factory.mktemp("demo") / "ledger.jsonl"
    ours = ("ENGINE", "CONTEXT_LEDGER_", "OTEL_", "OPENAI_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    command = [sys.executable, "-m", "examples.demo", "--ledger", str(ledger)]
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=180, check=False
    )


def rows(screen: str) -> list[list[str]]:
    """The cells of the last table of a screen, its head left out."""
    lines = [line for line in screen.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


def first(screen: str) -> str:
    """The first act."""
    return screen.partition("Second act")[0]


def test_the_demo_succeeds(demo: Any) -> None:
    """It ends with exit code 0: the agent did its work, and the ledger named what was planted."""
    assert (demo.returncode, "the sample repository's tests pass" in demo.stdout) == (0, True), demo.stderr


def test_the_last_screen_names_every_mistake_in_its_place(demo: Any) -> None:
    """Tools reordered, a clock in the system prompt, and history pruned in place: cause and place of each."""
    *named, _ = rows(first(demo.stdout))
    seen = [(turn, told, cause, place, verdict) for turn, told, cause, place, _, _, verdict in named]
    fixed = [(*row[:3], re.sub(r"char \d+: datetime", "char …: datetime", row[3]), row[4]) for row in seen]
    assert fixed == [(*planted, "named") for planted in PLANTED]


def test_the_last_screen_adds_up_what_the_mistakes_cost(demo: Any) -> None:
    """Every mistake has its tokens and dollars, and the last row is their sum."""
    counts = [int(row[4].replace(",", "")) for row in rows(first(demo.stdout))]
    prices = [float(row[5]) for row in rows(first(demo.stdout))]
    assert all(count > 1000 for count in counts)
    assert counts[-1] == sum(counts[:-1])
    assert prices[-1] == pytest.approx(sum(prices[:-1]), abs=0.0005)


def test_the_last_screen_says_that_nothing_else_was_blamed(demo: Any) -> None:
    """The sixteen calls are all looked at, and the screen ends with that."""
    assert first(demo.stdout).splitlines()[-2].strip() == "Nothing else was blamed: 16 calls looked at."


# What was done to a call, and what the ledger says of it: a verdict of one pillar, and the gravest advice.
PAIRED = [
    ("3", "nothing", "in order: policy, files, tools, constraints", "keep"),
    ("4", "a file changed under the agent", "files stale", "rebuild_context"),
    ("6", "a tool's side effect flipped", "tools contract_changed", "rebuild_context"),
    ("7", "a compaction dropped the rule", "constraints lost", "new_session"),
    ("8", "nobody put it back", "constraints lost", "rebuild_context"),
    ("10", "a new session has it again", "in order: policy, files, tools, constraints", "keep"),
]


def test_the_second_act_pairs_reuse_with_correctness(demo: Any) -> None:
    """Five of six calls were cached to 99 %; three of these were wrong, and that stands beside the figure."""
    told = rows(demo.stdout.partition("Second act")[2])
    assert [(call, what, right, advice) for call, what, _, right, advice, _ in told] == PAIRED
    assert [float(row[2].removesuffix(" %")) >= 99 for row in told] == [True, True, True, False, True, True]


def answered(block: str, ledger: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the command at the head of a block of the README prints now, on a terminal if it prints a table."""
    _, name, *options = block.splitlines()[0].removeprefix("$ ").split()
    second = "LAST-11" not in options
    file = ledger.with_name("second.jsonl") if second else ledger
    given = options[: options.index("--file")] if "--file" in options else options
    screen = Terminal() if name == "tasks" else io.StringIO()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "114")
    monkeypatch.setenv("LINES", "50")
    main([name, *given, "--file", str(file)])
    return screen.getvalue().splitlines()


def masked(line: str) -> str:
    """A line without what differs from run to run: ids, times and durations."""
    line = re.sub(r"\b[0-9a-f]{16}\b|\bc-[0-9a-f]{12}\b", "<id>", line)
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\b\d+\.\d s\b", "<time>", line).rstrip()


@pytest.mark.parametrize("command", ["explain LAST-11", "explain LAST-2", "tasks", "diagnose"])
def test_the_readme_shows_what_is_printed(demo: Any, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line of an answer that the README has from the demo is printed, in this order."""
    blocks = re.findall(r"^```\n(\$ context-ledger .*?)^```", (ROOT / "README.md").read_text("utf-8"), re.S | re.M)
    (block,) = [one for one in blocks if one.startswith(f"$ context-ledger {command}")]
    printed = iter([masked(line) for line in answered(block, Path(demo.args[-1]), monkeypatch)])
    told = [masked(line) for line in block.splitlines()[1:] if line.strip() not in ("", "…")]
    assert [line for line in told if line not in printed] == []


def test_the_second_act_ends_with_the_price_of_a_success(demo: Any) -> None:
    """One task, one success: what it cost is what both attempts cost together."""
    last = demo.stdout.splitlines()[-3]
    whole, *parts = map(float, re.findall(r"\$([0-9.]+\d)", last))
    assert last.startswith("Cost per successful task: ")
    assert (len(parts), abs(whole - sum(parts)) < 0.0002) == (2, True)


def test_the_demo_ends_with_one_page_of_its_ledgers(demo: Any) -> None:
    """The last line says where it is, and the page names what was planted: the causes of the first act and the verdicts
    of the second, in tables above the timelines."""
    file = Path(demo.args[-1]).with_name("report.html")
    assert demo.stdout.splitlines()[-1].startswith(f"The report of 27 calls in 3 sessions is in {file} (")
    found = tables(tree(file.read_text("utf-8")))
    causes = found["Causes of misses; the letters are those of the timelines"][1:]
    wrong = found["Wrong contexts; a high share read from the cache made none of them right"][1:]
    planted = {cause for _, _, cause, *_ in PLANTED}
    assert planted - {row[1] for row in causes} == set()
    assert {(row[0], row[1]) for row in wrong} == {
        ("constraints", "lost"), ("repository", "stale"), ("tools", "contract_changed"),
    }  # fmt: skip
