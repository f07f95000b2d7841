"""`context-ledger explain`: one call in plain words.

What the ledger does not know is said to be unknown, with the reason; no estimate stands where a count is expected.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence

from otel_context_ledger.cli import calls as c
from otel_context_ledger.cli import checks, reasons, verdicts
from otel_context_ledger.cli import outcome as o
from otel_context_ledger.cli.calls import Book, Call
from otel_context_ledger.cli.printing import UNKNOWN, Answer, Labels, Lines, count, moment, money, plural, share, span
from otel_context_ledger.cli.show import cause, ending, is_quota
from otel_context_ledger.config import Config
from otel_context_ledger.outcomes import Joined

PRICES_MISSING = {
    "usage_missing": "no usage was reported",
    "price_missing:model": "no price is known for this model; set one in [prices] of context-ledger.toml",
    "cached_tokens_not_reported": "cached tokens cost less and their number was not reported",
}
NO_VERDICT = {
    "pending": "The provider was asked for its reason and had none yet when it answered.",
    "not_requested": "The provider was not asked for its reason.",
    "no_divergence": "The provider compared the requests and saw no difference.",
    "no_comparison": "The provider was asked for the first time, so it had nothing to compare with.",
    "not_answered": "The provider was asked for its reason and did not answer that.",
}
# Ends after which nobody read the answer to where its usage stands.
NOT_READ = ("closed", "cancelled", "abandoned", "unread")
SEGMENTS = {"settings": "settings", "tool": "tool", "system": "system part", "message": "message"}


def answer(arguments: Namespace, settings: Config) -> Answer:
    """The call that the options name, in words. Raises `Unusable`."""
    book = c.opened(arguments, settings)
    call = c.find(book, arguments.call)
    rows = explanation(call, book)
    document = {
        "entry": call.raw,
        "place": call.place,
        "explanation": [{"label": label, "text": text} for label, text in rows],
    }
    return Answer(document, [Lines([title(call), ""]), Labels(rows)])


def explanation(call: Call, book: Book) -> list[tuple[str, str]]:
    """All that is to be said of a call of a ledger: sentences, each under its label."""
    return [(label, text) for label, tell in LABELS for text in tell(call, book)]


def title(call: Call) -> str:
    """Which call it is: its id, time, model, surface and session."""
    where = f"{call.text('provider_surface') or UNKNOWN} ({call.text('api') or UNKNOWN})"
    model, served = call.text("model_id") or UNKNOWN, call.text("model_served")
    shown = f"{model} (served: {served})" if served and served != model else model
    session = call.text("session_id") or UNKNOWN
    return f"call {call.entry_id}: {moment(call.number('started_at'))}, {shown} on {where}, session {session}"


def _task(call: Call, book: Book) -> Iterator[str]:
    task, attempt = call.text("task_id"), call.text("attempt_id")
    if task is None:
        return
    if attempt is None:
        yield f"{task}: {_ended(o.standing(book, task))}."
        return
    own = o.standing(book, task, attempt)
    yield f"{task}, attempt {attempt}: {_ended(own)}."
    whole = o.standing(book, task)
    if whole != own:
        yield f"{task}, all attempts: {_ended(whole)}."


def _ended(said: Joined) -> str:
    told = f"told {moment(said.told_at)}" if said.told_at is not None else "nobody told how it ended"
    return f"{said.word}{o.spelled(said.evidence, said.reason)}, {told}"


def _sent(call: Call, book: Book) -> Iterator[str]:
    whole, length = call.count("input_tokens"), call.count("history_length")
    made_of = f" in {plural(length, 'message')} after the system part" if length is not None else ""
    window = call.count("context_window")
    full = f", {share(whole, window)} of the context window" if whole is not None and window else ""
    if whole is None:
        why = "the answer was not read to its usage" if _not_read(call) else "no usage was reported"
        yield f"an unknown number of tokens{made_of}: {why}, and no estimate stands in for it."
    else:
        yield f"{whole:,} tokens{made_of}{full}."


def _answered(call: Call, book: Book) -> Iterator[str]:
    output, reasoning = call.count("output_tokens"), call.count("reasoning_tokens")
    tokens = "an unknown number of tokens" if output is None else plural(output, "token")
    thought = f" ({count(reasoning)} of them reasoning)" if reasoning else ""
    took = call.number("duration"), call.number("time_to_first_token")
    times = [f"in {span(took[0])}"] if took[0] is not None else []
    times += [f"the first one after {span(took[1])}"] if took[1] is not None else []
    finish = call.words("finish_reasons")
    ended = [f"finish reason {', '.join(finish)}"] if finish else []
    how = ending(call)
    yield ", ".join([f"{tokens}{thought}", *times, *ended]) + (
        f"; the call did not run to its end ({how})." if how else "."
    )


def _reused(call: Call, book: Book) -> Iterator[str]:
    whole, cached = call.count("input_tokens"), call.count("cached_tokens")
    written = call.count("cache_write_tokens")
    stored = f"; {written:,} were written to the cache" if written else ""
    if cached is not None:
        yield f"{cached:,} of {count(whole)} tokens reused ({share(cached, whole)}){stored}."
    elif call.text("cache_report") == "unsupported":
        yield "unknown: this surface cannot report reuse. That is not zero."
    elif _not_read(call):
        yield "unknown: the answer was not read to where the provider reports it. That is not zero."
    else:
        yield "unknown: the provider did not report how many tokens it reused. That is not zero."


def _reusable(call: Call, book: Book) -> Iterator[str]:
    reusable = call.count("reusable_tokens")
    if reusable is not None and call.text("comparable_id"):
        yield f"{plural(reusable, 'token')}, going by the unchanged part of the prefix."


def _compared(call: Call, book: Book) -> Iterator[str]:
    name = call.text("comparable_id")
    if name is None:
        yield "with no earlier call: none in the ledger shares its beginning."
        return
    idle = call.number("idle_seconds")
    before = f", {span(idle)} after it ended" if idle is not None else ""
    other = book.by_id().get(name)
    if other is None:
        yield f"with call {name}{before}, which is not in this file (rotated away, or written elsewhere)."
        return
    yield f"with call {name} of {moment(other.number('started_at'))}{before}.{_grown(call, other)}"


def _grown(call: Call, other: Call) -> str:
    """How this prompt and its cost stand to the other's, where that tells something: it shrank, or cost much more; and
    how much of a compacted history was still read, each share with its whole."""
    old, new, cached = other.count("input_tokens"), call.count("input_tokens"), call.count("cached_tokens")
    paid = other.number("cost.amount"), call.number("cost.amount")
    shrank = f" Its prompt is {share(old - new, old)} smaller" if old and new and new < old else ""
    dearer = f"{paid[1] / paid[0]:.1f} times as much" if paid[0] and paid[1] and paid[1] > 2 * paid[0] else ""
    told = f"{shrank}, and it cost {dearer}." if shrank and dearer else f"{shrank}." if shrank else ""
    if call.text("miss_cause") == "history_compacted" and old and new and cached is not None:
        told += f" Kept: {share(cached, old)} of the earlier prompt; sent anew: {share(new - cached, new)} of this one."
    return told


def _changed(call: Call, book: Book) -> Iterator[str]:
    if call.text("comparable_id") is None:
        return
    parts = call.words("identity_changed")
    if parts is None:
        yield "unknown: only digests of the earlier call are known."
    elif parts:
        yield f"{_listed([reasons.PARTS.get(part, part) for part in parts])}."
    else:
        yield "nothing that identifies the context: same model, tools, system part and settings."


def _repository(call: Call, book: Book) -> Iterator[str]:
    yield from verdicts.of_changes(call)


def _broke(call: Call, book: Book) -> Iterator[str]:
    segment = call.text("miss_position.segment")
    if segment is None:
        return
    index, name = call.count("miss_position.index"), call.text("miss_position.name")
    offset, kind = call.count("miss_position.offset"), call.text("miss_position.kind")
    unit = "byte" if kind in reasons.IN_BYTES else "character"
    words = [
        SEGMENTS.get(segment, segment) + (f" {index}" if index is not None else "") + (f" ({name})" if name else ""),
        *([f"{unit} {offset:,}"] if offset is not None else []),
    ]
    what = f": {reasons.CHANGES.get(kind, kind)}" if kind else ""
    yield f"at {', '.join(words)}{what}."


def _cause(call: Call, book: Book) -> Iterator[str]:
    name = call.text("miss_cause")
    if name is None:
        yield _without_cause(call)
        return
    found = reasons.reason(name, call.words("miss_detail") or ())
    meaning = found.meaning if found else "This version has no words for it."
    small = " The shortfall is small." if call.flag("miss_significant") is False and _avoidable(call) else ""
    yield f"{cause(call)}: {meaning}{small}"


def _without_cause(call: Call) -> str:
    kind = call.text("request_kind")
    if ending(call) is not None:
        return "none sought: the call did not run to its end."
    if kind not in (None, "agent"):
        return f"none sought: this is a side call ({kind}) with a context of its own."
    return "none: nothing that could be reused was missed."


def _secondary(call: Call, book: Book) -> Iterator[str]:
    for word in call.words("miss_secondary") or ():
        found = reasons.reason(*reasons.spelled(word))
        yield f"{word}: {found.meaning}" if found else word


def _evidence(call: Call, book: Book) -> Iterator[str]:
    confidence, words = call.text("miss_confidence"), call.words("miss_evidence") or ()
    if confidence is None and not words:
        return
    told = [f"{word} ({reasons.EVIDENCE[word]})" if word in reasons.EVIDENCE else word for word in words]
    sure = f"{confidence} ({reasons.CONFIDENCE.get(confidence, UNKNOWN)})" if confidence else UNKNOWN
    yield f"{sure}; from {', '.join(told) or 'nothing that was recorded'}."


def _provider(call: Call, book: Book) -> Iterator[str]:
    verdict = call.text("provider_verdict")
    if verdict is None:
        return
    agrees = {True: "That contradicts ours; both stand.", False: "That agrees with ours.", None: ""}
    missed, told = call.count("verdict_missed_tokens"), NO_VERDICT.get(verdict, f'The provider says "{verdict}".')
    size = f"It estimates {plural(missed, 'missed token')}." if missed is not None else ""
    asked = "The ledger asked it to." if call.text("verdict_requested_by") == "ledger" else ""
    yield " ".join(part for part in (told, size, agrees[call.flag("verdict_conflict")], asked) if part)


def _cost(call: Call, book: Book) -> Iterator[str]:
    if is_quota(call):
        yield "counts against the plan's quota; no dollars."
        return
    amount, missing, currency = call.number("cost.amount"), call.text("cost_missing"), call.text("cost.currency")
    if amount is None:
        unread = missing == "usage_missing" and _not_read(call)
        yield f"unknown: {'the answer was not read to its usage' if unread else no_price(missing)}."
        return
    computed = call.number("cost.computed")
    beside = f"; list prices give {money(computed, currency)}" if computed is not None else ""
    source = f"as the provider states{beside}" if call.text("cost.source") == "provider" else "at list prices"
    without, lost = call.number("cost_without_cache"), call.number("cost_avoidable")
    yield ", ".join([
        f"{money(amount, currency)} ({source})",
        *([f"{money(without, currency)} without any cache"] if without is not None else []),
        *([f"{money(lost, currency)} of it avoidable"] if lost else []),
    ]) + "."  # fmt: skip


def no_price(missing: str | None) -> str:
    """Why a call has no cost, by the word of `cost_missing`."""
    word = missing or ""
    if word in PRICES_MISSING:
        return PRICES_MISSING[word]
    kind, _, rate = word.partition(":")
    return f"no rate for {rate} tokens is known for this model" if kind == "price_missing" and rate else word or UNKNOWN


def _remedy(call: Call, book: Book) -> Iterator[str]:
    name = call.text("miss_cause")
    found = reasons.reason(name, call.words("miss_detail") or ()) if name else None
    if found is not None:
        yield found.remedy
    wrong = [*filter(None, [checks.remedy(call)]), *verdicts.remedies(call)]
    if wrong:
        yield from wrong
    elif name is None and call.text("cache_outcome") == "hit":
        yield reasons.NOTHING


def _correctness(call: Call, book: Book) -> Iterator[str]:
    yield from checks.told(call)


def _tools(call: Call, book: Book) -> Iterator[str]:
    yield from checks.of_tools(call)


def _files(call: Call, book: Book) -> Iterator[str]:
    yield from verdicts.of_files(call)


def _rules(call: Call, book: Book) -> Iterator[str]:
    yield from verdicts.of_rules(call)


def _constraints(call: Call, book: Book) -> Iterator[str]:
    yield from verdicts.of_constraints(call)


def _state(call: Call, book: Book) -> Iterator[str]:
    yield from verdicts.of_state(call)


def _summary(call: Call, book: Book) -> Iterator[str]:
    yield from verdicts.of_summary(call, book.compactions)


def _advice(call: Call, book: Book) -> Iterator[str]:
    yield from call.words("advice") or ()


def _flaws(call: Call, book: Book) -> Iterator[str]:
    error, flags = call.text("ledger_error"), call.words("usage_flags")
    if error:
        yield f"incomplete: {error}."
    if call.flag("truncated"):
        yield "incomplete: some of it was too large to keep."
    if flags:
        yield f"the reported counts are odd: {', '.join(flags)}."


def _not_read(call: Call) -> bool:
    return call.text("call_end") in NOT_READ


def _avoidable(call: Call) -> bool:
    return (call.count("avoidable_tokens") or 0) > 0


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


Tell = Callable[[Call, Book], Iterator[str]]
LABELS: tuple[tuple[str, Tell], ...] = (
    ("task", _task), ("sent", _sent), ("answered", _answered), ("reused", _reused), ("correctness", _correctness),
    ("reusable", _reusable), ("compared", _compared), ("changed", _changed), ("repository", _repository),
    ("broke", _broke), ("cause", _cause), ("also", _secondary), ("evidence", _evidence),
    ("provider", _provider), ("cost", _cost), ("to do", _remedy), ("files", _files), ("rules", _rules),
    ("tools", _tools), ("constraints", _constraints), ("history", _state),
    ("summary", _summary), ("advice", _advice), ("record", _flaws),
)  # fmt: skip
