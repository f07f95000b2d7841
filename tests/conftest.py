"""What tests stand on: OpenTelemetry's in-memory exporters, the simulated provider, and the ledger of this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import _logs as logs
from opentelemetry import metrics, trace
from opentelemetry.sdk import _logs as sdk_logs
from opentelemetry.sdk._logs import export as log_export
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_context_ledger import store, telemetry
from otel_context_ledger.instrumentation import ContextLedgerInstrumentor
from otel_context_ledger.mailbox import mailbox
from tests.provider import Provider

# Deadlines fail where the machine is busy. In the environments of clients and peers there is no hypothesis.
with suppress(ImportError):
    import hypothesis

    hypothesis.settings.register_profile("steady", deadline=None, database=None)
    hypothesis.settings.load_profile("steady")
# Seconds for what takes milliseconds where nobody else uses the machine.
PATIENCE = 60.0
GROUPS = ("self", "task", "model", "context", "cache", "request", "money", "checks")


class Spans(InMemorySpanExporter):
    """The spans there are once the tracer provider was flushed."""

    def get_finished_spans(self) -> tuple[ReadableSpan, ...]:
        trace.get_tracer_provider().force_flush(int(PATIENCE * 1000))  # type: ignore[attr-defined]
        return super().get_finished_spans()


@dataclass(frozen=True)
class Signals:
    """What OpenTelemetry's in-memory exporters hold."""

    spans: InMemorySpanExporter
    reader: InMemoryMetricReader
    events: Any

    def clear(self) -> None:
        self.spans.clear()
        self.events.clear()

    def counted(self) -> dict[str, list[tuple[dict[str, Any], float]]]:
        """Every metric's points as (attributes, value or count), since the process started. One that ledgers of several
        versions counted has points of each."""
        data = self.reader.get_metrics_data()
        scopes = [s for r in data.resource_metrics for s in r.scope_metrics] if data else []
        found: dict[str, list[tuple[dict[str, Any], float]]] = {}
        for metric in (metric for scope in scopes for metric in scope.metrics):
            points = [
                (dict(p.attributes), getattr(p, "value", getattr(p, "count", 0))) for p in metric.data.data_points
            ]
            found.setdefault(metric.name, []).extend(points)
        return found

    def logged(self) -> list[Any]:
        return [item.log_record for item in self.events.get_finished_logs()]


@pytest.fixture(scope="session")
def providers() -> Signals:
    """OpenTelemetry's global providers can be set once per process."""
    spans, reader = Spans(), InMemoryMetricReader()
    name = "InMemoryLogRecordExporter" if hasattr(log_export, "InMemoryLogRecordExporter") else "InMemoryLogExporter"
    events = getattr(log_export, name)()
    tracing, logging = TracerProvider(), sdk_logs.LoggerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(spans))
    logging.add_log_record_processor(log_export.SimpleLogRecordProcessor(events))
    trace.set_tracer_provider(tracing)
    metrics.set_meter_provider(MeterProvider([reader]))
    logs.set_logger_provider(logging)
    return Signals(spans, reader, events)


@pytest.fixture
def signals(providers: Signals) -> Signals:
    """The exporters, emptied; calls that an earlier test left open are no longer in flight here."""
    providers.clear()
    telemetry._in_flight.set(None)
    return providers


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A simulated provider with an honest prefix cache."""
    with Provider() as running:
        yield running


class Ledger:
    """This process's ledger: instrumented while the test runs, its file read back on demand."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.instrumentor = ContextLedgerInstrumentor()

    def entries(self) -> list[dict[str, Any]]:
        """The calls and outcomes written so far, oldest first."""
        return [line for line in self.lines() if line.get("kind") != "compaction"]

    def compactions(self) -> list[dict[str, Any]]:
        """What was written of compactions so far, oldest first and the same one as often as it was told."""
        told = [line for line in self.lines() if line.get("kind") == "compaction"]
        return [{**line["task"], **line["compaction"]} for line in told]

    def lines(self) -> list[dict[str, Any]]:
        """The lines written so far, oldest first."""
        assert self.instrumentor.flush(PATIENCE)
        return [dict(entry) for entry in store.read(self.file).entries] if self.file.exists() else []

    def flat(self) -> list[dict[str, Any]]:
        """The lines with their groups laid into one."""
        return [flat(entry) for entry in self.entries()]


def flat(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry's fields without their groups."""
    return {key: value for group in GROUPS for key, value in entry[group].items()}


@pytest.fixture
def settings(tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The environment of a user: a ledger file, and the loopback host named as Kimi's."""
    file = tmp_path / "ledger.jsonl"
    monkeypatch.setenv("CONTEXT_LEDGER_FILE", str(file))
    monkeypatch.setenv("CONTEXT_LEDGER_SURFACES", f"127.0.0.1:{provider.server_port}=kimi_open_platform")
    monkeypatch.setenv("CONTEXT_LEDGER_REPOSITORY", "off")
    return file


@pytest.fixture(autouse=True)
def declared() -> Iterator[None]:
    """What a test declares ends with it, and not with its process."""
    yield
    mailbox.forget()


@pytest.fixture
def ledger(settings: Path, signals: Signals) -> Iterator[Ledger]:
    """The instrumented process; everything is put back afterwards."""
    running = Ledger(settings)
    running.instrumentor.instrument()
    yield running
    running.instrumentor.uninstrument()
