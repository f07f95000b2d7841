"""Owns how the collector's own metrics are asked for: those of OpenTelemetry's collector and those of our components,
which collector/contextledger*/metadata.yaml lists. Some versions end the name of a counter in _total, others do not."""

from __future__ import annotations

from collections.abc import Sequence

INSTANCE = ("job", "instance")
PROCESSOR, CONNECTOR = "otelcol_processor_context_ledger", "otelcol_connector_context_ledger"
SIGNALS = ("spans", "log_records", "metric_points")
# The collector's own metrics that are asked for, without _total; seen at 0.165.
OTELCOL = frozenset({
    *(f"otelcol_receiver_{what}_{signal}" for what in ("accepted", "refused", "failed") for signal in SIGNALS),
    *(f"otelcol_exporter_{what}_{signal}" for what in ("sent", "send_failed", "enqueue_failed") for signal in SIGNALS),
    *(f"otelcol_exporter_queue_{what}" for what in ("size", "capacity")),
    *(f"otelcol_process_{what}" for what in ("cpu_seconds", "memory_rss", "uptime")),
    *(f"{PROCESSOR}_{what}" for what in (
        "ambiguous", "calls", "errors", "evictions", "invariant_violations", "sessions", "snapshot_duration",
        "snapshot_failures", "snapshot_saves", "snapshot_written", "state_size", "verdicts",
    )),
    *(f"{CONNECTOR}_{what}" for what in ("entries", "errors", "flush_failures", "overflow", "series")),
})  # fmt: skip
# Their labels, all bounded.
LABELS = frozenset({
    *INSTANCE, "receiver", "transport", "exporter", "data_type", "processor", "otel_signal",
    "dialect", "cause", "by", "stage", "reason", "step", "of", "result", "bound",
})  # fmt: skip


def counted(metric: str, window: str, *by: str, where: str = "", over: str = "increase") -> str:
    """What one of its counters went up by, by instance and these labels."""
    series = f'{{__name__=~"{metric}(_total)?"{"," if where else ""}{where}}}'
    return f"{_sum((*INSTANCE, *by))} ({over}({series}[{window}]))"


def any_signal(metrics: Sequence[str], window: str, *by: str, limit: str) -> str:
    """The first of some counters that passes a limit, of each spans, log records and metric points."""
    names = [f"{metric}_{signal}" for metric in metrics for signal in SIGNALS]
    return "\nor ".join(f"{counted(name, window, *by)} {limit}" for name in names)


def held(gauge: str, *by: str, where: str = "") -> str:
    """What one of its gauges is, by instance and these labels."""
    return f"{_sum((*INSTANCE, *by))} ({gauge}{f'{{{where}}}' if where else ''})"


def _sum(by: Sequence[str]) -> str:
    return f"sum by ({', '.join(by)})"
