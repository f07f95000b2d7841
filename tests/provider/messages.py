"""Owns Anthropic Messages answers, plain and streamed, also as Kimi's Messages endpoint gives them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.provider.reply import Reply, frame
from tests.provider.script import ToolCall, pieces
from tests.provider.usage import JSON, MESSAGES

SIGNATURE = "c2lnbmF0dXJl"


def whole(reply: Reply) -> JSON:
    """The body of a plain answer."""
    ended = {"stop_reason": _stop(reply), "content": reply.listed(_blocks(reply))}
    return _message(reply) | ended | reply.usage(MESSAGES) | dict(reply.behaviour.extra)


def events(reply: Reply) -> list[bytes]:
    """The events of a streamed answer."""
    return [frame(event, event["type"]) for event in _events(reply)]


def _events(reply: Reply) -> Iterator[JSON]:
    usage = reply.usage(MESSAGES)
    started = {"usage": usage["usage"] | {"output_tokens": 1}} if usage.get("usage") else usage
    opening = {"content": reply.listed([]), "stop_reason": None}
    extra = dict(reply.behaviour.extra)
    yield {"type": "message_start", "message": _message(reply) | opening | started | extra}
    yield {"type": "ping"}
    for index, (empty, deltas) in enumerate(_streamed(reply)):
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield from ({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": _stop(reply), "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended} | _final_usage(usage)
    yield {"type": "message_stop"}


def _streamed(reply: Reply) -> Iterator[tuple[JSON, list[JSON]]]:
    """Each content block as it starts, and its deltas."""
    answer = reply.answer
    if answer.reasoning:
        thoughts: list[JSON] = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(answer.reasoning)]
        signed: JSON = {"type": "signature_delta", "signature": SIGNATURE}
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*thoughts, signed]
    if answer.text:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(answer.text)]
    for call in answer.tool_calls:
        deltas: list[JSON] = [{"type": "input_json_delta", "partial_json": piece} for piece in call.pieces()]
        yield _tool_use(call) | {"input": {}}, deltas


def _blocks(reply: Reply) -> list[JSON]:
    answer = reply.answer
    blocks: list[JSON] = []
    if answer.reasoning:
        blocks.append({"type": "thinking", "thinking": answer.reasoning, "signature": SIGNATURE})
    if answer.text:
        blocks.append({"type": "text", "text": answer.text})
    return blocks + [_tool_use(call) for call in answer.tool_calls]


def _tool_use(call: ToolCall) -> JSON:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}


def _message(reply: Reply) -> dict[str, Any]:
    head = {"id": f"msg_{reply.number}", "type": "message", "role": "assistant"}
    return head | {"model": reply.model, "stop_sequence": None}


def _stop(reply: Reply) -> str:
    return "tool_use" if reply.answer.tool_calls else "end_turn"


def _final_usage(usage: JSON) -> JSON:
    """The closing event repeats the counts without their breakdown."""
    if not usage.get("usage"):
        return usage
    dropped = {"cache_creation", "service_tier"}
    return {"usage": {name: n for name, n in usage["usage"].items() if name not in dropped}}
