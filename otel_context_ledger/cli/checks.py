"""What is said of the checks of a call: the verdict of each pillar, and in sentences what the one on tools goes by."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from otel_context_ledger.cli.calls import Call
from otel_context_ledger.cli.printing import plural, span
from otel_context_ledger.model import PILLARS, SOUND, UNJUDGED

CHECKS = {field: pillar for pillar, field in PILLARS.items()}
ORDER = tuple(CHECKS.values())
UNSURE = frozenset(UNJUDGED)
KEEP = "keep"
NO_PROOF = "reuse does not show that the context was right."
REASONS = {
    "no_registry": "no live registry and no contract is known (tool_registry(…), tool_contracts(…), or [tools.<name>] "
    "in context-ledger.toml)",
    "nothing_listed": "the registry says nothing of the tools that were sent",
    "too_many_tools": "too many tools were sent to compare them",
    "schema_too_large": "the schemas are too large to compare",
    "ledger_error": "the ledger itself failed at it, see its log",
}
KINDS = {
    "tool_removed": "its server offers it no more", "tool_added": "its server offers it now, and it was not sent",
    "property_renamed": "a property was renamed", "property_removed": "a property is gone",
    "property_added": "an optional property was added", "required_property_added": "a required property was added",
    "property_made_required": "a property became required", "property_made_optional": "a property became optional",
    "required_changed": "another set of properties is required", "enum_value_added": "a value was added to an enum",
    "enum_value_removed": "a value of an enum is gone", "enum_set": "values were limited to an enum",
    "enum_dropped": "an enum was dropped", "enum_reordered": "an enum has another order",
    "type_changed": "a type was changed", "type_widened": "a type was widened", "type_narrowed": "a type was narrowed",
    "limit_narrowed": "a limit was narrowed", "limit_widened": "a limit was widened",
    "rule_added": "a rule was added", "rule_changed": "a rule was changed", "rule_dropped": "a rule was dropped",
    "object_closed": "undeclared properties are refused now", "object_opened": "undeclared properties are taken now",
    "default_changed": "a default was changed", "description": "another description", "annotation": "other annotations",
}  # fmt: skip
CALLS = {
    "drift": "is right by the schema that was sent and wrong by the live one: the drift is to blame, not the model",
    "model": "is wrong by the schema that the model was shown: its own mistake",
    "argument_not_in_prompt_schema": "has an argument that only the live schema declares",
    "stale_client_schema": "is right by the live schema and wrong by the stale one that was sent",
}
AGAINST = {"manifest": "the manifest says", "session": "when the session began"}
REMEDIES = {
    "drift": "Ask the server for its tools again (tools/list) and send what it says.",
    "contract_changed": "Find out what stands behind the tool now, and begin a new session: this history holds calls "
    "that were made under the other contract.",
    "invalid_call": "Ask the server for its tools again (tools/list) and send what it says.",
}
MODEL_ERRS = "Nothing if the model corrects itself; if it lasts, say more in the tool's description."
MAX_DIGITS = 16
_PART = re.compile(r"(\w+)=(.+?):([\w,]+)(?:\((.*)\))?")


def verdicts(call: Call) -> list[tuple[str, str | None]]:
    """Each pillar with its verdict; `None` where it has not looked."""
    return [(name, call.text(field)) for field, name in CHECKS.items()]


def known(call: Call) -> tuple[tuple[str, str], ...]:
    """The pillars that looked, each with its verdict."""
    return tuple((name, verdict) for name, verdict in verdicts(call) if verdict is not None)


def short(call: Call) -> str:
    """The verdicts of a call in a few words: what is not well, else how much is known to be."""
    return tally(Counter(known(call)))


def tally(counted: Mapping[tuple[str, str], int]) -> str:
    """The verdicts of calls in a few words, counted by pillar and verdict: what is not well in any of them, and in how
    many if that is more than one; else how many of the pillars are known to be right in each that they looked at, and
    of how many nothing is known."""
    if not fine(counted):
        bad = [pair for pair in counted if pair[1] not in SOUND | UNSURE]
        order = sorted(bad, key=lambda pair: (-counted[pair], ORDER.index(pair[0])))
        return ", ".join(f"{' '.join(pair)}{f' ×{counted[pair]:,}' if counted[pair] > 1 else ''}" for pair in order)
    unsure = {name for name, verdict in counted if verdict in UNSURE}
    sound = {name for name, _ in counted} - unsure
    if not sound:
        return "unknown" if unsure else "unchecked"
    rest = len(ORDER) - len(sound)
    return f"{len(sound)} right" + (f", {rest} not judged" if rest else "")


def beside(calls: Iterable[Call]) -> str:
    """The verdicts of calls as they are said beside a figure in a sentence."""
    counted = of_all(calls)
    return f"checks: {tally(counted)}" if counted else "unchecked"


def fine(counted: Iterable[tuple[str, str]]) -> bool:
    """Whether none of these verdicts says that something is wrong."""
    return all(verdict in SOUND | UNSURE for _, verdict in counted)


def of_all(calls: Iterable[Call]) -> Mapping[tuple[str, str], int]:
    """The verdicts of calls, counted by pillar and verdict."""
    return Counter(pair for call in calls for pair in known(call))


def spread(counted: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    """The same for programs: by pillar, how many calls have each verdict."""
    found: dict[str, dict[str, int]] = {}
    for (name, verdict), number in counted.items():
        found.setdefault(name, {})[verdict] = number
    return found


def advised(call: Call) -> str:
    """The word of the gravest advice on a call; to go on as before is none."""
    words = (text.partition(":")[0] for text in call.words("advice") or ())
    return next((word for word in words if word != KEEP), "")


def told(call: Call) -> Iterator[str]:
    """All verdicts in a sentence."""
    looked = known(call)
    open_ = [name for name, verdict in verdicts(call) if verdict is None]
    if not looked:
        yield f"not checked; {NO_PROOF}"
        return
    words = [f"{name} {verdict}{_narrowed(call, name)}" for name, verdict in looked]
    rest = f"; not checked: {', '.join(open_)}" if open_ else ""
    proof = "" if any(verdict not in UNSURE for _, verdict in looked) else f"; {NO_PROOF[:-1]}"
    yield f"{', '.join(words)}{rest}{proof}."


def _narrowed(call: Call, pillar: str) -> str:
    detail = call.words(f"{pillar}.detail")
    return f" ({', '.join(detail)})" if detail else ""


def of_tools(call: Call) -> Iterator[str]:
    """What the verdict on the tools goes by, a sentence each."""
    numbers = counts(call)
    if _number(numbers.get("compared")):
        rest = f"; {numbers['not_listed']} not in the registry" if "not_listed" in numbers else ""
        yield f"{plural(_number(numbers['compared']), 'tool')} compared with the live registry{rest}."
    for word in call.words("tools.evidence") or ():
        yield _sentence(word)
    steady = numbers.get("calls_consistent")
    if steady is not None and not _whole(steady):
        part, _, whole = steady.partition("/")
        yield f"consistent since the registry changed: {part} of {plural(_number(whole), 'call')} of this session."


def counts(call: Call) -> Mapping[str, str]:
    """The counts of the check of the tools."""
    pairs = (word.partition("=") for word in call.words("tools.counts") or ())
    return {name: number for name, _, number in pairs}


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) < MAX_DIGITS else 0


def reason(call: Call) -> str:
    """Why nothing is known of a call's tools."""
    words = (word.partition("=") for word in call.words("tools.evidence") or ())
    return next((value for name, _, value in words if name == "reason"), "")


