"""Owns the record of one received request, as tests read it back."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

VOLATILE_HEADERS = {
    "baggage", "connection", "date", "host", "traceparent", "tracestate",
    "x-stainless-read-timeout", "x-stainless-retry-count",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Received:
    """One request. Header names are lower case; `at` is `time.time()` at its arrival, in seconds.

    `json` is the body as an object, empty if it is none. `prompt`, `cached`, `written` and `output` count tokens; they
    are None where nothing was computed, because the request was refused.
    """

    path: str
    headers: dict[str, str]
    body: bytes
    at: float
    json: dict[str, Any] = field(repr=False, compare=False)
    prompt: int | None = None
    cached: int | None = None
    written: int | None = None
    output: int | None = None

    @property
    def model(self) -> str:
        return str(self.json.get("model", ""))

    @property
    def wire(self) -> tuple[str, dict[str, str], bytes]:
        """Path, headers and body as sent, without the headers that differ from one call to the next anyway."""
        stable = {name: value for name, value in self.headers.items() if name not in VOLATILE_HEADERS}
        return self.path, stable, self.body


def receive(path: str, headers: dict[str, str], body: bytes) -> Received:
    """The record of a request that arrives now. The body is parsed here, once."""
    return Received(path, headers, body, time.time(), _object(body))


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
