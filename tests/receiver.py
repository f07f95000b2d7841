"""A loopback OTLP/HTTP receiver that keeps what it gets, decoded."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Receiver(ThreadingHTTPServer):
    """Raw bodies by path, and their decoded spans, events and metric points."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Post)
        self.bodies: dict[str, list[bytes]] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def spans(self) -> list[tuple[str, dict[str, Any]]]:
        """(name, attributes) of every span."""
        return [
            (span.name, values(span.attributes))
            for raw in self.bodies.get("/v1/traces", [])
            for resource in ExportTraceServiceRequest.FromString(raw).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def events(self) -> list[tuple[str, dict[str, Any]]]:
        """(event name, attributes) of every log record."""
        return [
            (record.event_name, values(record.attributes))
            for raw in self.bodies.get("/v1/logs", [])
            for resource in ExportLogsServiceRequest.FromString(raw).resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    def sums(self) -> dict[str, float]:
        """The last total of every counter of ours."""
        found: dict[str, float] = {}
        for raw in self.bodies.get("/v1/metrics", []):
            for resource in ExportMetricsServiceRequest.FromString(raw).resource_metrics:
                for metric in (m for scope in resource.scope_metrics for m in scope.metrics):
                    found[metric.name] = sum(p.as_int or p.as_double for p in metric.sum.data_points)
        return {name: total for name, total in found.items() if name.startswith("context_ledger.")}


class _Post(BaseHTTPRequestHandler):
    server: Receiver

    def log_message(self, *_: object) -> None:
        return

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["content-length"]))
        body = gzip.decompress(raw) if self.headers.get("content-encoding") == "gzip" else raw
        self.server.bodies.setdefault(self.path, []).append(body)
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", "0")
        self.end_headers()


def values(attributes: Any) -> dict[str, Any]:
    """OTLP attributes as plain values."""
    return {item.key: _value(item.value) for item in attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    return getattr(value, kind) if kind else None


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A running receiver."""
    server = Receiver()
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
