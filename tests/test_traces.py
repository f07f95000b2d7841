"""Lineage across a restart, as far as hashes tell: and when they tell nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from otel_context_ledger import line
from otel_context_ledger import model as m
from otel_context_ledger.ledger import Ledger
from tests.vectors import LORE, find

USER = {"role": "user", "content": "Fix the parser. " * 20}
TURNS = [{"role": "assistant", "content": "Looked at it. " * 20}, {"role": "user", "content": "Go on. " * 20}]


def call(ledger: Ledger, at: float, messages: list[Any], cached: int) -> Mapping[str, Any]:
    """One call of the session s-1, and its ledger line."""
    surface = find("openai")
    body = {"model": "gpt-5", "messages": messages}
    draft = ledger.open(surface, "host", surface.read_request(body), m.Surroundings(f"e{at:.0f}", at, session="s-1"))
    usage = {
        "prompt_tokens": 5000 + len(messages),
        "completion_tokens": 1,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    response = surface.read_response({"id": "r", "model": "gpt-5", "choices": [], "usage": usage})
    found: Mapping[str, Any] = orjson.loads(
        line.write(ledger.close(draft, response, m.Ending(), m.Timing(1.0), at + 1))
    )
    return found


@pytest.mark.parametrize(
    ("key", "cause"), [(b"one", "provider_unexplained"), (b"two", "cold_start"), (None, "cold_start")]
)
def test_digests_of_another_key_tell_nothing(key: bytes | None, cause: str) -> None:
    """After a restart under another key the earlier call is not known; under the same one it is, and intact."""
    first = call(Ledger(LORE, "test", digest_key=b"one"), 100.0, [USER, *TURNS], 0)
    second = Ledger(LORE, "test", digest_key=key)
    second.restore([first])
    assert call(second, 150.0, [USER, *TURNS, *TURNS], 0)["cache"]["miss_cause"] == cause
