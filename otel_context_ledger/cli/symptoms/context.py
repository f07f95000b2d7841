"""Symptoms of a context that was wrong: constraints, tools, files, and what compactions made of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from otel_context_ledger.accounts import Account
from otel_context_ledger.cli.calls import Call
from otel_context_ledger.cli.printing import plural, share, size
from otel_context_ledger.cli.symptoms.case import (
    LOST,
    Case,
    Finding,
    clear,
    found,
    hit,
    named,
    number,
    open_,
    reused,
    rounds,
    tells_of_compactions,
    verdict,
)
from otel_context_ledger.outcomes import FAILURE

NO_CONSTRAINTS = "verdicts on constraints: none was declared, or no request was examined"
_LOST_AT = re.compile(r"constraint_lost:(.+):lost_at=(\d{1,6})")
NO_COMPACTIONS = "compactions: these lines do not say whether there was one"
# What makes two contexts differ, by the fields of an entry.
PARTS = ("policy_hash", "tool_schema_hash", "tool_contract_hash", "model_id", "reasoning_effort", "summary_hash",
         "provider_surface", "client_version")  # fmt: skip
HASHES = frozenset({"policy_hash", "tool_schema_hash", "tool_contract_hash", "summary_hash"})
DELETED = ("deleted",)
BAD_TOOLS = frozenset({"invalid_call", "contract_changed"})


def lost_at_high_hits(case: Case) -> Finding:
    """A constraint is not in the context, or was violated, while nearly all of the prompt comes from the cache."""
    known = [call for call in case.own if verdict(call, "constraints_check") and hit(call) is not None]
    bad = [call for call in known if _lost(call) and (hit(call) or 0.0) >= case.limits.high_reuse]
    told = [account for account in case.books.accounts if "constraints" in account.outcome.evidence]
    broken = [account for account in told if _broken(account, case.limits.high_reuse)]
    if bad or broken:
        return found([*map(_violated, broken), *map(_gone, bad)], bad)
    if known or told:
        return clear(len(known), len(case.own), evidence=[f"tasks with a word on constraints: {len(told)}"])
    return open_(f"{NO_CONSTRAINTS}; and no outcome says whether they were kept")


def _lost(call: Call) -> bool:
    return verdict(call, "constraints_check") in LOST


def _broken(account: Account, high: float) -> bool:
    whole, cached = account.sums.input, account.sums.cached
    kept = account.outcome.evidence["constraints"]
    return not kept and bool(whole) and cached is not None and cached >= high * (whole or 0)


def _violated(account: Account) -> str:
    part = share(account.sums.cached, account.sums.input)
    return f"task {account.task_id}: constraints violated, by its outcome, and {part} of its tokens reused"


def _gone(call: Call) -> str:
    ids = named(call, "constraints.evidence", "lost", "negated", "revived")
    return (
        f"{call.entry_id}: constraints {call.text('constraints_check')} {', '.join(ids)}".rstrip() + f", {reused(call)}"
    )


def lost_in_large_window(case: Case) -> Finding:
    """A constraint is not in the context although the window has room for it."""
    known = [call for call in case.own if verdict(call, "constraints_check") and call.count("context_window")]
    if not known:
        return open_(f"{NO_CONSTRAINTS}; or the context window is not known")
    bad = [c for c in known if _lost(c) and (c.count("context_window") or 0) >= case.limits.large_window]
    if bad:
        return found((f"{_gone(call)}; {_room(call)}" for call in bad), bad)
    return clear(len(known), len(case.own))


def _room(call: Call) -> str:
    whole, window = call.count("input_tokens"), call.count("context_window")
    return f"{share(whole, window)} of a window of {window or 0:,} tokens in use"


def other_contexts(case: Case) -> Finding:
    """Sessions of one agent began to work at one state of the repository with contexts that differ."""
    first: dict[tuple[str | None, str, str | None], dict[str, Call]] = {}
    for session, calls in case.sessions().items():
        for call in calls:
            snapshot = call.text("repo_snapshot") or ""
            if snapshot.startswith("git:") and snapshot != "git:unborn":
                key = call.text("agent"), snapshot, call.text("digest_scheme")
                first.setdefault(key, {}).setdefault(session, call)
    pairs = [pair for calls in first.values() for pair in combinations(calls.values(), 2) if not _related(*pair)]
    if not pairs:
        return open_("two sessions of one agent at the same known state of the repository")
    differing = [(a, b, parts) for a, b in pairs if (parts := list(_differing(a, b)))]
    if differing:
        told = (f"{a.text('session_id')} ({a.entry_id}) and {b.text('session_id')} ({b.entry_id}): {', '.join(parts)}"
                for a, b, parts in differing)  # fmt: skip
        return found(told, (call for a, b, _ in differing for call in (a, b)))
    return clear(len(pairs), len(pairs), "pair")


def _related(a: Call, b: Call) -> bool:
    """One of them is a subagent's or a fork's, which has a context of its own by intent."""
    return any(call.text("parent_session_id") for call in (a, b))


def _differing(a: Call, b: Call) -> Iterator[str]:
    for part in PARTS:
        one, other = a.text(part), b.text(part)
        if one is not None and other is not None and one != other:
            yield f"another {part}" if part in HASHES else f"{part} {one} and {other}"


def tool_errors(case: Case) -> Finding:
    """A call of a tool did not fit, or what a tool demands and may do is not what the model was shown."""
    known = [call for call in case.own if verdict(call, "tools_check")]
    if not known:
        return open_("what is live: tool_registry(…) or tool_contracts(…) was never called, or no tool was sent")
    bad = [c for c in known if c.text("tools_check") in BAD_TOOLS or "breaking" in (c.words("tools.detail") or ())]
    if bad:
        return found(map(_tools, bad), bad)
    return clear(len(known), len(case.own))


def _tools(call: Call) -> str:
    words = [w for w in call.words("tools.evidence") or () if w.startswith(("call=", "contract=", "drift="))]
    return f"{call.entry_id}: {call.text('tools_check')} ({'; '.join(words[:2])}), {reused(call)}"


def promoted_goal(case: Case) -> Finding:
    """A summary tells of open work as done, with nothing to show for it."""
    if not tells_of_compactions(case):
        return open_(NO_COMPACTIONS)
    wrong = [(event, word) for event in case.compactions for word in _promoted(event)]
    if wrong:
        return found((f"{_event(event)}: {word}" for event, word in wrong), _after(case, [event for event, _ in wrong]))
    audited = [event for event in case.compactions if event.text("compaction.validator_result") in ("pass", "fail")]
    seen = max(len(case.compactions), sum(max(rounds(calls)) for calls in case.sessions().values()))
    if seen and not audited:
        return open_(
            f"an audit of the {plural(seen, 'compaction')}: no goal or todo was declared, or none was readable"
        )
    return clear(len(audited), seen, "compaction")


def _promoted(event: Call) -> Iterator[str]:
    for word in event.words("compaction.evidence") or ():
        name, _, told = word.partition("state_mismatch:")
        if not name and "->done" in told:
            yield told


def _event(event: Call) -> str:
    return event.text("compaction_event") or event.place or "a compaction"


def _after(case: Case, events: Iterable[Call]) -> list[Call]:
    names = {event.text("compaction_event") for event in events} - {None}
    return [call for call in case.calls if call.text("compaction_event") in names]


def deleted_files(case: Case) -> Finding:
    """The history shows files that are no longer there."""
    known = [call for call in case.own if verdict(call, "repo_check")]
    if not known:
        return open_("verdicts on the repository: no read of a file was recognised, or there is no repository")
    gone = [(call, n) for call in known if (n := number(call, "repository.counts", *DELETED))]
    if gone:
        told = (f"{c.entry_id}: {plural(n, 'file')} deleted that the history shows, {reused(c)}" for c, n in gone)
        return found(told, (call for call, _ in gone))
    stale = [call for call in known if call.text("repo_check") == "stale"]
    if stale and not any(number(call, "repository.counts", *DELETED) == 0 for call in known):
        return open_("whether the stale files were changed or deleted", [f"{len(stale):,} calls with stale files"])
    return clear(len(known), len(case.own))


def worn_away(case: Case) -> Finding:
    """A constraint survived a compaction and is lost after a later one."""
    sessions = {name: calls for name, calls in case.sessions().items() if max(rounds(calls)) > 1}
    if not sessions and not tells_of_compactions(case):
        return open_(NO_COMPACTIONS)
    audited = [(event, word) for event in case.compactions for word in _eroded(event)]
    worn = [row for name, calls in sessions.items() for row in _worn(name, calls)]
    if worn or audited:
        told = (*(f"{_event(event)}: {word}" for event, word in audited), *(text for text, _ in worn))
        return found(told, (*_after(case, [event for event, _ in audited]), *(call for _, call in worn)))
    if sessions and not any(verdict(call, "constraints_check") for calls in sessions.values() for call in calls):
        return open_(NO_CONSTRAINTS)
    return clear(len(sessions), len(case.sessions()), "session", ["sessions compacted more than once are looked at"])


def _eroded(event: Call) -> Iterator[str]:
    """What a compaction's audit says of constraints that had survived earlier ones."""
    for word in event.words("compaction.evidence") or ():
        lost = _LOST_AT.fullmatch(word)
        if lost and int(lost[2]) > 1:
            yield f"{lost[1]} lost at compaction {lost[2]}"


