"""Which task, attempt and session hold where: blocks, decorators, plain calls, threads, asyncio, child processes."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any
from uuid import UUID

import openai
import pytest
from opentelemetry import baggage, trace
from opentelemetry import context as otel
from opentelemetry.sdk.trace import TracerProvider

from otel_context_ledger import attempt, carry, child_environment, session, task, tasks
from otel_context_ledger.names import MAX_NAME, named
from otel_context_ledger.tasks import Names, current
from tests.conftest import Ledger
from tests.provider import Provider

NOBODY = Names()
WANTED = ("task_id", "attempt_id", "session_id", "session_source", "parent_session_id")


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """Every test starts without any name, in the context and in the environment of the process."""
    tasks.inherit(NOBODY)
    yield
    assert current() == NOBODY
    tasks.inherit(NOBODY)


def ask(provider: Provider, text: str = "hi", **kw: Any) -> None:
    client = openai.OpenAI(base_url=f"{provider.url}/kimi/v1", api_key="test-key", max_retries=0)
    client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}], **kw)


# Where a name holds


def test_a_block_holds_its_name_and_gives_back_the_one_before() -> None:
    """Inside of a block its name holds, after it the one before, whatever ended it."""
    with task("t-1"), attempt("1"), session("s-1"):
        with pytest.raises(KeyError), session("s-2"):
            raise KeyError
        inside = current()
    assert (inside, current()) == (Names("s-1", "t-1", "1"), NOBODY)


def test_plain_calls_hold_from_start_to_stop() -> None:
    """A name that is started holds until it is stopped; a second stop changes nothing."""
    running = task("t-1").start()
    inside = current()
    running.stop()
    running.stop()
    assert (inside, current()) == (Names(task="t-1"), NOBODY)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)])
def test_plain_calls_may_stop_in_any_order(order: tuple[int, ...]) -> None:
    """However scopes overlap, nothing is left of them once all are stopped."""
    scopes = [task("outer").start(), task("inner").start(), session("s").start()]
    for at in order:
        scopes[at].stop()
    assert current() == NOBODY


def test_a_scope_that_ended_inside_of_a_span_does_not_come_back_with_the_spans_end() -> None:
    """The end of a span restores the whole context from before it; a task that ended meanwhile does not hold again."""
    tracer = TracerProvider().get_tracer("test")
    running = task("t-1").start()
    with tracer.start_as_current_span("work"):
        running.stop()
    with task("t-2"):
        token = otel.attach(otel.set_value("a stream's span", "open"))
    otel.detach(token)
    assert current() == NOBODY


def test_the_context_that_another_thread_takes_along_keeps_its_names() -> None:
    """Who hands the OpenTelemetry context to a thread, hands the names on with it, even after their block has ended."""
    seen = []
    with task("t-1"):
        taken = otel.get_current()

    def work() -> None:
        token = otel.attach(taken)
        seen.append(current())
        otel.detach(token)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [Names(task="t-1")]


def test_a_block_leaves_the_span_alone() -> None:
    """The span that the block's body made current stays current after the block."""
    span = TracerProvider().get_tracer("test").start_span("left open")
    with task("t-1"):
        token = otel.attach(trace.set_span_in_context(span))
    after = trace.get_current_span()
    otel.detach(token)
    assert after is span


def test_names_are_not_in_the_baggage() -> None:
    """Baggage would travel to the provider in a header; the names are not in it."""
    with task("t-1"), attempt("1"), session("s-1"):
        assert dict(baggage.get_all()) == {}


# Parents, and what a name belongs to


def test_a_session_inside_of_another_is_its_child() -> None:
    """A nested session has the outer one as its parent, a grandchild the child, and the same name again no other."""
    seen = []
    with session("root"), session("child"):
        seen.append(current())
        with session("child"):
            seen.append(current())
        with session("grandchild"):
            seen.append(current())
        with session("elsewhere", parent="daemon"):
            seen.append(current())
    assert seen == [
        Names("child", parent="root"),
        Names("child", parent="root"),
        Names("grandchild", parent="child"),
        Names("elsewhere", parent="daemon"),
    ]


def test_an_attempt_ends_with_its_task() -> None:
    """Another task inside of an attempt is not that attempt; an attempt around a task is one at it."""
    with task("A"), attempt("2"):
        with task("B"):
            other = current()
        with task(None):
            none = current()
    with attempt("1"), task("C"):
        around = current()
    assert (other, none, around) == (Names(task="B"), NOBODY, Names(task="C", attempt="1"))


