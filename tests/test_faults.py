"""Whatever of ours fails, and wherever: the program and the wire are as they would be without us."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from otel_context_ledger.backlog import Backlog
from otel_context_ledger.instrumentation import ContextLedgerInstrumentor
from otel_context_ledger.store import Store
from tests import faults
from tests.conftest import Signals
from tests.provider import Provider
from tests.ways import ASK, CHAT, DIALECTS, RULES, TOOLS


class Programs:
    """A user's programs, each of a few calls, with clients that live as long as the tests of this file."""

    def __init__(self, url: str) -> None:
        given: dict[str, Any] = {"api_key": "test-key", "max_retries": 0}
        self.loop = asyncio.new_event_loop()
        self.openai = openai.OpenAI(base_url=f"{url}/kimi/v1", **given)
        self.responses = openai.OpenAI(base_url=f"{url}/openai/v1", **given)
        self.async_openai = openai.AsyncOpenAI(base_url=f"{url}/kimi/v1", **given)
        self.anthropic = anthropic.Anthropic(base_url=f"{url}/anthropic", **given)
        self.async_anthropic = anthropic.AsyncAnthropic(base_url=f"{url}/anthropic", **given)

    def close(self) -> None:
        self.openai.close()
        self.responses.close()
        self.anthropic.close()
        self.loop.run_until_complete(self.async_openai.close())
        self.loop.run_until_complete(self.async_anthropic.close())
        self.loop.close()

    def call(self) -> Any:
        """One plain call."""
        yield self.openai.chat.completions.create(model="m", **CHAT).choices[0].message.content

    def conversation(self) -> Any:
        """Three plain calls, the last with tools in another order, and one that the provider refuses."""
        history = list(CHAT["messages"])
        for tools in (TOOLS, TOOLS, TOOLS[::-1]):
            answer = self.openai.chat.completions.create(model="m", messages=history, tools=tools)
            history += [{"role": "assistant", "content": answer.choices[0].message.content}, ASK]
            yield answer.choices[0].message.content
        self.openai.chat.completions.create(model="err-500", messages=history)

    def compacted(self) -> Any:
        """A history that gives way to a summary of a known form, and a call after it."""
        first, summary = [*CHAT["messages"], *[ASK, {"role": "assistant", "content": "ok"}] * 4], dict(ASK)
        summary["content"] = "This session is being continued from a previous conversation. Goal: billing."
        for history in (first, [summary], [summary, {"role": "assistant", "content": "ok"}, ASK]):
            yield self.openai.chat.completions.create(model="m", messages=history).choices[0].message.content

    def streams(self) -> Any:
        """A stream read to its end, one closed early, one dropped by the provider."""
        for model in ("m", "closed", "err-drop"):
            with self.openai.chat.completions.create(model=model, stream=True, **CHAT) as stream:
                yield type(stream).__name__
                for chunk in stream:
                    yield chunk.choices[0].delta.content if chunk.choices else None
                    if model == "closed":
                        break

    def raw(self) -> Any:
        """Raw responses, plain and of a stream."""
        body = DIALECTS["responses"].body
        raw = self.responses.responses.with_raw_response.create(model="m", **body)
        yield raw.http_response.status_code, raw.parse().output_text
        stream = self.responses.responses.with_raw_response.create(model="m", stream=True, **body)
        yield [event.type for event in stream.parse()]

    def helpers(self) -> Any:
        """Anthropic's stream helper, and a typed answer."""
        with self.anthropic.messages.stream(model="m", max_tokens=9, system=RULES, messages=[ASK]) as stream:
            yield stream.get_final_text()

    def awaited(self) -> Any:
        """Async calls of both SDKs, plain and streamed."""
        yield self.loop.run_until_complete(self._awaited())

    async def _awaited(self) -> Any:
        answer = await self.async_openai.chat.completions.create(model="m", **CHAT)
        seen: list[Any] = [answer.choices[0].message.content]
        stream = await self.async_openai.chat.completions.create(model="m", stream=True, **CHAT)
        seen += [len(chunk.choices) async for chunk in stream]
        async with self.async_anthropic.messages.stream(model="m", max_tokens=9, messages=[ASK]) as helper:
            seen.append(await helper.get_final_text())
        return seen


