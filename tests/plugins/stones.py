"""2048 with stones that never move: a game from outside the package, in one file.

Tiles slide and merge as in 2048, but only between stones. A stone is index 15, shown as a 1; `aux` is not used. In
sums over the board a stone counts as a 32768, alike before and after a slide.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.core.random import below, draw
from tilesage.games import g2048
from tilesage.games.board import NIBBLE, S4, ZERO, Board, Whole, count, empty_cells, nth_cell, turn, turn_back
from tilesage.games.exact import table_of
from tilesage.games.game import Game, Parameter, Rules
from tilesage.games.new_tiles import new_tiles, no_draws

STONE, LARGEST = 15, 14
TILES = (*g2048.TILES[: LARGEST + 1], 1)
ROCK = np.uint64(STONE)


def slide_line(line: list[int]) -> tuple[list[int], int]:
    """What lies before the first stone slides, and what lies behind it, on its own.

    >>> slide_line([0, 1, 15, 2])
    ([1, 0, 15, 2], 0)
    >>> slide_line([1, 1, 15, 1])
    ([2, 0, 15, 1], 4)
    """
    if STONE not in line:
        slid, reward = g2048.slide_line(line, LARGEST)
        return slid[: len(line)], reward
    place = line.index(STONE)
    before, first = slide_line(line[:place])
    behind, second = slide_line(line[place + 1 :])
    return [*before, STONE, *behind], first + second


@cache
def row_table() -> Array:
    return table_of(slide_line, g2048.REWARD_UNIT)


@compiled
def slide(rows: Array, board: Board, aux: np.uint64, action: Whole) -> tuple[Board, np.uint64, Whole]:
    after, reward = g2048.slide_left(rows, turn(board, action))
    return turn_back(after, action), aux, reward


@compiled
def stones_on(board: Board) -> int:
    found = 0
    for _ in range(16):
        found += (board & NIBBLE) == ROCK
        board = board >> S4
    return found


@compiled
def largest(board: Board, aux: np.uint64) -> Whole:
    """Of the tiles: a stone is none."""
    found = ZERO
    for _ in range(16):
        tile = board & NIBBLE
        if tile != ROCK:
            found = max(found, tile)
        board = board >> S4
    return np.int64(found)


def game(four_rate: float = 0.1, stones: float = 1) -> Game:
    """Stones first, then two tiles."""
    _, deal_tile, spawn, placements = new_tiles(four_rate)
    number = int(stones)

    @compiled
    def deal(board: Board, aux: np.uint64, rng: np.uint64) -> tuple[Board, np.uint64, np.uint64]:
        if stones_on(board) == number:
            return deal_tile(board, aux, rng)
        bits, rng = draw(rng)
        empty = empty_cells(board)
        return board | nth_cell(empty, below(bits, count(empty))) * ROCK, aux, rng

    @compiled
    def start(rows: Array, rng: np.uint64) -> tuple[Board, np.uint64, np.uint64]:
        board, aux = ZERO, ZERO
        for _ in range(number + 2):
            board, aux, rng = deal(board, aux, rng)
        return board, aux, rng

    return Game(
        name="stones",
        key=f"stones {four_rate} {number}",
        title="2048 with stones",
        summary="2048 with stones that never move",
        tiles=TILES,
        goal=10,
        rows=row_table(),
        rules=Rules(
            start, deal, slide, spawn, placements, no_draws, g2048.value_of_board, largest, g2048.sum_of_tiles
        ),
        starting_tiles=number + 2,
        max_placements=32,
        max_draws=1,
        write=lambda board, aux: ([int(board) >> 4 * cell & 15 for cell in range(16)], {}),
        read=lambda cells, fields: (np.uint64(sum(tile << 4 * cell for cell, tile in enumerate(cells))), ZERO),
        merged=lambda one, other: one + 1 if one == other and 0 < one < LARGEST else 0,
        parameters={"four_rate": four_rate, "stones": stones},
        takes={"four_rate": Parameter("the share of fours"), "stones": Parameter("how many stones lie there", 1, 3)},
    )
