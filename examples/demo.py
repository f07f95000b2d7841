"""`make demo`: run the example agent under `opentelemetry-instrument` and let the ledger explain what it cost; then a
task that fails and succeeds while every call is cached, and let the ledger say whether that was right.

    [ENGINE=llama [ENGINE_ARCH=kimi-k3]] python examples/demo.py
        [--mistakes none|tools,clock,prune] [--ledger demo/ledger.jsonl]
        [--collector dist/otelcol-context-ledger [--no-wait]]

Without ENGINE the simulated provider answers. With it, llama.cpp does, with a model of random weights in the Kimi K3
architecture or, on request, the `llama` one: scripted steps, real cache; the second act is left out. All ledgers are
drawn on one page of HTML beside them.

With a collector all of it goes through that as well, a third agent works beside the two, and a screen says what arrived
where; where a Prometheus is installed it scrapes all of it, and the boards are served over it, in a terminal until
Ctrl-C. Exit code 1 if a planted mistake was not named, if anything else was blamed, if something did not arrive, or if
the boards were not served.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from rich.console import Console

EXAMPLES = Path(__file__).resolve().parent
ROOT = EXAMPLES.parent
sys.path[:0] = [str(EXAMPLES), str(ROOT)]

import arrivals  # noqa: E402 (both directories must be importable first)
import mistakes  # noqa: E402
import pairs  # noqa: E402
import reviewer  # noqa: E402
import sample_repository  # noqa: E402
import script  # noqa: E402
import stack  # noqa: E402
import verdict  # noqa: E402

from tests.provider import Answer, Provider, ToolCall, always, by_turn  # noqa: E402
from tests.provider.behaviour import Behaviour, in_order  # noqa: E402

WIDTH = 140


def answers() -> list[Answer]:
    """The scripted steps as the simulated model says them."""
    return [_answer(step, turn) for turn, step in enumerate(script.STEPS, 1)]


def _answer(step: script.Step, turn: int) -> Answer:
    calls = tuple(ToolCall(call["name"], call["arguments"], call["id"]) for call in step.tool_calls(turn))
    return Answer(step.text, step.thought, calls)


@contextlib.contextmanager
def backend(engine: str) -> Iterator[str]:
    """The base URL of something that answers: the simulated provider if no engine is named."""
    if not engine:
        with Provider(by_turn(answers())) as provider:
            yield f"{provider.url}/kimi/v1"
        return
    from tests.engine import Engine

    with Engine(os.environ.get("ENGINE_ARCH", "kimi-k3")) as url:
        yield f"{url}/v1"


def program(name: str) -> str:
    """A console script of the environment that runs this file."""
    return str(Path(sys.executable).with_name(name))


@dataclass(frozen=True, slots=True)
class Ledgers:
    """The files of the agents, named after the first one."""

    first: Path

    @property
    def second(self) -> Path:
        return self.first.with_name("second.jsonl")

    @property
    def third(self) -> Path:
        return self.first.with_name("reviewer.jsonl")

    def clear(self) -> None:
        self.first.parent.mkdir(parents=True, exist_ok=True)
        for made in (self.first, self.second, self.third, self.report):
            made.unlink(missing_ok=True)

    @property
    def report(self) -> Path:
        return self.first.with_name("report.html")

    def written(self) -> list[Path]:
        return [ledger for ledger in (self.first, self.second, self.third) if ledger.exists()]


QUIET = {f"OTEL_{signal}_EXPORTER": "none" for signal in ("TRACES", "METRICS", "LOGS")}


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent as its user would start it: no code changed, environment variables only."""

    name: str
    program: str
    ledger: Path
    surface: str = "kimi_open_platform"

    def line(self, *flags: str) -> list[str]:
        return [program("opentelemetry-instrument"), sys.executable, str(EXAMPLES / self.program), *flags]

    def environment(self, given: Mapping[str, str], base: str) -> dict[str, str]:
        return {
            **given,
            "OPENAI_BASE_URL": base,
            "OPENAI_API_KEY": "none-needed",
            "CONTEXT_LEDGER_AGENT": self.name,
            "CONTEXT_LEDGER_FILE": str(self.ledger),
            "CONTEXT_LEDGER_SURFACES": f"{urlsplit(base).netloc}={self.surface}",
        }

    def run(self, given: Mapping[str, str], base: str, *flags: str, folder: Path | None = None) -> int:
        """Its exit code."""
        return subprocess.run(self.line(*flags), env=self.environment(given, base), cwd=folder, check=False).returncode


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run the example agent and explain what its context cost.")
    parser.add_argument("--mistakes", default=",".join(mistakes.SCHEDULE))
    parser.add_argument("--ledger", type=Path, default=ROOT / "demo" / "ledger.jsonl")
    parser.add_argument(
        "--collector", default="", help="the binary of a collector that everything goes through as well"
    )
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    parser.add_argument(
        "--wait",
        action=argparse.BooleanOptionalAction,
        default=at_terminal,
        help="with a collector, keep the boards up until Ctrl-C (default: in a terminal)",
    )
    return parser.parse_args()


