"""The five boards, in the order in which they are read."""

from __future__ import annotations

from ..layout import Board
from . import compaction, cost, fleet, misses, reuse

BOARDS: tuple[Board, ...] = (reuse.BOARD, misses.BOARD, compaction.BOARD, cost.BOARD, fleet.BOARD)
