"""Whether a history is whole for the model that gets it: tool calls with their results, reasoning that is known to have
come with a call, turns that another model made.

Folded message by message, so that an append costs its own messages. Which history a request continues is lineage's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise

from otel_context_ledger import spelling
from otel_context_ledger.correctness.history import Step
from otel_context_ledger.model import UNKNOWN, Check, Findings
from otel_context_ledger.records import changed, quick

MAX_LISTED = 8
MAX_OPEN = 256
MAX_MODELS = 8
NOBODY: frozenset[str] = frozenset()


@quick
@dataclass(frozen=True, slots=True)
class State:
    """What the messages so far left open. `waiting` are ids of calls without a result yet, `unanswered` those that a
    later turn passed over, `orphans` ids of results whose call is not there. Of the turns that call tools, `reasoned`
    are sent with reasoning, `bare` without; `doubtful` of the bare ones may have had some, for nobody saw them come;
    `dropped_at` is the first that did have some. `thinkers` and `plain` are the ids of their calls."""

    length: int = 0
    waiting: tuple[str, ...] = ()
    unanswered: tuple[str, ...] = ()
    orphans: tuple[str, ...] = ()
    reasoned: int = 0
    bare: int = 0
    doubtful: int = 0
    dropped_at: int | None = None
    thinkers: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()
    pending_reasoning: bool = False
    resulted: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of calls before they are sent back, by their ids: those that came, or were sent before, with
    reasoning (`owed`) and those that came without (`free`)."""

    owed: AbstractSet[str] = NOBODY
    free: AbstractSet[str] = NOBODY


UNSEEN = Seen()


def fold(state: State, steps: Iterable[Step], seen: Seen = UNSEEN) -> State:
    """The state after more messages."""
    length = state.length
    for step in steps:
        # Most messages neither call nor answer.
        moves = step.calls or step.results or step.reasoning
        if moves or state.waiting or state.pending_reasoning or state.resulted:
            state = _called(_answered(state, step), step, seen, length)
        length += 1
    return state if length == state.length else changed(state, length=length)


def seen_before(state: State) -> Seen:
    """What a history tells of its calls to one that was made of it. An id of several calls tells nothing."""
    plain = frozenset(state.plain)
    return Seen(frozenset(state.thinkers) - plain, NOBODY if state.doubtful else plain)


def _answered(state: State, step: Step) -> State:
    """A result may come late (Responses takes items in any order, Anthropic merges messages of the user): a call is
    passed over as long as none came."""
    waiting, late, orphans = list(state.waiting), list(state.unanswered), list(state.orphans)
    for result in step.results:
        open_ = next((ids for ids in (waiting, late) if result.id in ids), None)
        if open_ is not None and result.id is not None:
            open_.remove(result.id)
        elif result.id is not None and len(orphans) < MAX_LISTED:
            orphans.append(result.id)
    over = not step.compaction and (step.role == "user" or (state.resulted and step.role == "assistant"))
    passed = (*late, *waiting)[:MAX_OPEN] if over else late
    return changed(
        state, waiting=() if over else tuple(waiting), unanswered=tuple(passed), orphans=tuple(orphans),
        resulted=bool(step.results),
    )  # fmt: skip


def _called(state: State, step: Step, seen: Seen, place: int) -> State:
    """Reasoning may come as an item of its own before the call (Responses)."""
    thought = state.pending_reasoning or step.reasoning
    if not step.calls:
        return changed(state, pending_reasoning=thought and step.role == "assistant")
    named = tuple(call.id for call in step.calls if call.id is not None)
    waiting = (*state.waiting, *named)[-MAX_OPEN:]
    if thought:
        thinkers = (*state.thinkers, *named)[-MAX_OPEN:]
        return changed(state, waiting=waiting, reasoned=state.reasoned + 1, thinkers=thinkers, pending_reasoning=True)
    fell = state.dropped_at is None and not seen.owed.isdisjoint(named)
    free = bool(named) and seen.free >= set(named)
    return changed(
        state, waiting=waiting, bare=state.bare + 1, doubtful=state.doubtful + (not free),
        dropped_at=place if fell else state.dropped_at, plain=(*state.plain, *named)[-MAX_OPEN:],
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Author:
    """A model with its turns in a history, and how many of them hold reasoning."""

    model: str
    turns: int = 0
    thoughts: int = 0


def credited(authors: tuple[Author, ...], model: str | None, steps: Sequence[Step]) -> tuple[Author, ...]:
    """The authors of a history with more messages, of which `model` made the assistant's. Items of Responses that
    follow each other are one turn."""
    roles = [step.role for step in steps]
    made = [step for step in steps if step.role == "assistant"]
    turns = sum(role == "assistant" != before for before, role in pairwise((None, *roles)))
    if model is None or not made:
        return authors
    before = next((one for one in authors if one.model == model), Author(model))
    after = Author(model, before.turns + turns, before.thoughts + sum(step.reasoning for step in made))
    return (*(one for one in authors if one.model != model), after)[-MAX_MODELS:]


@dataclass(frozen=True, slots=True)
class Ends:
    """What is known of where a history goes. `whole`: all of it was sent, so that a result without its call is an
    orphan and not the continuation of what the provider keeps. `replayed`: the provider wants reasoning back with
    tool-calling turns. `offset` is the place of the first message in what was sent; `others` are the models beside the
    one asked that made turns of it."""

    whole: bool = True
    replayed: bool = False
    offset: int = 0
    others: tuple[Author, ...] = ()


def judge(state: State, ends: Ends) -> Check:
    """The verdict on a history."""
    foreign = sum(one.turns for one in ends.others)
    detail = ("other_model",) if foreign else ()
    counts = (f"turns={state.reasoned + state.bare}", *([f"other_model={foreign}"] if foreign else []))
    broken = list(_broken(state, ends.whole))
    if broken:
        kinds = tuple(dict.fromkeys(word.partition("=")[0] for word in broken))
        found = Findings((*kinds, *detail), (*counts, f"broken={len(broken)}"), tuple(broken[:MAX_LISTED]))
        return Check("broken_tool_pair", found)
    if ends.replayed and state.dropped_at is not None:
        where = f"message={state.dropped_at + ends.offset}"
        return Check("reasoning_dropped", Findings(detail, (*counts, f"bare={state.bare}"), (where,)))
    reason = _doubt(state, ends)
    return Check(UNKNOWN if reason else "compatible", Findings(detail, counts, (f"reason={reason}",) if reason else ()))


def _broken(state: State, whole: bool) -> Iterator[str]:
    """Results without a call; calls that were passed over, or that wait while others have their results: no provider
    answers before all are there."""
    for name in state.orphans if whole else ():
        yield f"result_without_call={spelling.name(name)}"
    for name in (*state.unanswered, *(state.waiting if state.resulted else ())):
        yield f"call_without_result={spelling.name(name)}"


def _doubt(state: State, ends: Ends) -> str | None:
    if state.orphans:
        return "history_at_provider"
    if ends.replayed and state.doubtful and state.reasoned:
        return "reasoning_not_seen"
    return "reasoning_of_another_model" if any(one.thoughts for one in ends.others) else None
