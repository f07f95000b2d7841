"""Whether the rules files on disk are what the prompt says."""

from __future__ import annotations

import pytest

from otel_context_ledger.correctness.policy import Policy, RulesFile, judge
from otel_context_ledger.model import Check, Findings

OLD = "# Rules\n\n- Never edit migrations/.\n- Reuse the idempotency key.\n- Answer in English.\n"
NEW = OLD.replace("Reuse the idempotency key", "Make a new idempotency key for each retry")
EDITED = RulesFile("AGENTS.md").changed(OLD, 100.0).changed(NEW, 400.0)
UNTOUCHED = RulesFile("AGENTS.md").changed(OLD, 100.0)


def found(file: RulesFile, *sent: str) -> Check:
    return judge(Policy().stand([file], [(text.encode(), text) for text in sent]), now=520.0)


SOUND = Check("consistent", Findings((), ("files=1",)))
TWICE = Check("consistent", Findings(("duplicated",), ("files=1",), ("copies=AGENTS.md:2",)))
STALE = Check("stale", Findings((), ("files=1", "stale=1"), ("stale=AGENTS.md:120s",)))
MISSING = Check("missing", Findings((), ("files=1", "missing=1"), ("missing=AGENTS.md",)))
STANDINGS = {
    "as it is on disk": (
        UNTOUCHED,
        [f"You are an agent.\n<rules>\n{OLD}</rules>"],
        SOUND,
    ),
    "wrapped and indented": (
        UNTOUCHED,
        ["\n".join(f"    > {line}" for line in OLD.splitlines())],
        SOUND,
    ),
    "an older version": (
        EDITED,
        [f"Rules:\n{OLD}"],
        STALE,
    ),
    "an older version that nobody saw on disk": (
        RulesFile("AGENTS.md").changed(NEW, 400.0),
        [OLD],
        STALE,
    ),
    "the beginning alone": (
        UNTOUCHED,
        ["# Rules\n\n- Never edit migrations/.\n- Reuse the idempotency key.\n[cut]"],
        Check("unknown", Findings((), ("files=1", "cut=1"), ("cut=AGENTS.md",))),
    ),
    "a rule that was taken out of the file since": (
        RulesFile("AGENTS.md").changed(OLD, 100.0).changed(OLD.replace("- Answer in English.\n", ""), 400.0),
        [OLD],
        STALE,
    ),
    "the same without the rule, appended after it": (
        RulesFile("AGENTS.md").changed(OLD, 100.0).changed(OLD.replace("- Answer in English.\n", ""), 400.0),
        [OLD, OLD.replace("- Answer in English.\n", "")],
        TWICE,
    ),
    "with a byte order mark, other line ends and an import": (
        RulesFile("AGENTS.md").changed("\ufeff" + OLD.replace("\n", "\r\n") + "@docs/more.md\r\n", 100.0),
        [OLD],
        SOUND,
    ),
    "not there": (
        UNTOUCHED,
        ["You are an agent."],
        MISSING,
    ),
    "injected twice": (
        UNTOUCHED,
        [OLD, f"<system-reminder>{OLD}"],
        TWICE,
    ),
    "injected twice in one text": (UNTOUCHED, [f"{OLD}\n<reminder>\n{OLD}</reminder>"], TWICE),
    "the new version appended after the old one": (
        EDITED,
        [OLD, f"This replaces it:\n{NEW}"],
        TWICE,
    ),
}


def test_comments_are_left_out_by_some_clients() -> None:
    """What stands in comments is for people and for the ledger: without it the text is the same."""
    marked = RulesFile("AGENTS.md").changed("Never edit migrations. <!-- constraint: C1 -->\n<!-- a\nnote -->\n", 0.0)
    (found,) = Policy().stand([marked], [(b"1", "You are an agent.\nNever edit migrations.\n")])
    assert found.verdict == "consistent"


@pytest.mark.parametrize(("file", "sent", "want"), STANDINGS.values(), ids=STANDINGS.keys())
def test_how_a_rules_file_stands_in_what_was_sent(file: RulesFile, sent: list[str], want: Check) -> None:
    """Current, older, missing and duplicated rules are told apart, whatever the wrapping."""
    assert found(file, *sent) == want


def test_a_rules_file_of_another_client_is_not_missing() -> None:
    """Of files that were only found, one that is sent is enough; one that the user named must be there."""
    other = RulesFile("CLAUDE.md").changed("Use tabs in all of the Makefiles.", 100.0)
    named = RulesFile("rules.md", wanted=True).changed("Use tabs in all of the Makefiles.", 100.0)
    sent = [(b"1", OLD)]
    verdicts = [judge(Policy().stand([UNTOUCHED, file], sent), now=520.0) for file in (other, named)]
    assert verdicts == [SOUND, Check("missing", Findings((), ("files=2", "missing=1"), ("missing=rules.md",)))]


def test_without_rules_files_the_policy_is_unknown() -> None:
    """No rules file is no proof of anything."""
    assert judge((), 0.0) == Check("unknown", Findings(evidence=("reason=no_rules_files",)))


MCP = "<mcp_instructions>\nUse search before read, and ask before you write.\n</mcp_instructions>"
MEMORY = "# Memory\n\nThe user likes short answers in plain English.\n"


@pytest.mark.parametrize(
    ("sent", "want"),
    [
        ([MCP, f"You are an agent.\n{MEMORY}"], {}),
        ([MCP, f"<system-reminder>\n{MCP}\n</system-reminder>"], {"mcp_instructions": 2}),
        ([f"{MEMORY}\n{MCP}\n{MEMORY}", MEMORY], {"memory": 3}),
        ([MCP, MCP.replace("search", "grep")], {}),
    ],
)
def test_injections_that_say_the_same_are_counted(sent: list[str], want: dict[str, int]) -> None:
    """What tool servers and memories say is told apart by its heading or tag; the same twice is one too many."""
    assert Policy().repeated([(text.encode(), text) for text in sent]) == want


def test_repeated_injections_are_told_without_rules_files_too() -> None:
    """They cost tokens whatever the rules are; of these nothing is known."""
    want = Findings(("duplicated",), (), ("reason=no_rules_files", "copies=mcp_instructions:2"))
    assert judge((), 0.0, {"mcp_instructions": 2}) == Check("unknown", want)


def test_a_file_that_comes_back_to_what_it_said_is_consistent_again() -> None:
    """Versions are compared by what they say, not by their number."""
    assert found(EDITED.changed(OLD, 500.0), OLD) == SOUND
