"""Owns how the collector's own metrics are asked for: those of OpenTelemetry's collector and those of our components,
which collector/contextledger*/metadata.yaml lists. Some versions end the name of a counter in _total, others do not."""

from __future__ import annotations

from collections.abc import Sequence

INSTANCE = ("job", "instance")
PROCESSOR, CONNECTOR = "otelcol_processor_context_ledger", "otelcol_connector_context_ledger"
SIGNALS = ("spans", "log_records", "metric_points")


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