def main() -> int:
    chosen, engine = arguments(), os.environ.get("ENGINE", "")
    made = Ledgers(chosen.ledger)
    made.clear()
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    if not chosen.collector:
        done = acts(chosen.mistakes, engine, made, QUIET | os.environ, console)
        report(made)
        return 0 if done else 1
    stack.ends_on_signals()
    began = time.time()
    with stack.opened(chosen.collector, made.first.with_name("collector")) as through:
        environment = os.environ | through.environment
        with reviewing(environment, made.third) as reviewed:
            done = acts(chosen.mistakes, engine, made, environment, console)
        rows = arrivals.judge(through.to, through.seen, made.written())
        whole = arrivals.show(rows, through.to, console)
        report(made)
        served = stack.boards(through.seen, program("context-ledger"), began, chosen.wait) if through.seen else True
        if not through.seen:
            console.print(stack.NONE_HERE)
    return 0 if done and whole and served and reviewed() else 1


def acts(planted: str, engine: str, made: Ledgers, environment: Mapping[str, str], console: Console) -> bool:
    """Both acts; whether the ledger named what was planted in them."""
    flags = ["--mistakes", planted, *(["--small", "--scripted"] if engine else [])]
    with backend(engine) as base:
        failed = Agent("coder", "agent.py", made.first).run(environment, base, *flags)
    if failed or not made.first.exists():
        print("the agent failed" if failed else "the agent ran, but nothing wrote a ledger", file=sys.stderr)
        return False
    subprocess.run([program("context-ledger"), "show", "--file", str(made.first)], check=False)
    found = verdict.judge(verdict.read(made.first), mistakes.chosen(planted))
    verdict.show(found, console)
    return found.holds and bool(engine or second_act(environment, made.second, console))


def second_act(environment: Mapping[str, str], ledger: Path, console: Console) -> bool:
    """The task that fails once, in a work tree of its own; whether the ledger said what was wrong with cached calls."""
    print("\nSecond act: a task, two attempts, and a cache that looks perfect", flush=True)
    with workspace() as folder, Provider(always(Answer("I go on."))) as provider:
        if Agent("fixer", "second_act.py", ledger).run(environment, f"{provider.url}/kimi/v1", folder=folder):
            return False
    line = [program("context-ledger"), "tasks", "--file", str(ledger)]
    subprocess.run(line, check=False)
    books = subprocess.run([*line, "--json"], capture_output=True, check=True).stdout
    return pairs.show(pairs.judge(verdict.read(ledger)), json.loads(books), console)


def report(made: Ledgers) -> None:
    """Leaves the ledgers on one page, and says where."""
    if ledgers := made.written():
        print(flush=True)
        line = [program("context-ledger"), "report", *map(str, ledgers), "--html", str(made.report)]
        subprocess.run(line, check=False)


@contextlib.contextmanager
def workspace() -> Iterator[Path]:
    """The sample repository in a work tree of its own."""
    with tempfile.TemporaryDirectory(prefix="tally-") as directory:
        folder = Path(directory).resolve()
        sample_repository.create(folder)
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
        yield folder


@contextlib.contextmanager
def reviewing(environment: Mapping[str, str], ledger: Path) -> Iterator[Callable[[], bool]]:
    """The third agent at work meanwhile; gives what says, afterwards, whether it came to its end."""
    agent = Agent("reviewer", "reviewer.py", ledger, "openai")
    asking = {**environment, "CONTEXT_LEDGER_PROVIDER_DIAGNOSTICS": "1"}
    with workspace() as folder, Provider(always(Answer("It is in order.")), in_order(spoiled())) as provider:
        given = agent.environment(asking, f"{provider.url}/openai/v1")
        with subprocess.Popen(agent.line(), env=given, cwd=folder) as process:
            yield lambda: process.wait() == 0


def spoiled() -> Iterator[Behaviour | None]:
    """What the reviewer's provider does wrong, call by call."""
    told = {"type": "cache_miss", "reason": "tools_changed", "cache_missed_tokens": 100}
    wrong = {
        reviewer.REFUSED: Behaviour(status=429),
        reviewer.CONTRADICTED: Behaviour(extra={"prompt_cache_diagnostics": told}),
    }
    return map(wrong.get, range(reviewer.ROUNDS))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
