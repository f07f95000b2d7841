"""A provider in a process of its own, so that its work counts for nobody: short answers, long streams.

`python -m benchmarks.loopback` prints its address and serves until it is terminated.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.provider import Answer, Provider

EVENTS = 1_000
_SHORT, _LONG = Answer("ok"), Answer("word " * EVENTS)


@contextmanager
def running() -> Iterator[str]:
    """The address of a provider that runs as long as the block."""
    command = [sys.executable, "-m", "benchmarks.loopback"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            yield child.stdout.readline().strip()
        finally:
            child.terminate()


class _Forgetful(Provider):
    """Keeps no request: a run sends gigabytes."""

    def reply(self, *args: Any) -> Any:
        answer = super().reply(*args)
        self.requests.clear()
        return answer


def main() -> None:
    provider = _Forgetful(lambda body: _LONG if body.get("stream") else _SHORT)
    print(provider.url, flush=True)
    provider.serve_forever()


if __name__ == "__main__":
    main()
