"""`python -m benchmarks`: measures everything and prints one table; what the table says stands in the package."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from datetime import date
from importlib.metadata import version
from pathlib import Path

import benchmarks
from benchmarks import calls, checks, loopback, memory, startup, streams, table
from benchmarks.seam import instrumented

_PACKAGES = ("openai", "opentelemetry-sdk", "genai-prices", "orjson", "xxhash")


def main() -> int:
    parser = argparse.ArgumentParser("python -m benchmarks", description=benchmarks.__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--quick", action="store_true", help="fewer rounds: a minute instead of several")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers to FILE")
    parser.add_argument("--strict", action="store_true", help="end with 1 if a row is over its bar")
    options = parser.parse_args()
    rows, where = list(_measured(options.quick)), conditions()
    print(table.write(rows, where))
    if options.json:
        found = {"conditions": where, "rows": [row.as_json() for row in rows]}
        options.json.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return int(options.strict and any(row.over for row in rows))


def _measured(quick: bool) -> Iterator[table.Row]:
    yield from startup.measure(quick)
    yield from memory.measure(quick)
    with loopback.running() as url:
        with instrumented() as seam:
            yield from streams.measure(seam, url, quick)
            yield from calls.measure(seam, url, quick)
        with checks.workspace(), instrumented() as seam:
            yield from checks.measure(seam, url, quick)


def conditions() -> Mapping[str, str]:
    """What the numbers hold for."""
    packages = {name: version(name) for name in _PACKAGES}
    return {
        "python": platform.python_version(), **packages, "cpu": f"{cpu()} x {os.cpu_count()}",
        "date": date.today().isoformat(),
    }  # fmt: skip


def cpu() -> str:
    """The processor's model where the system tells it."""
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text("utf-8").splitlines() if facts.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


if __name__ == "__main__":
    sys.exit(main())
