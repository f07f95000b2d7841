"""Whether a history is whole for the model that gets it: tool calls with their results, reasoning sent back where it
was sent before, turns of another model.

Folded message by message, so that an append costs its own messages. Which history a request continues is lineage's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from otel_context_ledger import spelling
from otel_context_ledger.correctness.history import Step
from otel_context_ledger.model import UNKNOWN, Check, Findings
from otel_context_ledger.records import changed, quick

MAX_LISTED = 8
MAX_OPEN = 256


@quick
@dataclass(frozen=True, slots=True)
class State:
    """What the messages so far left open. `waiting` are ids of calls without a result yet, `unanswered` those that a
    later turn passed over, `orphans` ids of results whose call is not there; `reasoned` and `bare` count assistant
    tool-calling turns with and without reasoning, `dropped_at` is the first bare one after a reasoned one."""

    length: int = 0
    waiting: tuple[str, ...] = ()
    unanswered: tuple[str, ...] = ()
    orphans: tuple[str, ...] = ()
    reasoned: int = 0
    bare: int = 0
    dropped_at: int | None = None
    pending_reasoning: bool = False


def fold(state: State, steps: Iterable[Step]) -> State:
    """The state after more messages."""
    for step in steps:
        state = changed(_called(_answered(state, step), step), length=state.length + 1)
    return state


def _answered(state: State, step: Step) -> State:
    waiting, orphans = list(state.waiting), list(state.orphans)
    for result in step.results:
        if result.id in waiting:
            waiting.remove(result.id)
        elif result.id is not None and len(orphans) < MAX_LISTED:
            orphans.append(result.id)
    if step.role != "user" or step.compaction or not waiting:
        return changed(state, waiting=tuple(waiting), orphans=tuple(orphans))
    passed = (*state.unanswered, *waiting)[:MAX_LISTED]
    return changed(state, waiting=(), unanswered=passed, orphans=tuple(orphans))


def _called(state: State, step: Step) -> State:
    """Reasoning may come as an item of its own before the call (Responses)."""
    thought = state.pending_reasoning or step.reasoning
    if not step.calls:
        return changed(state, pending_reasoning=thought and step.role == "assistant")
    named = tuple(call.id for call in step.calls if call.id is not None)
    fell = state.dropped_at is None and not thought and state.reasoned > 0 and not state.waiting
    return changed(
        state,
        waiting=(*state.waiting, *named)[-MAX_OPEN:],
        reasoned=state.reasoned + thought,
        bare=state.bare + (not thought),
        dropped_at=state.length if fell else state.dropped_at,
        pending_reasoning=thought,
    )


def judge(state: State, whole: bool, replayed: bool, offset: int = 0) -> Check:
    """The verdict on a history. `whole`: all of it was sent, so that a result without its call is an orphan and not the
    continuation of what the provider keeps. `replayed`: the provider wants reasoning back with tool-calling turns.
    `offset` is the place of the first message in what was sent."""
    orphans = state.orphans if whole else ()
    broken = [f"result_without_call={spelling.name(name)}" for name in orphans]
    broken += [f"call_without_result={spelling.name(name)}" for name in state.unanswered]
    counts = (f"turns={state.reasoned + state.bare}",)
    if broken:
        kinds = tuple(dict.fromkeys(word.partition("=")[0] for word in broken))
        found = Findings(kinds, (*counts, f"broken={len(broken)}"), tuple(broken[:MAX_LISTED]))
        return Check("broken_tool_pair", found)
    if replayed and state.dropped_at is not None:
        where = f"message={state.dropped_at + offset}"
        return Check("reasoning_dropped", Findings((), (*counts, f"bare={state.bare}"), (where,)))
    if state.orphans:
        return Check(UNKNOWN, Findings((), counts, ("reason=history_at_provider",)))
    return Check("compatible", Findings((), counts))
