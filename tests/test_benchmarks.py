"""The side-by-side measurement runs: a worker makes calls and reads streams, and answers in seconds of CPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
COMMANDS = ({"size": 0, "calls": 2}, {"events": 20})


@pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="the benchmarks are not part of the wheel")
@pytest.mark.parametrize("contestant", ["bare", "manual", "ledger", "ledger-span"])
def test_a_worker_answers_every_command(contestant: str) -> None:
    """Each command gets one answer: seconds of the caller's thread, and of the whole process for calls."""
    command = [sys.executable, "-m", "benchmarks.peers.worker", contestant, "off"]
    asked = "".join(json.dumps(one) + "\n" for one in COMMANDS)
    told = subprocess.run(command, input=asked, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    hello, calls, events = map(json.loads, told.splitlines())
    assert [set(hello), set(calls), set(events)] == [{"version"}, {"thread", "process"}, {"thread"}]
    assert calls["process"] >= calls["thread"] > 0


@pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="the benchmarks are not part of the wheel")
def test_every_step_of_the_checks_is_timed_once() -> None:
    """A step within a step is part of it; after the measurement the steps are what they were."""
    from benchmarks.checks import STEPS, timed
    from otel_context_ledger.courses import Courses, Scene

    before = [owner.__dict__[name] for owner, names in STEPS for name in names]
    with timed() as watch:
        courses = Courses()
        for number in range(200):
            courses.arrive(f"s{number}", Scene(), 0.0)
    assert (watch.here > 0, watch.elsewhere) == (True, 0.0)
    assert [owner.__dict__[name] for owner, names in STEPS for name in names] == before