def _worn(session: str, calls: Sequence[Call]) -> Iterator[tuple[str, Call]]:
    """The constraints that a session lost after its second compaction or a later one, having held them until then."""
    told: set[str] = set()
    judged: list[tuple[int | None, set[str]]] = []
    for call, compactions in zip(calls, rounds(calls), strict=True):
        if verdict(call, "constraints_check") is None:
            continue
        declared = number(call, "constraints.counts", "declared")
        gone = named(call, "constraints.evidence", "lost", "negated")
        for name in sorted({*gone} - told):
            if compactions > 1 and any(known == declared and name not in bad for known, bad in judged):
                yield f"{session}: {name} lost at compaction {compactions}, held before it ({call.entry_id})", call
        told |= {*gone}
        judged.append((declared, {*gone, *named(call, "constraints.evidence", "uncertain")}))


def patch_from_summary(case: Case) -> Finding:
    """A task that failed was worked on with a summary that had lost something."""
    failed = [account for account in case.books.accounts if account.outcome.word == FAILURE]
    if not case.books.accounts or all(account.outcome.word == "unknown" for account in case.books.accounts):
        return open_("outcomes: no task has one (context-ledger outcome TASK --tests failed)")
    if not failed:
        return clear(len(case.books.accounts), len(case.books.accounts), "task")
    bad = {event.text("compaction.summary_hash"): event for event in case.compactions if _mistrusted(event)} or {}
    bad.pop(None, None)
    chain = [row for account in failed for row in _inherited(case, account, bad)]
    if chain:
        return found((text for text, _ in chain), (call for _, call in chain))
    ids = {account.task_id for account in failed}
    late = [call for calls in case.sessions().values() for call, n in zip(calls, rounds(calls), strict=True) if n]
    unaudited = [call for call in late if call.text("task_id") in ids and call.flag("summary_trusted") is None]
    if unaudited:
        return open_(f"an audit of the summaries that failed tasks went by ({unaudited[0].entry_id})")
    return clear(len(failed), len(case.books.accounts), "task", ["tasks that failed are looked at"])


