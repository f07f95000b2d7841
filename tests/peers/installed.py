"""Owns how each peer is switched on: the way its own documentation tells, with exporters of this process.

A peer that this environment lacks fails at its import. Nothing here leaves the machine: langfuse's own exporter is the
in-memory one, logfire sends nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


@dataclass(frozen=True)
class Exported:
    """What leaves OpenTelemetry in this process."""

    spans: InMemorySpanExporter
    reader: InMemoryMetricReader


def providers(exported: Exported) -> None:
    """The program's own providers, as most programs set them up."""
    tracing = TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(exported.spans))
    trace.set_tracer_provider(tracing)
    metrics.set_meter_provider(MeterProvider([exported.reader]))


def _none(exported: Exported) -> None:
    providers(exported)


def _genai(exported: Exported) -> None:
    from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor

    providers(exported)
    OpenAIInstrumentor().instrument()


def _traceloop(exported: Exported) -> None:
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    providers(exported)
    OpenAIInstrumentor().instrument()


def _openinference(exported: Exported) -> None:
    from openinference.instrumentation.openai import OpenAIInstrumentor

    providers(exported)
    OpenAIInstrumentor().instrument()


def _all(exported: Exported) -> None:
    from openinference.instrumentation.openai import OpenAIInstrumentor as OpenInference
    from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor as GenAI
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor as Traceloop

    providers(exported)
    for instrumentor in (GenAI, Traceloop, OpenInference):
        instrumentor().instrument()


def _langfuse(exported: Exported) -> None:
    os.environ |= {
        "LANGFUSE_PUBLIC_KEY": "pk-lf-test",
        "LANGFUSE_SECRET_KEY": "sk-lf-test",
        "LANGFUSE_BASE_URL": "http://127.0.0.1:9",
    }
    from langfuse import Langfuse

    providers(exported)
    Langfuse(tracer_provider=trace.get_tracer_provider(), span_exporter=InMemorySpanExporter())
    import langfuse.openai  # noqa: F401


def _logfire(exported: Exported) -> None:
    import logfire

    logfire.configure(
        send_to_logfire=False,
        console=False,
        additional_span_processors=[SimpleSpanProcessor(exported.spans)],
        metrics=logfire.MetricsOptions(additional_readers=[exported.reader]),
    )
    logfire.instrument_openai()


def _openlit(exported: Exported) -> None:
    import openlit

    providers(exported)
    openlit.init(pricing_json=os.devnull)


SWITCHED_ON: dict[str, Callable[[Exported], None]] = {
    "none": _none,
    "genai-openai": _genai,
    "traceloop": _traceloop,
    "openinference": _openinference,
    "all": _all,
    "langfuse": _langfuse,
    "logfire": _logfire,
    "openlit": _openlit,
}


def switch_on(peer: str) -> Exported:
    """Switches a peer on and gives what it and everything else here exports."""
    exported = Exported(InMemorySpanExporter(), InMemoryMetricReader())
    SWITCHED_ON[peer](exported)
    return exported


def finished(exported: Exported) -> list[Any]:
    """The spans that have ended since the last look, in the order of their starts."""
    trace.get_tracer_provider().force_flush(60_000)  # type: ignore[attr-defined]
    spans = sorted(exported.spans.get_finished_spans(), key=lambda span: span.start_time)
    exported.spans.clear()
    return spans
