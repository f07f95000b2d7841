"""Owns which boards the page shows: those that ship, or the ones in a folder of the user's.

They are Grafana's classic dashboard JSON, made in `dashboards/` and handed on as they are. How one is drawn is up to
the page.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from otel_context_ledger.cli.calls import Unusable

# An installed wheel has the boards beside this module; a checkout has them where they are made.
PACKAGED = Path(__file__).with_name("boards")
MADE = Path(__file__).parents[3] / "dashboards" / "dist"
# In the order in which one would look; boards of others follow by their files' names.
ORDER = tuple(f"context-ledger-{name}" for name in ("reuse", "misses", "compaction", "cost", "fleet"))
MAX_BYTES, MAX_BOARDS = 8 * 2**20, 64


def load(folder: Path | None = None) -> list[dict[str, Any]]:
    """The boards of a folder, or those that ship. Raises Unusable where there is none, or one is none."""
    place = folder or (PACKAGED if PACKAGED.is_dir() else MADE)
    try:
        files = sorted(one for one in place.iterdir() if one.suffix == ".json")
    except OSError as error:
        raise Unusable(f"the boards in {place} cannot be read: {error.strerror}") from error
    if not files:
        raise Unusable(f"no board is in {place}; a board is Grafana's dashboard JSON, in a file that ends in .json")
    if len(files) > MAX_BOARDS:
        raise Unusable(f"{place} has {len(files)} boards, and the page shows {MAX_BOARDS} at most")
    found = [_board(file) for file in files]
    return sorted(found, key=lambda board: ORDER.index(board["uid"]) if board["uid"] in ORDER else len(ORDER))


def _board(file: Path) -> dict[str, Any]:
    try:
        raw = file.read_bytes()
        board = orjson.loads(raw) if len(raw) <= MAX_BYTES else None
    except (OSError, ValueError):
        board = None
    if not isinstance(board, dict) or not isinstance(board.get("panels"), list) or not board.get("uid"):
        raise Unusable(f"{file} is no board: Grafana's classic dashboard JSON has a uid and panels")
    return board
