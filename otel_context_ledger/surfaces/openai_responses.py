"""OpenAI Responses: requests, responses and stream events as plain JSON."""

from __future__ import annotations

from collections.abc import Iterable

from otel_context_ledger.model import Json, Request, Response
from otel_context_ledger.surfaces.events import (
    in_band_effort,
    items,
    leading,
    mapping,
    markers,
    pick,
    present,
    retention_of,
    session_hint,
    text,
)
from otel_context_ledger.surfaces.usage import Table, paths, read

SETTINGS = ("tool_choice", "parallel_tool_calls", "text", "service_tier", "truncation", "include", "context_management")
SAMPLING = ("temperature", "top_p")
USAGE = Table(
    total=paths("input_tokens"),
    cache_read=paths("input_tokens_details.cached_tokens"),
    cache_write=paths("input_tokens_details.cache_write_tokens"),
    output=paths("output_tokens"),
    reasoning=paths("output_tokens_details.reasoning_tokens"),
    cost=paths("cost"),
)
_CALLS = ("function_call", "custom_tool_call", "mcp_call", "local_shell_call", "computer_call")
_ENDS = ("response.completed", "response.incomplete", "response.failed")


def read_request(body: Json) -> Request:
    """A Responses body as a Request; `instructions` and leading system or developer items are its system part."""
    given = body.get("input")
    messages = [{"role": "user", "content": given}] if isinstance(given, str) else list(items(given))
    tools = items(body.get("tools"))
    lead = leading(messages, ("system", "developer"))
    instructions = [body["instructions"]] if text(body.get("instructions")) else []
    reasoning, limit = mapping(body.get("reasoning")), body.get("max_output_tokens")
    return Request(
        model=text(body.get("model")),
        tools=tools,
        system=[*instructions, *messages[:lead]],
        messages=messages[lead:],
        offset=lead,
        settings=present(body, SETTINGS),
        sampling={**present(body, SAMPLING), **({"max_tokens": limit} if limit else {})},
        effort=text(reasoning.get("effort")),
        effort_in_band=in_band_effort(messages),
        cache_key=text(body.get("prompt_cache_key")),
        conversation=session_hint(body),
        previous_response=text(body.get("previous_response_id")),
        retention=retention_of(body),
        breakpoints=markers(tools, messages[:lead], messages[lead:]),
        diagnostics_asked="comparison_response_id" in mapping(body.get("prompt_cache_options")),
        stream=bool(body.get("stream")),
    )


def read_response(body: Json, usage: Table = USAGE) -> Response:
    """A Responses answer, or the last response that its events carried."""
    output = [mapping(item) for item in items(body.get("output"))]
    verdict, missed = _verdict(body.get("prompt_cache_diagnostics"))
    status = text(mapping(body.get("incomplete_details")).get("reason")) or text(body.get("status"))
    return Response(
        usage=read(body.get("usage"), usage, "event" if body.get("folded") else "response"),
        response_id=text(body.get("id")),
        model=text(body.get("model")),
        finish_reasons=(status,) if status else (),
        tool_calls=sum(item.get("type") in _CALLS for item in output),
        service_tier=text(body.get("service_tier")),
        verdict=verdict,
        verdict_tokens=missed,
    )


def _verdict(diagnostics: object) -> tuple[str | None, int | None]:
    """The provider's own word: a miss reason, or `cache_hit`, `comparison_response_not_found`, `unavailable`
    (openai SDK 3.57 types)."""
    body = mapping(diagnostics)
    missed = body.get("cache_missed_tokens")
    named = text(body.get("reason")) or text(body.get("type")) or ("pending" if body else None)
    return named, missed if isinstance(missed, int) else None


def keep(event: object) -> bool:
    """Whether an event carries the response object."""
    kind = pick(event, "type")
    return kind in _ENDS or kind == "response.created"


def channel(event: object) -> str | None:
    """Which channel an event brings a token of."""
    kind = pick(event, "type")
    if not isinstance(kind, str) or not kind.endswith(".delta") or not pick(event, "delta"):
        return None
    if "reasoning" in kind:
        return "reasoning"
    return "text" if "output_text" in kind or "refusal" in kind else "tool"


def fold(events: Iterable[Json]) -> Json:
    """The last response that the events carried: earlier ones may hold provisional diagnostics."""
    body: Json = {}
    for event in events:
        body = mapping(event.get("response")) or body
    return {**body, "folded": True}
