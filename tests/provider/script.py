"""Owns what the simulated model says. In which shape it is said is the dialects' business."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.provider.tokens import count

_PIECE = re.compile(r"\S+\s*|\s+")
ARGUMENT_PIECE = 12


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of one tool; `arguments` is the JSON text that the model wrote, valid or not."""

    name: str
    arguments: str = "{}"
    id: str = "call_1"

    def pieces(self) -> list[str]:
        """The argument text as it is streamed."""
        text = self.arguments
        return [text[n : n + ARGUMENT_PIECE] for n in range(0, len(text), ARGUMENT_PIECE)]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of the model, in the order it is generated: reasoning, text, tool calls. `cut` ends it by length."""

    text: str = "Looking at the file."
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    cut: bool = False

    @property
    def output_tokens(self) -> int:
        """All generated tokens, reasoning included."""
        return self.reasoning_tokens + count(self.text) + sum(count(call.arguments) for call in self.tool_calls)

    @property
    def reasoning_tokens(self) -> int:
        return count(self.reasoning)


Script = Callable[[dict[str, Any]], Answer]


def pieces(text: str) -> list[str]:
    """A text as it is streamed: words with the space after them."""
    return _PIECE.findall(text)


def call(name: str, id: str = "call_1", **arguments: Any) -> ToolCall:
    """A tool call with its arguments written as compact JSON."""
    return ToolCall(name, json.dumps(arguments, separators=(",", ":")), id)


def always(answer: Answer) -> Script:
    """The same answer to everything."""
    return lambda body: answer


def by_turn(answers: Sequence[Answer]) -> Script:
    """The n-th answer to a request whose history holds n assistant turns; the last one from then on.

    Taking the turn from the history keeps the provider stateless: retries and interleaved sessions get the
    answer that belongs to them.
    """

    def answer(body: dict[str, Any]) -> Answer:
        return answers[min(_turns(body), len(answers) - 1)]

    return answer


def by_prompt(answers: Mapping[str, Sequence[Answer]]) -> Script:
    """The n-th answer listed under the mark that was said last, after n model turns; the last one from then on.

    A mark is a text in a user's message. Several of the model's items in a row are one turn. Taken from what stands
    after the mark alone, it holds when the history is compacted.
    """

    def answer(body: dict[str, Any]) -> Answer:
        turns, own = 0, False
        for item in reversed(_history(body)):
            turns, own = turns + (not own and _is_the_models(item)), _is_the_models(item)
            text = json.dumps(item, ensure_ascii=False) if item.get("role") == "user" else ""
            said = max(answers, key=text.rfind)
            if said in text:
                return answers[said][min(turns, len(answers[said]) - 1)]
        return Answer()

    return answer


def _is_the_models(item: dict[str, Any]) -> bool:
    return item.get("role") == "assistant" or item.get("type") in ("function_call", "reasoning")


def _history(body: dict[str, Any]) -> list[Any]:
    history = body.get("messages", body.get("input")) or []
    return history if isinstance(history, list) else [{"role": "user", "content": history}]


def _turns(body: dict[str, Any]) -> int:
    return sum(1 for item in _history(body) if isinstance(item, dict) and item.get("role") == "assistant")
