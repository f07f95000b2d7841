"""Threads, tasks, greenlets, forks, exits, exporters: one right entry per call, and a program as it is without us."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import openai
import pytest

from otel_context_ledger import store
from tests.conftest import Ledger, flat
from tests.provider import Provider
from tests.receiver import receiving

# Seconds that an exit may take beside its timeouts.
ROOM = 8
SIGNALS = ("TRACES", "METRICS", "LOGS")
SYSTEM = {"role": "system", "content": "Be careful. " * 50}
START = """
import openai, os, sys
def client():
    return openai.OpenAI(base_url=sys.argv[1], api_key="test-key", max_retries=0)
def call(using, text="hi", **kw):
    return using.chat.completions.create(model="m", messages=[{"role": "user", "content": text}], **kw)
"""


class Done:
    """A process that has ended: what it said, how it ended, and the ledger that it left."""

    def __init__(self, folder: Path, ended: subprocess.CompletedProcess[str]) -> None:
        self.folder, self.stdout, self.stderr, self.code = folder, ended.stdout, ended.stderr, ended.returncode

    @property
    def seen(self) -> tuple[str, str, int]:
        return self.stdout, self.stderr, self.code

    def entries(self) -> list[dict[str, Any]]:
        file = self.folder / "ledger.jsonl"
        lines = store.read(file).entries if file.exists() else ()
        return [flat(line) for line in lines if "kind" not in line]  # type: ignore[arg-type]

    def ends(self) -> list[str]:
        return [entry["call_end"] for entry in self.entries()]


def run(
    provider: Provider,
    folder: Path,
    program: str | Path,
    instrument: bool = True,
    given: Sequence[str] = (),
    **env: str,
) -> Done:
    """A program in a process of its own, under `opentelemetry-instrument` or bare."""
    folder.mkdir(exist_ok=True)
    starter = [str(Path(sys.executable).parent / "opentelemetry-instrument")] if instrument else []
    what = ["-c", program] if isinstance(program, str) else [str(program)]
    command = [*starter, sys.executable, *what, provider.url + "/kimi/v1", *given]
    settings = {
        "CONTEXT_LEDGER_FILE": str(folder / "ledger.jsonl"),
        "CONTEXT_LEDGER_SURFACES": f"127.0.0.1:{provider.server_port}=kimi_open_platform",
        **{f"OTEL_{name}_EXPORTER": "none" for name in SIGNALS},
    }
    ended = subprocess.run(
        command, env=os.environ | settings | env, capture_output=True, text=True, check=False, timeout=120, cwd=folder
    )
    return Done(folder, ended)


# Threads and tasks


def test_many_threads_share_one_client(provider: Provider, ledger: Ledger) -> None:
    """32 threads that work at their own conversations through one client leave one entry a call, and none is blamed
    for another's."""
    failures: list[BaseException] = []
    with openai.OpenAI(base_url=f"{provider.url}/kimi/v1", api_key="test-key", max_retries=0) as client:

        def work(who: int) -> None:
            messages: list[Any] = [SYSTEM, {"role": "user", "content": f"task {who} " * 20}]
            try:
                for turn in range(4):
                    client.chat.completions.create(model="m", messages=messages)
                    messages.append({"role": "assistant", "content": f"step {turn} of {who}"})
                    messages.append({"role": "user", "content": "on"})
            except Exception as error:  # noqa: BLE001
                failures.append(error)

        threads = [threading.Thread(target=work, args=(who,)) for who in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    entries = ledger.flat()
    assert failures == []
    assert (len(entries), {entry["miss_cause"] for entry in entries}) == (128, {"cold_start", None})
    assert len({entry["session_id"] for entry in entries}) == 32


def test_two_tasks_interleaved_in_one_client(provider: Provider, ledger: Ledger) -> None:
    """Two conversations take turns in one client; one reorders its tools once. The cause is that one's alone."""
    tools = [
        {"type": "function", "function": {"name": name, "description": name * 99, "parameters": {"type": "object"}}}
        for name in ("read", "edit", "run")
    ]
    histories: dict[str, list[Any]] = {
        who: [SYSTEM, {"role": "user", "content": f"{who} " * 300}] for who in ("left", "right")
    }
    with openai.OpenAI(base_url=f"{provider.url}/kimi/v1", api_key="test-key", max_retries=0) as client:
        for turn in range(4):
            for who, messages in histories.items():
                given = tools[::-1] if (who, turn) == ("right", 2) else tools
                client.chat.completions.create(model="m", messages=messages, tools=given)  # type: ignore[arg-type]
                messages.append({"role": "assistant", "content": f"{who} step {turn} " * 20})
                messages.append({"role": "user", "content": f"go on {turn}"})
    entries = ledger.flat()
    left, right = entries[::2], entries[1::2]
    causes = [[entry["miss_cause"] for entry in side] for side in (left, right)]
    assert causes == [["cold_start", None, None, None], ["cold_start", None, "tools_reordered", None]]
    assert [len({entry["session_id"] for entry in side}) for side in (left, right)] == [1, 1]


@pytest.mark.parametrize("stream", [False, True])
def test_a_task_cancelled_at_any_await(stream: bool, provider: Provider, ledger: Ledger, caplog: Any) -> None:
    """A task that is cancelled after any number of turns of the event loop gets its cancellation and nothing else; the
    call leaves one entry if it was made, and the next call is as ever."""

    async def work(client: openai.AsyncOpenAI) -> str:
        answer = await client.chat.completions.create(model="m", messages=[SYSTEM], stream=stream)  # type: ignore[list-item]
        if stream:
            async for _ in answer:
                pass
        return "whole"

    async def cancelled(client: openai.AsyncOpenAI, turns: int) -> str:
        task = asyncio.ensure_future(work(client))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            return "cancelled"

    async def every() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"{provider.url}/kimi/v1", api_key="test-key", max_retries=0) as client:
            return [*[await cancelled(client, turns) for turns in (*range(24), *range(24, 96, 8))], await work(client)]

    seen = asyncio.run(every())
    ends = [entry["call_end"] for entry in ledger.flat()]
    assert set(seen) <= {"cancelled", "whole"}
    assert (seen[-1], ends[-1], set(ends) <= {"cancelled", "closed", "abandoned", "complete"}) == (
        "whole",
        "complete",
        True,
    )
    assert len(seen) - 1 <= len(ends) <= len(seen)
    assert [record.getMessage() for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


def test_a_timeout_and_a_task_group(provider: Provider, ledger: Ledger, caplog: Any) -> None:
    """A call that times out beside others in one group ends them as it would without us, each with its entry."""

    async def group(client: openai.AsyncOpenAI) -> list[str]:
        calls = [
            asyncio.wait_for(client.chat.completions.create(model=model, messages=[SYSTEM]), limit)  # type: ignore[list-item]
            for model, limit in (("m", 60), ("stuck", 0.1), ("m", 60))
        ]
        return [type(found).__name__ for found in await asyncio.gather(*calls, return_exceptions=True)]

    async def main() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"{provider.url}/kimi/v1", api_key="test-key", max_retries=0) as client:
            return await group(client)

    assert asyncio.run(main()) == ["ChatCompletion", "TimeoutError", "ChatCompletion"]
    assert sorted(entry["call_end"] for entry in ledger.flat()) == ["cancelled", "complete", "complete"]
    assert [record.getMessage() for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


def test_a_call_that_is_closed_instead_of_finished(provider: Provider, tmp_path: Path) -> None:
    """A coroutine that is closed in the middle of its call, as those of a closed loop are, ends in another context than
    it began in: nothing is logged."""
    program = """
import asyncio, openai, sys
loop = asyncio.new_event_loop()
async def work():
    client = openai.AsyncOpenAI(base_url=sys.argv[1], api_key="test-key", max_retries=0)
    await client.chat.completions.create(model="stuck", messages=[{"role": "user", "content": "hi"}])
task = loop.create_task(work())
loop.run_until_complete(asyncio.sleep(0.3))
task._log_destroy_pending = False
try:
    task.get_coro().close()
except RuntimeError:
    pass  # the HTTP client's own: there is no loop to close its connection in
loop.close()
print("done")
"""
    bare, seen = (run(provider, tmp_path / str(on), program, on) for on in (False, True))
    assert ("detach" in seen.stderr, seen.stdout, seen.code) == (False, bare.stdout, bare.code)


# Greenlets

GEVENT = """
from otel_context_ledger import compaction, constraint, read, session
client = client()
call(client, "first")
RULE = "Never edit files under vendor/."
def work(who):
    with session(f"s-{who}"):
        constraint("C1", RULE)
        read("code.py")
        call(client, f"{who}: {RULE}")
        with compaction(trigger="auto") as told:
            told.done(f"Goal: billing. {RULE}")
        call(client, f"Goal: billing. {RULE}")
    for turn in range(2):
        call(client, f"task {who} {turn}")
    for _ in call(client, f"task {who}", stream=True):
        pass
gevent.joinall([gevent.spawn(work, who) for who in range(50)], raise_error=True)
print("done")
"""
PATCH = "from gevent import monkey; monkey.patch_all(); import gevent\n"
INITIALIZE = "from opentelemetry.instrumentation.auto_instrumentation import initialize; initialize()\n"


@pytest.mark.parametrize("patched", ["after us", "before us"])
def test_greenlets(patched: str, provider: Provider, tmp_path: Path) -> None:
    """IN09: a program whose threads gevent replaces, before or after the ledger started, makes its calls in 50
    greenlets and tells of compactions; nothing hangs, and all lines and metrics are there."""
    pytest.importorskip("gevent", reason="gevent is in the dev group; this environment was made without it")
    early = patched == "before us"
    program = PATCH + (INITIALIZE if early else "") + START + GEVENT
    with receiving() as receiver:
        exporters = {f"OTEL_{name}_EXPORTER": "otlp" for name in SIGNALS}
        where = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
        done = run(provider, tmp_path, program, not early, **exporters, **where)
        calls = receiver.sums()["context_ledger.calls"]
    assert (done.stdout, done.code, len(done.entries()), calls) == ("done\n", 0, 251, 251)
    assert settled(done) == sorted((f"s-{who}", "auto", "done", 1) for who in range(50))
    assert "context ledger" not in done.stderr


# Forks

FORKED = """
pids = []
for number in range(2):
    pid = os.fork()
    if pid == 0:
        call(client(), f"worker {number}")
        sys.exit(0)
    pids.append(pid)
print([os.waitpid(pid, 0)[1] for pid in pids])
"""
FORKED_FIRST = """
pid = os.fork()
if pid == 0:
    from otel_context_ledger.instrumentation import ContextLedgerInstrumentor
    ContextLedgerInstrumentor().instrument()
call(client())
if pid == 0:
    sys.exit(0)
print(os.waitpid(pid, 0)[1])
"""
POOL = """
import multiprocessing
def work(number):
    call(client(), f"worker {number}")
    return number
if __name__ == "__main__":
    call(client())
    with multiprocessing.get_context(sys.argv[2]).Pool(2) as pool:
        print(sorted(pool.map(work, range(4), 1)))
        pool.close()
        pool.join()
"""
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@needs_fork
def test_workers_forked_before_their_first_call(provider: Provider, tmp_path: Path) -> None:
    """IN08: two workers forked by a parent that is instrumented and made no call: each has its row, neither hangs."""
    done = run(provider, tmp_path, START + FORKED)
    assert (*done.seen, done.ends()) == ("[0, 0]\n", "", 0, ["complete"] * 2)


@needs_fork
def test_instrumented_after_the_fork(provider: Provider, tmp_path: Path) -> None:
    """IN08: a child that is instrumented while its parent is not has its row, and the parent has none."""
    done = run(provider, tmp_path, START + FORKED_FIRST, instrument=False)
    assert (*done.seen, done.ends()) == ("0\n", "", 0, ["complete"])


@needs_fork
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pools_of_processes(method: str, provider: Provider, tmp_path: Path) -> None:
    """Workers of every start method of `multiprocessing` write their rows."""
    program = tmp_path / "program.py"
    program.write_text(START + POOL, "utf-8")
    done = run(provider, tmp_path, program, True, (method,))
    assert (done.stdout, done.code, done.ends()) == ("[0, 1, 2, 3]\n", 0, ["complete"] * 5)


# What programs tell of their context

TOLD = """
import asyncio, multiprocessing, threading
from otel_context_ledger import compaction, constraint, outcome, read, session, task, tool_registry
RULE = "Never edit files under vendor/."
SUMMARY = "This session is being continued from a previous conversation. " + RULE
def work(who):
    with session(f"s-{who}"), task(f"T-{who}"):
        constraint("C1", RULE)
        tool_registry([{"name": "read", "input_schema": {"type": "object"}}], server="files")
        read("code.py")
        using = client()
        call(using, f"{who}: {RULE}")
        with compaction(trigger="auto") as told:
            told.done(SUMMARY)
        call(using, SUMMARY)
        outcome(tests="passed")
    return who
async def asynchronous():
    return await asyncio.to_thread(work, "task")
if __name__ == "__main__":
    work("main")
    with multiprocessing.get_context(sys.argv[2]).Pool(2) as pool:
        print(sorted(pool.map(work, ("a", "b"), 1)))
        pool.close()
        pool.join()
    thread = threading.Thread(target=work, args=("thread",))
    thread.start()
    thread.join()
    print(asyncio.run(asynchronous()))
"""
AROUND = """
from otel_context_ledger.instrumentation import ContextLedgerInstrumentor
early = compaction().start()
work("before")
ContextLedgerInstrumentor().instrument()
early.done(SUMMARY)
work("during")
late = compaction().start()
ContextLedgerInstrumentor().uninstrument()
late.done(SUMMARY)
work("after")
print("done")
"""


def settled(done: Done) -> list[tuple[object, ...]]:
    """The compactions in a ledger file as they are known last: session, trigger, outcome, constraints that survived."""
    lines: Any = [line for line in store.read(done.folder / "ledger.jsonl").entries if line.get("kind") == "compaction"]
    last = {line["compaction"]["compaction_event"]: line for line in lines}.values()
    fields = ("trigger", "outcome", "recall_held")
    return sorted(((line["task"]["session_id"], *map(line["compaction"].get, fields)) for line in last), key=str)


@needs_fork
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_what_is_told_in_workers_threads_and_tasks(method: str, provider: Provider, tmp_path: Path) -> None:
    """Constraints, compactions, reads and outcomes are told in the process, worker, thread or task that calls: each
    session has its one compaction, with the constraint held, and nobody's is told twice."""
    program = tmp_path / "program.py"
    program.write_text(START + TOLD, "utf-8")
    done = run(provider, tmp_path, program, True, (method,))
    assert done.seen == ("['a', 'b']\ntask\n", "", 0)
    assert settled(done) == [(f"s-{who}", "auto", "done", 1) for who in ("a", "b", "main", "task", "thread")]
    calls = done.entries()
    assert {entry["constraints_check"] for entry in calls} == {"held"}
    assert [entry["ledger_error"] for entry in calls] == [None] * 10


def test_what_is_told_before_and_after_the_ledger(provider: Provider, tmp_path: Path) -> None:
    """Without a ledger, before `instrument()` and after `uninstrument()`, telling raises nothing and comes to nothing;
    a compaction that began before is known by its end."""
    program = TOLD.split("if __name__", maxsplit=1)[0] + AROUND
    done = run(provider, tmp_path, START + program, instrument=False)
    assert done.seen == ("done\n", "", 0)
    sessions = [row for row in settled(done) if row[1] == "auto"]
    assert sessions == [("s-during", "auto", "done", 1)]
    assert {entry["task_id"] for entry in done.entries()} == {"T-during"}


def test_two_processes_tell_of_one_session(provider: Provider, tmp_path: Path) -> None:
    """Two processes at work on one session and one ledger file at a time: every line is whole, each compaction stands
    there once under its id, and each process knows its own."""
    program = START + TOLD.split("if __name__", maxsplit=1)[0] + 'print(work("same"))\n'
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: run(provider, tmp_path, program), range(2)))
    assert [done.seen for done in both] == [("same\n", "", 0)] * 2
    assert store.read(tmp_path / "ledger.jsonl").skipped == 0
    assert settled(both[0]) == [("s-same", "auto", "done", 1)] * 2


