"""Owns the engine's process: llama.cpp's own HTTP server, from the `xllamacpp` wheel, on a free loopback port.

As a program (`python -m tests.engine.server --arch llama [name=value …]`) it prints `READY url` and serves until its
standard input closes: a parent that dies takes it along. `Engine` is that parent. Only the child imports the engine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "engine"
# One slot and the host's cache: what is reused is then a matter of the prompt alone.
KNOBS: dict[str, Any] = {
    "n_ctx": 32_768,
    "n_parallel": 1,
    "fit_params": False,
    "port": 0,
    "verbosity": -1,
    "use_jinja": True,
    "endpoint_slots": True,
    "endpoint_props": True,
}


class Engine:
    """A running engine with a generated model: `with Engine("kimi-k3", n_ctx=16384) as url: …`.

    `knobs` are fields of llama.cpp's common parameters, e.g. `cache_ram_mib=0`, `checkpoint_min_step=128`. The child
    runs in the interpreter that `ENGINE_PYTHON` names, this one by default. Entering raises RuntimeError with the end
    of the child's log if it does not start.
    """

    def __init__(self, arch: str = "llama", directory: Path = CACHE, **knobs: Any) -> None:
        python = os.environ.get("ENGINE_PYTHON", sys.executable)
        settings = [f"{name}={json.dumps(value)}" for name, value in knobs.items()]
        options = ["--arch", arch, "--directory", str(directory), *settings]
        self._command = [python, "-m", "tests.engine.server", *options]
        self._log = directory / f"{arch}-{os.getpid()}.log"

    def __enter__(self) -> str:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("w", encoding="utf-8") as log:
            self._child = subprocess.Popen(
                self._command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        url = self._ready()
        if url is None:
            self.__exit__()
            raise RuntimeError(f"the engine did not start:\n{self._tail}")
        return url

    def __exit__(self, *exc: object) -> None:
        self._child.kill()
        self._child.communicate()
        self._tail = self._log.read_text(encoding="utf-8", errors="replace")[-2000:]
        self._log.unlink()

    def _ready(self) -> str | None:
        for line in self._child.stdout or ():
            if line.startswith("READY "):
                return line.split()[1]
        return None


def serve(model: Path, knobs: dict[str, Any]) -> None:
    """Start the server, say where it is, and wait for the end of standard input."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model)
    for name, value in knobs.items():
        setattr(parameters, name, value)
    server = xllamacpp.Server(parameters)
    print("READY", server.listening_address, flush=True)
    sys.stdin.read()
    os._exit(0)


def _knob(text: str) -> tuple[str, Any]:
    """`name=value`, the value as JSON where it is JSON (a number, true, false), else as text."""
    name, value = text.split("=", 1)
    with contextlib.suppress(ValueError):
        return name, json.loads(value)
    return name, value


def main() -> None:
    from tests.engine import model

    parser = argparse.ArgumentParser(prog="python -m tests.engine.server", description=__doc__)
    parser.add_argument("--arch", default="llama", choices=sorted(model.ARCHITECTURES))
    parser.add_argument("--directory", type=Path, default=CACHE, help="where generated models are kept")
    parser.add_argument("knobs", nargs="*", type=_knob, metavar="name=value", help="llama.cpp parameters")
    chosen = parser.parse_args()
    serve(model.build(chosen.arch, chosen.directory), KNOBS | dict(chosen.knobs))


if __name__ == "__main__":
    main()
