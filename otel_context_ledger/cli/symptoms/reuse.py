"""Symptoms of reuse: prompts that were read anew, and what it took until an answer began."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from statistics import median

from otel_context_ledger.cli import checks
from otel_context_ledger.cli.calls import Call
from otel_context_ledger.cli.printing import money, plural, span
from otel_context_ledger.cli.symptoms.case import NO_SESSIONS, Case, Finding, causes, clear, found, hit, open_, paired

# Causes that are a change of what was sent or where to, and not the passing of time or the provider's doing.
SWITCHES = frozenset({
    "model_changed", "effort_changed", "settings_changed", "client_version_changed", "cache_key_changed",
    "route_changed", "policy_changed", "volatile_prefix", "tools_changed", "tools_reordered",
    "tools_serialization_changed", "history_compacted", "history_rewritten", "retention_changed",
})  # fmt: skip
NO_CAUSE = "no cause recorded"
UNEXPLAINED = frozenset({"provider_unexplained", "previous_unknown", "not_reported", NO_CAUSE})
LONG_PREFIX, SIGNIFICANT = 2_000, 0.05
NO_COUNTS = "cached tokens: no call's provider reported them"
FEWEST = 5
SLOWER = 1.5
NEAR = 2.0
MAX_LIKE = 50


def after_model_switch(case: Case) -> Finding:
    """A long prefix was read anew by the first call to another model within a session."""
    switched = list(_switches(case))
    hurt = [pair for pair in switched if hit(pair[1]) is not None and _long(pair[1])]
    if hurt:
        return found((_switch(old, call) for old, call in hurt), (call for _, call in hurt))
    if any(hit(call) is None for _, call in switched):
        return open_("cached tokens of the calls that follow a change of the model")
    if any(call.text("model_id") is None for call in case.own):
        return open_("the model of every call")
    own = len(case.own)
    told = [f"changes of the model within a session: {len(switched)}"]
    return clear(own, own, evidence=told) if case.sessions() else open_(NO_SESSIONS)


def _switches(case: Case) -> Iterator[tuple[Call, Call]]:
    by_id = {call.entry_id: call for call in case.calls}
    for calls in case.sessions().values():
        for before, call in pairwise(calls):
            against = by_id.get(call.text("comparable_id") or "", before)
            models = against.text("model_id"), call.text("model_id")
            if None not in models and (models[0] != models[1] or "model_changed" in causes(call)):
                yield against, call


def _long(call: Call) -> bool:
    """Whether what was read anew is worth telling: what makes a miss significant."""
    lost = _lost(call)
    return lost >= LONG_PREFIX and lost > SIGNIFICANT * (call.count("input_tokens") or 0)


def _lost(call: Call) -> int:
    """Tokens that could have been reused; where that is not known, those that were not."""
    known = call.count("avoidable_tokens"), call.count("cache_miss_tokens")
    return next((number for number in known if number is not None), 0)


def _switch(old: Call, call: Call) -> str:
    cost = call.number("cost_avoidable")
    paid = f", {money(cost, call.text('cost.currency'))} of it avoidable" if cost else ""
    models = f"{old.text('model_id')} to {call.text('model_id')}"
    return f"{call.entry_id}: {models} in one session, {_lost(call):,} tokens read anew{paid} ({paired(call)})"


def which_switch(case: Case) -> Finding:
    """Each change that made a prompt be read anew, the dearest first."""
    measured = [call for call in case.own if hit(call) is not None]
    if not measured:
        return open_(NO_COUNTS)
    missed = [call for call in measured if _significant(call)]
    by_cause: dict[str, list[Call]] = {}
    for call in missed:
        by_cause.setdefault(call.text("miss_cause") or NO_CAUSE, []).append(call)
    blamed = {cause: calls for cause, calls in by_cause.items() if cause in SWITCHES}
    if blamed:
        return found(_ranked(blamed), (call for calls in blamed.values() for call in calls))
    if UNEXPLAINED & by_cause.keys():
        return open_(f"a cause that a change explains: {', '.join(_ranked(by_cause))}")
    return clear(len(measured), len(case.own))


def _significant(call: Call) -> bool:
    """Whether a miss is worth telling, by its line's own word, else by its counts."""
    own = call.flag("miss_significant")
    return own if own is not None else bool(call.count("avoidable_tokens")) and _long(call)