def _mistrusted(event: Call) -> bool:
    return event.text("compaction.validator_result") == "fail"


def _inherited(case: Case, account: Account, bad: dict[str | None, Call]) -> Iterator[tuple[str, Call]]:
    """The first call of a failed task that carries each summary that is not to be trusted."""
    why = ", ".join(name for name, value in account.outcome.evidence.items() if value == (name == "rolled_back"))
    seen: set[str | None] = set()
    for call in case.own:
        digest = call.text("summary_hash")
        if call.text("task_id") != account.task_id or digest in seen:
            continue
        event = bad.get(digest)
        if event is None and call.flag("summary_trusted") is not False:
            continue
        seen.add(digest)
        lost = ", ".join(event.words("compaction.lost") or ()) if event else ""
        parent = event.text("compaction.parent_summary_hash") if event else None
        yield (
            (
                f"task {account.task_id} failed{f' ({why})' if why else ''}; {call.entry_id} went by summary "
                f"{(digest or 'unknown')[:13]}… that failed its validation{f', without {lost}' if lost else ''}"
                f"{f', made from {parent[:13]}…' if parent else ''}"
            ),
            call,
        )


def repeated_reads(case: Case) -> Finding:
    """Bytes of files came into the history more than once at the same state."""
    known = [(call, n) for call in case.own if (n := call.count("repeated_read_bytes")) is not None]
    if not known:
        return open_("bytes read again: no read of a file was recognised")
    again = sorted(((n, call.entry_id, call) for call, n in known if n), reverse=True)
    whole = sum(n for n, _, _ in again)
    if whole >= case.limits.repeated_bytes:
        head = f"{size(whole)} read again in {plural(len(again), 'call')}"
        return found([head, *(f"{name}: {size(n)}" for n, name, _ in again)], (call for _, _, call in again))
    return clear(len(known), len(case.own), evidence=[f"{size(whole)} read again"])
