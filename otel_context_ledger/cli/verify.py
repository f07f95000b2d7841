"""`context-ledger verify`: whether the ledger file is whole and what its lines say is consistent.

Each rule looks at one line and knows nothing of the others; what is not provable is counted and is no finding.
"""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass

from otel_context_ledger import __version__, semconv
from otel_context_ledger.cli import calls as c
from otel_context_ledger.cli import trails as t
from otel_context_ledger.cli.calls import MISSING, Book, Call
from otel_context_ledger.cli.printing import Answer, Lines, plural, styled
from otel_context_ledger.config import Config
from otel_context_ledger.model import MAX_TRAIL
from otel_context_ledger.outcomes import EVIDENCE, decide

# A line is written after its call ended, and clocks of several processes may be that far apart.
SLACK_SECONDS = 5.0
LOCATOR_DIGITS = 16
# Of a number of bytes; Python refuses to read one of thousands of digits.
MAX_DIGITS = 18
TRAIL_GROUP = "segments"
_FITS: Mapping[str, Callable[[object], bool]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "int": lambda value: type(value) is int or (isinstance(value, float) and value.is_integer()),
    "double": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "string[]": lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
}
NEVER_NULL = ("entry_id", "started_at", "ledger_version", "cache_outcome", "cache_report", "call_end")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong at a place; `entry_id` is `None` where the line is none of ours."""

    place: str
    entry_id: str | None
    problem: str


@dataclass(frozen=True, slots=True)
class Ledger:
    """What a rule may look at beside the line: the other calls, their trails, and when the first line was written."""

    calls: Mapping[str, Call]
    trails: t.Trails
    oldest: float | None

    @classmethod
    def of(cls, book: Book) -> Ledger:
        """The surroundings of the lines of a file."""
        known = book.by_id()
        return cls(known, t.Trails(known), next((call.closed for call in book.calls if call.closed is not None), None))


Rule = Callable[[Call, Ledger], Iterator[str]]


def answer(arguments: Namespace, settings: Config) -> Answer:
    """Everything that is wrong with the ledger file. Raises `Unusable`."""
    book = c.opened(arguments, settings)
    ledger = Ledger.of(book)
    found = [*_lines(book), *_duplicates(book), *_outcomes(book)]
    proofs: Counter[str] = Counter()
    for call in book.calls:
        found += [Finding(call.place, call.entry_id, problem) for rule in RULES for problem in rule(call, ledger)]
        proof, problems = prefix(call, ledger)
        proofs[proof] += 1
        found += [Finding(call.place, call.entry_id, problem) for problem in problems]
    others = sum(call.text("ledger_version") != __version__ for call in book.calls)
    document = {
        "files": list(map(str, book.files)),
        "calls": len(book.calls),
        "outcomes": len(book.outcomes),
        "compactions": len(book.compactions),
        "other_kinds": book.other_kinds,
        "findings": [asdict(item) for item in found],
        "prefixes": dict(proofs),
        "other_versions": others,
    }
    rows = [styled(_spelled(item), "red") for item in found]
    return Answer(document, [Lines([*rows, *_summary(book, len(found), proofs, others)])], bool(found))


def _spelled(item: Finding) -> str:
    name = f" {item.entry_id}" if item.entry_id else ""
    return f"{item.place}{name}: {item.problem}"


def _summary(book: Book, found: int, proofs: Mapping[str, int], others: int) -> Iterator[str]:
    verdict = plural(found, "finding") if found else "nothing wrong"
    yield f"{plural(len(book.calls), 'call')} in {plural(len(book.files), 'file')}: {verdict}."
    yield from (f"{text}: {plural(proofs[proof], 'call')}" for proof, text in PROOFS.items() if proofs.get(proof))
    if book.outcomes:
        yield f"outcomes of tasks: {plural(len(book.outcomes), 'line')}"
    if book.compactions:
        yield f"compactions: {plural(len(book.compactions), 'line')}"
    if book.other_kinds:
        yield f"of a kind that this version does not know, and skipped: {plural(book.other_kinds, 'line')}"
    if others:
        yield f"fields not checked, because another version wrote the line: {plural(others, 'call')}"


def _lines(book: Book) -> Iterator[Finding]:
    yield from (Finding(place, None, "a torn line: the file ends before it does") for place in book.torn)
    yield from (Finding(place, None, "an unreadable line: it is no JSON object") for place in book.unreadable)
    yield from (Finding(place, None, "no ledger line: it has no entry_id") for place in book.foreign)


def _duplicates(book: Book) -> Iterator[Finding]:
    first: dict[str, str] = {}
    for call in book.calls:
        if call.entry_id in first:
            yield Finding(call.place, call.entry_id, f"its entry_id is that of {first[call.entry_id]}")
        first.setdefault(call.entry_id, call.place)


def _outcomes(book: Book) -> Iterator[Finding]:
    """A telling names its task, and its word follows from what it says."""
    for told in book.outcomes:
        evidence = {name: told.flag(name) for name in EVIDENCE}
        word, follows = told.text("task_outcome"), decide(evidence)
        if not told.text("task_id"):
            yield Finding(told.place, None, "an outcome that names no task")
        elif told.text("ledger_version") == __version__ and word != follows:
            yield Finding(told.place, None, f"task_outcome is {word}, but what it says gives {follows}")


def fields(call: Call, ledger: Ledger) -> Iterator[str]:
    """Every field of the registry is there with its type and a value of its list (causes have a rule of their own), and
    no other field is."""
    if call.text("ledger_version") != __version__:
        return
    for key, _, field in semconv.ENTRY_FIELDS:
        value = call.value(field)
        if value is MISSING:
            yield f"{field} is missing"
        elif value is None:
            if field in NEVER_NULL:
                yield f"{field} is null"
        elif not _FITS[semconv.TYPES[key]](value):
            yield f"{field} is no {semconv.TYPES[key]}: {value!r}"
        elif key in semconv.MEMBERS and value not in semconv.MEMBERS[key] and field != "miss_cause":
            yield f"{field} is {value!r}, which is not in the registry"
    yield from (f"{name} is not in the registry" for name in _leaves(call.raw) if name not in _KNOWN)


_KNOWN = {field for _, _, field in semconv.ENTRY_FIELDS}
_PARENTS = {field.split(".")[0] for field in _KNOWN if "." in field}


def _leaves(raw: Mapping[str, object]) -> Iterator[str]:
    groups = {group for _, group, _ in semconv.ENTRY_FIELDS}
    for group, members in raw.items():
        if group not in groups or not isinstance(members, Mapping):
            yield from (group,) if group != TRAIL_GROUP else ()
            continue
        for name, value in members.items():
            if name in _PARENTS:
                yield from (f"{name}.{inner}" for inner in (value if isinstance(value, Mapping) else ()))
            else:
                yield name


def tokens(call: Call, ledger: Ledger) -> Iterator[str]:
    """Counts are no less than 0, and parts add up to their wholes."""
    counts = {name: call.count(name) for name in COUNTS}
    yield from (f"{name} is {number}" for name, number in counts.items() if number is not None and number < 0)
    whole, cached, missed = (counts[name] for name in ("input_tokens", "cached_tokens", "cache_miss_tokens"))
    if whole is not None and cached is not None and missed != whole - cached:
        yield f"cache_miss_tokens is {_null(missed)}, but {whole} input - {cached} cached is {whole - cached}"
    if cached is None and missed is not None:
        yield f"cache_miss_tokens is {missed}, but cached_tokens is null"
    for part, total in PARTS:
        sizes = [counts[name] for name in part]
        total_size, known = counts[total], [size for size in sizes if size is not None]
        if total_size is not None and sum(known) > total_size:
            yield f"{' + '.join(part)} is {sum(known)}, more than {total} ({total_size})"


COUNTS = (
    "input_tokens", "cached_tokens", "cache_miss_tokens", "cache_write_tokens", "cache_write_5m_tokens",
    "cache_write_1h_tokens", "cache_write_30m_tokens", "cache_write_12h_tokens", "reusable_tokens", "avoidable_tokens",
    "output_tokens", "reasoning_tokens",
)  # fmt: skip
PARTS = (
    (("cached_tokens", "cache_write_tokens"), "input_tokens"),
    (("cache_write_5m_tokens", "cache_write_1h_tokens"), "cache_write_tokens"),
    (("cache_write_30m_tokens", "cache_write_12h_tokens"), "cache_write_tokens"),
)


def outcome(call: Call, ledger: Ledger) -> Iterator[str]:
    """The outcome is one that the counts allow, and the report says whether there are any."""
    word, cached, missed = call.text("cache_outcome"), call.count("cached_tokens"), call.count("cache_miss_tokens")
    if (call.text("cache_report") == "reported") != (cached is not None):
        yield f"cache_report is {call.text('cache_report')}, but cached_tokens is {_null(cached)}"
    if word not in _ALLOWED:
        return
    if not _ALLOWED[word](cached, missed):
        yield f"cache_outcome is {word}, but cached is {_null(cached)} and missed {_null(missed)}"


_ALLOWED: Mapping[str | None, Callable[[int | None, int | None], bool]] = {
    "unknown": lambda cached, missed: cached is None,
    "hit": lambda cached, missed: cached is not None and (missed == 0 or cached > 0),
    "partial": lambda cached, missed: bool(cached) and missed != 0,
    "miss": lambda cached, missed: cached == 0 and missed != 0,
    "cold": lambda cached, missed: cached is not None and missed != 0,
}


def cause(call: Call, ledger: Ledger) -> Iterator[str]:
    """The cause is a word of the closed list, and its details do not stand without it."""
    name = call.text("miss_cause")
    if name is not None and name not in semconv.CAUSES:
        yield f"miss_cause is {name!r}, which is no cause"
    stray = [field for field in ("miss_detail", "miss_evidence", "miss_secondary") if call.words(field)]
    if name is None and stray:
        yield f"there is no miss_cause, but {' and '.join(stray)}"


def comparable(call: Call, ledger: Ledger) -> Iterator[str]:
    """The comparable call is another one, and in the file if it ended after the file's first line was written."""
    name, idle, started = call.text("comparable_id"), call.number("idle_seconds"), call.number("started_at")
    if name == call.entry_id:
        yield "it is compared with itself"
        return
    if name is None or name in ledger.calls or None in (idle, started, ledger.oldest):
        return
    ended = (started or 0) - (idle or 0)
    if ended > (ledger.oldest or 0) + SLACK_SECONDS:
        yield f"its comparable call {name} is not in the file, though it ended after the file's first line was written"


