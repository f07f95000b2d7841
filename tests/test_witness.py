"""What calls alone show of a compaction, from the request bodies of known clients to the audited event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from otel_context_ledger import model as m
from otel_context_ledger.correctness.compaction.course import Course, Rules
from otel_context_ledger.correctness.compaction.event import Compaction
from otel_context_ledger.correctness.compaction.fold import fold
from otel_context_ledger.correctness.compaction.manifest import Item, Manifest
from otel_context_ledger.correctness.constraints import Constraint
from otel_context_ledger.ledger import Draft, Ledger
from otel_context_ledger.witness import Witness
from tests.vectors import LORE, find

RULE = "Never edit files under migrations/"
RULES = Rules(declared=Manifest((Item(Constraint("C1", RULE)),)))
TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def answer(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def result(text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "t1", "content": text}


CALL = {"role": "assistant", "content": "", "tool_calls": [{"id": "t1", "function": {"name": "read"}}]}
HISTORY = [message for n in range(8) for message in (user(f"step {n}"), answer(f"done {n} " + "word " * 40))]


class Agent:
    """An agent whose calls are seen by a ledger, with the course of its session."""

    def __init__(self, system: str = "You are an agent.") -> None:
        self.ledger, self.surface, self.system = Ledger(LORE, "test"), find("kimi_open_platform"), system
        self.course, self.told, self.clock = Course(), list[Compaction](), 0.0
        self.kinds: list[str] = []

    def opens(self, messages: Sequence[Any], model: str = "kimi-k3") -> tuple[Draft, Witness]:
        """A call that is about to be made."""
        self.clock += 2.0
        body = {"model": model, "prompt_cache_key": "s", "tools": TOOLS}
        body["messages"] = [{"role": "system", "content": self.system}, *messages]
        request = self.surface.read_request(body)
        around = m.Surroundings(f"e{self.clock:.0f}", self.clock)
        draft = self.ledger.open(self.surface, "host", request, around)
        forms, window = LORE.forms, self.surface.facts.window
        return draft, Witness(around, draft.link, draft.outline, request, forms.summary_openings, window)

    def call(self, messages: Sequence[Any], tokens: int = 9000, output: int = 5) -> Agent:
        """One call, from request to answer."""
        draft, seen = self.opens(messages)
        self.kinds.append(draft.kind)
        usage = {"prompt_tokens": tokens, "completion_tokens": output, "cached_tokens": 0}
        response = self.surface.read_response({"id": "r", "model": "kimi-k3", "choices": [], "usage": usage})
        happened = [seen.opened(self.course.waiting), seen.called(response, self.clock + 1.0)]
        if draft.kind == "compaction":
            happened = [seen.summarised(response, self.clock + 1.0)]
        self.ledger.close(draft, response, m.Ending(), m.Timing(1.0), self.clock + 1.0)
        for happening in happened:
            self.course, more = fold(self.course, happening, RULES)
            self.told += [event for event in more if event.settled]
        return self


KIMI_CLI = {
    "role": "user",
    "content": [
        {"type": "text", "text": "<system>Previous context has been compacted. Here is the output:</system>"},
        {"type": "text", "text": f"Goal: billing. {RULE}."},
    ],
}
KIMI_CODE = user(f"The conversation so far has been compacted to free up context. Goal: billing. {RULE}.")
CLAUDE_CODE = user(f"This session is being continued from a previous conversation. Goal: billing. {RULE}.")
CODEX = user(f"Another language model started to solve this problem. Goal: billing. {RULE}.")
AFTER = {
    "kimi-cli": ([KIMI_CLI, *HISTORY[-2:], user("go on")], "1-14"),
    "kimi-code": ([user("step 0\nstep 1"), KIMI_CODE, user("<system-reminder>date</system-reminder>")], "1-17"),
    "Claude Code": ([CLAUDE_CODE, user("go on")], "1-16"),
    "Codex": ([user("step 7"), user("rules"), CODEX], "1-17"),
}


@pytest.mark.parametrize(("after", "replaced"), AFTER.values(), ids=AFTER.keys())
def test_a_known_client_compacts(after: list[Any], replaced: str) -> None:
    """A summary with a known opening is a compaction of all that did not stay, audited, and is told once."""
    agent = Agent().call(HISTORY).call([*HISTORY, user("go on")], 9500).call(after, 1200).call([*after, user("more")])
    assert [
        (e.kind, e.outcome, e.trigger, e.before.tokens, e.after.tokens, e.source_range, e.audit and e.audit.result)
        for e in agent.told
    ] == [("full", "done", None, 9500, 1200, replaced, "pass")]


ASKED = {
    "kimi-cli": ("You are a helpful assistant that compacts conversation context.", [user("## Message 1\nRole: user")]),
    "kimi-code": (
        "Agent.",
        [*HISTORY, user("You are about to run out of context. Write a first-person handoff note to")],
    ),
    "Claude Code": (
        "Agent.",
        [
            *HISTORY[:-1],
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "go on"},
                    {
                        "type": "text",
                        "text": "CRITICAL: Respond with TEXT ONLY.\n\nYour task is to create a detailed summary of the "
                        "conversation so far",
                    },
                ],
            },
        ],
    ),
    "Claude Code, of the end alone": (
        "Agent.",
        [*HISTORY, user("Your task is to create a detailed summary of the RECENT portion of the conversation")],
    ),
    "Codex": ("Agent.", [*HISTORY, user("You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff")]),
}
NOT_ASKED = {
    "a file that was read": (
        "Agent.",
        [*HISTORY, CALL, result("x\nYou are performing a CONTEXT CHECKPOINT COMPACTION.")],
    ),
    "a quotation": ("Agent.", [*HISTORY, user('Where is "You are performing a CONTEXT CHECKPOINT COMPACTION" from?')]),
    "an answer": ("Agent.", [*HISTORY, answer("You are performing a CONTEXT CHECKPOINT COMPACTION.")]),
}


@pytest.mark.parametrize(
    ("system", "messages", "kind"),
    [*((*asked, "compaction") for asked in ASKED.values()), *((*other, "agent") for other in NOT_ASKED.values())],
    ids=[*ASKED, *NOT_ASKED],
)
def test_who_asks_for_a_summary(system: str, messages: list[Any], kind: str) -> None:
    """Known clients do by the opening of a system block or by a line of their user's last message; what an agent reads
    or quotes of such a prompt leaves it an agent."""
    agent = Agent(system).call(HISTORY).call(messages)
    assert agent.kinds[-1] == kind


def test_summarising_calls_belong_to_it() -> None:
    """What kimi-cli asks for a summary with is no call of the agent's; it is counted as an attempt."""
    agent = Agent().call(HISTORY)
    agent.system = "You are a helpful assistant that compacts conversation context."
    agent.call([user("the whole history")])
    agent.system = "You are an agent."
    agent.call(AFTER["kimi-cli"][0])
    assert [(event.id, event.attempts) for event in agent.told] == [("c-e4", 1)]


