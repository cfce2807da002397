"""Folding: a network reads boards with large tiles at a smaller scale: tile-downgrading, in learning too.

Tile-downgrading (Guei 2022) searches a board with tiles larger than the network knows as a smaller one. A folded
network learns that way from the start. From a tile on, every position is brought down before the tables see it: the
largest tile that is missing below the maximum is the gap (`hole`), and all tiles above it are halved, again and
again until the largest tile is below the limit or no gap is left. What is learnt while a 4096 grows is then known
when a 16384 grows, and the plateau at which plain learning stops is gone (docs/findings.md has the figures).

The value is that of the board as it is seen. One might expect twice as much: every merge of the large tiles is worth
twice as much. But to get there is so much harder that less than the same is to be expected, and values that are
doubled run away where a folded board is met too often.

Threes! folds in the same way, by indices, and keeps its hint.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilesage.core.compiler import compiled
from tilesage.games.board import ONE, TWO, ZERO, Board, holds, tiles_above
from tilesage.games.exact import index_at
from tilesage.games.game import Game

SMALLEST_HOLE = np.uint64(6)  # 64, in Threes! 24: below it, a missing tile is soon there again
FIFTEEN = np.uint64(15)


@compiled
def halve(board: Board, aux: np.uint64) -> tuple[Board, np.uint64, bool]:
    """All tiles above the largest hole halved; False where there is none from SMALLEST_HOLE on."""
    present, largest = ZERO, ZERO
    for cell in range(16):
        tile = index_at(board, aux, cell)
        present |= ONE << tile
        largest = max(largest, tile)
    hole = max(largest, ONE) - ONE
    while hole > ZERO and (present >> hole) & ONE:
        hole -= ONE
    if hole < SMALLEST_HOLE:
        return board, aux, False
    lower, lower_aux = ZERO, ZERO
    for cell in range(16):
        tile = index_at(board, aux, cell)
        if tile > hole:
            tile -= ONE
        lower |= min(tile, FIFTEEN) << (np.uint64(cell) << TWO)
        if tile > FIFTEEN:
            lower_aux |= (tile - FIFTEEN) << (np.uint64(cell) << TWO)
    return lower, lower_aux, True


@compiled
def within_nibbles(board: Board, aux: np.uint64) -> Board:
    """A board with tiles past 32768, halved until every tile is a nibble."""
    found = True
    while aux != ZERO and found:
        board, aux, found = halve(board, aux)
    return board


def make_fold(game: Game, limit: int) -> Callable[..., Any]:
    """`fold(board, aux)`: the board as the tables see it."""
    first, large_in_aux = np.uint64(limit), game.index_at is not None

    @compiled
    def fold(board: Board, aux: np.uint64) -> Board:
        if large_in_aux and aux != ZERO:
            board = within_nibbles(board, aux)
        level = FIFTEEN if tiles_above(board, first - ONE) != ZERO else ZERO
        while level >= first:
            if holds(board, level):
                hole = level - ONE
                while hole >= SMALLEST_HOLE and holds(board, hole):
                    hole -= ONE
                if hole < SMALLEST_HOLE:
                    break
                board -= tiles_above(board, hole)
            level -= ONE
        return board

    return fold