def outcome(program: Callable[[], Iterator[Any]]) -> list[Any]:
    """All that a program sees of its calls: values, and the error that ended it."""
    seen: list[Any] = []
    try:
        seen.extend(program())
    except BaseException as error:  # noqa: BLE001
        seen.append((type(error).__name__, str(error)))
    return seen


# The guard itself, and what stands between it and the program: nothing surrounds these but the program's own code. They
# hold no work of ours, only guards; what they call is in the walk.
SHELLS = frozenset(
    f"{module}.py:{name}"
    for module, names in {
        "instrumentation": (
            "ContextLedgerInstrumentor.instrumentation_dependencies",
            *(f"ContextLedgerInstrumentor.{name}" for name in ("_instrument", "_uninstrument", "flush")),
            *(f"ContextLedgerInstrumentor.{name}" for name in ("_request", "_arequest", "_begin", "_with_shell")),
            *("ContextLedgerInstrumentor._deliver", "bound.<locals>.__init__", "_closed"),
            *(
                f"_{kind}.<locals>.{name}"
                for kind in ("synchronous", "asynchronous")
                for name in ("__stream__", "close")
            ),
        ),
        "invocation": (
            *("Guard.__init__", "Guard.__enter__", "Guard.__exit__", "Desk.guard", "Desk.note", "Invocation.guard"),
            *("Invocation.watching", "Invocation.streaming", "Invocation.see", "Invocation.failed", "Invocation.ended"),
            *("Invocation.dropped", "Invocation.unclaimed", "Invocation.asynchronous"),
        ),
        "backlog": ("Backlog._work", "Backlog._do"),
        "telemetry": ("Telemetry._shut_down",),
    }.items()
    for name in names
)


@dataclass
class Noise:
    """What a program's log and stderr would show: warnings, and errors that no one could catch."""

    warned: list[str] = field(default_factory=list)
    escaped: list[str] = field(default_factory=list)

    def forget(self) -> None:
        self.warned.clear()
        self.escaped.clear()

    def repeated(self) -> set[str]:
        return {text for text in self.warned if self.warned.count(text) > 1}


