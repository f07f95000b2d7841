"""Owns the conversations by which what a peer's spans tell is compared with what the ledger sees: what is sent in each
turn, and where. Prompts are long, since of small losses nothing can be said by counts alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.ways import TOOLS

GPT, MINI, KIMI, OWN = "gpt-5.6", "gpt-5.6-mini", "kimi-k3", "our-coder"


@dataclass(frozen=True)
class Turn:
    """One request. `told` is what is said before the system prompt, `reordered` turns the tools round."""

    model: str
    told: str = ""
    reordered: bool = False
    stream: bool = False


@dataclass(frozen=True)
class Conversation:
    """Turns of one history, at a host: openai, kimi (whose cached count stands where no peer reads it) or vllm (whose
    report of its cache is off); by the Responses API if so said, else by Chat Completions."""

    host: str
    turns: tuple[Turn, ...]
    responses: bool = False


BASES = {"openai": "/openai/v1", "kimi": "/kimi/v1", "vllm": "/vllm-off/v1"}
CONVERSATIONS = {
    "append": Conversation("openai", (Turn(GPT), Turn(GPT), Turn(GPT, stream=True))),
    "tools reordered": Conversation("openai", (Turn(GPT), Turn(GPT), Turn(GPT, reordered=True))),
    "clock": Conversation("openai", tuple(Turn(GPT, f"It is 2026-11-30T10:0{at}:17Z.\n") for at in range(3))),
    "another model": Conversation("openai", (Turn(GPT), Turn(GPT), Turn(MINI))),
    "kimi": Conversation("kimi", (Turn(KIMI), Turn(KIMI), Turn(KIMI, stream=True))),
    "kimi, tools reordered": Conversation("kimi", (Turn(KIMI), Turn(KIMI), Turn(KIMI, reordered=True))),
    "responses": Conversation("openai", (Turn(GPT), Turn(GPT, stream=True), Turn(GPT, reordered=True)), True),
    "responses, clock": Conversation("openai", tuple(Turn(GPT, f"It is 10:0{at}:17.\n") for at in range(3)), True),
    "not reported": Conversation("vllm", (Turn(OWN), Turn(OWN), Turn(OWN, reordered=True))),
}
CALLS = [(name, at) for name, conversation in CONVERSATIONS.items() for at in range(len(conversation.turns))]


def arguments(name: str, at: int) -> dict[str, Any]:
    """The keyword arguments of a conversation's turn, the history before it included."""
    conversation = CONVERSATIONS[name]
    turn = conversation.turns[at]
    rules = turn.told + f"You work on {name}. Read before you write. " * 400
    history = []
    for number in range(at):
        history += [_asked(name, number), {"role": "assistant", "content": "Looking at the file."}]
    history.append(_asked(name, at))
    tools = [tool["function"] | {"description": f"For {name}. " * 200} for tool in TOOLS]
    ordered = tools[::-1] if turn.reordered else tools
    if conversation.responses:
        functions = [{"type": "function", **tool} for tool in ordered]
        return {"model": turn.model, "instructions": rules, "input": history, "tools": functions, "stream": turn.stream}
    stream = {"stream": True, "stream_options": {"include_usage": True}} if turn.stream else {}
    functions = [{"type": "function", "function": tool} for tool in ordered]
    messages = [{"role": "system", "content": rules}, *history]
    return {"model": turn.model, "messages": messages, "tools": functions, **stream}


def _asked(name: str, number: int) -> dict[str, str]:
    return {"role": "user", "content": f"Step {number} of {name}: find what is wrong and mend it. " * 60}