def _ranked(by_cause: Mapping[str, list[Call]]) -> list[str]:
    sums = sorted(
        ((sum(map(_lost, calls)), cause, calls) for cause, calls in by_cause.items()), key=lambda row: -row[0]
    )
    return [
        f"{cause}: {lost:,} tokens read anew in {plural(len(calls), 'call')} ({_first(calls)}; {checks.beside(calls)})"
        for lost, cause, calls in sums
    ]


def _first(calls: list[Call]) -> str:
    return ", ".join([call.entry_id for call in calls[:3]] + (["…"] if len(calls) > 3 else []))


def slow_large_window(case: Case) -> Finding:
    """Of one surface, prompts that fit a smaller window began to be answered later in the larger one."""
    timed = [call for call in case.own if call.number("time_to_first_token") and call.count("context_window")]
    timed = [call for call in timed if call.count("input_tokens")]
    if not timed:
        return open_("times to the first token: no call streamed, or their windows are not known")
    pairs = {
        surface: list(_matched(list(calls))) for surface, calls in groupby(sorted(timed, key=_surface), key=_surface)
    }
    enough = {surface: rows for surface, rows in pairs.items() if len(rows) >= FEWEST}
    slow = {surface: rows for surface, rows in enough.items() if _median(rows, 1) >= SLOWER * _median(rows, 2)}
    if slow:
        return found((_slow(*row) for row in slow.items()), (call for rows in slow.values() for call, _, _ in rows))
    compared = sum(map(len, pairs.values()))
    if not enough:
        return open_(f"calls of like prompts in two windows of one surface: {compared} of the {FEWEST} that it takes")
    return clear(compared, len(timed))


def _median(rows: Sequence[tuple[Call, float, float]], at: int) -> float:
    return median(row[at] for row in rows)  # type: ignore[type-var,return-value]


def _slow(surface: str, rows: Sequence[tuple[Call, float, float]]) -> str:
    return (
        f"{surface}: {span(_median(rows, 1))} instead of {span(_median(rows, 2))} to the first token (medians of "
        f"{len(rows)} prompts that fit the smaller window, against ones of like size in it)"
    )


def _surface(call: Call) -> str:
    return call.text("provider_surface") or "unknown"


def _matched(calls: list[Call]) -> Iterator[tuple[Call, float, float]]:
    """Calls in the largest window whose prompt fits the smallest, each with its time and the median time of calls in
    the smallest window with as large a prompt and the same outcome of the cache."""
    windows = {call.count("context_window") or 0 for call in calls}
    small, large = min(windows), max(windows)
    if small == large:
        return
    others: dict[str | None, list[tuple[int, float]]] = {}
    for call in calls:
        if call.count("context_window") == small:
            others.setdefault(call.text("cache_outcome"), []).append(_timed(call))
    others = {outcome: sorted(rows) for outcome, rows in others.items()}
    for call in calls:
        size, took = _timed(call)
        if call.count("context_window") == large and size <= small:
            like = _like(size, others.get(call.text("cache_outcome"), []))
            if like:
                yield call, took, median(like)


def _timed(call: Call) -> tuple[int, float]:
    return call.count("input_tokens") or 0, call.number("time_to_first_token") or 0.0


def _like(size: int, rows: Sequence[tuple[int, float]]) -> list[float]:
    """The times of prompts of about this size; of many those that are next to it."""
    at = bisect_left(rows, (size, 0.0))
    near = rows[max(0, at - MAX_LIKE) : at + MAX_LIKE]
    return [took for other, took in near if max(other, size) <= NEAR * min(other, size)]
