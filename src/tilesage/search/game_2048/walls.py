"""Where a player of 2048 hands over to one that has practised among walls (games/walls.py), and what that one sees.

That is where three different tiles from 4096 on are on the board, one of them a 4096: the next 4096 merges with it.
Where they lie does not matter.
"""

from __future__ import annotations

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.games.board import NIBBLE, ONE, ZERO, Board, count, holds, tile_at, tiles_above
from tilesage.games.walls import TARGET, WALL, WALLS
from tilesage.search.kinds import NOWHERE

SMALLEST, MARK, NUMBER = np.uint64(TARGET), np.uint64(WALL), np.uint64(WALLS)


@compiled
def as_walls(board: Board) -> Board:
    """The position of the practice that a board is."""
    large = tiles_above(board, SMALLEST - ONE)
    return (board & ~(large * NIBBLE)) | large * MARK


@compiled
def find_walls(rows: Array, board: Board, aux: np.uint64) -> int:
    """0 for a board that is to be handed over, as it lies; NOWHERE for others."""
    if aux != ZERO or count(tiles_above(board, SMALLEST - ONE)) != NUMBER or not holds(board, SMALLEST):
        return NOWHERE
    met = ZERO
    for cell in range(16):
        tile = tile_at(board, cell)
        if tile >= SMALLEST and (met >> tile) & ONE:
            return NOWHERE  # two that are to merge
        met |= ONE << tile
    return 0
