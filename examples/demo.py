"""`make demo`: run the example agent under `opentelemetry-instrument` and let the ledger explain what it cost; then a
task that fails and succeeds while every call is cached, and let the ledger say whether that was right.

    [ENGINE=llama [ENGINE_ARCH=kimi-k3]] python examples/demo.py
        [--mistakes none|tools,clock,prune] [--ledger demo/ledger.jsonl] [--collector dist/otelcol-context-ledger]

Without ENGINE the simulated provider answers. With it, llama.cpp does, with a model of random weights in the Kimi K3
architecture or, on request, the `llama` one: scripted steps, real cache; the second act is left out. With a collector
all of it goes through that as well, and a screen says what arrived where. Exit code 1 if a planted mistake was not
named, if anything else was blamed, or if something did not arrive.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from rich.console import Console

EXAMPLES = Path(__file__).resolve().parent
ROOT = EXAMPLES.parent
sys.path[:0] = [str(EXAMPLES), str(ROOT)]

import mistakes  # noqa: E402 (both directories must be importable first)
import pairs  # noqa: E402
import sample_repository  # noqa: E402
import script  # noqa: E402
import stack  # noqa: E402
import verdict  # noqa: E402

from tests.provider import Answer, Provider, ToolCall, always, by_turn  # noqa: E402

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


QUIET = {f"OTEL_{signal}_EXPORTER": "none" for signal in ("TRACES", "METRICS", "LOGS")}


def run_agent(
    environment: Mapping[str, str], base: str, ledger: Path, name: str, *flags: str, folder: Path | None = None
) -> int:
    """An agent as its user would start it: no code changed, environment variables only; its exit code."""
    asked = {
        "OPENAI_BASE_URL": base,
        "OPENAI_API_KEY": "none-needed",
        "CONTEXT_LEDGER_FILE": str(ledger),
        "CONTEXT_LEDGER_SURFACES": f"{urlsplit(base).netloc}=kimi_open_platform",
    }
    line = [program("opentelemetry-instrument"), sys.executable, str(EXAMPLES / name), *flags]
    return subprocess.run(line, env={**environment, **asked}, cwd=folder, check=False).returncode


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run the example agent and explain what its context cost.")
    parser.add_argument("--mistakes", default=",".join(mistakes.SCHEDULE))
    parser.add_argument("--ledger", type=Path, default=ROOT / "demo" / "ledger.jsonl")
    parser.add_argument(
        "--collector", default="", help="the binary of a collector that everything goes through as well"
    )
    return parser.parse_args()


def main() -> int:
    chosen, engine = arguments(), os.environ.get("ENGINE", "")
    first, second = chosen.ledger, chosen.ledger.with_name("second.jsonl")
    first.parent.mkdir(parents=True, exist_ok=True)
    for ledger in (first, second):
        ledger.unlink(missing_ok=True)
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    if not chosen.collector:
        return 0 if acts(chosen, engine, QUIET | os.environ, console) else 1
    folder = first.with_name("collector")
    with stack.opened(chosen.collector, folder) as through:
        done = acts(chosen, engine, os.environ | through.environment, console)
        rows = stack.judge(through.to, [ledger for ledger in (first, second) if ledger.exists()])
        return 0 if stack.show(rows, folder, console) and done else 1


def acts(chosen: argparse.Namespace, engine: str, environment: Mapping[str, str], console: Console) -> bool:
    """Both acts; whether the ledger named what was planted in them."""
    flags = ["--mistakes", chosen.mistakes, *(["--small", "--scripted"] if engine else [])]
    with backend(engine) as base:
        failed = run_agent(environment, base, chosen.ledger, "agent.py", *flags)
    if failed or not chosen.ledger.exists():
        print("the agent failed" if failed else "the agent ran, but nothing wrote a ledger", file=sys.stderr)
        return False
    subprocess.run([program("context-ledger"), "show", "--file", str(chosen.ledger)], check=False)
    found = verdict.judge(verdict.read(chosen.ledger), mistakes.chosen(chosen.mistakes))
    verdict.show(found, console)
    second = chosen.ledger.with_name("second.jsonl")
    return found.holds and bool(engine or second_act(environment, second, console))


def second_act(environment: Mapping[str, str], ledger: Path, console: Console) -> bool:
    """The task that fails once, in a work tree of its own; whether the ledger said what was wrong with cached calls."""
    print("\nSecond act: a task, two attempts, and a cache that looks perfect", flush=True)
    with tempfile.TemporaryDirectory(prefix="tally-") as directory, Provider(always(Answer("I go on."))) as provider:
        workspace = Path(directory).resolve()
        sample_repository.create(workspace)
        subprocess.run(["git", "init", "-q"], cwd=workspace, check=True)
        if run_agent(environment, f"{provider.url}/kimi/v1", ledger, "second_act.py", folder=workspace):
            return False
    line = [program("context-ledger"), "tasks", "--file", str(ledger)]
    subprocess.run(line, check=False)
    books = subprocess.run([*line, "--json"], capture_output=True, check=True).stdout
    return pairs.show(pairs.judge(verdict.read(ledger)), json.loads(books), console)


if __name__ == "__main__":
    sys.exit(main())
