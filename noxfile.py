"""The built wheel, not the checkout, under every Python found here beside the oldest and newest SDKs, and in the real
clients; and queries on engines that need an environment of their own.

The tests run in a folder that holds them, `spec/` and `collector/` alone, so that only the installed package can be
imported.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import nox

nox.options.default_venv_backend = "venv"
nox.options.sessions = ["wheel"]
ROOT = Path(__file__).parent
COLLECTOR = ROOT / "dist" / "otelcol-context-ledger"
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
    "jsonschema==4.21.0",
    "rapidfuzz==3.6.0",
]
SDKS = {"oldest": OLDEST, "middle": ["openai>=2,<3", "anthropic>=1,<2"], "newest": ["openai", "anthropic"]}
TESTS = (
    "test_calls.py",
    "test_courses.py",
    "test_dialects.py",
    "test_diagnostics.py",
    "test_instrumentation.py",
    "test_tasks.py",
    "test_telemetry.py",
    "test_tools.py",
    "test_zero_code.py",
    "test_vectors.py",
    "test_cli.py",
    "test_dashboard.py",
)
# kimi-cli 1.50.0 is the last release that runs; it needs Python 3.12, and fails at its own imports under 3.12.1.
CLIENTS = {
    "openai-agents": ("3.12", "openai-agents==0.24.0"),
    "langchain-openai": ("3.12", "langchain-openai==1.7.4"),
    "pydantic-ai": ("3.12", "pydantic-ai-slim[openai,anthropic]==2.68.0"),
    "litellm": ("3.12", "litellm==1.110.2"),
    "kosong": ("3.12", "kosong==0.56.0"),
    "kimi-cli": ("3.13", "kimi-cli==1.50.0"),
}
# Other instrumentations of the openai SDK. openlit and agento11y need openai below 3 and are not among them.
GENAI = "opentelemetry-instrumentation-genai-openai==1.3b0"
TRACELOOP = "opentelemetry-instrumentation-openai==0.62.4"
OPENINFERENCE = "openinference-instrumentation-openai==0.1.66"
PEERS = {
    "genai-openai": [GENAI],
    "traceloop": [TRACELOOP],
    "openinference": [OPENINFERENCE],
    "all": [GENAI, TRACELOOP, OPENINFERENCE],
    "langfuse": ["langfuse==5.0.4"],
    "logfire": ["logfire==5.4.0"],
}
PEERS_SDK = ["openai==3.57.0", "anthropic==2.14.0"]
# The engine of ClickHouse as a library.
CHDB = "chdb-core==26.9.0"


@nox.session(python=PYTHONS)
@nox.parametrize("sdks", list(SDKS))
def wheel(session: nox.Session, sdks: str) -> None:
    """The call matrix, zero-code runs, vectors and command line against the installed wheel."""
    if sdks == "oldest" and session.python == "3.13":
        session.skip("orjson 3.10.0 and tiktoken 0.9 have no wheels for Python 3.13")
    if sdks == "middle" and session.python != "3.12":
        session.skip("the middle line runs under one Python")
    _test(session, [*SDKS[sdks], "pyyaml", "hypothesis"], [f"tests/{name}" for name in TESTS])


@nox.session
@nox.parametrize("python,client", [nox.param(python, name, id=name) for name, (python, _) in CLIENTS.items()])
def clients(session: nox.Session, client: str) -> None:
    """A real client in an environment of its own, under `opentelemetry-instrument`, against the simulated provider."""
    _test(session, [CLIENTS[client][1]], [f"tests/clients/with_{client.replace('-', '_')}.py"])


@nox.session
@nox.parametrize("peer", list(PEERS), ids=list(PEERS))
def peers(session: nox.Session, peer: str) -> None:
    """Another instrumentation beside the ledger, in an environment of its own, compared with the same program bare; and
    its spans alone through the collector, where one was built."""
    session.env["PEER"] = peer
    if COLLECTOR.exists():
        session.env.setdefault("OTELCOL", str(COLLECTOR))
    tests = [f"tests/peers/with_{name}.py" for name in ("calls", "zero_code", "collector")]
    _test(session, [*PEERS_SDK, *PEERS[peer]], tests)


@nox.session(python=["3.12"])
def clickhouse(session: nox.Session) -> None:
    """The queries of docs/clickhouse.md on ClickHouse's engine; Go is needed for the exporter's table."""
    session.install("-q", "pytest", CHDB, ".[otlp]")
    session.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/clickhouse/with_queries.py")


def _test(session: nox.Session, packages: list[str], tests: list[str]) -> None:
    """These tests, in an environment with the built wheel and these packages."""
    folder = Path(session.create_tmp()).resolve() / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("tests", "spec", "collector"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    session.run("python", "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT))
    built = next(folder.glob("otel_context_ledger-*.whl"))
    session.install("-q", "pytest", *packages, f"otel-context-ledger[otlp] @ {built.as_uri()}")
    session.chdir(folder)
    session.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
