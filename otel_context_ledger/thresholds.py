"""From where on something is worth telling: the numbers behind advice and symptoms, their defaults and bounds.

What is told, and in which words, is left to those who tell it. A user sets them in `[advice]` of context-ledger.toml,
or in CONTEXT_LEDGER_ADVICE, which goes before the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

EXPECTED = ("policy_hash", "tool_schema_hash", "tool_contract_hash", "repo_snapshot", "summary_hash")


@dataclass(frozen=True, slots=True)
class Thresholds:
    """`compact_at`: share of the window from which on to compact; `high_reuse`: share of the prompt read from the cache
    that counts as high; `full_after`: share of the window that is too much right after a compaction; `compactions` with
    at most `compaction_calls` calls between them are repeated; `room_calls`: calls that must still fit into a smaller
    window; `large_window`: tokens from which on a window is large; `repeated_bytes`: bytes read again that matter.
    `expected` are digests that an entry must have, by their fields."""

    compact_at: float = 0.8
    high_reuse: float = 0.8
    full_after: float = 0.5
    compactions: int = 3
    compaction_calls: int = 20
    room_calls: int = 50
    large_window: int = 200_000
    repeated_bytes: int = 4_096
    expected: Mapping[str, str] = field(default_factory=dict)


DEFAULTS = Thresholds()
MAX_DIGITS = 15


def _share(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= 1


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


Fits = tuple[Callable[[object], bool], str]
_SHARE: Fits = (_share, "a share above 0 and up to 1")
_COUNT: Fits = (_count, "a whole number above 0")
_NUMBERS: Mapping[str, Fits] = {
    "compact_at": _SHARE, "high_reuse": _SHARE, "full_after": _SHARE, "compactions": _COUNT, "compaction_calls": _COUNT,
    "room_calls": _COUNT, "large_window": _COUNT, "repeated_bytes": _COUNT,
}  # fmt: skip


def read(table: Mapping[str, object]) -> tuple[Thresholds, tuple[str, ...]]:
    """The thresholds of an `[advice]` table, and a sentence for each value in it that is none."""
    known = {name: value for name, value in table.items() if name in _NUMBERS and _NUMBERS[name][0](value)}
    bad = [_refused(name, value) for name, value in table.items() if name not in known and name != "expected"]
    pinned, worse = _pinned(table.get("expected", {}))
    return Thresholds(**known, expected=pinned), (*bad, *worse)  # type: ignore[arg-type]


def stated(raw: str) -> Mapping[str, float]:
    """`name=number,…` as the environment says it. Raises ValueError, which names what is none."""
    pairs = [item.strip().partition("=") for item in raw.split(",") if item.strip()]
    given = {name.strip(): _figure(number.strip()) for name, _, number in pairs}
    for name, value in given.items():
        if name not in _NUMBERS:
            raise ValueError(f"{name!r} is none of {', '.join(_NUMBERS)}")
        if not _NUMBERS[name][0](value):
            raise ValueError(f"{name} is not {_NUMBERS[name][1]}")
    return {name: value for name, value in given.items() if isinstance(value, (int, float))}


def _figure(raw: str) -> object:
    if raw.isdecimal() and len(raw) <= MAX_DIGITS:
        return int(raw)
    try:
        return float(raw)
    except ValueError:
        return raw


def _refused(name: str, value: object) -> str:
    if name not in _NUMBERS:
        return f"[advice] {name} = {value!r} is none of {', '.join((*_NUMBERS, 'expected'))}; ignored"
    return f"[advice] {name} = {value!r} is not {_NUMBERS[name][1]}; using the default ({getattr(DEFAULTS, name):g})"


def _pinned(table: object) -> tuple[dict[str, str], list[str]]:
    if not isinstance(table, Mapping):
        return {}, [f"[advice] expected = {table!r} is not a table of digests; ignored"]
    known = {name: value for name, value in table.items() if name in EXPECTED and isinstance(value, str)}
    forms = f"a digest of one of {', '.join(EXPECTED)}"
    return known, [f"[advice.expected] {name} = {v!r} is not {forms}; ignored" for name, v in table.items()
                   if name not in known]  # fmt: skip
