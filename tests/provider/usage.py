"""Owns the usage objects: one table of shapes per API, keyed by the vendor in the URL.

Sources: the types of the openai 3.57 and anthropic 2.14 SDKs; for Kimi, the usage observed for K3 (top-level
`cached_tokens` and no `prompt_tokens_details`, promptfoo#10132; cache writes always 0 on its Messages endpoint), its
other placements as its own clients read them, and each name that its write counter may have; OpenRouter's usage
accounting page; openai-python#2544 for Gemini's compatible endpoint; llama.cpp and vLLM as measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Counts:
    """Tokens of one call. `cached` and `written` are parts of `prompt`, `reasoning` is a part of `output`."""

    prompt: int
    cached: int
    written: int
    output: int
    reasoning: int
    ttl: str = "5m"


def _chat(counts: Counts) -> JSON:
    return {
        "prompt_tokens": counts.prompt,
        "completion_tokens": counts.output,
        "total_tokens": counts.prompt + counts.output,
    }


def _kimi(counts: Counts) -> JSON:
    return _chat(counts) | {"cached_tokens": counts.cached}


def _kimi_details(counts: Counts) -> JSON:
    return _chat(counts) | {"prompt_tokens_details": {"cached_tokens": counts.cached}}


def _kimi_both(counts: Counts) -> JSON:
    return _kimi(counts) | _kimi_details(counts)


def _kimi_writes(counts: Counts) -> JSON:
    return _kimi(counts) | {"cache_write_tokens": counts.written}


def _kimi_creation(counts: Counts) -> JSON:
    return _kimi_details(counts) | {"cache_creation_input_tokens": counts.written}


def _legacy(counts: Counts) -> JSON:
    """OpenAI before it counted writes, and Azure."""
    return _chat(counts) | {"prompt_tokens_details": {"cached_tokens": counts.cached, "audio_tokens": 0}}


def _silent(counts: Counts) -> JSON:
    """A server whose report of its cache is off."""
    return _chat(counts) | {"prompt_tokens_details": None}


def _openrouter(counts: Counts) -> JSON:
    details = {"cached_tokens": counts.cached, "cache_write_tokens": counts.written, "audio_tokens": 0}
    billed = {"cost": cost(counts), "is_byok": False, "cost_details": {"upstream_inference_cost": None}}
    return _chat(counts) | {"prompt_tokens_details": details} | billed


def cost(counts: Counts) -> float:
    """A router's bill in USD: a millionth of a dollar for each token that was not cached."""
    return round((counts.prompt - counts.cached + counts.output) / 1e6, 6)


def _gemini(counts: Counts) -> JSON:
    """The compatible endpoint: thought is in the total alone."""
    details = {"prompt_tokens_details": {"cached_tokens": counts.cached}, "completion_tokens_details": None}
    return _chat(counts) | {"completion_tokens": counts.output - counts.reasoning} | details


def _x_ai(counts: Counts) -> JSON:
    """Reasoning stands beside the completion and in the total."""
    details = {"completion_tokens_details": {"reasoning_tokens": counts.reasoning}}
    return _gemini(counts) | details


def timings(counts: Counts) -> JSON:
    """What llama.cpp evaluated, apart from what it had."""
    return {"cache_n": counts.cached, "prompt_n": counts.prompt - counts.cached, "predicted_n": counts.output}


def _openai(counts: Counts) -> JSON:
    prompt = {"cached_tokens": counts.cached, "cache_write_tokens": counts.written, "audio_tokens": 0}
    completion = {
        "reasoning_tokens": counts.reasoning,
        "audio_tokens": 0,
        "accepted_prediction_tokens": 0,
        "rejected_prediction_tokens": 0,
    }
    return _chat(counts) | {"prompt_tokens_details": prompt, "completion_tokens_details": completion}


def _deepseek(counts: Counts) -> JSON:
    split = {
        "prompt_cache_hit_tokens": counts.cached,
        "prompt_cache_miss_tokens": counts.prompt - counts.cached,
    }
    return _chat(counts) | {"prompt_tokens_details": {"cached_tokens": counts.cached}} | split


def _vllm(counts: Counts) -> JSON:
    return _chat(counts) | {"prompt_tokens_details": {"cached_tokens": counts.cached}}


def _responses(counts: Counts) -> JSON:
    by_ttl = {"ttl_30m_tokens": counts.written, "ttl_12h_tokens": 0}
    written = {"cache_write_tokens": counts.written, "cache_write_tokens_details": by_ttl}
    return _older_responses(counts) | {"input_tokens_details": {"cached_tokens": counts.cached, **written}}


def _older_responses(counts: Counts) -> JSON:
    return {
        "input_tokens": counts.prompt,
        "input_tokens_details": {"cached_tokens": counts.cached},
        "output_tokens": counts.output,
        "output_tokens_details": {"reasoning_tokens": counts.reasoning},
        "total_tokens": counts.prompt + counts.output,
    }


def _disjoint(counts: Counts, written: int) -> JSON:
    return {
        "input_tokens": counts.prompt - counts.cached - written,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": counts.cached,
        "output_tokens": counts.output,
    }


def _anthropic(counts: Counts) -> JSON:
    by_ttl = {f"ephemeral_{ttl}_input_tokens": counts.written * (ttl == counts.ttl) for ttl in ("5m", "1h")}
    return _disjoint(counts, counts.written) | {"cache_creation": by_ttl, "service_tier": "standard"}


def _kimi_messages(counts: Counts) -> JSON:
    return _disjoint(counts, 0)


CHAT: dict[str, Callable[[Counts], JSON]] = {
    "kimi": _kimi, "coding": _kimi, "openai": _openai, "deepseek": _deepseek, "vllm": _vllm,
    "kimi-details": _kimi_details, "kimi-both": _kimi_both, "kimi-writes": _kimi_writes,
    "kimi-creation": _kimi_creation, "legacy": _legacy, "azure": _legacy, "vllm-off": _silent,
    "openrouter": _openrouter, "gemini": _gemini, "llama": _vllm, "llama-timings": _chat, "vllm-continuous": _vllm,
    "x_ai": _x_ai, "groq": _vllm,
}  # fmt: skip
RESPONSES: dict[str, Callable[[Counts], JSON]] = {
    "openai": _responses, "azure": _older_responses, "vllm": _older_responses, "llama": _older_responses,
}  # fmt: skip
MESSAGES: dict[str, Callable[[Counts], JSON]] = {
    "anthropic": _anthropic, "kimi": _kimi_messages, "coding": _kimi_messages, "deepseek": _kimi_messages,
}  # fmt: skip

_CACHE_FIELDS = {
    "cached_tokens", "prompt_tokens_details", "input_tokens_details", "prompt_cache_hit_tokens",
    "prompt_cache_miss_tokens", "cache_creation", "cache_creation_input_tokens", "cache_read_input_tokens",
}  # fmt: skip

# What is put into the answer, as an object to merge, so that an absent usage differs from a null one.
REPORTS: dict[str, Callable[[JSON], JSON]] = {
    "full": lambda usage: {"usage": usage},
    "uncached": lambda usage: {"usage": {name: n for name, n in usage.items() if name not in _CACHE_FIELDS}},
    "absent": lambda usage: {},
    "null": lambda usage: {"usage": None},
    "malformed": lambda usage: {"usage": dict.fromkeys(usage, "many")},
}
