"""Measures start-up: whole processes that import the SDK and make a client, without us and with us."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from statistics import median

from benchmarks.table import Row

ROUNDS = 9
_CLIENT = "import openai; openai.OpenAI(api_key='none')"
_OURS = "from otel_context_ledger.instrumentation import ContextLedgerInstrumentor as I; I().instrument()"
PROGRAMS = {
    "bare": _CLIENT,
    "opentelemetry": f"import opentelemetry.sdk._logs, opentelemetry.sdk.metrics, opentelemetry.sdk.trace; {_CLIENT}",
    "ours": f"{_OURS}; {_CLIENT}",
}


def measure(quick: bool) -> Iterator[Row]:
    """Two rows: what we add to a bare program, and to one that has OpenTelemetry's SDK already."""
    found: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(ROUNDS // 3 if quick else ROUNDS):
        for name, program in PROGRAMS.items():
            found[name].append(_spent(program))
    bare, base, ours = (median(found[name]) for name in PROGRAMS)
    yield Row("start-up of a program", bare, ours - bare)
    yield Row("start-up of a program with OpenTelemetry", base, ours - base)


def _spent(program: str) -> float:
    """CPU seconds, user and system, of one whole process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
