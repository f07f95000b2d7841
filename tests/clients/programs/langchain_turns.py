"""An agent built on langchain-openai: three turns, the second one streamed, the third with a clock that has moved on in
its system message."""

from __future__ import annotations

import json
import sys
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

RULES = "Be careful. " * 500


@tool
def read(path: str) -> str:
    """Read a file of the repository."""
    return f"the contents of {path}"


@tool
def edit(path: str, text: str) -> str:
    """Replace the contents of a file."""
    return f"{path} is now {len(text)} characters long"


def streamed(model: Any, history: list[BaseMessage]) -> AIMessage:
    """The answer put together from its pieces."""
    pieces = list(model.stream(history))
    whole = pieces[0]
    for piece in pieces[1:]:
        whole += piece
    assert isinstance(whole, AIMessageChunk)
    return whole


def turn(answer: Any, history: list[BaseMessage], text: str, answers: list[AIMessage]) -> None:
    """One message of the user, until the model calls no tool any more."""
    history.append(HumanMessage(text))
    while True:
        said = answer(history)
        answers.append(said)
        history.append(said)
        if not said.tool_calls:
            return
        history.extend(ToolMessage(read.invoke(one["args"]), tool_call_id=one["id"]) for one in said.tool_calls)


def main(url: str, api: str) -> None:
    """Runs the turns and prints what the client says of them."""
    vendor = "kimi" if api == "chat" else "openai"
    model = ChatOpenAI(
        model="kimi-k3", base_url=f"{url}/{vendor}/v1", api_key="test-key", max_retries=0,
        use_responses_api=api == "responses", reasoning_effort="low",
    ).bind_tools([read, edit])  # fmt: skip
    history: list[BaseMessage] = [SystemMessage(f"It is 2026-11-30 10:00. {RULES}")]
    turns: list[list[AIMessage]] = [[], [], []]
    turn(model.invoke, history, "FIRST, look at the parser.", turns[0])
    turn(lambda sent: streamed(model, sent), history, "SECOND, fix it.", turns[1])
    history[0] = SystemMessage(f"It is 2026-11-30 10:05. {RULES}")
    turn(model.invoke, history, "THIRD, sum up.", turns[2])
    usages = [answer.usage_metadata or {} for one in turns for answer in one]
    cached = [usage.get("input_token_details", {}).get("cache_read") for usage in usages]
    sent = [usage.get("input_tokens") for usage in usages]
    print(json.dumps({"said": [one[-1].text for one in turns], "cached": cached, "input": sent}))


main(*sys.argv[1:])
