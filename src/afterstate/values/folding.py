"""Folding: one network for every scale of 2048.

Tile-downgrading (Guei 2022) is a trick of play: a board with tiles larger than the network knows is searched as a
smaller one. A folded network learns that way from the start. From a tile on, every position is brought down before
the tables see it: the largest missing tile below the maximum is the hole, all tiles above the hole are halved, and
the value is doubled, again and again until the largest tile is below the limit or no hole is left. What is learnt
while a 4096 grows is then known when a 16384 grows, and the wall at which plain learning stops is gone
(docs/findings.md has the figures).

The aux of a folded position says no more than that it was folded. A network with a stage at the limit reads it: large
positions then begin with what smaller ones have learnt, and go their own way once they have learnt something.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..games.board import LOW_BITS, NIBBLE, ONE, S4, TWO, ZERO, Board
from ..games.compiler import rule, rule_for

SMALLEST_HOLE = 6  # 64: below it, a missing tile is soon there again
EVENS, CARRIES = np.uint64(0x0F0F_0F0F_0F0F_0F0F), np.uint64(0x1010_1010_1010_1010)
BYTES = np.uint64(0x0101_0101_0101_0101)
FIFTEEN, SIXTEEN, TWO_BITS = np.uint64(15), np.uint64(16), np.uint64(3)
WHOLE, DOUBLE = np.float32(1), np.float32(2)


@rule
def holds(board: Board, tile: np.uint64) -> bool:
    """Is this tile on the board?"""
    x = board ^ (LOW_BITS * tile)
    x |= x >> TWO
    return bool((~(x | (x >> ONE)) & LOW_BITS) != ZERO)


@rule
def tiles_above(board: Board, tile: np.uint64) -> np.uint64:
    """The lowest bit of every nibble larger than `tile`; even and odd nibbles are compared by a carry."""
    lift = BYTES * (FIFTEEN - tile)
    evens, odds = (board & EVENS) + lift, ((board >> S4) & EVENS) + lift
    return ((evens & CARRIES) >> S4) | (odds & CARRIES)


@rule
def within_nibbles(board: Board, aux: np.uint64) -> tuple[Board, np.float32]:
    """A board with tiles past 32768, halved above its largest hole until every tile is a nibble."""
    scale = WHOLE
    while aux != ZERO:
        present, largest = ZERO, ZERO
        for cell in range(16):
            place = np.uint64(cell)
            tile = ((board >> (place << TWO)) & NIBBLE) + ((aux >> (place << ONE)) & TWO_BITS)
            present |= ONE << tile
            largest = max(largest, tile)
        hole = largest - ONE
        while hole > ZERO and (present >> hole) & ONE:
            hole -= ONE
        if hole < np.uint64(SMALLEST_HOLE):
            break
        lower, lower_aux = ZERO, ZERO
        for cell in range(16):
            place = np.uint64(cell)
            tile = ((board >> (place << TWO)) & NIBBLE) + ((aux >> (place << ONE)) & TWO_BITS)
            if tile > hole:
                tile -= ONE
            lower |= min(tile, FIFTEEN) << (place << TWO)
            if tile > FIFTEEN:
                lower_aux |= (tile - FIFTEEN) << (place << ONE)
        board, aux, scale = lower, lower_aux, scale * DOUBLE
    return board, scale


def make_fold(limit: int) -> Callable[..., Any]:
    """`fold(board, aux) -> board, folded, scale`: the position as the tables see it, what its value is times.

    `folded` takes the place of the aux: 1 if anything was halved, else 0.
    """
    first, smallest = np.uint64(limit), np.uint64(SMALLEST_HOLE)

    @rule_for("fold", limit)
    def fold(board: Board, aux: np.uint64) -> tuple[Board, np.uint64, np.float32]:
        scale = WHOLE
        if aux != ZERO:
            board, scale = within_nibbles(board, aux)
        if tiles_above(board, first - ONE) == ZERO:
            return board, ONE if scale > WHOLE else ZERO, scale
        level = FIFTEEN
        while level >= first:
            if holds(board, level):
                hole = level - ONE
                while hole >= smallest and holds(board, hole):
                    hole -= ONE
                if hole < smallest:
                    break
                board -= tiles_above(board, hole)
                scale *= DOUBLE
            level -= ONE
        return board, ONE if scale > WHOLE else ZERO, scale

    return fold
