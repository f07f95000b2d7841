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
        for tool in (self.tools[0], self.tools[-1]):
            tool["function"]["description"] = f"({self.mark}) {tool['function']['description']}"
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
        """How many leading tokens the next prompt shares with that of an earlier body, by the engine itself."""
        old, new = (self._tokens(body) for body in (before, self.body()))
        return next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))

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
    """Within one percent of the prompt where every common token is reused; else an upper bound, and where less was
    reused than it says, granularity is among the causes."""
    predicted, cached, slack = entry["reusable_tokens"], entry["cached_tokens"], entry["input_tokens"] // 100
    assert cached <= predicted + slack
    if engine.arch == "llama":
        assert cached >= predicted - slack
    elif cached < predicted - max(64, slack):
        assert "granularity" in (entry["miss_cause"], *entry["miss_secondary"])


def place(entry: dict[str, Any]) -> dict[str, Any]:
    """The position of a miss without what it does not have."""
    return {name: value for name, value in (entry["miss_position"] or {}).items() if value is not None}


@dataclass(frozen=True)
class Change:
    """Something that an agent does to its context, and what that must be called, in which place."""

    name: str
    make: Callable[[Agent], object]
    cause: str
    detail: list[str]
    position: dict[str, Any]


def first_character(agent: Agent) -> None:
    agent.system = "P" + agent.system[1:]


def one_description(agent: Agent) -> None:
    function = agent.tools[3]["function"]
    function["description"] = "Carefully r" + function["description"][1:]


def middle_message(agent: Agent) -> None:
    agent.messages[3]["content"] = "I have read the next part of the source before I judge it."


CHANGES = (
    Change(
        "first-system-character", first_character, "policy_changed", [],
        {"segment": "system", "index": 0, "offset": 0, "kind": "text"},
    ),
    Change(
        "one-tool-description", one_description, "tools_changed", ["description"],
        {"segment": "tool", "index": 3, "name": "edit", "offset": 0, "kind": "description"},
    ),
    Change(
        "tools-reversed", lambda agent: agent.tools.reverse(), "tools_reordered", [],
        {"segment": "tool", "index": 0, "name": "plan", "kind": "reordered"},
    ),
    Change(
        "middle-message-edited", middle_message, "history_rewritten", ["edited"],
        {"segment": "message", "index": 4, "name": "assistant", "offset": 2, "kind": "edited"},
    ),
)  # fmt: skip
every_change = pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)


@every_change
def test_a_change_is_named_in_its_place(agent: Agent, change: Change, ledger: Ledger) -> None:
    """After four turns of appending, the one call that follows a change is blamed on it, and no other is."""
    agent.work(4)
    change.make(agent)
    agent.work(2)
    entries = ledger.flat()
    blamed = entries[4]
    assert [entry["miss_cause"] for entry in entries] == ["cold_start", *[None] * 3, change.cause, None]
    assert (blamed["miss_detail"], place(blamed)) == (change.detail, change.position)
    assert (blamed["miss_confidence"], blamed["cache_outcome"] != "hit") == ("observed", True)


@every_change
def test_what_a_change_leaves_is_predicted(agent: Agent, change: Change, ledger: Ledger) -> None:
    """What remains reusable after a change is predicted within one percent of the prompt, without a tokenizer."""
    agent.work(4)
    change.make(agent)
    agent.ask()
    for entry in ledger.flat()[1:]:
        holds(agent.engine, entry)


@pytest.mark.parametrize("change", [CHANGES[0], CHANGES[-1]], ids=lambda change: change.name)
def test_the_engine_reuses_the_true_common_prefix(agent: Agent, change: Change, ledger: Ledger) -> None:
    """The yardstick itself: full attention reuses what the two prompts share by the engine's own template and
    tokenizer, the recurrent state at most that."""
    agent.work(2)
    before = agent.body()
    agent.ask()
    change.make(agent)
    truth = agent.true_prefix(before)
    _, cached = agent.ask()
    assert cached == truth if agent.engine.arch == "llama" else cached <= truth
    assert ledger.flat()[-1]["cached_tokens"] == cached


