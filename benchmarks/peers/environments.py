"""Environments: one for each contestant, made once and again when its pins change."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".cache" / "peers"
SDK = ("openai==3.57.0", "opentelemetry-sdk==1.45.2")
PINS: dict[str, tuple[str, ...]] = {
    "bare": SDK,
    "genai": (*SDK, "opentelemetry-instrumentation-genai-openai==1.3b0", "opentelemetry-util-genai==1.3b0"),
    "traceloop": (*SDK, "opentelemetry-instrumentation-openai==0.62.4"),
    "openinference": (*SDK, "openinference-instrumentation-openai==0.1.66"),
    "langfuse": (*SDK, "langfuse==5.0.4"),
    "logfire": (*SDK, "logfire==5.4.0"),
    "ledger": (*SDK, "-e", str(ROOT)),
}


def interpreter(name: str) -> Path:
    """The Python of an environment that is ready; raises CalledProcessError if it cannot be made."""
    home = HOME / name
    python, stamp, pins = home / "bin" / "python", home / "pins", "\n".join(PINS[name])
    if not stamp.exists() or stamp.read_text("utf-8") != pins:
        print(f"making the environment of {name}", file=sys.stderr)
        venv.create(home, clear=True, symlinks=os.name != "nt", with_pip=True)
        command = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *PINS[name]]
        subprocess.run(command, check=True)
        stamp.write_text(pins, "utf-8")
    return python
