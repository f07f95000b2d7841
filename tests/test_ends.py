"""What a call leaves to the background when it ends is there when it is asked for, in its order, and once."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import openai
import pytest

from otel_context_ledger.backlog import Backlog, Later
from otel_context_ledger.ledger import Ledger as CoreLedger
from tests.conftest import Ledger, Signals
from tests.provider import Provider
from tests.test_processes import START, needs_fork, run

# A program with a tracer provider of its own, whose exporter prints the name of each span that it gets, and `Held`,
# which holds up whoever ends a span until it is told to go on, and `Slow`, which does so for a while.
OWN = (
    START
    + """
import threading
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter, SpanExportResult
class Printing(SpanExporter):
    done = threading.Event()
    def export(self, spans):
        print(*(span.name for span in spans), sep="\\n", flush=True)
        self.done.set()
        return SpanExportResult.SUCCESS
class Held(SpanProcessor):
    gate = threading.Event()
    def on_end(self, span):
        self.gate.wait(20)
class Slow(SpanProcessor):
    def _on_ending(self, span):
        if span.name == "chat m":
            threading.Event().wait(0.3)
provider = TracerProvider()
provider.add_span_processor(PROCESSOR(Printing()))
trace.set_tracer_provider(provider)
from otel_context_ledger.instrumentation import ContextLedgerInstrumentor
ContextLedgerInstrumentor().instrument()
call(client())
"""
)
ENDINGS = {
    "the provider is shut down": "provider.shutdown()",
    "the provider is flushed": "provider.force_flush()\nos._exit(0)",
    "the ledger is flushed": "ContextLedgerInstrumentor().flush(); provider.force_flush()\nos._exit(0)",
    "the ledger is switched off": "ContextLedgerInstrumentor().uninstrument(); provider.force_flush()\nos._exit(0)",
    "the program ends": "",
    "the program fails": "raise SystemExit(0)",
}


@pytest.mark.parametrize("processor", ["BatchSpanProcessor", "SimpleSpanProcessor"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_the_span_of_the_last_call_is_exported(ending: str, processor: str, provider: Provider, tmp_path: Path) -> None:
    """Right after its last call a program flushes, shuts down or ends, its processors having been there before ours:
    the call's span is exported once, with nothing said about it."""
    program = OWN.replace("PROCESSOR", processor) + ENDINGS[ending]
    done = run(provider, tmp_path, program, instrument=False)
    assert done.seen == ("chat m\n", "", 0)


def test_a_span_comes_without_being_asked_for(provider: Provider, tmp_path: Path) -> None:
    """A program that does nothing but wait gets its span through a simple processor."""
    wait = "Printing.done.wait(60)\nos._exit(0)"
    done = run(provider, tmp_path, OWN.replace("PROCESSOR", "SimpleSpanProcessor") + wait, instrument=False)
    assert done.seen == ("chat m\n", "", 0)


def test_spans_beneath_end_before_the_first_span_of_their_trace(provider: Provider, tmp_path: Path) -> None:
    """A processor that gives a trace away when its first span ends has the spans of the calls by then."""
    program = OWN.replace("PROCESSOR", "SimpleSpanProcessor") + (
        "from otel_context_ledger import telemetry\ntelemetry.MAX_WAIT_SECONDS = 60\n"
        "provider.force_flush()\n"
        "provider.add_span_processor(Slow())\n"
        'with trace.get_tracer("mine").start_as_current_span("task"):\n'
        '    with trace.get_tracer("mine").start_as_current_span("step"):\n'
        "        call(client())\n"
        "os._exit(0)\n"
    )
    names = run(provider, tmp_path, program, instrument=False).stdout.split("\n")[1:-1]
    assert (sorted(names), names[-1]) == (["chat m", "step", "task"], "task")


