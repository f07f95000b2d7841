"""Symptoms of a context that was wrong: constraints, tools, files, and what compactions made of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice

from otel_context_ledger.cli.calls import Call
from otel_context_ledger.cli.printing import plural, share, size
from otel_context_ledger.cli.symptoms.case import (
    LOST,
    MAX_LISTED,
    NO_SESSIONS,
    Case,
    Finding,
    Work,
    causes,
    clear,
    found,
    hit,
    named,
    number,
    open_,
    outside,
    reused,
    rounds,
    sure,
    tells_of_compactions,
    verdict,
)
from otel_context_ledger.outcomes import FAILURE, SUCCESS

NO_CONSTRAINTS = "verdicts on constraints: none was declared, or no request was examined"
_LOST_AT = re.compile(r"constraint_lost:(.+):lost_at=(\d{1,6})")
NO_COMPACTIONS = "compactions: these lines do not say whether there was one"
# What makes two contexts differ, by the fields of an entry.
PARTS = ("policy_hash", "tool_schema_hash", "tool_contract_hash", "model_id", "reasoning_effort", "summary_hash",
         "provider_surface", "client_version")  # fmt: skip
# Without these nobody can say whether two contexts are the same.
TELLING = ("policy_hash", "model_id")
MAX_CONTEXTS = 64
HASHES = frozenset({"policy_hash", "tool_schema_hash", "tool_contract_hash", "summary_hash"})
DELETED, MISMATCH = ("deleted",), "state_mismatch"
# A kind of compaction that shortens what tools said and makes no summary.
MICRO = "micro"
BAD_TOOLS = frozenset({"invalid_call", "contract_changed"})


def lost_at_high_hits(case: Case) -> Finding:
    """A constraint is not in the context, or was violated, while nearly all of the prompt comes from the cache."""
    known = [call for call in case.own if sure(call, "constraints_check") and hit(call) is not None]
    bad = [call for call in known if _lost(call) and (hit(call) or 0.0) >= case.limits.high_reuse]
    told = [work for work in case.told() if "constraints" in work.outcome.evidence]
    violated = [work for work in told if not work.outcome.evidence["constraints"]]
    broken = [work for work in violated if (_reuse(work) or 0.0) >= case.limits.high_reuse]
    if bad or broken:
        return found([*map(_violated, broken), *map(_gone, bad)], bad)
    dark = [work.name for work in violated if _reuse(work) is None]
    if dark:
        return open_(f"cached tokens of what violated constraints, by its outcome: {', '.join(dark[:MAX_LISTED])}")
    if known:
        return clear(len(known), len(case.own), evidence=[f"outcomes with a word on constraints: {len(told)}"])
    if told and not violated:
        return clear(len(told), len(case.told()), "outcome", ["those with a word on constraints are looked at"])
    return open_(f"{NO_CONSTRAINTS}; and no outcome says that they were kept")


def _lost(call: Call) -> bool:
    return verdict(call, "constraints_check") in LOST


def _reuse(work: Work) -> float | None:
    """The share of its prompts that was read from the cache."""
    whole, cached = work.sums.input, work.sums.cached
    return cached / whole if whole and cached is not None else None


def _violated(work: Work) -> str:
    part = share(work.sums.cached, work.sums.input)
    return f"{work.name}: constraints violated, by its outcome, and {part} of its tokens reused"


def _gone(call: Call) -> str:
    ids = named(call, "constraints.evidence", "lost", "negated", "revived")
    return (
        f"{call.entry_id}: constraints {call.text('constraints_check')} {', '.join(ids)}".rstrip() + f", {reused(call)}"
    )


def lost_in_large_window(case: Case) -> Finding:
    """A constraint is not in the context although the window has room for it."""
    known = [call for call in case.own if sure(call, "constraints_check") and call.count("context_window")]
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
    together = [pair for calls in first.values() for pair in _apart(calls.values())]
    pairs = [pair for pair in together if all(call.text(part) for call in pair for part in TELLING)]
    if not pairs:
        return open_("two sessions of one agent at the same known state of the repository")
    differing = [(a, b, parts) for a, b in pairs if (parts := list(_differing(a, b)))]
    if differing:
        told = (f"{a.text('session_id')} ({a.entry_id}) and {b.text('session_id')} ({b.entry_id}): {', '.join(parts)}"
                for a, b, parts in differing)  # fmt: skip
        return found(told, (call for a, b, _ in differing for call in (a, b)))
    return clear(len(pairs), len(together), "pair")


def _apart(calls: Iterable[Call]) -> Iterator[tuple[Call, Call]]:
    """Pairs of sessions; of those with the same context the first two stand for all. A subagent's or a fork's has a
    context of its own by intent."""
    alike: dict[tuple[str | None, ...], list[Call]] = {}
    for call in calls:
        if not call.text("parent_session_id"):
            alike.setdefault(tuple(map(call.text, PARTS)), []).append(call)
    yield from ((group[0], group[1]) for group in alike.values() if len(group) > 1)
    yield from combinations([group[0] for group in islice(alike.values(), MAX_CONTEXTS)], 2)


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
    dark = [call for call in known if call.text("tools_check") == "drift" and not call.words("tools.detail")]
    if dark:
        return open_(f"how far the tools drifted ({dark[0].entry_id})")
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
    audited = [event for event in case.compactions if event.count("compaction.work_judged")]
    dark = [event for event in case.compactions if MISMATCH in (event.words("compaction.symptoms") or ())]
    if any(event.words("compaction.evidence") is None for event in dark):
        return open_("what the summary says of work otherwise than what was known of it")
    seen = _summaries(case)
    if seen > len(audited):
        some = f"{seen - len(audited):,} of " if audited else ""
        why = "no goal or todo was declared, or no summary was readable"
        return open_(f"an audit of {some}the {plural(seen, 'compaction')}: {why}")
    return clear(len(audited), seen, "compaction")


def _summaries(case: Case) -> int:
    """How many summaries were made: by lines of compactions, else by what calls build on."""
    if case.compactions:
        return sum(map(_summarised, case.compactions))
    return sum(max(rounds(calls)) for calls in case.sessions().values())


def _summarised(event: Call) -> bool:
    return event.text("compaction.kind") != MICRO and event.text("compaction.outcome") in (None, "done")


def _promoted(event: Call) -> Iterator[str]:
    for word in event.words("compaction.evidence") or ():
        name, _, told = word.partition(f"{MISMATCH}:")
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
    dark = [call for call in stale if number(call, "repository.counts", *DELETED) is None]
    if dark:
        return open_(
            "whether the stale files were changed or deleted", [f"{plural(len(dark), 'call')} with stale files"]
        )
    return clear(len(known), len(case.own))


def worn_away(case: Case) -> Finding:
    """A constraint survived a compaction and is lost after a later one."""
    if not tells_of_compactions(case) and not any(map(_seen_compacted, case.calls)):
        return open_(NO_COMPACTIONS)
    every = case.sessions()
    if not every:
        return open_(NO_SESSIONS)
    sessions = {name: calls for name, calls in every.items() if max(rounds(calls)) > 1}
    audited = [(event, word) for event in case.compactions for word in _eroded(event)]
    worn = [row for name, calls in sessions.items() for row in _worn(name, calls)]
    if worn or audited:
        told = (*(f"{_event(event)}: {word}" for event, word in audited), *(text for text, _ in worn))
        return found(told, (*_after(case, [event for event, _ in audited]), *(call for _, call in worn)))
    cut = next((name for name, calls in every.items() if name in case.cut and _lost_after_one(calls)), None)
    if cut is not None:
        return outside("session", cut)
    dark = [name for name, calls in sessions.items() if not _judged(calls)]
    if dark and len(dark) == len(sessions):
        return open_(NO_CONSTRAINTS)
    nameless = [where for where in (*map(_nameless, case.compactions), *map(_nameless, case.own)) if where]
    if nameless:
        return open_(f"which constraint was lost, and when ({nameless[0]})")
    told_of = f"compacted more than once: {len(sessions)}" + (f", {len(dark)} of them not judged" if dark else "")
    return clear(len(every) - len(dark), len(every), "session", [told_of])


def _seen_compacted(call: Call) -> bool:
    return "history_compacted" in causes(call)


def _lost_after_one(calls: Sequence[Call]) -> bool:
    """Whether a constraint is lost after a compaction, which may be a later one than it seems."""
    return any(n and _lost(call) for call, n in zip(calls, rounds(calls), strict=True))


def _judged(calls: Sequence[Call]) -> bool:
    """Whether it is known what was held after the second compaction of a session."""
    return any(n > 1 and verdict(call, "constraints_check") for call, n in zip(calls, rounds(calls), strict=True))


def _nameless(line: Call) -> str | None:
    """Where a line says that a constraint was lost and not which, or at which compaction."""
    if line.words("compaction.lost"):
        told = any(map(_LOST_AT.fullmatch, line.words("compaction.evidence") or ()))
        return None if told or line.flag("settled") is False else _event(line)
    lost = verdict(line, "constraints_check") == "lost"
    return line.entry_id if lost and not named(line, "constraints.evidence", "lost", "negated") else None


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
    """What failed, a task or one attempt at it, was worked on with a summary that had lost something."""
    decided = [work for work in case.told() if work.outcome.word in (SUCCESS, FAILURE)]
    if not decided:
        return open_("outcomes: no task has one (context-ledger outcome TASK --tests failed)")
    failed = [work for work in decided if work.outcome.word == FAILURE]
    bad = {event.text("compaction.summary_hash"): event for event in case.compactions if _mistrusted(event)}
    chain = [row for work in failed for row in _inherited(case, work, bad)]
    if chain:
        return found((text for text, _ in chain), (call for _, call in chain))
    if failed and not tells_of_compactions(case):
        return open_(NO_COMPACTIONS)
    cut = next((work.task_id for work in failed if work.task_id in case.cut), None)
    if cut is not None:
        return outside("task", cut)
    nobodys = [work.name for work in failed if not work.sums.calls]
    if nobodys:
        return open_(f"which calls were made for {nobodys[0]}")
    late = [call for calls in case.sessions().values() for call, n in zip(calls, rounds(calls), strict=True) if n]
    unaudited = [c for c in late if c.flag("summary_trusted") is None and any(work.has(c) for work in failed)]
    if unaudited:
        return open_(f"an audit of the summaries that failed tasks went by ({unaudited[0].entry_id})")
    return clear(len(decided), len(case.told()), "outcome", [f"failures among them: {len(failed)}"])


def _mistrusted(event: Call) -> bool:
    return event.text("compaction.validator_result") == "fail" and event.text("compaction.summary_hash") is not None


def _inherited(case: Case, work: Work, bad: Mapping[str | None, Call]) -> Iterator[tuple[str, Call]]:
    """The first call of failed work that carries each summary that is not to be trusted."""
    evidence = work.outcome.evidence
    why = ", ".join(name for name, value in evidence.items() if value == (name == "rolled_back"))
    seen: set[str | None] = set()
    for call in filter(work.has, case.own):
        digest = call.text("summary_hash")
        event = bad.get(digest)
        if digest in seen or (event is None and call.flag("summary_trusted") is not False):
            continue
        seen.add(digest)
        yield f"{work.name}: failed{f' ({why})' if why else ''}; {_went_by(call, event)}", call


def _went_by(call: Call, event: Call | None) -> str:
    lost = ", ".join(event.words("compaction.lost") or ()) if event else ""
    parent = event.text("compaction.parent_summary_hash") if event else None
    told = f", without {lost}" if lost else ""
    told += f", made from {parent[:13]}…" if parent else ""
    digest = (call.text("summary_hash") or "unknown")[:13]
    return f"{call.entry_id} went by summary {digest}… that failed its validation{told}"


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
