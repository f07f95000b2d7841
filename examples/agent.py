"""A small coding agent: a loop around the OpenAI SDK, six tools, one repository with a fault in it.

    OPENAI_BASE_URL=… OPENAI_API_KEY=… python examples/agent.py
        [--mistakes none|tools,clock,prune] [--small] [--scripted]

Nothing in here knows that it is being observed. Three mistakes are built in, each as an agent's author would make it,
see `Agent.tools_of`, `Agent.system_prompt` and `Agent.prune`. Exit code 0 if the tests pass at the end.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import mistakes
import openai
import sample_repository
import script
import toolbox

Message = dict[str, Any]
PROMPT = Path(__file__).with_name("system_prompt.md").read_text(encoding="utf-8")
CLEARED = "[old tool result cleared]"
LARGE_RESULT = 1200
MAX_TURNS = 24


@dataclass(slots=True)
class Answer:
    """One streamed answer, put together: the assistant message as it goes back into the history, and the usage."""

    message: Message
    usage: Any = None

    @property
    def calls(self) -> list[Message]:
        return self.message.get("tool_calls") or []


@dataclass(slots=True)
class Agent:
    """One task in one workspace. `scripted` takes the scripted step in place of what the model answered."""

    client: openai.OpenAI
    model: str
    workspace: Path
    made: frozenset[str] = frozenset()
    scripted: bool = False
    turn: int = 0
    history: list[Message] = field(default_factory=list)
    plugins: dict[str, toolbox.Tool] = field(default_factory=lambda: {tool.name: tool for tool in toolbox.TOOLS})

    def solve(self, task: str) -> None:
        """Ask, act, ask again, until the model calls no tool."""
        self.history.append({"role": "user", "content": task})
        while self.turn < MAX_TURNS:
            self.turn += 1
            answer = self.ask()
            print(_line(self.turn, answer), flush=True)
            self.history.append(answer.message)
            if not answer.calls:
                return
            self.history.extend(self.act(call) for call in answer.calls)

    def ask(self) -> Answer:
        """One model call with the whole context."""
        toolbox.pause()
        if mistakes.due("prune", self.turn, self.made):
            self.prune()
        stream = self.client.chat.completions.create(
            model=self.model,
            messages=[{"role": "system", "content": self.system_prompt()}, *self.history],
            tools=self.tools_of(),
            reasoning_effort="high",
            stream=True,
            stream_options={"include_usage": True},
            max_completion_tokens=1 if self.scripted else 4096,
            extra_body={"prompt_cache_key": self.workspace.name},
        )
        answer = gather(stream)
        if self.scripted:
            answer.message = as_message(script.STEPS[self.turn - 1], self.turn)
        return answer

    def act(self, call: Message) -> Message:
        """Run one tool call and give its result as a message."""
        function = call["function"]
        tool = self.plugins.get(function["name"])
        result = toolbox.perform(tool, self.workspace, json.loads(function["arguments"]))
        return {"role": "tool", "tool_call_id": call["id"], "content": result}

    def tools_of(self) -> list[Message]:
        """The tools in the order in which their plugins were loaded, and a reload loads the plugin again."""
        if mistakes.due("tools", self.turn, self.made):
            first = next(iter(self.plugins))
            self.plugins[first] = self.plugins.pop(first)
        return [tool.definition() for tool in self.plugins.values()]

    def system_prompt(self) -> str:
        """The rules, and the time of day, because the model once did not know it."""
        if not mistakes.due("clock", self.turn, self.made):
            return PROMPT
        return f"Current time: {datetime.now().astimezone().isoformat()}\n\n{PROMPT}"

    def prune(self) -> None:
        """Clear the oldest large tool result to save context, in place."""
        large = (m for m in self.history if m["role"] == "tool" and len(m["content"]) > LARGE_RESULT)
        oldest = next(large, None)
        if oldest is not None:
            oldest["content"] = CLEARED


def gather(stream: Iterable[Any]) -> Answer:
    """Put a streamed answer together. Reasoning goes back with the message: the API demands it beside tool calls."""
    answer = Answer({"role": "assistant", "content": ""})
    for chunk in stream:
        answer.usage = chunk.usage or answer.usage
        for choice in chunk.choices or []:
            _add(answer.message, choice.delta)
    return answer


def _add(message: Message, delta: Any) -> None:
    message["content"] += delta.content or ""
    thought = getattr(delta, "reasoning_content", None)
    if thought:
        message["reasoning_content"] = message.get("reasoning_content", "") + thought
    for piece in delta.tool_calls or []:
        calls = message.setdefault("tool_calls", [])
        if piece.index == len(calls):
            calls.append({"id": piece.id, "type": "function", "function": {"name": "", "arguments": ""}})
        function = calls[piece.index]["function"]
        function["name"] += piece.function.name or ""
        function["arguments"] += piece.function.arguments or ""


def as_message(step: script.Step, turn: int) -> Message:
    """A scripted step as the message that a model would have sent."""
    message: Message = {"role": "assistant", "content": step.text, "reasoning_content": step.thought}
    calls = [
        {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
        for call in step.tool_calls(turn)
    ]
    return message | ({"tool_calls": calls} if calls else {})


def _line(turn: int, answer: Answer) -> str:
    usage = answer.usage
    details = getattr(usage, "prompt_tokens_details", None)
    cached = getattr(usage, "cached_tokens", getattr(details, "cached_tokens", None))
    prompt = getattr(usage, "prompt_tokens", None)
    does = ", ".join(call["function"]["name"] for call in answer.calls) or "done"
    return f"turn {turn:>2}  prompt {_shown(prompt)}  cached {_shown(cached)}  {does}"


def _shown(tokens: int | None) -> str:
    return f"{'?' if tokens is None else format(tokens, ','):>7}"


def tests_pass(workspace: Path) -> bool:
    """Whether the repository's own tests pass now, in a process of their own."""
    line = [sys.executable, *toolbox.TEST_RUNNER[1:], "-q"]
    return subprocess.run(line, cwd=workspace, capture_output=True, check=False).returncode == 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A small coding agent on a sample repository.")
    parser.add_argument("--model", default="kimi-k3")
    parser.add_argument("--mistakes", type=mistakes.chosen, default=frozenset(mistakes.SCHEDULE))
    parser.add_argument("--small", action="store_true", help="shorter files: stay below 20,000 prompt tokens")
    parser.add_argument("--scripted", action="store_true", help="ignore the answers and take the scripted steps")
    return parser.parse_args()


def main() -> int:
    chosen = arguments()
    with tempfile.TemporaryDirectory(prefix="tally-") as directory, openai.OpenAI(max_retries=0) as client:
        workspace = Path(directory).resolve()
        sample_repository.create(workspace, chosen.small)
        Agent(client, chosen.model, workspace, chosen.mistakes, chosen.scripted).solve(script.TASK)
        fixed = tests_pass(workspace)
    print("the sample repository's tests pass" if fixed else "the sample repository's tests still fail")
    return 0 if fixed else 1


if __name__ == "__main__":
    sys.exit(main())
