"""A user's program with one peer, with and without the ledger: `python -m tests.peers.program PEER LEDGER URL FILE`.

LEDGER is none, before (the ledger is switched on before the peer) or after. Every call of `tests.peers.calls` is made;
what the program got and what OpenTelemetry exported of it is printed as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.peers import installed


def main(peer: str, ledger: str, url: str, file: str) -> None:
    os.environ |= {
        "CONTEXT_LEDGER_FILE": file,
        "CONTEXT_LEDGER_SURFACES": f"{urlsplit(url).netloc}=kimi_open_platform",
        "CONTEXT_LEDGER_REPOSITORY": "off",
    }
    if ledger == "before":
        _instrument()
    exported = installed.switch_on(peer)
    if ledger == "after":
        _instrument()
    from tests.peers import calls

    told = {}
    for name in calls.CALLS:
        got = calls.make(name, url)
        _flush(ledger)
        spans = [_span(span) for span in installed.finished(exported)]
        told[name] = {"got": got, "lines": _lines(file), "spans": spans}
    text = json.dumps({"calls": told, "metrics": _metrics(exported)}, default=repr)
    port = urlsplit(url).port
    for there in ("127.0.0.1:{}", '"server.port": {}'):
        text = text.replace(there.format(port), there.format(1))
    sys.stdout.write(text)


def _instrument() -> None:
    from otel_context_ledger.instrumentation import ContextLedgerInstrumentor

    ContextLedgerInstrumentor().instrument()


def _flush(ledger: str) -> None:
    if ledger != "none":
        from otel_context_ledger.instrumentation import ContextLedgerInstrumentor

        ContextLedgerInstrumentor().flush(60)


def _lines(file: str) -> int:
    return len(Path(file).read_text("utf-8").splitlines()) if Path(file).exists() else 0


def _span(span: Any) -> dict[str, Any]:
    return {
        "id": f"{span.context.span_id:016x}",
        "parent": f"{span.parent.span_id:016x}" if span.parent else None,
        "scope": span.instrumentation_scope.name,
        "name": span.name,
        "kind": span.kind.name,
        "status": [span.status.status_code.name, span.status.description],
        "attributes": dict(span.attributes),
        "dropped": span.dropped_attributes,
        "events": [[event.name, sorted(event.attributes)] for event in span.events],
    }


def _metrics(exported: installed.Exported) -> dict[str, list[Any]]:
    data = exported.reader.get_metrics_data()
    scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics] if data else []
    return {
        metric.name: [
            [dict(p.attributes), getattr(p, "value", None), getattr(p, "count", None), getattr(p, "sum", None)]
            for p in metric.data.data_points
        ]
        for scope in scopes
        for metric in scope.metrics
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