def test_names_of_the_process_hold_where_the_program_says_nothing() -> None:
    """What the environment names is the outermost scope: a parent to sessions, and no attempt at another task."""
    tasks.inherit(Names("env-s", "env-t", "env-a", "env-p"))
    seen = [current()]
    with session("own"):
        seen.append(current())
    with task("own"):
        seen.append(current())
    with task(None):
        seen.append(current())
    tasks.inherit(NOBODY)
    assert seen == [
        Names("env-s", "env-t", "env-a", "env-p"),
        Names("own", "env-t", "env-a", "env-s"),
        Names("env-s", "own", None, "env-p"),
        Names("env-s", None, None, "env-p"),
    ]


# Names


class Hostile(str):
    """A text that will not be treated as one."""

    def __str__(self) -> str:
        raise RuntimeError

    def __len__(self) -> int:
        raise RuntimeError

    strip = isprintable = encode = __len__  # type: ignore[assignment]


class Secretive:
    """An object whose text must not get into a ledger."""

    def __str__(self) -> str:
        return "password=hunter2"

    __repr__ = __str__


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("t-1", "t-1"),
        ("  Fix the login \n", "Fix the login"),
        (8421, "8421"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        pytest.param(Hostile("quiet"), "quiet", id="hostile"),
        ("a\x1b[31m\nb\u202ec\ud800", "a\ufffd[31m\ufffdb\ufffdc\ufffd"),
        ("", ""),
        (" \t", ""),
        (None, ""),
        (True, ""),
        (b"bytes", ""),
        (Secretive(), ""),
        (["list"], ""),
        pytest.param(10**5000, "", id="huge"),
        (1.5, ""),
    ],
)
def test_what_a_name_may_be(given: object, name: str) -> None:
    """Texts, whole numbers and UUIDs are names, made harmless; anything else is none, and nothing raises."""
    assert named(given) == name


def test_a_long_name_is_cut_and_stays_itself() -> None:
    """A name of 5,000 characters becomes one of 256, the same each time, another for another end."""
    long = [named("x" * 5000), named("x" * 5000), named("x" * 4999 + "y")]
    assert [len(name) for name in long] == [MAX_NAME] * 3
    assert (long[0] == long[1], long[0] == long[2]) == (True, False)


@pytest.mark.parametrize("scope", [session, task, attempt])
@pytest.mark.parametrize("value", [None, "", Secretive(), 1.5, object])
def test_a_value_that_is_no_name_clears_the_name(scope: Callable[[object], tasks.Scope], value: object) -> None:
    """Where the program names nothing, its calls are in nobody's account rather than in the outer one's."""
    with task("t"), attempt("1"), session("s"), scope(value):
        held = current()
    gone = {session: held.session, task: held.task, attempt: held.attempt}[scope]  # type: ignore[index]
    assert gone is None


# Decorators


def test_a_decorated_function_runs_in_its_scope() -> None:
    """Each call runs in the scope, calls of itself too, and the function keeps its name and its answer."""

    @task("t-1")
    @session("s-1")
    def work(depth: int) -> list[Names]:
        """Works."""
        return [current(), *(work(depth - 1) if depth else [])]

    assert (work(1), work.__name__, work.__doc__) == ([Names("s-1", "t-1")] * 2, "work", "Works.")


def test_a_carried_function_is_still_itself() -> None:
    """Name and documentation stay, and so does the kind of function."""

    async def work() -> Names:
        """Works."""
        return current()

    with task("t-1"):
        carried, plain = carry(work), carry(named)
    assert (asyncio.run(carried()), carried.__doc__) == (Names(task="t-1"), "Works.")
    assert (plain("x"), plain.__name__) == ("x", "named")


def test_a_decorated_coroutine_runs_in_its_scope() -> None:
    """The scope holds across awaits, for each of several calls at once its own."""

    async def work() -> Names:
        await asyncio.sleep(0)
        return current()

    async def main() -> list[Names]:
        return [*await asyncio.gather(task("a")(work)(), task("b")(work)()), current()]

    assert asyncio.run(main()) == [Names(task="a"), Names(task="b"), NOBODY]


