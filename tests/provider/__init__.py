"""A simulated provider: loopback HTTP, every dialect, scripted answers, honest prefix-cache accounting.

It stands where a hosted model would in tests, demo and benchmarks. Start at `server.Provider`.
"""

from __future__ import annotations

from tests.provider.behaviour import BY_MODEL_PREFIX, Behaviour, Plan, in_order
from tests.provider.cache import CacheRules, Hit, PrefixCache
from tests.provider.record import Received
from tests.provider.script import Answer, Script, ToolCall, always, by_prompt, by_turn, call
from tests.provider.server import Provider

__all__ = [
    "BY_MODEL_PREFIX",
    "Answer",
    "Behaviour",
    "CacheRules",
    "Hit",
    "Plan",
    "PrefixCache",
    "Provider",
    "Received",
    "Script",
    "ToolCall",
    "always",
    "by_prompt",
    "by_turn",
    "call",
    "in_order",
]
