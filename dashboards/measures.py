"""Owns what boards and alerts measure, each quantity once: `view` says over what time and of whom."""

from __future__ import annotations

from collections.abc import Sequence

from otel_context_ledger import semconv as s
from otel_context_ledger.model import RIGHT, UNJUDGED

from .promql import AllBut, Picks, View, counted, either, label, share

# What was looked at and could not be judged is in neither number of a ratio, and has a panel of its own.
JUDGED = AllBut(UNJUDGED)
WRONG = AllBut((*dict.fromkeys(RIGHT.values()), *UNJUDGED))
# A call that failed has no usage to report.
ANSWERED: Picks = {s.ERROR_TYPE: ("",)}
SUCCESS: Picks = {s.CONTEXT_LEDGER_TASK_OUTCOME: ("success",)}
DECIDED: Picks = {s.CONTEXT_LEDGER_TASK_OUTCOME: ("success", "failure")}
UNEXPLAINED = ("provider_unexplained", "previous_unknown", "not_reported")
REPORTED = ("cache_read", "cache_write", "uncached")
PER_CAUSE = (s.GEN_AI_AGENT_NAME, s.GEN_AI_REQUEST_MODEL, s.CONTEXT_LEDGER_MISS_CAUSE)
# Neither the program did it nor a pause: whoever runs the agent cannot find it in what was sent.
FOREIGN = ("route_changed", "provider_unexplained")
# The beginning of what was sent is not what it was, or lacks its marker: whoever writes the agent can mend it.
PREFIX = (
    "model_changed", "effort_changed", "settings_changed", "client_version_changed", "cache_key_changed",
    "policy_changed", "volatile_prefix", "tools_changed", "tools_reordered", "tools_serialization_changed",
    "history_rewritten", "cache_breakpoint_missing",
)  # fmt: skip


def read_share(view: View) -> str:
    """Share of the input tokens that were read from the cache, of those whose reuse was reported."""
    source = s.CONTEXT_LEDGER_TOKEN_SOURCE
    return share(
        view.total(s.METRIC_INPUT_TOKENS, {source: ("cache_read",)}),
        view.total(s.METRIC_INPUT_TOKENS, {source: REPORTED}),
    )


def captured(view: View) -> str:
    """Share of the tokens that were in the cache and sent again that were read from it: the rest was missed."""
    read = view.total(s.METRIC_INPUT_TOKENS, {s.CONTEXT_LEDGER_TOKEN_SOURCE: ("cache_read",)})
    return share(read, either(read, view.total(s.METRIC_MISS_TOKENS)))


def saved(view: View) -> str:
    """Share of the price without a cache that was not paid; below 0 the cache costs more than it saves."""
    return f"1 - {share(view.total(s.METRIC_COST), view.total(s.METRIC_COST_WITHOUT_CACHE))}"


def missed(view: View) -> str:
    """Tokens that could have been read from the cache and were not; 0 where there were calls and none of it."""
    return counted(view.total(s.METRIC_MISS_TOKENS), view.total(s.METRIC_CALLS))


def explained(view: View) -> str:
    """Share of the missed tokens whose cause is known: neither the provider's secret nor the unknown past of a call."""
    known = {s.CONTEXT_LEDGER_MISS_CAUSE: AllBut(UNEXPLAINED)}
    return share(view.total(s.METRIC_MISS_TOKENS, known), view.total(s.METRIC_MISS_TOKENS))


def checked_right(view: View, *pillars: str) -> str:
    """Share of the judged checks of these pillars (all of them where none is named) that found the context right; for
    constraints this is recall."""
    right = dict.fromkeys(RIGHT[pillar] for pillar in pillars or RIGHT)
    return share(_checks(view, pillars, tuple(right)), _checks(view, pillars, JUDGED))


def found_wrong(view: View) -> str:
    """How many checks found the context wrong; 0 where some could be judged and none did."""
    return counted(_checks(view, (), WRONG), _checks(view, (), JUDGED))


def lost(view: View) -> str:
    """How many checks found a constraint lost; 0 where some could be judged and none did."""
    return counted(_checks(view, ("constraints",), ("lost",)), _checks(view, ("constraints",), JUDGED))


def judged(view: View) -> str:
    """Share of the checks that could be judged at all."""
    return share(_checks(view, (), JUDGED), _checks(view, (), ()))


def reported(view: View) -> str:
    """Share of the answered calls of which the provider told how much was reused."""
    told = {s.CONTEXT_LEDGER_CACHE_OUTCOME: AllBut(("unknown",)), **ANSWERED}
    return share(view.total(s.METRIC_CALLS, told), answered(view))


def answered(view: View) -> str:
    """How many calls had an answer."""
    return view.total(s.METRIC_CALLS, ANSWERED)


def succeeded(view: View) -> str:
    """Share of the decided tasks that were a success."""
    return share(view.total(s.METRIC_TASKS, SUCCESS), decided(view))


def ends_known(view: View) -> str:
    """Share of the tasks that were told of whose end is known."""
    return share(decided(view), view.total(s.METRIC_TASKS))


def compacted_to(view: View) -> str:
    """Share of the prompt that compactions left."""
    side = s.CONTEXT_LEDGER_SIDE
    return share(
        view.total(s.METRIC_COMPACTION_TOKENS, {side: ("after",)}),
        view.total(s.METRIC_COMPACTION_TOKENS, {side: ("before",)}),
    )


