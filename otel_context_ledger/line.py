"""One entry as a JSON line: its groups by name, every field spelled out, `null` for what is unknown.

Beside the groups stands `segments`, the trail that only the ledger file holds. A line that is no entry says what it is
in `kind` and has no `entry_id`; readers skip kinds that they do not know. Where lines are kept is the store's business.
"""

from __future__ import annotations

import orjson

from otel_context_ledger.model import Compacted, Entry, Outcome, Trail
from otel_context_ledger.outcomes import EVIDENCE

KIND, OUTCOME, COMPACTION = "kind", "outcome", "compaction"
GROUPS = ("self", "task", "model", "context", "cache", "request", "money", "checks")


def write(entry: Entry, trail: Trail | None = None) -> bytes:
    """The line without its line break."""
    groups: dict[str, object] = {name: getattr(entry, name) for name in GROUPS}
    return orjson.dumps({**groups, "segments": trail})


def write_compaction(told: Compacted, version: str, scheme: str, process: str) -> bytes:
    """The line of a compaction without its line break; `version` is the ledger's, `scheme` how its digests are made,
    `process` who writes it. Of several with one id the last holds."""
    own = {"ledger_version": version, "digest_scheme": scheme, "process": process}
    about = {"task_id": told.task, "session_id": told.session}
    return orjson.dumps({KIND: COMPACTION, "self": own, "task": about, "compaction": told.row})


def write_outcome(told: Outcome, version: str) -> bytes:
    """The line of an outcome without its line break; `version` is the ledger's."""
    own = {"outcome_id": told.outcome_id, "told_at": told.told_at, "ledger_version": version}
    about = {"task_id": told.task_id, "attempt_id": told.attempt_id, "task_outcome": told.word}
    said = {name: getattr(told, name) for name in (*EVIDENCE, "reason")}
    return orjson.dumps({KIND: OUTCOME, "self": own, "task": about, "outcome": said})
