"""What people read of tasks: `context-ledger tasks` and `outcome`, and outcomes in the other commands."""

# Whole outputs are compared, and tables are as wide as their values.
# ruff: noqa: E501

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from otel_context_ledger import line
from otel_context_ledger import model as m
from otel_context_ledger.cli import main
from tests.test_cli import FIRST, NOON, QUOTA, Run, place, run, written

__all__ = ["place", "run"]

TRY_1 = {
    **FIRST, "task_id": "TASK-8421", "attempt_id": "1", "session_id": "s-1", "cached_tokens": 1_000,
    "cache_miss_tokens": 49_000, "cost": m.CostAmount(2.0, "USD", "computed", "usd"),
}  # fmt: skip
ERROR = {
    "entry_id": "bb11", "started_at": NOON + 10, "task_id": "TASK-8421", "attempt_id": "1", "session_id": "s-1",
    "call_end": "failed", "error_type": "APIConnectionError", "cost": m.CostAmount(), "cost_missing": "usage_missing",
}  # fmt: skip
TRY_2 = {
    **TRY_1, "entry_id": "bb22", "started_at": NOON + 20, "attempt_id": "2", "session_id": "s-2",
    "cost": m.CostAmount(1.0, "USD", "computed", "usd"),
}  # fmt: skip
OPEN = {**QUOTA, "started_at": NOON + 30, "task_id": "TASK-9"}
STRAY = {**FIRST, "entry_id": "ee55", "started_at": NOON + 40, "session_id": None}


def told(path: Path, *outcomes: m.Outcome) -> None:
    """Appends outcomes to a ledger file."""
    rows = [line.write_outcome(one, "0.1.0") for one in outcomes]
    path.write_bytes(path.read_bytes() + b"".join(row + b"\n" for row in rows))


def ledger() -> Path:
    """A file with a task of two attempts, one paid by quota and without an outcome, and a call of nobody."""
    path = written(Path("ledger.jsonl"), TRY_1, ERROR, TRY_2, OPEN, STRAY)
    told(
        path,
        m.Outcome("o1", NOON + 15, "TASK-8421", "1", "failure", tests=False, reason="2 tests red"),
        m.Outcome("o2", NOON + 18_000, "TASK-8421", "2", "success", tests=True, accepted=True),
    )
    return path


def test_tasks(run: Run) -> None:
    """AT01: a task with its attempts, what a success costs with all that failed, and what nobody told or attributed."""
    ledger()
    assert run("tasks") == (
        0,
        """\
task          outcome  attempts  sessions  calls    input  cached  checks     output               cost  last error
TASK-8421     success         2         2      3  100,000   2,000  unchecked     800          ≥ $3.0000  APIConnectionError
  attempt 1   failure                   1      2   50,000   1,000  unchecked     400          ≥ $2.0000  APIConnectionError
  attempt 2   success                   1      1   50,000   1,000  unchecked     400            $1.0000
TASK-9        unknown                   1      1    2,000   1,990  unchecked      20              quota
unattributed                            0      1   50,000       0  unchecked     400            $0.1500
total                                          5  152,000   3,990  unchecked   1,220  ≥ $3.1500 + quota

successful: 1 of 1 task with an outcome (100 %); 1 task unknown, left out
cost per successful task: ≥ $3.0000, failed attempts and failed tasks counted in
cost per session: $1.5000 over 2 sessions with a known cost; it hides what failed
partial: the cost of 1 call is unknown (1 of them failed), which is not zero
unattributed: 1 call for which no task was named
correctness: not checked; reuse does not show that the context was right.

surface             model    calls    input  cached  checks     output       cost  successes  failures  per success
kimi_open_platform  kimi-k3      4  150,000   2,000  unchecked   1,200  ≥ $3.1500          1         0    ≥ $3.0000
kimi_code           k3           1    2,000   1,990  unchecked      20      quota          0         0        quota
""",
        "",
    )  # fmt: skip