# Exits

# A process that was started in the background ignores the signal unless it says otherwise.
INTERRUPT = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
os.kill(os.getpid(), signal.SIGINT)
time.sleep(5)
"""
EXITS = {
    "sys.exit": ("sys.exit(3)", 3, ["closed"]),
    "error": ("raise RuntimeError('the program')", 1, ["closed"]),
    "os._exit": ("os._exit(3)", 3, []),
    "SIGTERM": ("os.kill(os.getpid(), 15)", -signal.SIGTERM, []),
    "SIGINT": (INTERRUPT, -signal.SIGINT, ["closed"]),
}


@pytest.mark.parametrize("how", EXITS)
def test_exits_in_mid_stream(how: str, provider: Provider, tmp_path: Path) -> None:
    """However a program ends while a stream is open, its exit code and output are its own. What ends Python properly
    leaves the entry; what kills the process loses the lines that wait (docs: threads, fork, exit)."""
    ending, code, ends = EXITS[how]
    program = (
        f"{START}\nstream = call(client(), stream=True)\nnext(iter(stream))\nprint('last', flush=True)\n{ending}\n"
    )
    bare, seen = (run(provider, tmp_path / str(on), program, on) for on in (False, True))
    assert (seen.stdout, seen.code, seen.stderr) == (bare.stdout, bare.code, bare.stderr)
    assert (seen.code, seen.ends()) == (code, ends)


def test_exit_under_daemon_threads(provider: Provider, tmp_path: Path) -> None:
    """A program that ends while daemon threads are in their calls ends as it would without us, and no line is torn."""
    program = (
        START
        + """
