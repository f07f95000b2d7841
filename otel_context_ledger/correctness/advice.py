"""What to do next with a context: a table of conditions over what is known of a call, each with its word and reason.

Pure. A condition that a missing fact leaves open gives nothing. Where facts come from is left to the ledger; what the
pillars themselves advise, such as a stable order of tools, is theirs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock

from otel_context_ledger.model import SOUND, Check
from otel_context_ledger.records import quick
from otel_context_ledger.thresholds import DEFAULTS, Thresholds

KEEP, COMPACT, NEW_SESSION, REBUILD_CONTEXT, LARGER_WINDOW, SMALLER_WINDOW = WORDS = (
    "keep", "compact", "new_session", "rebuild_context", "larger_window", "smaller_window",
)  # fmt: skip
# A pillar to which nothing was declared was not asked; that it knows nothing is no reason for doubt.
NOT_ASKED = frozenset({"reason=no_registry", "reason=no_rules_files", "reason=nothing_read", "reason=outside"})
LOOP, FREQUENT = "compaction_loop", "frequent_compaction"
MAX_TEXT = 200
MAX_ADVICE = 8
# Calls of a session, since it began or was compacted, before its growth is known well enough to be told on.
CALLS_SEEN = 10
DIGITS = 13


@quick
@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one call. `checks` are the verdicts of the pillars that looked. `changed` names the parts of the
    identity that are not what they were in the call that this one continues within its session. `windows` are those of
    the surface by model, `head` the commit that is checked out; `compacted` says that this call is the first after a
    compaction, `trusted` whether the summary that it builds on passed its validation, `event` which compaction made it;
    `todos` are open; `odd` is what was odd about compactions that this call settled, `symptom:evidence`; `hashes` are
    the entry's, by field; of a `wasted` call much of the prompt was read anew for a known cause."""

    checks: Mapping[str, Check] = field(default_factory=dict)
    input: int | None = None
    cached: int | None = None
    window: int | None = None
    model: str | None = None
    effort: str | None = None
    windows: Mapping[str, int] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    head: str | None = None
    compacted: bool = False
    trusted: bool | None = None
    event: str | None = None
    todos: int | None = None
    odd: tuple[str, ...] = ()
    hashes: Mapping[str, str | None] = field(default_factory=dict)
    wasted: bool = False


@quick
@dataclass(frozen=True, slots=True)
class Past:
    """A session up to and with a call: `calls` since it began or was compacted, `first` of them the tokens of the
    first; `compactions` that followed each other closely; the commit, and `left` the one that this call found moved."""

    calls: int = 0
    first: int | None = None
    compactions: int = 0
    head: str | None = None
    left: str | None = None


NEW = Past()


def after(past: Past, facts: Facts, limits: Thresholds = DEFAULTS) -> Past:
    """The past of a session with one more call."""
    moved = past.head if past.head and facts.head and past.head != facts.head else None
    head = facts.head or past.head
    if facts.compacted:
        close = past.compactions > 0 and past.calls <= limits.compaction_calls
        return Past(1, facts.input, past.compactions + 1 if close else 1, head, moved)
    first = facts.input if past.first is None else past.first
    return Past(past.calls + 1, first, past.compactions, head, moved)


def advise(facts: Facts, past: Past = NEW, limits: Thresholds = DEFAULTS) -> tuple[str, ...]:
    """The advice on a call, the gravest first; `past` is its session's with this call."""
    found = [_text(word, reason) for word, tell in RULES if (reason := tell(facts, past, limits))]
    if found:
        return tuple(found[:MAX_ADVICE])
    reason = _sound(facts, limits)
    return (_text(KEEP, reason),) if reason else ()


def _text(word: str, reason: str) -> str:
    text = f"{word}: {reason}"
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"


def _unexpected(facts: Facts, past: Past, limits: Thresholds) -> str | None:
    for name, wanted in limits.expected.items():
        found = facts.hashes.get(name)
        if found is not None and found != wanted:
            return f"{name} is {found[:DIGITS]}…, not the expected {wanted[:DIGITS]}…, {_reused(facts)}"
    return None


def _files(facts: Facts, past: Past, limits: Thresholds) -> str | None:
    """A formatter's rewrite right after an edit is of low severity, and no reason."""
    check = facts.checks.get("repository")
    if check is None or check.verdict not in ("stale", "root_mismatch") or "low" in check.findings.detail:
        return None
    if check.verdict == "root_mismatch":
        return f"repository root_mismatch: files read belong to another working tree, {_reused(facts)}"
    stale, read = count(check, "stale"), count(check, "files")
    told = f" {stale}{'' if read is None else f' of {read}'} files" if stale is not None else ""
    return f"repository stale{told}, {_reused(facts)}"


