"""The simulated provider speaks every dialect to the real SDKs, and counts what its cache really reused."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from tests.provider import Answer, Behaviour, CacheRules, Provider, always, by_prompt, by_turn, call, in_order
from tests.provider.tokens import common, read_prompt

TOOLS = [
    {
        "type": "function",
        "function": {"name": "read", "description": "Read a file.", "parameters": {"type": "object", "properties": {}}},
    }
]
ANSWER = Answer("Reading the parser.", "The test names it.", (call("read", path="src/parser.py"),))
ARGUMENTS = '{"path":"src/parser.py"}'


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider(always(ANSWER)) as started:
        yield started


def chat(provider: Provider, vendor: str = "kimi") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{provider.url}/{vendor}/v1", api_key="k", max_retries=0)


def claude(provider: Provider, path: str = "anthropic") -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=f"{provider.url}/{path}", api_key="k", max_retries=0)


def history(turns: int) -> list[dict[str, Any]]:
    opening = [{"role": "system", "content": "Be careful. " * 50}, {"role": "user", "content": "Fix the test."}]
    return opening + [{"role": "user", "content": f"result {n}"} for n in range(turns)]


def request(turns: int = 0, model: str = "m") -> dict[str, Any]:
    return {"model": model, "messages": history(turns), "tools": TOOLS}


def tokens(turns: int = 0) -> int:
    return len(read_prompt(request(turns)))


def test_appending_a_message_makes_the_former_prompt_an_exact_prefix() -> None:
    """Tools come first and blocks are padded, so nothing before the new message moves."""
    shorter, longer = read_prompt(request(3)), read_prompt(request(4))
    assert common(shorter.text, longer.text) == len(shorter)


def test_kimi_reports_cached_tokens_at_the_top_level(provider: Provider) -> None:
    """A plain answer carries the count in its own field and no details, as K3 does."""
    chat(provider).chat.completions.create(**request(0))
    got = chat(provider).chat.completions.create(**request(1)).usage
    assert got.model_dump(exclude_unset=True) == {
        "prompt_tokens": tokens(1),
        "completion_tokens": 16,
        "total_tokens": tokens(1) + 16,
        "cached_tokens": tokens(0),
    }


def test_kimi_stream_puts_usage_into_the_finishing_choice(provider: Provider) -> None:
    """Without `include_usage` no chunk has a usage of its own."""
    chunks = list(chat(provider).chat.completions.create(**request(), stream=True))
    assert [chunk.usage for chunk in chunks] == [None] * len(chunks)
    assert chunks[-1].choices[0].usage["cached_tokens"] == 0


def test_openai_reports_details_in_a_chunk_of_its_own_when_asked(provider: Provider) -> None:
    """The usage chunk has no choices; every chunk before it says null."""
    options = {"include_usage": True}
    chunks = list(chat(provider, "openai").chat.completions.create(**request(), stream=True, stream_options=options))
    assert [chunk.usage for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-1].choices == []
    assert chunks[-1].usage.prompt_tokens_details.cached_tokens == 0


def test_openai_stream_says_nothing_of_usage_when_not_asked(provider: Provider) -> None:
    """Neither a chunk nor a choice has it."""
    chunks = list(chat(provider, "openai").chat.completions.create(**request(), stream=True))
    assert [(chunk.usage, getattr(chunk.choices[0], "usage", None)) for chunk in chunks] == [(None, None)] * len(chunks)


def test_chat_stream_helper_rebuilds_the_scripted_answer(provider: Provider) -> None:
    """Text and tool arguments arrive in pieces and add up."""
    with chat(provider, "openai").chat.completions.stream(**request()) as stream:
        message = stream.get_final_completion().choices[0].message
    assert (message.content, message.tool_calls[0].function.arguments) == (ANSWER.text, ARGUMENTS)


def test_responses_plain_and_streamed_give_the_same_answer(provider: Provider) -> None:
    """The SDK's stream helper accepts every event, and its final response equals the plain one but for ids."""
    client = chat(provider, "openai")
    asked = {"model": "m", "instructions": "Be careful.", "input": "Fix the test."}
    plain = client.responses.create(**asked)
    with client.responses.stream(**asked) as stream:
        kinds = [event.type for event in stream]
        streamed = stream.get_final_response()
    assert [item.type for item in plain.output] == ["reasoning", "message", "function_call"]
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
    assert (streamed.output_text, streamed.output[2].arguments) == (plain.output_text, ARGUMENTS)
    assert streamed.usage.input_tokens_details.cached_tokens == plain.usage.input_tokens


def test_a_previous_response_id_stands_for_its_items(provider: Provider) -> None:
    """The remembered input is an exact prefix of the continued prompt."""
    client = chat(provider, "openai")
    first = client.responses.create(model="m", input="Fix the test.")
    second = client.responses.create(model="m", input="Go on.", previous_response_id=first.id)
    assert second.usage.input_tokens_details.cached_tokens == first.usage.input_tokens


@pytest.mark.parametrize("path", ["anthropic", "kimi/anthropic"])
def test_messages_plain_and_streamed_give_the_same_answer(provider: Provider, path: str) -> None:
    """Thinking, text and tool input arrive in pieces and add up to the plain content."""
    asked = {"model": "m", "max_tokens": 64, "messages": [{"role": "user", "content": "Fix the test."}]}
    plain = claude(provider, path).messages.create(**asked)
    with claude(provider, path).messages.stream(**asked) as stream:
        streamed = stream.get_final_message()
    assert [block.to_dict() for block in streamed.content] == [block.to_dict() for block in plain.content]
    assert streamed.usage.cache_read_input_tokens == provider.requests[0].prompt


