"""An agent built on kosong: three turns, the third by a client made anew, as after an error, and after the result of
the first tool call was cleared in place."""

from __future__ import annotations

import asyncio
import json
import sys

import kosong
from kosong.chat_provider import TokenUsage
from kosong.chat_provider.kimi import Kimi
from kosong.message import Message
from kosong.tooling import CallableTool2, ToolOk, ToolReturnValue
from kosong.tooling.simple import SimpleToolset
from pydantic import BaseModel


class Place(BaseModel):
    """The argument of both tools."""

    path: str


class Read(CallableTool2[Place]):
    """A tool that the model calls."""

    name: str = "read"
    description: str = "Read a file of the repository."
    params: type[Place] = Place

    async def __call__(self, params: Place) -> ToolReturnValue:
        """The contents of the file, long enough that clearing them is seen."""
        return ToolOk(output=f"the contents of {params.path}; " * 100)


class Remove(Read):
    """A tool that the model does not call."""

    name: str = "remove"
    description: str = "Remove a file of the repository."


async def turn(provider: Kimi, history: list[Message], text: str, usages: list[TokenUsage | None]) -> str:
    """One message of the user, until the model calls no tool any more."""
    history.append(Message(role="user", content=text))
    while True:
        step = await kosong.step(provider, "Be careful. " * 500, SimpleToolset([Read(), Remove()]), history)
        usages.append(step.usage)
        history.append(step.message)
        if not step.tool_calls:
            return step.message.extract_text()
        for result in await step.tool_results():
            said = result.return_value.output
            history.append(Message(role="tool", tool_call_id=result.tool_call_id, content=said))


async def main(url: str, way: str) -> None:
    """Runs the turns and prints what the client says of them."""
    provider = Kimi(base_url=f"{url}/kimi/v1", api_key="test-key", model="kimi-k3", stream=way == "streamed")
    provider = provider.with_generation_kwargs(prompt_cache_key="conversation-7", reasoning_effort="max")
    history: list[Message] = []
    usages: list[TokenUsage | None] = []
    said = [await turn(provider, history, "FIRST, look at the parser.", usages)]
    said.append(await turn(provider, history, "SECOND, fix it.", usages))
    provider.on_retryable_error(ConnectionError("the agent above would make its client anew"))
    history[2] = Message(role="tool", tool_call_id=history[2].tool_call_id, content="[cleared]")
    said.append(await turn(provider, history, "THIRD, sum up.", usages))
    print(json.dumps({"said": said, "cached": [one.input_cache_read if one else None for one in usages]}))


asyncio.run(main(*sys.argv[1:]))
