"""Large boards seen at the scale of smaller ones, while learning: tile-downgrading inside training.

Plain training stops at a wall: the largest tile that is hardly ever made has entries that were hardly ever learnt, so
making it looks bad. A board with that tile and a hole below it (a tile value that is missing) resembles the board in
which every tile above the hole is halved; what is still to be earned is about twice as much. The network reads and
learns the smaller board, and its value is doubled.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from afterstate.games import Game
from afterstate.games.compiler import rule_for
from afterstate.games.errors import Mistake
from afterstate.games.g2048 import exponent_at

ZERO, ONE, TWO, FIFTEEN = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(15)
SMALLEST_HOLE = 6  # 64: a smaller tile that is missing is soon there again
EVENS, CARRIES = np.uint64(0x0F0F_0F0F_0F0F_0F0F), np.uint64(0x1010_1010_1010_1010)


@cache
def make_scaled(game: Game, tile: int) -> Callable[..., Any]:
    """scaled(board, aux) -> board, aux, scale: halved above the largest hole while `tile` or a larger is there."""
    if tile not in game.tiles[SMALLEST_HOLE + 1 : 16]:
        known = ", ".join(str(number) for number in game.tiles[12:16])
        raise Mistake(f"--downgrade is a tile of {game.name} such as {known}, not {tile}")
    threshold = np.int64(game.tiles.index(tile))
    lift = np.uint64(0x0101_0101_0101_0101 * (16 - int(threshold)))

    @rule_for("hole", tile)
    def hole_of(board: np.uint64, aux: np.uint64) -> np.int64:
        """The largest tile that is missing below the largest one, or 0 where that is not worth a halving."""
        present, largest = ZERO, ZERO
        for cell in range(16):
            exponent = exponent_at(board, aux, cell)
            present |= ONE << exponent
            largest = max(largest, exponent)
        if np.int64(largest) < threshold:
            return np.int64(0)
        hole = np.int64(largest) - 1
        while hole >= SMALLEST_HOLE and (present >> np.uint64(hole)) & ONE:
            hole -= 1
        return hole if hole >= SMALLEST_HOLE else np.int64(0)

    @rule_for("halved", tile)
    def halved(board: np.uint64, aux: np.uint64, hole: np.int64) -> tuple[np.uint64, np.uint64]:
        smaller, smaller_aux = ZERO, ZERO
        for cell in range(16):
            exponent = exponent_at(board, aux, cell)
            if np.int64(exponent) > hole:
                exponent -= ONE
            place = np.uint64(cell)
            smaller |= min(exponent, FIFTEEN) << (place << TWO)
            if exponent > FIFTEEN:
                smaller_aux |= (exponent - FIFTEEN) << (place << ONE)
        return smaller, smaller_aux

    @rule_for("scaled", tile)
    def scaled(board: np.uint64, aux: np.uint64) -> tuple[np.uint64, np.uint64, np.float32]:
        scale = np.float32(1)
        if ((((board & EVENS) + lift) | (((board >> np.uint64(4)) & EVENS) + lift)) & CARRIES) == ZERO:
            return board, aux, scale  # no such tile: nearly always
        hole = hole_of(board, aux)
        while hole > 0:
            board, aux = halved(board, aux, hole)
            scale = scale * np.float32(2)
            hole = hole_of(board, aux)
        return board, aux, scale

    return scaled