def test_one_task(run: Run) -> None:
    """One task alone, by its id or the beginning of it; one that is not there is a sentence and exit code 2."""
    ledger()
    code, out, _ = run("tasks", "--task", "TASK-8", "--json")
    assert (code, [one["task_id"] for one in orjson.loads(out)["tasks"]]) == (0, ["TASK-8421"])
    assert run("tasks", "--task", "X") == (2, "", "context-ledger: There is no task 'X' in ledger.jsonl.\n")


def test_tasks_on_a_file_without_any(run: Run) -> None:
    """A ledger whose program names no tasks has them all unattributed, and no rate."""
    written(Path("ledger.jsonl"), FIRST)
    code, out, _ = run("tasks")
    assert (code, out.splitlines()[1:6]) == (
        0,
        [
            "unattributed                            1      1  50,000       0  unchecked     400  $0.1500",
            "total                                          1  50,000       0  unchecked     400  $0.1500",
            "",
            "successful: 0 of 0 tasks with an outcome",
            "cost per successful task: ?, failed attempts and failed tasks counted in",
        ],
    )


def test_outcome_is_kept_and_joins(run: Run) -> None:
    """AT12: an outcome that comes later says what it joins and what stood before; then it is in the accounts once."""
    ledger()
    assert run("outcome", "TASK-8421", "--rolled-back", "--reason", "regression") == (
        0,
        "TASK-8421: failure (rolled back, regression); kept in ledger.jsonl.\n"
        "It joins 3 calls in 2 attempts.\n"
        "Until now the task was a success, told 2026-11-03 17:00:00.\n",
        "",
    )
    (one,) = orjson.loads(run("tasks", "--task", "TASK-8421", "--json")[1])["tasks"]
    assert (one["outcome"], one["told"], [gone["word"] for gone in one["superseded"]]) == ("failure", 3, ["success"])


def test_outcome_delivered_twice(run: Run) -> None:
    """With an id, a webhook that comes again changes nothing."""
    ledger()
    for _ in range(2):
        run("outcome", "TASK-9", "--tests", "passed", "--accepted", "--id", "ci-77")
    (one,) = orjson.loads(run("tasks", "--task", "TASK-9", "--json")[1])["tasks"]
    assert (one["outcome"], one["told"], one["evidence"]) == ("success", 1, {"tests": True, "accepted": True})


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--attempt", "2", "--failed"], "attempt 2 at TASK-9: failure; kept in ledger.jsonl."),
        (["--tests", "failed", "--constraints", "kept"], "TASK-9: failure (tests failed, constraints kept); kept in ledger.jsonl."),
        (["--accepted"], "TASK-9: success (accepted); kept in ledger.jsonl."),
        (["--rejected", "--reason", "not what was asked"], "TASK-9: failure (not accepted, not what was asked); kept in ledger.jsonl."),
        (["--constraints", "kept"], "TASK-9: unknown (constraints kept); kept in ledger.jsonl."),
    ],
)  # fmt: skip
def test_outcome_in_words(run: Run, options: list[str], sentence: str) -> None:
    """What was told is said back in words."""
    ledger()
    assert run("outcome", "TASK-9", *options)[1].splitlines()[0] == sentence


