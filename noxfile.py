"""The built wheel, not the checkout, under every Python found here beside the oldest and newest SDKs."""

from __future__ import annotations

import nox

nox.options.default_venv_backend = "venv"
PYTHONS = ["3.10", "3.11", "3.12", "3.13"]
SDKS = {
    "oldest": ["openai==1.26.0", "httpx<0.28", "anthropic==0.49.0", "opentelemetry-sdk==1.36.0", "opentelemetry-instrumentation==0.57b0"],
    "openai2": ["openai>=2,<3", "anthropic>=1,<2"],
    "newest": ["openai", "anthropic"],
}
TESTS = ["tests/test_calls.py", "tests/test_streams.py", "tests/test_zero_code.py", "tests/test_vectors.py"]


@nox.session(python=PYTHONS)
@nox.parametrize("sdks", list(SDKS))
def wheel(session: nox.Session, sdks: str) -> None:
    """The call matrix, streams, zero-code run and vectors against the installed wheel."""
    if sdks == "oldest" and session.python == "3.13":
        session.skip("openai 1.26 and the pydantic of its time have no wheels for Python 3.13")
    if sdks == "openai2" and session.python != "3.12":
        session.skip("the middle line runs under one Python")
    target = session.create_tmp()
    session.run("python", "-m", "pip", "wheel", "-q", "--no-deps", "-w", target, ".")
    session.install("pytest", *SDKS[sdks], f"otel-context-ledger[otlp] @ file://{_only_wheel(target)}")
    session.run("python", "-m", "pytest", "-q", "--import-mode=importlib", *TESTS, env={"LEDGER_UNDER_TEST": "installed"})


def _only_wheel(folder: str) -> str:
    from pathlib import Path

    return str(max(Path(folder).glob("otel_context_ledger-*.whl"), key=lambda file: file.stat().st_mtime))
