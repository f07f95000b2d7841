"""`context-ledger show`: a table of calls and their totals.

Totals are sums over the calls whose figure is known, and the others are counted beside them: unknown is never 0, a
ratio is never an average of ratios, and quota is never dollars.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from rich.text import Text

from otel_context_ledger.cli import calls as c
from otel_context_ledger.cli import checks
from otel_context_ledger.cli.calls import Call
from otel_context_ledger.cli.printing import (
    UNKNOWN,
    Answer,
    Cell,
    Column,
    Lines,
    Sheet,
    count,
    moment,
    money,
    plural,
    share,
    styled,
)
from otel_context_ledger.config import Config

COLUMNS = (
    Column("time", skip=5), Column("id", most=8), Column("session", most=12, spare=1), Column("model", spare=3),
    Column("input", right=True), Column("cached", right=True, spare=4), Column("missed", right=True, spare=2),
    Column("reused", right=True), Column("checks", fold=True), Column("cause", fold=True), Column("cost", right=True),
)  # fmt: skip
# How a call that did not run to its end is shown; `complete` is shown by its cause.
ENDINGS = {
    "failed": "failed", "cancelled": "cancelled", "closed": "closed early", "abandoned": "never read to its end",
    "unread": "answer not read",
}  # fmt: skip
PROVIDER_MARK = "*"


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over calls, each with the number of calls that it is over or that it leaves out; a sum over none is `None`.

    `cached`, `missed` and `input_measured` are over the `measured` calls whose cached tokens are known, `cached_share`
    is their ratio and `agent_cached_share` that of the agent's own calls among them; `dollars` are over the `priced`
    ones, `dollars_of_providers` being the part that providers stated themselves. `repeated` lines told of a call again.
    `checks` counts the calls by pillar and verdict.
    """

    calls: int
    repeated: int
    unfinished: int
    without_usage: int
    input: int | None
    input_unknown: int
    measured: int
    input_measured: int | None
    cached: int | None
    missed: int | None
    cached_share: float | None
    agent_cached_share: float | None
    cached_unknown: int
    priced: int
    dollars: float | None
    dollars_of_providers: float | None
    unpriced: int
    quota_calls: int
    quota_input: int | None
    quota_output: int | None
    checks: Mapping[str, Mapping[str, int]]


def answer(arguments: Namespace, settings: Config) -> Answer:
    """The calls that the options choose, and their totals. Raises `Unusable`."""
    book = c.opened(arguments, settings)
    chosen: Sequence[Call] = book.calls
    if arguments.session is not None:
        chosen = c.of_session(chosen, arguments.session)
        if not chosen:
            raise c.Unusable(f"There is no session {arguments.session!r} in {book.path}.")
    chosen = chosen[-arguments.last :] if arguments.last else chosen
    sums, chosen = totals(chosen), once(chosen)
    document = {
        "files": list(map(str, book.files)),
        "calls": [record(call) for call in chosen],
        "totals": asdict(sums),
        "not_calls": book.strange,
    }
    sheet = Sheet(COLUMNS, [_row(call) for call in chosen], _total_row(sums, checks.tally(checks.of_all(chosen))))
    return Answer(document, [sheet, Lines(["", *_definitions(sums), *checks.summary(once(chosen)), *c.left_out(book)])])


def totals(lines: Sequence[Call]) -> Totals:
    """The totals of calls. A call that several lines tell of counts once, as its last line says (case AC24)."""
    calls = once(lines)
    inputs = [number for call in calls if (number := call.count("input_tokens")) is not None]
    measured = [pair for call in calls if (pair := _measured(call))]
    own = [pair for call in calls if call.text("request_kind") in (None, "agent") and (pair := _measured(call))]
    quota = [call for call in calls if is_quota(call)]
    amounts = [(amount, call) for call in calls if (amount := dollars(call)) is not None]
    stated = [amount for amount, call in amounts if call.text("cost.source") == "provider"]
    return Totals(
        calls=len(calls),
        repeated=len(lines) - len(calls),
        unfinished=sum(ending(call) is not None for call in calls),
        without_usage=sum(call.text("usage_source") == "missing" for call in calls),
        input=_sum(inputs),
        input_unknown=len(calls) - len(inputs),
        measured=len(measured),
        input_measured=_sum([whole for whole, _ in measured]),
        cached=_sum([cached for _, cached in measured]),
        missed=_sum([whole - cached for whole, cached in measured]),
        cached_share=_ratio(measured),
        agent_cached_share=_ratio(own),
        cached_unknown=len(calls) - len(measured),
        priced=len(amounts),
        dollars=sum(amount for amount, _ in amounts) if amounts else None,
        dollars_of_providers=sum(stated) if stated else None,
        unpriced=len(calls) - len(amounts) - len(quota),
        quota_calls=len(quota),
        quota_input=_sum([number for call in quota if (number := call.count("input_tokens")) is not None]),
        quota_output=_sum([number for call in quota if (number := call.count("output_tokens")) is not None]),
        checks=checks.spread(checks.of_all(calls)),
    )


def once(calls: Sequence[Call]) -> Sequence[Call]:
    """The calls without lines that tell of a call again: of those with one id the last."""
    return list({call.entry_id: call for call in calls}.values())


def _sum(numbers: Sequence[int]) -> int | None:
    return sum(numbers) if numbers else None


