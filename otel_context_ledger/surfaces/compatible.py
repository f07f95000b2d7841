"""OpenAI-compatible servers as differences: where DeepSeek, OpenRouter, Gemini, vLLM and llama.cpp keep counts."""

from __future__ import annotations

from dataclasses import replace

from otel_context_ledger.model import Json, Response
from otel_context_ledger.surfaces import kimi, openai_chat
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
    reasoning=paths("thoughts_token_count", "thoughtsTokenCount"),
    tool_input=paths("tool_use_prompt_token_count", "toolUsePromptTokenCount"),
    grand_total=paths("total_token_count", "totalTokenCount", "total_tokens"),
)
ANY = replace(
    kimi.USAGE,
    cache_read=(*DEEPSEEK.cache_read[:1], *kimi.USAGE.cache_read, *paths("cache_read_input_tokens")),
    cache_write=(*kimi.USAGE.cache_write, *paths("prompt_tokens_details.created_cache_tokens")),
    cache_miss=DEEPSEEK.cache_miss,
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


def read_any(body: Json) -> Response:
    """An answer of a server that nobody named: every known place of a count is looked at; llama.cpp's `timings` stand
    in where the usage object says nothing of the cache."""
    answer = kimi.read_response(body, ANY)
    if answer.usage.cache_read is not None:
        return answer
    timed = read(body.get("timings"), TIMINGS, "timings")
    return answer if timed.cache_read is None or timed.input is None else replace(answer, usage=timed)
