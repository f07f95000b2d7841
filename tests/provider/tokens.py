"""Owns how a request body becomes prompt tokens; what of it is already known is `cache`'s decision.

Four bytes of a rendered block are one token. Tools, system text and messages are each rendered on their own, in
that order, so that appending a message makes the former prompt an exact prefix of the new one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

TOKEN_BYTES = 4
RETENTIONS = {"5m", "1h"}


@dataclass(frozen=True, slots=True)
class Prompt:
    """`text` is whole tokens only (blocks are padded with NUL, which JSON never contains).

    `breakpoint` is the number of tokens up to the last block that carries `cache_control`, 0 if none does;
    `ttl` is the retention that it asked for.
    """

    text: bytes
    breakpoint: int
    ttl: str

    def __len__(self) -> int:
        return len(self.text) // TOKEN_BYTES


def read_prompt(body: dict[str, Any]) -> Prompt:
    """The prompt of a Chat Completions, Responses or Messages body."""
    text = bytearray()
    marked, ttl = 0, "5m"
    for block in _blocks(body):
        text += _padded(_render(block))
        control = _cache_control(block)
        if control is not None:
            marked = len(text) // TOKEN_BYTES
            ttl = control.get("ttl", "5m")
    return Prompt(bytes(text), marked, ttl if ttl in RETENTIONS else "5m")


def count(text: str) -> int:
    """Tokens of a plain text, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // TOKEN_BYTES)


def common(left: bytes, right: bytes) -> int:
    """Tokens of the longest common prefix, found by bisection so that a megabyte costs a few comparisons."""
    low, high = 0, min(len(left), len(right)) // TOKEN_BYTES
    while low < high:
        middle = (low + high + 1) // 2
        start, end = low * TOKEN_BYTES, middle * TOKEN_BYTES
        if left[start:end] == right[start:end]:
            low = middle
        else:
            high = middle - 1
    return low


def _blocks(body: dict[str, Any]) -> Iterator[Any]:
    yield from body.get("tools") or []
    for name in ("system", "instructions"):
        text = body.get(name)
        yield from text if isinstance(text, list) else [text] if text else []
    messages = body.get("messages", body.get("input")) or []
    yield from messages if isinstance(messages, list) else [messages]


def _render(block: Any) -> bytes:
    rendered = json.dumps(_without_control(block), ensure_ascii=False, sort_keys=True)
    return rendered.encode("utf-8", "surrogatepass")


def _padded(block: bytes) -> bytes:
    return block + b"\0" * (-len(block) % TOKEN_BYTES)


def _without_control(value: Any) -> Any:
    """A moved breakpoint is no change of the prompt: it is an instruction to the cache, not content."""
    if isinstance(value, dict):
        return {key: _without_control(item) for key, item in value.items() if key != "cache_control"}
    return [_without_control(item) for item in value] if isinstance(value, list) else value


def _cache_control(block: Any) -> dict[str, Any] | None:
    """The last `cache_control` of a block, or of one of its content parts."""
    if not isinstance(block, dict):
        return None
    parts = block.get("content")
    holders = [block, *(part for part in parts if isinstance(part, dict))] if isinstance(parts, list) else [block]
    controls = [holder["cache_control"] for holder in holders if holder.get("cache_control")]
    return controls[-1] if controls else None
