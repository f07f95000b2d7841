"""One entry as a JSON line: its groups by name, every field spelled out, `null` for what is unknown.

Beside the groups stands `segments`, the trail that only the ledger file holds. Where lines are kept is the store's
business.
"""

from __future__ import annotations

import orjson

from otel_context_ledger.model import Entry, Trail

GROUPS = ("self", "task", "model", "context", "cache", "request", "money", "checks")


def write(entry: Entry, trail: Trail | None = None) -> bytes:
    """The line without its line break."""
    groups: dict[str, object] = {name: getattr(entry, name) for name in GROUPS}
    return orjson.dumps({**groups, "segments": trail})