def _tools(facts: Facts, past: Past, limits: Thresholds) -> str | None:
    check = facts.checks.get("tools")
    if check is None or check.verdict in SOUND:
        return None
    detail = check.findings.detail
    moved = {"contract_changed": True, "drift": "breaking" in detail, "invalid_call": "drift" in detail}
    if not moved.get(check.verdict):
        return None
    told = next((w for w in check.findings.evidence if w.startswith(("contract=", "drift=", "call="))), "")
    return f"tools {check.verdict} {told}".rstrip() + f", {_reused(facts)}"


def _canary(facts: Facts, past: Past, limits: Thresholds) -> str | None:
    check = facts.checks.get("constraints")
    if check is None or check.verdict not in ("lost", "superseded_revived") or not facts.input or facts.cached is None:
        return None
    if facts.cached < limits.high_reuse * facts.input:
        return None
    return f"constraints {check.verdict}{named(check, 'revived', 'lost', 'negated')}, {_reused(facts)}"


def _broken(facts: Facts, past: Past, limits: Thresholds) -> str | None:
    check = facts.checks.get("state")
    if check is None or check.verdict not in ("broken_tool_pair", "reasoning_dropped"):
        return None
    kinds = f" {', '.join(check.findings.detail)}" if check.findings.detail else ""
    number = count(check, "broken")
    return f"state {check.verdict}{kinds}{f' in {number} places' if number else ''}, {_reused(facts)}"


def _stale_policy(facts: Facts, past: Past, limits: Thresholds) -> str | None:
    check = facts.checks.get("policy")
    if check is None or check.verdict != "stale":
        return None
    return f"policy stale{named(check, 'stale', said=1)}, {_reused(facts)}"


def _changed(part: str, told: str) -> Rule:
    """A condition on a part of the identity that changed within the session."""

    def tell(facts: Facts, past: Past, limits: Thresholds) -> str | None:
        if part not in facts.changed:
            return None
        value = getattr(facts, part, None)
        return f"{told}{f' to {value}' if value else ''} within the session, {_reused(facts)}"

    return tell


def _baseline(facts: Facts, past: Past, limits: Thresholds) -> str | None:
    """A commit of the agent's own moves the head too; files that are known to be as they were read say so."""
    check = facts.checks.get("repository")
    if past.left is None or (check is not None and check.verdict == "fresh"):
        return None
    files = check.verdict if check is not None else "not checked"
    return f"baseline moved {past.left[:12]} to {(facts.head or '')[:12]}, files read {files}, {_reused(facts)}"


def _summary(facts: Facts, past: Past, limits: Thresholds) -> str | None:
    made = f" of compaction {facts.event}" if facts.event else ""
    return f"the summary{made} failed its validation, {_reused(facts)}" if facts.trusted is False else None


def _full(facts: Facts, past: Past, limits: Thresholds) -> str | None:
    if not facts.input or not facts.window or facts.input < limits.compact_at * facts.window:
        return None
    check = facts.checks.get("constraints")
    declared = count(check, "declared") if check is not None else None
    keep = [f"{number} {what}" for number, what in ((declared, "constraints"), (facts.todos, "open todos")) if number]
    return f"{_filled(facts)}{f'; preserve {keep[0]}' if keep else ''}{f' and {keep[1]}' if keep[1:] else ''}"


def _outgrown(facts: Facts, past: Past, limits: Thresholds) -> str | None:
    """Told right after a compaction, when what is left is the working set."""
    if not facts.compacted or not facts.input or not facts.window:
        return None
    proof = f"{past.compactions} compactions, at most {limits.compaction_calls} calls apart"
    if facts.input >= limits.full_after * facts.window:
        proof = "right after compaction"
    elif past.compactions < limits.compactions:
        return None
    other = sibling(facts, larger=True)
    return f"{_filled(facts)}, {proof}{f'; {other[0]} has {other[1]:,}' if other else ''}"


def _too_small(facts: Facts, past: Past, limits: Thresholds) -> str | None:
    """What stays after each compaction is more than what triggers the next."""
    if f"{LOOP}:diagnosis=floor_above_trigger" not in facts.odd:
        return None
    other = sibling(facts, larger=True)
    return f"compaction loop, {_told(facts, LOOP)}{f'; {other[0]} has {other[1]:,}' if other else ''}"


def _too_often(facts: Facts, past: Past, limits: Thresholds) -> str | None:
    told = _told(facts, FREQUENT)
    return (
        f"frequent compactions, {told}; or a later threshold for {facts.model or 'this model'} alone" if told else None
    )


def _told(facts: Facts, symptom: str) -> str:
    """The evidence of a symptom."""
    pairs = (word.partition(":") for word in facts.odd)
    return " ".join(told for name, _, told in pairs if name == symptom)


