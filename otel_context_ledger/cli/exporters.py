"""What `doctor` says about where spans, metrics and events go: which mode is in force, and whether anything listens.

Nothing is exported here: a plain connection is opened and closed. What a program sets up by itself cannot be seen.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

from otel_context_ledger.cli.machine import OK, PROBLEM, WARNING, Check, Machine
from otel_context_ledger.config import Config

SIGNALS = ("traces", "metrics", "logs")
CONNECT_SECONDS = 1.0
PORTS = {"grpc": 4317, "http/protobuf": 4318, "http/json": 4318}
# What opentelemetry-distro sets where nothing is named, beside otlp as the exporter of every signal.
DEFAULT_PROTOCOL = "grpc"
DISTRO = "opentelemetry-distro"
SPELLED = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}
EXTRA = "pip install 'otel-context-ledger[otlp]'"


def mode(machine: Machine, settings: Config) -> Iterator[Check]:
    """Whether only the ledger file is written, or the standard OTEL_* variables decide."""
    configurators = machine.named("opentelemetry_configurator")
    distros = machine.named("opentelemetry_distro")
    if not configurators:
        yield from _file_only(machine, settings)
        return
    if machine.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        yield Check("mode", WARNING, "file only: OTEL_SDK_DISABLED is true; unset it to let OTEL_* decide.")
        return
    names = ", ".join(dict.fromkeys(machine.titled(plugin.package) for plugin in (*distros, *configurators)))
    chosen = "; ".join(f"{signal}: {', '.join(_wanted(machine, signal)) or 'none'}" for signal in SIGNALS)
    yield Check("mode", OK, f"the OTEL_* variables decide ({names}): {chosen}.")
    if len(distros) > 1 and not machine.environ.get("OTEL_PYTHON_DISTRO"):
        yield Check("mode", WARNING, f"{len(distros)} distros are installed; name one in OTEL_PYTHON_DISTRO.")
    for signal in SIGNALS:
        there = {plugin.name for plugin in machine.named(f"opentelemetry_{signal}_exporter")}
        for name in _wanted(machine, signal):
            if _spelled(machine, signal, name) not in there:
                yield Check("mode", PROBLEM, f"no exporter {name!r} for {signal} is installed: {EXTRA}.")


def _file_only(machine: Machine, settings: Config) -> Iterator[Check]:
    ignored = [_variable(signal) for signal in SIGNALS if _wanted(machine, signal)]
    if ignored:
        yield Check("mode", WARNING, f"{', '.join(ignored)} is set, but nothing here reads it: {EXTRA}.")
    if settings.file is None:
        sentence = f"nothing is kept unless the program sets up an SDK: set CONTEXT_LEDGER_FILE, or {EXTRA}."
        yield Check("mode", WARNING, sentence)
    elif not ignored:
        sentence = (
            "file only: no SDK is configured, so spans, metrics and events go nowhere unless the program does it;"
        )
        yield Check("mode", OK, f"{sentence} to let OTEL_* decide: {EXTRA}.")


def reach(machine: Machine, settings: Config) -> Iterator[Check]:
    """Whether something listens where OTLP exporters send to."""
    if not machine.named("opentelemetry_configurator"):
        return
    asked: dict[str, list[str]] = {}
    for signal in SIGNALS:
        if any(name.startswith("otlp") for name in _wanted(machine, signal)):
            asked.setdefault(_endpoint(machine, signal), []).append(signal)
    for endpoint, signals in asked.items():
        chosen = any(_variable(signal) in machine.environ for signal in signals) or _given(machine, signals[0])
        yield _probed(endpoint, signals, PROBLEM if chosen else WARNING)


def _probed(endpoint: str, signals: list[str], severity: str) -> Check:
    name, what = "exporter", ", ".join(signals)
    host, port = address(endpoint)
    if host is None or port is None:
        return Check(name, WARNING, f"{what}: the endpoint is no host and port, so it was not tried.")
    try:
        socket.create_connection((host, port), CONNECT_SECONDS).close()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        way_out = "start a collector there, set OTEL_EXPORTER_OTLP_ENDPOINT, or set OTEL_TRACES_EXPORTER … to none"
        return Check(name, severity, f"{what}: nothing answers at {host}:{port} ({reason}); {way_out}.")
    return Check(name, OK, f"{what}: {host}:{port} answers.")


def address(endpoint: str) -> tuple[str | None, int | None]:
    """Host and port of an endpoint, with or without a scheme; what else it holds, such as credentials, is left out."""
    try:
        parts = urlsplit(endpoint if "://" in endpoint else f"//{endpoint}")
        return parts.hostname, parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        return None, None


def _wanted(machine: Machine, signal: str) -> list[str]:
    packages = {plugin.package for plugin in machine.named("opentelemetry_distro")}
    names = machine.environ.get(_variable(signal), "otlp" if DISTRO in packages else "none").split(",")
    return [name.strip() for name in names if name.strip() not in ("", "none")]


def _variable(signal: str) -> str:
    return f"OTEL_{signal.upper()}_EXPORTER"


def _spelled(machine: Machine, signal: str, name: str) -> str:
    return SPELLED.get(_protocol(machine, signal), name) if name == "otlp" else name


def _protocol(machine: Machine, signal: str) -> str:
    for variable in (f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        if machine.environ.get(variable, "").strip():
            return machine.environ[variable].strip()
    return "http/protobuf" if "otlp_proto_http" in _wanted(machine, signal) else DEFAULT_PROTOCOL


def _given(machine: Machine, signal: str) -> str | None:
    names = (f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    return next((machine.environ[name].strip() for name in names if machine.environ.get(name, "").strip()), None)


def _endpoint(machine: Machine, signal: str) -> str:
    return _given(machine, signal) or f"http://localhost:{PORTS.get(_protocol(machine, signal), PORTS['grpc'])}"
