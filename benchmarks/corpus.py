"""What an agent sends: deterministic Chat Completions requests of a given number of messages, bytes and tools."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

Message = dict[str, Any]
_WORDS = (
    "def", "return", "self", "import", "value", "cache", "prefix", "token", "message", "system", "policy", "tool",
    "read", "write", "file", "error", "line", "of", "and", "to", "in", "class", "async", "await", "None", "True",
    "dict", "path", "open", "close", "status", "request", "response", "缓存", "前缀", "déjà",
)  # fmt: skip
_POOL_BYTES = 20_000


@dataclass(frozen=True, slots=True)
class Size:
    """A size of request: messages, bytes of the messages, tools, bytes of a tool, and how many rounds are enough."""

    messages: int
    bytes: int
    tools: int
    tool_bytes: int
    rounds: int


SIZES = (Size(10, 4_000, 3, 600, 60), Size(200, 400_000, 20, 2_600, 20), Size(2_000, 4_300_000, 50, 2_560, 9))


class Corpus:
    """Histories of one size; every `seed` gives another one, with strings of its own."""

    def __init__(self, size: Size) -> None:
        self.size = size
        source = random.Random(1)
        self._pool = [_prose(source, _POOL_BYTES) for _ in range(20)]
        self.tools = [_tool(source, self._pool, number, size.tool_bytes) for number in range(size.tools)]

    def history(self, seed: int, more: int = 0) -> list[Message]:
        """`size.messages + more` messages: a system message, then turns of question, tool call, result and answer."""
        source = random.Random(seed)
        length = max(40, self.size.bytes // self.size.messages)
        messages = [{"role": "system", "content": self._cut(source, length)}]
        while len(messages) < self.size.messages + more:
            messages += self._turn(source, len(messages), length)
        return messages[: self.size.messages + more]

    def _turn(self, source: random.Random, number: int, length: int) -> list[Message]:
        name, arguments = f"call_{number}", json.dumps({"path": f"src/part{number}.py", "start": number})
        call = {"id": name, "type": "function", "function": {"name": "tool_0", "arguments": arguments}}
        return [
            {"role": "user", "content": self._cut(source, length // 3)},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": name, "content": self._cut(source, length * 3)},
            {"role": "assistant", "content": self._cut(source, length * 2 // 3)},
        ]

    def _cut(self, source: random.Random, length: int) -> str:
        text = source.choice(self._pool)
        start = source.randrange(max(1, len(text) - length))
        return f"{text[start : start + length]} #{source.randrange(1 << 30)}"


def rebuilt(value: Any) -> Any:
    """The value as the SDK's transform hands it on: new containers around the same strings."""
    if isinstance(value, dict):
        return {key: rebuilt(item) for key, item in value.items()}
    return [rebuilt(item) for item in value] if isinstance(value, list) else value


def edited(messages: list[Message], at: int, mark: str) -> list[Message]:
    """The messages with the text of the first user message at or after `at` changed."""
    place = next(n for n in range(at, len(messages)) if messages[n]["role"] == "user")
    changed = {**messages[place], "content": f"{mark} {messages[place]['content']}"}
    return [*messages[:place], changed, *messages[place + 1 :]]


def _prose(source: random.Random, size: int) -> str:
    words: list[str] = []
    while sum(map(len, words[-1:])) + 6 * len(words) < size:
        words.append(source.choice(_WORDS))
    return " ".join(words)


def _tool(source: random.Random, pool: list[str], number: int, size: int) -> dict[str, Any]:
    share = max(10, size // 8 - 70)
    fields = {f"field_{n}": {"type": "string", "description": source.choice(pool)[:share]} for n in range(6)}
    schema = {"type": "object", "properties": fields, "required": ["field_0"], "additionalProperties": False}
    about = source.choice(pool)[: 2 * share]
    return {
        "type": "function",
        "function": {"name": f"tool_{number}", "description": about, "strict": True, "parameters": schema},
    }
