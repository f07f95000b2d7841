"""`make demo STACK=1`: the demo through the collector's real binary ends with what arrived where; without Go a sentence
says so, and the demo itself is as it was."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.prometheus import found

ROOT = Path(__file__).resolve().parents[1]
OTELCOL = os.environ.get("OTELCOL", "")
NONE_BUILT = "OTELCOL names no binary of the collector; `make collector` builds one, dist/otelcol-context-ledger"
COUNTED = ("calls", "input tokens", "output tokens", "cost in USD", "compactions", "tasks that ended")
MISSED = ("history_compacted", "history_rewritten", "policy_changed", "tools_reordered", "volatile_prefix")


def environment() -> dict[str, str]:
    """The environment of a demo that makes no pauses, without what another one would be told."""
    ours = ("ENGINE", "CONTEXT_LEDGER_", "OTEL_", "OPENAI_")
    given = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return given | {"AGENT_PAUSE": "0", "PATH": f"{Path(sys.executable).parent}{os.pathsep}{given['PATH']}"}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The demo's process, after its end."""
    ledger = tmp_path_factory.mktemp("stack") / "ledger.jsonl"
    command = [sys.executable, "-m", "examples.demo", "--ledger", str(ledger), "--collector", OTELCOL]
    return subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, encoding="utf-8", timeout=300, check=False
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


@pytest.mark.skipif(not OTELCOL, reason=NONE_BUILT)
@pytest.mark.skipif(not found("prometheus"), reason="no Prometheus is installed")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_all_of_it_ends_together(tmp_path: Path, number: int) -> None:
    """Started with SIGINT ignored, as a shell does in the background, the demo and all that it started end at a signal;
    the address that it had printed is that of the board of misses, with both ends of the time range fixed."""
    command = [sys.executable, "-m", "examples.demo", "--ledger", str(tmp_path / "ledger.jsonl"), "--wait"]
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        running = subprocess.Popen(
            [*command, "--collector", OTELCOL], cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True,
            encoding="utf-8", start_new_session=True,
        )  # fmt: skip
    finally:
        signal.signal(signal.SIGINT, before)
    with running:
        try:
            told = next((line for line in running.stdout or () if line.startswith("The boards are at")), "")
            os.kill(running.pid, number)
            ended = running.wait(120)
            with pytest.raises(ProcessLookupError):
                os.killpg(running.pid, 0)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
    assert (
        re.search(r"\?board=context-ledger-misses&from=\d{13}&to=\d{13} \(Ctrl-C ends it\)$", told.strip()) is not None
    )
    assert ended == 0


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
