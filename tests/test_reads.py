"""Accesses told from a history, whatever it holds: in pieces and at once, from nonsense, within bounds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from otel_context_ledger.correctness import accesses, freshness, looks, reads
from otel_context_ledger.correctness.accesses import Access, Touch
from otel_context_ledger.correctness.history import ToolCall, step
from otel_context_ledger.correctness.reads import Known, Log, Reading, Shown

NAMES = accesses.shipped()
BASE = "/work/app"
# On a busy machine the first examples may take long to draw.
QUIET = settings(deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])

paths = st.sampled_from(["a.py", "./a.py", "/work/app/a.py", "b/../b.py", "/etc/hosts", "", "~", "\0", "x" * 5000])
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | paths,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
keys = st.sampled_from([key for keys in NAMES.arguments.values() for key in keys] + ["command", "other"])
arguments = st.dictionaries(keys, anything, max_size=4)
tools = st.sampled_from([*NAMES.tools, "ReadFile", "mcp__files__read_file", "unknown"])
results = st.sampled_from(["     1\tx\n     2\ty\n", "File unchanged since last read.", "error: no", "", "x\n" * 700])


def call(name: str, given: Any, id: str) -> dict[str, Any]:
    made = {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
    return {"role": "assistant", "content": None, "tool_calls": [made]}


@st.composite
def histories(draw: st.DrawFn) -> list[Shown]:
    """Calls with their results, some without, in an order that may be wrong."""
    messages: list[dict[str, Any]] = []
    for number in range(draw(st.integers(0, 8))):
        id = f"c{draw(st.integers(0, 5))}"
        messages.append(call(draw(tools), draw(arguments), id))
        if draw(st.booleans()):
            messages.append({"role": "tool", "tool_call_id": id, "content": draw(results)})
        if draw(st.booleans()):
            messages.append({"role": "user", "content": f"turn {number}"})
    return [Shown(step(message), float(at), draw(st.booleans())) for at, message in enumerate(messages)]


@QUIET
@given(histories(), st.integers(0, 24))
def test_in_pieces_as_at_once(history: list[Shown], cut: int) -> None:
    """A history that is read in two pieces shows the same as one that is read at once."""
    whole = reads.fold(Log(), history, NAMES, BASE)
    pieces = reads.fold(reads.fold(Log(), history[:cut], NAMES, BASE), history[cut:], NAMES, BASE)
    assert (dict(whole.files), dict(whole.waiting)) == (dict(pieces.files), dict(pieces.waiting))


@QUIET
@given(
    histories(), st.lists(st.tuples(st.sampled_from([None, b"", b"x\ny\n", b"x\nz\n"]), st.integers(0, 30)), max_size=5)
)
def test_an_opinion_is_always_a_verdict(history: list[Shown], looked: list[tuple[bytes | None, int]]) -> None:
    """Whatever was read and found, a file has a known word, is held within its lines, and repeats at most itself."""
    seen = looks.Looks(looks.INSIDE)
    for content, at in sorted(looked, key=lambda pair: pair[1]):
        seen = seen.after(content, False, float(at))
    for known in reads.fold(Log(), history, NAMES, BASE).files.values():
        found = freshness.opinion(known, seen)
        assert found.word in ("fresh", "stale", "unknown")
        assert found.held is None or 0 <= found.held <= (found.lines or 0)
        assert 0 <= found.repeated <= sum(reading.size for reading in known.readings)


@pytest.mark.parametrize("sent", [None, 7, "", "{", "[]", b"x", {"path": ["a", {"path": 3}]}, {"path": {"path": "a"}}])
def test_odd_arguments_are_no_access_or_one(sent: Any) -> None:
    """Arguments of any kind raise nothing."""
    found = accesses.touch(ToolCall("c", "ReadFile", sent), NAMES, BASE)
    assert found in (Touch(), Touch((Access("/work/app/a", alone=True),)))


def test_spellings_of_one_file() -> None:
    """A file is one file, relative or absolute, with dots or without, as text or as a file URL."""
    told = ("a.py", "./a.py", "b/../a.py", "/work/app/a.py", "file:///work/app/a.py")
    assert {accesses.absolute(path, BASE) for path in told} == {"/work/app/a.py"}


def test_what_is_kept_is_bounded() -> None:
    """Of many files and many reads of one the latest are kept, and it is said how many files are not."""
    many = [call("ReadFile", {"path": f"{n}.py"}, f"c{n}") for n in range(reads.MAX_FILES + 50)]
    answers = [{"role": "tool", "tool_call_id": f"c{n}", "content": "x"} for n in range(reads.MAX_FILES + 50)]
    again = [call("ReadFile", {"path": "a.py"}, "a"), {"role": "tool", "tool_call_id": "a", "content": "x"}] * 50
    pairs = [message for pair in zip(many, answers, strict=True) for message in pair]
    log = reads.fold(Log(), [Shown(step(one), 1.0) for one in (*pairs, *again)], NAMES, BASE)
    assert (len(log.files), len(log.files["/work/app/a.py"].readings)) == (reads.MAX_FILES, reads.MAX_READINGS)
    assert log.left_out == 51
    waiting = reads.fold(Log(), [Shown(step(one), 1.0) for one in many], NAMES, BASE).waiting
    assert len(waiting) == reads.MAX_WAITING


def test_files_that_are_left_out_are_told_beside_the_verdict() -> None:
    """A fresh verdict is on the files that are kept, and says how many it is not on."""
    read = Known((Reading(False, 1.0, True, None, 1, None, 1, 1, None, False),))
    seen = looks.Shelved(True, False, {"/a": looks.Looks(looks.INSIDE).after(b"x", True, 2.0)})
    check = freshness.judge({"/a": read}, seen, freshness.Judged(), lambda path, since: (), 2).check
    assert check is not None
    assert (check.verdict, check.findings.counts) == ("fresh", ("files=1", "fresh=1/1", "left_out=2"))


def test_a_history_without_files_costs_nothing() -> None:
    """Where no message touches a file, the log stays the very same object."""
    log = Log({"/a": Known((Reading(False, 1.0, True, None, 1, None, 1, 1, None, False),))})
    said = [Shown(step({"role": "user", "content": "hi"}), 2.0), Shown(step(call("Grep", {"path": "a"}, "g")), 2.0)]
    assert reads.fold(log, said, NAMES, BASE) is log


def test_a_bad_table_is_sentences() -> None:
    """What [reads] says and cannot be used is told, and the rest of it holds."""
    table = {"tools": {"fetch": "read", "push": "shove", "both": {"a": "read", "b": 1}}, "arguments": {"path": "x"},
             "results": {"stubs": ["Same again"]}, "other": {}}  # fmt: skip
    names, bad = accesses.lexicon(table)
    assert (names.tools["fetch"], names.results["stubs"][0], len(bad)) == ("read", "same again", 4)


def test_a_bad_shell_is_sentences() -> None:
    """A program is named like a known one, or a sentence says that it is not."""
    table = {"shell": {"programs": {"bat": "cat", "cut": "dog", "awk": 3}, "harmless": ["rm"]}}
    names, bad = accesses.lexicon(table)
    assert (names.forms.programs["bat"], len(bad)) == (names.forms.programs["cat"], 3)
    assert accesses.lexicon({"shell": [], "arguments": {"paths": ["p"]}})[1] == (
        "[reads.arguments] paths is not known; ignored", "[reads] shell is no table; ignored",
    )  # fmt: skip


def test_what_programs_say_is_bounded_and_stable() -> None:
    """A session's files are the same object until another is said; many sessions push out the oldest."""
    said = reads.Declared()
    said.say("S", "/a", 1.0)
    before = said.of("S")
    assert said.of("S") is before
    for number in range(reads.MAX_SESSIONS):
        said.say(f"s{number}", "/a", 2.0)
    assert said.of("S") == {}