def test_a_processor_that_blocks_does_not_hold_up_the_next_call(provider: Provider, tmp_path: Path) -> None:
    """While a processor of the program blocks whoever ends a span, calls go on, and each knows how
    the one before it ended."""
    program = OWN.replace("PROCESSOR", "SimpleSpanProcessor") + (
        "provider.force_flush()\n"
        "provider.add_span_processor(Held())\n"
        "using = client()\n"
        "for number in range(4):\n"
        '    call(using, "the same")\n'
        'print("made", flush=True)\n'
        "Held.gate.set()\n"
    )
    done = run(provider, tmp_path, program, instrument=False)
    entries = done.entries()[1:]
    assert (done.code, done.stderr, done.stdout.count("chat m"), "made" in done.stdout) == (0, "", 5, True)
    assert [entry["comparable_id"] for entry in entries[1:]] == [entry["entry_id"] for entry in entries[:-1]]
    assert None not in [entry["reusable_tokens"] for entry in entries]


@needs_fork
def test_a_child_knows_the_calls_that_ended_before_it(provider: Provider, tmp_path: Path) -> None:
    """A fork right after a call: the child's call is compared with it, and its span is exported once, by the parent."""
    program = OWN.replace("PROCESSOR", "SimpleSpanProcessor") + (
        "pid = os.fork()\n"
        'if pid == 0:\n    call(client())\n    provider.shutdown()\n    print("child", flush=True)\n    sys.exit(0)\n'
        "os.waitpid(pid, 0)\n"
    )
    done = run(provider, tmp_path, program, instrument=False)
    entries = {entry["comparable_id"]: entry["entry_id"] for entry in done.entries()}
    assert (done.code, done.stderr, sorted(done.stdout.split())) == (0, "", ["chat", "chat", "child", "m", "m"])
    assert len(entries) == 2 and entries[None] in entries


def test_a_call_is_recorded_as_it_was_when_it_ended(provider: Provider, ledger: Ledger, signals: Signals) -> None:
    """What the program does to the answer afterwards changes nothing, and the span ends when the call does."""
    with openai.OpenAI(base_url=f"{provider.url}/kimi/v1", api_key="test-key", max_retries=0) as client:
        began = time.time_ns()
        answer: Any = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
        ended = time.time_ns()
        given = answer.usage.prompt_tokens
        answer.usage.prompt_tokens, answer.id = 999_999, "changed"
        time.sleep(0.05)
    (span,) = signals.spans.get_finished_spans()
    assert span.start_time is not None and span.end_time is not None
    assert began - 1000 <= span.start_time <= span.end_time <= ended
    assert [(row["input_tokens"], row["response_id"] == "changed") for row in ledger.flat()] == [(given, False)]


def test_work_that_is_not_taken_is_not_lost() -> None:
    """A backlog that has no room, or has ended, says so and counts nothing as lost: its owner does the work itself."""
    gate, done = threading.Event(), []
    backlog = Backlog("test-ends", 1)
    backlog.put(lambda: gate.wait(20) and None)
    while not backlog.take(lambda: done.append("taken")):
        time.sleep(0.001)
    assert (backlog.take(lambda: done.append("full")), backlog.lost) == (False, 0)
    gate.set()
    backlog.close(60)
    assert (backlog.take(lambda: done.append("late")), done, backlog.lost) == (False, ["taken"], 0)


def test_a_value_is_waited_for_only_so_long() -> None:
    """Whoever needs a value that another thread is working out waits for it, but not for ever."""
    gate, begun = threading.Event(), threading.Event()

    def work() -> str:
        begun.set()
        gate.wait(20)
        return "done"

    value = Later(work)
    worker = threading.Thread(target=value)
    worker.start()
    begun.wait(20)
    early = value.there(0.01)
    gate.set()
    worker.join()
    assert (early, value.there(0.01), value()) == (False, True, "done")


def test_an_end_that_fails_is_not_tried_again(
    provider: Provider, ledger: Ledger, signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call whose end cannot be told to the lineage has no entry; the next one, made at once, has its own."""
    real, failed = CoreLedger.end, []

    def end(self: CoreLedger, *args: Any) -> Any:
        if not failed:
            failed.append(True)
            raise ValueError("first")
        return real(self, *args)

    monkeypatch.setattr(CoreLedger, "end", end)
    with openai.OpenAI(base_url=f"{provider.url}/kimi/v1", api_key="test-key", max_retries=0) as client:
        for text in ("first", "second", "third"):
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
    assert [entry["call_end"] for entry in ledger.flat()] == ["complete", "complete"]
    assert len(signals.spans.get_finished_spans()) == 2
