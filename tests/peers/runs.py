"""Owns the runs of the peer's program in this environment: bare, and with the ledger switched on before or after it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from otel_context_ledger import store
from tests.conftest import flat
from tests.peers.calls import CALLS
from tests.provider import Provider

PEER = os.environ.get("PEER", "none")
OURS = "otel_context_ledger"
ORDERS = ("before", "after")
SECONDS = 240
# Attributes that hold a time, or where in the program and its libraries a call was made.
TIMED = {
    "gen_ai.response.time_to_first_chunk",
    "duration",
    "langfuse.observation.completion_start_time",
    "logfire.msg",
    "logfire.exception.fingerprint",
}


@dataclass(frozen=True)
class Run:
    """One run: each call's result and spans, all metrics, and the ledger's lines beside what the provider was asked."""

    calls: dict[str, Any]
    metrics: dict[str, list[Any]]
    entries: dict[str, list[dict[str, Any]]]
    asked: dict[str, Any]
    stderr: str

    def spans(self, call: str, ours: bool | None = None) -> list[dict[str, Any]]:
        """The spans of a call: all, only ours, or only the others."""
        found: list[dict[str, Any]] = self.calls[call]["spans"]
        return [span for span in found if ours is None or (span["scope"] == OURS) == ours]


@cache
def run(ledger: str) -> Run:
    """The program's run with the ledger not there (none), or switched on before or after the peer."""
    with Provider() as provider, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ledger.jsonl"
        done = subprocess.run(
            [sys.executable, "-m", "tests.peers.program", PEER, ledger, provider.url, str(file)],
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
            cwd=Path(__file__).parents[2],
        )
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        lines = [flat(dict(entry)) for entry in store.read(file).entries] if file.exists() else []
        asked = dict(zip(CALLS, provider.requests, strict=True))
    return Run(told["calls"], told["metrics"], _by_call(told["calls"], lines), asked, done.stderr)


def _by_call(calls: dict[str, Any], lines: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The lines of each call: the program says after each call how many there are."""
    ends = [0, *(told["lines"] for told in calls.values())]
    return {call: lines[start:end] for call, start, end in zip(calls, ends, ends[1:], strict=False)}
