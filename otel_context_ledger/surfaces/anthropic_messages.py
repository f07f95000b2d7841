"""Anthropic Messages: requests, responses and stream events as plain JSON. Its input count excludes cached tokens."""

from __future__ import annotations

import re
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
    session_hint,
    settings_of,
    text,
)
from otel_context_ledger.surfaces.usage import Table, paths, read

SETTINGS = ("tool_choice", "service_tier", "thinking", "context_management", "container", "mcp_servers", "speed")
SAMPLING = ("temperature", "top_p", "top_k", "stop_sequences", "max_tokens")
USAGE = Table(
    total=paths("input_tokens"),
    cache_read=paths("cache_read_input_tokens"),
    cache_write=paths("cache_creation_input_tokens"),
    lifetimes={
        "5m": paths("cache_creation.ephemeral_5m_input_tokens"),
        "1h": paths("cache_creation.ephemeral_1h_input_tokens"),
    },
    output=paths("output_tokens"),
    reasoning=paths("output_tokens_details.thinking_tokens"),
    cost=paths("cost"),
    disjoint=True,
)
# Claude Code writes its session into the user id and its version into the first system block (cases CM06, CM40).
_SESSION = re.compile(r"session_([0-9a-f-]{36})")
_VERSION = re.compile(r"cc_version=(\d[\w.]{0,31})", re.ASCII)


def read_request(body: Json) -> Request:
    """A Messages body as a Request; each block of `system` is a system segment of its own."""
    given = body.get("system")
    blocks = [given] if text(given) else list(items(given))
    messages = list(items(body.get("messages")))
    lead = leading(messages, ("system",))
    tools = items(body.get("tools"))
    effort = text(mapping(body.get("output_config")).get("effort"))
    marks = markers(tools, blocks, messages) | ({"automatic": 1} if body.get("cache_control") else {})
    return Request(
        model=text(body.get("model")),
        tools=tools,
        system=[*blocks, *messages[:lead]],
        messages=messages[lead:],
        offset=lead,
        settings=settings_of(body, SETTINGS),
        sampling=present(body, SAMPLING),
        effort=effort or effort_of(body.get("thinking")),
        effort_in_band=in_band_effort(messages),
        conversation=session_hint(body) or _found(_SESSION, mapping(body.get("metadata")).get("user_id")),
        retention=_retention(body, (*tools, *blocks), messages),
        breakpoints=marks,
        diagnostics_asked=body.get("diagnostics") is not None,
        diagnostics_against=text(mapping(body.get("diagnostics")).get("previous_message_id")),
        stream=bool(body.get("stream")),
        client_version=_found(_VERSION, mapping(blocks[0]).get("text", blocks[0]) if blocks else None),
    )


def _found(pattern: re.Pattern[str], value: object) -> str | None:
    match = pattern.search(value[:1024]) if isinstance(value, str) else None
    return match.group(1) if match else None


def _retention(body: Json, blocks: tuple[object, ...], messages: list[object]) -> str | None:
    """The lifetime asked for by the last marker that names one."""
    last = [part for message in messages[-2:] for part in (message, *items(mapping(message).get("content")))]
    marks = [mapping(mapping(part).get("cache_control")) for part in (body, *blocks, *last)]
    return next((ttl for mark in reversed(marks) if (ttl := text(mark.get("ttl")))), "5m" if any(marks) else None)


def read_response(body: Json, usage: Table = USAGE) -> Response:
    """A Messages answer, or the body that `fold` made of its events."""
    content = body.get("content")
    reason = text(body.get("stop_reason"))
    verdict, missed = _verdict(body)
    return Response(
        usage=read(body.get("usage"), usage, "event" if body.get("folded") else "response"),
        response_id=text(body.get("id")),
        model=text(body.get("model")),
        finish_reasons=(reason,) if reason else (),
        tool_calls=sum(mapping(b).get("type") == "tool_use" for b in content) if isinstance(content, list) else None,
        service_tier=text(mapping(body.get("usage")).get("service_tier")),
        route=text(body.get("provider")),
        verdict=verdict,
        verdict_tokens=missed,
        cleared=_cleared(body),
    )


def _cleared(body: Json) -> int | None:
    """Tokens of the tool calls that context editing cleared (anthropic SDK 2.14,
    `BetaClearToolUses20250919EditResponse`); cleared thinking is no part of what the agent knows."""
    applied = map(mapping, items(mapping(body.get("context_management")).get("applied_edits")))
    told = [count(edit.get("cleared_input_tokens")) for edit in applied if edit.get("cleared_tool_uses")]
    known = [tokens for tokens in told if tokens is not None]
    return sum(known) if known else None


def _verdict(body: Json) -> tuple[str | None, int | None]:
    """The provider's reason; an object without one: the comparison still runs (Anthropic cache diagnostics)."""
    if body.get("diagnostics") is None:
        return None, None
    told = mapping(body["diagnostics"])
    reason = told.get("cache_miss_reason")
    counts = (count(mapping(place).get("cache_missed_input_tokens")) for place in (reason, told))
    named = text(reason) or text(mapping(reason).get("type")) or "pending"
    return named, next((n for n in counts if n is not None), None)


def keep(event: object) -> bool:
    """Whether an event says more than its text."""
    kind = pick(event, "type")
    if kind == "content_block_start":
        return pick(pick(event, "content_block"), "type") == "tool_use"
    return kind in ("message_start", "message_delta", "message_stop")


def last(event: object) -> bool:
    """Whether an event ends the answer."""
    return pick(event, "type") == "message_stop"


_CHANNELS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "reasoning"),
    "input_json_delta": ("partial_json", "tool"),
}


def channel(event: object) -> str | None:
    """Which channel an event brings a token of; a tool call begins with its name."""
    if pick(event, "type") == "content_block_start":
        return "tool" if pick(pick(event, "content_block"), "type") == "tool_use" else None
    delta = pick(event, "delta")
    kind = pick(delta, "type")
    member, name = _CHANNELS.get(kind, ("", None)) if isinstance(kind, str) else ("", None)
    return name if name and pick(delta, member) else None


def fold(events: Iterable[Json]) -> Json:
    """The kept events as the body of a plain answer. Later usage replaces earlier numbers, it never adds to them; the
    output count of the first event is provisional, so a stream that broke off has none."""
    body: dict[str, object] = {"folded": True}
    usage: dict[str, object] = {}
    content: list[object] = []
    for event in map(mapping, events):
        for source in (mapping(event.get("message")), mapping(event.get("delta")), event):
            body.update(
                present(source, ("id", "model", "stop_reason", "diagnostics", "provider", "context_management"))
            )
            usage.update({k: v for k, v in mapping(source.get("usage")).items() if v is not None})
        if event.get("message"):
            for provisional in ("output_tokens", "output_tokens_details"):
                usage.pop(provisional, None)
        if event.get("content_block"):
            content.append(event["content_block"])
    return {**body, "content": content, "usage": usage or None}
