"""Owns the routing table: which API a path speaks, which vendor it imitates, and how that vendor words an error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.provider import chat, messages, responses
from tests.provider.reply import Reply
from tests.provider.usage import JSON


@dataclass(frozen=True, slots=True)
class Api:
    """One API: the two ways of giving an answer, and the body of an error."""

    whole: Callable[[Reply], JSON]
    events: Callable[[Reply], list[bytes]]
    error: Callable[[int, str | None], JSON]


@dataclass(frozen=True, slots=True)
class Route:
    api: Api
    vendor: str


_KINDS = {400: "invalid_request_error", 404: "not_found_error", 429: "rate_limit_error"}


def _openai_error(status: int, says: str | None = None) -> JSON:
    kind = _KINDS.get(status, "server_error")
    return {"error": {"message": says or f"scripted {status}", "type": kind, "param": None, "code": None}}


def _anthropic_error(status: int, says: str | None = None) -> JSON:
    message = says or f"scripted {status}"
    return {"type": "error", "error": {"type": _KINDS.get(status, "api_error"), "message": message}}


CHAT = Api(chat.whole, chat.events, _openai_error)
RESPONSES = Api(responses.whole, responses.events, _openai_error)
MESSAGES = Api(messages.whole, messages.events, _anthropic_error)
_APIS = {"/chat/completions": CHAT, "/responses": RESPONSES, "/messages": MESSAGES}


def find(path: str) -> Route | None:
    """`/kimi/anthropic/v1/messages` → the Messages API of vendor `kimi`; None for an unknown path."""
    bare = path.split("?", 1)[0]
    api = next((api for ending, api in _APIS.items() if bare.endswith(ending)), None)
    return Route(api, bare.split("/")[1]) if api else None
