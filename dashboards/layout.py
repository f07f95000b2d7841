"""Owns what a board is and where its panels stand: sections, lines of equal height, and pairs, in which a figure of
reuse never stands without one of correctness beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from grafana_foundation_sdk.builders import dashboard as d
from grafana_foundation_sdk.models import dashboard as dm

from .annotations import Annotation
from .panels import Place, Shown, drawn
from .variables import Variable

COLUMNS = 24
TAG = "context-ledger"


@dataclass(frozen=True, slots=True)
class Pair:
    """Reuse to the left, correctness to the right."""

    reuse: Shown
    correctness: Shown


@dataclass(frozen=True, slots=True)
class Line:
    """Panels of one height that share the width evenly."""

    height: int
    cells: tuple[Pair | Shown, ...]

    @property
    def panels(self) -> tuple[Shown, ...]:
        return tuple(panel for cell in self.cells for panel in _panels(cell))


@dataclass(frozen=True, slots=True)
class Section:
    """Lines under a heading, which is a question that they answer."""

    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Board:
    """A board. Its uid never changes: links and bookmarks hold it."""

    uid: str
    title: str
    about: str
    variables: tuple[Variable, ...]
    annotations: tuple[Annotation, ...]
    sections: tuple[Section, ...]


def line(height: int, *cells: Pair | Shown) -> Line:
    """Cells beside each other."""
    return Line(height, cells)


def section(title: str, *lines: Line) -> Section:
    """Lines below each other."""
    return Section(title, lines)


@dataclass(frozen=True, slots=True)
class Placed:
    """A panel, or the heading of a section, at its place."""

    what: Shown | Section
    at: Place


def _panels(cell: Pair | Shown) -> tuple[Shown, ...]:
    return (cell.reuse, cell.correctness) if isinstance(cell, Pair) else (cell,)


def placed(board: Board) -> Iterator[Placed]:
    """Everything on a board from top to bottom, with ids that count up."""
    number, y = 0, 0
    for section in board.sections:
        number += 1
        yield Placed(section, Place(number, 0, y, COLUMNS, 1))
        y += 1
        for line in section.lines:
            width = COLUMNS // len(line.panels)
            for at, panel in enumerate(line.panels):
                number += 1
                yield Placed(panel, Place(number, at * width, y, width, line.height))
            y += line.height


def pairs(board: Board) -> list[tuple[str, str]]:
    """The titles of the panels that belong together, the one about reuse first."""
    cells = (cell for section in board.sections for line in section.lines for cell in line.cells)
    return [(cell.reuse.title, cell.correctness.title) for cell in cells if isinstance(cell, Pair)]


def built(board: Board) -> dm.Dashboard:
    """The board as Grafana has it."""
    made = _frame(board)
    for variable in board.variables:
        made = made.with_variable(variable.build())
    for annotation in board.annotations:
        made = made.annotation(annotation.build())
    for one in placed(board):
        made = _added(made, one)
    return made.build()


def _frame(board: Board) -> d.Dashboard:
    others = d.DashboardLink("Context ledger").type(dm.DashboardLinkType.DASHBOARDS).tags([TAG])
    return (
        d.Dashboard(f"Context ledger / {board.title}")
        .uid(board.uid)
        .description(board.about)
        .tags([TAG, "llm"])
        .editable()
        .time("now-6h", "now")
        .refresh("1m")
        .timezone("browser")
        .tooltip(dm.DashboardCursorSync.CROSSHAIR)
        .link(others.as_dropdown(True).include_vars(True).keep_time(True))
    )


def _added(made: d.Dashboard, one: Placed) -> Any:
    if isinstance(one.what, Section):
        return made.with_row(d.Row(one.what.title).id(one.at.id).grid_pos(one.at.grid))
    return made.with_panel(drawn(one.what, one.at))