def test_anthropic_counts_are_disjoint_and_split_by_retention() -> None:
    """With breakpoints, tokens behind the last mark are neither read nor written."""
    mark = {"type": "ephemeral", "ttl": "1h"}
    system = [{"type": "text", "text": "Be careful. " * 50, "cache_control": mark}]
    asked = {"model": "m", "max_tokens": 64, "system": system, "messages": [{"role": "user", "content": "Fix it."}]}
    with Provider(rules=CacheRules(breakpoints=True)) as provider:
        usage = claude(provider).messages.create(**asked).usage.to_dict()
        prompt, written = provider.requests[0].prompt, provider.requests[0].written
    assert (usage["input_tokens"], usage["cache_creation_input_tokens"]) == (prompt - written, written)
    assert usage["cache_creation"] == {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": written}


def test_retention_minimum_block_and_lag_bound_what_is_reused() -> None:
    """The clock is the test's: nothing before the lag, floored matches within retention, nothing after it."""
    now = [0.0]
    rules = CacheRules(block=64, minimum=100, retention=300.0, write_lag=2.0, clock=lambda: now[0])
    with Provider(rules=rules) as provider:
        for moment in (0.0, 1.0, 3.0, 400.0):
            now[0] = moment
            chat(provider).chat.completions.create(**request())
        chat(provider).chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi."}])
        got = [received.cached for received in provider.requests]
    assert got == [0, 0, tokens() // 64 * 64, 0, 0]


def test_the_scope_splits_the_cache_by_any_field() -> None:
    """With the cache key in the scope, another key is another cache."""
    with Provider(rules=CacheRules(scope=("model", "prompt_cache_key"))) as provider:
        for key in ("a", "b", "a"):
            chat(provider).chat.completions.create(**request(), prompt_cache_key=key)
        got = [received.cached for received in provider.requests]
    assert got == [0, 0, tokens()]


@pytest.mark.parametrize(
    ("model", "error"),
    [("err-500", openai.InternalServerError), ("err-429", openai.RateLimitError), ("err-400", openai.BadRequestError)],
)
def test_a_model_name_asks_for_an_http_error(provider: Provider, model: str, error: type[Exception]) -> None:
    """The request is recorded and computes nothing."""
    with pytest.raises(error):
        chat(provider).chat.completions.create(**request(model=model))
    assert [(received.model, received.cached) for received in provider.requests] == [(model, None)]


def test_a_dropped_connection_ends_a_stream_after_two_events(provider: Provider) -> None:
    """What came before the drop was delivered."""
    roles = []
    with pytest.raises(openai.APIConnectionError):
        for chunk in chat(provider).chat.completions.create(**request(model="err-drop"), stream=True):
            roles.append(chunk.choices[0].delta.role)  # noqa: PERF401 (what came before the error is the point)
    assert roles == ["assistant", None]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("no-usage", {"choices": 1}),
        ("null-usage", {"choices": 1, "usage": None}),
        ("null-choices", {"choices": None, "usage": 4}),
        ("no-cache-report", {"choices": 1, "usage": 3}),
    ],
)
def test_a_model_name_asks_for_a_broken_answer(provider: Provider, model: str, expected: dict[str, Any]) -> None:
    """Absent, null and uncounted are three different answers."""
    raw = json.loads(chat(provider).chat.completions.with_raw_response.create(**request(model=model)).text)
    got = {name: raw[name] and len(raw[name]) for name in ("choices", "usage") if name in raw}
    assert got == expected


def test_a_plan_treats_requests_in_order() -> None:
    """The list decides for its own requests; after it the model name decides again."""
    plan = in_order([Behaviour(served="m-2026", extra={"cost": 1}), None, Behaviour(answer=Answer("Planned."))])
    with Provider(plan=plan) as provider:
        answers = [chat(provider).chat.completions.create(**request()) for _ in range(3)]
    assert [(a.model, a.choices[0].message.content) for a in answers] == [
        ("m-2026", "Looking at the file."),
        ("m", "Looking at the file."),
        ("m", "Planned."),
    ]


@pytest.mark.parametrize("key", ["messages", "input"])
def test_a_script_answers_by_what_was_said(key: str) -> None:
    """The answers under the mark said last are given turn by turn, however much history was compacted before it."""
    script = by_prompt({"ONE": [Answer("a"), Answer("b")], "TWO": [Answer("c")]})
    one, two = {"role": "user", "content": "ONE"}, {"role": "user", "content": [{"type": "text", "text": "ONE, TWO"}]}
    turn = [{"role": "assistant", "content": "a"}, {"type": "function_call", "call_id": "c1"}, {"role": "tool"}]
    histories = [[one], [one, *turn], [one, *turn, *turn], [one, *turn, two], [two]]
    assert [script({key: history}).text for history in histories] == ["a", "b", "b", "c", "c"]


def test_a_script_answers_by_turn() -> None:
    """The history says which turn it is, so that a repeated request gets the same answer."""
    with Provider(by_turn([Answer("one"), Answer("two")])) as provider:
        client = chat(provider)
        turns = [history(0), history(0), [*history(0), {"role": "assistant", "content": "one"}]]
        got = [client.chat.completions.create(model="m", messages=m).choices[0].message.content for m in turns]
    assert got == ["one", "one", "two"]


def test_it_runs_as_a_program() -> None:
    """The first line of its output is its URL."""
    root = Path(__file__).parent.parent
    command = [sys.executable, "-m", "tests.provider"]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as program:
        url = program.stdout.readline().strip()
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi."}]}).encode()
        with urllib.request.urlopen(f"{url}/kimi/v1/chat/completions", body) as response:
            got = json.load(response)["usage"]["cached_tokens"]
        program.terminate()
    assert got == 0