def test_a_decorated_generator_is_itself() -> None:
    """The scope holds while the generator runs, not in between; what is sent, thrown and returned passes through."""
    seen: list[object] = []

    @task("t-1")
    def work() -> Iterator[Any]:
        try:
            seen.append((yield current()))
            yield current()
        except KeyError:
            yield "caught"
        return "returned"

    running: Any = work()
    got = [next(running), current(), running.send("sent"), running.throw(KeyError())]
    with pytest.raises(StopIteration) as end:
        next(running)
    assert got == [Names(task="t-1"), NOBODY, Names(task="t-1"), "caught"]
    assert (seen, end.value.value) == (["sent"], "returned")


def test_a_decorated_generator_is_closed_in_its_scope() -> None:
    """A generator that is left early cleans up inside its scope."""
    seen = []

    @task("t-1")
    def work() -> Iterator[int]:
        try:
            yield 1
        finally:
            seen.append(current())

    running: Any = work()
    next(running)
    running.close()
    assert seen == [Names(task="t-1")]


def test_a_decorated_async_generator_is_itself() -> None:
    """The same of an async generator: items, what is sent and thrown, and its clean-up."""
    seen: list[object] = []

    @task("t-1")
    async def work() -> AsyncIterator[Any]:
        try:
            seen.append((yield current()))
            await asyncio.sleep(0)
            yield current()
        except KeyError:
            yield "caught"
        finally:
            seen.append(current())

    async def main() -> list[object]:
        running: Any = work()
        got = [await anext(running), current(), await running.asend("sent"), await running.athrow(KeyError())]
        await running.aclose()
        return got

    assert asyncio.run(main()) == [Names(task="t-1"), NOBODY, Names(task="t-1"), "caught"]
    assert seen == ["sent", Names(task="t-1")]


# Threads and tasks


def test_AT09_a_pool_does_not_know_the_task_unless_it_is_carried(provider: Provider, ledger: Ledger) -> None:
    """A call in a pool's thread has no task by itself, and with `carry` the one of its caller."""
    with ThreadPoolExecutor(1) as pool, task("t-1"), attempt("1"), session("s-1"):
        pool.submit(ask, provider, "alone").result()
        pool.submit(carry(ask), provider, "carried").result()
        pool.submit(copy_context().run, ask, provider, "copied").result()
    names = [[entry[name] for name in WANTED[:3]] for entry in ledger.flat()]
    assert [names[0][:2], *names[1:]] == [[None, None], ["t-1", "1", "s-1"], ["t-1", "1", "s-1"]]


def test_AT09_what_is_carried_is_all_that_holds() -> None:
    """In a thread that has names of its own, the carried function has its caller's, also those that it lacks, and the
    thread has its own again afterwards."""
    with task("t-1"), session("s-1", parent="p"):
        carried = carry(current)
    seen: list[Names] = []

    def other() -> None:
        with task("other"), attempt("7"):
            seen.extend([carried(), current()])

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen == [Names("s-1", "t-1", None, "p"), Names(task="other", attempt="7")]


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_AT09_a_pool_of_processes_is_told_by_carry(start: str) -> None:
    """What is carried can go to another process; without it that process has no names, or those that it was forked
    with."""
    with task("t-1"), attempt("1"), session("s-1"):
        carried = carry(current)
    with ProcessPoolExecutor(1, multiprocessing.get_context(start)) as pool:
        assert pool.submit(carried).result(60) == Names("s-1", "t-1", "1")
        assert pool.submit(current).result(60) == NOBODY


def test_AT09_one_scope_in_many_threads() -> None:
    """A scope that several threads use at once holds in each of them and nowhere after."""
    shared, seen, ready = task("t-1"), [], threading.Barrier(8)

    def work() -> None:
        with shared:
            ready.wait()
            seen.append(current())
        seen.append(current())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(repr, seen)) == sorted(map(repr, [Names(task="t-1"), NOBODY] * 8))


def test_asyncio_tasks_keep_what_held_where_they_were_made() -> None:
    """Tasks that run side by side have each the names of the place that made them."""

    async def late() -> Names:
        await asyncio.sleep(0.01)
        return current()

    async def main() -> list[Names]:
        with task("a"):
            first = asyncio.create_task(late())
        with task("b"):
            second = asyncio.create_task(late())
            thread = await asyncio.to_thread(current)
        return [await first, await second, thread]

    assert asyncio.run(main()) == [Names(task="a"), Names(task="b"), Names(task="b")]


