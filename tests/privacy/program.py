"""The program: calls every dialect in every way, with a marker in every part, and has them end in every way.

`python -m tests.privacy.program URL [short]` prints, as one JSON object, the places where it planted a marker and how
its calls ended. It knows nothing of the ledger but the names that a program may give, and waits for its threads.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any

import anthropic
import openai

from otel_context_ledger import (
    attempt,
    compaction,
    constraint,
    outcome,
    read,
    session,
    task,
    tool_contracts,
    tool_registry,
    validate_with,
)
from otel_context_ledger.correctness.constraints import Match
from otel_context_ledger.correctness.wording import Wording
from otel_context_ledger.instrumentation import ContextLedgerInstrumentor
from tests import ways
from tests.privacy import markers

FILL = "Read the file before you write to it, and say what you changed. " * 40
# Seconds for what takes milliseconds where nobody else uses the machine.
PATIENCE = 60.0
SUMMARISE = "Your task is to create a detailed summary of the conversation so far."
PLANTED: set[str] = set()
ENDED: dict[str, int] = {}
Body = dict[str, Any]


def mark(place: str) -> str:
    """The marker of a place, noted as planted."""
    PLANTED.add(place)
    return markers.mark(place)


def say(place: str) -> str:
    """A marker in a sentence, long enough to be cached."""
    return f'{FILL} The secret is {mark(place)}; {mark(place)} is "it" & ünder C:\\{mark(place)}\n'


def key(place: str) -> str:
    """A marker as keys of services look, one of a known form and one of none."""
    return f"{FILL} tvly-{mark(place)} {mark(place)}{mark(place)[:12]}"


def number(place: str) -> int:
    """A marker that is a number."""
    PLANTED.add(place)
    return markers.number(place)


def data(place: str) -> str:
    """A marker as a file's content in base64."""
    return base64.b64encode(f"%PDF {mark(place)}".encode()).decode()


def tool(place: str, name: str = "read") -> Body:
    """A tool with a marker in everything but its name."""
    inner = {
        "type": "string",
        "description": mark(f"{place}.property.description"),
        "enum": [mark(f"{place}.enum"), "b"],
    }
    schema = {
        "type": "object",
        "title": mark(f"{place}.title"),
        "properties": {mark(f"{place}.property"): inner},
        "required": [mark(f"{place}.property")],
        "additionalProperties": False,
    }
    return {"name": name, "description": say(f"{place}.description"), "parameters": schema, "strict": True}


def named() -> str:
    return mark("sent.tool.name")


def say_what_is_live() -> None:
    """A live registry that differs from what is sent, and a contract, with a marker in everything but a tool's name."""
    live = tool("live.tool", named())
    listed = {"name": live["name"], "description": live["description"], "inputSchema": live["parameters"]}
    where = f"https://user:{mark('live.password')}@host.example/{mark('live.endpoint')}"
    own = {"endpoint": where, "permission": mark("live.permission"), "version": mark("live.version")}
    tool_registry({"tools": [listed]}, server=mark("live.server"), **own)
    tool_contracts({"edit": {"server": mark("contract.server"), "side_effect": mark("contract.side_effect")}})
    tool_contracts({"edit": {mark("contract.member"): mark("contract.value")}})


# Chat Completions: OpenAI and Kimi.


def chat_tools() -> list[Body]:
    return [{"type": "function", "function": tool("sent.tool", name)} for name in (named(), "edit")]


def user_parts() -> list[Body]:
    return [
        {"type": "text", "text": say("sent.user.text")},
        {"type": "image_url", "image_url": {"url": f"https://host.example/{mark('sent.user.image_url')}.png"}},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data('sent.user.image_data')}"}},
        {"type": "input_audio", "input_audio": {"data": data("sent.user.audio"), "format": "wav"}},
        {"type": "file", "file": {"file_data": data("sent.user.file"), "filename": mark("sent.user.file_name")}},
        {"type": "file", "file": {"file_id": mark("sent.user.file_id")}},
        {"type": mark("sent.user.part_type"), mark("sent.user.part_key"): mark("sent.user.part_value")},
    ]