import threading, time
answers = []
def work():
    while True:
        answers.append(call(client()))
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
while len(answers) < 12:
    time.sleep(0.01)
print("last", flush=True)
"""
    )
    done = run(provider, tmp_path, program)
    file = tmp_path / "ledger.jsonl"
    assert (done.stdout, done.code, "context ledger" in done.stderr) == ("last\n", 0, False)
    assert store.read(file).skipped == 0
    assert len(store.read(file).entries) >= 12


def test_calls_while_the_program_exits(provider: Provider, tmp_path: Path) -> None:
    """AR16: calls that daemon threads go on to make after the ledger was closed are as they would be without us, and
    nothing is said of them."""
    program = (
        "import atexit, time\nanswers = []\n"
        "def at_exit():\n    until = len(answers) + 12\n    while len(answers) < until:\n        time.sleep(0.01)\n"
        'atexit.register(lambda: (at_exit(), print("last", flush=True)))\n'
        + START
        + """
import threading
from otel_context_ledger.instrumentation import ContextLedgerInstrumentor
ContextLedgerInstrumentor().instrument()
def work():
    while True:
        answers.append(call(client()))
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
while len(answers) < 12:
    time.sleep(0.01)
"""
    )
    done = run(provider, tmp_path, program, instrument=False)
    assert (done.stdout, done.code, "context ledger" in done.stderr) == ("last\n", 0, False)
    assert store.read(tmp_path / "ledger.jsonl").skipped == 0


# Exporters


class Endpoint(ThreadingHTTPServer):
    """An OTLP endpoint that answers with a status, or never."""

    daemon_threads = True

    def __init__(self, status: int | None) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.status, self.closed = status, threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answer(BaseHTTPRequestHandler):
    server: Endpoint

    def log_message(self, *_: object) -> None:
        return

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        if self.server.status is None:
            self.server.closed.wait(60)
            return
        self.send_response(self.server.status)
        self.send_header("content-length", "0")
        self.end_headers()


@contextmanager
def endpoint(kind: str) -> Iterator[str]:
    """The address of an endpoint that is `dead`, `slow` (accepts, never answers), or answers with a status."""
    if kind == "dead":
        yield "http://127.0.0.1:9"
        return
    server = Endpoint(None if kind == "slow" else int(kind))
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server.url
    finally:
        server.closed.set()
        server.shutdown()
        server.server_close()


LATENCY = (
    START
    + """