def compactions_passed(view: View) -> str:
    """Share of the compactions that a validator could judge that kept all that had to survive."""
    result = s.CONTEXT_LEDGER_COMPACTION_VALIDATOR_RESULT
    return share(
        view.total(s.METRIC_COMPACTIONS, {result: ("pass",)}),
        view.total(s.METRIC_COMPACTIONS, {result: ("pass", "fail")}),
    )


def calls_per_success(view: View) -> str:
    """Calls, by the tasks that were a success."""
    return _by_success(view, s.METRIC_CALLS)


def price_per_success(view: View) -> str:
    """What the same calls would have cost without a cache, by the tasks that were a success."""
    return _by_success(view, s.METRIC_COST_WITHOUT_CACHE)


def cost_per_success(view: View) -> str:
    """All that calls cost, by the tasks that were a success."""
    return _by_success(view, s.METRIC_COST)


def decided(view: View) -> str:
    """How many tasks ended of which somebody told how."""
    return view.total(s.METRIC_TASKS, DECIDED)


def cost_per_decided_success(view: View) -> str:
    """Cost per success, and +Inf where tasks were decided and none was a success."""
    return f"{view.total(s.METRIC_COST)} / ({view.total(s.METRIC_TASKS, SUCCESS)} or {decided(view)} * 0)"


def kept_share(view: View) -> str:
    """Share of the reusable tokens of calls with an unchanged cache identity that was reused; what the program or a
    pause explains counts as reused."""
    same = {s.CONTEXT_LEDGER_IDENTITY: ("same",)}
    missed = view.total(s.METRIC_MISS_TOKENS, {**same, s.CONTEXT_LEDGER_MISS_CAUSE: FOREIGN})
    return f"1 - {share(missed, view.total(s.METRIC_REUSABLE_TOKENS, same))}"


def missed_by_cause(view: View) -> str:
    """Tokens missed because the prefix had changed, by cause, as a share of all input whose reuse was reported."""
    missed = view.per(*PER_CAUSE).total(s.METRIC_MISS_TOKENS, {s.CONTEXT_LEDGER_MISS_CAUSE: PREFIX})
    whole = view.per(*PER_CAUSE[:-1]).total(s.METRIC_INPUT_TOKENS, {s.CONTEXT_LEDGER_TOKEN_SOURCE: REPORTED})
    return f"{missed} / on ({', '.join(map(label, PER_CAUSE[:-1]))}) group_left () ({whole} > 0)"


def unexplained(view: View) -> str:
    """Share of the reusable tokens that was missed for no reason that anybody knows."""
    missed = view.total(s.METRIC_MISS_TOKENS, {s.CONTEXT_LEDGER_MISS_CAUSE: ("provider_unexplained",)})
    return share(missed, view.total(s.METRIC_REUSABLE_TOKENS))


def found(view: View, pillar: str, *verdicts: str) -> str:
    """Share of a pillar's judged checks that came to one of these verdicts."""
    return share(_checks(view, (pillar,), verdicts), _checks(view, (pillar,), JUDGED))


def checks_judged(view: View, pillar: str) -> str:
    """How many checks of a pillar could be judged."""
    return _checks(view, (pillar,), JUDGED)


def compactions_failed(view: View) -> str:
    """How many compactions lost something that had to survive."""
    return view.total(s.METRIC_COMPACTIONS, {s.CONTEXT_LEDGER_COMPACTION_VALIDATOR_RESULT: ("fail",)})


def lost_in_compaction(view: View) -> str:
    """Share of the compactions that a validator could judge that lost something that had to survive."""
    judged = view.total(s.METRIC_COMPACTIONS, {s.CONTEXT_LEDGER_COMPACTION_VALIDATOR_RESULT: ("pass", "fail")})
    return share(compactions_failed(view), judged)


def compactions(view: View) -> str:
    """How often a history was replaced, or should have been; single contents cut short are not among it."""
    kind = s.CONTEXT_LEDGER_COMPACTION_KIND
    return view.total(s.METRIC_COMPACTIONS, {kind: [word for word in s.MEMBERS[kind] if word != "micro"]})


def compactions_per_call(view: View) -> str:
    """Those compactions, by the calls of the agent itself."""
    calls = view.total(s.METRIC_CALLS, {s.CONTEXT_LEDGER_REQUEST_KIND: ("agent",)})
    return share(compactions(view), calls)


def conflicts(view: View) -> str:
    """Share of the provider's own verdicts that contradict the cause that was found."""
    verdicts = view.total(s.METRIC_PROVIDER_VERDICTS)
    return share(view.total(s.METRIC_PROVIDER_VERDICTS, {s.CONTEXT_LEDGER_VERDICT_CONFLICT: ("true",)}), verdicts)


def _by_success(view: View, metric: str) -> str:
    return f"{view.total(metric)} / ({view.total(s.METRIC_TASKS, SUCCESS)} > 0)"


def _checks(view: View, pillars: Sequence[str], verdicts: Sequence[str] | AllBut) -> str:
    wanted = {s.CONTEXT_LEDGER_PILLAR: pillars, s.CONTEXT_LEDGER_VERDICT: verdicts}
    return view.total(s.METRIC_CHECKS, {key: words for key, words in wanted.items() if words})
