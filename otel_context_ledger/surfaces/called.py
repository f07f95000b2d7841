"""Which tools a message or an answer calls, and with what, in the spelling of any dialect."""

from __future__ import annotations

from collections.abc import Iterator

from otel_context_ledger.model import Called, Json
from otel_context_ledger.surfaces.events import items, mapping, text

# Items of the Responses API and blocks of Anthropic's that are calls, and where each keeps its arguments.
_KINDS = {"function_call": "arguments", "tool_use": "input"}


def calls(message: object) -> Iterator[Called]:
    """The calls in a message, or in an item that is one."""
    body = mapping(message)
    for call in map(mapping, items(body.get("tool_calls"))):
        function = mapping(call.get("function"))
        name = text(function.get("name"))
        if name:
            yield Called(name, function.get("arguments"), text(call.get("id")))
    for part in map(mapping, (body, *items(body.get("content")))):
        kind, name = part.get("type"), text(part.get("name"))
        member = _KINDS.get(kind) if isinstance(kind, str) else None
        if member and name:
            yield Called(name, part.get(member), text(part.get("call_id")) or text(part.get("id")))


def answered(body: Json) -> tuple[Called, ...]:
    """The calls of a whole answer: those of its first choice, of its output items, or of its content."""
    choices = items(body.get("choices"))
    messages = [mapping(choices[0]).get("message")] if choices else [*items(body.get("output")), body]
    return tuple(called for message in messages for called in calls(message))
