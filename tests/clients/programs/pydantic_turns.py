"""An agent built on pydantic-ai: three turns, the second one streamed, the third with more effort asked for."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterable

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic_ai import Agent, RunContext
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider


def model_of(url: str, api: str) -> Model:
    """Kimi by two of its dialects, OpenAI by its newer one."""
    if api == "messages":
        anthropic = AsyncAnthropic(base_url=f"{url}/kimi/anthropic", api_key="test-key", max_retries=0)
        return AnthropicModel("kimi-k3", provider=AnthropicProvider(anthropic_client=anthropic))
    openai = AsyncOpenAI(base_url=f"{url}/{VENDORS[api]}/v1", api_key="test-key", max_retries=0)
    return MODELS[api]("kimi-k3", provider=OpenAIProvider(openai_client=openai))


VENDORS = {"chat": "kimi", "responses": "openai"}
MODELS = {"chat": OpenAIChatModel, "responses": OpenAIResponsesModel}
EFFORT = {"chat": "openai_reasoning_effort", "responses": "openai_reasoning_effort", "messages": "anthropic_effort"}


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
    agent = Agent(model_of(url, api), instructions="Be careful. " * 500, tools=[read, edit])
    low, high = ({EFFORT[api]: effort} for effort in ("low", "high"))
    first = await agent.run("FIRST, look at the parser.", model_settings=low)
    second = await agent.run(
        "SECOND, fix it.", message_history=first.all_messages(), model_settings=low, event_stream_handler=listen
    )
    third = await agent.run("THIRD, sum up.", message_history=second.all_messages(), model_settings=high)
    usages = [message.usage for message in third.all_messages() if message.kind == "response"]
    print(
        json.dumps(
            {"said": [one.output for one in (first, second, third)], "cached": [u.cache_read_tokens for u in usages]}
        )
    )


asyncio.run(main(*sys.argv[1:]))
