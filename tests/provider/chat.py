"""Owns Chat Completions answers, plain and streamed, in the OpenAI and Kimi variants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.provider.reply import CREATED, Reply, frame
from tests.provider.script import ToolCall, pieces
from tests.provider.usage import CHAT, JSON, timings

# Kimi puts usage into the finishing choice when nobody asked for a usage chunk ("migrating from OpenAI" page).
USAGE_IN_CHOICE = {"kimi", "coding", "kimi-details", "kimi-both", "kimi-writes", "kimi-creation"}
# OpenRouter ends every stream with usage; llama.cpp times every answer.
ALWAYS_USAGE, TIMED = {"openrouter"}, {"llama", "llama-timings"}


def whole(reply: Reply) -> JSON:
    """The body of a plain answer."""
    answer = reply.answer
    message: JSON = {"role": "assistant", "content": answer.text}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.tool_calls:
        message["tool_calls"] = [_tool_call(call) for call in answer.tool_calls]
    choice = {"index": 0, "message": message, "finish_reason": _finish(reply)}
    body = _head(reply, "chat.completion") | {"choices": reply.listed([choice])} | _timed(reply)
    return body | reply.usage(CHAT) | dict(reply.behaviour.extra)


def events(reply: Reply) -> list[bytes]:
    """The events of a streamed answer, `[DONE]` included."""
    asked = reply.vendor in ALWAYS_USAGE or bool((reply.body.get("stream_options") or {}).get("include_usage"))
    blank: JSON = {"usage": None} if asked else {}
    chunks = [_chunk(reply, {"index": 0, "delta": delta, "finish_reason": None}) | blank for delta in _deltas(reply)]
    last: JSON = {"index": 0, "delta": {}, "finish_reason": _finish(reply)}
    if not asked and reply.vendor in USAGE_IN_CHOICE:
        last |= reply.usage(CHAT)
    own = {"x_groq": {"id": "req_1"} | reply.usage(CHAT)} if reply.vendor == "groq" and not asked else {}
    if reply.vendor == "vllm-continuous":
        chunks = [chunk | _so_far(reply, n) for n, chunk in enumerate(chunks, 1)]
    timed = _timed(reply)
    chunks.append(_chunk(reply, last) | own | blank | ({} if asked else timed) | dict(reply.behaviour.extra))
    if asked:
        ended = {"choices": reply.listed([])} | reply.usage(CHAT) | timed
        chunks.append(_head(reply, "chat.completion.chunk") | ended)
    if reply.vendor == "azure":
        filtered = {"choices": [], "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}]}
        chunks.insert(0, {"id": "", "object": "", "created": 0, "model": ""} | filtered)
    return [*(frame(chunk) for chunk in chunks), b"data: [DONE]\n\n"]


def _deltas(reply: Reply) -> Iterator[JSON]:
    yield {"role": "assistant", "content": ""}
    yield from ({"reasoning_content": piece} for piece in pieces(reply.answer.reasoning))
    yield from ({"content": piece} for piece in pieces(reply.answer.text))
    for index, call in enumerate(reply.answer.tool_calls):
        opening = _tool_call(call) | {"index": index, "function": {"name": call.name, "arguments": ""}}
        yield {"tool_calls": [opening]}
        for piece in call.pieces():
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _chunk(reply: Reply, choice: JSON) -> JSON:
    return _head(reply, "chat.completion.chunk") | {"choices": reply.listed([choice])}


def _head(reply: Reply, kind: str) -> dict[str, Any]:
    host = {"provider": reply.behaviour.extra.get("provider", "host-1")} if reply.vendor == "openrouter" else {}
    return {"id": f"chatcmpl-{reply.number}", "object": kind, "created": CREATED, "model": reply.model} | host


def _so_far(reply: Reply, output: int) -> JSON:
    """Counts in the middle of a stream, as vLLM's continuous usage stats give them."""
    usage = {"prompt_tokens": reply.counts.prompt, "completion_tokens": output}
    return {"usage": usage | {"total_tokens": reply.counts.prompt + output}}


def _timed(reply: Reply) -> JSON:
    return {"timings": timings(reply.counts)} if reply.vendor in TIMED else {}


def _finish(reply: Reply) -> str:
    if reply.answer.cut:
        return "length"
    return "tool_calls" if reply.answer.tool_calls else "stop"


def _tool_call(call: ToolCall) -> JSON:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