def _roomy(facts: Facts, past: Past, limits: Thresholds) -> str | None:
    if past.calls < CALLS_SEEN or past.first is None or not facts.input or not facts.window:
        return None
    other = sibling(facts, larger=False)
    growth = max(0, facts.input - past.first) // (past.calls - 1)
    if other is None or facts.input + growth * limits.room_calls > limits.compact_at * other[1]:
        return None
    return (
        f"{facts.input:,} tokens fit {other[0]} ({other[1]:,}) with room for {limits.room_calls} calls of {growth:,} "
        f"tokens each, {_reused(facts)}"
    )


def _sound(facts: Facts, limits: Thresholds) -> str | None:
    """Why nothing need be done; `None` if any of it is not known to be well."""
    asked = {pillar: check for pillar, check in facts.checks.items() if _asked(check)}
    if not asked or any(check.verdict not in SOUND for check in asked.values()):
        return None
    if facts.wasted or not facts.input or not facts.window or facts.input >= limits.compact_at * facts.window:
        return None
    told = ", ".join(f"{pillar} {check.verdict}" for pillar, check in asked.items())
    return f"{told}; {_filled(facts)}, {_reused(facts)}"


def _asked(check: Check) -> bool:
    return check.verdict != "unavailable" and NOT_ASKED.isdisjoint(check.findings.evidence)


def sibling(facts: Facts, larger: bool) -> tuple[str, int] | None:
    """The same model of this surface with the next larger or smaller window: one name begins with the other."""
    own, window = facts.model, facts.window
    if not own or not window:
        return None
    near = [
        (size, name)
        for name, size in facts.windows.items()
        if (size > window if larger else size < window) and (name.startswith(f"{own}-") or own.startswith(f"{name}-"))
    ]
    found = (min(near) if larger else max(near)) if near else None
    return (found[1], found[0]) if found else None


def count(check: Check, name: str) -> int | None:
    """A number that a check counted."""
    for word in check.findings.counts:
        key, _, value = word.partition("=")
        if key == name:
            return int(value) if value.isdecimal() else None
    return None


def named(check: Check, *kinds: str, said: int = 0) -> str:
    """What a check's evidence names under these words, each with the first few things said of it."""
    pairs = (word.partition("=") for word in check.findings.evidence)
    found = [" ".join(value.split(":")[: said + 1]) for kind, _, value in pairs if kind in kinds]
    return f" {', '.join(found[:3])}{' and more' if len(found) > 3 else ''}" if found else ""


def _filled(facts: Facts) -> str:
    part, whole = facts.input or 0, facts.window or 1
    return f"window {percent(part, whole)} full ({part:,} of {whole:,})"


def _reused(facts: Facts) -> str:
    if not facts.input or facts.cached is None:
        return "reuse unknown"
    return f"{percent(facts.cached, facts.input)} reused"


def percent(part: int, whole: int) -> str:
    """A part of a whole; 100 and 0 are said only of everything and of nothing."""
    share = 100 * part / whole
    return "<1 %" if 0 < share < 1 else ">99 %" if 99 < share < 100 else f"{share:.0f} %"


Rule = Callable[[Facts, Past, Thresholds], "str | None"]
RULES: tuple[tuple[str, Rule], ...] = (
    (REBUILD_CONTEXT, _canary),
    (REBUILD_CONTEXT, _tools),
    (REBUILD_CONTEXT, _files),
    (REBUILD_CONTEXT, _broken),
    (REBUILD_CONTEXT, _unexpected),
    (NEW_SESSION, _summary),
    (NEW_SESSION, _stale_policy),
    (NEW_SESSION, _changed("policy", "policy changed")),
    (NEW_SESSION, _changed("model", "model changed")),
    (NEW_SESSION, _changed("effort", "effort changed")),
    (NEW_SESSION, _baseline),
    (COMPACT, _full),
    (LARGER_WINDOW, _outgrown),
    (LARGER_WINDOW, _too_small),
    (LARGER_WINDOW, _too_often),
    (SMALLER_WINDOW, _roomy),
)


class Advisor:
    """What is remembered of sessions for advice, the least recently used out first. Any thread may call."""

    def __init__(self, limits: Thresholds = DEFAULTS, sessions: int = 1000) -> None:
        self._limits, self._most = limits, sessions
        self._pasts: OrderedDict[str, Past] = OrderedDict()
        self.renew_lock()

    def renew_lock(self) -> None:
        """A free lock for a forked child, whose parent may have held the old one."""
        self._lock = Lock()

    def past(self, session: str) -> Past:
        """A session up to now."""
        return self._pasts.get(session, NEW)

    def after(self, past: Past, facts: Facts) -> Past:
        """A session with one more call."""
        return after(past, facts, self._limits)

    def keep(self, session: str, past: Past) -> None:
        """Remembers a session with a call that ended."""
        with self._lock:
            self._pasts[session] = past
            self._pasts.move_to_end(session)
            if len(self._pasts) > self._most:
                self._pasts.popitem(last=False)

    def advise(self, facts: Facts, past: Past) -> tuple[str, ...]:
        """The advice on a call, the last of its session."""
        return advise(facts, past, self._limits)
