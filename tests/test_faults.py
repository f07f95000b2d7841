"""Whatever of ours fails, and wherever: the program and the wire are as they would be without us."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from otel_context_ledger import compaction, constraint, store, tool_registry
from otel_context_ledger.backlog import Backlog
from otel_context_ledger.correctness.tools import live
from otel_context_ledger.instrumentation import ContextLedgerInstrumentor
from otel_context_ledger.mailbox import mailbox
from otel_context_ledger.model import PILLARS
from otel_context_ledger.store import Store
from tests import faults
from tests.conftest import Signals, flat
from tests.provider import Answer, Provider
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

    def checked(self) -> Any:
        """A conversation in which every check has something to look at: rules on disk, a declared rule, a live registry
        of tools, a file that was read, a compaction that is told of and one that is seen."""
        tool_registry({"tools": TOOLS}, server="files")
        constraint("C1", "Never edit files under vendor/.")
        history = [{"role": "system", "content": MARKED}, ASK, *_reading("call_1", "code.py")]
        yield self._says(history)
        yield self._says([*history, {"role": "assistant", "content": "ok"}, *_reading("call_2", "code.py"), ASK])
        with compaction(trigger="auto") as c:
            c.done("Goal: fix the parser.")
        summary = {"role": "user", "content": "This session is being continued from a previous conversation. Goal: it."}
        yield self._says([history[0], summary])
        yield self._says([history[0], summary, {"role": "assistant", "content": "ok"}, ASK])
        self.openai.chat.completions.create(model="err-400", messages=[*history, ASK])

    def _says(self, history: list[Any]) -> Any:
        answer = self.openai.chat.completions.create(model="m", messages=history, tools=TOOLS)
        return answer.choices[0].message.content

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


MARKED = f"{RULES}\n# Rules\nNever edit files under vendor/. Run the tests before you say that you are done."


def _reading(call: str, path: str) -> list[Any]:
    asked = {"id": call, "type": "function", "function": {"name": "read", "arguments": f'{{"path": "{path}"}}'}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": call, "content": "x = 1\n"},
    ]


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


def differences(bare: Sequence[list[Any]], seen: Sequence[list[Any]]) -> Iterator[str]:
    """What a program sees and sends with us and not without, or the other way round."""
    for what, one, other in zip(("saw", "sent"), bare, seen, strict=True):
        if one != other:
            yield f"the program {what} something else: {one} and not {other}"


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
                found = [*differences(self.bare, self.instrumented())]
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


# What says whether a context was reused, and what that cost: none of it is a check's to say.
REUSE = (
    "policy_hash", "policy_wire_hash", "tool_schema_hash", "tool_wire_hash", "history_range", "history_length",
    "cache_identity", "cache_report", "input_tokens", "cached_tokens", "cache_write_tokens", "cache_miss_tokens",
    "reusable_tokens", "avoidable_tokens", "cache_outcome", "miss_cause", "miss_detail", "miss_secondary",
    "miss_evidence", "miss_confidence", "miss_significant", "miss_position", "output_tokens", "call_end",
    "usage_source", "usage_flags", "error_type", "model_id", "model_served", "cost", "cost_without_cache",
    "request_kind",
)  # fmt: skip
# What looks whether a context was right, and runs while a call is made and its entry written.
CHECKS = ("correctness", "courses.py", "witness.py", "mailbox.py")
FAILED = "checks_failed: "
# Seconds for what takes milliseconds where nobody else uses the machine.
PATIENCE = 60.0
# What a program calls itself, and what guards itself there.
CALLED = ("correctness/tools/live.py:tool_registry",)


@dataclass
class Examined:
    """The program with every check at work, in a directory with rules and the file that it reads."""

    program: Callable[[], Iterator[Any]]
    file: Path
    desk: Any = None
    looks: bool = False

    def answer(self, _: Any) -> Answer:
        """The provider's answer, which takes as long as it must for the disk to be looked at meanwhile."""
        if self.looks:
            assert ContextLedgerInstrumentor().look(PATIENCE)
        return Answer()

    def entries(self, failing: Callable[[], Any] = nullcontext, looks: bool = True) -> list[dict[str, Any]]:
        """What a new ledger says of the program's calls; what fails does so while it runs."""
        instrumentor = ContextLedgerInstrumentor()
        instrumentor.instrument()
        self.desk, self.looks = instrumentor._desk, looks
        try:
            with failing():
                outcome(self.program)
                assert instrumentor.flush(PATIENCE)
            lines = store.read(self.file).entries if self.file.exists() else ()
            return [flat(dict(one)) for one in lines if "kind" not in one]
        finally:
            instrumentor.uninstrument()
            self.file.unlink(missing_ok=True)

    def reached(self) -> list[types.CodeType]:
        """The functions of the checks that run during the program."""
        found: list[types.CodeType] = []
        self.entries()  # the provider's cache is warm from now on
        self.bare = [reuse(entry) for entry in self.entries(partial(watching, found))]
        self.functions = faults.functions()
        return [code for code in found if faults.named(code).startswith(CHECKS) and faults.named(code) not in CALLED]

    def wrong(self, code: types.CodeType) -> list[str]:
        """How what the ledger tells of reuse differs while this function fails, and what is not said of that."""
        entries = self.entries(partial(faults.failing, code, self.functions), looks=False)
        pairs = zip(entries, self.bare, strict=False)
        expected = [{name: bare[name] for name in reuse(entry)} for entry, bare in pairs]
        found = ["another reuse is told"] if [reuse(entry) for entry in entries] != expected else []
        found += [f"of {len(self.bare)} calls {len(entries)} are told"] if len(entries) != len(self.bare) else []
        found += [f"{stage} failed, too" for stage in self.desk.errors if stage != "checks"]
        found += [f"{pillar} failed and is {verdict}" for one in entries for pillar, verdict in claims(one)]
        return [f"{faults.named(code)}: {what}" for what in found]


