"""The product beside llama.cpp: what it predicts and blames, and what the engine really reused.

An agent's conversation as it is sent turn by turn, through the SDK: six tools, a system text, and pairs of a tool call
and its result. `llama` is a full-attention model, which reuses every common token; `kimi-k3` keeps a recurrent state at
checkpoints and may reuse less than was the same, never more.
"""

from __future__ import annotations

import copy
import hashlib
import importlib.util
import json
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest

from examples.toolbox import TOOLS
from otel_context_ledger import semconv as s
from tests.conftest import Ledger
from tests.engine import Engine

MISSING = [name for name in ("xllamacpp", "gguf", "tiktoken_ext") if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(bool(MISSING), reason=f"the real engine needs {', '.join(MISSING)}; `make test` installs it"),
]

EXAMPLES = Path(__file__).parents[1] / "examples"
SYSTEM = (EXAMPLES / "system_prompt.md").read_text(encoding="utf-8")
SOURCE = "".join((EXAMPLES / name).read_text(encoding="utf-8") for name in ("agent.py", "toolbox.py", "verdict.py"))
TASK = "Invoices are off by a cent. Find the fault, fix it, and prove that it is gone."
RESULTS = (350, 900, 1800, 500, 1200)
Message = dict[str, Any]


@dataclass(frozen=True)
class Running:
    """An engine that serves a model of this architecture."""

    arch: str
    url: str

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """The engine's own interface, beside the one that the SDK speaks."""
        request = urllib.request.Request(
            self.url + path, json.dumps(body).encode(), {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)


@dataclass
class Agent:
    """A conversation that its owner changes between the calls. `mark` keeps its prompts apart from other tests'."""

    engine: Running
    mark: str
    system: str = SYSTEM
    tools: list[Any] = field(default_factory=lambda: [tool.definition() for tool in TOOLS])
    messages: list[Message] = field(default_factory=lambda: [{"role": "user", "content": TASK}])
    turn: int = 0

    def __post_init__(self) -> None:
        function = self.tools[0]["function"]
        function["description"] = f"({self.mark}) {function['description']}"
        self.client = openai.OpenAI(base_url=f"{self.engine.url}/v1", api_key="none-needed", max_retries=0)

    def body(self) -> dict[str, Any]:
        """What the next call sends, in copies: the engine's interface and the SDK get the same."""
        messages = [{"role": "system", "content": self.system}, *self.messages]
        return copy.deepcopy({"messages": messages, "tools": self.tools})

    def ask(self) -> tuple[int, int]:
        """One call; the prompt tokens that the engine counted, and how many of them it had in its cache."""
        answer = self.client.chat.completions.create(model=self.engine.arch, max_tokens=1, temperature=0, **self.body())
        assert answer.usage is not None and answer.usage.prompt_tokens_details is not None
        return answer.usage.prompt_tokens, answer.usage.prompt_tokens_details.cached_tokens or 0

    def work(self, turns: int) -> None:
        """Call, append what the model is held to have said and what its tool returned, call again."""
        for _ in range(turns):
            self.ask()
            self.append()

    def append(self, about: str = "I read the next part of the source before I judge it.") -> None:
        """One exchange: a tool call and its result, a piece of source code."""
        self.turn += 1
        start, size = self.turn * 997 % (len(SOURCE) - 2000), RESULTS[self.turn % len(RESULTS)]
        arguments = json.dumps({"path": f"tally/part_{self.turn}.py", "first": start, "count": size // 40})
        call = {"id": f"call_{self.turn}", "type": "function", "function": {"name": "read", "arguments": arguments}}
        said = {
            "role": "assistant",
            "content": about,
            "reasoning_content": "Nothing is certain yet.",
            "tool_calls": [call],
        }
        returned = {"role": "tool", "tool_call_id": call["id"], "content": SOURCE[start : start + size]}
        self.messages += [said, returned]

    def true_prefix(self, before: dict[str, Any]) -> int:
        """How many leading tokens the next prompt shares with that of an earlier body, by the engine's own tokenizer."""
        old, new = (self._tokens(body) for body in (before, self.body()))
        return next((n for n, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))

    def _tokens(self, body: dict[str, Any]) -> list[int]:
        prompt = self.engine.post("/apply-template", body)["prompt"]
        return self.engine.post("/tokenize", {"content": prompt, "parse_special": True})["tokens"]


@pytest.fixture(scope="module", params=["llama", "kimi-k3"])
def engine(request: pytest.FixtureRequest) -> Iterator[Running]:
    """One engine per architecture, for all tests of this module."""
    with Engine(request.param) as url:
        yield Running(request.param, url)


@pytest.fixture
def settings(tmp_path: Path, engine: Running, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's environment that names the engine's host."""
    file = tmp_path / "ledger.jsonl"
    monkeypatch.setenv("CONTEXT_LEDGER_FILE", str(file))
    monkeypatch.setenv("CONTEXT_LEDGER_SURFACES", f"{urlsplit(engine.url).netloc}=llama_cpp")
    monkeypatch.setenv("CONTEXT_LEDGER_REPOSITORY", "off")
    return file


@pytest.fixture
def agent(engine: Running, request: pytest.FixtureRequest) -> Agent:
    """An agent of this test alone."""
    return Agent(engine, hashlib.sha256(request.node.name.encode()).hexdigest()[:12])


def holds(engine: Running, entry: dict[str, Any]) -> None:
    """Within one percent of the prompt where every common token is reused, else an upper bound."""
    predicted, cached, prompt = entry["reusable_tokens"], entry["cached_tokens"], entry["input_tokens"]
    if engine.arch == "llama":
        assert abs(predicted - cached) <= prompt // 100, (predicted, cached, prompt)
    else:
        assert cached <= predicted + prompt // 100, (predicted, cached, prompt)
        causes = [entry["miss_cause"], *entry["miss_secondary"]]
        assert cached >= predicted - prompt // 100 or "granularity" in causes, (predicted, cached, causes)


def place(entry: dict[str, Any]) -> dict[str, Any]:
    """The position of a miss without what it does not have."""
    return {name: value for name, value in (entry["miss_position"] or {}).items() if value is not None}


def test_appending_is_predicted_to_the_token(agent: Agent, ledger: Ledger) -> None:
    """Over fourteen turns everything that was sent before is reused, exactly as predicted, and nothing is blamed."""
    counts = []
    for _ in range(14):
        counts.append(agent.ask())
        agent.append()
    entries = ledger.flat()
    assert [(entry["input_tokens"], entry["cached_tokens"]) for entry in entries] == counts
    assert [entry["cached_tokens"] for entry in entries[1:]] == [prompt for prompt, _ in counts[:-1]]
    assert [entry["reusable_tokens"] for entry in entries[1:]] == [prompt for prompt, _ in counts[:-1]]
    assert [entry["miss_cause"] for entry in entries] == ["cold_start"] + [None] * 13
    assert counts[-1][0] < 20_000
