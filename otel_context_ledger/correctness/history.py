"""What a message shows to the checks: who speaks, its texts, the tools it calls and the results it brings.

One form for all dialects, told by the shape of a message and not by its surface. What the checks make of it is left to
them. Strings are the request's own and never copied; nothing here outlives a call but what a check keeps of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from otel_context_ledger.model import Json
from otel_context_ledger.records import quick

MAX_DEPTH = 4
_PLAIN = frozenset({"role", "content"})
REASONING_MEMBERS = ("reasoning_content", "reasoning", "reasoning_details")
# Calls that the provider answers itself, in the same turn: no result of theirs is the program's to send.
_SERVED = ("server_tool_use", "mcp_call", "mcp_tool_use")
_CALL_TYPES = (
    *("tool_use", "function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call"),
    *("computer_call", *_SERVED),
)
_RESULT_TYPES = (
    "tool_result",
    "function_call_output",
    "custom_tool_call_output",
    "local_shell_call_output",
    "shell_call_output",
    "apply_patch_call_output",
    "computer_call_output",
)
_REASONING_TYPES = ("thinking", "redacted_thinking", "reasoning")
_TEXT_TYPES = ("text", "input_text", "output_text", "refusal")
_COMPACTION_TYPES = ("compaction", "compaction_summary", "context_compaction")


@quick
@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model asked for. `arguments` is what was sent: JSON text (OpenAI) or an object (Anthropic).
    Without an id it needs no result: the provider answered it itself."""

    id: str | None
    name: str | None
    arguments: object


