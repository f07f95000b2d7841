"""The third agent of `make demo STACK=1`: it reviews a repository while the others work, by the Responses API, and
makes no mistake. What goes wrong beside it is its provider's: one call is refused, and one verdict contradicts what the
ledger saw.

    OPENAI_BASE_URL=… OPENAI_API_KEY=… python examples/reviewer.py      (in a work tree of its own)
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import openai
import toolbox

from otel_context_ledger import constraint, outcome, session, task, tool_registry

MODEL = "gpt-5.6"
RULE = "Never edit files below tally/regions/: they are generated."
PROMPT = Path(__file__).with_name("system_prompt.md").read_text(encoding="utf-8")
ROUNDS = 30
# Which rounds, counted from 0, the provider spoils.
REFUSED, CONTRADICTED = 6, 12


def definitions() -> list[dict[str, Any]]:
    """The tools as the Responses API wants them."""
    return [{"type": "function", "strict": False, **tool.definition()["function"]} for tool in toolbox.TOOLS]


def read(number: int, path: str) -> list[dict[str, Any]]:
    """A file read by a tool, as an earlier answer of the model asked."""
    tool = next(tool for tool in toolbox.TOOLS if tool.name == "read")
    asked = {"name": "read", "arguments": json.dumps({"path": path}), "call_id": f"r{number}"}
    text = toolbox.perform(tool, Path.cwd(), {"path": path})
    return [
        {"type": "function_call", **asked},
        {"type": "function_call_output", "call_id": asked["call_id"], "output": text},
    ]


def review(client: openai.OpenAI, rules: str) -> None:
    """One file after the other, each with the whole context; a refused call is left out."""
    files = sorted(path.as_posix() for path in Path("tally").rglob("*.py"))
    said: list[Any] = [{"role": "user", "content": "Review the repository, one file after the other."}]
    for number in range(ROUNDS):
        toolbox.pause()
        said += read(number, files[number]) if number < len(files) else [{"role": "user", "content": "Go on."}]
        with contextlib.suppress(openai.RateLimitError):
            answer = client.responses.create(model=MODEL, instructions=rules, input=said, tools=definitions())
            said.append({"role": "assistant", "content": answer.output_text})


def main() -> int:
    constraint("C1", RULE)
    tool_registry({"tools": [_listed(tool) for tool in toolbox.TOOLS]}, server="workbench")
    rules = f"{PROMPT}\n\n{Path('AGENTS.md').read_text(encoding='utf-8')}\n{RULE}"
    with openai.OpenAI(max_retries=0) as client, task("REVIEW-1"), session("review"):
        review(client, rules)
        outcome(accepted=True)
    return 0


def _listed(tool: toolbox.Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "inputSchema": tool.parameters}


if __name__ == "__main__":
    sys.exit(main())