def trail(call: Call, ledger: Ledger) -> Iterator[str]:
    """The trail has the right form, extends the comparable call and tells of as many messages as were sent."""
    if call.value(TRAIL_GROUP) in (None, MISSING):
        return
    found, rendering = t.read(call), ledger.trails.of(call)
    if found is None or rendering is None:
        yield "its segments are not of the form {base, keep, add: [[kind, name, bytes, digest], …]}"
        return
    if found.base not in (None, call.text("comparable_id")):
        yield f"its segments extend call {found.base}, but it is compared with {call.text('comparable_id')}"
    base = ledger.calls.get(found.base) if found.base else None
    if base is not None and rendering.missing == found.base and not _cut(base):
        yield f"its segments keep {found.keep} of call {found.base}, which has fewer"
    length, told = call.count("history_length"), len(rendering.of("message"))
    if not rendering.unknown and not _cut(call) and length not in (None, told):
        yield f"its segments are {told} messages, but history_length is {length}"


def _cut(call: Call) -> bool:
    """Whether a call sent more new messages than its line tells of."""
    found = t.read(call)
    return found is None or len(found.add) >= MAX_TRAIL


def prefix(call: Call, ledger: Ledger) -> tuple[str, list[str]]:
    """Whether the prefix locator follows from the segments: a word of `PROOFS`, and what does not fit."""
    rendering = ledger.trails.of(call)
    if rendering is None:
        return "untold", []
    if not rendering.links:
        return "base_gone", []
    problems = [problem for entry in call.words("prefix_locator") or () for problem in _boundary(entry, rendering)]
    keyed = rendering.links[-1][1] is None
    return "keyed" if keyed else "recomputed", problems


