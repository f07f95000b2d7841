"""Whether the files that a history read are still what they were: what was seen on disk against what was read and when.

The bytes as read are those of the first look after the read, the bytes now those of the last look; before any look
nothing is known. Pure: looking is left to `files`, what was read to `reads`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from otel_context_ledger.correctness.coverage import held_lines, overlap, repeated_bytes, within
from otel_context_ledger.correctness.looks import INSIDE, MISSING, OTHER, OUTSIDE, Looks, Shelved, Span, together
from otel_context_ledger.correctness.reads import MAX_READINGS, Known, Reading
from otel_context_ledger.model import UNKNOWN, Check, Findings
from otel_context_ledger.records import quick

MAX_WRITERS = 4
FRESH, STALE, MISMATCH, UNAVAILABLE = "fresh", "stale", "root_mismatch", "unavailable"
_NO_END = 1 << 40


@quick
@dataclass(frozen=True, slots=True)
class Opinion:
    """What is held of one file: fresh, stale, unknown (`why`), other or outside. `low`: it changed after the program's
    own edit, as by a formatter, or is a log, read from its end, that grew; `stale_write`: it was written although it
    had changed since it was read; `since` is when it was last known to be as read (seconds); `held` of its `lines` are
    in the history, `repeated` bytes more than once; `gone`: it is not there any more."""

    word: str
    low: bool = False
    stale_write: bool = False
    since: float = 0.0
    held: int | None = None
    lines: int | None = None
    repeated: int = 0
    why: str | None = None
    gone: bool = False

    @property
    def partial(self) -> bool:
        """Whether the history holds only some of the file's lines."""
        return self.held is not None and self.lines is not None and self.held < self.lines


Judgement = tuple[Known, Looks | None, Opinion]
"""An opinion after what it was made from."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on what was read, and bytes that the history holds more than once. What it was made from is kept: as
    long as that is the same, so is this."""

    check: Check | None = None
    repeated: int | None = None
    files: Mapping[str, Known] = field(default_factory=dict)
    shelved: Shelved | None = None
    opinions: Mapping[str, Judgement] = field(default_factory=dict)


Writers = Callable[[str, float], Iterable[str]]
"""The sessions that wrote a file after a time, the asking one left out."""


def judge(
    files: Mapping[str, Known], shelved: Shelved | None, before: Judged, writers: Writers, left_out: int = 0
) -> Judged:
    """The verdict on all files that were read, each judged anew only where something about it is new; so many more are
    not known any more."""
    if before.files is files and before.shelved is shelved:
        return before
    looks = shelved.files if shelved is not None else {}
    opinions = dict(_opinions(*_gathered(files, looks), before.opinions))
    found = [(path, opinion) for path, (_, _, opinion) in opinions.items()]
    repeated = sum([opinion.repeated for _, opinion in found]) if found else None
    check = _check(found, files, shelved, writers, left_out) if shelved is not None else None
    return Judged(check, repeated, files, shelved, opinions)


def _gathered(
    files: Mapping[str, Known], looks: Mapping[str, Looks]
) -> tuple[Mapping[str, Known], Mapping[str, Looks]]:
    """Files by the first path that each was read by, with the looks at all its paths."""
    paths: dict[str, list[str]] = {}
    for path in files:
        look = looks.get(path)
        paths.setdefault(look.real or path if look is not None else path, []).append(path)
    if len(paths) == len(files):
        return files, looks
    found = {several[0]: _joined([files[path] for path in several]) for several in paths.values()}
    every = {several[0]: together([looks[path] for path in several]) for several in paths.values() if len(several) > 1}
    return found, {**looks, **every}


def _joined(every: Sequence[Known]) -> Known:
    if len(every) == 1:
        return every[0]
    readings = sorted([one for known in every for one in known.readings], key=lambda reading: reading.seen)
    return Known(tuple(readings[-MAX_READINGS:]), sum(known.stubs for known in every))


