"""Where a player of 2048 hands over to one that has practised the block (games/block.py), and what that one sees.

That is where three large tiles lie in a row, the smallest of them a 4096 in a corner, or one cell before it, and
everything else is smaller; but not where a 2048 lies in the corner, and a snake has begun. With 16384 and 8192 for
the first two, whatever they are, the board is, turned, one of the practice.

On the way to a 65536 the third is an 8192. Such a board is seen at the next smaller scale, with all tiles above the
largest hole halved (networks/folding.py).
"""

from __future__ import annotations

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.games.block import CELLS, GIVEN, LARGEST_LINK, LINKS, MASKS, THIRD, slide
from tilesage.games.board import ONE, S4, ZERO, Board, symmetry, tile_at, tiles_above
from tilesage.networks.folding import halve
from tilesage.search.kinds import NOWHERE

CORNER, LARGEST = CELLS[GIVEN - 1], np.uint64(LARGEST_LINK)


@compiled
def at_this_scale(turned: Board) -> Board:
    """The position of the practice that a turned board is, with a 4096 as the third; 0 if it is none."""
    aside = 0 if tile_at(turned, CORNER) == THIRD else 1  # cells that the row is away from its place
    row, links = MASKS[GIVEN] >> (S4 * np.uint64(aside)), LINKS[GIVEN] >> (S4 * np.uint64(aside))
    fits = (tiles_above(turned, THIRD - ONE) & ~row) == ZERO and tile_at(turned, CORNER - aside) == THIRD
    for i in range(1, GIVEN):
        fits = fits and tile_at(turned, CELLS[i] - aside) < tile_at(turned, CELLS[i - 1] - aside)
    snake = aside == 1 and tile_at(turned, CORNER) == THIRD - ONE
    return (turned & ~row) | links if fits and not snake else ZERO


@compiled
def as_practised(turned: Board) -> Board:
    """The position of the practice that a turned board is; 0 if it is none."""
    seen = at_this_scale(turned)
    if seen == ZERO and tiles_above(turned, LARGEST) != ZERO:
        smaller, _, found = halve(turned, ZERO)
        if found:
            seen = at_this_scale(smaller)
    return seen


@compiled
def find_block(rows: Array, board: Board, aux: np.uint64) -> int:
    """How to turn a board that is to be handed over, by `symmetry`; NOWHERE if it is not."""
    for k in range(8):
        seen = as_practised(symmetry(board, k))
        if seen != ZERO and aux == ZERO:
            for action in range(4):
                if slide(rows, seen, ZERO, action)[0] != seen:
                    return k
    return NOWHERE
