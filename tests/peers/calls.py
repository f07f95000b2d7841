"""Owns the calls that a peer is tried with, and what of them the program got: types, headers, every chunk, errors.

The calls are those of `tests.ways`, told more fully, and a few that are hard on an instrumentation.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import openai

from tests.ways import ASK, CHAT, RULES, TOOLS, Way, arguments, client, known, method

SHAPES = ("plain", "stream", "helper", "raw", "raw_stream", "parse")
WAYS = {
    str(way): way
    for surface in ("openai", "kimi", "responses")
    for asynchronous in (False, True)
    for shape in SHAPES
    if known(way := Way(surface, asynchronous, shape))
}
UNLIKE = {"date"}
MANY = [{"role": ("user", "assistant")[n % 2], "content": f"message {n}"} for n in range(200)]


# Clients and loop are kept: making them takes longer than all the calls.
LOOP = asyncio.new_event_loop()


@cache
def _keyed(surface: str, asynchronous: bool, url: str) -> Any:
    return client(Way(surface, asynchronous, "plain"), url)


def _client(way: Way, url: str) -> Any:
    return _keyed(way.surface, way.asynchronous, url)


def make(name: str, url: str) -> Any:
    """Makes the call of that name and tells what the program got."""
    try:
        if name in HARD:
            return HARD[name](url)
        way = WAYS[name]
        return LOOP.run_until_complete(_acall(way, url)) if way.asynchronous else _call(way, url)
    except Exception as error:  # noqa: BLE001
        return {"raised": type(error).__name__, "said": str(error)[:200]}
    finally:
        if name in HARD:
            gc.collect()


def _call(way: Way, url: str) -> Any:
    result = _method(way, _client(way, url))(**arguments(way, "kimi-k3"))
    if way.shape == "helper":
        with result as stream:
            return [_kind(stream), [_plain(event) for event in stream]]
    first = _first(result)
    if way.shape in ("raw", "raw_stream"):
        result = result.parse()
    return first | ({"chunks": [_plain(chunk) for chunk in result]} if way.streams else _whole(result))


async def _acall(way: Way, url: str) -> Any:
    result = _method(way, _client(way, url))(**arguments(way, "kimi-k3"))
    if way.shape == "helper":
        async with result as stream:
            return [_kind(stream), [_plain(event) async for event in stream]]
    result = await result
    first = _first(result)
    if way.shape in ("raw", "raw_stream"):
        result = result.parse()
    return first | ({"chunks": [_plain(chunk) async for chunk in result]} if way.streams else _whole(result))


def _method(way: Way, using: Any) -> Callable[..., Any]:
    found = method(way, using)
    assert found is not None
    return found


def _first(result: Any) -> dict[str, Any]:
    """What a result shows before it is read."""
    raw = getattr(result, "http_response", None) or getattr(result, "response", None)
    headers = {name: value for name, value in raw.headers.items() if name not in UNLIKE} if raw is not None else None
    streams = isinstance(result, (openai.Stream, openai.AsyncStream))
    return {"type": _kind(result), "is a stream": streams, "headers": headers}


def _kind(thing: Any) -> str:
    return f"{type(thing).__module__}.{type(thing).__name__}"


def _whole(result: Any) -> dict[str, Any]:
    return {"answer": _kind(result), "body": result.model_dump(mode="json", warnings=False)}


def _plain(event: Any) -> Any:
    return event.model_dump(mode="json", warnings=False) if hasattr(event, "model_dump") else repr(event)


def _chat(url: str, **given: Any) -> Any:
    return _keyed("openai", False, url).chat.completions.create(**{"model": "kimi-k3", **CHAT, **given})


def _many(url: str) -> Any:
    return _whole(_chat(url, messages=MANY))


def _generators(url: str) -> Any:
    return _whole(_chat(url, messages=_one_shot([{"role": "system", "content": RULES}, ASK]), tools=_one_shot(TOOLS)))


def _one_shot(items: list[Any]) -> Iterator[Any]:
    yield from items


def _streamed(url: str, **given: Any) -> Any:
    return _chat(url, stream=True, stream_options={"include_usage": True}, **given)


def _closed(url: str) -> Any:
    stream = _streamed(url)
    first = _plain(next(iter(stream)))
    stream.close()
    return first


def _left(url: str) -> Any:
    for chunk in _streamed(url):
        return _plain(chunk)
    return None


def _unread(url: str) -> Any:
    return _kind(_streamed(url))


def _refused(url: str) -> Any:
    return _whole(_chat(url, model="err-429"))


def _dropped(url: str) -> Any:
    return [_plain(chunk) for chunk in _streamed(url, model="err-drop")]


def _usage_unasked(url: str) -> Any:
    return [_plain(chunk) for chunk in _chat(url, stream=True)]


HARD: dict[str, Callable[[str], Any]] = {
    "200 messages": _many,
    "generators": _generators,
    "stream closed": _closed,
    "stream left": _left,
    "stream unread": _unread,
    "refused": _refused,
    "stream dropped": _dropped,
    "stream without usage": _usage_unasked,
}
CALLS = (*WAYS, *HARD)
