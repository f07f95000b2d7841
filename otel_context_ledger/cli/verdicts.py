"""What is said of the verdicts on rules files, files that were read, constraints, the history and summaries: each of
their words as a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from otel_context_ledger.cli.calls import Call
from otel_context_ledger.cli.printing import plural, span

NOTHING_KNOWN = {
    "nothing_read": "no read of a file was recognised in the history ([reads] in context-ledger.toml names other "
    "tools; read(path) says it from the program).",
    "not_looked_at": "nobody has looked at the files since they were read.",
    "seen_late": "they were read before this process saw the history, nobody knows on which state.",
    "not_held": "the history holds no text of them.",
    "not_found": "they are not where the program works: what it read lies elsewhere (CONTEXT_LEDGER_REPOSITORY names a "
    "place).",
    "outside": "what was read lies outside of the repository, and in no other one.",
    "not_remembered": "the files have changed so often that their states in between are not remembered.",
    "unreadable": "the files cannot be read, or are too large.",
    "ledger_error": "the ledger itself failed at it, see its log.",
    "no_repository": "there is no git repository around the working directory.",
}
REMEDIES = {
    ("repo_check", "stale"): "Have the files that changed read again before anything is built on them.",
    ("repo_check", "root_mismatch"): "Start the program in the work tree whose files it reads and edits, or name it in "
    "CONTEXT_LEDGER_REPOSITORY.",
    ("policy_check", "stale"): "Begin a new session, or send the rules file again as it is on disk now.",
    ("policy_check", "missing"): "Send the rules file: it is on disk and in nothing that was sent.",
    (
        "constraints_check",
        "lost",
    ): "Put the constraint back where nothing is compacted: the system part or a rules file.",
    (
        "constraints_check",
        "superseded_revived",
    ): "Send the constraint that replaced it; the old one stands there alone.",
    ("state_check", "broken_tool_pair"): "Send calls of tools and their results together, or cut neither of them off.",
    ("state_check", "reasoning_dropped"): "Send the reasoning back with the message that it came with.",
}
REASONS = {
    "no_rules_files": "no rules file was found.",
    "ledger_error": "the ledger itself failed at it, see its log.",
    "history_at_provider": "a part of the history is kept or sealed by the provider, and cannot be looked through.",
    "reasoning_not_seen": "a call stands there without reasoning, and nobody saw whether it came with some.",
    "reasoning_of_another_model": "the history holds reasoning of another model, which this one may not take.",
}
STALE_WRITE = "Compare the files with what the other writer made of them (git diff), and have them read again."
LOW = "Nothing if it is a formatter; have the file read again before the next edit."
MAX_DIGITS = 16


def of_files(call: Call) -> Iterator[str]:
    """What the verdict on the repository goes by, a sentence each."""
    numbers = _pairs(call.words("repository.counts"))
    detail = call.words("repository.detail") or ()
    yield from _compared(numbers, detail)
    for name, sentence in COUNTED.items():
        if number := _number(numbers.get(name)):
            yield sentence(number)
    for word in call.words("repository.evidence") or ():
        name, _, value = word.partition("=")
        yield EVIDENCE[name](value) if name in EVIDENCE else f"{word}."
    if "shared_git_dir" in detail:
        yield "the git directory is that of another work tree, as in a copied one: commits and checkouts go there."
    repeated = call.count("repeated_read_bytes")
    if repeated:
        yield f"{plural(repeated, 'byte')} of what was read stood in the history already{_in_tokens(call, repeated)}."


def of_changes(call: Call) -> Iterator[str]:
    """How the repository differs from that of the comparable call, in one sentence."""
    numbers = _pairs(call.words("repo_changes"))
    told = [sentence(n) for name, sentence in CHANGES.items() if (n := _number(numbers.get(name)))]
    if not told:
        return
    paths = [" ".join(word.split(":", 1)) for word in call.words("repo_paths") or ()]
    named = f" ({', '.join(paths)})" if paths else ""
    yield f"since the call it is compared with: {', '.join(told)}{named}."


def _in_tokens(call: Call, part: int) -> str:
    """Bytes of a request as tokens: its own, by what all of its bytes came to."""
    boundaries = [word.split(":") for word in call.words("prefix_locator") or ()]
    size = max((_number(told[1]) for told in boundaries if len(told) == 3), default=0)
    tokens = call.count("input_tokens")
    return f", about {plural(round(part * tokens / size), 'token')}" if size and tokens and part <= size else ""


def of_rules(call: Call) -> Iterator[str]:
    """What the verdict on the policy goes by, a sentence each."""
    for word in call.words("policy.evidence") or ():
        name, _, value = word.partition("=")
        yield RULES[name](value) if name in RULES else f"{word}."


def of_constraints(call: Call) -> Iterator[str]:
    """What the verdict on the constraints goes by, a sentence each."""
    for word in call.words("constraints.evidence") or ():
        name, _, value = word.partition("=")
        yield CONSTRAINTS[name](value) if name in CONSTRAINTS else f"{word}."


def of_state(call: Call) -> Iterator[str]:
    """What the verdict on the history goes by, a sentence each."""
    for word in call.words("state.evidence") or ():
        name, _, value = word.partition("=")
        yield STATE[name](value) if name in STATE else f"{word}."


def of_summary(call: Call, compactions: Iterable[Call]) -> Iterator[str]:
    """On which summary a call builds, and what its audit found."""
    name, trusted = call.text("compaction_event"), call.flag("summary_trusted")
    if name is None:
        return
    event = next((one for one in reversed([*compactions]) if one.text("compaction_event") == name), None)
    sure = {True: "all that had to survive is there", False: "not to be trusted", None: "nobody can tell"}[trusted]
    yield f"the history before it gave way to a summary (compaction {name}): {sure}."
    if event is None:
        return
    held, asked = event.count("compaction.recall_held"), event.count("compaction.recall_asked")
    if held is not None and asked:
        yield f"of {plural(asked, 'item')} that had to survive, {held:,} did, by {event.text('compaction.validator')}."
    for field, told in (("lost", "lost by it"), ("uncertain", "not sure to be there")):
        if names := event.words(f"compaction.{field}"):
            yield f"{told}: {', '.join(names)}."
    for symptom in event.words("compaction.symptoms") or ():
        yield f"odd about it: {symptom.replace('_', ' ')}."


def remedies(call: Call) -> Iterator[str]:
    """What to do about the verdicts on files and rules."""
    detail = call.words("repository.detail") or ()
    special = STALE_WRITE if "stale_write" in detail else LOW if "low" in detail else None
    if special is not None:
        yield special
    for (field, verdict), sentence in REMEDIES.items():
        if call.text(field) == verdict and (special is None or field != "repo_check"):
            yield sentence


def _compared(numbers: Mapping[str, str], detail: tuple[str, ...]) -> Iterator[str]:
    fresh, _, compared = numbers.get("fresh", "").partition("/")
    if not _number(compared):
        return
    yield f"on disk as they are in the history: {_number(fresh):,} of {plural(_number(compared), 'file')}."
    if "low" in detail:
        yield "what changed did so after the program's own edit, as by a formatter: it weighs little."


def _coverage(value: str) -> str:
    held, _, lines = value.partition("/")
    return f"of the files that are there in part, the history holds {_number(held):,} of {_number(lines):,} lines."


def _external(value: str) -> str:
    return f"changed by nobody that this process knows: {plural(_number(value), 'file')}."


def _stale_rules(value: str) -> str:
    name, _, since = value.rpartition(":")
    return f"an older version of {name} was sent; it changed {span(_number(since.removesuffix('s')))} before this call."


def _copies(value: str) -> str:
    name, _, times = value.rpartition(":")
    return f"{name} was sent in {plural(_number(times), 'place')}."


COUNTED: Mapping[str, Callable[[int], str]] = {
    "deleted": lambda n: f"not there any more: {plural(n, 'file')}.",
    "stale_writes": lambda n: f"written on an old state, after somebody else's change: {plural(n, 'file')}.",
    "stubs": lambda n: f"results that only say that nothing changed, which is no evidence: {n:,}.",
    "other_tree": lambda n: f"in another work tree than the program's: {plural(n, 'file')}.",
    "outside": lambda n: f"outside any work tree, not compared: {plural(n, 'file')}.",
    "left_out": lambda n: f"read longer ago than is kept, not compared: {plural(n, 'file')}.",
    "unknown": lambda n: f"not known whether they changed: {plural(n, 'file')}.",
}
CHANGES: Mapping[str, Callable[[int], str]] = {
    "commit": lambda n: "another commit is checked out",
    "submodule": lambda n: plural(n, "submodule"),
    "lockfile": lambda n: plural(n, "lockfile"),
    "deleted": lambda n: f"{plural(n, 'file')} gone",
    "changed": lambda n: f"{plural(n, 'file')} changed",
    "added": lambda n: f"{plural(n, 'file')} added",
    "staged": lambda n: f"{plural(n, 'file')} staged",
    "restored": lambda n: f"{plural(n, 'file')} as committed again",
    "untracked": lambda n: plural(n, "untracked file"),
    "left_out": lambda n: f"{plural(n, 'file')} not compared, there are too many",
}
EVIDENCE: Mapping[str, Callable[[str], str]] = {
    "reason": lambda value: NOTHING_KNOWN.get(value, f"{value}."),
    "external_change": _external,
    "writer": lambda value: f"session {value} wrote there since.",
    "coverage": _coverage,
}
RULES: Mapping[str, Callable[[str], str]] = {
    "stale": _stale_rules,
    "missing": lambda value: f"{value} is on disk, and nothing of it was sent.",
    "cut": lambda value: f"of {value} the beginning was sent: it was cut, or the rest is new on disk.",
    "copies": _copies,
    "reason": lambda value: REASONS.get(value, f"{value}."),
}


def _match(told: str) -> Callable[[str], str]:
    def sentence(value: str) -> str:
        name, *how = value.rsplit(":", 2)
        said = MATCHED.get(how[0], told) if how else told
        return f"{name} {said}" + (f" (by {how[0]}, {how[1]} sure)." if len(how) == 2 else ".")

    return sentence


# What some matchers found, where that says more than the verdict.
MATCHED = {
    "number": "stands there with another number",
    "context": "stands there, where it may be taken back, narrowed or asked",
    "parts": "is there in part",
    "unseen": "may stand in what was not looked through",
    "busy": "was not asked about: the validator was busy",
    "failed": "was asked about in vain: the validator failed",
}
CONSTRAINTS: Mapping[str, Callable[[str], str]] = {
    "lost": _match("is in nothing that was sent"),
    "negated": _match("is turned into its opposite"),
    "uncertain": _match("may be there in other words"),
    "revived": lambda value: f"{value} was replaced by another one, and stands there without it.",
    "validator": lambda value: f"looked for by {value}.",
    "reason": lambda value: REASONS.get(value, f"{value}."),
}
STATE: Mapping[str, Callable[[str], str]] = {
    "result_without_call": lambda value: f"the result of call {value} is there, and the call is not.",
    "call_without_result": lambda value: f"call {value} has no result.",
    "message": lambda value: f"from message {value} on, reasoning that came with a call is not sent back with it.",
    "reason": lambda value: REASONS.get(value, f"{value}."),
}


def _pairs(words: tuple[str, ...] | None) -> Mapping[str, str]:
    split = (word.partition("=") for word in words or ())
    return {name: number for name, _, number in split}


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) < MAX_DIGITS else 0