def test_an_empty_summary_that_is_not_used() -> None:
    """A summarising call without an answer, after which the agent goes on as before, is empty and no success."""
    agent = Agent().call(HISTORY)
    agent.system = "You are a helpful assistant that compacts conversation context."
    agent.call([user("the whole history")], output=0)
    agent.system = "You are an agent."
    agent.call([*HISTORY, user("go on")])
    assert [(event.outcome, event.reason) for event in agent.told] == [("empty", "empty_summary")]


def test_a_rule_that_the_system_brings_back() -> None:
    """What the summary lost and the system says is held by the policy."""
    summary = user("This session is being continued from a previous conversation. Goal: billing.")
    (event,) = Agent(f"You are an agent. {RULE}.").call(HISTORY).call([summary, user("go on")]).told
    assert event.audit is not None
    assert [(s.match.verdict, s.via) for s in event.audit.standings] == [("held", "policy")]


def test_what_stands_before_the_providers_own_summary() -> None:
    """In a history that only grew the provider passes over what comes before its summary: a rule that stands there is
    lost, one that is said again is not."""
    asked, summary = user(f"Fix it. {RULE}."), [{"type": "compaction", "content": "Goal: billing."}]
    grown = [asked, *HISTORY, {"role": "assistant", "content": summary}]
    told = [Agent().call([asked, *HISTORY]).call([*grown, user(text)]).told[0] for text in ("go on", f"Go on. {RULE}.")]
    assert [(e.kind, e.source_range, e.audit and e.audit.result) for e in told] == [
        ("provider", None, "fail"),
        ("provider", None, "pass"),
    ]


