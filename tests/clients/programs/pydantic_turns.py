"""An agent built on pydantic-ai: three turns, the second one streamed, the third with more effort asked for."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterable

from openai import AsyncOpenAI
from pydantic_ai import Agent, RunContext
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

MODELS = {"chat": OpenAIChatModel, "responses": OpenAIResponsesModel}


def read(path: str) -> str:
    """Read a file of the repository."""
    return f"the contents of {path}"


def edit(path: str, text: str) -> str:
    """Replace the contents of a file."""
    return f"{path} is now {len(text)} characters long"


async def listen(context: RunContext[None], events: AsyncIterable[object]) -> None:
    """Reads a streamed turn to its end."""
    async for _ in events:
        pass


async def main(url: str, api: str) -> None:
    """Runs the turns and prints what the client says of them."""
    vendor = "kimi" if api == "chat" else "openai"
    client = AsyncOpenAI(base_url=f"{url}/{vendor}/v1", api_key="test-key", max_retries=0)
    model = MODELS[api]("kimi-k3", provider=OpenAIProvider(openai_client=client))
    agent = Agent(model, instructions="Be careful. " * 500, tools=[read, edit])
    low = {"openai_reasoning_effort": "low"}
    first = await agent.run("FIRST, look at the parser.", model_settings=low)
    second = await agent.run(
        "SECOND, fix it.", message_history=first.all_messages(), model_settings=low, event_stream_handler=listen
    )
    high = {"openai_reasoning_effort": "high"}
    third = await agent.run("THIRD, sum up.", message_history=second.all_messages(), model_settings=high)
    usages = [message.usage for message in third.all_messages() if message.kind == "response"]
    print(
        json.dumps(
            {"said": [one.output for one in (first, second, third)], "cached": [u.cache_read_tokens for u in usages]}
        )
    )


asyncio.run(main(*sys.argv[1:]))
