"""Compactions that the provider makes, through the SDKs: a summary on request, one of its own accord, contents cut."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import anthropic
import openai
import pytest

from otel_context_ledger import constraint
from otel_context_ledger.mailbox import latest, mailbox
from tests.conftest import Ledger
from tests.rawserver import Raw, serving, whole

USAGE = {"input_tokens": 100, "output_tokens": 5, "total_tokens": 105, "input_tokens_details": {"cached_tokens": 0}}
ITEM = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"}
HISTORY: list[Any] = [
    {"type": "message", "role": role, "content": f"{role} {n}"} for n in range(8) for role in ("user", "assistant")
]


@pytest.fixture
def raw() -> Iterator[Raw]:
    mailbox.take()
    token = latest.set(None)
    with serving() as server:
        yield server
    latest.reset(token)
    mailbox.take()


def answered(name: str, output: list[Any], tokens: int) -> bytes:
    """An answer of the Responses API."""
    usage = {**USAGE, "input_tokens": tokens, "total_tokens": tokens + 5}
    body = {"id": name, "object": "response", "created_at": 1, "model": "gpt-5.5", "status": "completed"}
    return whole(json.dumps({**body, "output": output, "usage": usage}).encode())


def settled(ledger: Ledger, *names: str) -> list[list[Any]]:
    return [[event.get(name) for name in names] for event in ledger.compactions() if event["settled"]]


def test_a_summary_on_request(raw: Raw, ledger: Ledger) -> None:
    """`responses.compact` is a summarising call, and the item that it gave stands in the next call: one compaction of
    one attempt. The summary is encrypted, so that a rule which stands nowhere else may be in it or not."""
    constraint("C1", "Never edit files under migrations/")
    with openai.OpenAI(base_url=raw.url + "/v1", api_key="test-key", max_retries=0) as client:
        raw.response = answered("r1", [], 900)
        client.responses.create(model="gpt-5.5", input=HISTORY, prompt_cache_key="s1")
        raw.response = answered("c1", [HISTORY[0], ITEM], 950)
        client.responses.compact(model="gpt-5.5", input=HISTORY, prompt_cache_key="s1")
        raw.response = answered("r2", [], 120)
        client.responses.create(model="gpt-5.5", input=[HISTORY[0], ITEM, HISTORY[2]], prompt_cache_key="s1")
    assert [entry["request_kind"] for entry in ledger.flat()] == ["agent", "compaction", "agent"]
    names = "compaction_event", "kind", "attempts", "tokens_before", "tokens_after", "validator_result"
    assert settled(ledger, *names) == [["cmp_1", "provider", 1, 900, 120, "not_verifiable"]]


def test_a_summary_that_the_provider_keeps(raw: Raw, ledger: Ledger) -> None:
    """Where the history is with the provider, the answer alone shows that it was compacted, and the call after it what
    is left."""
    with openai.OpenAI(base_url=raw.url + "/v1", api_key="test-key", max_retries=0) as client:
        answers = (("r1", [], 900), ("r2", [ITEM], 950), ("r3", [], 200), ("r4", [], 220))
        before: str | None = None
        for name, output, tokens in answers:
            raw.response = answered(name, output, tokens)
            client.responses.create(model="gpt-5.5", input="on", previous_response_id=before)
            before = name
    names = "compaction_event", "kind", "trigger", "outcome", "tokens_before", "tokens_after"
    assert settled(ledger, *names) == [["cmp_1", "provider", "auto", "done", 900, 200]]


def edited(cleared: int, tokens: int) -> Mapping[str, Any]:
    """What the Messages API says of an answer before which it cleared results of tools."""
    edit = {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 3, "cleared_input_tokens": cleared}
    thoughts = {"type": "clear_thinking_20251015", "cleared_thinking_turns": 1, "cleared_input_tokens": 70}
    return {
        "usage": {"input_tokens": tokens, "output_tokens": 5},
        "context_management": {"applied_edits": [edit, thoughts] if cleared else [thoughts]},
    }


def plain(told: Mapping[str, Any]) -> bytes:
    body = {"id": "m", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "end_turn"}
    return whole(json.dumps({**body, "content": [{"type": "text", "text": "ok"}], **told}).encode())


def streamed(told: Mapping[str, Any]) -> bytes:
    body = {"id": "m", "type": "message", "role": "assistant", "model": "claude", "content": [], "stop_reason": None}
    events = [
        {"type": "message_start", "message": {**body, "usage": {**told["usage"], "output_tokens": 1}}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, **told},
        {"type": "message_stop"},
    ]
    text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return whole(text.encode(), "text/event-stream")


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
def test_results_that_the_provider_cleared(raw: Raw, ledger: Ledger, stream: bool) -> None:
    """Context editing is a micro compaction whenever more is cleared than before; what it does to each call again, or
    to thoughts alone, is none."""
    messages: list[Any] = []
    with anthropic.Anthropic(base_url=raw.url, api_key="test-key", max_retries=0) as client:
        for cleared, tokens in ((0, 5000), (4000, 1500), (4000, 1600), (5500, 800)):
            raw.response = (streamed if stream else plain)(edited(cleared, tokens))
            messages += [{"role": "user", "content": f"step {tokens}"}]
            given = client.beta.messages.create(model="claude", max_tokens=9, messages=messages, stream=stream)
            if isinstance(given, anthropic.Stream):
                assert len(list(given)) == 3
            messages += [{"role": "assistant", "content": "ok"}]
    names = "kind", "trigger", "outcome", "tokens_before", "tokens_after", "summary_hash"
    assert settled(ledger, *names) == [
        ["micro", "auto", "done", 5500, 1500, None],
        ["micro", "auto", "done", 6300, 800, None],
    ]
