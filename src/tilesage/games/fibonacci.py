"""2584: 2048 with the Fibonacci numbers. Two neighbours of the sequence 1, 2, 3, 5, 8, … merge to the next one.

Index i is the i-th of them, up to 32 = 3,524,578, the largest that sixteen cells can make; 17 is 2584. Two 1s merge
as well, to a 2; no other equal tiles do. `aux` of a position holds what is missing of tiles past 15 (games/exact.py);
the tables of a network see the nibble: to them all these tiles are a 15, but for the two that hardly anybody will
ever see.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.games.board import ONE, TWO, ZERO, Board, Whole
from tilesage.games.exact import index_at, largest, read, slides_of, table_of, write
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
    """The table of slides of all rows."""
    return table_of(slide_line)


@compiled
def made_of(one: np.uint64, other: np.uint64) -> np.uint64:
    """`merged`, compiled; a tile merges with none (0)."""
    low, high = min(one, other), max(one, other)
    if low == ONE and high == ONE:
        return TWO
    return high + ONE if low > ZERO and high == low + ONE and high < np.uint64(HIGHEST) else ZERO


slide_row, _, slide = slides_of(made_of, TILES)


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
