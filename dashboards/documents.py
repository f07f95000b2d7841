"""Owns the boards as JSON: what the SDK makes, without what no version of Grafana reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from .boards import BOARDS
from .layout import Board, built

# Of a variable of another kind: the SDK writes them for all.
_INTERVALS = ("auto", "auto_min", "auto_count")


def document(board: Board) -> dict[str, Any]:
    """A board in Grafana's classic JSON."""
    made: dict[str, Any] = json.loads(json.dumps(built(board), cls=JSONEncoder))
    for variable in made["templating"]["list"]:
        for name in _INTERVALS:
            variable.pop(name, None)
    for panel in made["panels"]:
        # Grafana 13 has no foot of a table here any more.
        panel.get("options", {}).pop("footer", None)
    for annotation in made["annotations"]["list"]:
        # Toggles stay above the graphs, where they were before Grafana 12.3 moved them.
        annotation.pop("placement", None)
    return made


def documents() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each board's uid, and the board."""
    for board in BOARDS:
        yield board.uid, document(board)