def _ratio(measured: Sequence[tuple[int, int]]) -> float | None:
    """Two sums divided, never an average of ratios."""
    whole = sum(size for size, _ in measured)
    return sum(cached for _, cached in measured) / whole if whole else None


def record(call: Call) -> dict[str, object]:
    """A call's row for programs; `null` is unknown."""
    return {
        "entry_id": call.entry_id,
        "started_at": call.number("started_at"),
        "session_id": call.text("session_id"),
        "model_id": call.text("model_id"),
        "input_tokens": call.count("input_tokens"),
        "cached_tokens": call.count("cached_tokens"),
        "cache_miss_tokens": call.count("cache_miss_tokens"),
        "cache_outcome": call.text("cache_outcome"),
        **{field: call.text(field) for field in checks.CHECKS},
        "advice": list(call.words("advice") or ()),
        "miss_cause": call.text("miss_cause"),
        "miss_detail": list(call.words("miss_detail") or ()),
        "request_kind": call.text("request_kind"),
        "call_end": call.text("call_end"),
        "error_type": call.text("error_type"),
        "cost": call.number("cost.amount"),
        "cost_currency": call.text("cost.currency"),
        "cost_source": call.text("cost.source"),
        "cost_unit": call.text("cost.unit"),
        "cost_missing": call.text("cost_missing"),
    }


def is_quota(call: Call) -> bool:
    """Whether a call is paid for with a plan's quota."""
    return call.text("cost.unit") == "quota"


def dollars(call: Call) -> float | None:
    """What a call cost in dollars, where that is known."""
    known = not is_quota(call) and call.text("cost.currency") in (None, "USD")
    return call.number("cost.amount") if known else None


def ending(call: Call) -> str | None:
    """How a call ended that did not run to its end, with its error's type."""
    how, error = call.text("call_end"), call.text("error_type")
    words = ENDINGS.get(how or "") or ("failed" if error else None)
    return f"{words}: {error}" if words and error else words


def cause(call: Call) -> str | None:
    """The cause of a call's miss with its details."""
    name, detail = call.text("miss_cause"), call.words("miss_detail") or ()
    return name and f"{name}({', '.join(detail)})" if detail else name


def cost(call: Call) -> str:
    """A call's cost; the provider's own figures are marked."""
    if is_quota(call):
        return "quota"
    mark = PROVIDER_MARK if call.text("cost.source") == "provider" else ""
    return money(call.number("cost.amount"), call.text("cost.currency")) + mark


def _row(call: Call) -> tuple[Cell, ...]:
    whole, cached = call.count("input_tokens"), call.count("cached_tokens")
    return (
        moment(call.number("started_at")),
        call.entry_id,
        call.text("session_id") or UNKNOWN,
        call.text("model_id") or UNKNOWN,
        count(whole),
        count(cached),
        count(call.count("cache_miss_tokens")),
        share(cached, whole),
        _checks(call),
        _verdict(call),
        cost(call),
    )


def _checks(call: Call) -> Text:
    advised = checks.advised(call)
    told = f"{checks.short(call)}{f' → {advised}' if advised else ''}"
    return styled(told, "yellow" if advised or not checks.fine(checks.known(call)) else "")


def _verdict(call: Call) -> Text:
    kind = call.text("request_kind")
    side = kind if kind not in (None, "agent") else None
    text = "; ".join(word for word in (ending(call), cause(call), side) if word)
    style = "red" if ending(call) else ("yellow" if call.flag("miss_significant") else "")
    return styled(text, style)


def _measured(call: Call) -> tuple[int, int] | None:
    whole, cached = call.count("input_tokens"), call.count("cached_tokens")
    return None if whole is None or cached is None else (whole, cached)


def _total_row(sums: Totals, checked: str) -> tuple[Cell, ...]:
    return (
        "total", "", "", plural(sums.calls, "call"), count(sums.input_measured), count(sums.cached), count(sums.missed),
        share(sums.cached, sums.input_measured), checked, "", _total_cost(sums),
    )  # fmt: skip


def _total_cost(sums: Totals) -> str:
    if sums.dollars is not None:
        return money(sums.dollars)
    return "quota" if sums.quota_calls and not sums.unpriced else UNKNOWN


def _definitions(sums: Totals) -> list[str]:
    measured = f"input, cached and missed: sums over the {plural(sums.measured, 'call')} whose cached tokens are known"
    every = f"input of all calls: {count(sums.input)} tokens over {plural(sums.calls - sums.input_unknown, 'call')}"
    priced = f"cost: {money(sums.dollars)} over {plural(sums.priced, 'call')}"
    if sums.dollars_of_providers is not None:
        priced += f", {money(sums.dollars_of_providers)} of it as stated by the provider ({PROVIDER_MARK})"
    burnt = f"{count(sums.quota_input)} input and {count(sums.quota_output)} output tokens"
    unfinished = f"not run to their end: {plural(sums.unfinished, 'call')}"
    repeated = f"counted once: {plural(sums.repeated, 'line')} told of a call again"
    return [
        measured + _unknown(sums.cached_unknown),
        every + _unknown(sums.input_unknown),
        priced + _unknown(sums.unpriced),
        *([f"quota: {plural(sums.quota_calls, 'call')}, {burnt}"] if sums.quota_calls else []),
        *([unfinished] if sums.unfinished else []),
        *([repeated] if sums.repeated else []),
    ]


def _unknown(number: int) -> str:
    return f"; {number:,} unknown" if number else ""
