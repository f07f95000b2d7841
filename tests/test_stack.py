"""`make demo STACK=1`: the demo through the collector's real binary ends with what arrived where; without Go a sentence
says so, and the demo itself is as it was."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.prometheus import found

ROOT = Path(__file__).resolve().parents[1]
OTELCOL = os.environ.get("OTELCOL", "")
NONE_BUILT = "OTELCOL names no binary of the collector; `make collector` builds one, dist/otelcol-context-ledger"
COUNTED = ("calls", "input tokens", "output tokens", "cost in USD", "compactions", "tasks that ended")
MISSED = ("history_compacted", "history_rewritten", "policy_changed", "tools_reordered", "volatile_prefix")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The demo's process, after its end."""
    ledger = tmp_path_factory.mktemp("stack") / "ledger.jsonl"
    ours = ("ENGINE", "CONTEXT_LEDGER_", "OTEL_", "OPENAI_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environment["AGENT_PAUSE"] = "0"
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    command = [sys.executable, "-m", "examples.demo", "--ledger", str(ledger), "--collector", OTELCOL]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=300, check=False
    )


@pytest.mark.skipif(not OTELCOL, reason=NONE_BUILT)
def test_everything_arrives_once(demo: Any) -> None:
    """All agents' calls are at the collector as spans and as log records, and what is counted of them there is what the
    ledger files have: 57 calls, their tokens and money, compactions, tasks, and each cause of missed tokens. A
    Prometheus has the calls as well, and saw each of their series at 0 before."""
    last = demo.stdout.partition("What arrived where")[2]
    lines = [line for line in last.splitlines() if line.startswith("│")]
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]
    assert demo.returncode == 0, demo.stderr
    assert [(row[0], row[4]) for row in rows] == [
        ("calls, as spans", "the same"),
        ("calls, as log records", "the same"),
        *((f"{name}, counted", "the same") for name in COUNTED),
        *((f"tokens missed: {cause}", "the same") for cause in MISSED),
        *((told, "the same") for told in ("calls, counted", "calls, seen from 0 on") if found("prometheus")),
    ]
    assert [row[1] for row in rows[:3]] == ["57", "57", "57"]
    assert all(float(row[1].replace(",", "")) > 0 for row in rows)


@pytest.mark.skipif(not OTELCOL, reason=NONE_BUILT)
def test_the_demo_itself_is_as_without_a_collector(demo: Any) -> None:
    """Every planted mistake is named as before, in both acts."""
    assert "Nothing else was blamed: 16 calls looked at." in demo.stdout
    assert "NOT NAMED" not in demo.stdout


@pytest.mark.skipif(not OTELCOL, reason=NONE_BUILT)
def test_the_boards_are_served_or_a_sentence_says_why_not(demo: Any) -> None:
    """The demo ends with where the boards are, or with how to get a Prometheus for them; nobody waits where there is no
    terminal."""
    last = demo.stdout.splitlines()[-1]
    assert last.startswith(
        "The boards are at http://127.0.0.1:" if found("prometheus") else "No Prometheus is installed"
    )


def test_without_go_a_sentence_says_so(tmp_path: Path) -> None:
    """Where there is neither Go nor a binary, `make demo STACK=1` ends with what is missing and how to do without it,
    before the agent runs."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / ".venv").mkdir()
    for made in ("pyproject.toml", ".venv/.ready"):
        (tmp_path / made).touch()
    done = subprocess.run(
        ["make", "demo", "STACK=1", "GO=no-such-go"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    said = re.sub(r"\s+", " ", done.stdout)
    assert done.returncode != 0
    assert "the collector needs Go 1.26 or newer" in said
    assert "`make demo`" in said
