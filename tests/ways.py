"""Every way of making one and the same model call, and every way in which it can end.

A `Way` is a surface, a client (sync or async) and a shape; `run` makes the call and ends it as asked. What the SDK of
this environment lacks is left out of `WAYS`.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import anthropic
import openai

RULES = "You are a careful agent. Read before you write. " * 30
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"{name} a file of the repository. " * 5,
            "strict": True,
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}},
                "required": ["path"],
                "additionalProperties": False,
            },
        },
    }
    for name in ("read", "edit", "run")
]
ASK = {"role": "user", "content": "Fix the failing test in the parser. " * 20}
SHAPES = ("plain", "stream", "helper", "raw", "raw_stream", "parse")
ENDINGS = ("ok", "http_error", "drop", "close", "never", "cancel", "collect")
STREAMS = ("stream", "helper", "raw_stream")


@dataclass(frozen=True)
class Way:
    """One way of calling."""

    surface: str
    asynchronous: bool
    shape: str

    def __str__(self) -> str:
        return f"{self.surface}-{'async' if self.asynchronous else 'sync'}-{self.shape}"

    @property
    def streams(self) -> bool:
        return self.shape in STREAMS


@dataclass(frozen=True)
class Dialect:
    """How a surface is called through its SDK: client class names, path under the provider, body, and resource."""

    sdk: Any
    base: str
    body: Mapping[str, Any]
    resource: Callable[[Any], Any]
    streaming: Mapping[str, Any]


def _chat(client: Any) -> Any:
    return client.chat.completions


CHAT: dict[str, Any] = {"messages": [{"role": "system", "content": RULES}, ASK], "tools": TOOLS}
DIALECTS: dict[str, Dialect] = {
    "kimi": Dialect(openai, "/kimi/v1", CHAT, _chat, {}),
    "openai": Dialect(openai, "/openai/v1", CHAT, _chat, {"stream_options": {"include_usage": True}}),
    "responses": Dialect(openai, "/openai/v1", {"instructions": RULES, "input": [ASK]}, lambda c: c.responses, {}),
    "anthropic": Dialect(
        anthropic, "/anthropic", {"system": RULES, "messages": [ASK], "max_tokens": 64}, lambda c: c.messages, {}
    ),
}


def client(way: Way, url: str) -> Any:
    """A new client of the way's SDK."""
    dialect = DIALECTS[way.surface]
    name = dialect.sdk.__name__
    kinds = {"openai": ("OpenAI", "AsyncOpenAI"), "anthropic": ("Anthropic", "AsyncAnthropic")}[name]
    return getattr(dialect.sdk, kinds[way.asynchronous])(base_url=url + dialect.base, api_key="test-key", max_retries=0)


def method(way: Way, using: Any) -> Callable[..., Any] | None:
    """The method that makes the call, or `None` when this SDK has none."""
    resource = DIALECTS[way.surface].resource
    try:
        owner = resource(using.beta) if way.shape in ("helper", "parse") and _beta(way, using) else resource(using)
    except AttributeError:
        return None
    if way.shape in ("raw", "raw_stream"):
        return owner.with_raw_response.create
    return getattr(owner, {"helper": "stream", "parse": "parse"}.get(way.shape, "create"), None)


def _beta(way: Way, using: Any) -> bool:
    """openai 1.40 to 1.91 keep `parse` and `stream` under `beta`."""
    owner = DIALECTS[way.surface].resource(using)
    return not hasattr(owner, "parse" if way.shape == "parse" else "stream") and hasattr(using, "beta")


def known(way: Way) -> bool:
    """Whether this environment's SDK can make the call."""
    if way.shape == "parse" and way.surface == "anthropic":
        return False
    return method(way, _uncalled(way.surface, way.asynchronous)) is not None


@cache
def _uncalled(surface: str, asynchronous: bool) -> Any:
    """A client to look at: making one takes a tenth of a second."""
    return client(Way(surface, asynchronous, "plain"), "http://127.0.0.1:9")


