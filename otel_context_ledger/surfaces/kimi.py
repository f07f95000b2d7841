"""Kimi (Moonshot) as differences from the dialects it speaks; where each fact comes from stands in `facts.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from otel_context_ledger.model import Json, Response
from otel_context_ledger.surfaces import openai_chat
from otel_context_ledger.surfaces.events import items, mapping
from otel_context_ledger.surfaces.usage import Table, paths

USAGE = replace(
    openai_chat.USAGE,
    cache_read=paths("cached_tokens", "prompt_tokens_details.cached_tokens"),
    cache_write=paths("cache_write_tokens", "prompt_tokens_details.cache_write_tokens", "cache_creation_input_tokens"),
)


def read_response(body: Json, usage: Table = USAGE) -> Response:
    """A Chat Completions answer whose usage may sit in its first choice when the stream was not asked for it."""
    inner = body.get("choice_usage") or next((mapping(c).get("usage") for c in items(body.get("choices"))), None)
    if body.get("usage") or not isinstance(inner, Mapping):
        return openai_chat.read_response(body, usage)
    read = openai_chat.read_response({**body, "usage": inner}, usage)
    return replace(read, usage=replace(read.usage, source="choice"))