import statistics, time
from opentelemetry.instrumentation.utils import suppress_instrumentation
begun = time.time()
using, spent = client(), {(clock, watched): [] for clock in ("perf_counter", "thread_time") for watched in (0, 1)}
call(using)
for number in range(100):
    for watched in (True, False):
        began = {clock: getattr(time, clock)() for clock in ("perf_counter", "thread_time")}
        if watched:
            call(using)
        else:
            with suppress_instrumentation():
                call(using)
        for clock, then in began.items():
            spent[clock, watched].append(getattr(time, clock)() - then)
for clock in ("perf_counter", "thread_time"):
    print(statistics.median(spent[clock, 1]) - statistics.median(spent[clock, 0]))
print(time.time() - begun, time.time(), flush=True)
"""
)


@pytest.mark.parametrize("kind", ["dead", "slow", "429", "500"])
def test_an_endpoint_that_takes_nothing(kind: str, provider: Provider, tmp_path: Path) -> None:
    """IN07: 100 calls beside 100 that are not watched, in one run: a dead, mute or refusing endpoint adds less than
    5 ms of work to the median call, and no wait for it, and holds the exit no longer than its timeout lets it. Nothing
    of ours is logged. Where others use the machine, a call's time is theirs; the calls say how slow it is."""
    exporters = {f"OTEL_{name}_EXPORTER": "otlp" for name in SIGNALS}
    bounds = {f"OTEL_{name}_EXPORT_TIMEOUT": "1000" for name in ("BSP", "BLRP", "METRIC")}
    with endpoint(kind) as url:
        done = run(
            provider, tmp_path, LATENCY, OTEL_EXPORTER_OTLP_ENDPOINT=url, OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
            OTEL_EXPORTER_OTLP_TIMEOUT="2", **exporters, **bounds,
        )  # fmt: skip
    waited, worked, calls, last = map(float, done.stdout.split())
    assert (done.code, len(done.entries()), "context ledger" in done.stderr) == (0, 101, False)
    assert (worked < 0.005, waited < 0.5) == (True, True)
    assert time.time() - last < 2 + ROOM + calls


