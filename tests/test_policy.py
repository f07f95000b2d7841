"""Whether the rules files on disk are what the prompt says."""

from __future__ import annotations

import pytest

from otel_context_ledger.correctness.finding import Finding
from otel_context_ledger.correctness.policy import Policy, RulesFile, judge

OLD = "# Rules\n\n- Never edit migrations/.\n- Reuse the idempotency key.\n- Answer in English.\n"
NEW = OLD.replace("Reuse the idempotency key", "Make a new idempotency key for each retry")
EDITED = RulesFile("AGENTS.md").changed(OLD, 100.0).changed(NEW, 400.0)
UNTOUCHED = RulesFile("AGENTS.md").changed(OLD, 100.0)


def found(file: RulesFile, *sent: str) -> Finding:
    return judge(Policy().stand([file], [(text.encode(), text) for text in sent]), now=520.0)


STANDINGS = {
    "as it is on disk": (UNTOUCHED, [f"You are an agent.\n<rules>\n{OLD}</rules>"], Finding("consistent", 0, 1)),
    "wrapped and indented": (
        UNTOUCHED,
        ["\n".join(f"    > {line}" for line in OLD.splitlines())],
        Finding("consistent", 0, 1),
    ),
    "an older version": (EDITED, [f"Rules:\n{OLD}"], Finding("stale", 1, 1, ("stale=AGENTS.md:120s",))),
    "an older version that nobody saw on disk": (
        RulesFile("AGENTS.md").changed(NEW, 400.0),
        [OLD],
        Finding("stale", 1, 1, ("stale=AGENTS.md:120s",)),
    ),
    "not there": (UNTOUCHED, ["You are an agent."], Finding("missing", 1, 1, ("missing=AGENTS.md",))),
    "injected twice": (
        UNTOUCHED,
        [OLD, f"<system-reminder>{OLD}"],
        Finding("consistent", 0, 1, ("copies=AGENTS.md:2",)),
    ),
    "the new version appended after the old one": (
        EDITED,
        [OLD, f"This replaces it:\n{NEW}"],
        Finding("consistent", 0, 1, ("copies=AGENTS.md:2",)),
    ),
}


@pytest.mark.parametrize(("file", "sent", "want"), STANDINGS.values(), ids=STANDINGS.keys())
def test_how_a_rules_file_stands_in_what_was_sent(file: RulesFile, sent: list[str], want: Finding) -> None:
    """Current, older, missing and duplicated rules are told apart, whatever the wrapping."""
    assert found(file, *sent) == want


def test_without_rules_files_the_policy_is_unknown() -> None:
    """No rules file is no proof of anything."""
    assert judge((), 0.0) == Finding("unknown", None, 0, ("no_rules_files",))


def test_a_file_that_comes_back_to_what_it_said_is_consistent_again() -> None:
    """Versions are compared by what they say, not by their number."""
    assert found(EDITED.changed(OLD, 500.0), OLD) == Finding("consistent", 0, 1)
