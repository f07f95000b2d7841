"""OpenAI Responses: requests, responses and stream events as plain JSON."""

from __future__ import annotations

from collections.abc import Iterable

from otel_context_ledger.model import Json, Request, Response
from otel_context_ledger.surfaces.events import (
    count,
    effort_of,
    in_band_effort,
    items,
    leading,
    mapping,
    markers,
    pick,
    present,
    retention_of,
    session_hint,
    settings_of,
    text,
)
from otel_context_ledger.surfaces.usage import Table, paths, read

SETTINGS = ("tool_choice", "parallel_tool_calls", "text", "service_tier", "truncation", "include", "context_management")
SAMPLING = ("temperature", "top_p")
USAGE = Table(
    total=paths("input_tokens"),
    cache_read=paths("input_tokens_details.cached_tokens"),
    cache_write=paths("input_tokens_details.cache_write_tokens"),
    lifetimes={
        "30m": paths("input_tokens_details.cache_write_tokens_details.ttl_30m_tokens"),
        "12h": paths("input_tokens_details.cache_write_tokens_details.ttl_12h_tokens"),
    },
    output=paths("output_tokens"),
    reasoning=paths("output_tokens_details.reasoning_tokens"),
    grand_total=paths("total_tokens"),
    cost=paths("cost"),
)
_CALLS = ("function_call", "custom_tool_call", "mcp_call", "local_shell_call", "computer_call")
_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_UNFINISHED = ("queued", "in_progress")


def read_request(body: Json) -> Request:
    """A Responses body as a Request; `instructions` and leading system or developer items are its system part."""
    given = body.get("input")
    messages = [{"role": "user", "content": given}] if isinstance(given, str) else list(items(given))
    tools = items(body.get("tools"))
    lead = leading(messages, ("system", "developer"))
    instructions = [body["instructions"]] if text(body.get("instructions")) else []
    limit, options = body.get("max_output_tokens"), mapping(body.get("prompt_cache_options"))
    return Request(
        model=text(body.get("model")),
        tools=tools,
        system=[*instructions, *messages[:lead]],
        messages=messages[lead:],
        offset=lead,
        settings=settings_of(body, SETTINGS),
        sampling={**present(body, SAMPLING), **({"max_tokens": limit} if limit else {})},
        effort=effort_of(body.get("reasoning")),
        effort_in_band=in_band_effort(messages),
        cache_key=text(body.get("prompt_cache_key")),
        conversation=session_hint(body),
        previous_response=text(body.get("previous_response_id")),
        retention=retention_of(body),
        breakpoints=markers(tools, messages[:lead], messages[lead:]),
        diagnostics_asked="comparison_response_id" in options,
        diagnostics_against=text(options.get("comparison_response_id")),
        stream=bool(body.get("stream")),
        whole=not body.get("previous_response_id") and not body.get("conversation"),
    )


def read_response(body: Json, usage: Table = USAGE) -> Response:
    """A Responses answer, or the last response that its events carried."""
    output = body.get("output")
    told = mapping(body.get("prompt_cache_diagnostics"))
    running = body.get("status") in _UNFINISHED
    status = text(mapping(body.get("incomplete_details")).get("reason")) or text(body.get("status"))
    calls = None if running or not isinstance(output, (list, tuple)) else _calls(output)
    return Response(
        usage=read(body.get("usage"), usage, "event" if body.get("folded") else "response"),
        response_id=text(body.get("id")),
        model=text(body.get("model")),
        finish_reasons=(status,) if status and not running else (),
        tool_calls=calls,
        service_tier=text(body.get("service_tier")),
        route=text(body.get("provider")),
        retention=retention_of(body),
        verdict=_verdict(told),
        verdict_tokens=count(told.get("cache_missed_tokens")),
        verdict_reusable=count(told.get("comparison_reusable_tokens")),
        compacted=_compacted(items(output)),
    )


def _calls(output: Iterable[object]) -> int:
    return sum(mapping(item).get("type") in _CALLS for item in output)


def _compacted(output: Iterable[object]) -> str | None:
    """The id of the last compaction item (openai SDK 3.57, `ResponseCompactionItem`)."""
    found = [text(item.get("id")) for item in map(mapping, output) if item.get("type") == "compaction"]
    return found[-1] if found else None


def _verdict(diagnostics: Json) -> str | None:
    """The provider's own word: a miss reason, or `cache_hit`, `comparison_response_not_found`, `unavailable`
    (openai SDK 3.57 types)."""
    return text(diagnostics.get("reason")) or text(diagnostics.get("type")) or ("pending" if diagnostics else None)


def keep(event: object) -> bool:
    """Whether an event carries the response object."""
    kind = pick(event, "type")
    return kind in _ENDS or kind == "response.created"


def last(event: object) -> bool:
    """Whether an event ends the answer."""
    return pick(event, "type") in _ENDS


def channel(event: object) -> str | None:
    """Which channel an event brings a token of."""
    kind = pick(event, "type")
    if not isinstance(kind, str) or not kind.endswith(".delta") or not pick(event, "delta"):
        return None
    return next((channel for word, channel in _CHANNELS if word in kind), "tool")


_CHANNELS = (("reasoning", "reasoning"), ("output_text", "text"), ("refusal", "text"), ("audio", "text"))


def fold(events: Iterable[Json]) -> Json:
    """The last response that the events carried: earlier ones may hold provisional diagnostics."""
    body: Json = {}
    for event in map(mapping, events):
        body = mapping(event.get("response")) or body
    return {**body, "folded": True}
