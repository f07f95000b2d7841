"""One contestant in one process. Reads a JSON command a line, answers each with a JSON line.

`python -m benchmarks.peers.worker CONTESTANT on|off [PROVIDER]`; commands are `{"size": 0, "calls": 8}`,
`{"events": 1000}` and, of the bare SDK against a provider, `{"size": 0, "create": 3}` and `{"stream": 3}`; answers hold
seconds of CPU.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from time import process_time, thread_time
from typing import Any

import openai
from openai import _base_client
from openai._models import FinalRequestOptions
from openai.resources.chat.completions import Completions
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from benchmarks.corpus import Corpus, Size, rebuilt
from benchmarks.peers.contestants import CONTESTANTS, CREATE, Contestant, Providers
from benchmarks.replay import Replay

MODEL = "kimi-k3"
TOKENS_PER_MESSAGE = 500
SIZES = (Size(10, 4_000, 3, 600, 24), Size(200, 400_000, 20, 2_600, 8), Size(2_000, 4_300_000, 20, 2_560, 4))
# A conversation that has grown by one part in so many is too long for its size: another one goes on.
GROWTH = 10


class Canned:
    """What stands below the contestant's wrapper: the answer that was laid ready, or a stream."""

    answer: ChatCompletion | None = None

    @staticmethod
    def create(_: Any, *args: Any, **kwargs: Any) -> Any:
        return Replay() if kwargs.get("stream") else Canned.answer

    @staticmethod
    def request(_: Any, *args: Any, **kwargs: Any) -> Any:
        return kwargs["stream_cls"]() if kwargs.get("stream") else Canned.answer


