"""What is counted of correctness, read back from the exporter of one small program: names, values, attributes."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from otel_context_ledger import compaction, constraint, outcome, session, task
from otel_context_ledger import semconv as s
from tests.conftest import Ledger, Signals
from tests.provider import Provider
from tests.test_courses import own_context, summary
from tests.test_files import Agent, git_settings, repository

__all__ = ["git_settings", "own_context", "repository"]

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

COUNTED = (s.METRIC_CHECKS, s.METRIC_COMPACTIONS, s.METRIC_COMPACTION_TOKENS, s.METRIC_TASKS, s.METRIC_REPEATED_READ)
SHARED = {
    s.GEN_AI_PROVIDER_NAME: "moonshot_ai", s.GEN_AI_REQUEST_MODEL: "kimi-k3",
    s.CONTEXT_LEDGER_PROVIDER_SURFACE: "kimi_open_platform", s.GEN_AI_AGENT_NAME: "counting-agent",
}  # fmt: skip
TEXT = "     1\tx = 1\n"
Points = Counter[tuple[str, tuple[tuple[str, Any], ...]]]


def points(signals: Signals) -> Points:
    """Every count so far, by its metric and attributes."""
    found = signals.counted()
    return Counter({(name, tuple(sorted(own.items()))): n for name in COUNTED for own, n in found.get(name, [])})


@pytest.fixture
def counting(settings: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """A process with an agent's name, at work in the repository; not instrumented yet."""
    monkeypatch.setenv("CONTEXT_LEDGER_REPOSITORY", str(repository))
    monkeypatch.setenv("CONTEXT_LEDGER_AGENT", SHARED[s.GEN_AI_AGENT_NAME])
    return Ledger(settings)


def program(provider: Provider, ledger: Ledger) -> None:
    """Two calls, the second with a file read twice; a compaction that loses the rule; a call after it; an outcome."""
    constraint("C1", "Never edit files under migrations/.")
    agent = Agent(provider, ledger)
    with task("counted"), session("counted"):
        agent.runs("ReadFile", TEXT, path="a.py").asks()
        agent.runs("ReadFile", TEXT, path="a.py").asks()
        with compaction(trigger="manual", tokens_before=9_000) as told:
            told.done("Goal: billing.", tokens_after=100)
        agent.said = [agent.said[0], summary("Goal: billing.")]
        agent.asks()
        outcome(tests="failed")


def test_what_is_counted_of_correctness(provider: Provider, counting: Ledger, signals: Signals) -> None:
    """Checks by pillar and verdict, compactions by all four words, their tokens by side, tasks by outcome, bytes read
    again: under the shared attributes, and under no other than the registry's."""
    before = points(signals)
    counting.instrumentor.instrument()
    try:
        program(provider, counting)
    finally:
        counting.instrumentor.uninstrument()
    new = points(signals) - before
    named = {(name, tuple(sorted(own.items()))): n for name, own, n in wanted(counting)}
    assert {key: n for key, n in new.items() if key[0] != s.METRIC_CHECKS} == named
    verdicts = {tuple(dict(own)[key] for key in PAIR): n for (name, own), n in new.items() if name == s.METRIC_CHECKS}
    assert verdicts == written(counting)
    assert [dict(own) for _, own in new if not {key for key, _ in own} <= set(s.METRICS[_].attributes)] == []


PAIR = (s.CONTEXT_LEDGER_PILLAR, s.CONTEXT_LEDGER_VERDICT)
FIELDS = {
    "policy": "policy_check", "repository": "repo_check", "tools": "tools_check", "constraints": "constraints_check",
    "state": "state_check",
}  # fmt: skip


def wanted(ledger: Ledger) -> list[tuple[str, dict[str, Any], float]]:
    """What must have been counted beside the checks."""
    (over,) = [event for event in ledger.compactions() if event["settled"]]
    words = {
        s.CONTEXT_LEDGER_COMPACTION_KIND: "full", s.CONTEXT_LEDGER_COMPACTION_TRIGGER: "manual",
        s.CONTEXT_LEDGER_COMPACTION_OUTCOME: "done", s.CONTEXT_LEDGER_COMPACTION_VALIDATOR_RESULT: "fail",
    }  # fmt: skip
    agent = {s.GEN_AI_AGENT_NAME: SHARED[s.GEN_AI_AGENT_NAME]}
    return [
        (s.METRIC_COMPACTIONS, SHARED | words, 1),
        (s.METRIC_COMPACTION_TOKENS, SHARED | {s.CONTEXT_LEDGER_SIDE: "before"}, over["tokens_before"]),
        (s.METRIC_COMPACTION_TOKENS, SHARED | {s.CONTEXT_LEDGER_SIDE: "after"}, over["tokens_after"]),
        (s.METRIC_TASKS, agent | {s.CONTEXT_LEDGER_TASK_OUTCOME: "failure"}, 1),
        (s.METRIC_REPEATED_READ, SHARED, len(TEXT)),
    ]


def written(ledger: Ledger) -> dict[tuple[str, str], int]:
    """The verdicts in the lines of the calls, by pillar and verdict; there are some that are good and some that are
    bad."""
    calls = [line for line in ledger.entries() if line.get("kind") is None]
    found = Counter(
        (name, verdict)
        for call in calls
        for name, key in FIELDS.items()
        if (verdict := call["checks"][key]) is not None
    )
    assert {("state", "compatible"), ("constraints", "lost")} <= set(found)
    return dict(found)
