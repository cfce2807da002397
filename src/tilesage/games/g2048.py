"""2048: tiles slide as far as they go, equal tiles merge, then a 2 or a 4 appears.

A nibble is the exponent of a tile, 1 for 2 up to 15 for 32768. Larger tiles, which the board can reach up to 131072,
keep nibble 15, and `aux` says how many doublings are missing (games/exact.py).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.games.board import NIBBLE, ONE, TWO, ZERO, Board, Whole, count, empty_cells
from tilesage.games.exact import index_at, largest, read, slides_of, table_of, write
from tilesage.games.game import Game, Parameter, Rules
from tilesage.games.new_tiles import new_tiles, no_draws

FOUR_RATE = 0.1
TILES = (0, *(2**e for e in range(1, 18)))
HIGHEST = 17  # 131072: two of them would not merge
REWARD_UNIT = 4  # every reward is a multiple of it, so that those of a row fit into 16 bits


def slide_line(line: list[int], highest: int = HIGHEST) -> tuple[list[int], int]:
    """A line of exponents, slid towards its start, and the sum of the tiles made; from `highest` on nothing merges.

    This is the rule of the game, from which the table of rows is made. `made_of` and `merged` say of two tiles alone
    what it makes of them.

    >>> slide_line([1, 1, 1, 1])
    ([2, 2, 0, 0], 8)
    >>> slide_line([0, 1, 1, 1])
    ([2, 1, 0, 0], 4)
    >>> slide_line([2, 1, 0, 1])
    ([2, 2, 0, 0], 4)
    >>> slide_line([17, 17, 16, 16])
    ([17, 17, 17, 0], 131072)
    """
    slid: list[int] = []
    reward, mergeable = 0, False
    for tile in filter(None, line):
        if mergeable and slid[-1] == tile and tile < highest:
            slid[-1] += 1
            reward += 2 ** slid[-1]
            mergeable = False
        else:
            slid.append(tile)
            mergeable = True
    return slid + [0] * (4 - len(slid)), reward


@cache
def row_table() -> Array:
    """The table of slides of all rows."""
    return table_of(slide_line, REWARD_UNIT)


@compiled
def made_of(one: np.uint64, other: np.uint64) -> np.uint64:
    """`merged`, compiled, for boards with tiles past 32768, which no table holds; a tile merges with none (0)."""
    return one + ONE if one == other and ZERO < one < np.uint64(HIGHEST) else ZERO


slide_row, slide_left, slide = slides_of(made_of, TILES, REWARD_UNIT)


@compiled
def value_of_board(board: Board, aux: np.uint64) -> Whole:
    """The potential Σ (e − 1)·2^e: a slide earns exactly what it adds to it."""
    value = np.int64(0)
    for cell in range(16):
        exponent = np.int64(index_at(board, aux, cell))
        if exponent > 0:
            value += (exponent - 1) << exponent
    return value


@compiled
def sum_of_tiles(board: Board, aux: np.uint64) -> np.uint64:
    """Σ 2^e: a slide keeps it, a new tile adds to it."""
    total = ZERO
    if aux == ZERO:
        for cell in range(16):
            total += ONE << ((board >> (np.uint64(cell) << TWO)) & NIBBLE)
        return total - count(empty_cells(board))  # which counted as 2^0
    for cell in range(16):
        total += (ONE << index_at(board, aux, cell)) & ~ONE
    return total


def merged(one: int, other: int) -> int:
    """The exponent that two tiles make, 0 if they do not merge."""
    return one + 1 if one == other and 0 < one < HIGHEST else 0


def game(four_rate: float = FOUR_RATE) -> Game:
    """2048 with this share of fours among the new tiles; the same object for the same share."""
    return _game(float(four_rate))


@cache
def _game(four_rate: float) -> Game:
    start, deal, spawn, placements = new_tiles(four_rate)
    return Game(
        name="2048",
        key="2048" if four_rate == FOUR_RATE else f"2048:{four_rate:g}",
        title="2048",
        summary="slide, merge equal tiles, a 2 or a 4 appears",
        tiles=TILES,
        goal=11,
        rows=row_table(),
        rules=Rules(start, deal, slide, spawn, placements, no_draws, value_of_board, largest, sum_of_tiles),
        starting_tiles=2,
        max_placements=32,
        max_draws=1,
        parameters={"four_rate": four_rate},
        takes={"four_rate": Parameter("the share of fours among the new tiles")},
        write=write,
        read=read,
        merged=merged,
        index_at=index_at,
        highest_in=lambda cells: cells + 1,
        symmetric=True,
        second_rate=four_rate,
        row_unit=REWARD_UNIT,
        scales=True,
        downgrades=True,
    )
