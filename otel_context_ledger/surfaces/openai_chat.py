"""OpenAI Chat Completions: requests, responses and stream chunks as plain JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from otel_context_ledger.model import Json, Request, Response
from otel_context_ledger.surfaces.events import (
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

SETTINGS = (
    "tool_choice", "parallel_tool_calls", "response_format", "service_tier", "verbosity", "thinking",
    "web_search_options", "modalities", "functions", "function_call",
)  # fmt: skip
SAMPLING = ("temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty", "seed", "stop", "n")
USAGE = Table(
    total=paths("prompt_tokens"),
    cache_read=paths("prompt_tokens_details.cached_tokens"),
    cache_write=paths("prompt_tokens_details.cache_write_tokens"),
    output=paths("completion_tokens"),
    reasoning=paths("completion_tokens_details.reasoning_tokens"),
    grand_total=paths("total_tokens"),
    cost=paths("cost"),
)
_CHANNELS = (
    ("content", "text"),
    ("refusal", "text"),
    ("reasoning_content", "reasoning"),
    ("reasoning", "reasoning"),
    ("tool_calls", "tool"),
)
_BODY = (
    "id", "model", "usage", "service_tier", "system_fingerprint", "provider", "timings", "usage_metadata",
    "usageMetadata", "x_groq",
)  # fmt: skip


def read_request(body: Json) -> Request:
    """A Chat Completions body as a Request; leading system and developer messages are its system part."""
    messages = list(items(body.get("messages")))
    tools = items(body.get("tools"))
    lead = leading(messages, ("system", "developer"))
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    effort = text(body.get("reasoning_effort")) or effort_of(body.get("reasoning"))
    return Request(
        model=text(body.get("model")),
        tools=tools,
        system=messages[:lead],
        messages=messages[lead:],
        offset=lead,
        settings=settings_of(body, SETTINGS),
        sampling={**present(body, SAMPLING), **({"max_tokens": limit} if limit else {})},
        effort=effort or effort_of(body.get("thinking")),
        effort_in_band=in_band_effort(messages),
        cache_key=text(body.get("prompt_cache_key")),
        conversation=session_hint(body),
        retention=retention_of(body),
        breakpoints=markers(tools, messages[:lead], messages[lead:]),
        stream=bool(body.get("stream")),
    )


def read_response(body: Json, usage: Table = USAGE) -> Response:
    """A Chat Completions answer, or the body that `fold` made of its chunks."""
    choices = [mapping(choice) for choice in items(body.get("choices"))]
    reasons = tuple(r for choice in choices if (r := text(choice.get("finish_reason"))))
    calls = [len(items(mapping(choice.get("message")).get("tool_calls"))) for choice in choices]
    return Response(
        usage=read(body.get("usage"), usage, "event" if body.get("folded") else "response"),
        response_id=text(body.get("id")),
        model=text(body.get("model")),
        finish_reasons=reasons,
        tool_calls=sum(calls) if choices else None,
        service_tier=text(body.get("service_tier")),
        system_fingerprint=text(body.get("system_fingerprint")),
        route=text(body.get("provider")),
    )


def keep(chunk: object) -> bool:
    """Whether a chunk says more than its text: usage, a finish reason, the start of a tool call."""
    if pick(chunk, "usage") is not None:
        return True
    choices = pick(chunk, "choices")
    if not isinstance(choices, (list, tuple)) or not choices:
        return True
    choice = choices[0]
    if pick(choice, "finish_reason") is not None or pick(choice, "usage") is not None:
        return True
    calls = pick(pick(choice, "delta"), "tool_calls")
    return isinstance(calls, (list, tuple)) and any(pick(call, "id") for call in calls)


def running(chunk: object) -> bool:
    """Whether a chunk brings text with the counts so far, which the next such chunk brings again."""
    choices = pick(chunk, "choices")
    if not choices or not isinstance(choices, (list, tuple)) or pick(chunk, "usage") is None:
        return False
    choice = choices[0]
    ended = pick(choice, "finish_reason") is not None or pick(choice, "usage") is not None
    return not ended and not pick(pick(choice, "delta"), "tool_calls")


def last(chunk: object) -> bool:
    """Never known: usage may come in a chunk of its own after the last choice, or not at all."""
    return False


def channel(chunk: object) -> str | None:
    """Which channel a chunk brings a token of: text, reasoning or tool."""
    choices = pick(chunk, "choices")
    if not isinstance(choices, (list, tuple)) or not choices:
        return None
    delta = pick(choices[0], "delta")
    return next((name for field, name in _CHANNELS if pick(delta, field)), None)


def fold(chunks: Iterable[Json]) -> Json:
    """The kept chunks of a stream as the body of a plain answer. Usage counts are cumulative: the last report wins."""
    body: dict[str, object] = {"folded": True}
    reasons: dict[int, object] = {}
    calls: dict[int, dict[object, object]] = {}
    for chunk in map(mapping, chunks):
        body.update({name: value for name in _BODY if (value := chunk.get(name))})
        for choice in map(mapping, items(chunk.get("choices"))):
            _fold_choice(choice, reasons, calls)
            if isinstance(choice.get("usage"), Mapping):
                body["choice_usage"] = choice["usage"]
    found = sorted(reasons.keys() | calls.keys())
    body["choices"] = [
        {"index": n, "finish_reason": reasons.get(n), "message": {"tool_calls": list(calls.get(n, {}).values())}}
        for n in found
    ]
    return body


def _fold_choice(choice: Json, reasons: dict[int, object], calls: dict[int, dict[object, object]]) -> None:
    index = choice.get("index")
    at = index if isinstance(index, int) else 0
    reasons[at] = choice.get("finish_reason") or reasons.get(at)
    # Some servers repeat the id in every chunk of a call, others give all calls the same index.
    parts = items(mapping(choice.get("delta")).get("tool_calls"))
    calls.setdefault(at, {}).update({called: part for part in parts if (called := text(mapping(part).get("id")))})