WAYS = [
    way
    for surface in DIALECTS
    for asynchronous in (False, True)
    for shape in SHAPES
    if known(way := Way(surface, asynchronous, shape))
]


def arguments(way: Way, model: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The keyword arguments of the call."""
    dialect = DIALECTS[way.surface]
    given = {"model": model, **(body or dialect.body)}
    if way.streams:
        given |= dialect.streaming
    if way.shape in ("stream", "raw_stream"):
        given["stream"] = True
    if way.shape == "parse":
        given.pop("tools", None)
    return given


def run(way: Way, url: str, model: str, ending: str = "ok", body: Mapping[str, Any] | None = None) -> Any:
    """Makes the call and ends it; returns what the program saw, errors as their type's name."""
    try:
        if way.asynchronous:
            return asyncio.run(_arun(way, url, model, ending, body))
        return _run(way, url, model, ending, body)
    except (openai.APIError, anthropic.APIError, asyncio.CancelledError, OSError) as error:
        return type(error).__name__
    except Exception as error:
        if type(error).__module__.split(".")[0] in ("httpx", "httpx2", "httpcore", "httpcore2"):
            return type(error).__name__
        raise
    finally:
        if ending in ("never", "collect", "close"):
            gc.collect()


def _run(way: Way, url: str, model: str, ending: str, body: Mapping[str, Any] | None) -> Any:
    with client(way, url) as using:
        call = method(way, using)
        assert call is not None
        given = arguments(way, model, body)
        if way.shape == "helper":
            return _run_helper(call, given, ending)
        result = call(**given)
        if way.shape == "raw_stream" and ending not in ("never", "collect"):
            result = result.parse()
        return _consume(result, ending) if way.streams else _seen(result)


def _run_helper(call: Callable[..., Any], given: dict[str, Any], ending: str) -> Any:
    with call(**given) as stream:
        return _consume(stream, ending)


def _consume(stream: Any, ending: str) -> Any:
    if ending in ("never", "collect"):
        return type(stream).__name__
    if ending == "close":
        next(iter(stream))
        stream.close()
        return type(stream).__name__
    return [type(stream).__name__, sum(1 for _ in stream)]


async def _arun(way: Way, url: str, model: str, ending: str, body: Mapping[str, Any] | None) -> Any:
    async with client(way, url) as using:
        call = method(way, using)
        assert call is not None
        given = arguments(way, model, body)
        if way.shape == "helper":
            async with call(**given) as stream:
                return await _aconsume(stream, ending)
        if ending == "cancel" and not way.streams:
            return await _cancelled(call(**given))
        result = await call(**given)
        if way.shape == "raw_stream" and ending not in ("never", "collect"):
            result = await _awaited(result.parse())
        if way.streams:
            return await _aconsume(result, ending)
        return await _aseen(result)


async def _cancelled(call: Any) -> Any:
    task = asyncio.ensure_future(call)
    await asyncio.sleep(0.12)
    task.cancel()
    return await task


async def _aconsume(stream: Any, ending: str) -> Any:
    if ending in ("never", "collect"):
        return type(stream).__name__
    if ending == "close":
        await stream.__aiter__().__anext__()
        await stream.close()
        return type(stream).__name__
    if ending == "cancel":
        return await _cancelled(_count(stream))
    return [type(stream).__name__, await _count(stream)]


async def _count(stream: Any) -> int:
    count = 0
    async for _ in stream:
        count += 1
    return count


async def _awaited(value: Any) -> Any:
    """anthropic's raw responses are parsed in a coroutine, openai's are not."""
    return await value if inspect.isawaitable(value) else value


async def _aseen(result: Any) -> Any:
    if hasattr(result, "http_response"):
        return [type(result).__name__, result.http_response.status_code, type(await _awaited(result.parse())).__name__]
    return [type(result).__name__, result.id is not None]


def _seen(result: Any) -> Any:
    if hasattr(result, "http_response"):
        return [type(result).__name__, result.http_response.status_code, type(result.parse()).__name__]
    return [type(result).__name__, result.id is not None]
