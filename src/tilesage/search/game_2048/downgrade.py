"""Tile-downgrading (Guei 2022): play a board that the network has hardly seen as a smaller one that it knows.

Once the threshold tile is there, find the largest tile value that is missing below the maximum and halve every tile
above that hole. No two tiles become equal that were not, so the moves of both boards correspond; the search runs on
the smaller one and the move is played on the real one. Again while the largest tile is still above the threshold.
"""

from __future__ import annotations

import numpy as np

from tilesage.core.compiler import Number, compiled
from tilesage.core.errors import InputError
from tilesage.games.board import Board
from tilesage.games.exact import largest
from tilesage.networks.folding import halve

NEVER = 99  # a threshold that no tile reaches


@compiled
def downgrade(board: Board, aux: np.uint64, threshold: Number) -> tuple[Board, np.uint64]:
    """The board to search instead of this one: tiles above the largest hole halved, from the threshold tile on."""
    first, found = True, True
    while found:
        size = np.int64(largest(board, aux))
        if size < threshold or (size == threshold and not first):
            break
        board, aux, found = halve(board, aux)
        first = False
    return board, aux


def exponent_of(tile: int) -> int:
    """The exponent of a tile given by its number."""
    if tile < 2 or tile & (tile - 1) or tile > 131072:
        raise InputError(f"{tile} is no tile of 2048: write 2, 4, 8, … 131072")
    return tile.bit_length() - 1