def call() -> Body:
    arguments = json.dumps({"path": mark("sent.call.arguments"), "line": number("sent.call.number")})
    return {
        "id": mark("sent.call.id"),
        "type": "function",
        "function": {"name": mark("sent.tool.name"), "arguments": arguments},
    }


def assistant() -> Body:
    return {
        "role": "assistant",
        "content": say("sent.assistant.text"),
        "reasoning_content": say("sent.assistant.reasoning"),
        "reasoning_details": [{"type": "reasoning.text", "text": mark("sent.assistant.details")}],
        "refusal": mark("sent.assistant.refusal"),
        "audio": {"id": mark("sent.assistant.audio")},
        "tool_calls": [call()],
    }


def chat_messages() -> list[Body]:
    return [
        {"role": "system", "content": say("sent.system"), "name": mark("sent.system.name")},
        {"role": "developer", "content": [{"type": "text", "text": say("sent.developer")}]},
        {"role": "user", "content": say("sent.user"), "name": mark("sent.user.name")},
        {"role": "user", "content": user_parts()},
        assistant(),
        {"role": "tool", "tool_call_id": mark("sent.call.id"), "content": key("sent.result")},
        {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": say("sent.result.part")}]},
        {"role": "function", "name": "read", "content": mark("sent.function")},
        {"role": mark("sent.role"), "content": say("sent.role.text")},
        {"role": "user", "content": say("sent.last")},
    ]  # fmt: skip


def chat_rest() -> Body:
    """What a request may say beside its messages."""
    return {
        "user": mark("sent.user_id"),
        "safety_identifier": mark("sent.safety_identifier"),
        "prompt_cache_key": mark("sent.cache_key"),
        "metadata": {mark("sent.metadata.key"): mark("sent.metadata.value")},
        "stop": [mark("sent.stop")],
        "prediction": {"type": "content", "content": mark("sent.prediction")},
        "logit_bias": {"50256": -100},
        "service_tier": mark("sent.service_tier"),
        "reasoning_effort": mark("sent.effort"),
        "seed": number("sent.seed"),
        "web_search_options": {"user_location": {"type": "approximate", "approximate": {"city": mark("sent.city")}}},
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": mark("sent.format.name"), "schema": {"title": mark("sent.format.schema")}},
        },
        "extra_body": {
            mark("sent.extra.key"): {"deep": [mark("sent.extra.value")]},
            "temperature": mark("sent.temperature"),
            "thinking": {"type": "enabled", "keep": mark("sent.thinking")},
        },
    }


def chat_body() -> Body:
    return {"messages": chat_messages(), "tools": chat_tools(), **chat_rest()}


# Responses.


def responses_items() -> list[Body]:
    answer = {"type": "output_text", "text": say("sent.assistant.text")}
    return [
        {"role": "developer", "content": [{"type": "input_text", "text": say("sent.developer")}]},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": say("sent.user")},
                {"type": "input_image", "image_url": f"data:image/png;base64,{data('sent.user.image_data')}"},
                {"type": "input_file", "file_data": data("sent.user.file"), "filename": mark("sent.user.file_name")},
                {"type": "input_file", "file_id": mark("sent.user.file_id")},
            ],
        },
        {
            "type": "reasoning",
            "id": mark("sent.item.id"),
            "summary": [{"type": "summary_text", "text": say("sent.reasoning.summary")}],
            "encrypted_content": data("sent.reasoning.encrypted"),
        },
        {"type": "function_call", "call_id": mark("sent.call.id"), **call()["function"]},
        {"type": "function_call_output", "call_id": mark("sent.call.id"), "output": say("sent.result")},
        {"type": "message", "role": "assistant", "content": [answer]},
        {"type": "item_reference", "id": mark("sent.item.reference")},
        {"role": "user", "content": say("sent.last")},
    ]  # fmt: skip


