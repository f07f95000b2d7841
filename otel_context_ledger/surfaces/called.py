"""Which tools a message or an answer calls, and with what, in the spelling of any dialect."""

from __future__ import annotations

from collections.abc import Iterator

from otel_context_ledger.model import Called, Json
from otel_context_ledger.surfaces.events import items, mapping, text

# Items of the Responses API and blocks of Anthropic's that are calls, and where each keeps its arguments.
_KINDS = {"function_call": "arguments", "tool_use": "input"}
# Members and blocks that hold reasoning.
_MEMBERS = ("reasoning_content", "reasoning", "reasoning_details")
_THINKING = ("thinking", "redacted_thinking", "reasoning")


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
    messages = [*_said(body)] if body.get("choices") else [*items(body.get("output")), body]
    return tuple(called for message in messages for called in calls(message))


def thought(body: Json) -> bool:
    """Whether an answer brings reasoning; `thought` says it of one that was folded of events, which are not kept."""
    told = (message.get(member) for message in _said(body) for member in _MEMBERS)
    parts = map(mapping, (*items(body.get("output")), *items(body.get("content"))))
    return bool(body.get("thought")) or any(told) or any(part.get("type") in _THINKING for part in parts)


def _said(body: Json) -> Iterator[Json]:
    choices = items(body.get("choices"))
    if choices:
        yield mapping(mapping(choices[0]).get("message"))