SHUT_DOWN = """
from opentelemetry import _logs, metrics, trace
def shut_down():
    for provider in (trace.get_tracer_provider(), metrics.get_meter_provider(), _logs.get_logger_provider()):
        provider.shutdown()
using = client()
"""
SHUT_DOWNS = {
    "before any call": "shut_down()\nfor _ in range(5): call(using)\n",
    "between calls": "call(using)\nshut_down()\nfor _ in range(4): call(using)\n",
    "after the last call": "for _ in range(5): call(using)\nshut_down()\n",
}


@pytest.mark.parametrize("when", SHUT_DOWNS)
def test_an_sdk_shut_down_early(when: str, provider: Provider, tmp_path: Path) -> None:
    """A program that shuts OpenTelemetry down itself keeps its ledger: the calls are recorded, nothing of ours is
    logged, and the SDK is not shut down a second time."""
    exporters = {f"OTEL_{name}_EXPORTER": "otlp" for name in SIGNALS}
    with receiving() as receiver:
        where = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
        done = run(provider, tmp_path, START + SHUT_DOWN + SHUT_DOWNS[when] + "print('done')", **exporters, **where)
    assert (done.stdout, done.code, done.ends()) == ("done\n", 0, ["complete"] * 5)
    lines = done.stderr.splitlines()
    assert [line for line in lines if "context ledger" in line or "once" in line or "Traceback" in line] == []
    assert sorted(lines) == sorted(set(lines))