def responses_body() -> Body:
    return {
        "instructions": say("sent.instructions"),
        "input": responses_items(),
        "tools": [
            {"type": "function", **tool("sent.tool", named())},
            {
                "type": "mcp",
                "server_label": mark("sent.mcp.label"),
                "server_url": f"https://{mark('sent.mcp.user')}:{mark('sent.mcp.password')}@mcp.example/{mark('sent.mcp.path')}",
                "headers": {"Authorization": mark("sent.mcp.header")},
            },
        ],
        "metadata": {"owner": mark("sent.metadata.value")},
        "prompt_cache_key": mark("sent.cache_key"),
        "safety_identifier": mark("sent.safety_identifier"),
        "user": mark("sent.user_id"),
        "reasoning": {"effort": mark("sent.effort"), "summary": "auto"},
        "text": {"format": {"type": "json_schema", "name": "a", "schema": {"title": mark("sent.format.schema")}}},
        "extra_body": {"prompt": {"id": mark("sent.prompt.id"), "variables": {"a": mark("sent.prompt.variable")}}},
    }


# Messages.


def messages_list() -> list[Body]:
    image = {"type": "base64", "media_type": "image/png", "data": data("sent.user.image_data")}
    return [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": say("sent.user"), "cache_control": {"type": "ephemeral"}},
                {"type": "image", "source": image},
                {"type": "document", "source": {"type": "url", "url": f"https://a.example/{mark('sent.user.file_name')}"}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": say("sent.thinking"), "signature": mark("sent.signature")},
                {"type": "redacted_thinking", "data": data("sent.thinking.redacted")},
                {"type": "text", "text": say("sent.assistant.text")},
                {
                    "type": "tool_use",
                    "id": mark("sent.call.id"),
                    "name": mark("sent.tool.name"),
                    "input": {"path": mark("sent.call.arguments"), "n": number("sent.call.number")},
                },
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": mark("sent.call.id"), "content": say("sent.result")}],
        },
    ]  # fmt: skip


def messages_body() -> Body:
    listed = tool("sent.tool", named())
    server = f"https://mcp.example/{mark('sent.mcp.path')}"
    return {
        "system": [
            {"type": "text", "text": f"cc_version=v{mark('sent.system.version')}; {FILL}"},
            {"type": "text", "text": say("sent.system"), "cache_control": {"type": "ephemeral"}},
        ],
        "messages": messages_list(),
        "tools": [{"name": listed["name"], "description": listed["description"], "input_schema": listed["parameters"]}],
        "max_tokens": 64,
        "metadata": {"user_id": mark("sent.user_id")},
        "stop_sequences": [mark("sent.stop")],
        "extra_body": {
            "mcp_servers": [{"url": server, "authorization_token": mark("sent.mcp.header")}],
            "container": mark("sent.container"),
        },
    }  # fmt: skip


BODIES: Mapping[str, Callable[[], Body]] = {
    "kimi": chat_body,
    "openai": chat_body,
    "responses": responses_body,
    "anthropic": messages_body,
}
MODEL = {"kimi": "kimi-", "openai": "gpt-", "responses": "gpt-", "anthropic": "claude-"}
# What a helper of the SDK wants as a type of its own, or checks itself.
HELPED = ("response_format", "text", "reasoning_effort", "service_tier")


def model(surface: str, treatment: str = "") -> str:
    return f"{treatment}{MODEL[surface]}{mark('sent.model')}"


def beside() -> Body:
    """Headers and a query of one call."""
    return {
        "extra_headers": {"x-custom": mark("sent.header.call")},
        "extra_query": {"q": mark("sent.query.call")},
    }


def base(way: ways.Way, url: str) -> str:
    """The provider's URL with a path of its own; of an awaited call with a user and a password too, which the HTTP
    client sends in the place of the key."""
    scheme, place = url.split("://")
    path = {"anthropic": "anthropic", "kimi": "kimi"}.get(way.surface, "openai")
    place = place.replace("127.0.0.1", "localhost") if path == "openai" else place
    user = f"{mark('sent.url.user')}:{mark('sent.url.password')}@" if way.asynchronous else ""
    return f"{scheme}://{user}{place}/{path}/{mark('sent.url.path')}/v1"


