"""One ledger line per model call: what its context was made of, what the cache did and why, and whether it was right.

Zero code: `opentelemetry-instrument python agent.py`. The names below are the public API; everything else may move.
"""

from otel_context_ledger.compacting import compaction
from otel_context_ledger.correctness.tools.live import tool_contracts, tool_registry
from otel_context_ledger.declaring import constraint, validate_with
from otel_context_ledger.reading import read
from otel_context_ledger.tasks import attempt, carry, child_environment, session, task
from otel_context_ledger.telling import outcome

__version__ = "0.1.0"
__all__ = [
    "__version__",
    "attempt",
    "carry",
    "child_environment",
    "compaction",
    "constraint",
    "outcome",
    "read",
    "session",
    "task",
    "tool_contracts",
    "tool_registry",
    "validate_with",
]
