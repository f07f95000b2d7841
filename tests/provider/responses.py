"""Owns Responses API answers, plain and streamed, and the memory behind `previous_response_id`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.provider.reply import CREATED, Reply, frame
from tests.provider.script import pieces
from tests.provider.usage import JSON, RESPONSES

# Fields of the request that the API repeats in its answer, with what it says when they were not sent.
_ECHOED: JSON = {
    "instructions": None, "metadata": {}, "parallel_tool_calls": True, "previous_response_id": None,
    "prompt_cache_key": None, "reasoning": None, "temperature": 1.0, "text": {"format": {"type": "text"}},
    "tool_choice": "auto", "tools": [], "top_p": 1.0, "truncation": "disabled",
}  # fmt: skip
_EMPTIED = ("content", "summary")


@dataclass(slots=True)
class Conversations:
    """Remembers the items behind each response id, because the next request may send the id only."""

    _items: dict[str, list[Any]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def expand(self, body: JSON) -> JSON:
        """The body with the items of `previous_response_id` before its own input."""
        with self._lock:
            earlier = self._items.get(str(body.get("previous_response_id")), [])
        return body | {"input": [*earlier, *_listed(body.get("input"))]}

    def remember(self, reply: Reply) -> None:
        """Keep input and output under the id of this answer. `reply.body` must be expanded."""
        with self._lock:
            self._items[_id(reply)] = [*reply.body["input"], *_items(reply)]


def whole(reply: Reply) -> JSON:
    """The body of a plain answer."""
    return _response(reply, "completed", reply.listed(_items(reply)))


def events(reply: Reply) -> list[bytes]:
    """The events of a streamed answer, numbered from 0."""
    return [frame(event | {"sequence_number": n}, event["type"]) for n, event in enumerate(_events(reply))]


def _events(reply: Reply) -> Iterator[JSON]:
    opening = _response(reply, "in_progress", []) | {"usage": None}
    yield {"type": "response.created", "response": opening}
    yield {"type": "response.in_progress", "response": opening}
    for index, item in enumerate(_items(reply)):
        empty = {name: [] if name in _EMPTIED else value for name, value in item.items()}
        empty |= {"status": "in_progress"} | ({"arguments": ""} if "arguments" in item else {})
        yield {"type": "response.output_item.added", "output_index": index, "item": empty}
        yield from _PARTS[item["type"]](reply, {"output_index": index, "item_id": item["id"]}, item)
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": whole(reply)}


def _reasoning_parts(reply: Reply, place: JSON, item: JSON) -> Iterator[JSON]:
    at = place | {"summary_index": 0}
    text = reply.answer.reasoning
    start: JSON = {"type": "summary_text", "text": ""}
    yield at | {"type": "response.reasoning_summary_part.added", "part": start}
    for piece in pieces(text):
        yield at | {"type": "response.reasoning_summary_text.delta", "delta": piece}
    yield at | {"type": "response.reasoning_summary_text.done", "text": text}
    yield at | {"type": "response.reasoning_summary_part.done", "part": item["summary"][0]}


def _text_parts(reply: Reply, place: JSON, item: JSON) -> Iterator[JSON]:
    at = place | {"content_index": 0}
    yield at | {"type": "response.content_part.added", "part": _output_text("")}
    for piece in pieces(reply.answer.text):
        yield at | {"type": "response.output_text.delta", "delta": piece, "logprobs": []}
    yield at | {"type": "response.output_text.done", "text": reply.answer.text, "logprobs": []}
    yield at | {"type": "response.content_part.done", "part": item["content"][0]}


def _call_parts(reply: Reply, place: JSON, item: JSON) -> Iterator[JSON]:
    call = reply.answer.tool_calls[int(item["id"].rsplit("_", 1)[1])]
    for piece in call.pieces():
        yield place | {"type": "response.function_call_arguments.delta", "delta": piece}
    done = {"arguments": call.arguments, "name": call.name}
    yield place | {"type": "response.function_call_arguments.done"} | done


_PARTS = {"reasoning": _reasoning_parts, "message": _text_parts, "function_call": _call_parts}


def _items(reply: Reply) -> list[JSON]:
    answer, number = reply.answer, reply.number
    items: list[JSON] = []
    if answer.reasoning:
        summary = [{"type": "summary_text", "text": answer.reasoning}]
        items.append({"type": "reasoning", "id": f"rs_{number}", "summary": summary, "status": "completed"})
    if answer.text:
        message: JSON = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed"}
        items.append(message | {"content": [_output_text(answer.text)]})
    for index, call in enumerate(answer.tool_calls):
        head = {"type": "function_call", "id": f"fc_{number}_{index}", "call_id": call.id, "status": "completed"}
        items.append(head | {"name": call.name, "arguments": call.arguments})
    return items


def _response(reply: Reply, status: str, output: list[Any] | None) -> JSON:
    head = {
        "id": _id(reply), "object": "response", "created_at": CREATED, "model": reply.model, "status": status,
        "error": None, "incomplete_details": None, "output": output,
    }  # fmt: skip
    echoed = {name: reply.body.get(name, default) for name, default in _ECHOED.items()}
    return head | echoed | reply.usage(RESPONSES) | dict(reply.behaviour.extra)


def _id(reply: Reply) -> str:
    return f"resp_{reply.number}"


def _output_text(text: str) -> JSON:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _listed(sent: Any) -> list[Any]:
    return sent if isinstance(sent, list) else [{"role": "user", "content": sent}] if sent else []