def client(way: ways.Way, url: str, **more: Any) -> Any:
    """A client that holds a secret in all of its settings."""
    headers = {
        "x-team": mark("sent.header.client"),
        "user-agent": f"{mark('sent.user_agent')}/1.0 ({mark('sent.user_agent.rest')}; home)",
        "x-msh-device-name": mark("sent.header.device"),
        "x-msh-device-id": mark("sent.header.device_id"),
        "cookie": mark("sent.header.cookie"),
        "proxy-authorization": mark("sent.header.proxy"),
    }
    given: Body = {
        "base_url": base(way, url),
        "api_key": f"sk-{mark('sent.api_key')}",
        "max_retries": 0,
        "default_headers": headers,
        "default_query": {"api-version": mark("sent.query.client")},
        **more,
    }
    sdk: Any = ways.DIALECTS[way.surface].sdk
    if sdk is openai:
        given |= {"organization": mark("sent.organization"), "project": mark("sent.project")}
    kinds = {"openai": ("OpenAI", "AsyncOpenAI"), "anthropic": ("Anthropic", "AsyncAnthropic")}[sdk.__name__]
    return getattr(sdk, kinds[way.asynchronous])(**given)


@contextlib.contextmanager
def ending(what: str) -> Iterator[None]:
    """Counts how calls ended; an error in here is meant to happen."""
    try:
        yield
        how = "ok"
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - the test says which were meant
        how = "own" if type(error).__name__ == markers.mark("named.error_class") else type(error).__name__
    ENDED[f"{what} {how}"] = ENDED.get(f"{what} {how}", 0) + 1


def arguments(way: ways.Way, treatment: str = "") -> Body:
    body = BODIES[way.surface]()
    if way.shape in ("helper", "parse"):
        body = {name: value for name, value in body.items() if name not in HELPED}
        body["tools"] = [one for one in body["tools"] if one.get("type") != "mcp"]
    return {**ways.arguments(way, model(way.surface, treatment), body), **beside()}


def consume(result: Any, way: ways.Way) -> None:
    for _ in result.parse() if way.shape == "raw_stream" else result:
        pass


def once(way: ways.Way, url: str, treatment: str = "") -> None:
    """One call, read to its end."""
    with client(way, url) as using:
        method = ways.method(way, using)
        assert method is not None
        result = method(**arguments(way, treatment))
        if way.shape == "helper":
            with result as stream:
                consume(stream, way)
        elif way.streams:
            consume(result, way)


async def aonce(way: ways.Way, url: str, treatment: str = "") -> None:
    """The same, awaited."""
    async with client(way, url) as using:
        method = ways.method(way, using)
        assert method is not None
        made = method(**arguments(way, treatment))
        if way.shape == "helper":
            async with made as stream:
                async for _ in stream:
                    pass
            return
        result = await made
        if way.shape == "raw_stream":
            parsed = result.parse()
            result = await parsed if isinstance(parsed, Awaitable) else parsed
        if way.streams:
            async for _ in result:
                pass


def every_way(url: str) -> None:
    """Each dialect, sync and async, plain, streamed, raw and by helper, and refused with the request in the answer."""
    for way in ways.WAYS:
        for treatment in ("", "err-400-") if way.shape in ("plain", "stream") else ("",):
            with ending(f"{way} {treatment}".strip()):
                if way.asynchronous:
                    asyncio.run(aonce(way, url, treatment))
                else:
                    once(way, url, treatment)


PLAIN = ways.Way("kimi", False, "plain")
STREAM = ways.Way("kimi", False, "stream")


def errors(url: str) -> None:
    """Answers that echo, broken answers, lines that are cut, hosts that do not answer, and errors of the program."""
    for treatment in ("err-429-", "err-500-", "err-drop-", "malformed-"):
        for shape in ("plain", "stream", "raw"):
            with ending(f"{shape} {treatment}"):
                once(ways.Way("kimi", False, shape), url, treatment)
    with ending("refused"):
        once(PLAIN, f"http://127.0.0.1:9/{mark('url.refused')}")
    with ending("unknown_host"):
        once(PLAIN, f"http://{mark('url.refused.user')}@127.0.0.1:9")


