"""A measured row and its bar, and how rows are written: for people as a table, for programs as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

_HEAD = ("what", "SDK alone", "added", "share", "bar", "")


@dataclass(frozen=True, slots=True)
class Bar:
    """A limit: a share of what the SDK spends, seconds of CPU, or bytes. `None` sets no limit."""

    share: float | None = None
    seconds: float | None = None
    bytes: int | None = None

    def __str__(self) -> str:
        if self.share is not None:
            return f"≤ {_share(self.share)}"
        if self.seconds is not None:
            return f"≤ {_time(self.seconds)}"
        return f"≤ {_bytes(self.bytes)}" if self.bytes is not None else ""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: CPU seconds of the SDK and of us, or bytes (`unit`)."""

    what: str
    alone: float | None
    added: float
    bar: Bar = field(default_factory=Bar)
    unit: str = "seconds"

    @property
    def share(self) -> float | None:
        """What we add, as a share of what the SDK spends."""
        return self.added / self.alone if self.alone else None

    @property
    def over(self) -> bool | None:
        """Whether the row is over its bar; `None` where there is none."""
        pairs = ((self.bar.share, self.share), (self.bar.seconds, self.added), (self.bar.bytes, self.added))
        known = [value > limit for limit, value in pairs if limit is not None and value is not None]
        return any(known) if known else None

    def cells(self) -> tuple[str, ...]:
        """The row as texts."""
        write = _time if self.unit == "seconds" else _bytes
        alone = "" if self.alone is None else write(self.alone)
        share = "" if self.share is None else _share(self.share)
        verdict = {None: "", False: "ok", True: "over"}[self.over]
        return (self.what, alone, write(self.added), share, str(self.bar), verdict)

    def as_json(self) -> dict[str, object]:
        """The row's numbers by name."""
        bar = {"share": self.bar.share, "seconds": self.bar.seconds, "bytes": self.bar.bytes}
        return {
            "what": self.what, "alone": self.alone, "added": self.added, "unit": self.unit, "share": self.share,
            "bar": {name: limit for name, limit in bar.items() if limit is not None}, "over": self.over,
        }  # fmt: skip


def write(rows: Iterable[Row], conditions: Mapping[str, str]) -> str:
    """The table for people, the conditions of the run below it."""
    lines = [_HEAD, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
    texts = [
        " ".join(_aligned(cell, width, n) for n, (cell, width) in enumerate(zip(line, widths, strict=True)))
        for line in lines
    ]
    return "\n".join([*(text.rstrip() for text in texts), "", ", ".join(f"{k} {v}" for k, v in conditions.items())])


def _aligned(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column == 0 else f" {cell.rjust(width)}"


def _time(seconds: float) -> str:
    scale, unit = next(((s, u) for s, u in ((1.0, "s"), (1e-3, "ms")) if abs(seconds) >= s / 10), (1e-6, "µs"))
    return f"{seconds / scale:.3g} {unit}"


def _bytes(size: float) -> str:
    return f"{size / 2**20:.3g} MB"


def _share(share: float) -> str:
    return f"{100 * share:.2g} %"
