"""Whether a history is whole for the model that gets it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_context_ledger.correctness.history import steps
from otel_context_ledger.correctness.state import State, fold, judge
from otel_context_ledger.model import Check, Findings

USER = {"role": "user", "content": "fix it"}


def call(*names: str, thought: bool = False) -> dict[str, Any]:
    calls = [{"id": name, "function": {"name": "read", "arguments": "{}"}} for name in names]
    return {"role": "assistant", "tool_calls": calls, **({"reasoning_content": "because"} if thought else {})}


def result(name: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "content": "text"}


def finding(messages: list[Any], whole: bool = True, replayed: bool = True) -> Check:
    return judge(fold(State(), steps(messages)), whole, replayed, offset=1)


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
    "reasoning dropped": (
        [USER, call("a", thought=True), result("a"), call("b"), result("b")],
        Check("reasoning_dropped", Findings((), ("turns=2", "bare=1"), ("message=4",))),
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
    turns = [USER, call("a", thought=True), result("a"), call("b"), result("b")]
    assert finding(turns, replayed=False) == Check("compatible", Findings((), ("turns=2",)))


MESSAGES = st.lists(
    st.one_of(
        st.just(USER),
        st.builds(call, st.sampled_from("abc"), thought=st.booleans()),
        st.builds(result, st.sampled_from("abc")),
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