def app_errors(url: str) -> None:
    """The program raises in its loop over a stream and in its HTTP client, and sends what JSON has no form for."""
    own = type(mark("named.error_class"), (RuntimeError,), {})
    with ending("loop"), client(STREAM, url) as using:
        for _ in using.chat.completions.create(**arguments(STREAM)):
            raise own(mark("app.error.loop"))
    with ending("hook"), client(PLAIN, url, http_client=hooked(own)) as using:
        using.chat.completions.create(**arguments(PLAIN))
    strange = type(mark("named.value_class"), (), {"__repr__": lambda self: mark("app.repr")})()
    with ending("strange"), client(PLAIN, url) as using:
        given = arguments(PLAIN)
        given["messages"][0]["content"] = strange
        using.chat.completions.create(**given)


def hooked(error: type[Exception]) -> Any:
    def hook(request: Any) -> None:
        raise error(mark("app.error.hook")) from ValueError(mark("app.error.cause"))

    return openai.DefaultHttpxClient(event_hooks={"request": [hook]})


async def cancelled(url: str) -> None:
    way = ways.Way("kimi", True, "plain")
    running = asyncio.ensure_future(aonce(way, url, "stuck-"))
    await asyncio.sleep(0.1)
    running.cancel(mark("app.cancel"))
    await running


def other_ways(url: str) -> None:
    """By the client's own `post`, by a response that is streamed as it is, and what is no model call at all."""
    with client(PLAIN, url) as using:
        given = {name: value for name, value in arguments(PLAIN).items() if not name.startswith("extra_")}
        with ending("post"):
            using.post("/chat/completions", cast_to=object, body=given)
        with ending("streaming"), using.chat.completions.with_streaming_response.create(**arguments(PLAIN)) as response:
            for _ in response.iter_lines():
                pass
        with contextlib.suppress(openai.APIError):
            using.embeddings.create(model=model("kimi"), input=say("sent.embedding"))
        with contextlib.suppress(openai.APIError):
            using.moderations.create(input=say("sent.moderation"))


def cancellations(url: str) -> None:
    """A task cancelled with a message, a stream closed early, one never read."""
    with ending("cancelled"):
        asyncio.run(cancelled(url))
    with ending("closed"), client(STREAM, url) as using:
        stream = using.chat.completions.create(**arguments(STREAM))
        next(iter(stream))
        stream.close()
    with ending("never"), client(STREAM, url) as using:
        using.chat.completions.create(**arguments(STREAM))


def changes(body: Body) -> Iterator[tuple[str, Body]]:
    """One conversation, changed in every way that has a cause of its own."""
    history, tools = body["messages"], body["tools"]
    more = [*history, assistant(), {"role": "tool", "tool_call_id": "c", "content": say("changed.result")}]
    rules = {"role": "system", "content": say("changed.system")}
    clock = {"role": "system", "content": f"12:00:01 {say('sent.system')}"}
    described = [{"type": "function", "function": tool("changed.tool", named())}, *tools[1:]]
    added = [*tools, {"type": "function", "function": tool("changed.tool", mark("sent.tool.added"))}]
    summary = f"<system>Previous context has been compacted</system> {say('changed.summary')}"
    pruned = [*more[:-1], {"role": "tool", "tool_call_id": "c", "content": mark("changed.pruned")}]
    yield "same", body
    yield "append", body | {"messages": more}
    yield "pruned", body | {"messages": [*pruned, history[-1]]}
    yield "system", body | {"messages": [rules, *more[1:]]}
    yield "clock", body | {"messages": [clock, *more[1:]]}
    yield "described", body | {"messages": more, "tools": described}
    yield "added", body | {"messages": more, "tools": added}
    yield "reordered", body | {"messages": more, "tools": tools[::-1]}
    yield "edited", body | {"messages": [*history[:2], {"role": "user", "content": say("changed.user")}, *more[3:]]}
    yield "role", body | {"messages": [*history[:2], {"role": mark("changed.role"), "content": "x"}, *more[3:]]}
    yield "compacted", body | {"messages": [history[0], {"role": "user", "content": summary}, history[-1]]}
    yield "effort", body | {"reasoning_effort": f"x{mark('sent.effort')}"}
    yield "key", body | {"prompt_cache_key": mark("changed.cache_key")}
    for more_words in ("", "b"):
        yield "retention", body | {"extra_body": {"prompt_cache_retention": mark("sent.retention") + more_words}}
    yield (
        "settings",
        body | {"response_format": {"type": "json_schema", "json_schema": {"name": mark("changed.format")}}},
    )
    yield "in_band", body | {"messages": [*more, {"role": "user", "effort": say("changed.effort"), "content": "x"}]}
    yield "metadata", body | {"metadata": {"session_id": mark("sent.metadata.session_id")}}
    yield (
        "asked",
        body | {"messages": [*more, {"role": "user", "content": f"{SUMMARISE} {say('changed.instruction')}"}]},
    )


