"""How values and answers are printed: numbers, times, money, tables and labelled lines.

On a terminal rich draws and fits them to its width, with colours unless NO_COLOR is set. Anywhere else the same rows
are plain text of whatever width they need, so that no value is ever cut. What is printed is up to the commands.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

UNKNOWN = "?"
GAP = 2
# What a column that may fold wants at least.
FOLDED = 24
Cell = str | Text
# Control and direction characters of a value would act on the terminal that shows it.
_CONTROLS = (*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_HARMLESS = dict.fromkeys(_CONTROLS, "\N{REPLACEMENT CHARACTER}")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a `Sheet`. On a terminal it shows `most` characters after the first `skip`, or folds if it may; where
    there is no room, the `spare` columns are left out, the lowest first."""

    title: str
    right: bool = False
    fold: bool = False
    most: int | None = None
    skip: int = 0
    spare: int = 0


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table; `total` is its last row, set apart."""

    columns: tuple[Column, ...]
    rows: Sequence[Sequence[Cell]]
    total: Sequence[Cell] = ()

    def lines(self) -> Iterator[str]:
        """The table as plain lines, as wide as its values are."""
        rows = [tuple(column.title for column in self.columns), *self.rows, *([self.total] if self.total else [])]
        texts = [[plain(cell) for cell in row] for row in rows]
        widths = [max(map(len, cells)) for cells in zip(*texts, strict=True)]
        for row in texts:
            cells = zip(row, widths, self.columns, strict=True)
            yield "  ".join(text.rjust(w) if column.right else text.ljust(w) for text, w, column in cells).rstrip()

    def drawn(self, width: int) -> RenderableType:
        """The table for a terminal of so many characters."""
        table = Table(box=None, padding=(0, GAP, 0, 0), header_style="bold")
        shown = self._fitting(width)
        for column in (self.columns[at] for at in shown):
            table.add_column(
                column.title,
                justify="right" if column.right else "left",
                max_width=column.most,
                overflow="fold" if column.fold else "crop",
                no_wrap=not column.fold,
            )
        for row in (*self.rows, *([self.total] if self.total else [])):
            last = row is self.total
            cells = (_styled(row[at], 0 if last else self.columns[at].skip) for at in shown)
            table.add_row(*cells, style="bold" if last else None)
        return table

    def _fitting(self, width: int) -> list[int]:
        """The columns that there is room for."""
        shown = list(range(len(self.columns)))
        for at in sorted(shown, key=lambda at: self.columns[at].spare):
            if self.columns[at].spare and sum(map(self._need, shown)) > width:
                shown.remove(at)
        return shown

    def _need(self, at: int) -> int:
        column = self.columns[at]
        longest = max((len(plain(row[at])) for row in (*self.rows, self.total) if row), default=0)
        limit = FOLDED if column.fold else (column.most or longest)
        return max(len(column.title), min(longest - column.skip, limit)) + GAP


@dataclass(frozen=True, slots=True)
class Labels:
    """Sentences, each under a label."""

    rows: Sequence[tuple[str, Cell]]

    def lines(self) -> Iterator[str]:
        """One plain line per label."""
        width = max((len(label) for label, _ in self.rows), default=0)
        return (f"{label.ljust(width)}  {plain(cell)}".rstrip() for label, cell in self.rows)

    def drawn(self, width: int) -> RenderableType:
        """The sentences for a terminal, folded beside their labels."""
        grid = Table.grid(padding=(0, GAP, 0, 0))
        grid.add_column(style="bold", no_wrap=True)
        grid.add_column(overflow="fold")
        for label, cell in self.rows:
            grid.add_row(label, _styled(cell))
        return grid


@dataclass(frozen=True, slots=True)
class Lines:
    """Plain lines; an empty one sets parts apart."""

    texts: Sequence[Cell]

    def lines(self) -> Iterator[str]:
        """The lines without their styles."""
        return map(plain, self.texts)

    def drawn(self, width: int) -> RenderableType:
        """The lines with their styles."""
        return Text("\n").join(map(_styled, self.texts))


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command found: for people `parts`, for programs `document`, and whether something is wrong; or a `page`
    that is printed as it is."""

    document: object
    parts: Sequence[Sheet | Labels | Lines]
    found: bool = False
    page: str | None = None


def _json(document: object) -> str:
    """JSON as orjson writes it; integers beyond 64 bits, which it refuses, as the standard library does."""
    try:
        return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
    except TypeError:
        return json.dumps(document, indent=2, ensure_ascii=False)


def write(answer: Answer, as_json: bool) -> None:
    """Prints an answer on stdout."""
    whole = as_json or answer.page is not None
    if isinstance(sys.stdout, io.TextIOWrapper):
        # JSON and pages are UTF-8; a terminal of another encoding shows a replacement instead of ending us.
        sys.stdout.reconfigure(encoding="utf-8" if whole else None, errors="replace")
    if answer.page is not None:
        sys.stdout.write(answer.page)
        sys.stdout.flush()
        return
    if as_json:
        print(_json(answer.document))
        return
    terminal = sys.stdout.isatty()
    console = Console(highlight=False, markup=False, emoji=False) if terminal else None
    for part in answer.parts:
        if console is not None:
            console.print(part.drawn(console.width))
        else:
            print("\n".join(part.lines()))
    sys.stdout.flush()


def plain(cell: Cell) -> str:
    """A cell without its style and without anything that acts on a terminal."""
    return (cell if isinstance(cell, str) else cell.plain).translate(_HARMLESS)


def _styled(cell: Cell, skip: int = 0) -> Text:
    return Text(plain(cell)[skip:], style="" if isinstance(cell, str) else cell.style)


def styled(text: str, style: str) -> Text:
    """A cell with a style."""
    return Text(text, style=style)


def count(number: int | None) -> str:
    """A count with thousands set apart; unknown is `?`, never 0."""
    return UNKNOWN if number is None else f"{number:,}"


def plural(number: int, noun: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def share(part: float | None, whole: float | None) -> str:
    """A part of a whole in percent; 0 and 100 are said only of nothing and of everything."""
    if part is None or whole is None or whole <= 0:
        return UNKNOWN
    percent = 100 * part / whole
    if 0 < percent < 1:
        return "<1 %"
    if 99 < percent < 100:
        return ">99 %"
    return f"{percent:.0f} %"


def money(amount: float | None, currency: str | None = "USD") -> str:
    """An amount with four decimals, or six if it is less than a tenth of a cent."""
    if amount is None:
        return UNKNOWN
    digits = 4 if amount == 0 or abs(amount) >= 0.001 else 6
    figure = f"{abs(amount):,.{digits}f}"
    sign = "-" if amount < 0 else ""
    if 0 < abs(amount) < 1e-6:
        figure, sign = "0.000001", f"{sign}<"
    return f"{sign}${figure}" if currency in (None, "USD") else f"{sign}{figure} {currency}"


def moment(seconds: float | None) -> str:
    """Seconds since the epoch as local date and time."""
    if seconds is None:
        return UNKNOWN
    try:
        return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return UNKNOWN


def span(seconds: float | None) -> str:
    """A duration in the two units that matter."""
    if seconds is None:
        return UNKNOWN
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min"


def size(number: int) -> str:
    """Bytes in the largest unit that leaves a figure above 1."""
    figure, units = float(number), ["B", "KB", "MB", "GB"]
    while figure >= 1024 and len(units) > 1:
        figure /= 1024
        units.pop(0)
    return f"{figure:,.0f} {units[0]}" if units[0] == "B" else f"{figure:,.1f} {units[0]}"
