"""Owns the provider's own verdicts: a request that asks is compared with the one behind an earlier response, as the
cache diagnostics pages of OpenAI and Anthropic describe it, and only the first difference is said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.provider.usage import JSON

MISSED = 100


class Verdicts:
    """Requests by the ids of their responses. Anthropic remembers those that carry `diagnostics`, OpenAI every one."""

    def __init__(self) -> None:
        self._bodies: dict[str, JSON] = {}

    def remember(self, response: str, body: JSON) -> None:
        self._bodies[response] = body

    def responses(self, body: JSON) -> JSON:
        """`{"prompt_cache_diagnostics": …}` where a comparison was asked for."""
        asked = (body.get("prompt_cache_options") or {}).get("comparison_response_id")
        if asked is None:
            return {}
        return {"prompt_cache_diagnostics": self._responses(self._bodies.get(asked), body)}

    def _responses(self, old: JSON | None, body: JSON) -> JSON:
        if old is None:
            return {"type": "comparison_response_not_found"}
        reason = _first(_RESPONSES, old, body)
        sizes = {"cache_missed_tokens": MISSED, "comparison_reusable_tokens": 10 * MISSED}
        return {"type": "cache_miss", "reason": reason, **sizes} if reason else {"type": "cache_hit"}

    def messages(self, response: str, body: JSON) -> JSON:
        """`{"diagnostics": …}`; null where nothing was asked or nothing differs."""
        if body.get("diagnostics") is None:
            return {"diagnostics": None}
        self._bodies[response] = body
        asked = body["diagnostics"].get("previous_message_id")
        if asked is None:
            return {"diagnostics": None}
        old = self._bodies.get(asked)
        if old is None:
            return {"diagnostics": {"cache_miss_reason": {"type": "previous_message_not_found"}}}
        reason = _first(_MESSAGES, old, body)
        told = {"cache_miss_reason": {"type": reason, "cache_missed_input_tokens": MISSED}}
        return {"diagnostics": told if reason else None}


Same = Callable[[JSON, JSON], bool]


def _member(name: str) -> Same:
    return lambda old, new: old.get(name) == new.get(name)


def _grows(name: str) -> Same:
    def same(old: JSON, new: JSON) -> bool:
        before, after = (_listed(body.get(name)) for body in (old, new))
        return after[: len(before)] == before

    return same


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _first(order: tuple[tuple[str, Same], ...], old: JSON, new: JSON) -> str | None:
    return next((reason for reason, same in order if not same(old, new)), None)


_RESPONSES: tuple[tuple[str, Same], ...] = (
    ("model_changed", _member("model")),
    ("prompt_cache_key_changed", _member("prompt_cache_key")),
    ("service_tier_changed", _member("service_tier")),
    ("reasoning_effort_changed", _member("reasoning")),
    ("text_format_changed", _member("text")),
    ("tools_changed", _member("tools")),
    ("input_changed", _member("instructions")),
    ("input_changed", _grows("input")),
)
_MESSAGES: tuple[tuple[str, Same], ...] = (
    ("model_changed", _member("model")),
    ("tools_changed", _member("tools")),
    ("system_changed", _member("system")),
    ("messages_changed", _grows("messages")),
)