@contextlib.contextmanager
def names() -> Iterator[None]:
    """The names that a program may give."""
    with session(mark("named.session")), task(f"{mark('named.task')} {FILL}"), attempt(mark("named.attempt")):
        yield
        outcome(outcome_id=mark("named.outcome"), reason=mark("named.reason"), success=True)


def conversation(url: str) -> None:
    """Every cause, with and without a cache key, and another model under the program's own names."""
    for surface in ("kimi", "openai"):
        way = ways.Way(surface, False, "plain")
        with client(way, url) as using:
            for what, body in changes(chat_body()):
                live(f"live.{what}")
                without = {} if what in ("key", "metadata") else {"prompt_cache_key": openai.NOT_GIVEN}
                with ending(f"{surface} {what}"):
                    using.chat.completions.create(model=model(surface), **body | without)
            with ending(f"{surface} named"), names():
                using.chat.completions.create(model=model(surface) + "-2", **chat_body())
    continued(url)
    azure(url)


class Validator:
    """The program's own, which finds nothing and says so at length, or fails."""

    name, version = mark("named.validator"), "1"

    def match(self, constraint: Any, text: str) -> Match:
        if len(text) % 2:
            raise ValueError(f"{say('told.validator.error')} {text}")
        return Match("lost", say("told.validator.matcher"), 0.5)


def compactions(url: str) -> None:
    """What is declared, told of compactions and lost by them, with ours and with the program's own validator."""
    for number, validator in enumerate((Wording(), Validator())):
        validate_with(validator)
        with session(f"compacted {number}"), client(PLAIN, url) as using:
            declare()
            asks = partial(using.chat.completions.create, model=model("kimi"))
            with ending("compactions"):
                asks(**chat_body() | {"prompt_cache_key": openai.NOT_GIVEN})
            with compaction(f"{mark('named.compaction')}{number}", trigger="manual", tokens_before=9_000) as told:
                told.done(f"{say('told.summary')} {mark('named.work')} is still in progress.")
            compaction().fail(ValueError(say("told.error")))
            compaction().fail(mark("named.failure"))
            with ending("compactions"):
                asks(messages=[{"role": "user", "content": say("sent.user")}], tools=chat_tools())
    validate_with(Wording())


READING = {
    "read_file": lambda: {"path": f"/srv/{mark('told.file.outside')}/{mark('told.file.name')}.py", "offset": 1},
    "Edit": lambda: {
        "file_path": f"../{mark('told.file.beside')}.py",
        "old_string": say("told.file.old"),
        "new_string": say("told.file.new"),
    },
    "write_file": lambda: {"path": f"{mark('told.file.inside')}.py", "content": say("told.file.content")},
    "bash": lambda: {"command": f"cd /{mark('told.shell.directory')} && cat {mark('told.shell.file')}.txt > b.txt"},
    "shell": lambda: {"command": ["sed", "-n", "1,5p", f"/etc/{mark('told.shell.item')}"]},
    "apply_patch": lambda: {
        "input": f"*** Begin Patch\n*** Update File: {mark('told.patch.file')}.py\n+{mark('told.patch.line')}\n"
    },
}