PROOFS = {
    "recomputed": "prefix digests recomputed from the segments",
    "keyed": "prefix digests not verifiable without the raw digests (they are keyed)",
    "base_gone": "prefix digests not verifiable, because a call before is no longer in the file",
    "untold": "prefix digests not verifiable, because the line holds no segments",
}


def _boundary(entry: str, rendering: t.Rendering) -> Iterator[str]:
    parts = entry.split(":")
    if len(parts) != 3 or not all(part.isdecimal() and len(part) <= MAX_DIGITS for part in parts[:2]):
        yield f"prefix_locator holds {entry!r}, which is not boundary:bytes:digest"
        return
    at, told = int(parts[0]), int(parts[1])
    if at >= len(rendering.links):
        return
    size, link = rendering.links[at]
    if size != told:
        yield f"prefix_locator says {told} bytes at boundary {at}, but the segments have {size}"
    if link is not None and link.hex()[:LOCATOR_DIGITS] != parts[2]:
        yield f"prefix_locator says {parts[2]} at boundary {at}, but the segments give {link.hex()[:LOCATOR_DIGITS]}"


def _null(number: int | None) -> str:
    return "null" if number is None else str(number)


RULES: tuple[Rule, ...] = (fields, tokens, outcome, cause, comparable, trail)
