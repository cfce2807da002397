"""Tile-downgrading (Guei 2022): play a board that the network has hardly seen as a smaller one that it knows.

Once the threshold tile is there, find the largest tile value that is missing below the maximum and halve every tile
above that hole. No two tiles become equal that were not, so the moves of both boards correspond; the search runs on
the smaller one and the move is played on the real one. Again while the largest tile is still above the threshold.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from afterstate.games import Game, Mistake
from afterstate.games.board import NIBBLE, ONE, TWO, ZERO, Board
from afterstate.games.compiler import rule

from .kinds import Number

NEVER = 99  # a threshold that no tile reaches
SMALLEST_HOLE = 6  # 64: below it, a missing tile is soon there again
REACHED_OFTEN = 0.25  # the wall is the first tile that fewer games reach
MASK_2 = np.uint64(3)
FIFTEEN = np.uint64(15)


@rule
def exponent_at(board: Board, aux: np.uint64, cell: Number) -> Number:
    """The exponent of a tile, past 15 by the two bits of `aux`."""
    place = np.uint64(cell)
    return np.int64(((board >> (place << TWO)) & NIBBLE) + ((aux >> (place << ONE)) & MASK_2))


@rule
def downgrade(board: Board, aux: np.uint64, threshold: Number, smallest_hole: Number) -> tuple[Board, np.uint64]:
    """The board to search instead of this one: tiles above the largest hole halved, from the threshold tile on."""
    first = True
    while True:
        present, largest = np.int64(0), 0
        for cell in range(16):
            tile = exponent_at(board, aux, cell)
            present |= np.int64(1) << tile
            largest = max(largest, tile)
        if largest < threshold or (largest == threshold and not first):
            return board, aux
        hole = largest - 1
        while hole > 0 and present >> hole & 1:
            hole -= 1
        if hole < max(smallest_hole, 1):
            return board, aux
        smaller, smaller_aux = ZERO, ZERO
        for cell in range(16):
            tile = exponent_at(board, aux, cell)
            tile -= 1 if tile > hole else 0
            smaller |= min(np.uint64(tile), FIFTEEN) << (np.uint64(cell) << TWO)
            if tile > 15:
                smaller_aux |= np.uint64(tile - 15) << (np.uint64(cell) << ONE)
        board, aux, first = smaller, smaller_aux, False


def threshold_of(game: Game, reach: Mapping[int, float]) -> int | None:
    """The tile below the network's wall, given the share of games that reach each tile; None when nothing is known.

    >>> from afterstate import games
    >>> threshold_of(games.get("2048"), {4096: 0.9, 8192: 0.8, 16384: 0.05})
    8192
    """
    if game.name != "2048":
        raise Mistake(
            "tile-downgrading is for 2048: the tiles of Threes! do not keep their order when they are halved"
        )
    often = [tile for tile, share in reach.items() if share >= REACHED_OFTEN]
    return max(often, default=None)


def exponent_of(tile: int) -> int:
    """The exponent of a tile given by its number."""
    if tile < 2 or tile & (tile - 1) or tile > 131072:
        raise Mistake(f"{tile} is no tile of 2048: write 2, 4, 8, … 131072")
    return tile.bit_length() - 1
