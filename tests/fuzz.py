"""The long form of the fuzz tests: `python -m tests.fuzz SECONDS [SEED]`, for as long as it is told to.

First one walk through every failure of ours (tests/test_faults.py), which takes a few minutes; then rounds of
tests/test_fuzz.py, each with another seed and more examples. A round that fails ends the run: hypothesis shows the
example, shrunk, and the line that runs it again; the seed is printed here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

FIRST, MOST = 100, 1_600
PROGRAMS = ("conversation", "compacted", "streams", "raw", "helpers", "awaited")


def main(seconds: float, seed: int) -> int:
    """Whole rounds until `seconds` are over; the exit code of the first that failed, else 0."""
    began, rounds = time.monotonic(), 0
    for program in PROGRAMS:
        if failed := run(
            f"every function of ours that runs in {program} fails", "tests/test_faults.py", FUZZ_WALK=program
        ):
            return failed
    while time.monotonic() - began < seconds:
        examples = min(FIRST * 2**rounds, MOST)
        what = f"round {rounds + 1}, seed {seed + rounds}, {examples} examples, {time.monotonic() - began:.0f} s so far"
        if failed := run(what, "tests/test_fuzz.py", f"--hypothesis-seed={seed + rounds}", FUZZ_EXAMPLES=str(examples)):
            print(f"failed: python -m tests.fuzz 1 {seed + rounds} with FUZZ_EXAMPLES={examples}", flush=True)
            return failed
        rounds += 1
    print(f"{rounds} rounds in {time.monotonic() - began:.0f} s, nothing found", flush=True)
    return 0


def run(what: str, *arguments: str, **env: str) -> int:
    """One run of pytest, announced."""
    print(f"== {what}", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--show-capture=no", *arguments]
    return subprocess.run(command, env=os.environ | env, check=False).returncode


if __name__ == "__main__":
    seconds_, seed_ = [*sys.argv[1:3], *("300", str(int(time.time())))[len(sys.argv) - 1 :]]
    sys.exit(main(float(seconds_), int(seed_)))
