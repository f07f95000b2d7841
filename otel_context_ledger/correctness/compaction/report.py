"""A compaction in the words of the registry (`context_ledger.compaction.*`): one form for event, line and metrics."""

from __future__ import annotations

from otel_context_ledger import spelling
from otel_context_ledger.correctness.compaction.audit import Audit
from otel_context_ledger.correctness.compaction.event import Compaction

MAX_LISTED = 16


def fields(event: Compaction) -> dict[str, object]:
    """The registry's fields of a compaction, without their prefix; what is not known is not there."""
    before, after = event.before, event.after
    known: dict[str, object] = {
        "kind": event.kind,
        "trigger": event.trigger,
        "outcome": event.outcome,
        "reason": spelling.word(event.reason),
        "tokens_before": before.tokens,
        "tokens_after": after.tokens,
        "estimated": [side for side, measure in (("before", before), ("after", after)) if measure.estimated],
        "source_range": event.source_range,
        "summary_hash": event.summary_hash,
        "preserve_manifest_hash": event.manifest_hash,
        "parent_summary_hash": event.parent_hash,
        "identity_before": event.identity_before,
        "identity_after": event.identity_after,
        "number": event.number,
        "in_turn": event.in_turn,
        "attempts": event.attempts or None,
        "summary_cost": event.cost,
        "rebuilt_tokens": event.rebuilt,
        "symptoms": [symptom.name for symptom in event.symptoms],
        "evidence": [f"{symptom.name}:{told}" for symptom in event.symptoms for told in symptom.evidence],
        **(_audited(event.audit) if event.audit else {}),
    }
    return {name: value for name, value in known.items() if value is not None and value != []}


def _audited(audit: Audit) -> dict[str, object]:
    """What the audit found; nothing where nothing was declared."""
    held, asked = audit.recall()
    if audit.result is None:
        return {}
    return {
        "validator": audit.validator,
        "validator_result": audit.result,
        "recall_held": held,
        "recall_asked": asked,
        "work_judged": audit.judged,
        "lost": list(audit.lost[:MAX_LISTED]),
        "uncertain": list(audit.unsure[:MAX_LISTED]),
    }