def _opinions(
    files: Mapping[str, Known], looks: Mapping[str, Looks], before: Mapping[str, Judgement]
) -> Iterator[tuple[str, Judgement]]:
    for path, known in files.items():
        look, then = looks.get(path), before.get(path)
        same = then is not None and then[0] is known and then[1] is look
        yield path, then if then is not None and same else (known, look, opinion(known, look))


def opinion(known: Known, looks: Looks | None) -> Opinion:
    """What is held of one file."""
    repeated = repeated_bytes(known, looks)
    if looks is None or not looks.spans:
        return Opinion(UNKNOWN, repeated=repeated, why="not_looked_at")
    if looks.place != INSIDE:
        return Opinion(looks.place, repeated=repeated)
    word, low, stale_write, since = _weighed(known.readings, looks)
    now = looks.spans[-1]
    why = _why_unknown(known.readings, looks) if word == UNKNOWN else None
    lines = now.lines if now.digest not in (None, MISSING) else None
    gone = now.digest == MISSING
    return Opinion(word, low, stale_write, since, held_lines(known.readings, lines), lines, repeated, why, gone)


def _why_unknown(readings: Sequence[Reading], looks: Looks) -> str:
    if not readings:
        return "not_held"
    if looks.spans[-1].digest is None:
        return "unreadable"
    if all(span.digest == MISSING for span in looks.spans):
        return "not_found"
    held = [looks.since(reading.seen) for reading in readings]
    if any(span is None for span in held):
        return "not_looked_at"
    return "not_remembered" if any(span is not None and span.digest is None for span in held) else "seen_late"


def _weighed(readings: Sequence[Reading], looks: Looks) -> tuple[str, bool, bool, float]:
    """The word on a file, whether it weighs little, whether it was written on an old state; when it was last known."""
    counting = [*_counting(readings, looks)]
    words = {word for _, word, _ in counting}
    stale = [(reading, before) for reading, word, before in counting if word == STALE or before is not None]
    stale_write = any(before is not None for _, before in stale)
    word = STALE if stale_write else next((word for word in (STALE, UNKNOWN, FRESH) if word in words), UNKNOWN)
    since = min((reading.seen if before is None else before for reading, before in stale), default=0.0)
    low = (
        bool(stale)
        and not stale_write
        and all(one.write or (one.first < 0 and _only_grew(one, looks)) for one, _ in stale)
    )
    return word, low, stale_write, since


def _counting(readings: Sequence[Reading], looks: Looks) -> Iterator[tuple[Reading, str, float | None]]:
    """The readings that what is known of a file rests on, the latest first, each with its word: the latest reading of
    each line, back to what the program wrote itself. With a write of a file that had changed before comes when that was
    last known."""
    now, covered = looks.spans[-1], set[tuple[int, int]]()
    for at in range(len(readings) - 1, -1, -1):
        reading = readings[at]
        part = _part(reading, looks)
        counts = part not in covered and overlap(part, covered) < part[1] - part[0] + 1
        overtaken = counts and reading.write and at > 0 and _overtaken(reading, readings[at - 1], looks)
        if counts:
            yield reading, _word(reading, looks, now), readings[at - 1].seen if overtaken else None
        if reading.write and (reading.content is not None or not overtaken):
            return
        if not reading.write:
            covered.add(part)


def _part(reading: Reading, looks: Looks) -> tuple[int, int]:
    """The lines that a reading is about: all that may come, if it went to the end of the file as it was then."""
    held = looks.since(reading.seen)
    first, last = within(reading, held.lines if held is not None else 0)
    whole = reading.last is None or (held is not None and reading.last >= held.lines)
    return first, _NO_END if whole else last


def _word(reading: Reading, looks: Looks, now: Span) -> str:
    held = looks.since(reading.seen)
    if held is None or held.digest is None or now.digest is None:
        return UNKNOWN
    # What was read and then found nowhere lies elsewhere than is looked; what the program wrote, it may have deleted.
    if held.digest == MISSING and not reading.write:
        return UNKNOWN
    same = now.loose == reading.content if reading.content is not None else now.digest == held.digest
    # Lines before the end of a file that only grew are what they were.
    same = same or (_part(reading, looks)[1] != _NO_END and _only_grew(reading, looks))
    if not same:
        return STALE
    return FRESH if reading.dated else UNKNOWN


