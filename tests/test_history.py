"""What a message of any dialect shows to the checks."""

from __future__ import annotations

import pytest

from otel_context_ledger.correctness.history import Step, ToolCall, ToolResult, step, system_texts

CALL = ToolCall("c1", "read_file", '{"path": "a.py"}')
TEXT = {"type": "text", "text": "no"}
SAME = {
    "chat text": ({"role": "user", "content": "hello"}, Step("user", ("hello",))),
    "chat parts": (
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}]},
        Step("user", ("a",)),
    ),
    "chat call": (
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "thought",
            "tool_calls": [{"id": "c1", "function": {"name": "read_file", "arguments": CALL.arguments}}],
        },
        Step("assistant", calls=(CALL,), reasoning=True),
    ),
    "chat result": (
        {"role": "tool", "tool_call_id": "c1", "content": "text"},
        Step("tool", results=(ToolResult("c1", ("text",)),)),
    ),
    "anthropic call": (
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "…", "signature": "s"},
                {"type": "text", "text": "I look"},
                {"type": "tool_use", "id": "c1", "name": "read_file", "input": {"path": "a.py"}},
            ],
        },
        Step("assistant", ("I look",), (ToolCall("c1", "read_file", {"path": "a.py"}),), reasoning=True),
    ),
    "anthropic result": (
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "is_error": True, "content": [TEXT]},
                {"type": "text", "text": "and now?"},
            ],
        },
        Step("user", ("and now?",), results=(ToolResult("c1", ("no",), True),)),
    ),
    "responses call": (
        {"type": "function_call", "call_id": "c1", "id": "fc_1", "name": "read_file", "arguments": CALL.arguments},
        Step("assistant", calls=(CALL,)),
    ),
    "responses result": (
        {"type": "function_call_output", "call_id": "c1", "output": "text"},
        Step("tool", results=(ToolResult("c1", ("text",)),)),
    ),
    "responses message": (
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
        Step("assistant", ("done",)),
    ),
    "responses reasoning": ({"type": "reasoning", "summary": []}, Step("assistant", reasoning=True)),
    "provider compaction": ({"type": "compaction", "encrypted_content": "x"}, Step("user", compaction=True)),
    "no message": (7, Step(None)),
    "hostile members": (
        {"role": 3, "content": 4, "tool_calls": [None, {"function": 1}]},
        Step(None, calls=(ToolCall(None, None, None),)),
    ),
}


@pytest.mark.parametrize(("message", "shown"), SAME.values(), ids=SAME.keys())
def test_a_message_shows_the_same_in_every_dialect(message: object, shown: Step) -> None:
    """Texts, calls, results and reasoning are found wherever a dialect keeps them."""
    assert step(message) == shown


def test_a_system_part_is_read_block_by_block() -> None:
    """Plain instructions, system messages and Anthropic's blocks give one text each."""
    blocks = ["plain", {"role": "system", "content": [{"type": "text", "text": "a"}]}, {"type": "text", "text": "b"}]
    assert system_texts(blocks) == ("plain", "a", "b")
