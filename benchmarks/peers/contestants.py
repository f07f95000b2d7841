"""Contestants: how each is switched on, where its wrapper stands, and how a call is made through it.

Runs in the contestant's environment: imports the standard library, the OpenAI SDK, OpenTelemetry and the contestant.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from benchmarks.replay import Nowhere

# Whoever wraps `Completions.create` gets its canned answer from there; the others from below `client.request`.
CREATE, REQUEST = "create", "request"


@dataclass(slots=True)
class Providers:
    """OpenTelemetry's providers in this process, and whatever else must be flushed for the work to be done."""

    tracing: Any
    flushes: list[Callable[[], object]] = field(default_factory=list)

    def flush(self) -> None:
        for flush in (*self.flushes, self.tracing.force_flush):
            flush()


def spans_alone() -> Providers:
    """A tracer provider with a batch processor."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    tracing, nowhere = TracerProvider(), Nowhere()
    tracing.add_span_processor(BatchSpanProcessor(nowhere))  # type: ignore[arg-type]
    trace.set_tracer_provider(tracing)
    return Providers(tracing)


def with_metrics() -> Providers:
    """The same and a meter provider."""
    from opentelemetry import metrics
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    metrics.set_meter_provider(MeterProvider([InMemoryMetricReader()]))
    return spans_alone()


def bare(content: bool) -> None:
    return None


def manual(content: bool) -> Providers:
    return spans_alone()


def genai(content: bool) -> Providers:
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "span_only" if content else ""
    found = with_metrics()
    from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor

    OpenAIInstrumentor().instrument()
    return found


def traceloop(content: bool) -> Providers:
    os.environ["TRACELOOP_TRACE_CONTENT"] = str(content).lower()
    found = with_metrics()
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    OpenAIInstrumentor().instrument()
    return found


def openinference(content: bool) -> Providers:
    if not content:
        os.environ |= {"OPENINFERENCE_HIDE_INPUTS": "true", "OPENINFERENCE_HIDE_OUTPUTS": "true"}
    found = spans_alone()
    from openinference.instrumentation.openai import OpenAIInstrumentor

    OpenAIInstrumentor().instrument()
    return found


def langfuse(content: bool) -> Providers:
    os.environ |= {"LANGFUSE_PUBLIC_KEY": "pk-lf-none", "LANGFUSE_SECRET_KEY": "sk-lf-none"}
    os.environ["LANGFUSE_BASE_URL"] = "http://127.0.0.1:9"
    from langfuse import Langfuse
    from opentelemetry.sdk.trace import TracerProvider

    tracing = TracerProvider()
    Langfuse(tracer_provider=tracing, span_exporter=Nowhere())
    import langfuse.openai  # noqa: F401

    return Providers(tracing)


def logfire(content: bool) -> Providers:
    import logfire as peer
    from opentelemetry import trace
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    nowhere: Any = Nowhere()
    peer.configure(
        send_to_logfire=False, console=False, metrics=False, additional_span_processors=[BatchSpanProcessor(nowhere)]
    )
    peer.instrument_openai()
    return Providers(trace.get_tracer_provider())


def ledger(content: bool) -> Providers:
    """All that it does: a span, metrics and an event for each call, and its line in the ledger file."""
    from opentelemetry import _logs as logs
    from opentelemetry.sdk import _logs as sdk_logs
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

    found, logging, nowhere = with_metrics(), sdk_logs.LoggerProvider(), Nowhere()
    logging.add_log_record_processor(BatchLogRecordProcessor(nowhere))  # type: ignore[arg-type]
    logs.set_logger_provider(logging)
    os.environ["CONTEXT_LEDGER_FILE"] = str(Path(mkdtemp()) / "ledger.jsonl")
    return _instrumented(found, logging.force_flush)


def ledger_span(content: bool) -> Providers:
    """Its span alone."""
    return _instrumented(spans_alone())


def _instrumented(found: Providers, *flushes: Callable[[], object]) -> Providers:
    os.environ["CONTEXT_LEDGER_REPOSITORY"] = "off"
    from otel_context_ledger.instrumentation import ContextLedgerInstrumentor

    instrumentor = ContextLedgerInstrumentor()
    instrumentor.instrument()
    found.flushes = [instrumentor.flush, *flushes]
    return found


@dataclass(frozen=True, slots=True)
class Contestant:
    """One row of the table: what it is called, its environment and package, its switch, and what it wraps."""

    title: str
    environment: str
    package: str
    switch: Callable[[bool], Providers | None]
    wraps: str = CREATE
    contents: tuple[bool, ...] = (False, True)

    def version(self) -> str:
        """The installed version of its package."""
        from importlib.metadata import PackageNotFoundError, version

        with suppress(PackageNotFoundError):
            return version(self.package)
        return "not installed"


NEVER, ALWAYS = (False,), (True,)
CONTESTANTS = {
    "bare": Contestant("nothing", "bare", "openai", bare, CREATE, NEVER),
    "manual": Contestant("a manual span, 12 attributes", "bare", "opentelemetry-sdk", manual, CREATE, NEVER),
    "genai": Contestant("genai-openai", "genai", "opentelemetry-instrumentation-genai-openai", genai),
    "traceloop": Contestant("Traceloop", "traceloop", "opentelemetry-instrumentation-openai", traceloop),
    "openinference": Contestant(
        "OpenInference", "openinference", "openinference-instrumentation-openai", openinference, REQUEST
    ),
    "langfuse": Contestant("langfuse", "langfuse", "langfuse", langfuse, CREATE, ALWAYS),
    "logfire": Contestant("logfire", "logfire", "logfire", logfire, REQUEST, ALWAYS),
    "ledger": Contestant("**context ledger**", "ledger", "otel-context-ledger", ledger, REQUEST, NEVER),
    "ledger-span": Contestant(
        "**context ledger**, span alone", "ledger", "otel-context-ledger", ledger_span, REQUEST, NEVER
    ),
}