@pytest.fixture
def noise(monkeypatch: pytest.MonkeyPatch) -> Iterator[Noise]:
    """Records warnings of any logger, and exceptions of finalisers and threads."""
    heard = Noise()

    class Listening(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.warned.append(record.getMessage())

    monkeypatch.setattr(sys, "unraisablehook", lambda args: heard.escaped.append(f"unraisable {args.exc_value!r}"))
    monkeypatch.setattr(threading, "excepthook", lambda args: heard.escaped.append(f"in a thread {args.exc_value!r}"))
    listening = Listening(logging.WARNING)
    logging.getLogger().addHandler(listening)
    yield heard
    logging.getLogger().removeHandler(listening)


class Trial:
    """One program, without us and with one function of ours failing."""

    def __init__(self, name: str, programs: Programs, provider: Provider, ledger: Path, noise: Noise) -> None:
        self.program: Callable[[], Iterator[Any]] = getattr(programs, name)
        self.after, self.provider, self.ledger, self.noise = programs.call, provider, ledger, noise
        self.instrumentor = ContextLedgerInstrumentor()
        self.bare = self.observed()

    def reached(self) -> list[types.CodeType]:
        """The functions of ours that run during the program."""
        self.instrumented()
        self.earlier = self.ledger.read_bytes()
        found = faults.reached(self.instrumented)
        self.functions = faults.functions()
        return found

    def observed(self) -> tuple[list[Any], list[Any]]:
        """What the program saw, and what it sent."""
        sent = len(self.provider.requests)
        seen = outcome(self.program)
        return seen, [request.wire for request in self.provider.requests[sent:]]

    def instrumented(self) -> tuple[list[Any], list[Any]]:
        self.instrumentor.instrument()
        try:
            observed = self.observed()
            self.instrumentor.flush()
        finally:
            self.instrumentor.uninstrument()
        return observed

    def wrong(self, code: types.CodeType, error: type[Exception] = faults.InjectedError) -> list[str]:
        """How the program, and what runs after it, differ while this function fails; nothing if they do not."""
        self.begin()
        with faults.failing(code, self.functions, error):
            try:
                found = [] if self.instrumented() == self.bare else ["the program saw or sent something else"]
            except Exception as raised:  # noqa: BLE001
                found = [f"instrument() or uninstrument() raised {raised!r}"]
        return [f"{faults.named(code)}: {what}" for what in (*found, *self.told(), *self.unhealed())]

    def interrupted(self, code: types.CodeType) -> list[str]:
        """What is wrong when an interrupt comes in the middle of this function: the program must get it."""
        self.begin()
        self.instrumentor.instrument()
        with faults.failing(code, self.functions, KeyboardInterrupt) as calls:
            seen = outcome(self.program)
        self.instrumentor.uninstrument()
        here = threading.main_thread().name in calls
        lost = here and ("KeyboardInterrupt", "") not in seen and not self.noise.escaped
        found = ["the interrupt was lost"] if lost else []
        return [f"{faults.named(code)}: {what}" for what in (*found, *self.unhealed())]

    def begin(self) -> None:
        """Every trial finds the same ledger, of an earlier run, to restore from."""
        self.noise.forget()
        self.ledger.write_bytes(self.earlier)

    def told(self) -> list[str]:
        """Errors that nobody could catch, and warnings that were given twice."""
        return [*self.noise.escaped, *(f"said twice: {text}" for text in self.noise.repeated())]

    def unhealed(self) -> list[str]:
        """What is wrong with a call made right afterwards, when nothing fails."""
        before = self.lines()
        self.instrumentor.instrument()
        seen = outcome(self.after)
        self.instrumentor.uninstrument()
        return [] if (seen, self.lines() - before) == (["Looking at the file."], 1) else ["does not heal"]

    def lines(self) -> int:
        return self.ledger.read_bytes().count(b"\n") if self.ledger.exists() else 0


@pytest.fixture
def programs(provider: Provider) -> Iterator[Programs]:
    with closing(Programs(provider.url)) as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def nothing_of_ours_stays() -> Iterator[None]:
    """What could not be put away because putting it away failed is put away at last."""
    yield
    gc.collect()
    for left in [thing for thing in gc.get_objects() if type(thing) in (Backlog, Store)]:
        left.close()


PROGRAMS = ("conversation", "compacted", "streams", "raw", "helpers", "awaited")


@pytest.fixture
def trial(
    programs: Programs, provider: Provider, settings: Path, signals: Signals, noise: Noise
) -> Callable[[str], Trial]:
    return lambda name: Trial(name, programs, provider, settings, noise)


# `make fuzz` names one program and walks through every function that it reaches.
WHOLE = os.environ.get("FUZZ_WALK")
# Functions below these layers are all inside the same guards: a few of them stand for the others.
OUTER = ("instrumentation", "invocation", "telemetry", "ledger", "store", "backlog", "config", "tasks", "courses")


def chosen(codes: list[types.CodeType], every: int) -> list[types.CodeType]:
    """The functions to walk: all of the outer modules, one in `every` of the others."""
    walked = [code for code in codes if faults.named(code) not in SHELLS]
    if WHOLE:
        return walked
    outer = [code for code in walked if faults.named(code).split(".")[0] in OUTER]
    return [*outer, *[code for code in walked if code not in outer][::every]]


def test_every_function_that_fails_leaves_the_program_alone(trial: Callable[[str], Trial]) -> None:
    """IN13: functions of ours that run during a program are made to raise, in turn. The program sees and sends what it
    would without us, nothing is said twice, nothing escapes in a thread or finaliser, and the next call has its entry.
    `make fuzz` walks every function in every program."""
    walked: dict[types.CodeType, list[str]] = {}
    for name in (WHOLE,) if WHOLE else PROGRAMS:
        running = trial(name)
        new = (code for code in chosen(running.reached(), 5) if WHOLE or code not in walked)
        for code in new:
            walked.setdefault(code, []).extend(running.wrong(code))
    assert [what for found in walked.values() for what in found] == []
    assert len(walked) > 100


def test_an_interrupt_in_the_middle_of_us_reaches_the_program(trial: Callable[[str], Trial]) -> None:
    """Ctrl-C may come while any function of ours runs: the program gets its KeyboardInterrupt, and the next call is
    recorded as ever."""
    running = trial(WHOLE or "conversation")
    every = 1 if WHOLE else 4
    assert [what for code in chosen(running.reached(), 12)[::every] for what in running.interrupted(code)] == []