@quick
@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gave back: the id of its call, its texts in order, and whether the program called it an error."""

    id: str | None
    texts: tuple[str, ...]
    error: bool = False

    @property
    def size(self) -> int:
        """Characters of all texts."""
        return sum(map(len, self.texts))


@quick
@dataclass(frozen=True, slots=True)
class Step:
    """One message or item. `role` is user, assistant, system, developer or tool; an item of the Responses API that has
    no role has that of whoever makes it. `compaction` says that the provider itself put a summary here: `summary` is
    what can be read of it, `id` the provider's name for it. `kept` says that the provider keeps what stands here."""

    role: str | None
    texts: tuple[str, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    reasoning: bool = False
    compaction: bool = False
    summary: str | None = None
    id: str | None = None
    kept: bool = False

    @property
    def text(self) -> str:
        """All its own text, the results of tools left out."""
        return self.texts[0] if len(self.texts) == 1 else "\n".join(self.texts)


def step(message: object) -> Step:
    """A message of any dialect. What is no message is a step without a role."""
    if not isinstance(message, Mapping):
        return Step(None)
    kind = message.get("type")
    item = _ITEMS.get(kind) if isinstance(kind, str) else None
    return item(message) if item is not None else _spoken(message)


def compacts(message: object) -> bool:
    """Whether a message is, or holds, what a provider puts in the place of others; nothing else of it is read."""
    if not isinstance(message, Mapping):
        return False
    parts = (message, *(part for part in _list(message.get("content")) if isinstance(part, Mapping)))
    return any(part.get("type") in _COMPACTION_TYPES for part in parts)


def steps(messages: Sequence[object]) -> tuple[Step, ...]:
    """The steps of a run of messages."""
    return tuple(map(step, messages))


def system_texts(blocks: Sequence[object]) -> tuple[str, ...]:
    """The texts of a system part, one per block: plain strings, system and developer messages, Anthropic's blocks."""
    return tuple("\n".join(_texts(block)) for block in blocks)


def _spoken(message: Json) -> Step:
    role = _text(message.get("role"))
    content = message.get("content")
    if role == "tool":
        return Step(role, results=(ToolResult(_text(message.get("tool_call_id")), tuple(_texts(content))),))
    if isinstance(content, str) and len(message) == len(_PLAIN) and message.keys() == _PLAIN:
        return Step(role, (content,))
    blocks = [part for part in _list(content) if isinstance(part, Mapping)]
    calls = (*map(_chat_call, _maps(message.get("tool_calls"))), *(_call(b) for b in _of(blocks, _CALL_TYPES)))
    thought = any(message.get(member) for member in REASONING_MEMBERS) or any(_of(blocks, _REASONING_TYPES))
    summary = next((block for block in _of(blocks, _COMPACTION_TYPES) if _holds(block)), None)
    return Step(
        role,
        tuple(_texts(content)),
        calls,
        tuple(_result(block) for block in _of(blocks, _RESULT_TYPES)),
        thought,
        summary is not None,
        None if summary is None else _read(summary),
    )


def _chat_call(call: Json) -> ToolCall:
    body = call.get("function") or call.get("custom")
    told = body if isinstance(body, Mapping) else {}
    return ToolCall(_text(call.get("id")), _text(told.get("name")), told.get("arguments", told.get("input")))


def _call(block: Json) -> ToolCall:
    served = block.get("type") in _SERVED
    named = None if served else next((found for key in ("call_id", "id") if (found := _text(block.get(key)))), None)
    sent = next((block[key] for key in ("arguments", "input", "action", "operation") if key in block), None)
    place = block.get("environment")
    if isinstance(place, Mapping) and place.get("type") != "local" and isinstance(sent, Mapping):
        sent = {**sent, "host": place.get("type")}
    return ToolCall(named, _text(block.get("name")) or _text(block.get("type")), sent)


def _result(block: Json) -> ToolResult:
    named = next((found for key in ("tool_use_id", "call_id", "id") if (found := _text(block.get(key)))), None)
    content = block.get("content") if "content" in block else block.get("output")
    failed = block.get("is_error") is True or block.get("status") == "failed" or any(map(_failed, _maps(content)))
    return ToolResult(named, tuple(_texts(content)), failed)


def _failed(part: Json) -> bool:
    """Whether a part of a result is that of a command that did not end well."""
    outcome = part.get("outcome")
    return isinstance(outcome, Mapping) and outcome.get("exit_code") != 0


def _summary(item: Json) -> Step:
    holds = _holds(item)
    return Step(
        "user", tuple(_texts(item)), (), (), False, holds, _read(item) if holds else None, _text(item.get("id"))
    )


def _holds(summary: Json) -> bool:
    """Whether there is something in a provider's summary: one without content says that the compaction failed, and is
    passed over (anthropic SDK 2.14, `BetaCompactionBlock`)."""
    return bool(summary.get("content") or summary.get("encrypted_content"))


def _read(summary: Json) -> str | None:
    return "\n".join(_texts(summary)) or None


_ITEMS: Mapping[str, Callable[[Json], Step]] = {
    **dict.fromkeys(_CALL_TYPES, lambda item: Step("assistant", calls=(_call(item),))),
    **dict.fromkeys(_RESULT_TYPES, lambda item: Step("tool", results=(_result(item),))),
    **dict.fromkeys(_REASONING_TYPES, lambda item: Step("assistant", reasoning=True)),
    **dict.fromkeys(_COMPACTION_TYPES, _summary),
    "item_reference": lambda item: Step(None, id=_text(item.get("id")), kept=True),
}


def _texts(value: object, depth: int = 0) -> Iterator[str]:
    """The texts of a content, in order; calls, results, reasoning and media have none of their own."""
    if isinstance(value, str):
        yield value
    elif depth < MAX_DEPTH and isinstance(value, Mapping):
        kind = value.get("type")
        if "role" in value or kind == "message" or kind in _COMPACTION_TYPES:
            yield from _texts(value.get("content"), depth + 1)
        elif kind in _TEXT_TYPES or kind is None:
            for member in ("text", "refusal", "stdout", "stderr"):
                yield from _texts(value.get(member), depth + 1)
    elif depth < MAX_DEPTH and isinstance(value, (list, tuple)):
        for part in value:
            yield from _texts(part, depth + 1)


def _of(blocks: Sequence[Json], types: tuple[str, ...]) -> Iterator[Json]:
    return (block for block in blocks if block.get("type") in types)


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, (list, tuple)) else ()


def _maps(value: object) -> Iterator[Json]:
    return (item for item in _list(value) if isinstance(item, Mapping))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
