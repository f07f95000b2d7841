"""Runs a user's program twice, bare and under `opentelemetry-instrument`, each against a fresh provider."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from otel_context_ledger import store
from tests.conftest import flat
from tests.provider import CacheRules, Provider, Received, Script

PROGRAMS = Path(__file__).parent / "programs"
BIN = Path(sys.executable).parent
SECONDS = 120
QUIET = {f"OTEL_{signal}_EXPORTER": "none" for signal in ("TRACES", "METRICS", "LOGS")}
# Clients that would ask a server of their own for prices or tell one about the run.
OFFLINE = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_AGENTS_DISABLE_TRACING": "1", "KIMI_DISABLE_TELEMETRY": "1",
    "LANGSMITH_TRACING": "false", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ran:
    """What a program did: its output and exit code, what the provider received, and the ledger's lines, laid flat: of
    calls, and of compactions that are over."""

    stdout: str
    stderr: str
    code: int
    requests: tuple[Received, ...]
    entries: tuple[Mapping[str, Any], ...]
    compactions: tuple[Mapping[str, Any], ...] = ()

    @property
    def told(self) -> Any:
        """What the program printed about its run, as JSON."""
        return json.loads(self.stdout)

    @property
    def counted(self) -> list[tuple[int | None, ...]]:
        """Prompt, cached and output tokens of every request, as the provider counted them."""
        return [(r.prompt, r.cached, r.output) for r in self.requests]


@dataclass(frozen=True, slots=True)
class Pair:
    """The same program without and with the ledger."""

    bare: Ran
    watched: Ran


@dataclass(frozen=True, slots=True)
class Place:
    """Where a program runs: its folder, what the provider says and keeps, and the surface that its host is named as."""

    folder: Path
    script: Script
    surface: str = "kimi_open_platform"
    rules: CacheRules | None = None


Command = Callable[[Provider], list[str]]


def program(name: str, *arguments: str) -> Command:
    """The command of a program under `programs/`, which gets the provider's URL first."""
    return lambda provider: [str(BIN / "python"), str(PROGRAMS / name), provider.url, *arguments]


def twice(command: Command, place: Place) -> Pair:
    """Bare first, then with the ledger, each against a provider that has seen nothing yet."""
    with Provider(place.script, rules=place.rules) as provider:
        bare = run(command, place, provider, instrumented=False)
    with Provider(place.script, rules=place.rules) as provider:
        return Pair(bare, run(command, place, provider))


def run(
    command: Command, place: Place, provider: Provider, instrumented: bool = True, stdin: str = "", **env: str
) -> Ran:
    """One run; `env` is laid over what a user would set."""
    line = command(provider)
    done = subprocess.run(
        [str(BIN / "opentelemetry-instrument"), *line] if instrumented else line,
        env=_environment(provider, place) | env,
        input=stdin, capture_output=True, text=True, check=False, timeout=SECONDS, cwd=place.folder,
    )  # fmt: skip
    file = _ledger(place)
    lines = store.read(file).entries if file.exists() else ()
    calls = tuple(flat(line) for line in lines if "kind" not in line)
    told: Any = (line["compaction"] for line in lines if line.get("kind") == "compaction")
    over = tuple(event for event in told if event["settled"])
    return Ran(done.stdout, done.stderr, done.returncode, tuple(provider.requests), calls, over)


def _ledger(place: Place) -> Path:
    return place.folder.parent / f"{place.folder.name}.jsonl"


def _environment(provider: Provider, place: Place) -> dict[str, str]:
    own = {
        "CONTEXT_LEDGER_FILE": str(_ledger(place)),
        "CONTEXT_LEDGER_SURFACES": f"127.0.0.1:{provider.server_port}={place.surface}",
        "CONTEXT_LEDGER_REPOSITORY": "off",
    }
    return os.environ | QUIET | OFFLINE | own