def test_appending_is_predicted_to_the_token(agent: Agent, ledger: Ledger) -> None:
    """Over twelve turns everything that was sent before is reused, exactly as predicted, and nothing is blamed."""
    counts = []
    for _ in range(12):
        counts.append(agent.ask())
        agent.append()
    entries = ledger.flat()
    assert [(entry["input_tokens"], entry["cached_tokens"]) for entry in entries] == counts
    assert [entry["cached_tokens"] for entry in entries[1:]] == [prompt for prompt, _ in counts[:-1]]
    assert [entry["reusable_tokens"] for entry in entries[1:]] == [prompt for prompt, _ in counts[:-1]]
    assert [entry["miss_cause"] for entry in entries] == ["cold_start"] + [None] * 11
    assert counts[-1][0] < 20_000


def test_a_clock_in_the_system_text_is_named_and_measured_at_every_call(agent: Agent, ledger: Ledger) -> None:
    """A time before the rules breaks the prefix call after call, at the same place and with the same prediction."""
    for second in range(11, 17):
        agent.system = f"Current time: 2026-11-20T09:30:{second}Z\n\n{SYSTEM}"
        agent.work(1)
    entries = ledger.flat()[1:]
    where = {"segment": "system", "index": 0, "offset": 32, "kind": "datetime"}
    assert [entry["miss_cause"] for entry in entries] == ["volatile_prefix"] * 5
    assert [(entry["miss_detail"], place(entry)) for entry in entries] == [(["datetime", "second"], where)] * 5
    for entry in entries:
        holds(agent.engine, entry)


def test_an_undo_is_nobodys_fault(agent: Agent, ledger: Ledger) -> None:
    """Taking back the last exchange and going another way reuses everything before it; that it was taken back is no
    fault of the history. A recurrent state may have no checkpoint there."""
    agent.work(5)
    agent.ask()
    del agent.messages[-2:]
    agent.append("That led nowhere, I try the other module.")
    agent.work(2)
    entries = ledger.flat()
    allowed = {None} if agent.engine.arch == "llama" else {None, "granularity"}
    assert {entry["miss_cause"] for entry in entries[1:]} <= allowed
    for entry in entries[1:]:
        holds(agent.engine, entry)


def test_interleaved_sessions_do_not_blame_each_other(engine: Running, agent: Agent, ledger: Ledger) -> None:
    """Two agents with tools of their own, call by call in turn: two sessions, each predicted to the token and without a
    cause after its first call. (With one header the engine would overwrite the one conversation with the other.)"""
    other = Agent(engine, agent.mark[::-1])
    for _ in range(5):
        agent.work(1)
        other.work(1)
    entries = ledger.flat()
    mine, others = entries[::2], entries[1::2]
    assert [len({entry["session_id"] for entry in own}) for own in (mine, others, entries)] == [1, 1, 2]
    assert [entry["miss_cause"] for entry in entries] == ["cold_start"] * 2 + [None] * 8
    for own in (mine, others):
        sizes = [entry["input_tokens"] for entry in own[:-1]]
        assert [(e["reusable_tokens"], e["cached_tokens"]) for e in own[1:]] == [(size, size) for size in sizes]


def test_two_sessions_with_one_header_evict_each_other(engine: Running, agent: Agent, ledger: Ledger) -> None:
    """Two agents with the same tools and rules, call by call in turn, on one slot: each overwrites the other's
    conversation and reads only what the two share. That is said, with what came in between, and is no granularity."""
    other = Agent(engine, agent.mark)
    other.messages[0]["content"] = "The credit notes do not match their invoices. Say why, and change nothing."
    for _ in range(5):
        agent.work(1)
        other.work(1)
    entries = ledger.flat()
    assert len({entry["session_id"] for entry in entries}) == 2
    told = [(entry["miss_cause"], entry["miss_detail"], entry["miss_evidence"][:2]) for entry in entries]
    assert [cause for cause, _, _ in told[:2]] == ["cold_start"] * 2
    assert told[2:] == [("provider_unexplained", ["evicted"], ["prefix_intact", "call_between"])] * 8


def test_a_second_session_starts_with_the_shared_header(engine: Running, agent: Agent, ledger: Ledger) -> None:
    """The first call of a session whose tools and rules another session sent already is predicted to find them."""
    agent.work(3)
    other = Agent(engine, agent.mark)
    other.messages[0]["content"] = "The credit notes do not match their invoices. Say why, and change nothing."
    other.ask()
    entry = ledger.flat()[-1]
    predicted, cached, slack = entry["reusable_tokens"], entry["cached_tokens"], entry["input_tokens"] // 100
    assert entry["miss_cause"] == "cold_start"
    assert abs(cached - predicted) <= slack if engine.arch == "llama" else cached <= predicted + slack
