"""Which differences between two versions of a text are volatile: clocks, dates, ids, counters, nonces, paths, git
status. Two texts that are equal once such spans are masked say the same thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest

_LONG_DATE = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day,?\s+\w+\s+\d{1,2},?\s+\d{4}"
_DATE = rf"\d{{4}}[-/]\d{{1,2}}[-/]\d{{1,2}}|\d{{1,2}}/\d{{1,2}}/\d{{4}}|{_LONG_DATE}"
_MONTHS = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s*[ap]\.?m\.?)?"
_ZONE = r"(?:\s*(?:Z\b|UTC|GMT)|[+-]\d{2}:?\d{2})?"
_CHANGED = r"(?-i:[MADRCU?!]{1,2})[ \t]+\S+(?:[ \t]+->[ \t]+\S+)?[ \t]*$"
_STATE = rf"(?:\(?clean\)?|dirty|modified|nothing to commit[^\n]*|working tree clean|{_CHANGED})"
# Words that number what goes on by themselves, and words that do so only beside a sign, an end or a total: "attempt 3"
# counts, "attempt 3 times" is a rule.
_COUNTING = r"(?:turn|step|iteration|counter|seq|sequence|pid)(?:\s+(?:number|no\.?))?[\s:=#]{1,3}\d+"
_COUNTED = r"(?:request|call|message|attempt|build|round)(?:\s+(?:number|no\.?|id))?"
_TOTAL = r"\s+\d+(?=\s*(?:$|[)\].,;]|of\s+\d|/\s*\d))"
_NONCES = r"(?:nonce|cch|request_id|trace_id|session_id|salt|cache_bust(?:er)?)"
# None may be tried at a place for longer than its span is: a list of numbers without end is a system text, too.
# In order: an earlier kind takes the span. A mask hides a change of the rules from the policy hash, so it must name
# what nobody writes a rule with: bare numbers, prices, versions and limits stay. Sources: cases CM01 to CM06, CM48.
MASKS: tuple[tuple[str, str], ...] = (
    ("uuid", r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"),
    ("datetime", rf"(?:{_DATE})[T\s,]+(?:at\s+)?{_CLOCK}{_ZONE}"),
    ("date", rf"\b(?:{_DATE}|\d{{1,2}}\s+{_MONTHS}\s+\d{{4}}|{_MONTHS}\s+\d{{1,2}},?\s+\d{{4}})\b"),
    ("time", rf"\b\d{{1,2}}:\d{{2}}:\d{{2}}(?:[.,]\d+)?(?:\s*[ap]\.?m\.?)?{_ZONE}"),
    ("time", rf"\b(?:time|now|clock|updated)(?:\s+(?:is|now|at))?[\s:=]{{1,3}}{_CLOCK}{_ZONE}"),
    ("repo_status", rf"^[ \t]*(?:git\s*)?status:[ \t]*(?:(?:{_STATE})[ \t]*)?$(?:\n[ \t]*{_CHANGED})*"),
    ("repo_status", r"(?:^[ \t]?(?-i:[MADRCU?!]{1,2})[ \t]+(?=\S*[./])\S+[ \t]*$\n?)+"),
    ("repo_status", r"^[ \t]*(?:current\s+)?branch:[ \t]*[\w./-]+[ \t]*$"),
    ("repo_status", r"^[ \t]*recent commits:[ \t]*$(?:\n[ \t]*[0-9a-f]{7,40}\s[^\n]*)*"),
    ("client_version", r"(?<=cc_version=)[\w.-]+"),
    ("nonce", rf"\b{_NONCES}\s*[=:]\s*[\w-]{{4,}}"),
    ("nonce", r"(?<==)(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{5,}(?=;|\s|$)"),
    ("nonce", r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}\b"),
    ("epoch", r"\b1[5-9]\d{8}(?:\d{3})?(?:\.\d+)?\b"),
    ("counter", rf"\b{_COUNTING}(?![\d.]*\d)"),
    ("counter", rf"\b{_COUNTED}(?:\s*[:=#]\s*\d+|{_TOTAL})(?![\d.]*\d)"),
    ("counter", r"\bport\s*[:=#]\s*\d+(?![\d.]*\d)"),
    ("counter", r"\b\d[\d,]{0,15}(?=\s+(?:tokens?|seconds?|minutes?|turns?|steps?)\s+(?:left|remaining|used|elapsed))"),
    ("path", r"(?:/(?:home|tmp|var|private|Users|root|work|workspace|mnt|opt)(?:/[\w.@+-]+)+|[A-Z]:\\[\w.\\ -]+)"),
)
_GROUPS = tuple((f"k{n}", kind) for n, (kind, _) in enumerate(MASKS))
# Where a mask can begin at all, so that most places are passed over without trying every one: half the time.
_BEGIN = r"(?=\d|/|^|(?<==)|\b[a-w]|(?:mon|tue|wed|thu|fri|sat|sun)|[a-z]:\\)"
_ANY = "|".join(f"(?P<k{n}>{mask})" for n, (_, mask) in enumerate(MASKS))
_PATTERN = re.compile(f"{_BEGIN}(?:{_ANY})", re.IGNORECASE | re.MULTILINE)
_KINDS = dict(_GROUPS)
# A day until or from which something must be, or must not be, done belongs to the rule.
_TERM = re.compile(
    r"(?:\b(?:never|not|must|only|no)|n't)\b[^.!?;\n]*\b(?:after|before|until|till|by|since|from)\s+$", re.IGNORECASE
)
_LEAD = 48
_EMPTY_LINE = "\n\n"
# So many paragraphs of so many characters are kept beside what they are masked.
KEPT, MAX_KEPT = 512, 8 * 1024
_CLOCKS = re.compile(_CLOCK, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Volatile:
    """A volatile difference: the kind of the first span that differs, its grain (second, minute, day), the first
    differing character, and the kinds of the later spans that differ too."""

    kind: str
    grain: str | None
    offset: int
    also: tuple[str, ...] = ()


def mask(text: str) -> str:
    """The text with every volatile span replaced by the name of its kind."""
    return "".join(map(_masked, _paragraphs(text)))


def _paragraphs(text: str) -> list[str]:
    """The text in parts that end with an empty line. No span crosses one, so that of a long text that was seen before
    only the paragraphs that changed have to be looked through."""
    *parts, last = text.split(_EMPTY_LINE)
    return [*(part + _EMPTY_LINE for part in parts), last]


def _masked(part: str) -> str:
    return _kept(part) if len(part) <= MAX_KEPT else _sought(part)


def _sought(part: str) -> str:
    return _PATTERN.sub(_replaced, part)


def _replaced(match: re.Match[str]) -> str:
    kind = _KINDS[match.lastgroup or ""]
    lead = match.string[max(0, match.start() - _LEAD) : match.start()]
    return match.group() if kind == "date" and _TERM.search(lead) else f"<{kind}>"


_kept = lru_cache(KEPT)(_sought)


def compare(old: str, new: str) -> Volatile | None:
    """The volatile difference between two texts, or `None` when they differ in more than volatile spans."""
    if old == new or mask(old) != mask(new):
        return None
    moved = [(_KINDS[b.lastgroup or ""], b.group()) for a, b in _spans(old, new) if a.group() != b.group()]
    if not moved:
        return Volatile("unknown", None, common(old, new))
    # A client's version moves with the client alone: whatever moves beside it moves more often and is named first.
    kind, span = next((item for item in moved if item[0] != "client_version"), moved[0])
    also = dict.fromkeys(other for other, _ in moved if other != kind)
    return Volatile(kind, _grain(kind, span), common(old, new), tuple(also))


def _spans(old: str, new: str) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """The spans of two texts with equal masks, in pairs, without those of paragraphs that are the same."""
    pairs = list(zip_longest(_paragraphs(old), _paragraphs(new), fillvalue=""))
    if any(_masked(a) != _masked(b) for a, b in pairs if a != b):
        pairs = [(old, new)]
    for a, b in pairs:
        if a != b:
            yield from zip(_PATTERN.finditer(a), _PATTERN.finditer(b), strict=False)


def _grain(kind: str, span: str) -> str | None:
    """How often a clock moves, told from the number of its colons."""
    if kind == "date":
        return "day"
    if kind not in ("datetime", "time"):
        return None
    clock = _CLOCKS.search(span)
    return "second" if clock and clock.group().count(":") >= 2 else "minute"


def common(old: str, new: str) -> int:
    """The number of leading characters that two texts share."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