@pytest.mark.parametrize(
    "argv", [["T", "--success", "--failed"], ["T", "--accepted", "--rejected"], ["T", "--tests", "maybe"], []]
)
def test_outcome_refuses_contradictions(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Yes and no at once, unknown words and no task are wrong usage."""
    with pytest.raises(SystemExit) as stopped:
        main(["outcome", *argv])
    assert (stopped.value.code, "usage: context-ledger outcome" in capsys.readouterr().err) == (2, True)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "There is no ledger file x.jsonl; name one with --file or CONTEXT_LEDGER_FILE."),
        (b'{"name": "someone else\'s"}\n', "x.jsonl is no ledger file."),
    ],
)
def test_outcome_makes_no_file_of_its_own(run: Run, content: bytes | None, sentence: str) -> None:
    """A mistyped path is refused: nothing is made there, and a foreign file stays as it is."""
    if content is not None:
        Path("x.jsonl").write_bytes(content)
    assert run("outcome", "T", "--accepted", "--file", "x.jsonl") == (2, "", f"context-ledger: {sentence}\n")
    assert (Path("x.jsonl").read_bytes() if content else Path("x.jsonl").exists()) == (content or False)


def test_outcome_of_a_task_without_calls(run: Run) -> None:
    """It is kept, and said to join nothing so far; in the accounts it stands apart."""
    ledger()
    assert run("outcome", "TYPO", "--accepted")[1].splitlines()[1] == (
        "No call of this task is in the file so far; calls that come later are joined as well."
    )
    assert "outcomes of tasks without a call here: 1 task, counted nowhere" in run("tasks")[1].splitlines()


def test_other_commands_beside_outcomes(run: Run) -> None:
    """`show` counts calls alone, `explain` says how the call's attempt and its task ended, `verify` finds nothing
    wrong."""
    ledger()
    assert len(orjson.loads(run("show", "--json")[1])["calls"]) == 5
    assert run("explain", "bb22")[1].splitlines()[2] == (
        "task         TASK-8421, attempt 2: success (tests passed, accepted), told 2026-11-03 17:00:00."
    )
    assert run("explain", "aa11")[1].splitlines()[2:4] == [
        "task         TASK-8421, attempt 1: failure (tests failed, 2 tests red), told 2026-11-03 12:00:15.",
        "task         TASK-8421, all attempts: success (tests passed, accepted), told 2026-11-03 17:00:00.",
    ]
    assert run("explain", "dd55")[1].splitlines()[2] == "task         TASK-9: unknown, nobody told how it ended."
    code, out, _ = run("verify")
    assert (code, out.splitlines()[-1]) == (0, "outcomes of tasks: 2 lines")


def test_lines_of_a_kind_of_the_future(run: Run) -> None:
    """A line of a kind that this version does not know is skipped by all commands and is no finding."""
    path = ledger()
    path.write_bytes(path.read_bytes() + b'{"kind": "forecast", "self": {"id": 1}}\n')
    code, out, _ = run("verify")
    assert (code, out.splitlines()[-1]) == (0, "of a kind that this version does not know, and skipped: 1 line")
    assert "left out" not in run("show")[1]


def test_verify_finds_outcomes_that_do_not_hold(run: Run) -> None:
    """An outcome without a task, and a word that does not follow from what was said."""
    path = written(Path("ledger.jsonl"), FIRST)
    told(path, m.Outcome("o1", NOON, "", word="unknown"), m.Outcome("o2", NOON, "T", word="success", tests=False))
    code, out, _ = run("verify")
    assert (code, out.splitlines()[:2]) == (
        1,
        [
            "ledger.jsonl:2: an outcome that names no task",
            "ledger.jsonl:3: task_outcome is success, but what it says gives failure",
        ],
    )


def test_outcomes_of_wrong_types(run: Run) -> None:
    """An outcome line whose values have other types says nothing, and breaks nothing."""
    path = written(Path("ledger.jsonl"), TRY_1)
    rough = {
        "kind": "outcome",
        "self": {"told_at": "noon"},
        "task": {"task_id": "TASK-8421", "task_outcome": 7},
        "outcome": 3,
    }
    path.write_bytes(path.read_bytes() + orjson.dumps(rough) + b"\n")
    (one,) = orjson.loads(run("tasks", "--json")[1])["tasks"]
    assert (one["outcome"], one["told"]) == ("unknown", 1)


def test_why_an_attempt_failed(run: Run) -> None:
    """Where no call of a failed attempt ended in an error, the table says what its outcome has against it."""
    path = written(Path("ledger.jsonl"), TRY_1, TRY_2)
    told(
        path,
        m.Outcome("o1", NOON + 15, "TASK-8421", "1", "failure", tests=False, constraints=False, accepted=True),
        m.Outcome("o2", NOON + 18_000, "TASK-8421", "2", "failure", tests=True, rolled_back=True),
    )
    rows = run("tasks")[1].splitlines()[1:4]
    at = run("tasks")[1].splitlines()[0].index("last error")
    assert [row[at:] for row in rows][1:] == ["tests failed, constraints violated", "rolled back"]
