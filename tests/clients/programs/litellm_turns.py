"""An agent built on litellm: three turns, the second one streamed, the third with a tool whose contract has grown."""

from __future__ import annotations

import json
import sys
from typing import Any

import litellm

litellm.suppress_debug_info = True
RULES = {"role": "system", "content": "Be careful. " * 500}
KEY = "test-key"


def tool(name: str, *parameters: str) -> dict[str, Any]:
    """A tool whose parameters are texts."""
    schema = {"type": "object", "properties": {one: {"type": "string"} for one in parameters}}
    return {"type": "function", "function": {"name": name, "description": f"{name} a file", "parameters": schema}}


TOOLS = [tool("read", "path"), tool("edit", "path", "text")]
GROWN = [tool("read", "path", "encoding"), tool("edit", "path", "text")]


def whole(**request: Any) -> Any:
    """A plain answer."""
    return litellm.completion(**request)


def streamed(**request: Any) -> Any:
    """An answer put together from its pieces."""
    pieces = list(litellm.completion(stream=True, stream_options={"include_usage": True}, **request))
    return litellm.stream_chunk_builder(pieces, messages=request["messages"])


def turn(answer: Any, request: dict[str, Any], text: str, told: list[Any]) -> str:
    """One message of the user, until the model calls no tool any more."""
    request["messages"].append({"role": "user", "content": text})
    while True:
        found = answer(**request)
        details = found.usage.prompt_tokens_details
        told.append(
            {
                "cached": None if details is None else details.cached_tokens,
                "cost": found._hidden_params.get("response_cost"),
            }
        )
        said = found.choices[0].message
        request["messages"].append(said.model_dump(exclude_none=True))
        if not said.tool_calls:
            return str(said.content)
        for one in said.tool_calls:
            request["messages"].append({"role": "tool", "tool_call_id": one.id, "content": "the contents"})


def main(url: str, model: str) -> None:
    """Runs the turns and prints what the client says of them."""
    calls: list[Any] = []
    request = {
        "model": model, "api_base": f"{url}/kimi/v1", "api_key": KEY, "messages": [RULES], "tools": TOOLS,
        "max_retries": 0,
    }  # fmt: skip
    said = [
        turn(whole, request, "FIRST, look at the parser.", calls),
        turn(streamed, request, "SECOND, fix it.", calls),
        turn(whole, request | {"tools": GROWN}, "THIRD, sum up.", calls),
    ]
    print(json.dumps({"said": said, "calls": calls}))


main(*sys.argv[1:])