def _only_grew(reading: Reading, looks: Looks) -> bool:
    """Whether nothing but lines at its end came to the file since it was read."""
    held = looks.since(reading.seen)
    later = [span for span in looks.spans if held is not None and span.first > held.last]
    return not reading.write and held is not None and all(span.grown for span in later)


def _overtaken(write: Reading, before: Reading, looks: Looks) -> bool:
    """Whether the file was seen to be another one than was last known, before the write was even asked for."""
    if not write.dated or not before.dated or write.asked is None or write.asked < before.seen:
        return False
    held = looks.since(before.seen)
    then = [span for span in looks.spans if span.first <= write.asked and span.last >= before.seen]
    if held is None or held.digest is None or not then or then[-1].digest is None:
        return False
    if before.content is not None:
        return then[-1].loose != before.content
    return then[-1].digest != held.digest


def _check(
    found: Sequence[tuple[str, Opinion]],
    files: Mapping[str, Known],
    shelved: Shelved,
    writers: Writers,
    left_out: int,
) -> Check:
    words = [opinion.word for _, opinion in found]
    stale = [(path, opinion) for path, opinion in found if opinion.word == STALE]
    partial = [opinion for _, opinion in found if opinion.partial]
    verdict, reason = _verdict(words, next((one.why for _, one in found if one.why), "outside"), shelved)
    detail = [
        *(["stale_write"] if any(opinion.stale_write for _, opinion in stale) else []),
        *(["low"] if stale and all(opinion.low for _, opinion in stale) else []),
        *(["shared_git_dir"] if shelved.shared_git_dir else []),
    ]
    evidence = [*([f"reason={reason}"] if reason else []), *_causes(stale, writers)]
    if partial:
        held, lines = (sum(getattr(opinion, name) for opinion in partial) for name in ("held", "lines"))
        evidence.append(f"coverage={held}/{lines}")
    numbers = {
        "stale": len(stale),
        "deleted": sum(opinion.gone for _, opinion in stale),
        "stale_writes": sum(opinion.stale_write for _, opinion in stale),
        "unknown": words.count(UNKNOWN),
        "partial": len(partial),
        "stubs": sum([known.stubs for known in files.values()]),
        "other_tree": words.count(OTHER),
        "outside": words.count(OUTSIDE),
        "left_out": left_out,
    }
    return Check(verdict, Findings(tuple(detail), _counts(words, numbers), tuple(evidence)))


def _counts(words: Sequence[str], numbers: Mapping[str, int]) -> tuple[str, ...]:
    fresh, known = words.count(FRESH), words.count(FRESH) + words.count(STALE)
    told = [f"files={len(words)}", *([f"fresh={fresh}/{known}"] if known else [])]
    # Of files that are stale it is always said whether they are still there.
    said = {name for name, number in numbers.items() if number} | ({"deleted"} if numbers["stale"] else set())
    return (*told, *(f"{name}={number}" for name, number in numbers.items() if name in said))


def _verdict(words: Sequence[str], why: str, shelved: Shelved) -> tuple[str, str | None]:
    """The verdict on all files together, and why it is none. A file or two of another work tree, as of a library that
    is installed from one, do not make this one the wrong one."""
    if shelved.rooted is False:
        return UNAVAILABLE, "no_repository"
    if STALE in words:
        return STALE, None
    if words.count(OTHER) > words.count(FRESH):
        return MISMATCH, None
    if FRESH in words:
        return FRESH, None
    return UNKNOWN, why if words else "nothing_read"


def _causes(stale: Sequence[tuple[str, Opinion]], writers: Writers) -> list[str]:
    """Why files are other than they were read: another session of this process wrote them, or nobody that is known."""
    if not stale:
        return []
    named = [(path, [*writers(path, opinion.since)]) for path, opinion in stale]
    unknown = sum(not who for _, who in named)
    known = dict.fromkeys(session for _, who in named for session in who)
    told = [f"external_change={unknown}"] if unknown else []
    return [*told, *(f"writer={session}" for session in [*known][:MAX_WRITERS])]
