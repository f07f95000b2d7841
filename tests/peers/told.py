"""A user's program with one peer and no ledger, or with the ledger alone, whose spans go out over OTLP:
`python -m tests.peers.told PEER OTLP HOST=URL…`. PEER none is the ledger alone, which writes CONTEXT_LEDGER_FILE.

Every conversation of `tests.peers.conversations` is held in a span of its own, as a task is.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import openai
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SpanExportResult

from tests.peers import installed
from tests.peers.conversations import BASES, CONVERSATIONS, arguments


def main(peer: str, otlp: str, urls: Mapping[str, str]) -> None:
    exported = installed.switch_on(peer)
    if peer == "none":
        from otel_context_ledger.instrumentation import ContextLedgerInstrumentor

        ContextLedgerInstrumentor().instrument()
    exporter = OTLPSpanExporter(f"{otlp}/v1/traces")
    clients = {
        host: openai.OpenAI(base_url=url + BASES[host], api_key="test-key", max_retries=0) for host, url in urls.items()
    }
    for name, conversation in CONVERSATIONS.items():
        with trace.get_tracer("agent").start_as_current_span("task"):
            for at in range(len(conversation.turns)):
                client = clients[conversation.host]
                surface = client.responses if conversation.responses else client.chat.completions
                answer: Any = surface.create(**arguments(name, at))
                if conversation.turns[at].stream:
                    list(answer)
        sent = exporter.export(installed.finished(exported))
        assert sent is SpanExportResult.SUCCESS, name


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], dict(host.split("=", 1) for host in sys.argv[3:]))