def files(url: str) -> None:
    """What a history read and wrote, inside of the repository, beside it and by the shell, each of it twice; and what
    the program says that it read."""
    history: list[Any] = [{"role": "system", "content": say("sent.system")}]
    read(f"/srv/{mark('told.read.outside')}/{mark('told.read.name')}")
    read(f"{mark('told.read.inside')}.py")
    read(ValueError(say("told.read.error")))  # type: ignore[arg-type]
    with client(PLAIN, url) as using, session("files"):
        for number, (name, arguments) in enumerate([*READING.items()] * 2):
            asked = {"type": "function", "function": {"name": name, "arguments": json.dumps(arguments())}}
            history.append({"role": "assistant", "tool_calls": [{"id": f"r{number}", **asked}]})
            history.append({"role": "tool", "tool_call_id": f"r{number}", "content": say("told.file.text")})
            with ending("files"):
                using.chat.completions.create(model=model("kimi"), messages=history)


def declare() -> None:
    constraint(mark("named.constraint"), say("told.constraint"), terms=[mark("told.term")])
    constraint(mark("named.work"), say("told.work"), kind="todo", status="done", evidence=mark("named.evidence"))


def live(place: str) -> None:
    """What a server offers by now, and under which contract."""
    listed = tool(place, named())
    other = tool(place, "edit") | {"parameters": {"type": "object", "properties": {mark(f"{place}.other"): {}}}}
    given = {"endpoint": f"https://{mark('live.user')}@tools.example/{mark(f'{place}.endpoint')}"}
    tool_registry(
        [{"type": "function", "function": one} for one in (listed, other)], server=mark("live.server"), **given
    )
    tool_contracts({named(): {"permission": mark(f"{place}.permission"), "version": mark("live.version")}})


def continued(url: str) -> None:
    """Responses that continue earlier ones, in a conversation."""
    way = ways.Way("responses", False, "plain")
    with client(way, url) as using:
        body = {"input": say("sent.input"), "model": model("responses")}
        first = {"previous_response_id": mark("sent.previous_response")}
        for more in (
            first,
            {"conversation": mark("sent.conversation")},
            {"conversation": {"id": mark("sent.conversation")}},
        ):
            with ending("continued"):
                answer = using.responses.create(**body, **more)
        with ending("continued"):
            using.responses.create(**body, previous_response_id=answer.id)


def azure(url: str) -> None:
    """A deployment in the path, and a key in a header of its own."""
    place = f"{url}/openai/{mark('sent.azure.path')}"
    given: Body = {
        "azure_endpoint": place,
        "api_key": mark("sent.azure.key"),
        "api_version": mark("sent.azure.version"),
    }
    with (
        ending("azure"),
        openai.AzureOpenAI(**given, azure_deployment=mark("sent.azure.deployment"), max_retries=0) as using,
    ):
        using.chat.completions.create(model=model("openai"), messages=chat_messages())
    with (
        ending("token"),
        anthropic.Anthropic(
            base_url=f"{url}/anthropic", auth_token=mark("sent.auth_token"), api_key=None, max_retries=0
        ) as using,
    ):
        using.messages.create(model=model("anthropic"), max_tokens=8, messages=[{"role": "user", "content": FILL}])


EVERYTHING = (every_way, errors, app_errors, other_ways, cancellations, conversation, compactions, files)
SHORT = (conversation,)


def main(url: str, parts: tuple[Callable[[str], None], ...]) -> None:
    logging.getLogger("otel_context_ledger").setLevel(logging.DEBUG)
    logging.getLogger("otel_context_ledger").addHandler(logging.StreamHandler(sys.stderr))
    say_what_is_live()
    ledger = ContextLedgerInstrumentor()
    ledger.look(PATIENCE)
    for part in parts:
        part(url)
    ledger.flush(PATIENCE)
    print(json.dumps({"planted": sorted(PLANTED), "ended": ENDED}))


if __name__ == "__main__":
    main(sys.argv[1], SHORT if sys.argv[2:] == ["short"] else EVERYTHING)
