"""Tile-downgrading (Guei 2022): play a board that the network has hardly seen as a smaller one that it knows.

Once the threshold tile is there, find the largest tile value that is missing below the maximum and halve every tile
above that hole. No two tiles become equal that were not, so the moves of both boards correspond; the search runs on
the smaller one and the move is played on the real one. Again while the largest tile is still above the threshold.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from afterstate.games import Game, Mistake
from afterstate.games.board import Board
from afterstate.games.compiler import rule
from afterstate.games.g2048 import largest
from afterstate.values.folding import halve

from .kinds import Number

NEVER = 99  # a threshold that no tile reaches
REACHED_OFTEN = 0.25  # the wall is the first tile that fewer games reach


@rule
def downgrade(board: Board, aux: np.uint64, threshold: Number, smallest_hole: Number) -> tuple[Board, np.uint64]:
    """The board to search instead of this one: tiles above the largest hole halved, from the threshold tile on."""
    first, found = True, True
    while found:
        size = np.int64(largest(board, aux))
        if size < threshold or (size == threshold and not first):
            break
        board, aux, found = halve(board, aux, np.uint64(max(smallest_hole, 1)))
        first = False
    return board, aux


def threshold_of(game: Game, reach: Mapping[int, float]) -> int | None:
    """The tile below the network's wall, given the share of games that reach each tile; None when nothing is known.

    >>> from afterstate import games
    >>> threshold_of(games.get("2048"), {4096: 0.9, 8192: 0.8, 16384: 0.05})
    8192
    """
    if not game.downgrades:
        raise Mistake(f"tile-downgrading is for 2048: in {game.name} a board with smaller tiles is another game")
    often = [tile for tile, share in reach.items() if share >= REACHED_OFTEN]
    return max(often, default=None)


def exponent_of(tile: int) -> int:
    """The exponent of a tile given by its number."""
    if tile < 2 or tile & (tile - 1) or tile > 131072:
        raise Mistake(f"{tile} is no tile of 2048: write 2, 4, 8, … 131072")
    return tile.bit_length() - 1