# Child processes


def test_the_environment_of_a_child() -> None:
    """A child's environment is the parent's with the names that hold, in place of all spellings of older ones."""
    base = {
        "PATH": "/bin",
        "CONTEXT_LEDGER_TASK_ID": "old",
        "OTEL_CONTEXT_LEDGER_SESSION_ID": "env-s",
        "CONTEXT_LEDGER_ATTEMPT_ID": "3",
    }
    with task("t-1"), session("s-1"):
        named_here = child_environment(base, session="sub")
    plain = child_environment(base)
    with task(None):
        nobody = child_environment(base)
    assert named_here == {
        "PATH": "/bin",
        "CONTEXT_LEDGER_TASK_ID": "t-1",
        "CONTEXT_LEDGER_SESSION_ID": "sub",
        "CONTEXT_LEDGER_PARENT_SESSION_ID": "s-1",
    }
    assert plain == {
        "PATH": "/bin",
        "CONTEXT_LEDGER_TASK_ID": "old",
        "CONTEXT_LEDGER_ATTEMPT_ID": "3",
        "CONTEXT_LEDGER_SESSION_ID": "env-s",
    }
    assert nobody == {"PATH": "/bin", "CONTEXT_LEDGER_SESSION_ID": "env-s"}


CHILD = """
import sys, openai
from otel_context_ledger.instrumentation import ContextLedgerInstrumentor
ContextLedgerInstrumentor().instrument()
client = openai.OpenAI(base_url=sys.argv[1], api_key="test-key", max_retries=0)
client.chat.completions.create(model="m", messages=[{"role": "user", "content": sys.argv[2]}])
"""


def test_AT03_a_child_process_has_the_task_it_was_given_or_none(provider: Provider, ledger: Ledger) -> None:
    """A subagent in a process of its own has the task and its parent session by its environment; one that was started
    without that has no task, though its parent is at work on one."""
    command = [sys.executable, "-c", CHILD, f"{provider.url}/kimi/v1"]
    with task("TASK-8421"), attempt("2"), session("root"):
        subprocess.run([*command, "given"], env=child_environment(session="sub"), check=True, timeout=60)
        subprocess.run([*command, "bare"], env=dict(os.environ), check=True, timeout=60)
    given, bare = ([entry[name] for name in WANTED] for entry in ledger.flat())
    assert given == ["TASK-8421", "2", "sub", "explicit", "root"]
    assert (bare[:2], bare[3:]) == ([None, None], ["lineage", None])


def test_AT03_a_shell_suffices(provider: Provider, ledger: Ledger) -> None:
    """Variables that a shell sets in front of a command name the calls of that command."""
    script = (
        "CONTEXT_LEDGER_TASK_ID=TASK-1 CONTEXT_LEDGER_SESSION_ID=sub CONTEXT_LEDGER_PARENT_SESSION_ID=root "
        '"$0" -c "$1" "$2" shell'
    )
    subprocess.run(["sh", "-c", script, sys.executable, CHILD, f"{provider.url}/kimi/v1"], check=True, timeout=60)
    (entry,) = ledger.flat()
    assert [entry[name] for name in WANTED] == ["TASK-1", None, "sub", "explicit", "root"]


# In the entry


def test_AT05_a_child_session_has_its_own_name_and_its_parents(provider: Provider, ledger: Ledger) -> None:
    """Root and child are two sessions, and each call of the child names the root."""
    with task("t"), session("r"):
        ask(provider, "root")
        with session("c"):
            ask(provider, "child 1")
            ask(provider, "child 2")
    got = [(entry["session_id"], entry["parent_session_id"], entry["fork_of"]) for entry in ledger.flat()]
    assert got == [("r", None, None), ("c", "r", None), ("c", "r", None)]


def test_names_in_a_request_are_bounded_too(provider: Provider, ledger: Ledger) -> None:
    """A conversation id that a request brings along is bounded like a name that the program gives."""
    token = otel.attach(otel.set_value("opentelemetry.util.genai.conversation_id", "c" * 5000))
    ask(provider)
    otel.detach(token)
    with session("x" * 5000):
        ask(provider, "other")
    assert [len(entry["session_id"]) for entry in ledger.flat()] == [MAX_NAME, MAX_NAME]
