"""How a provider is asked for its own verdict on a cache miss: members that are added to a request when the user opted
in. What the verdicts mean is attribution's business, which models can be asked stands in `facts.toml`.

Forms: OpenAI's prompt cache diagnostics guide and the types of the openai SDK 3.57 (`prompt_cache_options`);
Anthropic's cache diagnostics page and the types of the anthropic SDK 2.14 (`diagnostics`: generally available, no
header needed).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from otel_context_ledger.model import Json
from otel_context_ledger.surfaces.events import mapping, text
from otel_context_ledger.surfaces.facts import reaches


def question(api: str, asks: Mapping[str, str], body: Json, previous: str | None) -> Json | None:
    """The members that ask for a comparison with the response `previous`, or `None` where nothing can be asked or the
    program said something itself. `asks` maps APIs to the first model of a family that can be asked, or to an empty
    text for every model."""
    form, first = _FORMS.get(api), asks.get(api)
    if form is None or first is None or not reaches(text(body.get("model")) or "", first):
        return None
    return form(body, previous)


def _responses(body: Json, previous: str | None) -> Json | None:
    given = mapping(body.get("prompt_cache_options"))
    spoken = "prompt_cache_options" in body and not isinstance(body["prompt_cache_options"], Mapping)
    if previous is None or spoken or "comparison_response_id" in given:
        return None
    return {"prompt_cache_options": {**given, "comparison_response_id": previous}}


def _messages(body: Json, previous: str | None) -> Json | None:
    """Only requests that carry the object leave a fingerprint to compare with, so the first one carries null."""
    return None if "diagnostics" in body else {"diagnostics": {"previous_message_id": previous}}


_FORMS: Mapping[str, Callable[[Json, str | None], Json | None]] = {"responses": _responses, "messages": _messages}
