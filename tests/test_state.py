"""Whether a history is whole for the model that gets it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_context_ledger.correctness.history import steps
from otel_context_ledger.correctness.state import UNSEEN, Author, Ends, Seen, State, credited, fold, judge, seen_before
from otel_context_ledger.model import Check, Findings
from otel_context_ledger.surfaces import called
from tests.conftest import Ledger
from tests.provider import Answer, Provider, always
from tests.provider import call as tool

USER = {"role": "user", "content": "fix it"}


def call(*names: str, thought: bool = False) -> dict[str, Any]:
    calls = [{"id": name, "function": {"name": "read", "arguments": "{}"}} for name in names]
    return {"role": "assistant", "tool_calls": calls, **({"reasoning_content": "because"} if thought else {})}


def result(name: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "content": "text"}


def answer(name: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": "text"}]}


def finding(messages: list[Any], whole: bool = True, replayed: bool = True, seen: Seen = UNSEEN) -> Check:
    return judge(fold(State(), steps(messages), seen), Ends(whole, replayed, offset=1))


HISTORIES = {
    "every call has its result": (
        [USER, call("a", "b"), result("b"), result("a"), USER],
        Check("compatible", Findings((), ("turns=1",))),
    ),
    "CP24: a cut between a call and its result": (
        [USER, result("gone"), USER],
        Check(
            "broken_tool_pair",
            Findings(("result_without_call",), ("turns=0", "broken=1"), ("result_without_call=gone",)),
        ),
    ),
    "a turn that passes over a call": (
        [USER, call("a", "b"), result("a"), USER],
        Check(
            "broken_tool_pair", Findings(("call_without_result",), ("turns=1", "broken=1"), ("call_without_result=b",))
        ),
    ),
    "calls still waiting at the end": ([USER, call("a")], Check("compatible", Findings((), ("turns=1",)))),
    "reasoning kept": (
        [USER, call("a", thought=True), result("a"), call("b", thought=True), result("b")],
        Check("compatible", Findings((), ("turns=2",))),
    ),
    "a turn without reasoning that nobody saw come": (
        [USER, call("a", thought=True), result("a"), call("b"), result("b")],
        Check("unknown", Findings((), ("turns=2",), ("reason=reasoning_not_seen",))),
    ),
    "a call that waits while another has its result": (
        [USER, call("a", "b"), result("b")],
        Check(
            "broken_tool_pair", Findings(("call_without_result",), ("turns=1", "broken=1"), ("call_without_result=a",))
        ),
    ),
    "a call that the next step of the same turn passed over": (
        [USER, call("a", "b"), result("a"), call("c"), result("c")],
        Check(
            "broken_tool_pair", Findings(("call_without_result",), ("turns=2", "broken=1"), ("call_without_result=b",))
        ),
    ),
    "Anthropic: results in two messages of the user, which are one": (
        [USER, call("a", "b"), answer("a"), answer("b")],
        Check("compatible", Findings((), ("turns=1",))),
    ),
    "Responses: a result that comes after another call": (
        [
            USER,
            {"type": "function_call", "call_id": "a", "name": "read", "arguments": "{}"},
            {"type": "function_call", "call_id": "b", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "b", "output": "x"},
            {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "y"},
            {"type": "function_call_output", "call_id": "c", "output": "z"},
        ],
        Check("compatible", Findings((), ("turns=3",))),
    ),
    "a model that never reasoned": ([USER, call("a"), result("a")], Check("compatible", Findings((), ("turns=1",)))),
    "calls that the provider answers itself": (
        [USER, {"role": "assistant", "content": [{"type": "server_tool_use", "id": "s1", "name": "search"}]}, USER],
        Check("compatible", Findings((), ("turns=1",))),
    ),
    "Responses: reasoning as an item before parallel calls": (
        [
            USER,
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "call_id": "a", "name": "read", "arguments": "{}"},
            {"type": "function_call", "call_id": "b", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "x"},
            {"type": "function_call_output", "call_id": "b", "output": "y"},
        ],
        Check("compatible", Findings((), ("turns=2",))),
    ),
}


@pytest.mark.parametrize(("messages", "want"), HISTORIES.values(), ids=HISTORIES.keys())
def test_a_history_is_whole_or_says_what_it_lacks(messages: list[Any], want: Check) -> None:
    """Calls and results are paired by id, reasoning by turn."""
    assert finding(messages) == want


def test_a_result_whose_call_the_provider_keeps_is_unknown() -> None:
    """With the rest of the history at the provider, nothing here proves that the call is gone."""
    assert finding([result("kept")], whole=False) == Check(
        "unknown", Findings((), ("turns=0",), ("reason=history_at_provider",))
    )


def test_reasoning_that_need_not_come_back_is_not_missed() -> None:
    """Only surfaces that want reasoning back are held to it."""
    assert finding(TURNS, replayed=False, seen=Seen(owed={"b"})) == Check("compatible", Findings((), ("turns=2",)))


@pytest.mark.parametrize(
    ("seen", "want"),
    [
        (Seen(owed={"b"}), Check("reasoning_dropped", Findings((), ("turns=2", "bare=1"), ("message=4",)))),
        (Seen(free={"b"}), Check("compatible", Findings((), ("turns=2",)))),
        (UNSEEN, Check("unknown", Findings((), ("turns=2",), ("reason=reasoning_not_seen",)))),
    ],
)
def test_reasoning_is_missed_only_where_it_was_seen(seen: Seen, want: Check) -> None:
    """A turn without reasoning lacks it if it came with some, is whole if it came without, and else nobody knows."""
    assert finding(TURNS, seen=seen) == want


def test_a_history_tells_of_its_calls_to_one_made_of_it() -> None:
    """What was sent with reasoning is owed it, what was known to have none is free; an id of both says nothing."""
    ids = [
        call("a", thought=True),
        result("a"),
        call("b"),
        result("b"),
        call("x", thought=True),
        result("x"),
        call("x"),
    ]
    told = seen_before(fold(State(), steps(ids), Seen(free={"b", "x"})))
    assert (told, seen_before(fold(State(), steps(ids)))) == (Seen({"a"}, {"b", "x"}), Seen({"a"}))


def test_items_of_one_answer_are_one_turn() -> None:
    """Responses has an item for each piece of an answer."""
    items = [
        {"type": "reasoning"},
        {"type": "function_call", "call_id": "a"},
        {"type": "function_call", "call_id": "b"},
    ]
    outputs = [{"type": "function_call_output", "call_id": name, "output": "x"} for name in "ab"]
    assert credited((), "gpt", steps([*items, *outputs, items[1]])) == (Author("gpt", 2, 1),)


def test_turns_of_another_model_are_counted_and_their_reasoning_is_unknown() -> None:
    """Another model's turns are told; whether the next model takes its reasoning is not known."""
    first = credited((), "k3", steps([USER, call("a")]))
    both = credited(first, "k3-256k", steps([result("a"), call("b", thought=True)]))
    state = fold(State(), steps([USER, call("a"), result("a"), call("b", thought=True), result("b")]), Seen(free={"a"}))
    assert both == (Author("k3", 1), Author("k3-256k", 1, 1))
    assert [judge(state, Ends(others=(one,))) for one in both] == [
        Check("compatible", Findings(("other_model",), ("turns=2", "other_model=1"))),
        Check(
            "unknown",
            Findings(("other_model",), ("turns=2", "other_model=1"), ("reason=reasoning_of_another_model",)),
        ),
    ]


