"""What people read of `context-ledger diagnose`: which calls it looks at, what it says, how it ends."""

# Whole outputs are compared.
# ruff: noqa: E501

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from otel_context_ledger import model as m
from otel_context_ledger.cli.calls import Unusable
from otel_context_ledger.cli.diagnose import since
from otel_context_ledger.cli.symptoms import SYMPTOMS
from tests.test_cli import FIRST, NOON, Run, place, run, written
from tests.test_cli_tasks import told
from tests.vectors import run_diagnose

__all__ = ["place", "run"]

CASES = json.loads((Path(__file__).parent.parent / "spec" / "vectors" / "diagnose.json").read_text("utf-8"))["cases"]
# Fields of which null says that there was none, and not that nobody knows.
NONE_THERE = {"cost": "no dollars", "cost.amount": "no dollars", "compaction_event": "no compaction"}

GOOD = {**FIRST, "constraints_check": "held", "task_id": "T1", "session_id": "s1"}
LOST = {
    **GOOD, "entry_id": "bb22", "started_at": NOON + 3_600, "cached_tokens": 49_000, "cache_miss_tokens": 1_000,
    "constraints_check": "lost", "constraints": m.Findings(evidence=("lost=C2:none:0.84",)), "task_id": "T2",
    "session_id": "s2", "repeated_read_bytes": 0,
}  # fmt: skip


def test_what_is_found_comes_first_with_its_cause_and_the_way_out(run: Run) -> None:
    """A ledger in which a constraint was lost at 98 % hits: evidence, cause, fix; then what cannot be told and why, then
    what is not there; exit code 1."""
    written(Path("ledger.jsonl"), GOOD, LOST)
    code, out, err = run("diagnose")
    lines = out.splitlines()
    assert (code, err, lines[0]) == (1, "", "16 symptoms in 2 calls: 1 found, 8 not found, 7 cannot tell")
    start = lines.index(
        "FOUND  Is the hit ratio high and a constraint violated all the same?  [constraint_lost_at_high_hits]"
    )
    assert lines[start + 1 : start + 4] == [
        "  evidence  bb22: constraints lost C2, 98 % of 50,000 tokens reused",
        "  cause     A cache hit says that the prompt is the one before, not that it is right: what is lost stays lost, cheaply.",
        "  to do     Put the constraint back where nothing is compacted (system part or rules file) and rebuild the context.",
    ]
    assert lines.index("cannot tell") < lines.index("not found")
    assert ["repeated_reads", "looked at 1 of 2 calls; 0 B read again"] in [line.split(maxsplit=1) for line in lines]


@pytest.mark.parametrize("options", [("--task", "T1"), ("--session", "s1")])
def test_only_what_was_asked_for_is_looked_at(run: Run, options: tuple[str, str]) -> None:
    """A task, a session: without the bad call nothing is found, and that is exit code 0."""
    written(Path("ledger.jsonl"), GOOD, LOST)
    code, out, _ = run("diagnose", *options, "--json")
    found = orjson.loads(out)
    assert (code, found["calls"], found["totals"]["found"]) == (0, 1, 0)


@pytest.mark.parametrize("symptom", ["retry_without_history", "patch_from_bad_summary"])
def test_what_lies_outside_of_the_choice_cannot_be_told(run: Run, symptom: str) -> None:
    """One session of a task that had two: whether the other one began from nothing, or with which summary it failed, is
    not in the calls that were chosen."""
    path = written(Path("ledger.jsonl"), {**GOOD, "history_length": 9}, {**LOST, "task_id": "T1", "history_length": 1})
    told(path, m.Outcome("o1", NOON + 9_000, "T1", None, "failure", tests=False))
    every, one = (
        {found["id"]: found for found in orjson.loads(run("diagnose", *options, "--json")[1])["symptoms"]}[symptom]
        for options in ((), ("--session", "s2"))
    )
    assert (every["missing"], one["verdict"], one["missing"]) == (
        None, "cannot_tell", "all calls of task T1: some are outside of what was asked for",
    )  # fmt: skip


def test_since(run: Run) -> None:
    """Only calls that began since then."""
    written(Path("ledger.jsonl"), GOOD, LOST)
    then = datetime.fromtimestamp(NOON + 60).isoformat()
    found = orjson.loads(run("diagnose", "--since", then, "--json")[1])
    assert (found["calls"], found["symptoms"][0]["entries"]) == (1, ["bb22"])


def test_times() -> None:
    """So long ago, a day, a minute, a time with its zone."""
    now = time.time()
    assert [since(raw, 1e6) for raw in ("90s", "2h", "7d")] == [1e6 - 90, 1e6 - 7_200, 1e6 - 604_800]
    assert since("2026-11-30T14:00+00:00", now) == since("2026-11-30T14:00Z", now) == 1_796_047_200.0
    assert since("2026-11-30", now) == datetime(2026, 11, 30).timestamp()
    for raw in ("yesterday", "", "-2h", "99999999999"):
        with pytest.raises(Unusable):
            since(raw, now)