def _whole(part: str) -> bool:
    some, _, whole = part.partition("/")
    return some == whole


def _sentence(word: str) -> str:
    found = _PART.fullmatch(word)
    if found and found[1] in _TOLD:
        return _TOLD[found[1]](found[2], found[3], found[4] or "")
    name, _, value = word.partition("=")
    return _PLAIN[name](value) if name in _PLAIN else f"{word}."


def _drift(tool: str, level: str, kinds: str) -> str:
    words = [_kind(kind) for kind in kinds.split()]
    return f"{tool}, as sent, is not the live one: {', '.join(words)} ({level})."


def _kind(word: str) -> str:
    name, _, times = word.partition("*")
    return KINDS.get(name, name) + (f" ({times} times)" if times else "")


def _call(tool: str, words: str, _: str) -> str:
    return f"a call of {tool} {', and '.join(CALLS.get(word, word) for word in words.split(','))}."


def _contract(tool: str, words: str, against: str) -> str:
    fields = " and ".join(word.replace("_", " ") for word in words.split(","))
    return f"{tool} has another {fields} now than {AGAINST.get(against, against)}."


def _order(part: str) -> str:
    some, _, whole = part.partition("/")
    return f"{some} of the session's {whole} calls had these tools in another order than most."


_TOLD: Mapping[str, Callable[[str, str, str], str]] = {"drift": _drift, "call": _call, "contract": _contract}
_PLAIN: Mapping[str, Callable[[str], str]] = {
    "reason": lambda value: f"{REASONS.get(value, value)}.",
    "stale_seconds": lambda value: f"the registry had changed {span(_number(value))} before this call.",
    "other_order": _order,
    "orders": lambda value: f"they came in {value} orders in all.",
    "order_interval_seconds": lambda value: f"the order changed every {span(_number(value))} (median).",
    "order_by_use": lambda value: "each change moved one tool to the front, as lists sorted by recent use do.",
}


def remedy(call: Call) -> str | None:
    """What to do about the verdict on the tools."""
    verdict = call.text("tools_check") or ""
    detail = call.words("tools.detail") or ()
    if verdict == "invalid_call" and "drift" not in detail:
        return MODEL_ERRS
    return REMEDIES.get(verdict)


def summary(calls: Sequence[Call]) -> list[str]:
    """For each pillar that looked, in how many of the calls all was well, and how many it could not tell of."""
    found = [line for field, name in CHECKS.items() if (line := _summed(name, [call.text(field) for call in calls]))]
    return found or [f"correctness: not checked; {NO_PROOF}"]


def _summed(name: str, found: Sequence[str | None]) -> str | None:
    seen = [verdict for verdict in found if verdict is not None]
    sure = [verdict for verdict in seen if verdict not in UNSURE]
    if not seen:
        return None
    if not sure:
        return f"{name}: unknown in {plural(len(seen), 'call')}"
    unsure = f"; {len(seen) - len(sure):,} unknown" if len(sure) < len(seen) else ""
    sound = sum(verdict in SOUND for verdict in sure)
    return f"{name}: in order in {sound:,} of the {plural(len(sure), 'call')} whose verdict is known{unsure}"