TURNS = [USER, call("a", thought=True), result("a"), call("b"), result("b")]
MESSAGES = st.lists(
    st.one_of(
        st.just(USER),
        st.builds(call, st.sampled_from("abc"), thought=st.booleans()),
        st.builds(result, st.sampled_from("abc")),
        st.builds(answer, st.sampled_from("abc")),
    ),
    max_size=12,
)


@given(MESSAGES, st.lists(st.integers(0, 12), max_size=3))
def test_folding_in_pieces_is_folding_at_once(messages: list[Any], cuts: list[int]) -> None:
    """A history that grows call by call leaves the state that it would leave in one look."""
    state = State()
    for start, end in pairwise(sorted({0, len(messages), *(cut for cut in cuts if cut < len(messages))})):
        state = fold(state, steps(messages[start:end]))
    assert state == fold(State(), steps(messages))


ANSWERS = {
    "chat": {"choices": [{"message": {"reasoning_content": "because", "tool_calls": [{"id": "a"}]}}]},
    "chat without": {
        "choices": [{"message": {"content": "no", "reasoning_content": ""}}],
        "reasoning": {"effort": "low"},
    },
    "a stream in which reasoning passed by": {"folded": True, "thought": True, "choices": []},
    "responses": {"output": [{"type": "reasoning"}, {"type": "function_call", "call_id": "a", "name": "read"}]},
    "responses without": {"output": [{"type": "message"}], "reasoning": {"effort": "low"}},
    "anthropic": {"content": [{"type": "redacted_thinking"}, {"type": "tool_use", "id": "a", "name": "read"}]},
    "anthropic without": {"content": [{"type": "text", "text": "no"}]},
}


@pytest.mark.parametrize(("name", "body"), ANSWERS.items(), ids=ANSWERS.keys())
def test_whether_an_answer_brought_reasoning(name: str, body: dict[str, Any]) -> None:
    """Told by its members, items or blocks; the effort that an answer repeats is none."""
    assert called.thought(body) is not name.endswith("without")


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize(("reasoning", "back"), [("Because.", True), ("Because.", False), ("", False)])
def test_reasoning_through_the_sdk(
    provider: Provider, ledger: Ledger, reasoning: str, back: bool, stream: bool
) -> None:
    """A client that gets reasoning with a tool call and leaves it out is told so at its next call; one that sends it
    back, or never got any, is not."""
    provider.script = always(Answer(reasoning=reasoning, tool_calls=(tool("read"),)))
    made = call("call_1") | ({"reasoning_content": reasoning} if back else {})
    with openai.OpenAI(base_url=provider.url + "/kimi/v1", api_key="test-key", max_retries=0) as client:
        for messages in ([USER], [USER, made, result("call_1")]):
            asked: Any = client.chat.completions.create(model="kimi-k3", messages=messages, stream=stream)
            list(asked) if stream else None
    want = "reasoning_dropped" if reasoning and not back else "compatible"
    assert [entry["state_check"] for entry in ledger.flat()] == ["compatible", want]
