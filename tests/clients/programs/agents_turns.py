"""An agent built on openai-agents: three turns, the second one streamed, the third with its tools in another order."""

from __future__ import annotations

import asyncio
import json
import sys

from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool
from openai import AsyncOpenAI
from openai.types.shared import Reasoning

MODELS = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}


@function_tool
def read(path: str) -> str:
    """Read a file of the repository."""
    return f"the contents of {path}"


@function_tool
def edit(path: str, text: str) -> str:
    """Replace the contents of a file."""
    return f"{path} is now {len(text)} characters long"


async def main(url: str, api: str) -> None:
    """Runs the turns and prints what the client says of them."""
    vendor = "kimi" if api == "chat" else "openai"
    client = AsyncOpenAI(base_url=f"{url}/{vendor}/v1", api_key="test-key", max_retries=0)
    settings = ModelSettings(reasoning=Reasoning(effort="high"))
    agent = Agent(
        name="fixer", instructions="Be careful. " * 500, model=MODELS[api]("kimi-k3", client),
        tools=[read, edit], model_settings=settings,
    )  # fmt: skip
    first = await Runner.run(agent, "FIRST, look at the parser.")
    second = Runner.run_streamed(agent, [*first.to_input_list(), {"role": "user", "content": "SECOND, fix it."}])
    async for _ in second.stream_events():
        pass
    other = agent.clone(tools=[edit, read])
    third = await Runner.run(other, [*second.to_input_list(), {"role": "user", "content": "THIRD, sum up."}])
    turns = (first, second, third)
    usages = [answer.usage for turn in turns for answer in turn.raw_responses]
    cached = [usage.input_tokens_details.cached_tokens for usage in usages]
    sent = [usage.input_tokens for usage in usages]
    print(json.dumps({"said": [turn.final_output for turn in turns], "cached": cached, "input": sent}))


asyncio.run(main(*sys.argv[1:]))
