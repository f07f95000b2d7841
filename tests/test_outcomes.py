"""Telling how a task ended: from the program, from elsewhere and later; its line, its event, its measurement."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from otel_context_ledger import attempt, outcome, store, task, tasks, telling
from otel_context_ledger import semconv as s
from otel_context_ledger.cli.calls import read
from otel_context_ledger.outcomes import EVIDENCE, flag
from otel_context_ledger.tasks import Names
from tests.conftest import Ledger, Signals

NOT_SAID = dict.fromkeys([*EVIDENCE, "reason"])


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """Every test starts without a name of the process, with nothing counted and no warning given."""
    tasks.inherit(Names())
    telling.outlet.__init__()  # type: ignore[misc]
    yield
    tasks.inherit(Names())


def lines(ledger: Ledger) -> list[dict[str, Any]]:
    """The outcome lines so far."""
    return [dict(raw) for raw in ledger.entries() if raw.get("kind") == "outcome"]


def told(ledger: Ledger) -> list[tuple[Any, ...]]:
    """Task, attempt and word of each outcome line."""
    return [tuple(row["task"][name] for name in ("task_id", "attempt_id", "task_outcome")) for row in lines(ledger)]


def counted(signals: Signals) -> dict[str, float]:
    """Tasks counted so far in this process, by outcome."""
    found: Counter[str] = Counter()
    for attributes, value in signals.counted().get(s.METRIC_TASKS, []):
        found[attributes[s.CONTEXT_LEDGER_TASK_OUTCOME]] += value
    return dict(found)


def test_an_outcome_is_a_line_an_event_and_a_measurement(ledger: Ledger, signals: Signals) -> None:
    """All three say the same; the ledger line has a kind and no entry id."""
    before = counted(signals).get("failure", 0)
    outcome("TASK-1", tests="failed", constraints="kept", reason="2 tests red")
    (row,) = lines(ledger)
    own = row.pop("self")
    said = {**NOT_SAID, "tests": False, "constraints": True, "reason": "2 tests red"}
    assert row == {
        "kind": "outcome",
        "task": {"task_id": "TASK-1", "attempt_id": None, "task_outcome": "failure"},
        "outcome": said,
    }
    (event,) = [found for found in signals.logged() if found.event_name == s.EVENT_OUTCOME]
    assert dict(event.attributes) == {
        s.CONTEXT_LEDGER_TASK_ID: "TASK-1",
        s.CONTEXT_LEDGER_TASK_OUTCOME: "failure",
        s.CONTEXT_LEDGER_OUTCOME_TESTS: False,
        s.CONTEXT_LEDGER_OUTCOME_CONSTRAINTS: True,
        s.CONTEXT_LEDGER_OUTCOME_REASON: "2 tests red",
        s.CONTEXT_LEDGER_OUTCOME_ID: own["outcome_id"],
        s.CONTEXT_LEDGER_OUTCOME_TOLD_AT: own["told_at"],
        s.CONTEXT_LEDGER_COUNTED_BY: "sdk",
    }
    assert counted(signals)["failure"] - before == 1


def test_a_task_is_counted_once_for_each_word(ledger: Ledger, signals: Signals) -> None:
    """Told again it is not counted again; a failed attempt is no failed task; what decides nothing is not counted."""
    before = counted(signals)
    outcome("T", attempt="1", success=False)
    outcome("T", success=True)
    outcome("T", accepted=True)
    outcome("T", constraints=True)
    outcome("T", rolled_back=True)
    assert len(told(ledger)) == 5
    after = counted(signals)
    assert {word: after[word] - before.get(word, 0) for word in after} == {"success": 1, "failure": 1}


def test_the_names_around_are_meant(ledger: Ledger) -> None:
    """Without a task it is the one that holds here; inside of an attempt at it, the attempt, unless told otherwise."""
    with task("T"), attempt("2"):
        outcome(success=False)
        outcome("T", success=False)
        outcome("T", attempt="", success=True)
        outcome("U", success=True)
    assert told(ledger) == [
        ("T", "2", "failure"),
        ("T", "2", "failure"),
        ("T", None, "success"),
        ("U", None, "success"),
    ]


def test_outcomes_of_coroutines(ledger: Ledger) -> None:
    """A coroutine tells its outcome as any function does, under the names of its own task."""

    async def work(name: str) -> None:
        with task(name):
            await asyncio.sleep(0)
            outcome(success=True)

    async def main() -> None:
        await asyncio.gather(work("a"), work("b"))

    asyncio.run(main())
    assert sorted(told(ledger)) == [("a", None, "success"), ("b", None, "success")]


def test_a_block_tells_its_end(ledger: Ledger) -> None:
    """A block that ends is a success, one that an error leaves a failure with the error's type as its reason; what is
    interrupted is neither. Errors go through."""
    with task("T"):
        for name, error in (("1", KeyError), ("2", KeyboardInterrupt), ("3", asyncio.CancelledError), ("4", None)):
            with attempt(name), contextlib.suppress(error or ()), outcome():
                if error:
                    raise error("secret")
    assert told(ledger) == [("T", "1", "failure"), ("T", "4", "success")]
    assert [row["outcome"]["reason"] for row in lines(ledger)] == ["KeyError", None]


def test_a_block_leaves_the_last_word_to_the_program(ledger: Ledger) -> None:
    """Where the program itself told the end inside, the block tells none."""
    with task("T"), outcome():
        outcome(tests="failed")
    assert told(ledger) == [("T", None, "failure")]


def test_decorated_functions_tell_the_end_of_each_call(ledger: Ledger) -> None:
    """Plain, async and generator functions alike, each once; a generator that is left early tells nothing."""

    @outcome("plain")
    def plain() -> int:
        return 1

    @task("async")
    @outcome()
    async def coroutine() -> int:
        await asyncio.sleep(0)
        raise ValueError

    @outcome("generator")
    def generator() -> Iterator[int]:
        yield from (1, 2)

    @outcome("async generator")
    async def stream() -> AsyncIterator[int]:
        yield 1

    async def main() -> list[int]:
        with contextlib.suppress(ValueError):
            await coroutine()
        return [item async for item in stream()]

    left = generator()
    assert (next(left), plain(), list(generator()), asyncio.run(main())) == (1, 1, [1, 2], [1])
    left.close()  # type: ignore[attr-defined]
    assert told(ledger) == [
        ("plain", None, "success"),
        ("generator", None, "success"),
        ("async", None, "failure"),
        ("async generator", None, "success"),
    ]


class Rude:
    """A value that does not let itself be looked at."""

    def __bool__(self) -> bool:
        raise RuntimeError

    __str__ = __eq__ = __hash__ = __bool__  # type: ignore[assignment]


@pytest.mark.parametrize(
    "value", [Rude(), object(), 7, "maybe", b"yes", [True], float("nan")], ids=lambda v: type(v).__name__
)
def test_no_value_raises(value: Any, ledger: Ledger, caplog: pytest.LogCaptureFixture) -> None:
    """What is neither yes nor no says nothing, with one warning that does not hold it; no value ever raises."""
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            outcome("T", success=value, tests=value)
            outcome(value, reason=value, success=True)
    messages = [record.getMessage() for record in caplog.records if "success" in record.getMessage()]
    assert messages == [
        "context ledger: outcome: the value of success is neither true nor false nor a word for either; it says nothing"
    ]
    assert ("T", None, "unknown") in told(ledger)


@pytest.mark.parametrize(
    ("value", "truth"),
    [("passed", True), (" FAILED ", False), ("kept", True), ("violated", False), (1, True), (0, False), (True, True),
     (None, None), ("", None), (2, None)],
)  # fmt: skip
def test_words_that_say_yes_or_no(value: object, truth: bool | None) -> None:
    """Test runners, reviewers and machines have each their words."""
    assert flag(value) is truth


def test_a_keyword_that_nobody_knows_is_an_error(ledger: Ledger) -> None:
    """A misspelt keyword is refused as by any function, before anything is told."""
    with pytest.raises(TypeError, match="unexpected keyword argument 'sucess'"):
        outcome("T", sucess=True)  # type: ignore[call-arg]
    assert told(ledger) == []


def test_an_outcome_of_nothing_is_said_once(ledger: Ledger, caplog: pytest.LogCaptureFixture) -> None:
    """Without any task there is nothing to keep, which is one warning."""
    with caplog.at_level(logging.WARNING):
        outcome(success=True)
        outcome("", success=True)
    assert [record.getMessage() for record in caplog.records] == [
        "context ledger: outcome: no task is named, here or around it; it is not kept"
    ]
    assert told(ledger) == []


LATER = """
from otel_context_ledger import outcome
outcome(tests="passed", accepted=True)
"""


def test_AT12_another_process_tells_it_hours_later(settings: Path, ledger: Ledger) -> None:
    """A program without a ledger of its own, as in CI, appends to the file that its environment names."""
    outcome("TASK-1", tests=False)
    ledger.entries()
    subprocess.run(
        [sys.executable, "-c", LATER], env={**os.environ, "CONTEXT_LEDGER_TASK_ID": "TASK-1"}, check=True, timeout=60
    )
    assert told(ledger) == [("TASK-1", None, "failure"), ("TASK-1", None, "success")]


AT_EXIT = """
import atexit
from otel_context_ledger import outcome
atexit.register(outcome, "T", success=True)
"""


def test_an_outcome_told_at_exit_is_kept(settings: Path, tmp_path: Path) -> None:
    """An exit hook that runs after the ledger has closed still leaves its line."""
    command = Path(sys.executable).parent / "opentelemetry-instrument"
    program = AT_EXIT + "import otel_context_ledger.instrumentation\n"
    settings_ = {f"OTEL_{signal}_EXPORTER": "none" for signal in ("TRACES", "METRICS", "LOGS")}
    done = subprocess.run(
        [command, sys.executable, "-c", program],
        env=os.environ | settings_,
        capture_output=True,
        check=False,
        timeout=60,
    )
    book = read(settings)
    assert (done.returncode, done.stderr, [row.text("task_id") for row in book.outcomes]) == (0, b"", ["T"])


def test_many_processes_tell_into_one_file(settings: Path) -> None:
    """Outcomes that come at the same time are each one whole line."""
    program = (
        "import sys; from otel_context_ledger import outcome\n"
        "for n in range(20): outcome(f'{sys.argv[1]}-{n}', success=True)"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, str(n)]) for n in range(4)]
    assert [process.wait(60) for process in running] == [0] * 4
    book = read(settings)
    assert (len(book.outcomes), len({row.text("task_id") for row in book.outcomes}), book.torn) == (80, 80, ())


def test_without_any_ledger_nothing_happens(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A program that tells its outcomes runs the same where no ledger is set up."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CONTEXT_LEDGER_FILE", raising=False)
    with caplog.at_level(logging.WARNING):
        outcome("T", success=True)
    assert (list(tmp_path.iterdir()), [record.getMessage() for record in caplog.records]) == (
        [],
        ["context ledger: outcome: no ledger runs here and CONTEXT_LEDGER_FILE names no file; it is not kept"],
    )


def test_a_file_that_cannot_be_written_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A directory in the place of the file costs the outcome, not the program."""
    monkeypatch.setenv("CONTEXT_LEDGER_FILE", str(tmp_path))
    logging.disable(logging.WARNING)
    outcome("T", success=True)
    logging.disable(logging.NOTSET)
    assert list(tmp_path.iterdir()) == []


def test_calls_are_restored_beside_outcomes(ledger: Ledger, settings: Path) -> None:
    """Lines that are no entries do not disturb the restoring of sessions from the file."""
    outcome("T", success=True)
    ledger.entries()
    settings.write_bytes(settings.read_bytes() + b'{"kind": "of the future", "self": {}}\n')
    again = Ledger(settings)
    again.instrumentor.uninstrument()
    again.instrumentor.instrument()
    assert [raw["kind"] for raw in store.read(settings).entries] == ["outcome", "of the future"]
