"""What the committed boards ask: every query of a panel, an annotation and a variable, with the variables filled in as
Grafana does on opening a board."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DIST = Path(__file__).resolve().parents[1] / "dashboards" / "dist"
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::\w+)?\}|(\w+))")
_VALUES_OF = re.compile(r"label_values\((?:(.+), *)?(\w+)\)")


@dataclass(frozen=True)
class Question:
    """One query of a board: who asks, whether for one moment or for a graph, what stands beside it, and whether calls
    are drawn as dots."""

    board: str
    title: str
    expression: str
    instant: bool
    description: str = ""
    exemplars: bool = False

    @property
    def name(self) -> str:
        return f"{self.board}: {self.title}"


def boards() -> list[dict[str, Any]]:
    """The boards as Grafana reads them, by file name."""
    return [json.loads(path.read_text("utf-8")) for path in sorted(DIST.glob("*.json"))]


def questions(board: Mapping[str, Any], window: str, step: str) -> Iterator[Question]:
    """Every query of the panels and annotations of a board; `window` and `step` are its $__range and
    $__rate_interval."""
    known = {**chosen(board), "__range": window, "__rate_interval": step, "__interval": step}
    for panel in panels(board):
        for target in panel.get("targets", ()):
            expression, instant = filled(target["expr"], known), bool(target.get("instant"))
            about, dots = panel.get("description", ""), bool(target.get("exemplar"))
            yield Question(board["uid"], panel["title"], expression, instant, about, dots)
    for note in board["annotations"]["list"]:
        if "expr" in note:
            yield Question(board["uid"], f"annotation {note['name']}", filled(note["expr"], known), False)


def offers(board: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(variable, series, label) of each variable that offers the values of a label."""
    known = chosen(board)
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            found = _VALUES_OF.fullmatch(variable["query"]["query"])
            if found is None:
                raise ValueError(f"{variable['name']}: {variable['query']['query']}")
            yield variable["name"], filled(found[1] or "{__name__!=''}", known), found[2]


def panels(board: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The panels of a board, those of its closed rows too."""
    for panel in board["panels"]:
        yield panel
        yield from panel.get("panels", ())


def chosen(board: Mapping[str, Any]) -> dict[str, str]:
    """What each variable is on opening the board: all that there is, or its usual value."""
    return {variable["name"]: _value(variable) for variable in board["templating"]["list"]}


def _value(variable: Mapping[str, Any]) -> str:
    value = variable.get("current", {}).get("value", "")
    one = value[0] if isinstance(value, list) else value
    return str(variable.get("allValue") or ".*") if one == "$__all" else str(one)


def filled(expression: str, known: Mapping[str, str]) -> str:
    """An expression without variables. Raises KeyError for one that the board does not have."""
    return _VARIABLE.sub(lambda found: known[found[1] or found[2]], expression)
