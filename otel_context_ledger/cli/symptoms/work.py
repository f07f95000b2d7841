"""Symptoms of work and money: what a success costs, what is added to what, and what a second try begins with."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources

from otel_context_ledger.accounts import Account
from otel_context_ledger.cli import checks
from otel_context_ledger.cli.calls import Call
from otel_context_ledger.cli.printing import money, plural
from otel_context_ledger.cli.symptoms.case import (
    LOST,
    MAX_LISTED,
    NO_SESSIONS,
    Case,
    Finding,
    clear,
    found,
    open_,
    outside,
)
from otel_context_ledger.outcomes import FAILURE, SUCCESS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

QUOTA_SURFACES = frozenset({"kimi_code"})
FEWEST = 4
FALLS, STAYS = 0.9, 0.98
# Advice that a session is to be left, with its history.
ANEW = frozenset({"new_session", "rebuild_context"})
_SAME = tomllib.loads(resources.files(__package__).joinpath("same_models.toml").read_text("utf-8"))["same"]
SAME: Mapping[str, str] = {name: model for model, names in _SAME.items() for name in names}


def cheaper_sessions(case: Case) -> Finding:
    """From the earlier to the later half of the tasks, a session became cheaper and a success did not."""
    decided = [one for one in case.books.accounts if one.outcome.word in (SUCCESS, FAILURE)]
    if len(decided) < FEWEST:
        return open_(f"tasks with an outcome: {len(decided)} of the {FEWEST} that it takes to compare halves")
    cut = next((one.task_id for one in decided if one.task_id in case.cut), None)
    if cut is not None:
        return outside("task", cut)
    if not all(one.sessions for one in decided):
        return open_("the sessions of every task that has an outcome")
    amounts = [one.sums.dollars for one in decided]
    if any(one.sums.partial or one.sums.quota for one in decided) or None in amounts:
        return open_("the dollars of every task that has an outcome: some are unknown or paid by quota")
    halves = decided[: len(decided) // 2], decided[len(decided) // 2 :]
    sessions = [_spent(half) / sum(len(one.sessions) for one in half) for half in halves]
    successes = [sum(one.outcome.word == SUCCESS for one in half) for half in halves]
    if not successes[0]:
        return open_("a success among the earlier tasks")
    per = [_spent(half) / n if n else None for half, n in zip(halves, successes, strict=True)]
    told = (
        f"cost per session {money(sessions[0])}, then {money(sessions[1])}; per successful task {money(per[0])}, then "
    )
    told += money(per[1]) if per[1] is not None else "no success"
    if sessions[1] <= FALLS * sessions[0] and (per[1] is None or per[1] >= STAYS * (per[0] or 0.0)):
        return found([f"{told} (the earlier and later {plural(len(halves[0]), 'task')})"])
    return clear(len(decided), len(case.books.accounts), "task", [told])


def _spent(accounts: Sequence[Account]) -> float:
    return sum(one.sums.dollars or 0.0 for one in accounts)


def mixed_money(case: Case) -> Finding:
    """Calls that a plan pays for stand in one sum with calls that cost dollars."""
    known = [call for call in case.calls if _paid(call)]
    if not known:
        return open_("how calls are paid: no line says quota or dollars")
    priced = [call for call in known if _plan(call) and call.number("cost.amount") is not None]
    mixed = [one for one in case.books.accounts if one.sums.quota and one.sums.quota < one.sums.calls]
    told = [f"{call.entry_id}: a call of {call.text('provider_surface')} with an amount of dollars" for call in priced]
    told += [
        f"task {one.task_id}: {plural(one.sums.quota, 'call')} paid by quota, "
        f"{plural(one.sums.calls - one.sums.quota, 'call')} {money(one.sums.dollars)}: the dollars are not what it took"
        for one in mixed
    ]
    if told:
        return found(told, [*priced, *_of(case, {one.task_id for one in mixed})])
    nobodys = [_plan(call) for call in known if call.text("task_id") is None]
    if any(nobodys) and not all(nobodys):
        return open_("tasks of the calls that a plan and of those that dollars paid for: none is named")
    if any(map(_plan, known)) and len(known) < len(case.calls):
        return open_(f"how {plural(len(case.calls) - len(known), 'call')} beside those of the plan are paid")
    return clear(len(known), len(case.calls))


def _paid(call: Call) -> bool:
    """Whether it is known what pays for a call: a gateway without a name may stand before a plan."""
    unit, surface = call.text("cost.unit"), call.text("provider_surface")
    return surface in QUOTA_SURFACES or (unit is not None and surface not in (None, "unknown"))


def _plan(call: Call) -> bool:
    return call.text("cost.unit") == "quota" or call.text("provider_surface") in QUOTA_SURFACES


def _of(case: Case, tasks: set[str | None]) -> list[Call]:
    return [call for call in case.calls if call.text("task_id") in tasks]


def many_names(case: Case) -> Finding:
    """One model was called under several names or in several products, whose figures stand apart."""
    named = [call for call in case.calls if call.text("model_id")]
    if not named:
        return open_("the model of any call")
    groups: dict[str, dict[tuple[str, str], list[Call]]] = {}
    for call in named:
        place = call.text("provider_surface") or "unknown", call.text("model_id") or ""
        groups.setdefault(_model(call), {}).setdefault(place, []).append(call)
    several = {model: places for model, places in groups.items() if len(places) > 1}
    if several:
        told = (f"{model}: {', '.join(_place(*place, calls) for place, calls in places.items())}"
                for model, places in several.items())  # fmt: skip
        return found(told, (calls[0] for places in several.values() for calls in places.values()))
    unserved = {_model(call) for call in named if not call.text("model_served")} - set(SAME.values())
    if len(groups) > 1 and unserved:
        return open_(f"which model served {', '.join(sorted(unserved))}: the answers do not say")
    return clear(len(named), len(case.calls))


def _model(call: Call) -> str:
    """The model behind a name: without the maker before it and the variant after it, and one of those that are known
    to be the same."""
    names = [call.text("model_id") or "", call.text("model_served") or ""]
    bare = [name.rsplit("/", 1)[-1].partition(":")[0].partition("[")[0].lower() for name in names if name]
    return next((SAME[name] for name in bare if name in SAME), bare[-1])


def _place(surface: str, model: str, calls: Sequence[Call]) -> str:
    return f"{model} on {surface} ({plural(len(calls), 'call')})"


def lost_retry(case: Case) -> Finding:
    """A later attempt began in a new session that shares nothing with the one before, and nothing told it to."""
    if not case.books.accounts:
        return open_("tasks: no call names one (task(…), CONTEXT_LEDGER_TASK_ID)")
    if not case.sessions():
        return open_(NO_SESSIONS)
    tried = {one.task_id for one in case.books.accounts if len(one.sessions) > 1}
    calls = [call for call in case.own if call.text("task_id") in tried]
    begun = [pair for sessions in _by_task(calls) for pair in _begun_again(sessions)]
    again = [pair for pair in begun if not _told_to(pair[1])]
    fresh = [pair for pair in again if pair[0].count("history_length") is not None]
    if fresh:
        return found((_restarted(*pair) for pair in fresh), (first for first, _ in fresh))
    if again:
        return open_(f"what {again[0][0].entry_id} was sent: a part of its history may be with the provider")
    if any(call.number("started_at") is None for call in calls):
        return open_("when each call of the tasks with more than one session began")
    cut = next((one.task_id for one in case.books.accounts if one.task_id in case.cut), None)
    if cut is not None:
        return outside("task", cut)
    every = len(case.books.accounts)
    left = [f"begun anew on purpose: {_anew(*pair)}" for pair in begun]
    return clear(every, every, "task", [f"with more than one session: {len(tried)}", *left[:MAX_LISTED]])


def _told_to(before: Call) -> bool:
    """Whether the session before had to be left: by our own advice, or for a constraint or summary that was lost."""
    return checks.advised(before) in ANEW or before.flag("summary_trusted") is False or _lost(before)


def _lost(call: Call) -> bool:
    return call.text("constraints_check") in LOST


def _anew(first: Call, before: Call) -> str:
    advice = checks.advised(before)
    lost = "constraints were lost" if _lost(before) else "the summary failed its validation"
    why = f"the last advice was {advice}" if advice in ANEW else lost
    return f"{first.text('session_id')} ({first.entry_id}); of {before.text('session_id')}, {why}"


def _by_task(calls: Sequence[Call]) -> Iterable[Mapping[str, Sequence[Call]]]:
    """For each task its calls by session."""
    found: dict[str | None, dict[str, list[Call]]] = {}
    for call in calls:
        if session := call.text("session_id"):
            found.setdefault(call.text("task_id"), {}).setdefault(session, []).append(call)
    return found.values()


def _begun_again(sessions: Mapping[str, Sequence[Call]]) -> Iterator[tuple[Call, Call]]:
    """The first calls of a task's sessions that began after another had ended and continue nothing, each with the last
    call before it."""
    ended: list[tuple[float, Call]] = []
    for calls in sessions.values():
        first, last = calls[0], calls[-1]
        begun = first.number("started_at")
        before = [one for at, one in ended if begun is not None and at <= begun]
        if before and _alone(first):
            yield first, before[-1]
        if last.closed is not None:
            ended.append((last.closed, last))


def _restarted(first: Call, before: Call) -> str:
    new = plural(first.count("history_length") or 0, "message")
    length = before.count("history_length")
    old = "nothing" if length is None else f"none of {plural(length, 'message')}"
    session = f"{first.text('session_id')} ({first.entry_id})"
    advised = checks.advised(before)
    after = f", whose last advice was {advised}" if advised else ""
    task = first.text("task_id")
    return f"task {task}: {session} begins with {new} and shares {old} of {before.text('session_id')}{after}"


def _alone(call: Call) -> bool:
    """A session's first call that continues nothing, by all that is known of it; a subagent's is meant to."""
    names = ("fork_of", "parent_session_id", "comparable_id", "summary_hash")
    return not any(call.text(name) for name in names)
