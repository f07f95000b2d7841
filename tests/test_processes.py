"""Threads, tasks, greenlets, forks, exits, exporters: one right entry per call, and a program as it is without us."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import openai
import pytest

from otel_context_ledger import store
from tests.conftest import Ledger, flat
from tests.provider import Provider
from tests.receiver import receiving

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
    """A process that has ended: what it said, how it ended, and when its last line of output was said."""

    def __init__(self, folder: Path, ended: subprocess.CompletedProcess[str], seconds: float) -> None:
        self.folder, self.stdout, self.stderr, self.code = folder, ended.stdout, ended.stderr, ended.returncode
        self.seconds = seconds

    @property
    def seen(self) -> tuple[str, str, int]:
        return self.stdout, self.stderr, self.code

    def entries(self) -> list[dict[str, Any]]:
        file = self.folder / "ledger.jsonl"
        return [flat(entry) for entry in store.read(file).entries] if file.exists() else []  # type: ignore[arg-type]

    def ends(self) -> list[str]:
        return [entry["call_end"] for entry in self.entries()]


def run(provider: Provider, folder: Path, program: str, instrument: bool = True, **env: str) -> Done:
    """A program in a process of its own, under `opentelemetry-instrument` or bare."""
    folder.mkdir(exist_ok=True)
    bin_ = Path(sys.executable).parent
    command = [str(bin_ / "opentelemetry-instrument")] * instrument + [
        sys.executable,
        "-c",
        program,
        provider.url + "/kimi/v1",
    ]
    settings = {
        "CONTEXT_LEDGER_FILE": str(folder / "ledger.jsonl"),
        "CONTEXT_LEDGER_SURFACES": f"127.0.0.1:{provider.server_port}=kimi_open_platform",
        **{f"OTEL_{name}_EXPORTER": "none" for name in SIGNALS},
    }
    began = time.monotonic()
    ended = subprocess.run(
        command, env=os.environ | settings | env, capture_output=True, text=True, check=False, timeout=120, cwd=folder
    )
    return Done(folder, ended, time.monotonic() - began)


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
    """Two conversations take turns in one client; one of them reorders its tools once. The cause is its alone."""
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


def test_a_call_whose_loop_is_closed_over_it(provider: Provider, tmp_path: Path) -> None:
    """A loop that is closed while a call is in flight leaves a coroutine to the garbage collector, which ends it in
    another context: nothing is logged."""
    program = """
import asyncio, gc, openai, sys
loop = asyncio.new_event_loop()
async def work():
    client = openai.AsyncOpenAI(base_url=sys.argv[1], api_key="test-key", max_retries=0)
    await client.chat.completions.create(model="stuck", messages=[{"role": "user", "content": "hi"}])
task = loop.create_task(work())
loop.run_until_complete(asyncio.sleep(0.3))
task._log_destroy_pending = False
coroutine = task.get_coro()
del task
loop.close()
del loop, coroutine
gc.collect()
print("done")
"""
    bare, seen = (run(provider, tmp_path / str(on), program, on) for on in (False, True))
    assert ("detach" in seen.stderr, seen.stdout, seen.code) == (False, bare.stdout, bare.code)


# Greenlets

GEVENT = """
client = client()
call(client, "first")
def work(who):
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
    greenlets; nothing hangs, and all lines and metrics are there."""
    pytest.importorskip("gevent", reason="gevent is in the dev group; this environment was made without it")
    early = patched == "before us"
    program = PATCH + (INITIALIZE if early else "") + START + GEVENT
    with receiving() as receiver:
        exporters = {f"OTEL_{name}_EXPORTER": "otlp" for name in SIGNALS}
        where = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
        done = run(provider, tmp_path, program, not early, **exporters, **where)
        calls = receiver.sums()["context_ledger.calls"]
    assert (done.stdout, done.code, len(done.entries()), calls) == ("done\n", 0, 151, 151)
    assert "context ledger" not in done.stderr
