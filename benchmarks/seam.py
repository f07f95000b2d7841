"""Two clients in one process: one that the ledger never sees, and one whose calls end right below the ledger's seam."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import thread_time
from typing import Any

import openai
from openai import _base_client
from openai._models import FinalRequestOptions
from openai.types.chat import ChatCompletion
from opentelemetry import _logs as logs
from opentelemetry import metrics, trace
from opentelemetry.sdk import _logs as sdk_logs
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from benchmarks.replay import Nowhere
from otel_context_ledger.instrumentation import ContextLedgerInstrumentor

MODEL = "kimi-k3"
TOKENS_PER_MESSAGE = 500
_request = _base_client.SyncAPIClient.request


class Unwatched(openai.OpenAI):  # type: ignore[misc]
    """The SDK as it is, in a process that the ledger watches: its `request` is the one from before."""

    request = _request


class Seam:
    """Makes calls that are answered right below the seam, with the counts that a provider would report."""

    def __init__(self, signals: Signals) -> None:
        self._signals = signals
        self._client = openai.OpenAI(api_key="none", base_url="https://api.moonshot.ai/v1")

    def call(self, messages: list[Any], tools: list[Any], cached: int) -> float:
        """Thread CPU seconds spent in us for one call whose first `cached` messages the provider had already."""
        body = {"model": MODEL, "messages": messages, "tools": tools}
        options = FinalRequestOptions.construct(method="post", url="/chat/completions", json_data=body)
        answer = _answer(len(messages), cached)
        _Canned.answer = answer
        begun = thread_time()
        self._client.request(ChatCompletion, options, stream=False, stream_cls=None)
        return thread_time() - begun

    def stream(self, stream_cls: Any) -> Any:
        """The stream that a streaming call gives the program when the SDK makes it of `stream_cls`."""
        body = {"model": MODEL, "messages": [{"role": "user", "content": "Go on."}], "stream": True}
        options = FinalRequestOptions.construct(method="post", url="/chat/completions", json_data=body)
        return self._client.request(ChatCompletion, options, stream=True, stream_cls=stream_cls)

    def settle(self) -> None:
        """Waits until the lines are written and the signals dropped."""
        self._signals.settle()


class Signals:
    """OpenTelemetry's own providers and batch processors, whose exporters keep nothing, and the instrumentation."""

    def __init__(self) -> None:
        self._tracing, self._logging = TracerProvider(), sdk_logs.LoggerProvider()
        nowhere: Any = Nowhere()
        self._tracing.add_span_processor(BatchSpanProcessor(nowhere))
        self._logging.add_log_record_processor(BatchLogRecordProcessor(nowhere))
        trace.set_tracer_provider(self._tracing)
        metrics.set_meter_provider(MeterProvider([InMemoryMetricReader()]))
        logs.set_logger_provider(self._logging)
        self.instrumentor = ContextLedgerInstrumentor()

    def settle(self) -> None:
        """Waits until everything that runs behind the caller's back has caught up."""
        self.instrumentor.flush(60.0)
        self._tracing.force_flush()
        self._logging.force_flush()


class _Canned:
    """What stands below the seam: hands out the answer that was laid ready, or makes the stream."""

    answer: ChatCompletion | None = None

    @staticmethod
    def request(_: Any, *args: Any, stream: bool, stream_cls: Any) -> Any:
        return stream_cls() if stream else _Canned.answer


@contextmanager
def instrumented() -> Iterator[Seam]:
    """The seam of a process that is instrumented as long as the block, with a ledger file."""
    with TemporaryDirectory() as directory:
        os.environ["CONTEXT_LEDGER_FILE"] = str(Path(directory) / "ledger.jsonl")
        _base_client.SyncAPIClient.request = _Canned.request
        signals = Signals()
        signals.instrumentor.instrument()
        try:
            yield Seam(signals)
        finally:
            signals.settle()
            signals.instrumentor.uninstrument()


def _answer(messages: int, cached: int) -> ChatCompletion:
    prompt = messages * TOKENS_PER_MESSAGE
    usage = {"prompt_tokens": prompt, "completion_tokens": 9, "total_tokens": prompt + 9}
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": MODEL}
    return ChatCompletion.model_validate(
        head | {"choices": [choice], "usage": usage | {"cached_tokens": cached * TOKENS_PER_MESSAGE}}
    )
