"""The built wheel, not the checkout, under every Python found here beside the oldest and newest SDKs.

The tests run in a folder that holds them and `spec/` alone, so that only the installed package can be imported.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import nox

nox.options.default_venv_backend = "venv"
ROOT = Path(__file__).parent
PYTHONS = ["3.10", "3.11", "3.12", "3.13"]
OLDEST = [
    "openai==1.26.0",
    "httpx<0.28",
    "anthropic==0.49.0",
    "opentelemetry-sdk==1.38.0",
    "opentelemetry-instrumentation==0.59b0",
    "wrapt==1.16.0",
    "xxhash==3.4.1",
    "orjson==3.10.0",
    "genai-prices==0.1.4",
    "tiktoken==0.9.0",
    "rich==13.7.0",
]
SDKS = {"oldest": OLDEST, "middle": ["openai>=2,<3", "anthropic>=1,<2"], "newest": ["openai", "anthropic"]}
TESTS = (
    "test_calls.py",
    "test_instrumentation.py",
    "test_telemetry.py",
    "test_zero_code.py",
    "test_vectors.py",
    "test_cli.py",
)


@nox.session(python=PYTHONS)
@nox.parametrize("sdks", list(SDKS))
def wheel(session: nox.Session, sdks: str) -> None:
    """The call matrix, zero-code runs, vectors and command line against the installed wheel."""
    if sdks == "oldest" and session.python == "3.13":
        session.skip("orjson 3.10.0 and tiktoken 0.9 have no wheels for Python 3.13")
    if sdks == "middle" and session.python != "3.12":
        session.skip("the middle line runs under one Python")
    folder = Path(session.create_tmp()).resolve() / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("tests", "spec"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    session.run("python", "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT))
    built = next(folder.glob("otel_context_ledger-*.whl"))
    session.install("-q", "pytest", "pyyaml", *SDKS[sdks], f"otel-context-ledger[otlp] @ {built.as_uri()}")
    session.chdir(folder)
    session.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"tests/{name}" for name in TESTS))
