"""The tables and sentences of other commands as markup: the same rows that they print."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from rich.text import Text

from otel_context_ledger.cli.printing import Cell, Column, Sheet
from otel_context_ledger.cli.report.markup import EMPTY, Content, Markup, element

LONG = 28


def table(sheet: Sheet, caption: str, places: Sequence[str] = ()) -> Markup:
    """A table in a box that scrolls sideways by itself. The first cell of a row is the row's name, and leads to one of
    the `places` on the page, where there are so many."""
    head = element("tr", *(element("th", column.title, scope="col", class_=_side(column)) for column in sheet.columns))
    rows = [_row(sheet.columns, row, place=place) for row, place in zip_longest(sheet.rows, places[: len(sheet.rows)])]
    total = element("tfoot", _row(sheet.columns, sheet.total, "total")) if sheet.total else EMPTY
    body = (element("caption", caption), element("thead", head), element("tbody", *rows), total)
    return scrolled(element("table", *body), caption)


def scrolled(content: Markup, name: str) -> Markup:
    """Something wide, in a box that scrolls sideways, with a keyboard too."""
    return element("div", content, class_="scroll", role="region", aria_label=name, tabindex="0")


def described(rows: Iterable[tuple[str, Content | Text]]) -> Markup:
    """Contents, each beside its label; a label that is the one before is not said again."""
    return element("dl", *_described(rows), class_="told")


def _described(rows: Iterable[tuple[str, Content | Text]]) -> Iterator[Markup]:
    before = ""
    for label, content in rows:
        if label != before:
            yield element("dt", label)
        before = label
        yield element("dd", content.plain if isinstance(content, Text) else content)


def _row(
    columns: Sequence[Column], cells: Sequence[Cell], class_: str | None = None, place: str | None = None
) -> Markup:
    first, *rest = zip(columns, cells, strict=True)
    title, inner = _cell(first[1]), _side(first[0]) or ("inner" if _cell(first[1]).startswith(" ") else None)
    name = element("a", title, href=f"#{place}") if place else title
    others = [element("td", _cell(cell), class_=_classes(column, cell)) for column, cell in rest]
    return element("tr", element("th", name, scope="row", class_=inner), *others, class_=class_)


def _cell(cell: Cell) -> str:
    return cell if isinstance(cell, str) else cell.plain


def _classes(column: Column, cell: Cell) -> str | None:
    style = str(cell.style) if isinstance(cell, Text) else ""
    length = len(_cell(cell))
    wide = "long" if column.fold and length > LONG else "word" if not column.fold and length <= LONG else ""
    return " ".join(filter(None, (_side(column), style, wide))) or None


def _side(column: Column) -> str | None:
    return "n" if column.right else None