class Talk:
    """Requests of one size: a conversation that grows by two messages a call, then another one."""

    def __init__(self, size: Size) -> None:
        self._size, self._corpus, self._talks, self._end = size, Corpus(size), 0, 0
        self._more = 2 * max(4, size.messages // GROWTH // 2)
        self._history: list[Any] = []

    def request(self) -> tuple[dict[str, Any], int]:
        """The next body, and how many of its messages the provider has seen."""
        seen, self._end = self._end, self._end + 2
        if not self._history or self._end > len(self._history):
            self._talks, seen, self._end = self._talks + 1, 0, self._size.messages
            self._history = self._corpus.history(self._talks, self._more)
        messages, tools = rebuilt(self._history[: self._end]), rebuilt(self._corpus.tools)
        return {"model": MODEL, "messages": messages, "tools": tools}, seen


class Worker:
    """A contestant that is switched on."""

    def __init__(self, contestant: Contestant, content: bool, provider: str | None) -> None:
        self._real = openai.OpenAI(api_key="none", base_url=f"{provider}/kimi/v1", max_retries=0) if provider else None
        self._wraps = contestant.wraps
        if provider is None:
            Completions.create = Canned.create if self._wraps == CREATE else Completions.create
            _base_client.SyncAPIClient.request = Canned.request
        self._providers: Providers | None = contestant.switch(content)
        self._client = openai.OpenAI(api_key="none", base_url="https://api.moonshot.ai/v1")
        self._call: Callable[[dict[str, Any]], Callable[[], Any]] = self._prepared
        if contestant is CONTESTANTS["manual"]:
            self._call = self._in_a_span
        self._talks = [Talk(size) for size in SIZES]
        Replay.events = tuple(_events(1))

    def answer(self, command: dict[str, int]) -> dict[str, float]:
        """What a command asks for."""
        if "calls" in command:
            return self.calls(self._talks[command["size"]], command["calls"])
        if "events" in command:
            return self.events(command["events"])
        if "create" in command:
            return self.create(self._talks[command["size"]], command["create"])
        return self.stream(command["stream"])

    def calls(self, talk: Talk, count: int) -> dict[str, float]:
        """CPU seconds for each of `count` calls; the one that begins a conversation is made and not counted."""
        thread = idle = 0.0
        counted = 0
        self._flush()
        began = process_time()
        while counted < count:
            # Only this thread's time: others may still be at work on the call before.
            paused = thread_time()
            body, seen = talk.request()
            Canned.answer = _answer(len(body["messages"]), seen)
            call = self._call(body)
            idle += thread_time() - paused
            if not seen:
                idle += self._uncounted(call)
                continue
            before = thread_time()
            call()
            thread += thread_time() - before
            counted += 1
        self._flush()
        return {"thread": thread / count, "process": (process_time() - began - idle) / count}

    def _uncounted(self, call: Callable[[], Any]) -> float:
        """Makes a call, and gives the process's CPU seconds for it."""
        self._flush()
        before = process_time()
        call()
        self._flush()
        return process_time() - before

    def events(self, count: int) -> dict[str, float]:
        """CPU seconds for each event of a stream, beyond those that the loop itself takes."""
        Replay.events = tuple(_events(count))
        call = self._call({"model": MODEL, "messages": [{"role": "user", "content": "Go on."}], "stream": True})
        watched = _read(call)
        plain = _read(Replay)
        return {"thread": (watched - plain) / count}

    def create(self, talk: Talk, count: int) -> dict[str, float]:
        """CPU seconds of the SDK's own `create()`."""
        assert self._real is not None
        bodies = [talk.request()[0] for _ in range(count)]
        self._real.chat.completions.create(**bodies[0])
        thread, process = thread_time(), process_time()
        for body in bodies:
            self._real.chat.completions.create(**body)
        return {"thread": (thread_time() - thread) / count, "process": (process_time() - process) / count}

    def stream(self, count: int) -> dict[str, float]:
        """CPU seconds of the SDK's own for each event of a stream."""
        assert self._real is not None
        ask: Any = {"model": MODEL, "messages": [{"role": "user", "content": "Go on."}], "stream": True}
        found, events = 0.0, 0
        for _ in range(count):
            before = thread_time()
            events += sum(1 for _ in self._real.chat.completions.create(**ask))
            found += thread_time() - before
        return {"thread": found / events}

    def _flush(self) -> None:
        if self._providers is not None:
            self._providers.flush()

    def _prepared(self, body: dict[str, Any]) -> Callable[[], Any]:
        """A call, so far prepared that only the contestant's work is left."""
        if self._wraps == CREATE:
            create = self._client.chat.completions.create
            return lambda: create(**body)
        options = FinalRequestOptions.construct(method="post", url="/chat/completions", json_data=body)
        request, stream = self._client.request, bool(body.get("stream"))
        stream_cls = Replay[ChatCompletionChunk] if stream else None
        return lambda: request(ChatCompletion, options, stream=stream, stream_cls=stream_cls)

    def _in_a_span(self, body: dict[str, Any]) -> Callable[[], Any]:
        from opentelemetry import trace

        tracer, call = trace.get_tracer("manual"), self._prepared(body)
        asked = {f"gen_ai.request.attribute_{n}": "value" for n in range(6)}
        told = {f"gen_ai.response.attribute_{n}": n for n in range(6)}

        def calling() -> Any:
            with tracer.start_as_current_span("chat", attributes=asked) as span:
                found = call()
                span.set_attributes(told)
            return found

        return calling


def _read(make: Callable[[], Any]) -> float:
    """Thread CPU seconds of a stream that is made and read to its end."""
    before = thread_time()
    for _ in make():
        pass
    return thread_time() - before


def _answer(messages: int, seen: int) -> ChatCompletion:
    prompt = messages * TOKENS_PER_MESSAGE
    details = {"prompt_tokens_details": {"cached_tokens": seen * TOKENS_PER_MESSAGE}}
    usage = {"prompt_tokens": prompt, "completion_tokens": 9, "total_tokens": prompt + 9, **details}
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": MODEL}
    return ChatCompletion.model_validate(head | {"choices": [choice], "usage": usage})


def _events(count: int) -> Iterator[ChatCompletionChunk]:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    for number in range(count):
        last = number == count - 1
        choice = {"index": 0, "delta": {"content": "word "}, "finish_reason": "stop" if last else None}
        yield ChatCompletionChunk.model_validate(head | {"choices": [choice]})


def main() -> None:
    name, content, *provider = sys.argv[1:]
    contestant = CONTESTANTS[name]
    worker = Worker(contestant, content == "on", provider[0] if provider else None)
    print(json.dumps({"version": contestant.version()}), flush=True)
    for line in sys.stdin:
        print(json.dumps(worker.answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
