"""OpenAI-compatible servers as differences: where DeepSeek, OpenRouter, Gemini, xAI, Groq, vLLM and llama.cpp keep
counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from otel_context_ledger.model import Json, Response, Usage
from otel_context_ledger.surfaces import kimi, openai_chat
from otel_context_ledger.surfaces.events import mapping
from otel_context_ledger.surfaces.usage import Table, paths, read

DEEPSEEK = replace(
    openai_chat.USAGE,
    cache_read=paths("prompt_cache_hit_tokens", "prompt_tokens_details.cached_tokens"),
    cache_miss=paths("prompt_cache_miss_tokens"),
)
GEMINI = Table(
    total=paths("prompt_token_count", "promptTokenCount", "prompt_tokens"),
    cache_read=paths("cached_content_token_count", "cachedContentTokenCount", "prompt_tokens_details.cached_tokens"),
    output=paths("candidates_token_count", "candidatesTokenCount", "completion_tokens"),
    reasoning=paths("thoughts_token_count", "thoughtsTokenCount", "completion_tokens_details.reasoning_tokens"),
    tool_input=paths("tool_use_prompt_token_count", "toolUsePromptTokenCount"),
    grand_total=paths("total_token_count", "totalTokenCount", "total_tokens"),
    apart=True,
)
# xAI counts reasoning beside the completion and in the total (its page on consumption; vercel/ai#12425).
X_AI = replace(openai_chat.USAGE, apart=True)
OPENROUTER = replace(kimi.USAGE, cache_read=openai_chat.USAGE.cache_read, cache_write=openai_chat.USAGE.cache_write)
ANY = replace(
    kimi.USAGE,
    cache_read=(*DEEPSEEK.cache_read[:1], *kimi.USAGE.cache_read, *paths("cache_read_input_tokens")),
    cache_write=(*kimi.USAGE.cache_write, *paths("prompt_tokens_details.created_cache_tokens")),
    cache_miss=DEEPSEEK.cache_miss,
    aliases=paths("input_cached_tokens", "cached_input_tokens", "cached_prompt_tokens", "cache_read_tokens"),
)
# Chat answers with the names of the Responses or the Messages dialect; only the second's input leaves out the cache.
RENAMED = replace(
    ANY,
    total=paths("input_tokens"),
    cache_read=(*ANY.cache_read, *paths("input_tokens_details.cached_tokens")),
    cache_write=(*ANY.cache_write, *paths("input_tokens_details.cache_write_tokens")),
    output=paths("output_tokens", "completion_tokens"),
    reasoning=paths("output_tokens_details.reasoning_tokens"),
    disjoint=None,
)
# llama.cpp counts what it evaluated apart from what it had, in every answer and in a stream's last chunk.
TIMINGS = Table(total=paths("prompt_n"), cache_read=paths("cache_n"), output=paths("predicted_n"), disjoint=True)


def read_deepseek(body: Json) -> Response:
    """A DeepSeek answer: hit and miss part the input, a miss is no cache write."""
    return openai_chat.read_response(body, DEEPSEEK)


def read_gemini(body: Json) -> Response:
    """An answer of Gemini's OpenAI-compatible endpoint, or one that carries Gemini's own counts."""
    own = body.get("usage") or body.get("usage_metadata") or body.get("usageMetadata")
    return openai_chat.read_response({**body, "usage": own}, GEMINI)


def read_x_ai(body: Json) -> Response:
    """An answer of xAI, whose output leaves out the reasoning."""
    return openai_chat.read_response(body, X_AI)


def read_groq(body: Json) -> Response:
    """An answer of Groq, whose streams end with a usage of its own kind where none was asked for."""
    own = body.get("usage") or mapping(body.get("x_groq")).get("usage")
    return openai_chat.read_response({**body, "usage": own})


def read_openrouter(body: Json) -> Response:
    """An OpenRouter answer. Under the caller's own key its `cost` is only the router's fee, and what the upstream
    provider charges stands beside it (OpenRouter's usage accounting page); without that the whole is unknown."""
    answer = openai_chat.read_response(body, OPENROUTER)
    told = mapping(body.get("usage"))
    if told.get("is_byok") is not True:
        return answer
    upstream = read({"cost": mapping(told.get("cost_details")).get("upstream_inference_cost")}, OPENROUTER)
    fee, charged = answer.usage.provider_cost, upstream.provider_cost
    whole = None if fee is None or charged is None else fee + charged
    flags = answer.usage.flags if whole is not None else (*answer.usage.flags, "upstream_cost_missing")
    return replace(answer, usage=replace(answer.usage, provider_cost=whole, flags=flags))


def read_any(body: Json) -> Response:
    """An answer of a server that nobody named: every known place of a count is looked at; llama.cpp's `timings` stand
    in where the usage object says nothing of the cache."""
    told = body.get("usage")
    renamed = isinstance(told, Mapping) and "prompt_tokens" not in told and "input_tokens" in told
    answer = kimi.read_response(body, RENAMED if renamed else ANY)
    timed = read(body.get("timings"), TIMINGS, "timings")
    if timed.cache_read is None or timed.input is None:
        return answer
    if answer.usage.cache_read is None:
        return replace(answer, usage=replace(timed, flags=(*answer.usage.flags, *timed.flags)))
    return replace(answer, usage=_compared(answer.usage, timed))


def _compared(usage: Usage, timed: Usage) -> Usage:
    """Two reports of one cache: the usage object is the answer's, timings that differ are flagged."""
    if usage.cache_read == timed.cache_read:
        return usage
    return replace(usage, flags=(*usage.flags, f"cached_tokens_conflict({usage.cache_read},{timed.cache_read})"))
