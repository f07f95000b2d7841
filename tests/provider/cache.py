"""Owns the honest prefix cache: how many tokens of a prompt an earlier prompt of the same scope already computed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.provider.tokens import TOKEN_BYTES, Prompt, common


@dataclass(frozen=True, slots=True)
class CacheRules:
    """What this provider's cache can do.

    scope        body fields that split the cache; add `prompt_cache_key` for routing by key
    block        matches are floored to this many tokens
    minimum      prompts shorter than this, in tokens, are neither read nor written
    retention    seconds after its last use for which a prompt stays; None is for ever
    write_lag    seconds until a written prompt can be read
    breakpoints  only tokens up to the last `cache_control` are read or written
    capacity     prompts kept per scope, least recently used out
    """

    scope: tuple[str, ...] = ("model",)
    block: int = 1
    minimum: int = 0
    retention: float | None = None
    write_lag: float = 0.0
    breakpoints: bool = False
    capacity: int = 4096
    clock: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class Hit:
    """Tokens of one prompt by class; the rest of the prompt was computed and not kept."""

    cached: int
    written: int


@dataclass(slots=True)
class _Stored:
    text: bytes
    written: float
    used: float


@dataclass(slots=True)
class PrefixCache:
    """Prompts seen so far, by scope. Safe to use from several threads."""

    rules: CacheRules = CacheRules()
    _scopes: dict[str, list[_Stored]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def use(self, body: dict[str, Any], prompt: Prompt) -> Hit:
        """Read what is there for `prompt`, then keep it."""
        scope = json.dumps([body.get(name) for name in self.rules.scope], sort_keys=True)
        with self._lock:
            return self._use(scope, prompt)

    def _use(self, scope: str, prompt: Prompt) -> Hit:
        now = self.rules.clock()
        text = prompt.text[: prompt.breakpoint * TOKEN_BYTES] if self.rules.breakpoints else prompt.text
        size = len(text) // TOKEN_BYTES
        if size < max(self.rules.minimum, 1):
            return Hit(0, 0)
        alive = [entry for entry in self._scopes.get(scope, []) if not self._expired(entry, now)]
        cached = self._read(alive, text, now)
        self._scopes[scope] = self._written(alive, text, now)
        return Hit(cached, size - cached)

    def _expired(self, entry: _Stored, now: float) -> bool:
        return self.rules.retention is not None and now - entry.used > self.rules.retention

    def _read(self, alive: list[_Stored], text: bytes, now: float) -> int:
        readable = [entry for entry in alive if now - entry.written >= self.rules.write_lag]
        best = max(((common(entry.text, text), n) for n, entry in enumerate(readable)), default=None)
        if best is None or best[0] == 0:
            return 0
        readable[best[1]].used = now
        return best[0] // self.rules.block * self.rules.block

    def _written(self, alive: list[_Stored], text: bytes, now: float) -> list[_Stored]:
        """A prompt that the new one extends is contained in it, and redundant once the new one is readable."""
        if self.rules.write_lag == 0:
            alive = [entry for entry in alive if not text.startswith(entry.text)]
        alive = sorted([*alive, _Stored(text, now, now)], key=lambda entry: entry.used)
        return alive[-self.rules.capacity :]
