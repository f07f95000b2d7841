"""How to look into a body or a stream event, plain JSON or an object of an SDK, without running its code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

MAX_DEPTH = 32
# What fits a double exactly; no prompt is longer, and views of an entry can write it down.
MAX_COUNT = 2**53
_PLAIN = frozenset({str, int, float, bool, type(None)})
_EMPTY: Mapping[str, object] = {}


# Asked for every member of every event: the abstract base class's answer, remembered by type.
_is_mapping: Callable[[type], bool] = lru_cache(maxsize=256)(lambda kind: issubclass(kind, Mapping))


def pick(thing: Any, name: str) -> object:
    """The member `name` of a mapping or of an object, or `None`. Of a pydantic model it is read where the model keeps
    it, because asking a model for what it lacks is slow."""
    if _is_mapping(type(thing)):
        return thing.get(name)
    stored = getattr(thing, "__dict__", _EMPTY)
    if name in stored:
        return stored[name]
    extra = getattr(thing, "__pydantic_extra__", _EMPTY)
    if extra is _EMPTY:
        return getattr(thing, name, None)
    return extra.get(name) if extra else None


def plain(thing: Any, depth: int = 0) -> object:
    """An SDK object as JSON values, read from its stored fields: no serialiser, property or validator of the user's
    models is run. `parsed` (the user's own type) is left out."""
    kind = type(thing)
    if kind in _PLAIN or depth > MAX_DEPTH or isinstance(thing, (str, int, float)):
        return thing
    if _is_mapping(kind):
        return {str(key): plain(value, depth + 1) for key, value in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [plain(item, depth + 1) for item in thing]
    own, extra = getattr(thing, "__dict__", _EMPTY), getattr(thing, "__pydantic_extra__", None)
    fields = {**own, **extra} if extra else own
    return {
        key: value if type(value) in _PLAIN else plain(value, depth + 1)
        for key, value in fields.items()
        if key != "parsed" and key[:1] != "_"
    }


def never(event: object) -> bool:
    """Of dialects whose counts come but once or twice in a stream."""
    return False


def items(value: object) -> Sequence[object]:
    """A list as it is, anything else as an empty one."""
    return value if isinstance(value, (list, tuple)) else ()


def mapping(value: object) -> Mapping[str, object]:
    """A JSON object as it is, anything else as an empty one."""
    if type(value) is dict:
        return value
    return _EMPTY if value is None or not isinstance(value, Mapping) else value


def text(value: object) -> str | None:
    """A non-empty string as it is, anything else as `None`."""
    return value if isinstance(value, str) and value else None


def count(value: object) -> int | None:
    """A number of tokens as it is, anything else (a truth value, a negative number, one beyond all prompts) as
    `None`."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT else None


def present(body: Mapping[str, object], names: tuple[str, ...]) -> dict[str, object]:
    """The named members that are there and not null."""
    return {name: value for name in names if (value := body.get(name)) is not None}


def role(message: object) -> str | None:
    """Who a message or item is from."""
    return text(mapping(message).get("role"))


def leading(messages: Sequence[object], roles: tuple[str, ...]) -> int:
    """How many messages at the front come from one of `roles` and carry text, not tools."""
    count = 0
    for message in messages:
        if role(message) not in roles or "tools" in mapping(message):
            break
        count += 1
    return count


def marked(message: object) -> bool:
    """Whether a block, or one of its parts, carries a cache marker."""
    body = mapping(message)
    content = body.get("content")
    if _bears(body) or type(content) is str:
        return _bears(body)
    return any(_bears(mapping(part)) for part in items(content))


def _bears(body: Mapping[str, object]) -> bool:
    return "cache_control" in body or "prompt_cache_breakpoint" in body


def markers(tools: Sequence[object], system: Sequence[object], messages: Sequence[object]) -> dict[str, int]:
    """Cache markers by segment kind. Of the messages only the last eight are looked at: clients move their markers
    along with the end (spec: breakpoints)."""
    where = {"tool": tools, "system": system, "message": messages[-8:]}
    return {kind: n for kind, blocks in where.items() if (n := len(list(filter(marked, blocks))))}


def in_band_effort(messages: Sequence[object]) -> str | None:
    """The effort that one of the last eight messages sets for itself and what follows."""
    for message in reversed(messages[-8:]):
        body = mapping(message)
        effort = text(body.get("reasoning_effort")) or text(body.get("effort"))
        if effort:
            return effort
    return None


def effort_of(thinking: object) -> str | None:
    """An effort read from a `thinking` or `reasoning` object: its effort, else its budget. Whether it thinks at all is
    a setting, no effort."""
    body = mapping(thinking)
    budgets = (n for name in _BUDGETS if (n := count(body.get(name))) is not None)
    return text(body.get("effort")) or next((f"budget:{n}" for n in budgets), None)


_BUDGETS = ("budget_tokens", "max_tokens")


def settings_of(body: Mapping[str, object], names: tuple[str, ...]) -> dict[str, object]:
    """The named settings that are there; of `thinking` only what is no effort, so that an effort is told once."""
    found = present(body, names)
    thinking = found.get("thinking")
    if isinstance(thinking, Mapping):
        found["thinking"] = {key: value for key, value in thinking.items() if key not in ("effort", *_BUDGETS)}
    return found


def session_hint(body: Mapping[str, object]) -> str | None:
    """The conversation that a request names for itself, in `conversation` or in its metadata."""
    conversation, metadata = body.get("conversation"), mapping(body.get("metadata"))
    named = text(conversation) or text(mapping(conversation).get("id"))
    keys = ("session_id", "conversation_id", "thread_id")
    return named or next((found for key in keys if (found := text(metadata.get(key)))), None)


def retention_of(body: Mapping[str, object]) -> str | None:
    """The cache lifetime that a request asks for."""
    return text(mapping(body.get("prompt_cache_options")).get("ttl")) or text(body.get("prompt_cache_retention"))