def test_a_text_in_place_of_many_messages() -> None:
    """A client of no known form: the history gave way to something shorter, but nobody can tell whether that is a
    summary or the user's next question. What was to survive is looked for, and nothing is called lost."""
    reminder = user("<system-reminder>mode</system-reminder>")
    before = [user(RULE), *HISTORY, reminder]
    asked, kept = [user("Now write the docs."), reminder], [user(f"{RULE}. Now write the docs."), reminder]
    told = [Agent().call(before).call(after).told[0] for after in (asked, kept)]
    assert [(e.kind, e.summary_hash, e.audit and e.audit.result, e.audit and e.audit.lost) for e in told] == [
        ("full", None, "not_verifiable", ()),
        ("full", None, "pass", ()),
    ]


WHY = {
    "nothing else": ((), True),
    "what a compaction does": ((m.Cause("history_compacted"), m.Cause("granularity")), True),
    "another model": ((m.Cause("model_changed"), m.Cause("history_compacted")), False),
    "too late": ((m.Cause("retention_expired"),), False),
}


@pytest.mark.parametrize(("causes", "useful"), WHY.values(), ids=WHY.keys())
def test_a_header_that_could_have_been_read_from_the_cache(causes: tuple[m.Cause, ...], useful: bool) -> None:
    """Tools and system of the same bytes are said to be so only if nothing but the history made the cache useless."""
    _, seen = Agent().call(HISTORY).opens(HISTORY)
    assert seen.called(m.Response(), 9.0, None, causes).header_same is useful


def test_a_smaller_window() -> None:
    """A call shows the window of its model, and that of the call that it goes on from."""
    _, seen = Agent().call(HISTORY).opens([CLAUDE_CODE, user("go on")], "kimi-k2.6")
    shown = seen.opened(waiting=False)
    assert (shown.continues, shown.window_before, shown.window) == ("e2", 1_048_576, 262_144)


def test_results_that_were_cut() -> None:
    """Long results made short in their places are a micro compaction, without a summary."""
    long, short = [*HISTORY, CALL, result("word " * 2000)], [*HISTORY, CALL, result("word [cut]")]
    (event,) = Agent().call([*long, user("go on")]).call([*short, user("go on"), answer("ok"), user("more")]).told
    assert (event.kind, event.source_range, event.summary_hash, event.audit) == ("micro", "18-18", None, None)


def test_a_result_whose_call_was_cut_off() -> None:
    """CP24: the history that is left holds a result without its call."""
    before, after = [*HISTORY, CALL, result("text")], [CLAUDE_CODE, result("text"), user("go on")]
    (event,) = Agent().call(before).call(after, 1200).told
    assert [(s.name, s.evidence) for s in event.symptoms] == [("broken_tool_pair", ("result_without_call=t1",))]


@pytest.mark.parametrize(
    "after",
    [[*HISTORY, CODEX], HISTORY[:4], [*HISTORY[:6], user("another question")]],
    ids=["a user who writes like a summary", "the end taken back", "an edited message"],
)
def test_what_is_no_compaction(after: list[Any]) -> None:
    """A history that grew, was taken back or edited was not compacted, whatever it says."""
    assert Agent().call(HISTORY).call(after).call([*after, answer("ok"), user("more")]).told == []


def test_the_first_call_of_a_session_shows_nothing() -> None:
    """A history that begins with a summary was compacted elsewhere: nobody knows what it replaced."""
    assert Agent().call([CLAUDE_CODE, user("go on")]).call([CLAUDE_CODE, user("go on"), answer("ok")]).told == []