@contextmanager
def watching(found: list[types.CodeType]) -> Iterator[None]:
    """Lists the functions that run inside."""
    with faults.watched() as seen:
        yield
    found.extend(seen)


def failed(entry: dict[str, Any]) -> list[str]:
    """The checks that an entry says came to nothing."""
    error = entry["ledger_error"] or ""
    return error.removeprefix(FAILED).split(", ") if error.startswith(FAILED) else []


def reuse(entry: dict[str, Any]) -> dict[str, Any]:
    """The part of an entry that no check has a say in; which summary a call builds on is in its identity."""
    unknown = ("cache_identity",) if "compactions" in failed(entry) else ()
    return {name: entry[name] for name in REUSE if name not in unknown}


def claims(entry: dict[str, Any]) -> list[tuple[str, Any]]:
    """The verdicts of an entry that say something although their check failed."""
    verdicts = [(name, entry[PILLARS[name]]) for name in failed(entry) if name in PILLARS]
    return [(name, verdict) for name, verdict in verdicts if verdict != "unknown"]


@pytest.fixture
def examined(
    programs: Programs,
    provider: Provider,
    settings: Path,
    signals: Signals,
    noise: Noise,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Examined]:
    root = tmp_path / "work"
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / "AGENTS.md").write_text(MARKED, "utf-8")
    (root / "code.py").write_text("x = 1\n", "utf-8")
    monkeypatch.setenv("CONTEXT_LEDGER_REPOSITORY", str(root))
    running = Examined(programs.checked, settings)
    provider.script = running.answer
    yield running
    mailbox.take()
    live.LIVE.__init__()  # type: ignore[misc]


def test_a_check_that_fails_costs_that_check_alone(examined: Examined) -> None:
    """IN13: functions of the checks are made to raise, in turn. Every call keeps its entry, what that says of reuse is
    what it says otherwise, the checks that came to nothing are unknown, and nothing else fails with them."""
    codes = examined.reached()
    assert [what for code in codes[:: 1 if WHOLE else 8] for what in examined.wrong(code)] == []
    assert len(codes) > 200


def test_a_check_that_fails_says_so(examined: Examined) -> None:
    """The entry says what came to nothing and is unknown, and every failure is counted as one of the checks."""
    codes = {faults.named(code): code for code in examined.reached()}
    told = {}
    for name in ("correctness/state.py:judge", "correctness/tools/check.py:Tools.look", "courses.py:Courses.arrive"):
        first, *others = examined.entries(partial(faults.failing, codes[name], examined.functions))
        told[name] = [first["ledger_error"], *(first[verdict] for verdict in PILLARS.values())]
        assert examined.desk.errors == {"checks": examined.desk.errors["checks"]}
        assert len(others) == 4
    assert told == {
        "correctness/state.py:judge": [
            "checks_failed: policy, repository, constraints, state",
            *("unknown", "unknown", "consistent", "unknown", "unknown"),
        ],
        "correctness/tools/check.py:Tools.look": [
            "checks_failed: tools",
            *("consistent", "fresh", "unknown", "held", "compatible"),
        ],
        "courses.py:Courses.arrive": [
            "checks_failed: compactions, constraints",
            *("consistent", "fresh", "consistent", "unknown", "compatible"),
        ],
    }
