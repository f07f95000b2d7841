"""The second act of the demo: one task, a first attempt that fails and a second one that succeeds, and a cache that
looks perfect through all of it.

    OPENAI_BASE_URL=… OPENAI_API_KEY=… python examples/second_act.py      (in a work tree of its own)

The agent says what it knows by the public API: its task and attempts, the rule that it was given, its tools and what
they do, its compaction, and how it ended. What goes wrong is planted in `first_attempt`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openai
import toolbox

from otel_context_ledger import (
    attempt,
    compaction,
    constraint,
    outcome,
    session,
    task,
    tool_contracts,
    tool_registry,
)
from otel_context_ledger.instrumentation import ContextLedgerInstrumentor

Message = dict[str, Any]
TASK = "CENTS-7"
RULE = "Never edit files below tally/regions/: they are generated."
FORMS = "Answer in one sentence after each step."
PROMPT = Path(__file__).with_name("system_prompt.md").read_text(encoding="utf-8")
SUMMARISER = "You are a helpful assistant that compacts conversation context."
SUMMARY = (
    "Goal: invoices are off by a cent. Rounding is wrong in tally/rounding.py; the tables of the regions were read."
)
OPENING = "<system>Previous context has been compacted. Here is the compaction output:</system>"
TABLES = ("at", "be", "ch", "de", "es", "fr", "it", "nl")
ROUNDING = "tally/rounding.py"
# Seconds that a look at the disk may take.
PATIENCE = 60.0


@dataclass(slots=True)
class Agent:
    """One attempt in one session: a history, and what it is asked for in each turn."""

    client: openai.OpenAI
    system: str
    history: list[Message] = field(default_factory=list)
    made: int = 0

    def says(self, text: str) -> Agent:
        """The person at the keyboard."""
        self.history.append({"role": "user", "content": text})
        return self

    def reads(self, *paths: str) -> Agent:
        """Files read by a tool, as an earlier answer of the model asked."""
        self.made += 1
        asked = [{"name": "read", "arguments": json.dumps({"path": path})} for path in paths]
        calls = [{"id": f"r{self.made}_{at}", "type": "function", "function": one} for at, one in enumerate(asked)]
        self.history.append({"role": "assistant", "content": "I read.", "tool_calls": calls})
        tool = next(tool for tool in toolbox.TOOLS if tool.name == "read")
        for path, call in zip(paths, calls, strict=True):
            text = toolbox.perform(tool, Path.cwd(), {"path": path})
            self.history.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        return self

    def asks(self, told: str) -> Agent:
        """One model call with the whole context; `told` is what the person watching sees of it."""
        toolbox.pause()
        answer = self._call([{"role": "system", "content": self.system}, *self.history], toolbox.TOOLS)
        self.history.append({"role": "assistant", "content": answer.choices[0].message.content})
        print(f"  {told:<46} cached {_share(answer.usage)}", flush=True)
        return self

    def compacts(self) -> Agent:
        """The history gives way to a summary, which forgets the rule that the person gave at the beginning."""
        with compaction(trigger="manual") as told:
            self._call([{"role": "system", "content": SUMMARISER}, *self.history], ())
            told.done(SUMMARY)
        self.history = [{"role": "user", "content": f"{OPENING}\n{SUMMARY}"}]
        return self

    def _call(self, messages: list[Message], tools: tuple[toolbox.Tool, ...]) -> Any:
        given: dict[str, Any] = {"tools": [tool.definition() for tool in tools]} if tools else {}
        return self.client.chat.completions.create(model="kimi-k3", messages=messages, **given)


def _share(usage: Any) -> str:
    whole, cached = usage.prompt_tokens, getattr(usage, "cached_tokens", 0) or 0
    return f"{100 * cached / whole:>5.1f} % of {whole:,}"


def contracts(runs: str) -> None:
    """What the tools do; the registry of a server would say it."""
    tool_registry({"tools": [_listed(tool) for tool in toolbox.TOOLS]}, server="workbench", side_effect="read")
    tool_contracts({"run": {"side_effect": runs}})


def _listed(tool: toolbox.Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "inputSchema": tool.parameters}


def first_attempt(agent: Agent) -> None:
    """Everything is cached, and one after the other the file, the tool and the rule are not what they were."""
    agent.says(f"Invoices are off by a cent. {RULE} {FORMS}").asks("the task is given")
    agent.reads("AGENTS.md", ROUNDING, *(f"tally/regions/{name}.py" for name in TABLES)).asks("it reads what it needs")
    agent.says("Go on.").asks("all is well")
    _edited_by_somebody_else()
    agent.says("Go on.").asks("somebody edits a file that it read")
    agent.reads(ROUNDING).asks("it reads the file again")
    contracts(runs="destructive")
    agent.says("Go on.").asks("the test runner now writes to a database")
    contracts(runs="read")
    agent.compacts().reads(*(f"tally/regions/{name}.py" for name in TABLES)).asks("a compaction forgets the rule")
    agent.says("Go on.").asks("and the rule stays forgotten")


def second_attempt(agent: Agent) -> None:
    """A new session with the rule where no compaction reaches it, and the files read anew."""
    agent.says("Invoices are off by a cent.").reads(ROUNDING).asks("it begins anew, the rule in the system part")
    agent.says("Go on.").asks("it fixes the rounding")


def _edited_by_somebody_else() -> None:
    text = "from pathlib import Path; p = Path('tally/rounding.py'); p.write_text(p.read_text() + '\\n# moved\\n')"
    subprocess.run([sys.executable, "-c", text], check=True)


def unhurried() -> openai.DefaultHttpxClient:
    """A provider's answer takes seconds, in which the ledger looks at the disk. That of the demo comes at once, and is
    held until the look was taken."""
    ledger = ContextLedgerInstrumentor()
    return openai.DefaultHttpxClient(event_hooks={"response": [lambda _: ledger.look(PATIENCE)]})


def main() -> int:
    rules = f"{PROMPT}\n\n{Path('AGENTS.md').read_text(encoding='utf-8')}"
    constraint("C1", RULE)
    contracts(runs="read")
    with openai.OpenAI(max_retries=0, http_client=unhurried()) as client, task(TASK):
        with attempt("try-1"), session("try-1"):
            print("attempt 1", flush=True)
            first_attempt(Agent(client, rules))
            outcome(tests="failed", constraints="violated")
        with attempt("try-2"), session("try-2"):
            print("attempt 2", flush=True)
            second_attempt(Agent(client, f"{rules}\n{RULE}"))
            outcome(tests="passed", constraints="kept", accepted=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
