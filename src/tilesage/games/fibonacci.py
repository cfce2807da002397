"""2584: 2048 with the Fibonacci numbers. Two neighbours of the sequence 1, 2, 3, 5, 8, … merge to the next one.

Index i is the i-th of them, up to 32 = 3,524,578, the largest that sixteen cells can make; 17 is 2584. Two 1s merge
as well, to a 2; no other equal tiles do.

A nibble is an index up to 15. Larger tiles keep nibble 15, and the nibble of the same cell in `aux` says how much is
missing; the two that four bits cannot count to, 31 and 32, keep 14 and count from 30 on. While nobody owns a tile
past 15, `aux` is 0 and a slide is four look-ups; otherwise the rows that hold one are spelled out cell by cell, so
that a slide is exact for every board. The tables of a network see the nibble: to them all these tiles are a 15, but
for the two that hardly anybody will ever see.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.games.board import (
    ONE,
    ROW,
    S16,
    S32,
    S48,
    TWO,
    ZERO,
    Board,
    Whole,
    largest_nibble,
    tile_at,
    turn,
    turn_back,
)
from tilesage.games.game import Game, Parameter, Rules
from tilesage.games.new_tiles import new_tiles, no_draws

TWO_RATE = 0.1
HIGHEST = 32


def fibonacci_numbers() -> tuple[int, ...]:
    """Index -> number on the tile.

    >>> fibonacci_numbers()[:8], fibonacci_numbers()[17]
    ((0, 1, 2, 3, 5, 8, 13, 21), 2584)
    """
    numbers = [0, 1, 2]
    while len(numbers) <= HIGHEST:
        numbers.append(numbers[-1] + numbers[-2])
    return tuple(numbers)


def worths_of(tiles: tuple[int, ...]) -> tuple[int, ...]:
    """Index -> what making the tile has earned: that of the two it was made of, and its own number.

    >>> worths_of((0, 1, 2, 3, 5, 8))
    (0, 0, 2, 5, 12, 25)
    """
    worths = [0, 0, 2]
    for number in tiles[3:]:
        worths.append(worths[-1] + worths[-2] + number)
    return tuple(worths)


TILES = fibonacci_numbers()
NUMBERS = tuple(np.int64(number) for number in TILES)
WORTHS = tuple(np.int64(worth) for worth in worths_of(TILES))
TOP, SECOND_TOP = np.uint64(15), np.uint64(14)  # the nibbles of tiles past 15, and of the two largest
LARGEST_COUNTED = np.uint64(30)
FIRST_LARGE = TILES[16]  # a row that earns less has made no tile past 15


def merged(one: int, other: int) -> int:
    """The index that two tiles make, 0 if they do not merge.

    >>> merged(1, 1), merged(4, 3), merged(3, 3), merged(0, 1)
    (2, 5, 0, 0)
    """
    if one == other == 1:
        return 2
    return max(one, other) + 1 if min(one, other) > 0 and abs(one - other) == 1 and max(one, other) < HIGHEST else 0


def slide_line(line: list[int]) -> tuple[list[int], int]:
    """A line of indices, slid towards its start, and the sum of the numbers made.

    >>> slide_line([1, 1, 1, 1])
    ([2, 2, 0, 0], 4)
    >>> slide_line([0, 1, 2, 3])
    ([3, 3, 0, 0], 3)
    >>> slide_line([3, 0, 4, 2])
    ([5, 2, 0, 0], 8)
    >>> slide_line([2, 2, 4, 4])
    ([2, 2, 4, 4], 0)
    """
    slid: list[int] = []
    reward, mergeable = 0, False
    for tile in filter(None, line):
        made = merged(slid[-1], tile) if mergeable else 0
        if made:
            slid[-1] = made
            reward += TILES[made]
        else:
            slid.append(tile)
        mergeable = not made
    return slid + [0] * (4 - len(slid)), reward


@cache
def row_table() -> Array:
    """[65536] for every row slid left: the new row in the low half, the reward in the high half."""
    table = np.zeros(1 << 16, np.uint32)
    for row in range(1 << 16):
        slid, reward = slide_line([(row >> 4 * i) & 15 for i in range(4)])
        table[row] = sum(min(tile, 15) << 4 * i for i, tile in enumerate(slid)) | reward << 16
    table.setflags(write=False)
    return table


@compiled
def index_at(board: Board, aux: np.uint64, cell: int) -> np.uint64:
    """The tile on a cell; of boards that are one row, too."""
    tile, more = tile_at(board, cell), tile_at(aux, cell)
    return LARGEST_COUNTED + more if more != ZERO and tile == SECOND_TOP else tile + more


@compiled
def nibble_of(tile: np.uint64) -> np.uint64:
    """What the board keeps of a tile."""
    return SECOND_TOP if tile > LARGEST_COUNTED else min(tile, TOP)


@compiled
def rest_of(tile: np.uint64) -> np.uint64:
    """What `aux` keeps of a tile."""
    return tile - LARGEST_COUNTED if tile > LARGEST_COUNTED else tile - min(tile, TOP)


@compiled
def made_of(one: np.uint64, other: np.uint64) -> np.uint64:
    """`merged`, compiled; a tile merges with none (0)."""
    low, high = min(one, other), max(one, other)
    if low == ONE and high == ONE:
        return TWO
    return high + ONE if low > ZERO and high == low + ONE and high < np.uint64(HIGHEST) else ZERO


@compiled
def slide_row(row: np.uint64, more: np.uint64) -> tuple[np.uint64, np.uint64, Whole]:
    """Any row slid left, cell by cell: the rule itself."""
    after, after_more, reward = ZERO, ZERO, np.int64(0)
    held, place = ZERO, ZERO
    for step in range(5):  # the fifth step lays down what is still held
        tile = index_at(row, more, step) if step < 4 else ZERO
        if tile == ZERO and step < 4:
            continue
        made = made_of(held, tile)
        laid = held
        if made != ZERO:
            laid, tile = made, ZERO
            reward += NUMBERS[np.int64(made)]
        if laid != ZERO:
            after |= nibble_of(laid) << place
            after_more |= rest_of(laid) << place
            place += np.uint64(4)
        held = tile
    return after, after_more, reward


@compiled
def slide_exactly(rows: Array, board: Board, aux: np.uint64, action: Whole) -> tuple[Board, np.uint64, Whole]:
    """Any slide: rows without a tile past 15 by the table, the others cell by cell."""
    turned, mores = turn(board, action), turn(aux, action)
    after, after_aux, reward = ZERO, ZERO, np.int64(0)
    for line in range(4):
        shift = np.uint64(16 * line)
        row, more = (turned >> shift) & ROW, (mores >> shift) & ROW
        entry = np.uint64(rows[row])
        slid, slid_more = entry & ROW, ZERO
        gained: Whole = np.int64(entry >> S16)
        if more != ZERO or gained >= FIRST_LARGE:
            slid, slid_more, gained = slide_row(row, more)
        after |= slid << shift
        after_aux |= slid_more << shift
        reward += gained
    return turn_back(after, action), turn_back(after_aux, action), reward


@compiled
def slide_left(rows: Array, board: Board) -> tuple[Board, Whole]:
    """All four rows slid left, exact while no tile is past 15 before or after."""
    a, b = np.uint64(rows[board & ROW]), np.uint64(rows[(board >> S16) & ROW])
    c, d = np.uint64(rows[(board >> S32) & ROW]), np.uint64(rows[board >> S48])
    after = (a & ROW) | ((b & ROW) << S16) | ((c & ROW) << S32) | ((d & ROW) << S48)
    return after, np.int64((a >> S16) + (b >> S16) + (c >> S16) + (d >> S16))


@compiled(inline=True)
def slide(rows: Array, board: Board, aux: np.uint64, action: Whole) -> tuple[Board, np.uint64, Whole]:
    """The afterstate and the sum of the numbers made. The move is legal if the board changed."""
    after, reward = slide_left(rows, turn(board, action))
    if aux != ZERO or reward >= FIRST_LARGE:
        return slide_exactly(rows, board, aux, action)
    return turn_back(after, action), aux, reward


@compiled
def largest(board: Board, aux: np.uint64) -> Whole:
    """The index of the largest tile."""
    tile = largest_nibble(board)
    if aux != ZERO:
        for cell in range(16):
            tile = max(tile, index_at(board, aux, cell))
    return np.int64(tile)


@compiled
def value_of_board(board: Board, aux: np.uint64) -> Whole:
    """The potential Σ worth: a slide earns exactly what it adds to it."""
    value = np.int64(0)
    for cell in range(16):
        value += WORTHS[np.int64(index_at(board, aux, cell))]
    return value


@compiled
def sum_of_tiles(board: Board, aux: np.uint64) -> np.uint64:
    """The sum of the numbers on the tiles: a slide keeps it, a new tile adds to it."""
    total = np.int64(0)
    for cell in range(16):
        total += NUMBERS[np.int64(index_at(board, aux, cell))]
    return np.uint64(total)


@cache
def game(two_rate: float = TWO_RATE) -> Game:
    """2584 with this share of twos among the new tiles."""
    start, deal, spawn, placements = new_tiles(two_rate)
    return Game(
        name="fibonacci",
        key="fibonacci" if two_rate == TWO_RATE else f"fibonacci:{two_rate:g}",
        title="2584",
        summary="slide, merge neighbours of 1, 2, 3, 5, 8, …, a 1 or a 2 appears",
        tiles=TILES,
        goal=TILES.index(2584),
        rows=row_table(),
        rules=Rules(start, deal, slide, spawn, placements, no_draws, value_of_board, largest, sum_of_tiles),
        starting_tiles=2,
        max_placements=32,
        max_draws=1,
        parameters={"two_rate": two_rate},
        takes={"two_rate": Parameter("the share of twos among the new tiles")},
        write=write,
        read=read,
        merged=merged,
        index_at=index_at,
        highest_in=lambda cells: 2 * cells,
        symmetric=True,
        second_rate=two_rate,
    )


def write(board: Board, aux: np.uint64) -> tuple[list[int], dict[str, str]]:
    """Indices of the sixteen tiles; 2584 has nothing else to say."""
    return [int(index_at(board, aux, cell)) for cell in range(16)], {}


def read(cells: list[int], fields: dict[str, str]) -> tuple[Board, np.uint64]:
    """Board and aux of these indices."""
    board = sum(int(nibble_of(np.uint64(tile))) << 4 * cell for cell, tile in enumerate(cells))
    aux = sum(int(rest_of(np.uint64(tile))) << 4 * cell for cell, tile in enumerate(cells))
    return np.uint64(board), np.uint64(aux)
