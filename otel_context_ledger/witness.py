"""What a call shows of its session's compactions: from the links of the reuse wing to the happenings of the other.

Pure, and stateless: the courses themselves, and what is told of them, are the ledger's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from otel_context_ledger import model as m
from otel_context_ledger.correctness import history, state
from otel_context_ledger.correctness.compaction import failures
from otel_context_ledger.correctness.compaction import happenings as h
from otel_context_ledger.correctness.compaction.summary import Extent, seen
from otel_context_ledger.records import quick
from otel_context_ledger.reuse import differences
from otel_context_ledger.reuse.lineage import Link
from otel_context_ledger.reuse.segments import Outline

_GROWS = ("extends", "repeats", "continues")
# Causes of a miss that leave what stands before the history in the cache.
_OF_HISTORY = (
    "history_compacted", "history_rewritten", "granularity", "cache_breakpoint_missing", "provider_unexplained",
)  # fmt: skip


def _unknown(_: str | None) -> int | None:
    return None


@quick
@dataclass(frozen=True, slots=True)
class Witness:
    """A call as it was opened: where it came from, what it holds, the openings of summaries that are known, and the
    windows of models, in tokens."""

    around: m.Surroundings
    link: Link
    outline: Outline
    request: m.Request
    openings: tuple[str, ...] = ()
    window: Callable[[str | None], int | None] = _unknown

    def opened(self, waiting: bool) -> h.Opened:
        """What a call of the agent shows before it is made. `waiting`: its session's course waits for a compaction to
        be seen, so that the texts of the call are wanted."""
        rewrite, link = self._rewrite(), self.link
        own = link.head is not None and link.parent is None
        # It shares nothing with the call before, and the provider keeps nothing of that.
        anew = link.relation == "departs" and self.request.whole
        wanted = waiting or rewrite is not None
        steps = history.steps(self.outline.messages) if wanted else ()
        return h.Opened(
            self.around.now,
            self.around.entry_id,
            link.relation in _GROWS if own else None,
            rewrite,
            history.system_texts(self.request.system) if wanted else (),
            tuple(step.text for step in steps[self._begins(steps) :]),
            state.fold(state.State(), steps).orphans if self.request.whole else (),
            self.window(self.request.model),
            link.head.tokens if link.head else None,
            None if link.head is None or (anew and rewrite is None) else link.head.entry_id,
            self.window(link.head.request.model) if link.head else None,
        )

    def called(
        self, response: m.Response, now: float, identity: str | None = None, causes: Sequence[m.Cause] = ()
    ) -> h.Called:
        """What it shows when it came to an answer. The share of tools and system in its tokens goes by bytes; that they
        stayed the same is no news where something else made the cache useless (`causes` of the miss)."""
        head, usage = self.link.head, response.usage
        size = self.outline.size()
        header = round(usage.input * self.outline.size(0) / size) if usage.input is not None and size else None
        useful = all(cause.name in _OF_HISTORY for cause in causes)
        same = None if head is None else useful and head.outline.root == self.outline.root
        return h.Called(
            now,
            usage.input,
            usage.cache_read,
            identity,
            header,
            same,
            turn_ended=response.turn_ended,
            id=self.around.entry_id,
            item=None if self.request.whole else response.compacted,
            cleared=response.cleared,
        )

    def failed(self, now: float, error: str, kind: str | None) -> h.Called:
        """What it shows when it came to none: `error` is the text of the error, `kind` its type."""
        failure = failures.read(error)
        return h.Called(now, reason=failure.reason if failure else kind or "failed")

    def summarised(self, response: m.Response, now: float, cost: float | None = None) -> h.Summarised:
        """What a summarising call shows that came to an answer: an answer without a token is an empty summary."""
        usage = response.usage
        outcome = "empty" if usage.output == 0 else "done"
        return h.Summarised(now, self.around.entry_id, outcome, None, usage.input, usage.output, cost)

    def refused(self, now: float, error: str, kind: str | None) -> h.Summarised:
        """What a summarising call shows that came to none."""
        failure = failures.read(error)
        return h.Summarised(now, self.around.entry_id, "failed", kind, failure=failure)

    def _begins(self, steps: Sequence[history.Step]) -> int:
        """From which message on the model still sees the history: where it only grew, what stands before the provider's
        own summary is sent and passed over (Anthropic and OpenAI, on their compaction items)."""
        grown = self.link.head is not None and self.link.relation in _GROWS
        return max((at for at, step in enumerate(steps) if step.compaction), default=0) if grown else 0

    def _rewrite(self) -> h.Rewrite | None:
        """What became of the history since the comparable call; the first call of a session shows nothing."""
        link, head, outline = self.link, self.link.head, self.outline
        if head is None:
            return None
        shown = outline.messages[link.shared : link.tail_at if link.tail else len(outline.messages)]
        # Where nothing gave way, only the provider's own item can show a compaction: most calls are done here.
        if link.relation in ("extends", "repeats") and not any(map(history.compacts, shown)):
            return None
        new = history.steps(shown)
        extent = Extent(len(head.outline.messages), link.shared, link.tail, head.outline.offset)
        return seen(new, extent, self.openings, self._cause())

    def _cause(self) -> str | None:
        head = self.link.head
        cause = differences.history(self.link, head, self.outline, self.openings) if head else None
        return None if cause is None else cause.name + (f"({','.join(cause.detail)})" if cause.detail else "")