def test_without_an_sdk(provider: Provider, tmp_path: Path) -> None:
    """A program that instruments itself and sets no provider up has its ledger and a quiet exit."""
    start = "from otel_context_ledger.instrumentation import ContextLedgerInstrumentor\n"
    done = run(
        provider, tmp_path, start + "ContextLedgerInstrumentor().instrument()\n" + START + "call(client())", False
    )
    assert (*done.seen, done.ends()) == ("", "", 0, ["complete"])


SAMPLED = (
    START
    + """
from otel_context_ledger.instrumentation import ContextLedgerInstrumentor
using = client()
for number in range(40):
    call(using, f"task {number}")
ContextLedgerInstrumentor().flush(60)
print("done")
"""
)


def test_sampling_touches_spans_alone(provider: Provider, tmp_path: Path) -> None:
    """IN12: under a sampler that drops nearly every span, ledger, events and counters hold every call."""
    sampler = {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.001"}
    exporters = {f"OTEL_{name}_EXPORTER": "otlp" for name in SIGNALS}
    with receiving() as receiver:
        where = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
        done = run(provider, tmp_path, SAMPLED, **sampler, **exporters, **where)
        events = [name for name, _ in receiver.events() if name == "context_ledger.entry"]
        counted, spans = receiver.sums()["context_ledger.calls"], len(receiver.spans())
    assert (done.stdout, len(done.entries()), len(events), counted, spans < 10) == ("done\n", 40, 40, 40, True)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not say how much memory it gave")
def test_memory_stays_flat() -> None:
    """IN11: sessions of ten calls fill what is remembered; as many more need no more. The short form: 100 sessions at a
    time; `python -m benchmarks` has 1,000."""
    from benchmarks import memory

    (row,) = memory.measure(quick=True)
    assert row.over is False, f"{row.added:,.0f} bytes more"
