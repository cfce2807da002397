"""2048: tiles slide as far as they go, equal tiles merge, then a 2 or a 4 appears.

A nibble is the exponent of a tile, 1 for 2 up to 15 for 32768. Larger tiles, which the board can reach up to 131072,
keep nibble 15 and two bits in `aux` for the doublings above 32768. While nobody owns such a tile, `aux` is 0 and a
slide is four look-ups; otherwise it is spelled out cell by cell, so that it is exact for every board.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.games.board import (
    DOWN,
    LEFT,
    ONE,
    ROW,
    S16,
    S32,
    S48,
    TWO,
    UP,
    ZERO,
    Board,
    Whole,
    count,
    empty_cells,
    largest_nibble,
    tile_at,
    turn,
    turn_back,
    with_tile,
)
from tilesage.games.game import Game, Parameter, Rules
from tilesage.games.new_tiles import new_tiles, no_draws

FOUR_RATE = 0.1
TILES = (0, *(2**e for e in range(1, 18)))
HIGHEST = 17  # 131072: two of them would not merge
REWARD_UNIT = 4  # every reward is a multiple of it, so that those of a row fit into 16 bits
FULL_NIBBLE = np.uint64(15)
FIRST_LARGE_REWARD = 65536  # no merge of tiles with a nibble of 15 earns less
THREE = np.uint64(3)


def slide_line(line: list[int], highest: int = HIGHEST) -> tuple[list[int], int]:
    """A line of exponents, slid towards its start, and the sum of the tiles made; from `highest` on nothing merges.

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


def table_of(slide_one: Callable[[list[int]], tuple[list[int], int]]) -> Array:
    """[65536] for every row slid left: the new row in the low half, a quarter of the reward in the high half."""
    table = np.zeros(1 << 16, np.uint32)
    for row in range(1 << 16):
        slid, reward = slide_one([(row >> 4 * i) & 15 for i in range(4)])
        table[row] = sum(min(tile, 15) << 4 * i for i, tile in enumerate(slid)) | (reward // REWARD_UNIT) << 16
    table.setflags(write=False)
    return table


@cache
def row_table() -> Array:
    """The table of slides of all rows."""
    return table_of(slide_line)


@compiled
def slide_left(rows: Array, board: Board) -> tuple[Board, Whole]:
    """All four rows slid left, exact while no tile is larger than 32768 before or after."""
    a, b = np.uint64(rows[board & ROW]), np.uint64(rows[(board >> S16) & ROW])
    c, d = np.uint64(rows[(board >> S32) & ROW]), np.uint64(rows[board >> S48])
    after = (a & ROW) | ((b & ROW) << S16) | ((c & ROW) << S32) | ((d & ROW) << S48)
    return after, np.int64(((a >> S16) + (b >> S16) + (c >> S16) + (d >> S16)) << TWO)


@compiled
def exponent_at(board: Board, aux: np.uint64, cell: int) -> np.uint64:
    """The exponent of the tile in a cell, those above 15 included."""
    return tile_at(board, cell) + ((aux >> (np.uint64(cell) << ONE)) & THREE)


@compiled
def cell_of(action: Whole, line: int, step: int) -> int:
    """The cell `step` steps away from the wall that `action` slides to."""
    if action == LEFT:
        return 4 * line + step
    if action == UP:
        return 4 * step + line
    if action == DOWN:
        return 4 * (3 - step) + line
    return 4 * line + 3 - step


@compiled
def slide_exactly(board: Board, aux: np.uint64, action: Whole) -> tuple[Board, np.uint64, Whole]:
    """Any slide, cell by cell: the rule itself, for boards with tiles past 32768."""
    after, after_aux, reward = ZERO, ZERO, np.int64(0)
    for line in range(4):
        held, place = ZERO, 0
        for step in range(5):  # the fifth step lays down what is still held
            tile = exponent_at(board, aux, cell_of(action, line, step)) if step < 4 else ZERO
            if tile == ZERO and step < 4:
                continue
            laid = held
            if held == tile and tile != ZERO and tile < np.uint64(HIGHEST):
                laid, tile = tile + ONE, ZERO
                reward += np.int64(1) << np.int64(laid)
            if laid != ZERO:
                cell = cell_of(action, line, place)
                nibble = min(laid, FULL_NIBBLE)
                after = with_tile(after, cell, nibble)
                after_aux |= (laid - nibble) << (np.uint64(cell) << ONE)
                place += 1
            held = tile
    return after, after_aux, reward


@compiled(inline=True)
def slide(rows: Array, board: Board, aux: np.uint64, action: Whole) -> tuple[Board, np.uint64, Whole]:
    """The afterstate and the sum of the tiles made. The move is legal if the board changed."""
    after, reward = slide_left(rows, turn(board, action))
    if aux != ZERO or reward >= FIRST_LARGE_REWARD:
        return slide_exactly(board, aux, action)
    return turn_back(after, action), aux, reward


@compiled
def largest(board: Board, aux: np.uint64) -> Whole:
    """The exponent of the largest tile."""
    tile = largest_nibble(board)
    if aux != ZERO:
        for cell in range(16):
            tile = max(tile, exponent_at(board, aux, cell))
    return np.int64(tile)


@compiled
def value_of_board(board: Board, aux: np.uint64) -> Whole:
    """The potential Σ (e − 1)·2^e: a slide earns exactly what it adds to it."""
    value = np.int64(0)
    for cell in range(16):
        exponent = np.int64(exponent_at(board, aux, cell))
        if exponent > 0:
            value += (exponent - 1) << exponent
    return value


@compiled
def sum_of_tiles(board: Board, aux: np.uint64) -> np.uint64:
    """Σ 2^e: a slide keeps it, a new tile adds to it."""
    total = ZERO
    if aux == ZERO:
        for cell in range(16):
            total += ONE << ((board >> (np.uint64(cell) << TWO)) & FULL_NIBBLE)
        return total - count(empty_cells(board))  # which counted as 2^0
    for cell in range(16):
        total += (ONE << exponent_at(board, aux, cell)) & ~ONE
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
        index_at=exponent_at,
        highest_in=lambda cells: cells + 1,
        symmetric=True,
        second_rate=four_rate,
        row_unit=REWARD_UNIT,
        scales=True,
        downgrades=True,
    )


def write(board: Board, aux: np.uint64) -> tuple[list[int], dict[str, str]]:
    """Indices of the sixteen tiles; 2048 has nothing else to say."""
    return [int(exponent_at(board, aux, cell)) for cell in range(16)], {}


def read(cells: list[int], fields: dict[str, str]) -> tuple[Board, np.uint64]:
    """Board and aux of these exponents."""
    board = aux = 0
    for cell, exponent in enumerate(cells):
        board |= min(exponent, 15) << 4 * cell
        aux |= max(exponent - 15, 0) << 2 * cell
    return np.uint64(board), np.uint64(aux)
