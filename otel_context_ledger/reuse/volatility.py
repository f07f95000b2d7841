"""Which differences between two versions of a text are volatile: clocks, dates, ids, counters, nonces, paths, git
status. Two texts that are equal once such spans are masked say the same thing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_DATE = r"\d{4}[-/]\d{1,2}[-/]\d{1,2}|(?:mon|tues|wednes|thurs|fri|satur|sun)day,?\s+\w+\s+\d{1,2},?\s+\d{4}"
_MONTHS = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s*[ap]\.?m\.?)?"
_ZONE = r"(?:\s*(?:Z\b|UTC|GMT)|[+-]\d{2}:?\d{2})?"
_COUNTED = r"(?:turn|step|request|iteration|call|message|attempt|counter|seq|build|pid|port|round)"
# In order: an earlier kind takes the span. Sources: cases CM01 to CM06, CM48.
MASKS: tuple[tuple[str, str], ...] = (
    ("uuid", r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"),
    ("datetime", rf"(?:{_DATE})[T\s,]+(?:at\s+)?{_CLOCK}{_ZONE}"),
    ("date", rf"\b(?:{_DATE}|\d{{1,2}}\s+{_MONTHS}\s+\d{{4}}|{_MONTHS}\s+\d{{1,2}},?\s+\d{{4}})\b"),
    ("time", rf"\b{_CLOCK}{_ZONE}"),
    ("repo_status", r"^[ \t]*(?:git\s+)?status:[^\n]*(?:\n[ \t]*[MADRCU?!]{1,2}[ \t]+\S+[^\n]*)*"),
    ("repo_status", r"^[ \t]?[MADRCU?!]{1,2}[ \t]+\S+[ \t]*\n?"),
    ("repo_status", r"^[ \t]*(?:current\s+)?branch:[^\n]*"),
    ("nonce", r"(?<==)(?=[0-9a-z]*\d)[0-9a-z]{4,}(?=;|\s|$)"),
    ("nonce", r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}\b"),
    ("epoch", r"\b1[5-9]\d{8}(?:\d{3})?(?:\.\d+)?\b"),
    ("counter", rf"(?<=\b)(?:{_COUNTED})(?:\s+(?:number|no\.?|#))?[\s:=#]{{1,3}}\d+"),
    ("counter", r"\b\d[\d,]*(?=\s+(?:tokens?|seconds?|minutes?|turns?|steps?)\s+(?:left|remaining|used|elapsed))"),
    ("path", r"(?:/(?:home|tmp|var|private|Users|root|work|workspace|mnt|opt)(?:/[\w.@+-]+)+|[A-Z]:\\[\w.\\ -]+)"),
)
_GROUPS = tuple((f"k{n}", kind) for n, (kind, _) in enumerate(MASKS))
_PATTERN = re.compile("|".join(f"(?P<k{n}>{mask})" for n, (_, mask) in enumerate(MASKS)), re.IGNORECASE | re.MULTILINE)
_KINDS = dict(_GROUPS)


@dataclass(frozen=True, slots=True)
class Volatile:
    """A volatile difference: its kind, its grain (second, minute, day) and the first differing character."""

    kind: str
    grain: str | None
    offset: int


def mask(text: str) -> str:
    """The text with every volatile span replaced by the name of its kind."""
    return _PATTERN.sub(lambda match: f"<{_KINDS[match.lastgroup or '']}>", text)


def compare(old: str, new: str) -> Volatile | None:
    """The volatile difference between two texts, or `None` when they differ in more than volatile spans."""
    if old == new or mask(old) != mask(new):
        return None
    offset = common(old, new)
    for match in _PATTERN.finditer(new):
        if match.end() > offset or match.end() == len(new):
            kind = _KINDS[match.lastgroup or ""]
            return Volatile(kind, _grain(kind, old, new, offset), offset)
    return Volatile("unknown", None, offset)


def _grain(kind: str, old: str, new: str, offset: int) -> str | None:
    """How often a clock moves, told from the number of colons of the clock that moved."""
    if kind == "date":
        return "day"
    if kind not in ("datetime", "time"):
        return None
    spans = [m.group() for m in _PATTERN.finditer(new) if m.start() <= offset <= m.end()]
    return "second" if spans and spans[0].count(":") >= 2 else "minute"


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