def test_as_json(run: Run) -> None:
    """Programs get each symptom by its id with its verdict; cause and fix only of what is there."""
    written(Path("ledger.jsonl"), GOOD)
    found = orjson.loads(run("diagnose", "--json")[1])
    assert [one["id"] for one in found["symptoms"]] == [one.id for one in SYMPTOMS]
    assert found["symptoms"][15] == {
        "id": "repeated_reads", "question": "Are files of the repository read again and again?",
        "verdict": "cannot_tell", "evidence": [], "missing": "bytes read again: no read of a file was recognised",
        "entries": [], "looked": None, "of": None,
    }  # fmt: skip


def test_an_outcome_counts_with_the_calls_of_its_task(run: Run) -> None:
    """Hours later somebody tells that the constraints were violated."""
    path = written(Path("ledger.jsonl"), {**LOST, "constraints_check": None})
    told(path, m.Outcome("o1", NOON + 9_000, "T2", None, "failure", constraints=False))
    first = orjson.loads(run("diagnose", "--json")[1])["symptoms"][0]
    assert (first["verdict"], first["evidence"]) == (
        "found", ["task T2: constraints violated, by its outcome, and 98 % of its tokens reused"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--task", "T9"), "There is no task 'T9' in ledger.jsonl."),
        (("--session", "s9"), "There is no session 's9' in ledger.jsonl."),
        (("--since", "soon"), "'soon' is no time: say 2h, 7d, 2026-11-30 or 2026-11-30T14:00."),
        (("--file", "none.jsonl"), "There is no ledger file none.jsonl; name one with --file or CONTEXT_LEDGER_FILE."),
    ],
)
def test_unusable_input(run: Run, options: tuple[str, str], sentence: str) -> None:
    """What cannot be answered is one sentence and exit code 2."""
    written(Path("ledger.jsonl"), GOOD)
    assert run("diagnose", *options) == (2, "", f"context-ledger: {sentence}\n")


@pytest.mark.parametrize("command", ["diagnose", "tasks", "show"])
def test_lines_that_cannot_be_read_are_told(run: Run, command: str) -> None:
    """A torn line is in no answer, and each answer says so."""
    path = written(Path("ledger.jsonl"), GOOD)
    path.write_bytes(path.read_bytes() + b'{"self": {"entry_')
    told_of = "left out: 1 line that cannot be read; `context-ledger verify` says which"
    assert told_of in run(command)[1].splitlines()


def test_lines_of_compactions_are_read(run: Run) -> None:
    """What a compaction's own line tells is found in its session, and in no other; `verify` counts the line."""
    path = written(Path("ledger.jsonl"), GOOD, LOST)
    event = {
        "kind": "compaction", "self": {"ledger_version": "0.1.0"}, "task": {"session_id": "s1"},
        "compaction": {"compaction_event": "c-1", "evidence": ["state_mismatch:T2:active->done:evidence=none"]},
    }  # fmt: skip
    path.write_bytes(path.read_bytes() + orjson.dumps(event) + b"\n")
    named = {
        name: orjson.loads(run("diagnose", "--session", name, "--json")[1])["symptoms"][7] for name in ("s1", "s2")
    }
    assert [named["s1"]["evidence"], named["s2"]["verdict"]] == [["c-1: T2:active->done:evidence=none"], "not_found"]
    assert "compactions: 1 line" in run("verify")[1]


def blanked() -> Iterator[Any]:
    """Each case in which a symptom is found, with one of the fields of its lines taken away."""
    for case in CASES:
        if case["want"]["verdict"] == "found":
            yield from (
                pytest.param(case["input"], name, id=f"{case['name']}-{name}") for name in _names(case["input"])
            )


def _names(given: Mapping[str, Any]) -> list[str]:
    lines = [given.get("base", {}), *given["calls"], *given.get("compactions", [])]
    plain = {name for line in lines for name, value in line.items() if not isinstance(value, dict)}
    inner = {
        f"{name}.{leaf}" for line in lines for name, value in line.items() if isinstance(value, dict) for leaf in value
    }
    return sorted((plain | inner) - NONE_THERE.keys() - {"times", "kind"})


def _without(line: Mapping[str, Any], name: str) -> dict[str, Any]:
    head, _, leaf = name.partition(".")
    if head not in line:
        return dict(line)
    return {**line, head: _without(line[head], leaf) if leaf else None}


@pytest.mark.parametrize(("given", "name"), blanked())
def test_what_was_not_recorded_is_never_not_found(given: Mapping[str, Any], name: str) -> None:
    """Take a field away from the lines in which a symptom is found: it is still found by the others, or nobody can
    tell."""
    lines = {key: [_without(line, name) for line in given[key]] for key in ("calls", "compactions") if key in given}
    found = run_diagnose({**given, **lines, "base": _without(given.get("base", {}), name)}, {"verdict": ""})
    assert found["verdict"] in ("found", "cannot_tell")


@pytest.mark.parametrize("symptom", [one.id for one in SYMPTOMS])
def test_of_lines_that_say_nothing_nothing_can_be_told(symptom: str) -> None:
    """Two lines with nothing but their ids."""
    assert run_diagnose({"symptom": symptom, "calls": [{}, {}]}, {"verdict": ""}) == {"verdict": "cannot_tell"}
