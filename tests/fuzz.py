"""The long form of the fuzz tests: `python -m tests.fuzz SECONDS [SEED]`, for as long as it is told to.

Each round runs tests/test_fuzz.py with another seed and more examples, after one walk through every failure of ours
(tests/test_faults.py). A round that fails ends the run: hypothesis shows the example, shrunk, and the line that runs it
again; the seed is printed here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

FIRST, MOST = 100, 1_600


def main(seconds: float, seed: int) -> int:
    """Whole rounds until `seconds` are over; the exit code of the first that failed, else 0."""
    began, rounds = time.monotonic(), 0
    if failed := run("every function of ours fails", "tests/test_faults.py", FUZZ_WALK="all"):
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
    given = [*sys.argv[1:], "300", ""][:2] if len(sys.argv) < 3 else sys.argv[1:3]
    sys.exit(main(float(given[0]), int(given[1] or time.time())))
