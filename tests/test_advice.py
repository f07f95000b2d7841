"""Advice as it comes with entries: what the ledger gives it to go by. Conditions: spec/vectors/advice.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from otel_context_ledger import thresholds
from otel_context_ledger.config import from_env
from otel_context_ledger.correctness.advice import WORDS, Advisor, Past
from tests.vectors import run_lineage

SPEC = Path(__file__).parent.parent / "spec"
BASE = {"model": "k3-256k", "messages": [{"role": "user", "content": "Fix the bug. " * 200}]}
ANSWER = {"role": "assistant", "content": "Done."}


def advised(*calls: dict[str, Any]) -> list[list[str]]:
    """The advice on each of these calls on Kimi Code, a minute apart."""
    rows = [
        {"at": 60.0 * at, "usage": {"prompt_tokens": 1_000, "cached_tokens": 900}, **call}
        for at, call in enumerate(calls)
    ]
    return [row["checks"]["advice"] for row in run_lineage({"surface": "kimi_code", "base": BASE, "calls": rows}, None)]


def test_a_session_that_changes_its_model_is_told_to_end() -> None:
    """The call that continues a session with another model gets the advice; the one after it is the new normal."""
    assert advised(
        {"session": "s"}, {"session": "s", "after": 0, "append": [ANSWER], "set": {"model": "k3"}},
        {"session": "s", "after": 1, "append": [ANSWER]},
    ) == [
        ["keep: state compatible; window <1 % full (1,000 of 262,144), 90 % reused"],
        ["new_session: model changed to k3 within the session, 90 % reused"],
        ["keep: state compatible; window <1 % full (1,000 of 1,048,576), 90 % reused"],
    ]  # fmt: skip


def test_another_session_is_no_change_of_this_one() -> None:
    """A fork that shares the history and asks another model is a session of its own."""
    first, second = advised({"session": "a"}, {"session": "b", "after": 0, "append": [ANSWER], "set": {"model": "k3"}})
    assert [text.split(":")[0] for text in first + second] == ["keep", "keep"]


def test_a_failed_call_has_no_advice_that_its_counts_would_bear() -> None:
    """Nobody knows how full the window was."""
    assert advised({"session": "s", "fails": "APIConnectionError"}) == [[]]


def test_sessions_are_forgotten_oldest_first() -> None:
    """What is remembered for advice is bounded."""
    advisor = Advisor(sessions=2)
    for name in ("a", "b", "c"):
        advisor.keep(name, Past(calls=7))
    assert [advisor.past(name).calls for name in ("a", "b", "c")] == [0, 7, 7]


def test_thresholds_are_settings(tmp_path: Path) -> None:
    """`[advice]` of context-ledger.toml; a wrong value is a sentence with it and the default, which is used."""
    file = tmp_path / "own.toml"
    file.write_text(
        '[advice]\ncompact_at = 0.9\nhigh_reuse = 90\ncompactions = "3"\nsoon = 1\n'
        '[advice.expected]\ntool_schema_hash = "xxh3:1"\nmodel_id = "k3"\n', "utf-8",
    )  # fmt: skip
    found = from_env({"CONTEXT_LEDGER_CONFIG": str(file)})
    assert found.advice == thresholds.Thresholds(compact_at=0.9, expected={"tool_schema_hash": "xxh3:1"})
    assert found.warnings == (
        "own.toml: [advice] high_reuse = 90 is not a share above 0 and up to 1; using the default (0.8)",
        "own.toml: [advice] compactions = '3' is not a whole number above 0; using the default (3)",
        "own.toml: [advice] soon = 1 is none of compact_at, high_reuse, full_after, compactions, compaction_calls, "
        "room_calls, large_window, repeated_bytes, expected; ignored",
        "own.toml: [advice.expected] model_id = 'k3' is not a digest of one of policy_hash, tool_schema_hash, "
        "tool_contract_hash, repo_snapshot, summary_hash; ignored",
    )


def test_thresholds_in_the_environment_go_before_the_file(tmp_path: Path) -> None:
    """`CONTEXT_LEDGER_ADVICE` sets some of them; the file's others and its digests stay."""
    file = tmp_path / "own.toml"
    file.write_text('[advice]\ncompact_at = 0.9\nroom_calls = 7\n[advice.expected]\npolicy_hash = "xxh3:1"\n', "utf-8")
    found = from_env({"CONTEXT_LEDGER_CONFIG": str(file), "CONTEXT_LEDGER_ADVICE": "compact_at=0.5, compactions=4"})
    assert (found.advice, found.warnings) == (
        thresholds.Thresholds(compact_at=0.5, compactions=4, room_calls=7, expected={"policy_hash": "xxh3:1"}), (),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("compact_at=80", "compact_at is not a share above 0 and up to 1"),
        ("compactions=2.5", "compactions is not a whole number above 0"),
        ("high_reuse=nan", "high_reuse is not a share above 0 and up to 1"),
        ("soon=1", "'soon' is none of compact_at, high_reuse, full_after, compactions, compaction_calls, room_calls, "
         "large_window, repeated_bytes"),
        ("compact_at", "compact_at is not a share above 0 and up to 1"),
    ],
)  # fmt: skip
def test_wrong_thresholds_in_the_environment(raw: str, reason: str) -> None:
    """One sentence with the value and what is wrong with it, and the defaults."""
    found = from_env({"CONTEXT_LEDGER_ADVICE": raw})
    assert (found.advice, found.warnings) == (
        thresholds.DEFAULTS,
        (f"CONTEXT_LEDGER_ADVICE: {raw!r} is not threshold=number,…; using the default ({reason})",),
    )


def test_every_word_has_its_vector_and_stands_in_the_registry() -> None:
    """Each word of advice is given in a vector, and the registry's note of `context_ledger.advice` lists it."""
    cases = json.loads((SPEC / "vectors" / "advice.json").read_text("utf-8"))["cases"]
    given = {text.partition(":")[0] for case in cases for text in case["want"]}
    rows = yaml.safe_load((SPEC / "registry" / "attributes.yaml").read_text("utf-8"))["attributes"]
    note = next(row["note"] for row in rows if row["key"] == "context_ledger.advice")
    assert (given, [word for word in WORDS if word not in note]) == (set(WORDS), [])
