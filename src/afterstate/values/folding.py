"""Folding: one network for every scale of a game.

Tile-downgrading (Guei 2022) is a trick of play: a board with tiles larger than the network knows is searched as a
smaller one. A folded network learns that way from the start. From a tile on, every position is brought down before
the tables see it: the largest missing tile below the maximum is the hole, and all tiles above the hole are halved,
again and again until the largest tile is below the limit or no hole is left. What is learnt while a 4096 grows is
then known when a 16384 grows, and the wall at which plain learning stops is gone (docs/findings.md has the figures).

The value is that of the board as it is seen. One might expect twice as much: every merge of the large tiles is worth
twice as much. But to get there is so much harder that less than the same is to be expected; and values that are
doubled run away where a fold is met too often (a scale of 2, for comparison).

The aux of a folded position says that it was folded. A network with a stage at the limit reads it: large positions
then begin with what smaller ones have learnt, and go their own way once they have learnt something.

Threes! folds in the same way, by indices; its aux, the hint above all, stays what it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..games.board import ONE, TWO, ZERO, Board, holds, tiles_above
from ..games.compiler import rule, rule_for
from ..games.g2048 import exponent_at
from ..games.game import Game

SMALLEST_HOLE = 6  # 64, in Threes! 24: below it, a missing tile is soon there again
FOLDED = np.uint64(1 << 32)  # in the aux of a position: it was folded. No game has a use for this bit
FIFTEEN = np.uint64(15)
WHOLE = np.float32(1)


@rule
def halve(board: Board, aux: np.uint64, smallest_hole: np.uint64) -> tuple[Board, np.uint64, bool]:
    """All tiles above the largest hole halved; False where there is none from `smallest_hole` on."""
    present, largest = ZERO, ZERO
    for cell in range(16):
        tile = exponent_at(board, aux, cell)
        present |= ONE << tile
        largest = max(largest, tile)
    hole = max(largest, ONE) - ONE
    while hole > ZERO and (present >> hole) & ONE:
        hole -= ONE
    if hole < smallest_hole or hole == ZERO:
        return board, aux, False
    lower, lower_aux = ZERO, ZERO
    for cell in range(16):
        tile = exponent_at(board, aux, cell)
        if tile > hole:
            tile -= ONE
        lower |= min(tile, FIFTEEN) << (np.uint64(cell) << TWO)
        if tile > FIFTEEN:
            lower_aux |= (tile - FIFTEEN) << (np.uint64(cell) << ONE)
    return lower, lower_aux, True


@rule
def within_nibbles(board: Board, aux: np.uint64) -> tuple[Board, np.uint64]:
    """A board with tiles past 32768, halved until every tile is a nibble, and how often that was."""
    times, found = ZERO, True
    while aux != ZERO and found:
        board, aux, found = halve(board, aux, np.uint64(SMALLEST_HOLE))
        if found:
            times += ONE
    return board, times


def make_fold(game: Game, limit: int, scale: int = 2) -> Callable[..., Any]:
    """`fold(board, aux) -> board, aux, scale`: the position as the tables see it, what its value is times.

    The new aux is FOLDED if anything was halved, and in Threes! what it was.
    """
    first, smallest, doubles = np.uint64(limit), np.uint64(SMALLEST_HOLE), scale == 2
    large_in_aux = game.index_at is not None

    @rule_for("worth of a fold", scale)
    def worth(times: np.uint64) -> np.float32:
        return np.float32(ONE << times) if doubles else WHOLE

    @rule_for("fold", limit, scale, large_in_aux)
    def fold(board: Board, aux: np.uint64) -> tuple[Board, np.uint64, np.float32]:
        times, kept = ZERO, aux
        if large_in_aux:
            kept = ZERO
            if aux != ZERO:
                board, times = within_nibbles(board, aux)
        level = FIFTEEN if tiles_above(board, first - ONE) != ZERO else ZERO
        while level >= first:
            if holds(board, level):
                hole = level - ONE
                while hole >= smallest and holds(board, hole):
                    hole -= ONE
                if hole < smallest:
                    break
                board -= tiles_above(board, hole)
                times += ONE
            level -= ONE
        return board, kept | FOLDED if times != ZERO else kept, worth(times)

    return fold
