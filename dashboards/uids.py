"""Owns the uids of the boards. They never change: links and bookmarks hold them."""

from __future__ import annotations

REUSE = "context-ledger-reuse"
MISSES = "context-ledger-misses"
COMPACTION = "context-ledger-compaction"
COST = "context-ledger-cost"
FLEET = "context-ledger-fleet"
